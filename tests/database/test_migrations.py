"""The way of a database to the newest schema.

Whole or not at all, from every revision there was, from nothing else.

``python tests/test_migrations.py`` saves a small store with rows in every table as
``databases/<HEAD>.db``: done once for each revision, before it is released, and never again,
because the file stands for what its users have on disk.
"""

from __future__ import annotations

import ast
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from conftest import ROOT

from store import Store
from store.database import migrate
from store.database.engine import Database
from store.database.files import find_folder
from store.database.schema import METADATA, SCHEMA_HEAD
from store.errors import NotAStore, SchemaTooNew
from store.tools import TOOL_KINDS

IN_THE_MAKING = {
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    SCHEMA_HEAD,
}
"""Revisions that no release has: nobody has such a file, and no saved database is needed yet."""
DATABASES = sorted((ROOT / "tests" / "databases").glob("*.db"))

SAVED = [
    {"role": "system", "content": "You are helpful."},
    {
        "role": "user",
        "content": "Is it a leap year? 闰年 🗓",
        "id": "m-2",
        "timestamp": 1_700_000_000_000,
        "name": "ada",
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "src/year.py"}'},
            },
            {
                "id": "c2",
                "type": "function",
                "function": {"name": "run_terminal", "arguments": "not json"},
            },
        ],
    },
    {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "def leap(y): ...",
        "timestamp": 1_700_000_000_500,
    },
    {"role": "tool", "tool_call_id": "c2", "content": "Error: no", "messageStatus": "error"},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "Yes."}],
        "reasoning": "\0 and \ud800",
    },
]
"""What every saved database says in its session "saved"."""

AFTER_FORK = {"role": "user", "content": "And 1900?"}


def config(connection: sqlalchemy.Connection | None = None, scripts: Path | None = None) -> Config:
    """Return Alembic's configuration as the store makes it."""
    made = Config(attributes={"connection": connection} if connection else {})
    made.set_main_option("script_location", str(scripts or find_folder("migrations")))
    return made


def rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return every row of every table of a file, sorted, by column."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        ).fetchall()
        found = {
            name: connection.execute(f'SELECT * FROM "{name}"').fetchall()
            for (name,) in map(tuple, tables)
        }
    return {name: sorted(map(dict, each), key=repr) for name, each in found.items()}


def files(path: Path) -> dict[str, bytes]:
    """Return the bytes of every file in a folder."""
    return {each.name: each.read_bytes() for each in path.iterdir()}


# --- The newest schema ----------------------------------------------------------------------------


def test_head_is_the_newest_script() -> None:
    """The revisions are one chain, numbered from 0001, and the code knows the last of them."""
    scripts = ScriptDirectory.from_config(config())
    chain = [script.revision for script in scripts.walk_revisions()]
    assert scripts.get_heads() == [SCHEMA_HEAD]
    assert chain == [f"{number:04}" for number in range(len(chain), 0, -1)]


def test_the_database_is_what_the_code_declares(bare_url: str) -> None:
    """``alembic check`` finds nothing to do in a new store."""
    Store(bare_url).close()
    database = Database(bare_url)
    with database.writing() as connection:
        connection.begin()
        command.check(config(connection))
    database.close()


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_new_store_says_nothing_in_the_log(tmp_path: Path) -> None:
    """How it is made is Alembic's own matter; a warning of Alembic's is let through."""
    program = (
        "import logging, sys; logging.basicConfig(level='DEBUG', format='%(name)s %(message)s');"
        "from store import Store; Store(sys.argv[1]).close();"
        "log = logging.getLogger('alembic.runtime.migration'); log.info('of the host')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "new.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line for line in ran.stderr.splitlines() if "alembic" in line]
    assert told == ["alembic.runtime.migration of the host"]


