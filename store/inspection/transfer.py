"""Bring the trees of one store up to those of another: only what they lack is written.

Trees are told apart by marks of their rows, one for each tree. A tree that has grown gets its new
rows. Columns that may change, and rows that come and go, such as drafts, follow the source.
Nothing else is changed or removed: a tree from which the source has erased or redacted something
since, or to which the target has added something, is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Literal

from sqlalchemy import Connection, Table, bindparam, delete, func, select, update

from ..database import (
    SEAL_COLUMN,
    Statement,
    attachments,
    draft_pieces,
    drafts,
    erasures,
    limit_page_cache,
    message_attachments,
    message_facts,
    messages,
    notes,
    request_texts,
    running_bills,
    session_keys,
    sessions,
    summaries,
    tool_calls,
    tool_result_paths,
    tool_results,
)
from ..errors import InvalidValue
from .checks import STREAM_OPTIONS
from .dump import (
    DUMPED_TABLES,
    STORED_TREE,
    RowFields,
    StoredRow,
    build_row_parser,
    insert_rows,
    insert_tree,
    load_tree_rows,
    write_missing_rows,
)

__all__ = ["Transfer", "find_erased_sessions", "list_tree_sessions", "mark_trees", "transfer_tree"]

Transfer = Literal["new", "grown", "same"]
"""What became of a tree in the target."""

COUNTED_TABLES = (
    *(messages, tool_calls, tool_results, tool_result_paths, message_facts),
    *(message_attachments, attachments, request_texts, summaries),
)
"""Their rows change only along with rows of other tables, so their number is enough."""
REPLACED_TABLES = (
    *(session_keys, running_bills, notes, drafts, draft_pieces),
    *(tool_results, tool_result_paths, message_facts),
)
"""Rows of a session's present state, and facts derived from messages: any column may change."""
REMOVED_TABLES = (
    *(session_keys, running_bills, notes, drafts, draft_pieces),
    tool_result_paths,
)
"""Those of them whose rows also go."""
HASH_BYTES = 16


def _list_marked_columns(table: Table) -> list[Any]:
    """Return the columns that differ whenever a row does; the first is the tree's number."""
    if SEAL_COLUMN not in table.c:
        return list(table.c)
    told = (
        each
        for each in table.c
        if each.primary_key or each.name == SEAL_COLUMN or each.info.get("changes")
    )
    return list(told)


TREE_COUNTS = [
    Statement(
        select(table.c.tree_id, func.count()).group_by(table.c.tree_id).order_by(table.c.tree_id)
    )
    for table in COUNTED_TABLES
]
TREE_ROWS = [
    select(*_list_marked_columns(table)).order_by(*table.primary_key)
    for table in DUMPED_TABLES.values()
    if table not in COUNTED_TABLES
]
UPDATE_ROW = {
    name: Statement(
        update(table)
        .where(*(key == bindparam(f"key_{key.name}", type_=key.type) for key in table.primary_key))
        .values(
            {
                each.name: bindparam(each.name, type_=each.type)
                for each in table.c
                if not each.primary_key
            }
        )
    )
    for name, table in DUMPED_TABLES.items()
}
DELETE_ROW = {
    table.name: Statement(
        delete(table).where(
            *(key == bindparam(key.name, type_=key.type) for key in table.primary_key)
        )
    )
    for table in REMOVED_TABLES
}
TREE_SESSIONS = Statement(
    select(sessions.c.id).where(sessions.c.tree_id == bindparam("tree_id")).order_by(sessions.c.id)
)
ERASED_SESSIONS = Statement(
    select(erasures.c.tree_id, erasures.c.session_id)
    .distinct()
    .order_by(erasures.c.tree_id, erasures.c.session_id)
)


def mark_trees(connection: Connection) -> dict[int, bytes]:
    """Return a mark of each tree, equal in two stores that have the same rows of it.

    Of wide rows only the number is read: the database refuses to change them, and what removes
    them leaves a row that is read.
    """
    marks: dict[int, bytes] = {}  # each is of a mark and a row: open hashes take more memory
    counts = (
        (number, row)
        for number, counted in enumerate(TREE_COUNTS)
        for row in counted.scan(connection)
    )
    found = (
        (at, row)
        for at, query in enumerate(TREE_ROWS, len(TREE_COUNTS))
        for row in connection.execute(query, execution_options=STREAM_OPTIONS)
    )
    with limit_page_cache(connection):
        for at, row in chain(counts, found):
            told = repr((at, *row)).encode("utf-8", "surrogatepass")
            marks[row[0]] = sha256(marks.get(row[0], b"") + told).digest()[:HASH_BYTES]
    return marks


def list_tree_sessions(connection: Connection, tree_id: int) -> list[str]:
    """Return the ids of a tree's sessions."""
    return TREE_SESSIONS.values(connection, tree_id=tree_id)


