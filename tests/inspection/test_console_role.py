"""The console on a server: what the role may do, and the docs' recipe for one that only reads."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy
from conftest import ROOT, Run

from store import Policy, Store, inspection
from store.database import TREE_TABLES, session_ids
from store.errors import QueryRefused, ReadOnly, SessionNotFound

pytestmark = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"),
    reason="no server: set CONVOSTORE_TEST_URL to the URL of one",
)

SAID = "may change this store"


def read_recipe(page: str, role: str) -> str:
    """Return the SQL that a page gives for a role."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    (block,) = re.findall(rf"<!-- {role} -->\n```postgresql\n(.*?)```", text, re.DOTALL)
    return str(block)


def recipe(page: str, role: str) -> list[str]:
    """Return the statements that a page gives for a role, one a line."""
    return [line.partition(";")[0] for line in read_recipe(page, role).splitlines()]


def run_as_owner(url: str, statements: list[str]) -> None:
    """Run statements one by one."""
    engine = sqlalchemy.create_engine(
        url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool
    )
    with closing(engine.connect()) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.fixture
def reader(url: str) -> Iterator[str]:
    """Give the URL of the same store for a role made by the recipe."""
    with Store(url) as store:
        store.create_session("s", title="of a session")
    yield from make_role(url, "reliability.md", "reader")


def make_role(url: str, page: str, role: str) -> Iterator[str]:
    """Yield the URL of a store for a role that is made by a page's recipe and dropped at the end."""
    parts, name = sqlalchemy.make_url(url), f"{role}_{uuid.uuid4().hex}"
    assert parts.database
    made = [re.sub(rf"\b{role}\b", name, each) for each in recipe(page, role)]
    made = [re.sub(r"\bchat\b", parts.database, each) for each in made]
    run_as_owner(url, made)
    own = parts.set(username=name, password="choose-one")
    yield own.render_as_string(hide_password=False)
    run_as_owner(url, [f"DROP OWNED BY {name}", f"DROP ROLE {name}"])


def test_a_role_that_can_write_is_told_of(url: str, run: Run) -> None:
    """On standard error, beside the answer, whatever the format."""
    with Store(url) as store:
        store.create_session("s")
    role = sqlalchemy.make_url(url).username
    assert inspection.writing_role(url) == role
    for options in ((), ("--json",)):
        done = run("--db", url, "sql", "SELECT id FROM sessions", *options)
        assert done.status == 0
        assert SAID in done.err
        assert f"'{role}'" in done.err
        assert SAID not in done.out


def test_a_role_of_the_recipe_reads_and_is_not_told_of(reader: str, run: Run) -> None:
    """It sees the tables and the views for people, and opens nothing to be upgraded."""
    assert inspection.writing_role(reader) is None
    done = run("--db", reader, "sql", "SELECT title FROM sessions")
    assert (done.status, SAID in done.err) == (0, False)
    assert "of a session" in done.out
    assert "session_messages" in inspection.views(reader)


def test_a_role_of_the_recipe_reads_tables_of_later_releases(url: str, reader: str) -> None:
    """Made by the same owner."""
    run_as_owner(url, ["CREATE TABLE later AS SELECT 1 AS one"])
    assert inspection.query(reader, "SELECT one FROM later").rows == [(1,)]


HARM = (
    "UPDATE sessions SET title = ''",
    "DELETE FROM messages",
    "CREATE TABLE mine (a int)",
    "CREATE TEMPORARY TABLE mine (a int)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_reload_conf()",
)


