"""The tables of a server in parts, and what goes to one part of them or to all."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from conftest import Run
from fan_outs import FANS_OUT
from test_statements import STATEMENTS, Named

from store import Policy, Store
from store.database import TREE_TABLES
from store.errors import InvalidValue, StoreError
from store.inspection import Database, divide_tables, doctor, list_table_parts
from store.inspection.distribution import build_citus_statements

on_server = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)
SAID = [{"role": role, "content": f"{role} says"} for role in ("user", "assistant") * 3]


@pytest.fixture
def whole(bare_url: str) -> Iterator[Database]:
    """Give the database of an empty store that is not divided."""
    Store(bare_url).close()
    with closing(Database(bare_url)) as opened:
        yield opened


def asked(database: Database, query: str) -> list[Any]:
    """Return the rows of a query of the server."""
    with database.reading() as connection:
        return [*map(tuple, connection.exec_driver_sql(query))]


SHAPE = (
    """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(pg_constraint.oid)
    FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
    WHERE NOT relispartition AND contype <> 'n' AND conparentid = 0 ORDER BY 1, 2""",
    """SELECT relname, replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') FROM pg_index
    JOIN pg_class ON pg_class.oid = indexrelid
    WHERE NOT relispartition AND relnamespace = 'public'::regnamespace ORDER BY 1""",
    """SELECT pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger
    JOIN pg_class ON pg_class.oid = tgrelid
    WHERE NOT tgisinternal AND NOT relispartition ORDER BY 1""",
    r"""SELECT viewname, regexp_replace(definition, '(NULL::\w+) AS \w+', '\1', 'g')
    FROM pg_views WHERE schemaname = 'public' ORDER BY 1""",
    """SELECT table_name, column_name, column_default, is_nullable, data_type, collation_name
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name !~ '_p[0-9]$'
    ORDER BY table_name, ordinal_position""",
)
"""Everything that tables are but for how their rows lie."""


@on_server
def test_a_divided_store_is_the_same_store(whole: Database) -> None:
    """Keys, indexes, guards, views and columns stay."""
    before = [asked(whole, each) for each in SHAPE]
    parts = divide_tables(whole, 3)
    assert [asked(whole, each) for each in SHAPE] == before
    assert parts == list_table_parts(whole)
    of_trees = {table.name for table in TREE_TABLES}
    assert {each.table for each in parts if each[1:] == ("partitions", "tree_id", 3)} == of_trees
    assert {each.kind for each in parts if each.table not in of_trees} == {"whole"}


@on_server
def test_a_divided_store_is_used_like_any_other(whole: Database) -> None:
    """A compaction ends its record in a partition, whose name the guard does not ask for."""
    divide_tables(whole, 2)
    with Store(whole.url) as store:
        for name in "abc":
            store.create_session(name)
            store.append(name, SAID)
            store.compact(name, Policy(keep_messages=1), lambda *_: "All of it.")
            assert store.hidden(name)
        assert {each.name for each in store.size().parts} >= {"messages", "settings"}
        assert not any("_p0" in each.name for each in store.size().parts)
        assert store.verify() == []
    for attack in ("UPDATE messages SET extra = '{}'", "TRUNCATE messages_p0 CASCADE"):
        with pytest.raises(StoreError, match="raw rows"), whole.writing() as connection:
            connection.exec_driver_sql(attack)
    (server,) = (each for each in doctor(whole.url) if each.about == "server")
    assert f"{len(TREE_TABLES)} tables in partitions" in server.found


@on_server
def test_a_store_in_use_is_refused_unharmed(whole: Database) -> None:
    """So is one that is divided, a number that makes no sense, and a server without Citus."""
    before = [asked(whole, each) for each in SHAPE]
    with pytest.raises(InvalidValue, match="2 to 1024"):
        divide_tables(whole, 1)
    with pytest.raises(StoreError, match="no extension citus"):
        divide_tables(whole)
    with Store(whole.url) as store:
        store.create_session("s")
        with pytest.raises(StoreError, match=r"in use, session_ids has rows.*convostore copy"):
            divide_tables(whole, 4)
        assert [asked(whole, each) for each in SHAPE] == before
        store.delete_session("s")
        with pytest.raises(StoreError, match="erasures has rows"):
            divide_tables(whole, 4)


@on_server
def test_what_is_divided_is_not_divided_again(whole: Database) -> None:
    """The parts stay as they are."""
    divide_tables(whole, 2)
    with pytest.raises(StoreError, match="divided already"):
        divide_tables(whole, 4)
    assert {each.parts for each in list_table_parts(whole)} == {1, 2}


@on_server
def test_a_worker_upgrades_no_store(whole: Database) -> None:
    """A node of Citus that has parts of the tables only says where to open the store."""
    with whole.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE pg_dist_local_group AS SELECT 3 AS groupid")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0007'")
    with pytest.raises(StoreError, match=r"worker of Citus.*coordinator"):
        Store(whole.url)
    with pytest.raises(StoreError, match="not its coordinator"):
        divide_tables(whole)


@on_server
def test_the_command_divides(bare_url: str, run: Run) -> None:
    """It makes the store if there is none, and lists how each table lies."""
    done = run("--db", bare_url, "distribute", "--partitions", 2, "--json")
    assert done.status == 0, done.err
    parts = {each["table"]: each["parts"] for each in json.loads(done.out)}
    assert (parts["messages"], parts["settings"]) == (2, 1)
    checked = run("--db", bare_url, "distribute", "--check")
    assert re.search(r"messages +partitions +tree_id +2", checked.out)
    again = run("--db", bare_url, "distribute", "--partitions", 2)
    assert (again.status, "divided already" in again.err) == (2, True)


@pytest.mark.sqlite_only
def test_a_file_is_not_divided(run: Run, tmp_path: Path) -> None:
    """It is not even made; a command without a task says which there are."""
    for arguments in (("--partitions", 4), ("--citus",), ("--check",)):
        done = run("--db", "chat.db", "distribute", *arguments)
        assert (done.status, "a file is on one machine" in done.err) == (2, True)
    for arguments in ((), ("--citus", "--check"), ("--partitions", 4, "--citus")):
        done = run("--db", "postgresql://nowhere/x", "distribute", *arguments)
        assert (done.status, "takes one of" in done.err) == (2, True)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.sqlite_only
def test_citus_is_told_of_every_table() -> None:
    """Those of trees lie together, the look-up of ids by id, all others on each node."""
    tables = ["alembic_version", "messages", "session_ids", "settings"]
    calls = [*build_citus_statements(tables, ["erase_messages(bigint,bigint,bigint)"])]
    of_trees = [call for call in calls if "'tree_id'" in call]
    first = TREE_TABLES[0].name
    assert len(of_trees) == len(TREE_TABLES)
    assert [call for call in of_trees if f"colocate_with => '{first}'" in call] == of_trees[1:]
    assert calls[len(of_trees) :] == [
        "SELECT create_distributed_table('session_ids', 'id', colocate_with => 'none')",
        "SELECT create_reference_table('alembic_version')",
        "SELECT create_reference_table('settings')",
        "SELECT create_distributed_function('erase_messages(bigint,bigint,bigint)')",
    ]


# --- Where a statement goes -----------------------------------------------------------------------

PARAMETER = re.compile(r"%\((\w+)\)s(::\w+\[\])?")
LITERALS = ("'1'", "'{1}'", "'[1]'")
LATER = {"until": "'9'", "end": "'9'"}
"""The ends of ranges, which must not be empty."""
ONLY_FILES = {"database.storage_sizes.SQLITE_MODULE", "inspection.storage_use._FILE"}
"""The statements that no server is asked."""


def plan(database: Database, named: Named) -> str:
    """Return a server's plan of a statement, whatever its values are."""
    for literal in LITERALS:

        def write(found: re.Match[str], literal: str = literal) -> str:
            array = found[2]
            return f"'{{1}}'{array}" if array else LATER.get(found[1], literal)

        text = PARAMETER.sub(write, named.statement.text("postgresql")).replace("%%", "%")
        try:
            return "\n".join(
                step for (step,) in asked(database, f"EXPLAIN {text}".replace("%", "%%"))
            )
        except (StoreError, sqlalchemy.exc.DBAPIError) as error:
            reason = error
    raise AssertionError(f"{named.name} has no plan: {reason}")


def touches_several_parts(steps: str) -> bool:
    """Tell whether a plan reads or writes more than one partition of a table."""
    parts = defaultdict(set)
    for table, part in re.findall(r"(?:on|using) (\w+)_p(\d+)\b", steps):
        parts[table].add(part)
    return any(len(each) > 1 for each in parts.values())


@on_server
def test_a_statement_goes_to_one_part(whole: Database) -> None:
    """Or stands in `FANS_OUT` with its reason. What goes to one partition, goes to one machine."""
    divide_tables(whole, 4)
    asking = [each for each in STATEMENTS if each.name not in ONLY_FILES]
    several = {each.name for each in asking if touches_several_parts(plan(whole, each))}
    assert several - {*FANS_OUT} == set()
    assert {*FANS_OUT} - several == set(), "they go to one part now: take them off the list"
