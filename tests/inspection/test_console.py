"""The read-only console: what people may ask, and every way out of it that could be thought of."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import InvalidValue, NotAStore, QueryRefused, StoreError
from store.inspection import console
from store.inspection import sql_console as inspection
from store.inspection.sql_console import QueryResult, query
from store.messages import SIZE_LIMIT

CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "read_file", "arguments": '{"path": "a.py"}'},
}
LARGE = 17 * 1024 * 1024

ENDLESS = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x)"
DOUBLED = """WITH RECURSIVE x(s) AS (SELECT 'a' UNION ALL SELECT s || s FROM x LIMIT 24),
    y(s) AS (SELECT max(s) FROM x)"""

BOMBS = {
    "an endless loop": f"{ENDLESS} SELECT count(*) FROM x",
    "a cross join": f"{ENDLESS[:-1]} LIMIT 5000) SELECT count(*) FROM x a, x b, x c",
    "a sort": f"{ENDLESS[:-1]} LIMIT 90000000) SELECT n FROM x ORDER BY -n",
    "a window": f"{ENDLESS[:-1]} LIMIT 90000000) SELECT sum(n) OVER (ORDER BY -n) FROM x",
    "a distinct": f"{ENDLESS} SELECT DISTINCT n FROM x WHERE n < 0",
    "group_concat": f"{ENDLESS} SELECT group_concat(n || 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') FROM x",
    "json_group_array": f"{ENDLESS} SELECT json_group_array(n) FROM x",
    "json_each": f"{ENDLESS[:-1]} LIMIT 300000), y(a) AS (SELECT json_group_array(n) FROM x)"
    " SELECT count(*) FROM y, json_each(a), json_each(a)",
    "a doubled text": "WITH RECURSIVE x(s) AS (SELECT 'aaaaaaaa' UNION ALL SELECT s || s FROM x) SELECT max(s) FROM x",
    "a grown text": "WITH RECURSIVE x(s) AS (SELECT 'a' UNION ALL SELECT replace(s, 'a', 'aaaaaaaaaaaa') FROM x)"
    " SELECT length(s) FROM x",
    "hex of hex": f"SELECT {'hex(' * 18}sql{')' * 18} FROM sqlite_schema WHERE name = 'messages'",
    "many large values": f"{DOUBLED} SELECT {', '.join(['s || s'] * 190)} FROM y",
    "one slow instruction": f"{DOUBLED} SELECT instr(s, substr(s, 1, 1000000) || 'b') FROM y",
}
"""Queries that would take all time or all memory."""

ATTACKS = {
    "ATTACH": "ATTACH '{folder}/evil.db' AS e",
    "ATTACH with a comment": "/* SELECT */ ATTACH '{folder}/evil.db' AS e -- SELECT",
    "ATTACH memory": "ATTACH ':memory:' AS e",
    "DETACH": "DETACH main",
    "VACUUM": "VACUUM",
    "VACUUM INTO": "VACUUM INTO '{folder}/evil.db'",
    "PRAGMA query_only": "PRAGMA query_only = 0",
    "PRAGMA writable_schema": "PRAGMA writable_schema = 1",
    "PRAGMA journal_mode": "PRAGMA journal_mode = DELETE",
    "PRAGMA wal_checkpoint": "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA hard_heap_limit": "PRAGMA hard_heap_limit = 0",
    "PRAGMA user_version": "PRAGMA user_version = 7",
    "PRAGMA temp_store_directory": "PRAGMA temp_store_directory = '{folder}'",
    "PRAGMA database_list": "PRAGMA database_list",
    "pragma_database_list": "SELECT file FROM pragma_database_list",
    "load_extension": "SELECT load_extension('{folder}/evil.so')",
    "fts3_tokenizer": "SELECT fts3_tokenizer('simple')",
    "randomblob": "SELECT randomblob(1000000000)",
    "zeroblob": "SELECT hex(zeroblob(1000000000))",
    "printf": "SELECT printf('%.*c', 900000000, 'x')",
    "format": "SELECT length(format('%.*c', 900000000, 'x'))",
    "DELETE": "DELETE FROM messages",
    "DELETE RETURNING": "DELETE FROM messages RETURNING content",
    "UPDATE": "UPDATE sessions SET title = 'x'",
    "INSERT": "INSERT INTO session_ids VALUES ('x', 1)",
    "REPLACE": "REPLACE INTO session_ids VALUES ('s', 1)",
    "WITH INSERT": "WITH x AS (SELECT 1) INSERT INTO session_ids SELECT 'x', 1",
    "EXPLAIN DELETE": "EXPLAIN DELETE FROM messages",
    "CREATE TABLE": "CREATE TABLE x (a)",
    "CREATE TEMP TABLE": "CREATE TEMP TABLE x AS SELECT * FROM messages",
    "CREATE VIEW": "CREATE VIEW x AS SELECT 1",
    "CREATE TEMP VIEW": "CREATE TEMP VIEW messages AS SELECT 1",
    "CREATE INDEX": "CREATE INDEX x ON messages(role)",
    "CREATE TRIGGER": "CREATE TRIGGER x AFTER INSERT ON messages BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE": "CREATE VIRTUAL TABLE x USING fts4(a)",
    "ALTER": "ALTER TABLE messages ADD COLUMN x",
    "DROP TABLE": "DROP TABLE messages",
    "DROP TRIGGER": "DROP TRIGGER messages_no_update",
    "DROP VIEW": "DROP VIEW session_messages",
    "REINDEX": "REINDEX",
    "ANALYZE": "ANALYZE",
    "BEGIN": "BEGIN EXCLUSIVE",
    "COMMIT": "COMMIT",
    "SAVEPOINT": "SAVEPOINT x",
    "RELEASE": "RELEASE x",
    "two statements": "SELECT 1; DELETE FROM messages",
    "two lines": "SELECT 1; -- harmless\nDELETE FROM messages",
    "hidden tables": "SELECT name FROM sqlite_temp_schema",
}
"""Statements that would change something, see something else or make a value of any size.

