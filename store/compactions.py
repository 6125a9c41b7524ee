"""Which compactions count on a line, and what they leave visible.

A record counts on a line if it was made on that line, at or before its head, and before the line left the branch it
was made on: so forks keep the compactions of their past, a sibling never sees a later one, a rewind to before it
brings the messages back, and undoing the rewind hides them again. An undo is a record like any other.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, case, literal_column, select
from sqlalchemy.sql.selectable import CTE

from . import lines
from .lines import Pointer
from .messages import Message
from .policy import Policy
from .records import Compaction, Hidden
from .rules import positions
from .schema import BIG, branches, compaction_records, summaries
from .statements import Statement

NEVER = 2**62
"""A position beyond all lines."""


class Record(NamedTuple):
    """A record of a line; ``pinned`` stay visible though hidden by position, ``cleared`` are (position, rule)."""

    compaction: int
    kind: str
    outcome: str
    reason: str
    policy: str | None
    session_id: str | None
    head: int
    hidden_first: int | None
    hidden_last: int | None
    first_kept: int | None
    pinned: str | None
    cleared: str | None
    undoes: int | None
    messages_before: int | None
    messages_after: int | None
    tokens_before: int | None
    tokens_after: int | None
    created_at: int
    error: str | None
    summary: int | None
    covers_from: int | None


class Texts(NamedTuple):
    """What is written of a summary, and the facts that are sent with it."""

    title: str | None
    body: str
    facts: str | None


class Standing(NamedTuple):
    """A summary that stands in a view for ``first`` to ``last``, and the facts that are sent with it."""

    number: int
    compaction: int
    first: int
    last: int
    body: str
    facts: str | None


class Visible(NamedTuple):
    """What a line shows: the pinned positions, the summaries, then everything from ``first_kept`` on."""

    first_kept: int
    pinned: tuple[int, ...]
    summaries: tuple[Standing, ...]
    cleared: dict[int, str]

    def without(self, first_kept: int, pinned: tuple[int, ...]) -> Visible:
        """Return what stays visible when everything before a position but the pinned ones is hidden too."""
        return self._replace(first_kept=first_kept, pinned=tuple(sorted({*self.pinned, *pinned})))


def line_cte() -> CTE:
    """Build the walk up a line's branches with the newest record that each part of it may know."""
    top = (
        select(
            branches.c.branch,
            branches.c.parent_branch,
            branches.c.parent_position,
            branches.c.records_seen,
            bindparam("last", type_=BIG).label("last"),
            bindparam("newest", type_=BIG).label("newest"),
        )
        .where(branches.c.tree_id == bindparam("tree_id"), branches.c.branch == bindparam("branch"))
        .cte("line", recursive=True)
    )
    parents = branches.alias("parents")
    return top.union_all(
        select(
            parents.c.branch,
            parents.c.parent_branch,
            parents.c.parent_position,
            parents.c.records_seen,
            case((top.c.parent_position < top.c.last, top.c.parent_position), else_=top.c.last),
            top.c.records_seen,
        )
        .join(top, parents.c.branch == top.c.parent_branch)
        .where(parents.c.tree_id == bindparam("tree_id"))
    )


_line = line_cte()
_c, _s = compaction_records, summaries
RECORDS = Statement(
    select(
        *(_c.c[name] for name in Record._fields[:20]),
        _s.c.first,
    )
    .select_from(_line)
    .join(
        _c,
        (_c.c.tree_id == bindparam("tree_id"))
        & (_c.c.branch == _line.c.branch)
        & (_c.c.head <= _line.c.last)
        & (_c.c.compaction <= _line.c.newest),
    )
    .outerjoin(_s, (_s.c.tree_id == bindparam("tree_id")) & (_s.c.summary == _c.c.summary))
    .order_by(_c.c.compaction)
)
TEXTS = Statement(
    select(_s.c.summary, _s.c.title, _s.c.body, _s.c.facts).where(
        _s.c.tree_id == bindparam("tree_id"), _s.c.summary.in_(positions("numbers"))
    )
)
"""Apart from the records: a line has many, and few of their summaries stand."""
ANY_RECORD = Statement(select(_c.c.compaction).where(_c.c.tree_id == bindparam("tree_id")).limit(literal_column("1")))


def records(connection: Connection, pointer: Pointer, last: int) -> list[Record]:
    """Return the records that count on a line up to a position, oldest first."""
    if ANY_RECORD.row(connection, tree_id=pointer.tree_id) is None:
        return []
    rows = RECORDS.rows(connection, tree_id=pointer.tree_id, branch=pointer.branch, last=last, newest=NEVER)
    return [Record._make(row) for row in rows]


