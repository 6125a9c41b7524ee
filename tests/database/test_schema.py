"""Rules of the tables that cannot be mended later, and the raw rows that the database itself
refuses to change.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Column, Integer, LargeBinary, Table, UniqueConstraint
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from store import Store
from store.database.schema import GUARDED_TABLES, METADATA, RAW_TABLES, TREE_TABLES

TABLES = METADATA.sorted_tables
DIALECTS = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}

LOOK_UPS = {"session_ids", "tool_kinds", "copies", "prices", "settings"}
"""The tables that belong to no tree.

The one global look-up, what is the same for everybody, and what is known of the whole store.
"""

WIDE = {
    "content",
    "arguments",
    "extra",
    "body",
    "title",
    "key_actions",
    "file_changes",
    "policy",
    "error",
    "metadata",
}
"""Texts of any length.

SQLite reads a row from its beginning, so whatever is read without them stands before them.
"""

every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
tree_table = pytest.mark.parametrize("table", TREE_TABLES, ids=lambda table: table.name)


def names(columns: Any) -> list[str]:
    """Return the names of columns in order."""
    return [column.name for column in columns]


def create_text(table: Table, dialect: str) -> str:
    """Return the statement that makes a table."""
    return str(CreateTable(table).compile(dialect=DIALECTS[dialect]))


def test_all_but_the_look_ups_belong_to_a_tree() -> None:
    """A new table is a tree's, or is argued for here."""
    assert {table.name for table in TABLES} - {table.name for table in TREE_TABLES} == LOOK_UPS


@tree_table
def test_keys_begin_with_the_tree(table: Table) -> None:
    """Primary, unique and foreign keys begin with tree_id, so a tree can live on any machine (rules
    1 and 2).
    """
    assert names(table.columns)[0] == "tree_id"
    assert names(table.primary_key.columns)[0] == "tree_id"
    unique = [each for each in table.constraints if isinstance(each, UniqueConstraint)]
    unique += [index for index in table.indexes if index.unique]
    assert [each for each in unique if names(each.columns)[0] != "tree_id"] == []
    for key in table.foreign_key_constraints:
        assert names(key.columns)[0] == "tree_id"
        assert key.elements[0].column.name == "tree_id"
        assert key.referred_table in TREE_TABLES


@pytest.mark.parametrize("name", sorted(LOOK_UPS))
def test_look_ups_have_no_ties(name: str) -> None:
    """What belongs to no tree is bound to none by a constraint (rules 2 and 9)."""
    assert not METADATA.tables[name].foreign_key_constraints
    assert [
        key.parent
        for table in TREE_TABLES
        for key in table.foreign_keys
        if key.column.table.name == name
    ] == []


@every_table
def test_numbers_are_given_by_the_client(table: Table) -> None:
    """No value is made by the database: no autoincrement, sequence or identity.

    A default is a constant at most.
    """
    made = [
        column
        for column in table.columns
        if column.default is not None
        or column.identity is not None
        or column.computed is not None
        or (column.primary_key and column.autoincrement is not False)
    ]
    assert made == []
    for dialect in DIALECTS:
        text = create_text(table, dialect).upper()
        assert not [
            word for word in ("AUTOINCREMENT", "SERIAL", "IDENTITY", "NEXTVAL") if word in text
        ]


@every_table
def test_nothing_cascades(table: Table) -> None:
    """Rows go by statements that name them, never in the wake of others (rule 5)."""
    assert [
        key
        for key in table.foreign_key_constraints
        if key.ondelete or key.onupdate or key.deferrable
    ] == []