@pytest.mark.slow
def test_migrating_makes_what_the_tables_declare(tmp_path: Path) -> None:
    """Tables, keys, types and indexes are the same whether made by the revisions or from the
    declarations.
    """
    Store(tmp_path / "migrated.db").close()
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'declared.db'}")
    METADATA.create_all(engine)
    engine.dispose()
    migrated = picture(tmp_path / "migrated.db")
    migrated.pop("alembic_version")
    assert migrated == picture(tmp_path / "declared.db")


def picture(path: Path) -> dict[str, Any]:
    """Return what SQLite knows of each table of a file."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("PRAGMA table_list").fetchall()
        return {
            name: {
                "kind": (kind, columns, without_rowid, strict),
                "columns": connection.execute(f"PRAGMA table_xinfo({name})").fetchall(),
                "keys": sorted(connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()),
                "indexes": sorted(
                    (index[1:], connection.execute(f"PRAGMA index_xinfo({index[1]})").fetchall())
                    for index in connection.execute(f"PRAGMA index_list({name})").fetchall()
                ),
                "constraints": sorted(
                    word.strip(",")
                    for word in connection.execute(
                        "SELECT sql FROM sqlite_schema WHERE name = ?", [name]
                    )
                    .fetchone()[0]
                    .split()
                    if word.startswith(("pk_", "fk_", "uq_"))
                ),
            }
            for _, name, kind, columns, without_rowid, strict in tables
            if kind == "table" and not name.startswith("sqlite_")
        }


def test_every_revision_says_whether_it_rewrites_rows() -> None:
    """A store is copied before rows are rewritten, so each revision has to say it."""
    scripts = ScriptDirectory.from_config(config())
    told = [script.module.rewrites_rows for script in scripts.walk_revisions()]
    assert {type(each) for each in told} == {bool}


def test_opening_again_changes_nothing(bare_url: str) -> None:
    """A store at the newest schema is left alone."""
    with Store(bare_url) as store:
        store.create_session("s")
    database = Database(bare_url)
    assert migrate.upgrade_schema(database) == (SCHEMA_HEAD, None)
    database.close()
    with Store(bare_url) as store:
        assert [each.id for each in store.sessions()] == ["s"]


@pytest.mark.skipif(not os.environ.get("CONVOSTORE_TEST_URL"), reason="a file has no schemas")
def test_a_servers_url_may_name_a_schema(bare_url: str) -> None:
    """Options of the URL are kept beside the store's own."""
    url = sqlalchemy.make_url(bare_url).update_query_dict({"options": "-c search_path=elsewhere"})
    with closing(Database(url)) as database, database.writing() as connection:
        connection.execute(sqlalchemy.text("CREATE SCHEMA elsewhere"))
    with Store(url, durability="normal") as store:
        store.create_session("s")
        assert store.verify() == []
        with store.database.reading() as connection:
            assert connection.scalar(sqlalchemy.text("SELECT id FROM elsewhere.sessions")) == "s"
            assert connection.scalar(sqlalchemy.text("SHOW synchronous_commit")) == "off"


def test_an_empty_version_table_is_an_empty_database(bare_url: str) -> None:
    """What a first migration by other means may have left behind is no obstacle."""
    engine = sqlalchemy.create_engine(bare_url, poolclass=sqlalchemy.NullPool)
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        )
    with Store(bare_url) as store:
        assert store.sessions() == []


# --- Revisions that fail or are killed ------------------------------------------------------------