def test_a_role_of_the_recipe_can_do_no_harm(reader: str) -> None:
    """Not past the console either, where no transaction is read-only."""
    psycopg: Any = pytest.importorskip("psycopg")
    denied = psycopg.errors.InsufficientPrivilege
    with psycopg.connect(reader.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in HARM:
            with pytest.raises(denied):
                connection.execute(statement)
    for statement in HARM[-3:]:
        with pytest.raises(QueryRefused, match="the role is not allowed to"):
            inspection.query(reader, statement)


@pytest.fixture
def app(url: str) -> Iterator[str]:
    """Give the URL of the same store for a role that has rights on rows alone."""
    with Store(url) as store:
        store.create_session("first")
        store.append("first", {"role": "user", "content": "indexed by the owner"})
        store.index()
    yield from make_role(url, "security.md", "app")


def test_who_may_not_make_the_index_is_told_who_may(url: str) -> None:
    """Searches find everything without it; whoever migrates the store makes it."""
    with Store(url) as owned:
        owned.index(on=False)
    for app in make_role(url, "security.md", "app"):
        with Store(app) as store:
            store.create_session("s")
            store.append("s", {"role": "user", "content": "hello there"})
            with pytest.raises(ReadOnly, match="run `convostore index` once as the owner"):
                store.index(on=True)
            store.append("s", {"role": "user", "content": "hello again"})
            assert [each.seq for each in store.search("hello", order="newest")] == [2, 1]
            with Store(url) as owned:
                assert owned.index().waiting == 0
            assert store.index().waiting == 0


def test_a_role_with_rights_on_rows(url: str, app: str) -> None:
    """An app needs no more: it writes, searches and erases, and leaves the guards where they are."""
    with Store(app) as store:
        store.create_session("s", owner="ann")
        store.append("s", {"role": "user", "content": "hello there"})
        with store.streaming("s", {"role": "assistant"}) as answer:
            answer.write("well")
        store.record_usage("s", input=5, output=1, model="gpt-4.1-mini")
        assert [each.seq for each in store.search("hello")] == [1]
        assert store.index().waiting == 0
        store.fork("s")
        store.redact("s", 1, "a name", by="app")
        assert bool(store.health())
        assert len(store.delete_owner("ann")) == 2
    with pytest.raises(sqlalchemy.exc.ProgrammingError, match="must be owner"):
        run_as_owner(app, ["ALTER TABLE messages DISABLE TRIGGER ALL"])


RAW_HARM = (
    "UPDATE messages SET content = ''",
    "UPDATE tool_calls SET arguments = ''",
    *(
        f"DELETE FROM {name}"
        for name in (
            *("message_attachments", "attachments", "tool_calls", "compaction_records"),
            *("summaries", "messages"),
        )
    ),
)
"""What a role of the recipe is refused, whatever was recorded before."""
CALLS = (
    "erase_tool_calls(tree_id, 1, -1)",
    "erase_message_attachments(tree_id, 1, -1)",
    "erase_messages(tree_id, 1, -1)",
    "erase_compaction_records(tree_id, 1, -1)",
    "erase_summaries(tree_id, 1, 99)",
    "erase_attachments(tree_id, 99)",
    "redact_attachments(tree_id, 1, 1)",
    "redact_tool_calls(tree_id, 1, 2, 0, '', '', '', '', '')",
    "redact_messages(tree_id, 1, 1, '', '', '', '', 0, '', '', '', '', '')",
)
"""The functions of the owner, with the places of what nobody erases or redacts."""
PICTURE = f"data:image/png;base64,{'QUJD' * 30_000}"
SPOKEN: list[Any] = [
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE}}]},
    {
        "role": "assistant",
        "content": "a secret",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "a result"},
    {"role": "user", "content": "thanks"},
]


def test_raw_rows_are_not_changed_by_a_role_that_writes_them(url: str, app: str) -> None:
    """Where no trigger guards them, its rights do, and the functions check what was recorded."""
    psycopg: Any = pytest.importorskip("psycopg")
    names = ("messages", "tool_calls", "message_attachments", "attachments", "summaries")
    with Store(app) as store:
        store.create_session("s")
        store.append("s", SPOKEN)
        store.compact("s", Policy(keep_messages=1), summarizer=lambda *_: "Talk.")
        kept = store.messages("s")
        guarded = (*names, "compaction_records")
        run_as_owner(url, [f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in guarded])
        with psycopg.connect(app.replace("+psycopg", ""), autocommit=True) as connection:
            for statement in RAW_HARM:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)
            for call in CALLS:
                connection.execute(f"SELECT {call} FROM sessions")
        assert store.messages("s") == kept


