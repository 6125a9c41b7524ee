"""Verification.

Silent about every healthy store, however odd, and never silent about a damaged one.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from store import Store
from store.database.schema import METADATA
from store.errors import NothingToUndo, StoreError
from store.inspection import integrity, line_checks
from store.records import Finding

ROUNDS = 150
IDS = ("call_1", "call_2", "", "terminal:0")


def call(
    call_id: str, name: str = "read_file", arguments: object = '{"path": "/p/a.py"}'
) -> dict[str, Any]:
    """A tool call of the usual shape."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def odd_message(chance: random.Random, number: int) -> dict[str, Any]:
    """One of the kinds of messages that real conversations have.

    Ids repeat, results come late or without a call.
    """
    kinds: list[dict[str, Any]] = [
        {"role": "user", "content": "wie 你好 😀" * chance.randint(1, 400)},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call(chance.choice(IDS)) for _ in range(3)],
        },
        {
            "role": "assistant",
            "tool_calls": [call(chance.choice(IDS), "bash", {"path": "x"}), "odd", {"function": 1}],
        },
        {
            "role": "tool",
            "tool_call_id": chance.choice(IDS),
            "content": '{"exitCode": 1}',
            "timestamp": 5,
        },
        {"role": "tool", "tool_call_ids": [chance.choice(IDS)], "content": {"a": [1]}},
        {"role": "tool", "content": "Error: \0", "timestamp": 2**70, "name": "grep"},
        {
            "role": "system",
            "content": "\ud800",
            "id": f"m{number}",
            "messageStatus": "error",
            "x": [1.5],
        },
        {"role": "user"},
    ]
    return chance.choice(kinds)


def messy(store: Store, seed: int, rounds: int = ROUNDS) -> None:
    """Fill a store with sessions that are appended to, forked, rewound, undone and erased in no
    order.
    """
    chance = random.Random(seed)
    living = ["s0"]
    store.create_session("s0", project_root="/p", now=10**12)
    for number in range(1, rounds):
        name = chance.choice(living)
        head = store.session(name).head
        deed = chance.random()
        if deed < 0.55:
            batch = [
                odd_message(chance, number * 10 + index) for index in range(chance.randint(1, 6))
            ]
            store.append(name, batch, now=10**12 + number)
        elif deed < 0.6:
            store.create_session(f"s{number}", fold_case=True, now=10**12 + number)
            living.append(f"s{number}")
        elif deed < 0.75:
            store.fork(name, chance.randint(0, head), f"s{number}", now=10**12 + number)
            living.append(f"s{number}")
        elif deed < 0.85:
            store.rewind(name, chance.randint(0, head), now=10**12 + number)
        elif deed < 0.93:
            undo(store, name)
        elif len(living) > 3:
            store.delete_session(name, now=10**12 + number)
            living.remove(name)


def undo(store: Store, name: str) -> None:
    """Undo a session's last rewind, if it has one."""
    with contextlib.suppress(NothingToUndo):
        store.undo_rewind(name, now=10**12)


def checks(findings: list[Finding]) -> set[str]:
    """The names of the tests that found something."""
    return {finding.check for finding in findings}


# --- healthy stores -------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_store_has_no_findings(url: str, seed: int) -> None:
    """Forks, rewinds, undone rewinds, erasures and odd messages are all in order, and looking
    changes nothing.
    """
    with Store(url, durability="normal") as store:
        assert store.verify() == []
        store.create_session("empty")
        assert store.verify() == []
        messy(store, seed)
        with store.database.reading() as connection:
            before = [connection.execute(table.select()).all() for table in METADATA.sorted_tables]
        assert store.verify() == []
        with store.database.reading() as connection:
            after = [connection.execute(table.select()).all() for table in METADATA.sorted_tables]
        assert before == after


