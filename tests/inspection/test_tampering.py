"""What was changed behind the store's back: found in every column, refused where it can be, and
told as damage when it is read.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from conversations import NOW, Agent
from sqlalchemy import Column, Connection, Double, Integer, LargeBinary, Table

from store import Policy, Store
from store.database.schema import GUARDED_TABLES, METADATA
from store.errors import StoreError
from store.inspection import integrity

PROBE = Policy(
    terminal_keep=1,
    terminal_max_age=0,
    file_read_keep=1,
    clearing="batched",
    clear_min_freed=0,
    facts_chars=200,
)


class Undone(Exception):
    """Let a transaction come to nothing."""


def fill(store: Store, folder: Path) -> None:
    """Write rows into every table, by what the store does."""
    store.create_session("s", title="t", project_root="/p", metadata={"a": 1}, now=NOW)
    said = [message for seed in range(3) for message in Agent(seed).run()]
    store.append("s", [{"role": "user", "content": "x", "id": "m1", "name": "n"}, *said], now=NOW)
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA" * 30_000}
    store.append("s", {"role": "user", "content": [{"type": "image", "source": source}]}, now=NOW)
    store.compact_if_needed("s", PROBE, now=NOW)
    spent = {"model": "m", "provider": "p", "details": {"a": 1}, "cost": 1.5}
    store.record_usage("s", input=5, output=2, cached=1, written=1, **spent, now=NOW)
    store.record_usage("s", input=5, output=2, now=NOW)
    store.context("s", system="Be brief.", user_input="and?", record=True, now=NOW)
    store.view("s", record=True, now=NOW)
    store.record_usage("s", input=5, output=2, now=NOW)
    store.create_session("o", owner="ann", now=NOW)
    store.append("o", {"role": "user", "content": "x"}, now=NOW)
    for name in ("s", "o"):
        store.annotate(name, 1, "rating", {"stars": 5}, now=NOW)
    store.compact_if_needed("s", Policy.named("paged", clear_keep=10**6), now=NOW)
    store.fork("s", session_id="f", now=NOW)
    store.compact("s", Policy(keep_turns=1), lambda _: "A summary. " * 5, now=NOW)
    store.append("s", [*said, {"role": "user", "content": "and?"}], now=NOW)
    made = store.compact("s", Policy(keep_turns=1), lambda _: "Another. " * 5, now=NOW)
    assert made.outcome == "applied"
    store.undo_compaction("s", made.id or 0, now=NOW)
    store.hide("f", 1, 1, "They asked.", now=NOW)
    store.append("f", [*Agent(99).run(), {"role": "user", "content": "so?"}], now=NOW)
    store.rewind("f", to=3, now=NOW)
    store.undo_rewind("f", now=NOW)
    store.count_tokens("f", "quarter_of_length")
    store.redact("s", store.session("s").head, "asked for", by="ada", now=NOW)
    store.redact("f", store.session("f").head, "asked for", now=NOW)
    with suppress(KeyError), store.streaming("s", {"role": "assistant"}) as answer:
        answer.write("half")
        raise KeyError
    store.create_session("gone", now=NOW)
    store.append("gone", {"role": "user", "content": "x"}, now=NOW)
    store.set_origin("gone", "codex", None)
    for cost, model in ((None, None), (1.5, "gpt-5-2025-08-07")):
        store.record_usage("gone", input=9, output=1, cost=cost, model=model, now=NOW)
    store.delete_session("gone", now=NOW)
    if store.database.path:
        store.backup(folder / "copy.db", now=NOW)
    else:
        insert = METADATA.tables["copies"].insert()
        with store.database.writing() as connection:
            connection.execute(insert.values(copy=1, made_at=NOW, kind="backup", path="/a"))


@pytest.fixture(scope="module")
def full(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with rows in every table, and nothing wrong."""
    fill(store, tmp_path_factory.mktemp("copy"))
    if store.database.path:
        assert store.verify() == []
    return store


def unguarded(connection: Connection) -> None:
    """Let a transaction change what it likes."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        return
    connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
    names = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    for (name,) in connection.exec_driver_sql(names).fetchall():
        connection.exec_driver_sql(f"DROP TRIGGER {name}")


def other(value: Any, column: Column[Any]) -> Any:
    """Another value of a column's type."""
    if isinstance(column.type, LargeBinary):
        whole = value or b"\0"
        return bytes([whole[0] ^ 1]) + whole[1:]
    if isinstance(column.type, Integer | Double):
        return 1 if value is None else value + 1_000_003
    if column.name == "words":
        return f"{value} 'x'"  # a list of words on a server
    return "x" if value is None else f"{value}x"