Each is refused by name.
"""

NONSENSE = {
    "no statement": "",
    "a comment": "-- SELECT 1",
    "no SQL": "SELEC 1",
    "no such column": "SELECT nope FROM messages",
    "no such table": "SELECT * FROM nope",
    "a function of the shell that writes files": "SELECT writefile('{folder}/evil', 'x')",
    "a function of the shell that reads files": "SELECT readfile('/etc/passwd')",
    "a function of the shell that starts programs": "SELECT edit('x')",
    "a table of the shell": "SELECT * FROM generate_series(1, 1000000000)",
    "brackets": f"SELECT {'(' * 500}1{')' * 500}",
    "a deep expression": f"SELECT {'+'.join(['1'] * 500)}",
    "nested queries": f"SELECT * FROM {'(SELECT * FROM ' * 300}messages{')' * 300}",
    "many columns": f"SELECT {', '.join(['1'] * 500)}",
    "many terms": " UNION ALL ".join(["SELECT 1"] * 200),
    "a long text": f"SELECT '{'a' * 200_000}'",
    "a long pattern": f"SELECT '{'%a' * 1000}' LIKE '{'%a' * 1000}'",
    "a missing parameter": "SELECT ?",
    "NUL": "SELECT 'a\0b'",
    "a lone surrogate": "SELECT '\ud800'",
}
"""What is no query: a plain error, in one line."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store of four short messages."""
    target = tmp_path_factory.mktemp("console") / "chat.db"
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "text"},
        {"role": "user", "content": "bye"},
    ]
    with Store(target, durability="normal") as store:
        store.create_session("s", project_root="/p", now=10**12)
        store.append("s", messages, now=10**12)
    ask(target, "SELECT 1")  # makes the files that reading a closed store leaves beside it
    return target


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store of a message that is more than an answer holds."""
    target = tmp_path_factory.mktemp("console") / "large.db"
    with Store(target, durability="normal") as store:
        store.create_session("s")
        store.append("s", {"role": "user", "content": "w" * LARGE})
    return target


def ask(path: Path, sql: str, timeout: float = 60.0, **options: Any) -> QueryResult:
    """Ask with more time than any test needs."""
    return query(path, sql, timeout=timeout, **options)


def state(path: Path) -> tuple[list[str], str]:
    """The files of the folder and the digest of the store's.

    It is open nowhere, so it may be read.
    """
    return sorted(each.name for each in path.parent.iterdir()), hashlib.sha256(
        path.read_bytes()
    ).hexdigest()


@pytest.mark.parametrize("sql", ["CREATE TABLE x (a)", "DROP TABLE messages"])
def test_a_change_of_the_schema_is_called_so(path: Path, sql: str) -> None:
    """To SQLite it is a change of rows in a table of its own, which nobody has named."""
    with pytest.raises(QueryRefused, match="refused: a change of the schema; the console reads"):
        ask(path, sql)


# --- what people ask ------------------------------------------------------------------------------


def test_views_for_people(path: Path) -> None:
    """Columns come with their names, rows as tuples of plain values."""
    assert ask(
        path, "SELECT seq, role, tool_call_id FROM session_messages WHERE seq < 4"
    ) == QueryResult(
        ("seq", "role", "tool_call_id"),
        [(1, "user", None), (2, "assistant", None), (3, "tool", "c")],
        truncated=False,
    )


def test_a_moment_beyond_all_calendars_is_none(url: str) -> None:
    """One message with such a time, which anybody may send, spoils no view for the others."""
    with Store(url, durability="normal") as store:
        store.create_session("s")
        for moment in (0, 2**63 - 1, -(2**63)):
            store.append("s", {"role": "user", "content": "x", "timestamp": moment})
            store.append(
                "s", {"role": "tool", "tool_call_id": "c", "content": "x", "timestamp": moment}
            )
    times = [("1970-01-01T00:00:00.000Z",) * 2, (None, None), (None, None)]
    for view in (
        "session_messages WHERE role = 'user' ORDER BY seq",
        "tool_log ORDER BY seq",
        "turn_log ORDER BY turn",
    ):
        assert query(url, f"SELECT at, created_at FROM {view}").rows == times


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT tool_name, kind, call_seq FROM tool_log", [("read_file", "file_read", 2)]),
        ("SELECT path FROM file_log", [("a.py",)]),
        ("SELECT turn, first, last FROM turn_log", [(1, 1, 3), (2, 4, 4)]),
        ("SELECT count(*) FROM compaction_log", [(0,)]),
        ("SELECT name FROM sqlite_schema WHERE name = 'messages'", [("messages",)]),
        ("SELECT name FROM pragma_table_info('session_ids')", [("id",), ("tree_id",)]),
        ("SELECT value FROM json_each('[1, \"a\"]')", [(1,), ("a",)]),
        (
            "SELECT extra ->> 'x', json_extract('{\"a\": 2}', '$.a') FROM messages LIMIT 1",
            [(None, 2)],
        ),
        ("SELECT count(*) FROM (SELECT 1 UNION SELECT 2)", [(2,)]),
        (
            "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x LIMIT 3) SELECT count(*) FROM x",
            [(3,)],
        ),
        (
            "SELECT seq, row_number() OVER (ORDER BY seq DESC) FROM messages WHERE seq < 3",
            [(2, 1), (1, 2)],
        ),
        ("VALUES (1, 'é'), (2, NULL)", [(1, "é"), (2, None)]),
        (
            "SELECT 9e999, 1.5, x'00ff', cast(x'ff41' AS TEXT)",
            [("inf", 1.5, {"hex": "00ff"}, "\ufffdA")],
        ),
        ("SELECT /* ; DROP TABLE messages */ 1; -- no more", [(1,)]),
        ("SELECT strftime('%Y', 0, 'unixepoch'), upper('a') LIKE 'A'", [("1970", 1)]),
    ],
)
def test_what_may_be_asked(path: Path, sql: str, rows: list[tuple[Any, ...]]) -> None:
    """Views, the schema, JSON, windows, recursion and times all work."""
    assert sorted(ask(path, sql).rows, key=repr) == sorted(rows, key=repr)


@pytest.mark.parametrize(
    "sql", ["EXPLAIN SELECT 1", "EXPLAIN QUERY PLAN SELECT 1", "PRAGMA table_info(messages)"]
)
def test_how_a_query_runs(path: Path, sql: str) -> None:
    """Plans and the schema may be looked at."""
    assert ask(path, sql).rows


@pytest.mark.parametrize(
    ("parameters", "sql"), [((1, "é", None), "SELECT ?, ?, ?"), ({"a": 1.5}, "SELECT :a")]
)
def test_parameters(path: Path, parameters: Any, sql: str) -> None:
    """Parameters are bound, by place or by name."""
    assert ask(path, sql, parameters=parameters).rows == [
        tuple(parameters.values() if isinstance(parameters, dict) else parameters)
    ]


@pytest.mark.parametrize(("limit", "more"), [(0, True), (2, True), (4, False), (5, False)])
def test_rows_end_at_the_limit(path: Path, limit: int, more: bool) -> None:
    """The answer says whether rows were left out."""
    found = ask(path, "SELECT seq FROM messages", limit=limit)
    assert (len(found.rows), found.truncated) == (min(limit, 4), more)


@pytest.mark.slow
def test_rows_end_at_the_size(large: Path) -> None:
    """An answer of more than 16 MiB is cut between two rows."""
    sql = "SELECT substr(content, 1, 6000000) FROM messages, (SELECT 1 UNION SELECT 2 UNION SELECT 3) WHERE seq = 1"
    found = ask(large, sql)
    assert (len(found.rows), found.truncated) == (2, True)


def test_a_large_message_is_read_in_parts(large: Path) -> None:
    """A content too large for an answer is refused with advice, and the advice works."""
    with pytest.raises(QueryRefused, match="17,825,792 bytes; take a part of it with substr"):
        ask(large, "SELECT content FROM messages")
    assert ask(
        large, "SELECT length(content), substr(content, -2) FROM messages WHERE seq = 1"
    ).rows == [(LARGE, "ww")]


@pytest.mark.slow
def test_the_largest_message_fits(tmp_path: Path) -> None:
    """A message as large as a store takes can be measured and searched within the caps."""
    with Store(tmp_path / "chat.db", durability="normal") as store:
        store.create_session("s")
        store.append("s", {"role": "user", "content": "w" * (SIZE_LIMIT - 8)})
    sql = "SELECT length(content), upper(content) LIKE '%X%' FROM messages"
    assert ask(tmp_path / "chat.db", sql).rows == [(SIZE_LIMIT - 8, 0)]


def test_a_writer_goes_on(tmp_path: Path) -> None:
    """What is committed is seen at once, beside a writer that has the store open and a write begun."""
    with Store(tmp_path / "chat.db", durability="normal") as store:
        store.create_session("s")
        for head in range(1, 4):
            store.append("s", {"role": "user", "content": "x"})
            with store.database.writing() as connection:
                connection.exec_driver_sql("UPDATE sessions SET head = 99")
                assert ask(tmp_path / "chat.db", "SELECT head FROM sessions").rows == [(head,)]
                connection.exec_driver_sql("UPDATE sessions SET head = ?", (head,))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.sampled(12)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused(path: Path, attack: str) -> None:
    """Nothing changes, nothing appears beside the store, and the store can be asked the next thing."""
    before = state(path)
    with pytest.raises(QueryRefused, match=r"the (console|function)|more than one statement"):
        ask(path, ATTACKS[attack].replace("{folder}", str(path.parent)))
    assert state(path) == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mistake", NONSENSE)
def test_nonsense_is_an_error_in_one_line(path: Path, mistake: str) -> None:
    """What SQLite does not understand is told in its words, not as a refusal."""
    with pytest.raises(InvalidValue) as caught:
        ask(path, NONSENSE[mistake].replace("{folder}", str(path.parent)))
    assert "\n" not in str(caught.value)
    assert not (path.parent / "evil").exists()


@pytest.fixture(scope="module")
def bombed(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the store.

    Opened for writing, it would take away the files beside it that other tests look at.
    """
    return Path(shutil.copy(path, tmp_path_factory.mktemp("bombed")))


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.sampled(7)
def test_bombs_are_stopped(bombed: Path, bomb: str) -> None:
    """Each ends by the deadline or at a cap, as a refusal; the store is what it was."""
    with pytest.raises(QueryRefused):
        query(bombed, BOMBS[bomb], timeout=0.1, limit=10)
    with Store(bombed) as store:
        assert store.verify() == []


