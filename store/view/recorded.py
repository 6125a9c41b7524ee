"""The records of compactions that count on a line, each read once.

A session that lives long has hundreds of records, and every view and check goes by all of them. So
the numbers of those that count are asked anew each time, with their outcomes, which is little. What
a record says is read when its number is new: once it has ended it never changes. Until then it has
another outcome. An erasure takes records out, and a number may come again; so what is kept of a
tree is true as long as nothing of it was erased (`Changes`).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, literal_column, select

from ..database import (
    Row,
    Statement,
    compaction_records,
    kept_by,
    kept_since,
    positions,
    summaries,
    weight,
)
from ..history import Changes, Pointer, line_cte, records_seen
from ..messages import decode_as
from ..records import Compaction


class Counts(NamedTuple):
    """That a record counts on a line: its number, and what came of it until now."""

    number: int
    outcome: str


Known = dict[int, Compaction]
"""Records of a tree by their numbers."""

_line = line_cte()
_tree: BindParameter[int] = bindparam("tree_id")
_c, _s = compaction_records, summaries
COUNTING = Statement(
    select(_c.c.compaction, _c.c.outcome)
    .select_from(_line)
    .join(_c, records_seen(_line))
    .order_by(_c.c.compaction),
    row=Counts,
)
_STORED = (
    _c.c.compaction.label("id"),
    _c.c.kind,
    _c.c.outcome,
    _c.c.reason,
    _c.c.policy,
    _c.c.session_id,
    _c.c.head,
    _c.c.hidden_first,
    _c.c.hidden_last,
    _c.c.first_kept,
    _c.c.pinned,
    _c.c.cleared,
    _c.c.undoes,
    _c.c.messages_before,
    _c.c.messages_after,
    _c.c.tokens_before,
    _c.c.tokens_after,
    _c.c.created_at,
    _c.c.error,
    _c.c.error_kind,
    _c.c.summary.label("summary_number"),
    _s.c.first.label("stands_from"),
)
_NAMES = [column.name for column in _STORED]
RECORDS = Statement(
    select(*_STORED)
    .select_from(_c)
    .outerjoin(_s, (_s.c.tree_id == _tree) & (_s.c.summary == _c.c.summary))
    .where(_c.c.tree_id == _tree)
    .where(_c.c.compaction.in_(positions("numbers")))
)
_of_tree = select(_c.c.compaction).where(_c.c.tree_id == _tree)
ANY_RECORD = Statement(_of_tree.limit(literal_column("1")))


def records(
    connection: Connection, pointer: Pointer, last: int, changes: Changes | None = None
) -> list[Compaction]:
    """Return the records that count on a line up to a position, oldest first, undoings included.

    As they were recorded: one that was undone says ``applied``, and no texts are read. With what
    was ever taken out of the tree, its ``changes``, they are kept for the next time.
    """
    if ANY_RECORD.row(connection, tree_id=pointer.tree_id) is None:
        return []
    counting = COUNTING.rows(connection, **pointer.line, last=last, newest=pointer.newest)
    known = _kept(connection, pointer.tree_id, changes)
    new = [each.number for each in counting if not _is_known(each, known)]
    if new:
        known = known | _read(connection, pointer.tree_id, new)
        _keep(connection, pointer.tree_id, changes, known)
    return [known[each.number] for each in counting]


def _is_known(counts: Counts, known: Known) -> bool:
    record = known.get(counts.number)
    return record is not None and record.outcome == counts.outcome


def _read(connection: Connection, tree_id: int, numbers: list[int]) -> Known:
    rows = RECORDS.rows(connection, tree_id=tree_id, numbers=json.dumps(numbers))
    return {row[0]: _record(row) for row in rows}


def _record(row: Row) -> Compaction:
    """Return a row of `RECORDS` as a record, its texts aside."""
    stored = dict(zip(_NAMES, row, strict=True))
    hidden = (stored.pop("hidden_first"), stored.pop("hidden_last"))
    return Compaction(
        hidden=None if None in hidden else hidden,
        pinned=tuple(_listed(stored.pop("pinned"))),
        cleared=tuple(map(tuple, _listed(stored.pop("cleared")))),
        **stored,
    )


def _listed(text: str | None) -> list[Any]:
    """Return what a column holds as a JSON array, [] where it holds none."""
    return decode_as(list, text) if text else []


def _kept(connection: Connection, tree_id: int, changes: Changes | None) -> Known:
    """Return what is kept of a tree's records; nothing where something was taken out since."""
    kept = kept_by(connection)
    found = kept.get((tree_id, "records")) if kept else None
    if found is None or found[0] != changes:
        return {}
    known: Known = found[1]
    return known


def _keep(connection: Connection, tree_id: int, changes: Changes | None, known: Known) -> None:
    kept = kept_by(connection)
    if kept and changes is not None:
        kept.put((tree_id, "records"), (changes, known), weight(known), kept_since(connection))