def change(connection: Connection, table: Table, column: Column[Any], row: Any) -> None:
    """Change one value of a row."""
    place = [key == row[key.name] for key in table.primary_key]
    value = other(row[column.name], column)
    done = connection.execute(table.update().where(*place).values({column.name: value}))
    assert done.rowcount == 1


UNCHANGING = [
    table
    for table in METADATA.sorted_tables
    if not all(column.info.get("changes") for column in table.columns)
]
"""The tables with columns that never change after a row was written."""


def found_after(store: Store, work: Callable[[Connection], None]) -> set[str]:
    """The checks that find something in a store when work was done on it, which is then undone."""
    found: set[str] = set()
    with suppress(Undone), store.database.writing() as connection:
        connection.begin()
        unguarded(connection)
        work(connection)
        found = {each.check for each in integrity.verify(connection)} - {"schema"}
        raise Undone
    return found


@pytest.mark.sampled(12)
@pytest.mark.parametrize("table", UNCHANGING, ids=lambda table: table.name)
def test_a_change_of_any_column_is_found(full: Store, table: Table) -> None:
    """Of every column that is not marked as changing, in a row where it holds something and in one
    where it does not.
    """
    if table.name == "ancestors" and full.database.path:
        pytest.skip("only a server has rows of ancestors")
    with full.database.reading() as connection:
        rows = connection.execute(table.select()).mappings().all()
    assert rows, f"the test's store has no row in {table.name}"
    assert found_after(full, lambda _: None) <= {"seal"}
    missed = [
        (column.name, row[column.name])
        for column in table.columns
        if not column.info.get("changes")
        for row in samples(rows, column.name)
        if not found_after(full, lambda to: change(to, table, column, row))  # noqa: B023
    ]
    assert missed == []


FITS = {
    "branches.session_id",
    "branches.records_seen",
    "head_moves.source_record",
    "session_keys.value",
    "sessions.head_branch",
    "sessions.head",
    "sessions.last_rewind",
    "sessions.metadata",
    "sessions.project_root",
    "tool_kinds.kind",
}
"""What may change, but has to fit other rows or the words of a list. All else may be anything."""


@pytest.mark.slow
def test_what_may_change_has_to_fit(full: Store) -> None:
    """Neither more nor fewer columns than the page on reliability says."""
    found = set()
    for table in METADATA.sorted_tables:
        with full.database.reading() as connection:
            rows = connection.execute(table.select()).mappings().all()
        for column in table.columns:
            if column.info.get("changes") and any(
                found_after(full, lambda to: change(to, table, column, row)) - {"seal"}  # noqa: B023
                for row in samples(rows, column.name)
            ):
                found.add(f"{table.name}.{column.name}")
    assert found == FITS


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE sessions SET head = head - 1 WHERE id = 's'", "where no move went to"),
        ("UPDATE sessions SET title = 'x', archived = 1 - archived, revision = 'x'", ""),
        ("UPDATE branches SET records_seen = 99 WHERE branch = 1", "knows of compaction 99"),
        ("UPDATE head_moves SET source_record = 99 WHERE move = 1", "knows of compaction 99"),
        ("UPDATE erasures SET finished_at = NULL, purged_at = 1", "purged, but not as ended"),
    ],
)
def test_what_has_to_fit_is_told(full: Store, statement: str, told: str) -> None:
    """A head that another may have had, a record that there never was; a title may be anything."""
    findings: list[str] = []

    def work(connection: Connection) -> None:
        connection.exec_driver_sql(statement)
        checked = (each for each in integrity.verify(connection) if each.check == "heads")
        findings.extend(each.problem for each in checked)

    found_after(full, work)
    assert any(told in each for each in findings) if told else not findings


def samples(rows: Any, name: str) -> list[Any]:
    """A row in which a column holds something, and one in which it does not, if there are."""
    with_value = [row for row in rows if row[name] is not None]
    without = [row for row in rows if row[name] is None]
    return [*with_value[-1:], *without[-1:]]