def find_erased_sessions(source: Connection, target: Connection) -> list[tuple[int, str]]:
    """Return the sessions that were erased in one store and are in the other, with their trees."""
    return [
        (tree_id, session_id)
        for tree_id, session_id in ERASED_SESSIONS.rows(source)
        if session_id in list_tree_sessions(target, tree_id)
        if session_id not in list_tree_sessions(source, tree_id)
    ]


def transfer_tree(
    connection: Connection, tree_id: int, rows: Iterable[StoredRow], *, writes: bool = True
) -> Transfer:
    """Write the rows of a tree that the store lacks; tell what became of the tree.

    Its rows come from a store that has compared them, as `dump_tree` does: afterwards the tree has
    the same ones. Without ``writes`` tell what would become of it. Raises InvalidValue if the
    stored tree is not an earlier state of the given one, or if a session with one of its ids
    exists; nothing may be committed then.
    """
    with limit_page_cache(connection):
        if not STORED_TREE.row(connection, tree_id=tree_id):
            if writes:
                insert_tree(connection, tree_id, rows)
            return "new"
        changes = [
            _TableChanges(connection, tree_id, each, writes) for each in DUMPED_TABLES.values()
        ]
        by_table = groupby(rows, itemgetter(0))
        name, found = next(by_table, ("", iter(())))
        for each in changes:
            if each.table.name == name:
                each.follow(map(itemgetter(1), found))
                name, found = next(by_table, ("", iter(())))
            else:
                each.follow(())
        for each in reversed(changes):  # rows go before those that they refer to
            each.remove()
        if not any(each.count for each in changes):
            return "same"
        if writes:
            write_missing_rows(connection, tree_id)
    return "grown"


class _TableChanges:
    """The changes of a tree's rows in one table, made while its rows are compared."""

    def __init__(self, connection: Connection, tree_id: int, table: Table, writes: bool) -> None:
        self.table = table
        self.count = 0
        """Rows written or removed."""
        self._connection, self._tree_id, self._writes = connection, tree_id, writes
        self._keys = [key.name for key in table.primary_key if key.name != "tree_id"]
        self._gone: list[RowFields] = []

    def follow(self, given: Iterable[RowFields]) -> None:
        """Bring the stored rows up to the given ones. Raises InvalidValue."""
        new = self._find_new(given)
        if self._writes:
            insert_rows(self._connection, self._tree_id, self.table.name, new)
        else:
            deque(new, maxlen=0)

    def _find_new(self, given: Iterable[RowFields]) -> Iterator[RowFields]:
        """Yield the rows that are not stored, and update those that differ.

        Both come in the order of their keys. A new row is yielded before any later stored row is
        read, so that writing it does not disturb the reading.
        """
        stored = load_tree_rows(self._connection, self.table, self._tree_id)
        known = next(stored, None)
        for fields in given:
            key = self._key(fields)
            while known is not None and self._key(known) < key:
                self._note_gone(known)
                known = next(stored, None)
            if known is None or self._key(known) > key:
                self.count += 1
                yield fields
                continue
            if known != fields:
                self._update(known, fields)
            known = next(stored, None)
        while known is not None:
            self._note_gone(known)
            known = next(stored, None)

    def remove(self) -> None:
        """Remove the rows that are gone at the source."""
        for keys in self._gone:
            self.count += 1
            if self._writes:
                DELETE_ROW[self.table.name].run(self._connection, tree_id=self._tree_id, **keys)

    def _key(self, fields: RowFields) -> tuple[Any, ...]:
        return tuple(fields[name] for name in self._keys)

    def _note_gone(self, fields: RowFields) -> None:
        if self.table not in REMOVED_TABLES:
            raise InvalidValue(f"the target has a row of {self.table.name} that the source has not")
        self._gone.append({name: fields[name] for name in self._keys})

    def _update(self, known: RowFields, fields: RowFields) -> None:
        self._check_change(known, fields)
        self.count += 1
        if not self._writes:
            return
        names = [each.name for each in self.table.c]
        values = build_row_parser(self.table, names, self._tree_id)(fields)
        row = dict(zip(names, values, strict=True))
        keys = {f"key_{name}": row.pop(name) for name in ("tree_id", *self._keys)}
        UPDATE_ROW[self.table.name].run(self._connection, **row, **keys)

    def _check_change(self, known: RowFields, fields: RowFields) -> None:
        """Refuse the change of a column that never changes. Raises InvalidValue."""
        if self.table in REPLACED_TABLES or known.get("outcome") == "running":
            return
        for each in self.table.c:
            is_fixed = not each.info.get("changes")
            if is_fixed and known.get(each.name) != fields.get(each.name):
                raise InvalidValue(f"a row of {self.table.name} is another one in the target")