@pytest.mark.sqlite_only
def test_tables_are_strict(plain: sqlite3.Connection) -> None:
    """SQLite keeps to the declared types too."""
    tables = plain.execute("SELECT name, strict FROM pragma_table_list WHERE type = 'table'")
    strict = dict(tables.fetchall())
    assert {table.name for table in TABLES if not strict[table.name]} == set()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_column_has_one_type_everywhere(dialect: str) -> None:
    """tree_id, branch, seq and session_id are of one type in all tables and in all keys (rule 10)."""
    types: dict[str, set[str]] = {}
    for table in TABLES:
        for column in table.columns:
            types.setdefault(column.name, set()).add(column.type.compile(DIALECTS[dialect]))
    shared = {
        name: types[name]
        for name in ("tree_id", "branch", "seq", "session_id", "created_at", "digest")
    }
    assert {name: found for name, found in shared.items() if len(found) > 1} == {}
    for table in TABLES:
        for key in table.foreign_keys:
            assert key.parent.type.compile(DIALECTS[dialect]) == key.column.type.compile(
                DIALECTS[dialect]
            )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_numbers_have_64_bits(dialect: str) -> None:
    """A tree id has 63 random bits, and moments are ms: both need a wide column on every engine."""
    wide = {"sqlite": "INTEGER", "postgresql": "BIGINT"}[dialect]
    for table in TABLES:
        for name in {"tree_id", "branch", "seq", "created_at", "stored_at", "at"} & {
            *names(table.columns)
        }:
            assert table.columns[name].type.compile(DIALECTS[dialect]) == wide


ADDED = {
    "compaction_records": {"undoes", "lease_until"},
    "sessions": {"archived", "updated_second"},
}
"""What a later revision added stands at the end of a table, where the database puts it."""


@every_table
def test_narrow_columns_stand_first(table: Table) -> None:
    """Numbers, digests and keys stand before every text of any length."""

    def is_narrow(column: Column[Any]) -> bool:
        return column.primary_key or isinstance(column.type, Integer | LargeBinary)

    added = {"sealed", *ADDED.get(table.name, ())}
    columns = [column for column in table.columns if column.name not in added]
    first_wide = next(
        (at for at, column in enumerate(columns) if column.name in WIDE), len(columns)
    )
    assert [column.name for column in columns[first_wide:] if is_narrow(column)] == []


def test_content_stands_last() -> None:
    """What makes messages wide is read after everything else."""
    assert names(METADATA.tables["messages"].columns)[-1] == "content"


@every_table
def test_nothing_is_indexed_by_a_long_text(table: Table) -> None:
    """An index over contents would be another copy of them."""
    indexed = {column.name for index in table.indexes for column in index.columns}
    assert not indexed & WIDE
    for index in table.indexes:
        assert str(CreateIndex(index).compile(dialect=DIALECTS["sqlite"])).startswith(
            ("CREATE INDEX", "CREATE UNIQUE INDEX")
        )


# --- Raw rows never change ------------------------------------------------------------------------

CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
SAID = [
    {"role": "user", "content": "one", "id": "m1"},
    {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "c2"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "three"},
]
KEYS = {"messages": "tree_id, branch, seq", "tool_calls": "tree_id, branch, seq, position"}
GIVEN = {"messages": ", role, stored_at, digest", "tool_calls": ""}
FREE = {"messages": "99, 1, 1, 'user', 1, x'00'", "tool_calls": "99, 1, 1, 0"}
"""A row under a key that is free, for whatever else may be in conflict."""


def rows(connection: sqlite3.Connection) -> list[list[Any]]:
    """Return every raw row."""
    return [connection.execute(f"SELECT rowid, * FROM {table}").fetchall() for table in RAW_TABLES]


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a closed store that holds a conversation, for copying."""
    path = tmp_path_factory.mktemp("plain") / "chat.db"
    with Store(path) as store:
        store.create_session("s")
        store.append("s", SAID)
    return path


@pytest.fixture
def plain(conversation: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Give a bare connection, no settings made, to a store that holds a conversation."""
    connection = sqlite3.connect(shutil.copy(conversation, tmp_path), isolation_level=None)
    yield connection
    connection.close()


ATTACKS = {
    "update": "UPDATE {table} SET extra = '{{}}'",
    "update nothing": "UPDATE {table} SET extra = extra",
    "update or replace": "UPDATE OR REPLACE {table} SET seq = 1",
    "update rowid": "UPDATE {table} SET rowid = rowid + 100",
    "update from": "UPDATE {table} SET extra = s.title FROM sessions AS s WHERE s.tree_id = {table}.tree_id",
    "delete": "DELETE FROM {table} WHERE seq > 0",
    "delete all": "DELETE FROM {table}",
    "replace": "REPLACE INTO {table} SELECT * FROM {table}",
    "insert or replace": "INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1",
    "insert or ignore": "INSERT OR IGNORE INTO {table} SELECT * FROM {table} LIMIT 1",
    "replace by rowid": "REPLACE INTO {table} (rowid, {key}{given}) VALUES (1, {free})",
    "replace by oid": "INSERT OR REPLACE INTO {table} (oid, {key}{given}) VALUES (1, {free})",
    "replace by _rowid_": "INSERT OR REPLACE INTO {table} (_rowid_, {key}{given}) VALUES (1, {free})",
    "upsert": "INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT ({key}) DO UPDATE SET extra = '{{}}'",
    "upsert any": "INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT DO UPDATE SET extra = '{{}}'",
}