def test_the_authorizer_allows_nothing_by_itself() -> None:
    """Of all actions that SQLite asks about, only reading ones pass, and those only for what is
    listed.
    """
    guard = console.Guard(0.0)
    allowed = {
        name
        for code, name in console.ACTIONS.items()
        if guard.authorize(code, "x", "y", None, None) == 0
    }
    assert allowed == {"SELECT", "RECURSIVE"}
    assert guard.authorize(12345, "x", None, None, None) == sqlite3.SQLITE_DENY


def test_memory_is_capped() -> None:
    """Beyond the address space that the console leaves itself there is nothing to get."""
    code = (
        f"import sys; sys.path.insert(0, {str(inspection.CONSOLE_FILE.parent)!r}); import console; console.confine_process(1)\n"
        "try: bytearray(console.ADDRESS_SPACE)\n"
        "except MemoryError: print('capped')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "capped\n"


# --- the child ------------------------------------------------------------------------------------


def probe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    """Put another program in the place of the console."""
    (tmp_path / "probe.py").write_text(code)
    monkeypatch.setattr(inspection, "CONSOLE_FILE", tmp_path / "probe.py")


def test_the_child_is_given_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No environment, no open files but its pipes, no folder, no packages."""
    monkeypatch.setenv("SECRET", "x")
    probe(
        monkeypatch,
        tmp_path,
        "import json, os, sys\n"
        "descriptors = [number for number in range(3, 256) if os.path.exists(f'/proc/self/fd/{number}')]\n"
        "row = ['SECRET' in os.environ, descriptors, os.getcwd(), sys.flags.isolated, sys.flags.no_site]\n"
        "print(json.dumps({'columns': ['x'] * 5}), json.dumps(row), json.dumps({'end': False}), sep='\\n')\n",
    )
    with open(path.parent / "open", "wb") as file:
        os.set_inheritable(file.fileno(), True)
        found = ask(path, "SELECT 1")
    (path.parent / "open").unlink()
    assert found.rows == [(False, [], os.sep, 1, 1)]


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "import os; os.abort()",
        "import os; os._exit(3)",
        "print('nonsense')",
        "print('[1]')",
        "print('7')",
        "print('{}')",
    ],
)
def test_a_child_that_does_not_answer(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Whatever ends the child, or keeps it from ending, is a refusal to the caller."""
    probe(monkeypatch, tmp_path, code)
    monkeypatch.setattr(inspection, "CHILD_GRACE", 0.2)
    with pytest.raises(QueryRefused):
        query(path, "SELECT 1", timeout=0.1)


def test_no_child(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that cannot be started is told."""
    monkeypatch.setattr(sys, "executable", str(path.parent / "none"))
    with pytest.raises(StoreError, match="the console cannot be started"):
        ask(path, "SELECT 1")


def test_the_child_stands_alone(path: Path) -> None:
    """The console runs by its path without any package, so without what the store imports."""
    request = {
        "uri": f"{path.as_uri()}?mode=ro",
        "sql": "SELECT 1",
        "parameters": [],
        "limit": 1,
        "timeout": 20,
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(inspection.CONSOLE_FILE)],
        input=json.dumps(request).encode(),
        capture_output=True,
        check=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"columns": ["1"]},
        [1],
        {"end": False},
    ]


# --- what is given --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"limit": -1},
        {"limit": 1.5},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"timeout": 1e9},
        {"timeout": "1"},
        {"parameters": "a"},
        {"parameters": 1},
        {"parameters": [b"x"]},
        {"parameters": [2**63]},
        {"parameters": ["\ud800"]},
        {"parameters": [float("inf")]},
        {"parameters": {"a": []}},
    ],
)
def test_options_are_checked(path: Path, options: dict[str, Any]) -> None:
    """An option that cannot be meant is an error that says what may be given."""
    with pytest.raises(InvalidValue, match=r"limit must|timeout must|parameter"):
        query(path, "SELECT 1", **options)


def test_no_such_file(tmp_path: Path) -> None:
    """Asking makes no store."""
    with pytest.raises(InvalidValue, match="there is no file"):
        ask(tmp_path / "none.db", "SELECT 1")
    assert list(tmp_path.iterdir()) == []


def test_no_database(tmp_path: Path) -> None:
    """A file of another kind is named as such."""
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(NotAStore):
        ask(tmp_path / "notes.txt", "SELECT 1")


def test_odd_names(tmp_path: Path) -> None:
    """A path is a path, whatever a URI would make of its characters."""
    target = tmp_path / "a ?mode=rw&%41#é.db"
    with Store(target, durability="normal") as store:
        store.create_session("s")
    assert ask(target, "SELECT id FROM sessions").rows == [("s",)]


# --- PostgreSQL -----------------------------------------------------------------------------------

on_a_server = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"),
    reason="no server: set CONVOSTORE_TEST_URL to the URL of one",
)


@on_a_server
def test_a_server_answers(url: str) -> None:
    """Rows are plain values, parameters are the driver's, and the limit holds."""
    with Store(url) as store:
        store.create_session("s", now=10**12)
        store.append("s", [{"role": "user", "content": "50 %"}] * 3, now=10**12)
    assert query(
        url, "SELECT seq FROM session_messages WHERE content LIKE '%\\%'", limit=2
    ) == QueryResult(("seq",), [(1,), (2,)], truncated=True)
    assert query(url, "SELECT %s::int, 1.5::numeric", parameters=(7,)).rows == [(7, "1.5")]
    assert query(url, "SELECT digest FROM messages LIMIT 1").rows[0][0].keys() == {"hex"}


@on_a_server
def test_the_rows_of_a_server_end_at_the_size(url: str) -> None:
    """At 16 MiB, as a file's do; a single row beyond that is refused."""
    Store(url).close()
    found = query(url, "SELECT repeat('x', 1000000) FROM generate_series(1, 100)", timeout=60)
    assert (len(found.rows), found.truncated) == (16, True)
    with pytest.raises(QueryRefused, match="substr"):
        query(url, "SELECT repeat('x', 17000000)", timeout=60)


@on_a_server
@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT pg_sleep(10)", QueryRefused),
        ("SELECT * FROM generate_series(1, 1000000000)", QueryRefused),
        ("SELECT set_config('statement_timeout', '0', true), pg_sleep(10)", QueryRefused),
        (
            "SELECT set_config('statement_timeout', '0', true), pg_sleep(n / 20) FROM generate_series(1, 99) n",
            QueryRefused,
        ),
        ("SELECT pg_sleep(0.01) FROM generate_series(1, 1000)", QueryRefused),
        ("SELECT set_config('transaction_read_only', 'off', false)", QueryRefused),
        ("WITH x AS (DELETE FROM messages RETURNING 1) SELECT * FROM x", QueryRefused),
        ("DELETE FROM messages", InvalidValue),
        ("SELECT 1; DROP TABLE messages", InvalidValue),
        ("COMMIT", InvalidValue),
        ("SELEC", InvalidValue),
        ("", InvalidValue),
    ],
)
def test_a_server_refuses(url: str, sql: str, error: type[StoreError]) -> None:
    """Nothing but a SELECT is taken, and that only for so long."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", {"role": "user", "content": "x"})
        with pytest.raises(error):
            query(url, sql, timeout=0.2)
        assert len(store.messages("s")) == 1