NEXT = f"{int(SCHEMA_HEAD) + 1:04}"
REVISION = f'''
import os, signal
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{NEXT}", "{SCHEMA_HEAD}", None, None
rewrites_rows = False

def upgrade():
    op.create_table("extra", sa.Column("id", sa.Integer, primary_key=True))
    op.add_column("sessions", sa.Column("extra", sa.Text))
    op.execute("UPDATE sessions SET extra = 'yes'")
    {{last}}
'''
FAILS = 'raise ArithmeticError("in the middle of it")'
DIES = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let this process be a release with one more revision, whose last line is given."""

    def install(last: str) -> None:
        scripts = tmp_path / "migrations"
        shutil.copytree(find_folder("migrations"), scripts, dirs_exist_ok=True)
        (scripts / "versions" / f"{NEXT}_next.py").write_text(REVISION.format(last=last))
        monkeypatch.setattr(migrate, "find_folder", lambda name: tmp_path / name)
        monkeypatch.setattr(migrate, "SCHEMA_HEAD", NEXT)

    return install


def test_a_failing_first_migration_leaves_nothing(
    bare_url: str, next_release: Callable[[str], None]
) -> None:
    """All revisions are one transaction.

    Where one of them fails, the database is as empty as before.
    """
    next_release(FAILS)
    with pytest.raises(ArithmeticError, match="in the middle"):
        Store(bare_url)
    assert (
        sqlalchemy.inspect(
            sqlalchemy.create_engine(bare_url, poolclass=sqlalchemy.NullPool)
        ).get_table_names()
        == []
    )
    next_release("pass")
    with Store(bare_url) as store:
        assert store.sessions() == []


@pytest.mark.sqlite_only
def test_a_failing_migration_leaves_the_old_store(
    tmp_path: Path, next_release: Callable[[str], None]
) -> None:
    """A store whose upgrade fails is still the store of the older release, row for row.

    A mended one goes through.
    """
    path = tmp_path / "chat.db"
    with Store(path) as store:
        store.create_session("s")
        store.append("s", SAVED)
    before, shape = rows(path), picture(path)
    next_release(FAILS)
    with pytest.raises(ArithmeticError):
        Store(path)
    assert (rows(path), picture(path)) == (before, shape)
    next_release("pass")
    with Store(path) as store:
        assert [each.message for each in store.messages("s")] == SAVED
    assert rows(path)["alembic_version"] == [{"version_num": NEXT}]
    assert [row["extra"] for row in rows(path)["sessions"]] == ["yes"]


@pytest.mark.sqlite_only
def test_a_killed_upgrade_runs_again(
    tmp_path: Path, next_release: Callable[[str], None], fork: Callable[..., Any]
) -> None:
    """A kill in the middle of an upgrade leaves the old store, and the next opening upgrades it."""
    path = tmp_path / "chat.db"
    with Store(path) as store:
        store.create_session("s")
        store.append("s", SAVED)
    before = rows(path)
    next_release(DIES)
    with pytest.raises(AssertionError, match="was killed"):
        fork(Store, path).result()
    assert rows(path) == before
    next_release("pass")
    with Store(path) as store:
        assert [each.message for each in store.messages("s")] == SAVED


@pytest.mark.sqlite_only
@pytest.mark.slow
def test_many_upgrade_at_once(
    tmp_path: Path, next_release: Callable[[str], None], fork: Callable[..., Any]
) -> None:
    """Six processes of a newer release open an older store at the same time.

    One upgrades it, all go on with it.
    """
    path = tmp_path / "chat.db"
    with Store(path) as store:
        store.create_session("s")
    next_release("pass")

    def work(name: int) -> int:
        with Store(path) as store:
            return store.append("s", {"role": "user", "content": name})[0].seq

    children = [fork(work, name) for name in range(6)]
    assert sorted(child.result() for child in children) == [1, 2, 3, 4, 5, 6]
    assert rows(path)["alembic_version"] == [{"version_num": NEXT}]


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_first_opening_killed_anywhere_runs_again(
    tmp_path: Path, fork: Callable[..., Any]
) -> None:
    """Wherever the making of a store was cut off, opening it again makes it."""

    def die_at(statement: int) -> int:
        seen = 0

        def count(_: str) -> None:
            nonlocal seen
            seen += 1
            if seen == statement:
                os.kill(os.getpid(), signal.SIGKILL)

        sqlalchemy.event.listen(
            sqlalchemy.Pool, "connect", lambda driver, _: driver.set_trace_callback(count)
        )
        Store(tmp_path / f"{statement}.db").close()
        return seen

    total = fork(die_at, -1).result()
    assert total > 60
    for statement in range(1, total, total // 8):
        path = tmp_path / f"{statement}.db"
        with pytest.raises(AssertionError, match="was killed"):
            fork(die_at, statement).result()
        with Store(path) as store:
            store.create_session("s")
        assert rows(path)["alembic_version"] == [{"version_num": SCHEMA_HEAD}]


@pytest.mark.sqlite_only
def test_raw_messages_are_never_dropped_by_a_downgrade(tmp_path: Path) -> None:
    """The way back is the copy made before the upgrade."""
    Store(tmp_path / "chat.db").close()
    database = Database(tmp_path / "chat.db")
    with database.reading() as connection:
        connection.begin()
        with pytest.raises(CommandError, match="restore a copy"):
            command.downgrade(config(connection), "base")
    database.close()


LIBRARIES = {"__future__", "alembic", "base64", "collections", "hashlib", "json", "pydantic_core"}
LIBRARIES |= {"re", "sqlalchemy", "typing"}


def test_revisions_call_nothing_of_the_package() -> None:
    """A revision does the same for ever, whatever becomes of the code around it."""
    for path in sorted(find_folder("migrations").glob("versions/*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        imports = [each for each in ast.walk(tree) if isinstance(each, ast.Import)]
        names += [alias.name for each in imports for alias in each.names]
        assert {str(name).partition(".")[0] for name in names} <= LIBRARIES, path.name
        assert "attributes" not in path.read_text(encoding="utf-8"), path.name


def test_the_statements_of_all_revisions_make_a_store(bare_url: str) -> None:
    """``alembic upgrade head --sql`` prints a script that makes an empty database a store."""
    printed = io.StringIO()
    options = config()
    options.output_buffer = printed
    options.set_main_option("sqlalchemy.url", bare_url.replace("%", "%%"))
    command.upgrade(options, "head", sql=True)
    run_script(bare_url, printed.getvalue())
    with Store(bare_url) as store:
        assert store.upgraded.found == SCHEMA_HEAD
        store.create_session("s")
        store.append("s", SAVED)
        assert store.verify() == []


def run_script(url: str, script: str) -> None:
    """Run a script of statements as the shell of an engine would."""
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    with closing(engine.raw_connection()) as connection:
        driver: Any = connection.driver_connection
        if engine.dialect.name == "sqlite":
            driver.executescript(script)
        else:
            driver.autocommit = True
            driver.execute(script)


# --- The kinds of tools ---------------------------------------------------------------------------


def kinds_in(database: Database) -> dict[str, str]:
    """Return the kinds of tools that a database knows."""
    with database.reading() as connection:
        return dict(map(tuple, connection.execute(sqlalchemy.text("SELECT * FROM tool_kinds"))))


def test_a_new_store_knows_the_kinds_of_tools(bare_url: str) -> None:
    """All of them are there, and the next opening has nothing to do."""
    with Store(bare_url) as store:
        assert kinds_in(store.database) == TOOL_KINDS
    with Store(bare_url) as store:
        assert kinds_in(store.database) == TOOL_KINDS
        assert store.upgraded == (SCHEMA_HEAD, None)


def test_a_release_adds_the_names_that_it_knows(
    bare_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of any release learns them by being opened; rows of its own stay as they are."""
    with Store(bare_url) as store, store.database.writing() as connection:
        statement = "UPDATE tool_kinds SET kind = 'other' WHERE name = 'Bash'"
        connection.execute(sqlalchemy.text(statement))
        connection.execute(sqlalchemy.text("INSERT INTO tool_kinds VALUES ('mine', 'terminal')"))
    newer = {**TOOL_KINDS, "brand_new_tool": "search", "mine": "search"}
    monkeypatch.setattr("store.tools.TOOL_KINDS", newer)
    for _ in range(2):
        with Store(bare_url) as store:
            found = kinds_in(store.database)
            assert found == {**newer, "Bash": "other", "mine": "terminal"}
            assert store.upgraded == (SCHEMA_HEAD, None)