@pytest.mark.parametrize(
    ("table", "column"),
    [("summaries", "body"), ("compaction_records", "hidden_last"), ("messages", "stored_at")],
)
def test_what_a_model_reads_is_held(full: Store, table: str, column: str) -> None:
    """A text nobody wrote, another range, another time: each is named with its row."""
    found = METADATA.tables[table]
    with full.database.reading() as connection:
        row = connection.execute(found.select()).mappings().all()[-1]
    named = {"messages": "digest"}.get(table, "seal")
    done = found_after(full, lambda to: change(to, found, found.c[column], row))
    assert named in done


def test_what_an_earlier_release_stored_is_not_taken_for_damage(
    full: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Its digests are of version 1, and hold all but when it was stored; the log says so."""
    from store.messages import prepare_message

    message = {"role": "user", "content": "of old"}
    session = full.create_session(now=NOW).id
    full.append(session, message, now=NOW)
    told: list[set[str]] = []

    def work(connection: Connection) -> None:
        table = METADATA.tables["messages"]
        of_old = table.c.content == "of old"
        old = table.update().where(of_old).values(digest=prepare_message(message).digest)
        connection.execute(old)
        told.append({each.check for each in integrity.examine_store(connection)})

    with caplog.at_level("INFO", "store"):
        assert found_after(full, work) <= {"seal"}
    assert "older" in told[0]
    assert any("1 messages have digests of version 1" in line for line in caplog.messages)


# --- what the database refuses --------------------------------------------------------------------

TEXT = {
    "messages": "extra",
    "tool_calls": "extra",
    "summaries": "body",
    "compaction_records": "error",
}
KEYS = {"summaries": "tree_id, summary", "compaction_records": "tree_id, compaction"}


@pytest.mark.parametrize("table", [name for name in GUARDED_TABLES if name in KEYS])
def test_what_compactions_wrote_refuses_changes(full: Store, table: str) -> None:
    """On every engine, by whatever statement."""
    upsert = f"INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT ({KEYS[table]})"
    attacks = [
        f"UPDATE {table} SET {TEXT[table]} = 'never said'",
        f"UPDATE {table} SET tree_id = tree_id",
        f"DELETE FROM {table}",
        f"{upsert} DO UPDATE SET {TEXT[table]} = 'never said'",
    ]
    attacks += (
        [f"TRUNCATE {table} CASCADE"]
        if full.database.path is None
        else [f"REPLACE INTO {table} SELECT * FROM {table}", f"UPDATE {table} SET rowid = 99"]
    )
    for attack in attacks:
        with (
            pytest.raises(StoreError, match=r"never change|go only|never replaced"),
            full.database.writing() as connection,
        ):
            connection.exec_driver_sql(attack)


@pytest.mark.sqlite_only
def test_a_running_record_replaces_no_other(full: Store) -> None:
    """What may still change may not be used to remove what may not."""
    path = full.database.path
    assert path
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        copied = "compaction, branch, head, reason, outcome, created_at, session_id, kind"
        connection.execute(
            f"INSERT INTO compaction_records (tree_id, {copied}) SELECT tree_id, 99, branch, head,"
            " reason, 'running', created_at, 'another', kind FROM compaction_records LIMIT 1"
        )
        with pytest.raises(sqlite3.IntegrityError, match="never change"):
            connection.execute(
                "UPDATE OR REPLACE compaction_records SET compaction = 1 WHERE compaction = 99"
            )
        connection.execute("ROLLBACK")


# --- what is read of a damaged store --------------------------------------------------------------

VALUES = ["", "{", "null", "[]", "[[1]]", '{"a": 1}', "x", "=", "=x", "applied", "running", "tool"]
NUMBERS = [-1, 0, 1, 7, 2**62, -(2**62)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store, full."""
    folder = tmp_path_factory.mktemp("full")
    with Store(folder / "chat.db", durability="normal") as store:
        fill(store, folder)
    return folder / "chat.db"


def damage(path: Path, chance: random.Random) -> None:
    """Write values that no store writes, into a few columns of a few rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        names = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        for (name,) in connection.execute(names).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for _ in range(chance.randint(1, 3)):
            table = chance.choice(METADATA.sorted_tables)
            column = chance.choice(list(table.columns))
            value: Any = chance.choice([None, *NUMBERS])
            if isinstance(column.type, LargeBinary):
                value = b"x"
            elif not isinstance(column.type, Integer):
                value = chance.choice([None, *VALUES])
            some = chance.choice(["1", "random() % 3 = 0", "random() % 20 = 0"])
            with suppress(sqlite3.Error):  # a column that has to hold something, or something else
                connection.execute(
                    f"UPDATE {table.name} SET {column.name} = ? WHERE {some}", [value]
                )


def asked(store: Store) -> Iterator[Callable[[], object]]:
    """Everything that a host asks of a store."""
    for name in ("s", "f"):
        yield from (
            lambda name=name: store.session(name),
            lambda name=name: store.messages(name),
            lambda name=name: store.view(name, PROBE, now=NOW),
            lambda name=name: store.view(name, Policy.named("turns"), now=NOW),
            lambda name=name: store.replaced(name, PROBE, now=NOW),
            lambda name=name: store.context(name, "be kind", now=NOW),
            lambda name=name: store.check(name, PROBE, now=NOW),
            lambda name=name: store.plan_compaction(name, PROBE, now=NOW),
            lambda name=name: store.plan_clearing(name, Policy.named("agent"), now=NOW),
            lambda name=name: store.hidden(name),
            lambda name=name: store.compactions(name),
            lambda name=name: store.head_moves(name),
            lambda name=name: store.usages(name),
            lambda name=name: store.annotations(name),
            lambda name=name: store.usage_totals(name),
            lambda name=name: store.count_tokens(name, "quarter_of_length"),
            lambda name=name: store.append(name, {"role": "user", "content": "go"}, now=NOW),
            lambda name=name: store.compact(name, Policy(keep_turns=1), lambda _: "x", now=NOW),
            lambda name=name: store.fork(name, 3),
            lambda name=name: store.rewind(name, 2),
            lambda name=name: store.undo_rewind(name),
            lambda name=name: store.delete_session(name),
        )
    yield from (store.usages, store.annotations)
    yield from (store.sessions, store.erasures, store.copies, store.verify)


TELLING = (11, 25, 32, 38, 53, 61)
"""Seeds whose damage makes Python itself stumble."""
OTHERS = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(200) if seed not in TELLING]


@pytest.mark.sampled(3)
@pytest.mark.sqlite_only
@pytest.mark.parametrize("seed", [*TELLING, *OTHERS])
def test_a_damaged_row_is_told_as_damage(file: Path, tmp_path: Path, seed: int) -> None:
    """Whatever is asked, and whatever it meets: an answer, or an error of the store's own."""
    path = Path(shutil.copy(file, tmp_path / "chat.db"))
    damage(path, random.Random(seed))
    with suppress(StoreError), Store(path, durability="normal") as store:
        for ask in asked(store):
            with suppress(StoreError):
                ask()


@pytest.mark.sqlite_only
def test_a_damaged_range_is_no_longer_than_its_line(file: Path, tmp_path: Path) -> None:
    """A record that hides 2⁶² messages fills no memory."""
    path = Path(shutil.copy(file, tmp_path / "chat.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER compaction_records_no_update")
        connection.execute(
            "UPDATE compaction_records SET hidden_last = ? WHERE hidden_last > 0", [2**62]
        )
    with Store(path) as store:
        head = store.session("s").head
        hidden = store.hidden("s")
        assert hidden
        assert max(hidden) <= head


@pytest.mark.sqlite_only
def test_damage_says_what_to_do(file: Path, tmp_path: Path) -> None:
    """The cause is kept for those who mend."""
    path = Path(shutil.copy(file, tmp_path / "chat.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER messages_no_update")
        connection.execute("UPDATE messages SET content_form = 'json', content = '{'")
    with Store(path) as store:
        with pytest.raises(StoreError, match=r"damaged; run `convostore verify`") as caught:
            store.messages("s")
        assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.sqlite_only
def test_what_is_explained_later_is_told_as_damage(file: Path, tmp_path: Path) -> None:
    """A view says so when it is asked why, and requests of other sessions do not fail for it."""
    path = Path(shutil.copy(file, tmp_path / "chat.db"))
    with closing(sqlite3.connect(path)) as connection:
        of_session = "tree_id = (SELECT tree_id FROM sessions WHERE id = 's')"
        for table in ("message_facts", "token_counts"):
            connection.execute(f"DELETE FROM {table} WHERE {of_session} AND seq = 2")
        connection.commit()
    with Store(path, durability="normal") as store:
        assert store.context("s", at=3, now=NOW).messages
        assert store.context("o", now=NOW).messages
        with pytest.raises(StoreError, match="convostore verify"):
            _ = store.view("s", at=3, now=NOW).entries