@pytest.mark.sqlite_only
@pytest.mark.parametrize("recursive", [False, True], ids=["as is", "recursive triggers"])
@pytest.mark.parametrize("table", RAW_TABLES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_raw_rows_refuse_every_change(
    plain: sqlite3.Connection, attack: str, table: str, recursive: bool
) -> None:
    """Whoever opens the file with whatever program cannot change a raw row by UPDATE, DELETE,
    REPLACE or UPSERT.
    """
    plain.execute(f"PRAGMA recursive_triggers = {recursive:d}")
    before = rows(plain)
    statement = ATTACKS[attack].format(
        table=table, key=KEYS[table], given=GIVEN[table], free=FREE[table]
    )
    with pytest.raises(sqlite3.IntegrityError, match="raw rows"):
        plain.execute(statement)
    assert rows(plain) == before


@pytest.mark.sqlite_only
def test_triggers_guard_every_raw_table(plain: sqlite3.Connection) -> None:
    """Each raw table has its three guards, and they hold no behaviour but refusal."""
    found = plain.execute(
        "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'trigger'"
    ).fetchall()
    assert sorted(table for table, _ in found) == sorted(3 * GUARDED_TABLES)
    assert [sql for _, sql in found if "SELECT RAISE(ABORT" not in sql or sql.count(";") != 1] == []


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("branch", "kept", "finished"),
    [(2, 0, "NULL"), (1, 3, "NULL"), (1, 0, "5")],
    ids=["another branch", "kept rows", "a finished erasure"],
)
def test_an_erasure_frees_only_what_it_names(
    plain: sqlite3.Connection, branch: int, kept: int, finished: str
) -> None:
    """Only an open erasure of the branch lets rows go, and only those beyond what it keeps."""
    tree_id = plain.execute("SELECT tree_id FROM messages").fetchone()[0]
    plain.execute(
        "INSERT INTO erasures (tree_id, erasure, branch, session_id, kept, messages, kept_messages,"
        f" started_at, finished_at) VALUES ({tree_id}, 1, {branch}, 's', {kept}, 0, 0, 0, {finished})"
    )
    before = rows(plain)
    for table in RAW_TABLES:
        with pytest.raises(sqlite3.IntegrityError, match="raw rows"):
            plain.execute(f"DELETE FROM {table}")
    assert rows(plain) == before


def test_raw_rows_refuse_changes_on_every_engine(url: str) -> None:
    """The guards exist wherever a store lives."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", SAID)
        before = store.messages("s")
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
        for table in RAW_TABLES:
            attacks = [f"UPDATE {table} SET extra = '{{}}'", f"DELETE FROM {table}"]
            upsert = (
                f"INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT ({KEYS[table]})"
            )
            attacks.append(f"{upsert} DO UPDATE SET extra = '{{}}'")
            attacks += [f"TRUNCATE {table} CASCADE"] if engine.dialect.name == "postgresql" else []
            for attack in attacks:
                with (
                    pytest.raises(sqlalchemy.exc.DBAPIError, match="raw rows"),
                    engine.begin() as connection,
                ):
                    connection.execute(sqlalchemy.text(attack))
        assert store.messages("s") == before


@pytest.mark.sqlite_only
def test_strict_types_hold(plain: sqlite3.Connection) -> None:
    """A text in a column of numbers is refused, not kept."""
    with pytest.raises(sqlite3.IntegrityError, match="cannot store TEXT"):
        plain.execute("INSERT INTO token_counts VALUES (1, 1, 1, 'o200k_base', 'many', NULL)")
