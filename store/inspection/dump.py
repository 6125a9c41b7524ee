"""Dump all conversations of a store as rows that any program can read, and load such rows again.

Rows come tree by tree, each after the rows that it refers to. They have every column except NULLs
and the number of their tree. A tree is loaded whole or not at all, and unchanged: its branches,
moves and records keep their numbers and its messages their moments, so that each view of it has
the same bytes. Rows that differ from their seals and digests are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice, zip_longest
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    Connection,
    LargeBinary,
    Table,
    bindparam,
    exists,
    literal_column,
    select,
    union,
    union_all,
)

from ..clock import Now, resolve_now
from ..database import (
    BIG_INTEGER,
    SCHEMA_HEAD,
    SEAL_COLUMN,
    SEALED_TABLES,
    TREE_TABLES,
    Database,
    Insertion,
    Statement,
    ancestors,
    attachments,
    branches,
    compute_seal,
    erasures,
    kept_usages,
    limit_page_cache,
    list_sealed_columns,
    search_rows,
    session_ids,
    sessions,
    token_counts,
)
from ..errors import InvalidValue
from ..history import (
    erasure_batches,
    lines,
    write_missing_ancestors,
    write_missing_entries,
)
from .checks import (
    OLDER,
    check_keys,
    check_structures,
    check_table_seals,
    check_tree_rules,
    require_sound,
)
from .line_checks import check_tree
from .row_pages import TreePages

__all__ = [
    "END",
    "OTHER_SESSION",
    "STORE",
    "TREE",
    "RowFields",
    "StoredRow",
    "dump_store",
    "dump_tree",
    "insert_rows",
    "insert_tree",
    "list_trees",
    "load_tree",
    "load_tree_rows",
    "parse_tree_id",
    "require_schema",
    "write_missing_rows",
]

RowFields = dict[str, Any]
"""The columns of a row by their names, NULLs aside, as JSON has them."""
StoredRow = tuple[str, RowFields]
"""The name of a table, and the fields of a row."""

STORE, TREE, END = "convostore", "tree", "end"
"""The names of the first row of a dump, and of the first and the last row of a tree."""
REFILLED_TABLES = (ancestors, search_rows, token_counts)
"""The tables that are filled again, from the branches or on demand."""
DUMPED_TABLES = {table.name: table for table in TREE_TABLES if table not in REFILLED_TABLES}
ROWS_AT_ONCE = 100
"""Rows written at once."""
TREE_PAGES = {
    name: TreePages(select(*list(table.c)[1:]), table) for name, table in DUMPED_TABLES.items()
}
FILLED_TABLES = Statement(
    union_all(
        *(
            select(literal_column(f"'{name}'")).where(
                exists().where(table.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER))
            )
            for name, table in DUMPED_TABLES.items()
        )
    )
)
"""The tables that have rows of a tree."""
TREE_ID_PATTERN = re.compile("[0-9]{1,19}")
REVISION_PATTERN = re.compile("[0-9]{4}")
KNOWN_COLUMNS = {name: {column.name for column in table.c} for name, table in DUMPED_TABLES.items()}
LARGEST_TREE_ID = 2**63 - 1
"""The largest number of a tree, which is that of a column."""

_row_insertions = {name: Insertion(table) for name, table in DUMPED_TABLES.items()}
INSERT_ID = Insertion(session_ids)
_trees = union(select(branches.c.tree_id), select(erasures.c.tree_id))
ALL_TREES = Statement(_trees.order_by("tree_id"))
OWNER_TREES = Statement(
    union(
        *(
            select(table.c.tree_id).where(table.c.owner == bindparam("owner"))
            for table in (sessions, kept_usages)
        )
    ).order_by("tree_id")
)
TREE_OWNERS = Statement(
    select(sessions.c.id, sessions.c.owner).where(sessions.c.tree_id == bindparam("tree_id"))
)
NAMING_COLUMNS = ("session_id", "forked_from")
OTHER_SESSION = "(another session)"
"""What an owner's rows have instead of the id of another one's session."""
STORED_TREE = Statement(
    union(
        select(branches.c.tree_id).where(
            branches.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER)
        ),
        select(erasures.c.tree_id).where(
            erasures.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER)
        ),
    )
)


def dump_store(
    database: Database, now: Now = None, *, owner: str | None = None, copy: Database | None = None
) -> Iterator[StoredRow]:
    """Yield all conversations of a store; each tree as it is when its turn comes.

    Pending erasures are finished first. Each tree is compared with its digests and seals before
    its rows are yielded. With an ``owner``, ``copy`` is an empty store: see `dump_owner_tree`.
    Raises StoreError, Damaged.
    """
    trees = list_trees(database, now, owner)
    yield STORE, {"schema": SCHEMA_HEAD, "trees": len(trees)}
    for tree_id in trees:
        yield TREE, {"tree_id": str(tree_id)}
        with database.reading() as connection:
            count = 0
            if owner is None or copy is None:
                rows = dump_tree(connection, tree_id)
            else:
                rows = dump_owner_tree(connection, tree_id, owner, copy)
            for row in rows:
                yield row
                count += 1
            yield END, {"rows": count}


def list_trees(
    database: Database, now: Now = None, owner: str | None = None, *, checks_file: bool = True
) -> list[int]:
    """Return the trees of a store, or of an owner, in order, after its erasures are finished.

    With ``checks_file`` all pages and indexes of a file are read and compared before. Raises
    StoreError, Damaged.
    """
    erasure_batches.continue_erasures(database, resolve_now(now))
    if checks_file:
        with database.reading() as connection, limit_page_cache(connection):
            require_sound(check_structures(connection))
    if owner is None:
        return database.read(ALL_TREES.values)
    return database.read(lambda connection: OWNER_TREES.values(connection, owner=owner))


def dump_owner_tree(
    connection: Connection, tree_id: int, owner: str, copy: Database
) -> Iterator[StoredRow]:
    """Yield the rows of a tree that belong to an owner.

    By forks, a tree may have sessions of several owners. Such a tree is loaded into ``copy``, and
    the sessions of others are deleted there: of their messages only those stay that the owner's
    sessions show. Notes and sums of others are left out, ids of their sessions are replaced.
    Raises Damaged, StoreError.
    """
    owners: dict[str, str | None] = dict(TREE_OWNERS.rows(connection, tree_id=tree_id))
    own = {session_id for session_id, name in owners.items() if name == owner}
    rows = dump_tree(connection, tree_id)
    if own == owners.keys():
        yield from replace_other_sessions(rows, tree_id, owner, own)
        return
    with copy.writing() as writing:
        load_tree(writing, tree_id, rows)
    now = resolve_now(None)
    erasure_batches.delete_sessions(copy, owners.keys() - own, moment=now, costs="erase")
    with copy.reading() as reading:
        yield from replace_other_sessions(dump_tree(reading, tree_id), tree_id, owner, own)


def replace_other_sessions(
    rows: Iterable[StoredRow], tree_id: int, owner: str, own: set[str]
) -> Iterator[StoredRow]:
    """Yield rows without those of other owners and without the ids of other sessions."""
    for name, fields in rows:
        if fields.get("owner", owner) != owner:
            continue
        foreign = [key for key in NAMING_COLUMNS if fields.get(key) not in {None, *own}]
        if foreign:
            fields.update(dict.fromkeys(foreign, OTHER_SESSION))
            seal = _compute_row_seal(DUMPED_TABLES[name], {**fields, "tree_id": tree_id})
            fields[SEAL_COLUMN] = seal.hex()
        yield name, fields


def dump_tree(connection: Connection, tree_id: int) -> Iterator[StoredRow]:
    """Compare a tree with its digests and seals, then yield its rows. Raises Damaged."""
    with limit_page_cache(connection):
        known = FILLED_TABLES.values(connection, tree_id=tree_id)
        filled = [table for table in DUMPED_TABLES.values() if table.name in known]
        for table in filled:
            if table in SEALED_TABLES:
                require_sound(check_table_seals(connection, table, tree_id))
        for check in (check_tree_rules, check_keys, check_tree):
            require_sound(check(connection, tree_id))
        for table in filled:
            for fields in load_tree_rows(connection, table, tree_id):
                yield table.name, fields


def load_tree_rows(connection: Connection, table: Table, tree_id: int) -> Iterator[RowFields]:
    """Yield the rows of a tree in a table, in the order of their keys."""
    names = table.c.keys()[1:]
    for row in TREE_PAGES[table.name].scan(connection, tree_id):
        yield {
            name: value.hex() if isinstance(value, bytes) else value
            for name, value in zip(names, row, strict=True)
            if value is not None
        }


def require_schema(head: RowFields) -> None:
    """Refuse the rows of an older schema, by their first row. Raises InvalidValue.

    Rows of a newer one are taken where they have nothing that this one does not know.
    """
    schema = str(head.get("schema"))
    if not REVISION_PATTERN.fullmatch(schema) or schema < SCHEMA_HEAD:
        other = "open that store with this release and export it again, or bring this one up to it"
        raise InvalidValue(
            f"these are rows of the schema {schema!r:.20}, not {SCHEMA_HEAD}; {other}"
        )


def _drop_unknown_nulls(row: StoredRow) -> StoredRow:
    """Return a row without the columns of a newer schema that say nothing, as its seal does."""
    name, fields = row
    known = KNOWN_COLUMNS.get(name, fields.keys())
    if fields.keys() <= known:
        return row
    return name, {key: value for key, value in fields.items() if key in known or value is not None}


def parse_tree_id(begin: RowFields) -> int:
    """Return the number of the tree from its first row. Raises InvalidValue."""
    text = begin.get("tree_id")
    if isinstance(text, str) and TREE_ID_PATTERN.fullmatch(text) and int(text) <= LARGEST_TREE_ID:
        return int(text)
    raise InvalidValue(f"{text!r:.40} is not the number of a tree")


def load_tree(connection: Connection, tree_id: int, rows: Iterable[StoredRow]) -> bool:
    """Load a tree unchanged; tell whether it is new.

    Raises InvalidValue if its rows make no sound tree, if the store has the tree with other rows,
    or if a session with one of its ids exists; nothing may be committed then.
    """
    rows = map(_drop_unknown_nulls, rows)
    if STORED_TREE.row(connection, tree_id=tree_id):
        known = (
            (table.name, fields)
            for table in DUMPED_TABLES.values()
            for fields in load_tree_rows(connection, table, tree_id)
        )
        pairs = zip_longest(known, rows)
        for stored, given in pairs:
            if stored != given:
                raise InvalidValue("this conversation and its forks exist already, and differ")
        return False
    insert_tree(connection, tree_id, rows)
    for finding in chain(check_tree(connection, tree_id), check_keys(connection, tree_id)):
        if finding.check != OLDER:
            raise InvalidValue(f"{finding.where}: {finding.problem}")
    return True


def insert_tree(connection: Connection, tree_id: int, rows: Iterable[StoredRow]) -> None:
    """Write the rows of a new tree, and what follows from them on a server. Raises InvalidValue."""
    for name, of_table in groupby(rows, itemgetter(0)):
        insert_rows(connection, tree_id, name, map(itemgetter(1), of_table))
    write_missing_rows(connection, tree_id)


def write_missing_rows(connection: Connection, tree_id: int) -> None:
    """Write what the rows of a tree from another store lack on a server."""
    write_missing_ancestors(connection, tree_id)
    write_missing_entries(connection, tree_id)


def insert_rows(connection: Connection, tree_id: int, name: str, rows: Iterator[RowFields]) -> None:
    """Write consecutive rows of one table. Raises InvalidValue."""
    if name not in DUMPED_TABLES:
        raise InvalidValue(f"there is no table {name!r:.40} of conversations")
    insertion = _row_insertions[name]
    as_row = build_row_parser(insertion.table, insertion.columns, tree_id)
    at_once = 1 if insertion.table is attachments else ROWS_AT_ONCE  # a row may have megabytes
    while run := list(islice(rows, at_once)):
        if name == "sessions":
            ids = [fields.get("id") for fields in run]
            for session_id in ids:
                if lines.TREE_OF_SESSION.row(connection, session_id=session_id):
                    raise InvalidValue(f"there is another session {session_id!r:.80} already")
            INSERT_ID.insert_many(connection, [(session_id, tree_id) for session_id in ids])
        insertion.insert_many(connection, [as_row(fields) for fields in run])


def build_row_parser(
    table: Table, columns: Iterable[str], tree_id: int
) -> Callable[[RowFields], tuple[Any, ...]]:
    """Return a function from the fields of a row to its values. Raises InvalidValue."""
    known = {column.name for column in table.c} - {"tree_id"}
    binary = {column.name for column in table.c if isinstance(column.type, LargeBinary)}

    def as_row(told: RowFields) -> tuple[Any, ...]:
        if not told.keys() <= known:
            other = sorted(told.keys() - known)
            raise InvalidValue(f"a row of {table.name} has other columns: {other!r:.80}")
        fields = {**told, "tree_id": tree_id}
        for name in binary & told.keys():
            fields[name] = _parse_hex(told[name])
        _check_seal(table, fields)
        return tuple(map(fields.get, columns))

    return as_row


def _parse_hex(text: Any) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"these are not hexadecimal digits: {text!r:.40}") from error


def _check_seal(table: Table, fields: RowFields) -> None:
    if SEAL_COLUMN in table.c and fields.get(SEAL_COLUMN) != _compute_row_seal(table, fields):
        raise InvalidValue(f"a row of {table.name} is not what was written")


def _compute_row_seal(table: Table, fields: RowFields) -> bytes:
    names = list_sealed_columns(table)
    return compute_seal(names, map(fields.get, names))