# --- Databases that releases have made ------------------------------------------------------------


def test_every_released_revision_has_a_saved_database() -> None:
    """There is one file for each revision but those that are still being made."""
    revisions = {
        script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()
    }
    assert {path.stem for path in DATABASES} == revisions - IN_THE_MAKING


@pytest.mark.sqlite_only
@pytest.mark.parametrize("saved", DATABASES, ids=lambda path: path.stem)
def test_a_saved_database_has_rows_everywhere(saved: Path) -> None:
    """An empty table would prove nothing."""
    assert [name for name, found in rows(saved).items() if not found] == []


@pytest.mark.sqlite_only
@pytest.mark.parametrize("saved", DATABASES, ids=lambda path: path.stem)
def test_a_saved_database_upgrades_with_its_rows(saved: Path, tmp_path: Path) -> None:
    """Every row of an older release is there afterwards, and the conversation is the one that was
    saved.
    """
    path = Path(shutil.copy(saved, tmp_path / "chat.db"))
    before = rows(path)
    before.pop("alembic_version")
    with Store(path) as store:
        assert [each.message for each in store.messages("saved")] == SAVED
        assert [each.message for each in store.messages("forked")] == [*SAVED[:5], AFTER_FORK]
        assert store.undo_rewind("rewound").head == 2
        assert [each.session_id for each in store.erasures()] == ["erased"]
    after = rows(path)
    assert after["alembic_version"] == [{"version_num": SCHEMA_HEAD}]
    changed = {"sessions", "head_moves"}  # by the undo above
    for table, found in before.items():
        kept = [{name: row[name] for name in found[0]} for row in after[table]]
        if table in changed:
            assert len(kept) >= len(found)
        else:
            assert sorted(kept, key=repr) == found
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# --- What is no store, or too new -----------------------------------------------------------------