def test_a_role_that_writes_erases_and_redacts(app: str) -> None:
    """Its erasures, redactions and replacements leave nothing of what went."""
    policy = Policy(keep_messages=1)
    with Store(app) as store:
        for name in ("s", "other"):
            store.create_session(name, owner="ann")
            store.append(name, SPOKEN)
            store.compact(name, policy, summarizer=lambda *_: "Talk.")
        store.redact("s", 2, "a name", replacement="nothing secret")
        store.redact("s", 1, "a face")
        store.fork("s", 2, session_id="branch")
        store.rewind("s", 2)
        store.append("s", {"role": "user", "content": "again"})
        store.forget("s")
        assert store.prune(1, owner="ann", dry_run=False, now=2**42).sessions == 3
        assert store.verify() == []
    for table in ("messages", "tool_calls", "attachments", "message_attachments", "summaries"):
        (row,) = inspection.query(app, f"SELECT COUNT(*) FROM {table}").rows
        assert row == (table == "messages",), table


@pytest.fixture
def ann(url: str, app: str) -> Iterator[str]:
    """Give the URL of the same store for a role that sees the trees of one owner."""
    sql, at = read_recipe("security.md", "one_owner"), sqlalchemy.make_url(url)
    names = {each: f"{each}_{uuid.uuid4().hex}" for each in ("one_owner", "ann_reads")}
    names["app"] = str(sqlalchemy.make_url(app).username)
    for name, own in names.items():
        sql = re.sub(rf"\b{name}\b", own, sql)
    run_as_owner(url, [sql.replace("%", "%%")])
    at = at.set(username=names["ann_reads"], password="choose-one")
    yield at.render_as_string(hide_password=False)
    run_as_owner(url, ["DROP SCHEMA access CASCADE"])
    for name in ("ann_reads", "one_owner"):
        run_as_owner(url, [f"DROP OWNED BY {names[name]}", f"DROP ROLE {names[name]}"])


def fill_trees(store: Store) -> None:
    """Create trees of two owners, one that both have sessions in, and one of nobody."""
    for owner, name in (("ann", "a"), ("ben", "b"), ("ann", "shared"), (None, "nobody")):
        store.create_session(name, owner=owner)
        store.append(name, {"role": "user", "content": f"a secret of {name}"})
        store.record_usage(name, input=5, output=1)
        store.compact(name, summarizer=lambda *_: "A secret, too.", policy=Policy(keep_messages=0))
    store.fork("a", 1, session_id="a fork")
    store.fork("shared", 1, session_id="handed over", owner="ben")
    store.index()


def test_a_role_for_one_owner_sees_nobody_else(url: str, app: str, ann: str) -> None:
    """Whether the store asks or SQL; and it writes nothing."""
    with Store(url) as owned:
        fill_trees(owned)
        tree_id = owned.database.cache.trees.get("a")
    with Store(ann, read_only=True) as store:
        assert {each.id for each in store.sessions()} == {"a", "a fork"}
        assert [each.message["content"] for each in store.messages("a fork")] == ["a secret of a"]
        assert store.view("a").messages
        assert {each.session_id for each in store.search("secret")} == {"a"}
        assert len(store.usages()) == 1
        for hidden in ("b", "shared", "handed over", "nobody", "first"):
            with pytest.raises(SessionNotFound):
                store.session(hidden)
    seen = set()
    for table in (session_ids, *TREE_TABLES):
        rows = inspection.query(ann, f"SELECT DISTINCT tree_id FROM {table.name}").rows
        assert {tree for (tree,) in rows} <= {tree_id}, table.name
        seen.update(rows)
    assert seen == {(tree_id,)}
    with pytest.raises(sqlalchemy.exc.ProgrammingError, match="permission denied"):
        run_as_owner(ann, ["UPDATE sessions SET title = 'x'"])
    with Store(app) as store:
        assert store.count_sessions() == 7
        store.append("b", {"role": "user", "content": "more"})
        store.delete_session("b")
        assert store.verify() == []