@pytest.mark.sampled(3)
@pytest.mark.parametrize("run", [1, 2, 7])
@pytest.mark.slow
def test_facts_do_not_depend_on_batches(
    tmp_path: Path, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Derived one by one or many at once, the same follows."""
    monkeypatch.setattr(line_checks, "RUN_LENGTH", run)
    with Store(tmp_path / "chat.db", durability="normal") as store:
        messy(store, 9)
        assert store.verify() == []


def test_texts_are_read_as_before(tmp_path: Path) -> None:
    """The connection goes back into the pool as it was."""
    with Store(tmp_path / "chat.db") as store:
        store.create_session("s")
        store.append("s", {"role": "user", "content": "é"})
        store.verify()
        assert store.messages("s")[0].message["content"] == "é"


# --- a check that cannot run -----------------------------------------------------------------------


def fails(_: object) -> Iterator[Finding]:
    """Fail as a check of ours would with a mistake in it."""
    raise AttributeError("a mistake of ours")


def asks_for_nothing(connection: sqlalchemy.Connection) -> Iterator[Finding]:
    """Fail in the database, which then refuses all else in the transaction of a server."""
    connection.execute(sqlalchemy.text("SELECT * FROM no_such_table"))
    yield from ()


def test_a_check_that_cannot_run_says_so_and_the_others_go_on(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reason; what they find is found."""
    broken = (("mistakes", fails), ("tables", asks_for_nothing))
    monkeypatch.setattr(integrity, "CHECKS", (*broken, *integrity.CHECKS))
    with Store(url) as store:
        store.create_session("s", metadata={"a": 1})
        with store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE session_keys SET value = 'other'")
        found = {each.where: each for each in store.verify()}
    mistake = found["check of mistakes"]
    assert mistake.check == "unchecked"
    assert mistake.problem == "this check could not run: AttributeError: a mistake of ours"
    assert found["check of tables"].check == "integrity"
    assert "no_such_table" in found["check of tables"].problem
    assert found["session 's'"].problem == "its keys do not follow from its metadata"
    assert len(found) == 3


def test_a_mistake_in_a_check_of_lines_leaves_the_other_branches(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each branch and each table is named that could not be checked, with the error."""

    def breaks(*_: object) -> None:
        raise KeyError("a mistake of ours")

    with Store(url) as store:
        for name in ("s", "t"):
            store.create_session(name)
            store.append(name, {"role": "user", "content": "x"})
        monkeypatch.setattr(line_checks, "derive_results", breaks)
        found = store.verify()
    assert {(each.check, each.where) for each in found} == {
        ("unchecked", f"session '{name}', branch 1") for name in ("s", "t")
    }
    assert all("KeyError" in each.problem for each in found)


# --- damage by statements -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed, messy store, and at its end what every test below can rely on."""
    path = tmp_path_factory.mktemp("healthy") / "chat.db"
    with Store(path, durability="normal") as store:
        messy(store, 3, rounds=60)
        store.create_session("a", project_root="/p", now=10**12)
        batch: list[dict[str, Any]] = [
            {
                "role": "user",
                "content": "hi",
                "name": "n",
                "id": "m1",
                "timestamp": 7,
                "x": 1,
                "messageStatus": "s",
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call("c", arguments={"path": "/p/b.py"}), call("d")],
            },
            {"role": "tool", "tool_call_id": "c", "content": "text", "timestamp": 8},
            {"role": "tool", "tool_call_id": "d", "content": '{"exitCode": 0}'},
        ]
        store.append("a", batch, now=10**12)
        store.fork("a", 3, "b", now=10**12)
        store.append("b", batch[2:], now=10**12)
        store.rewind("b", 2, now=10**12)
        store.append("b", batch[2:], now=10**12)
        store.delete_session("a", now=10**12)
        assert store.verify() == []
    return path


@pytest.fixture
def damaged(healthy: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a copy that nothing protects: its triggers are put back when it is closed."""
    path = shutil.copy(healthy, tmp_path / "chat.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    triggers = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
    ).fetchall()
    connection.executescript(
        f"BEGIN; {' '.join(f'DROP TRIGGER {name};' for (name,) in triggers)} COMMIT"
    )
    connection.create_function("protect", 0, lambda: None)
    yield connection
    connection.close()


def found(damaged: sqlite3.Connection, healthy: Path, tmp_path: Path) -> list[Finding]:
    """Put the triggers back, close, open as a store, verify."""
    with sqlite3.connect(healthy) as whole:
        triggers = whole.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    damaged.executescript(f"BEGIN; {' '.join(f'{statement};' for (statement,) in triggers)} COMMIT")
    whole.close()
    damaged.close()
    with Store(tmp_path / "chat.db") as store:
        return store.verify()


A = "branch = 1 AND tree_id = (SELECT tree_id FROM session_ids WHERE id = 'b')"
"""The rows of the branch that an erased session left behind."""

CHANGES = {
    "digest": [
        f"UPDATE messages SET {change} WHERE {A} AND seq = {seq}"
        for seq, change in (
            (1, "content = 'ho'"),
            (1, "content = NULL"),
            (1, "content = CAST(x'ff' AS TEXT)"),
            (1, "content_form = 'json'"),
            (1, "role = 'system'"),
            (1, "name = 'm'"),
            (1, "status = NULL"),
            (1, "created_at = 8"),
            (1, "message_id = 'm2'"),
            (1, "extra = '{}'"),
            (1, "extra = NULL"),
            (1, "digest = x'00'"),
            (3, "tool_call_id = 'd'"),
            (3, "content = '{'"),
            (3, "extra = '{'"),
        )
    ]
    + [
        f"UPDATE tool_calls SET {change} WHERE {A} AND seq = 2 AND position = 0"
        for change in (
            "call_id = 'd'",
            "name = NULL",
            "arguments = '{}'",
            "arguments = '{'",
            "arguments_form = 'text'",
            "extra = '{}'",
            "extra = '='",
            "position = 2",
        )
    ]
    + [f"DELETE FROM tool_calls WHERE {A} AND position = 1"],
    "facts": [
        f"UPDATE tool_results SET {change} WHERE {A} AND seq = 3"
        for change in (
            "call_seq = 1",
            "call_position = NULL",
            "tool_name = 'x'",
            "at = 9",
            "status = 'x'",
            "exit_code = 0",
            "has_stderr = 1",
            "error_prefix = 1",
            "looks_terminal = 1",
            "length = 5",
            "size = 5",
            "paths_complete = 0",
        )
    ]
    + [
        f"UPDATE tool_result_paths SET {change} WHERE {A} AND seq = 3"
        for change in (
            "path = 'c.py'",
            "start_line = 1",
            "end_line = 1",
            "contiguous = 0",
            "mentions = 2",
        )
    ]
    + [
        f"DELETE FROM tool_result_paths WHERE {A}",
        f"DELETE FROM tool_results WHERE {A}",
        f"INSERT INTO tool_results SELECT tree_id, 1, 1, 1, 0, '', 1, '', 1, 0, 0, 0, 0, 0, 0 FROM branches WHERE {A}",
        f"INSERT INTO tool_result_paths SELECT tree_id, branch, seq, 'x', 1, 1, 1, 1 FROM tool_results WHERE {A}",
    ],
    "positions": [
        f"DELETE FROM messages WHERE {A} AND seq = 2",
        f"DELETE FROM messages WHERE {A} AND seq = 1",
        f"UPDATE messages SET seq = 9 WHERE {A} AND seq = 3",
        f"UPDATE messages SET seq = 4611686018427387904 WHERE {A} AND seq = 3",
        f"UPDATE messages SET seq = -1 WHERE {A} AND seq = 1",
        "UPDATE sessions SET head = head + 1 WHERE id = 'b'",
        "UPDATE sessions SET head = head - 1 WHERE id = 'b'",
        "UPDATE head_moves SET from_position = from_position + 1 WHERE session_id = 'b' AND move = 2",
        f"UPDATE erasures SET kept = kept - 1 WHERE {A}",
        "UPDATE branches SET session_id = NULL WHERE session_id = 'b' AND branch = 2",
    ],
    "heads": [
        "UPDATE sessions SET head_branch = 1 WHERE id = 'b'",
        "UPDATE sessions SET last_rewind = NULL WHERE id = 'b'",
        "UPDATE sessions SET last_rewind = 1 WHERE id = 'b'",
        "UPDATE sessions SET forked_at = 1 WHERE id = 'b'",
        "UPDATE sessions SET id = 'c' WHERE id = 'b'",
        "DELETE FROM sessions WHERE id = 'b'",
        "DELETE FROM session_ids WHERE id = 'b'",
        "UPDATE session_ids SET tree_id = 1 WHERE id = 'b'",
        "INSERT INTO session_ids VALUES ('nobody', 1)",
        "INSERT INTO session_keys VALUES (1, 'nobody', '\"a\"', '1')",
        (
            "INSERT INTO sessions "
            "(tree_id, id, head_branch, head, last_rewind, created_at, updated_at, fold_case) "
            f"SELECT tree_id, 'c', 1, 3, 0, 0, 0, 1 FROM branches WHERE {A}"
        ),
        f"UPDATE branches SET parent_position = 1 WHERE {A}",
        "UPDATE branches SET parent_branch = 3 WHERE session_id = 'b' AND branch = 2",
        "UPDATE branches SET parent_position = 7 WHERE session_id = 'b' AND branch = 2",
        "UPDATE branches SET session_id = 'nobody' WHERE session_id = 'b'",
        f"INSERT INTO branches SELECT tree_id, 99, 1, 1, NULL, 0, 0, NULL FROM branches WHERE {A}",
        "DELETE FROM head_moves WHERE session_id = 'b' AND move = 1",
        "DELETE FROM head_moves WHERE session_id = 'b' AND move = 2",
        "UPDATE head_moves SET kind = 'undo' WHERE session_id = 'b' AND move = 2",
        "UPDATE head_moves SET to_position = 9 WHERE session_id = 'b' AND move = 2",
        "UPDATE head_moves SET to_branch = 9 WHERE session_id = 'b' AND move = 1",
        "UPDATE head_moves SET earlier_rewind = 1 WHERE session_id = 'b' AND move = 2",
        "UPDATE head_moves SET session_id = 'nobody' WHERE session_id = 'b'",
        "UPDATE erasures SET finished_at = NULL, branch = 2",
        (
            "INSERT INTO summaries (tree_id, summary, branch, first, last, created_at, body) "
            f"SELECT tree_id, 1, 1, 1, 9, 0, '' FROM branches WHERE {A}"
        ),
    ],
    "orphan": [
        f"DELETE FROM messages WHERE {A} AND seq = 2",
        "DELETE FROM branches WHERE session_id = 'b'",
        "INSERT INTO token_counts VALUES (1, 1, 1, 'x', 1, NULL)",
    ],
    "schema": [
        "DROP VIEW session_messages",
        "DROP INDEX ix_messages_message_id_tree_id",
        "CREATE TRIGGER x AFTER INSERT ON messages BEGIN SELECT 1; END",
        "DROP VIEW turn_log; CREATE VIEW turn_log AS SELECT 1 AS turn",
    ],
}
"""Changes behind the store's back, by the check that has to see them."""


@pytest.mark.sampled(15)
@pytest.mark.parametrize(
    ("check", "change"), [(check, change) for check in CHANGES for change in CHANGES[check]]
)
def test_a_change_is_found(
    damaged: sqlite3.Connection, healthy: Path, tmp_path: Path, check: str, change: str
) -> None:
    """Each change by itself is seen by its check."""
    before = damaged.total_changes, damaged.execute("PRAGMA schema_version").fetchone()
    damaged.executescript(change)
    assert (damaged.total_changes, damaged.execute("PRAGMA schema_version").fetchone()) != before
    assert check in checks(found(damaged, healthy, tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER {}",
        "DROP TRIGGER {}; CREATE TRIGGER {} BEFORE UPDATE ON messages WHEN 0 BEGIN SELECT 1; END",
    ],
)
@pytest.mark.parametrize(
    "trigger", ["messages_no_update", "messages_no_delete", "tool_calls_no_replace"]
)
def test_an_unprotected_table_is_found(
    healthy: Path, tmp_path: Path, trigger: str, change: str
) -> None:
    """A trigger that is gone, or is no longer what it was, is named."""
    connection = sqlite3.connect(shutil.copy(healthy, tmp_path / "chat.db"), isolation_level=None)
    connection.executescript(change.replace("{}", trigger))
    connection.close()
    with Store(tmp_path / "chat.db") as store:
        (finding,) = store.verify()
    assert (finding.check, finding.where) == ("schema", f"trigger {trigger}")


def test_places_are_named(damaged: sqlite3.Connection, healthy: Path, tmp_path: Path) -> None:
    """A finding says which position of which branch of which session, and every changed row has
    one.
    """
    tree = damaged.execute("SELECT tree_id FROM session_ids WHERE id = 'b'").fetchone()[0]
    damaged.execute(f"UPDATE messages SET content = 'x' WHERE {A} AND seq IN (1, 3)")
    damaged.execute("UPDATE messages SET content = 'y' WHERE tree_id = ? AND branch = 3", (tree,))
    places = [
        finding.where for finding in found(damaged, healthy, tmp_path) if finding.check == "digest"
    ]
    assert places == [
        f"tree {tree}, branch 1, position 1",
        f"tree {tree}, branch 1, position 3",
        "session 'b', branch 3, position 3",
        "session 'b', branch 3, position 4",
    ]


def test_a_row_without_a_number_is_named_by_its_table(
    damaged: sqlite3.Connection, healthy: Path, tmp_path: Path
) -> None:
    """Rows that lie in their key have no other number."""
    damaged.execute("UPDATE branches SET parent_branch = 99 WHERE session_id = 'b' AND branch = 2")
    places = [each.where for each in found(damaged, healthy, tmp_path) if each.check == "orphan"]
    assert places == ["branches"]


def test_the_columns_that_differ_are_named(
    damaged: sqlite3.Connection, healthy: Path, tmp_path: Path
) -> None:
    """A derived row that does not follow says in what."""
    damaged.execute(f"UPDATE tool_results SET length = 9, exit_code = 9 WHERE {A} AND seq = 3")
    (finding,) = found(damaged, healthy, tmp_path)
    assert finding.where.endswith("branch 1, position 3, tool_results")
    assert finding.problem == "does not follow from the messages: exit_code, length"


def test_the_list_ends(
    damaged: sqlite3.Connection, healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is wrong everywhere gives a list that can be read, and says that it was cut."""
    monkeypatch.setattr(integrity, "MOST_FINDINGS", 5)
    damaged.execute("UPDATE messages SET content = 'x'")
    findings = found(damaged, healthy, tmp_path)
    assert len(findings) == 6
    assert findings[-1].check == "limit"


# --- damage of the file ---------------------------------------------------------------------------


def contents(path: Path) -> list[Any] | None:
    """Every raw row, but when and in what format it was stored; None where they cannot be read."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    columns = "tree_id, branch, seq, role, name, status, tool_call_id, created_at, message_id, digest, extra,"
    try:
        rows = connection.execute(
            f"SELECT {columns} content_form, content FROM messages ORDER BY 1, 2, 3"
        ).fetchall()
        return rows + connection.execute("SELECT * FROM tool_calls ORDER BY 1, 2, 3, 4").fetchall()
    except sqlite3.Error:
        return None
    finally:
        connection.close()


def verified(path: Path) -> list[Finding]:
    """Verify a damaged file; one that cannot even be opened has said so."""
    try:
        store = Store(path)
    except (StoreError, UnicodeDecodeError) as error:
        return [Finding("open", str(path), str(error))]
    with store:
        return store.verify()


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_file_gives_findings(healthy: Path, tmp_path: Path, seed: int) -> None:
    """A flipped bit or an empty sector, anywhere.

    If a raw row changed there is a finding, and never a crash.
    """
    chance = random.Random(seed)
    raw = bytearray(healthy.read_bytes())
    place = chance.randrange(len(raw))
    if seed % 2:
        raw[place] ^= 1 << chance.randrange(8)
    else:
        raw[place - place % 512 : place - place % 512 + 512] = bytes(512)
    (tmp_path / "chat.db").write_bytes(raw)
    findings = verified(tmp_path / "chat.db")
    assert findings or contents(tmp_path / "chat.db") == contents(healthy)


def test_damage_does_not_hide_what_is_behind_it(tmp_path: Path) -> None:
    """A page of one session that cannot be read is a finding, and the sessions behind it are read
    all the same.
    """
    path = tmp_path / "chat.db"
    with Store(path, durability="normal") as store:
        for name in "abcdef":
            store.create_session(name)
            store.append(name, [{"role": "user", "content": name * 700} for _ in range(60)])
    connection = sqlite3.connect(path, isolation_level=None)
    first = connection.execute("SELECT i.id FROM session_ids i ORDER BY tree_id").fetchone()[0]
    last = connection.execute("SELECT i.id FROM session_ids i ORDER BY tree_id DESC").fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.executescript("DROP TRIGGER messages_no_update")
    connection.execute(
        "UPDATE messages SET content = 'x' WHERE seq = 60 AND tree_id = (SELECT MAX(tree_id) FROM session_ids)"
    )
    connection.close()
    raw = bytearray(path.read_bytes())
    page = raw.index((first * 700).encode()) // size * size
    raw[page : page + 8] = b"\xff" * 8
    path.write_bytes(raw)
    findings = verified(path)
    assert any(
        finding.check == "integrity" and repr(first) in finding.where for finding in findings
    )
    assert any(finding.check == "digest" and repr(last) in finding.where for finding in findings)


# --- PostgreSQL -----------------------------------------------------------------------------------


@pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"),
    reason="no server: set CONVOSTORE_TEST_URL to the URL of one",
)
@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("schema", "DROP TRIGGER messages_no_change ON messages"),
        ("schema", "ALTER TABLE tool_calls DISABLE TRIGGER tool_calls_no_change"),
        ("schema", "DROP VIEW file_log"),
        (
            "digest",
            "ALTER TABLE messages DISABLE TRIGGER USER; UPDATE messages SET content = 'x' WHERE seq = 1",
        ),
        ("facts", "UPDATE tool_results SET length = length + 1"),
        ("positions", "UPDATE sessions SET head = head + 1"),
        ("heads", "DELETE FROM session_ids"),
    ],
)
def test_a_change_on_a_server_is_found(url: str, check: str, change: str) -> None:
    """The same checks hold there."""
    with Store(url) as store:
        messy(store, 3, rounds=60)
        engine = sqlalchemy.create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql(change)
        engine.dispose()
        assert check in checks(store.verify())