@pytest.mark.sqlite_only
def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    """A store of a newer release is refused with both revisions named, byte for byte untouched."""
    path = tmp_path / "chat.db"
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = files(tmp_path)
    with pytest.raises(SchemaTooNew, match="9999") as refused:
        Store(path)
    assert (refused.value.found, refused.value.known) == ("9999", SCHEMA_HEAD)
    assert path.read_bytes() == before[path.name]


FOREIGN = {
    "a table": ["CREATE TABLE notes (t)"],
    "an Alembic project's": [
        "CREATE TABLE users (t)",
        "CREATE TABLE alembic_version (version_num)",
    ],
    "with a revision": [
        "CREATE TABLE users (t)",
        "CREATE TABLE alembic_version (version_num)",
        "INSERT INTO alembic_version VALUES ('1975ea83b712')",
    ],
    "with a numbered revision": [
        "CREATE TABLE users (t)",
        "CREATE TABLE alembic_version (version_num)",
        f"INSERT INTO alembic_version VALUES ('{SCHEMA_HEAD}')",
    ],
    "with a higher number": [
        "CREATE TABLE sessions (t)",
        "CREATE TABLE alembic_version (version_num)",
        "INSERT INTO alembic_version VALUES ('9999')",
    ],
}


@pytest.mark.sqlite_only
@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_database_is_left_alone(tmp_path: Path, statements: list[str]) -> None:
    """The database of another program is refused, and no byte of it or file beside it is touched."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    before = files(tmp_path)
    with pytest.raises(NotAStore):
        Store(path)
    assert files(tmp_path) == before


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    "content",
    [b"Dear diary,\n" * 100, b"hi", b"\0" * 5000, b"SQLite format 3\0" + b"\xff" * 5000],
    ids=["text", "two bytes", "zeros", "a header and noise"],
)
def test_a_file_of_another_kind_is_left_alone(tmp_path: Path, content: bytes) -> None:
    """A file that is no database is refused byte for byte untouched, whatever it is."""
    path = tmp_path / "diary.txt"
    path.write_bytes(content)
    with pytest.raises(NotAStore):
        Store(path)
    assert files(tmp_path) == {"diary.txt": content}


# --- Opening is quick -----------------------------------------------------------------------------

USE = """
import json, sys
from store import Store
with Store(sys.argv[1]) as store:
    store.append("s", {"role": "user", "content": "hello"})
    store.messages("s"), store.view("s"), store.sessions(), store.fork("s")
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_store_at_head_needs_no_migration_tool(tmp_path: Path) -> None:
    """Opening and using a store imports neither Alembic nor a tokenizer nor what only the command
    needs.
    """
    with Store(tmp_path / "chat.db") as store:
        store.create_session("s")
    done = subprocess.run(
        [sys.executable, "-c", USE, tmp_path / "chat.db"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "sqlalchemy" in imported
    assert imported & {"alembic", "mako", "tiktoken", "typer", "rich", "pytest"} == set()


# --- Making a saved database ----------------------------------------------------------------------


def save(path: Path) -> None:
    """Write a small store with rows in every table."""
    work = path.with_suffix(".making")
    work.unlink(missing_ok=True)
    now = 1_700_000_001_000
    with Store(work) as store:
        store.create_session(
            "saved", title="Leap years", project_root="/src", metadata={"a": [1, "ü"]}, now=now
        )
        store.append("saved", SAVED, now=now)
        store.fork("saved", 5, "forked", now=now)
        store.append("forked", AFTER_FORK, now=now)
        store.create_session("rewound", now=now)
        store.append("rewound", SAVED[:2], now=now)
        store.rewind("rewound", 1, now=now)
        store.create_session("erased", now=now)
        store.append("erased", SAVED[0], now=now)
        store.delete_session("erased", now=now)
        with store.database.writing() as connection:
            for statement in derived(store):
                connection.execute(statement)
    with closing(sqlite3.connect(work, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    work.replace(path)
    Path(f"{work}-lock").unlink()


def derived(store: Store) -> Iterator[sqlalchemy.Insert]:
    """Yield rows for what a conversation alone does not fill."""
    with store.database.reading() as connection:
        find = sqlalchemy.select(METADATA.tables["session_ids"].c.tree_id).filter_by(id="saved")
        tree_id = connection.execute(find).scalar_one()
    moment = {"tree_id": tree_id, "branch": 1, "created_at": 1_700_000_002_000}
    summary = {
        **moment,
        "summary": 1,
        "first": 2,
        "last": 5,
        "tokens": 9,
        "model": "m",
        "prompt_version": "1",
    }
    summary |= {
        "digest": b"\x01\xff",
        "title": "t",
        "key_actions": "[]",
        "file_changes": "[]",
        "body": "It is.",
    }
    record = {
        **moment,
        "compaction": 1,
        "head": 6,
        "reason": "manual",
        "outcome": "applied",
        "first_kept": 6,
    }
    record |= {
        "hidden_first": 2,
        "hidden_last": 5,
        "summary": 1,
        "messages_before": 6,
        "messages_after": 3,
    }
    count = {"tree_id": tree_id, "branch": 1, "seq": 1, "encoding": "o200k_base", "tokens": 7}
    usage = {
        "tree_id": tree_id,
        "branch": 1,
        "seq": 6,
        "usage": 1,
        "input": 9,
        "output": 2,
        "cached": 0,
        "at": 5,
    }
    rows = {
        "summaries": summary,
        "compaction_records": record,
        "token_counts": count,
        "usages": usage,
    }
    for name, values in rows.items():
        yield METADATA.tables[name].insert().values(values)


if __name__ == "__main__":
    target = ROOT / "tests" / "databases" / f"{SCHEMA_HEAD}.db"
    if target.exists() and "--again" not in sys.argv:
        raise CommandError(
            f"{target} stands for a released revision; --again replaces it all the same"
        )
    target.parent.mkdir(exist_ok=True)
    save(target)