def active(known: list[Record]) -> list[Record]:
    """Return the records in force: applied, and not undone."""
    undone = {record.undoes for record in known if record.kind == "undo"}
    return [
        record
        for record in known
        if record.kind != "undo" and record.outcome == "applied" and record.compaction not in undone
    ]


def visible(connection: Connection, pointer: Pointer, last: int) -> Visible:
    """Return what a line shows up to a position."""
    return shown(connection, pointer, active(records(connection, pointer, last)))


def shown(connection: Connection, pointer: Pointer, in_force: list[Record]) -> Visible:
    """Return what the records in force leave visible of a line."""
    hiding = [record for record in in_force if record.kind == "summary"]
    pinned: set[int] = set()
    cleared: dict[int, str] = {}
    first_kept = 1
    for record in hiding:
        first_kept = max(first_kept, record.first_kept or 1)
        pinned.update(json.loads(record.pinned or "[]"))
    for record in in_force:
        cleared.update((seq, rule) for seq, rule in json.loads(record.cleared or "[]"))
    standing = _standing(connection, pointer, hiding)
    return Visible(first_kept, tuple(sorted(p for p in pinned if p < first_kept)), standing, cleared)


def sent(text: str, facts: str | None, policy: Policy) -> Message:
    """Return a summary and its facts as the message that a view sends."""
    whole = "\n".join(filter(None, (policy.summary_heading, "\n\n".join(filter(None, (text, facts))))))
    return {"role": "system" if policy.summary_role == "merge" else policy.summary_role, "content": whole}


def hidden(connection: Connection, session_id: str, at: int | None = None) -> dict[int, Hidden]:
    """Return the positions of a line that its view hides behind compactions, and since when (S3.32).

    Raises SessionNotFound, PositionOutOfRange.
    """
    pointer = lines.find(connection, session_id)
    found: dict[int, Hidden] = {}
    for record in active(records(connection, pointer, lines.position(pointer, at))):
        if record.kind == "summary" and record.hidden_first is not None and record.hidden_last is not None:
            since = Hidden(record.compaction, record.created_at)
            found |= dict.fromkeys(range(record.hidden_first, record.hidden_last + 1), since)
            for position in json.loads(record.pinned or "[]"):
                found.pop(position, None)
    return found


def compaction(record: Record, texts: Texts | None, *, undone: bool = False) -> Compaction:
    """Return a record as it is given out, with the texts of its summary."""
    hidden = None
    if record.hidden_first is not None and record.hidden_last is not None:
        hidden = (record.hidden_first, record.hidden_last)
    return Compaction(
        id=record.compaction,
        kind=record.kind,
        outcome="undone" if undone else record.outcome,
        reason=record.reason,
        policy=record.policy,
        hidden=hidden,
        first_kept=record.first_kept,
        cleared=tuple((seq, rule) for seq, rule in json.loads(record.cleared or "[]")),
        summary=texts and texts.body,
        title=texts and texts.title,
        messages_before=record.messages_before,
        messages_after=record.messages_after,
        tokens_before=record.tokens_before,
        tokens_after=record.tokens_after,
        error=record.error,
        head=record.head,
        created_at=record.created_at,
        session_id=record.session_id,
    )


def history(
    connection: Connection, pointer: Pointer, known: list[Record], number: int | None = None
) -> list[Compaction]:
    """Return records of a line as they are given out, undone ones marked; with a ``number`` only that one."""
    undone = {record.undoes for record in known if record.kind == "undo"}
    wanted = [record for record in known if record.kind != "undo" and number in (None, record.compaction)]
    texts = _texts(connection, pointer, [record.summary for record in wanted])
    return [compaction(record, texts.get(record.summary), undone=record.compaction in undone) for record in wanted]


def _standing(connection: Connection, pointer: Pointer, hiding: list[Record]) -> tuple[Standing, ...]:
    """Return the summaries that stand: a later one takes the place of those whose positions it stands for too."""
    standing: list[Standing] = []
    for record in hiding:
        if record.summary is None:
            continue
        first, last = record.covers_from or 1, record.hidden_last or 0
        while standing and standing[-1].first >= first:
            standing.pop()
        standing.append(Standing(record.summary, record.compaction, first, last, "", None))
    texts = _texts(connection, pointer, [each.number for each in standing])
    return tuple(each._replace(body=texts[each.number].body, facts=texts[each.number].facts) for each in standing)


def _texts(connection: Connection, pointer: Pointer, numbers: list[int | None]) -> dict[int | None, Texts]:
    """Return the texts of summaries by their numbers."""
    if not any(numbers):
        return {}
    rows = TEXTS.rows(connection, tree_id=pointer.tree_id, numbers=json.dumps(numbers))
    return {number: Texts(*texts) for number, *texts in rows}
