"""Which compactions count on a line, and what they leave visible.

**What makes a record count.** A compaction writes no mark on any message. It writes a record that
says where it was made: on which branch, and with the head at which position. Whether it counts is
asked anew for each line, of these two and of nothing else:

- It was made on the line, at or before its head. A line is made of parts, each a branch up to a
  position; the record must lie on one of these branches, with a head not behind that part. So a
  rewind to before the record brings the messages back, undoing the rewind hides them again, and a
  fork keeps what its past had hidden. Nothing is written at any of these moments.
- It was there when the line left the branch. Head and branch alone cannot tell that: a fork at
  position 10 is made, then the parent compacts with its head at 10 still. The position is in the
  past of both, the compaction in that of the parent only. So a branch keeps in ``records_seen``
  the newest record there was when it was made, and a line counts no later one of its ancestors.

Of the records that count, those are in force that were applied and not undone. An undo is a record
too, and counts by the same two rules: what was undone on one branch is still hidden on another.

What is visible follows: the last place from which everything is kept, the messages before it that
are pinned, and the summaries that stand for the others. A summary that carries an earlier one in it
covers its positions, and takes its place.

**Ranges hidden by name.** A record of the kind ``hide`` hides a range that a caller named, anywhere
behind the prefix. Whether it counts is asked by the same two rules. Of two ranges the later one may
hold the earlier one, never a part of it, since whoever hides a part hides the whole; then it shows
in its place, and undoing it brings the earlier one back. A prefix that grows over a range covers
it; undoing that brings the range back. Nothing has to be written for either, because what is
visible is worked out from the records alone, each time anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, and_, bindparam, select

from ..database import RowsByKey, Statement, positions, summaries
from ..errors import VERIFY, Damaged
from ..history import Pointer, lines
from ..messages import decode_as
from ..records import Compaction, Hidden
from .recorded import records
from .standing import Range, Standing, Visible, summaries_of


class Written(NamedTuple):
    """What is written of a summary; the lists are JSON."""

    title: str | None
    body: str
    key_actions: str | None
    file_changes: str | None


class Texts(NamedTuple):
    """What a view shows of a summary, with the facts that are sent with it.

    ``notice`` is the end of a body that says why there is no summary.
    """

    body: str
    facts: str | None
    notice: str | None


_tree: BindParameter[int] = bindparam("tree_id")
_s = summaries
_is_asked = and_(_s.c.tree_id == _tree, _s.c.summary.in_(positions("numbers")))
_columns_of = partial(map, _s.c.__getitem__)
WRITTEN = Statement(select(_s.c.summary, *_columns_of(Written._fields)).where(_is_asked))
TEXTS = Statement(select(_s.c.summary, *_columns_of(Texts._fields)).where(_is_asked))
"""Apart from the records: a line has many, and few of their summaries stand."""


def active(known: list[Compaction]) -> list[Compaction]:
    """Return the records in force: applied, and not undone."""
    undone = _undone(known)
    return [
        record
        for record in known
        if record.kind != "undo" and record.outcome == "applied" and record.id not in undone
    ]


def visible(connection: Connection, pointer: Pointer, last: int) -> Visible:
    """Return what a line shows up to a position."""
    return visible_after(connection, pointer, active(records(connection, pointer, last)))


def visible_after(connection: Connection, pointer: Pointer, in_force: list[Compaction]) -> Visible:
    """Return what the records in force leave visible of a line."""
    hiding = [record for record in in_force if record.kind == "summary"]
    first_kept = _first_kept(hiding)
    pinned = tuple(sorted(place for place in _pinned(hiding) if place < first_kept))
    cleared = dict(chain.from_iterable(record.cleared for record in in_force))
    standing = _with_texts(connection, pointer, _standing(hiding))
    left = Visible(first_kept, pinned, standing, cleared)
    for record in in_force:
        if record.kind == "hide":
            left = left.hiding(_range(record))
    return _with_told_ranges(connection, pointer, left) if left.ranges else left


def _first_kept(hiding: list[Compaction]) -> int:
    """Return the position from which everything is kept."""
    return max((record.first_kept or 1 for record in hiding), default=1)


def _pinned(hiding: list[Compaction]) -> set[int]:
    """Return what stays visible in the ranges of records, oldest first.

    What one pinned a later one may hide: its range begins there.
    """
    pinned: set[int] = set()
    for record in hiding:
        if record.hidden:
            first, last = record.hidden
            pinned = {place for place in pinned if not first <= place <= last}
        pinned.update(record.pinned)
    return pinned


def hidden(
    connection: Connection,
    session_id: str,
    at: int | None = None,
) -> dict[int, Hidden]:
    """Return the positions that the view of a line hides behind compactions, and since when.

    Raises SessionNotFound, PositionOutOfRange.
    """
    pointer = lines.find(connection, session_id)
    found: dict[int, Hidden] = {}
    for record in active(records(connection, pointer, lines.position(pointer, at))):
        if record.hidden:
            found = _hidden_by(record) | found
            for position in record.pinned:
                found.pop(position, None)
    return dict(sorted(found.items()))


def _hidden_by(record: Compaction) -> dict[int, Hidden]:
    """Return the positions that a record hides, the pinned ones among them included."""
    if not (record.hidden and record.id):
        return {}
    first, last = record.hidden
    since = Hidden(record.id, record.created_at)
    return dict.fromkeys(range(first, last + 1), since)


def history(
    connection: Connection, pointer: Pointer, known: list[Compaction], number: int | None = None
) -> list[Compaction]:
    """Return records of a line as they are given out: with their texts, undone ones marked.

    With a ``number`` only that one.
    """
    undone = _undone(known)
    made = (each for each in known if each.kind != "undo")
    wanted = [each for each in made if number in (None, each.id)]
    written = _written(connection, pointer, [each.summary_number for each in wanted])
    told = (_told(each, written.get(each.summary_number)) for each in wanted)
    return [each._replace(outcome="undone") if each.id in undone else each for each in told]


def _told(record: Compaction, written: Written | None) -> Compaction:
    """Return a record with its summary's texts, where it has any."""
    if written is None:
        return record
    return record._replace(
        summary=written.body,
        title=written.title,
        key_actions=_pairs(written.key_actions),
        file_changes=_pairs(written.file_changes),
    )


def _pairs(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return what a column holds as a JSON array of objects with two texts each, as pairs."""
    objects = decode_as(list, text) if text else []
    try:
        return tuple((first, second) for first, second in map(dict.values, objects))
    except (TypeError, ValueError) as error:
        raise Damaged(f"a compaction's record holds {text!r:.60}; {VERIFY}") from error


def _undone(known: list[Compaction]) -> set[int | None]:
    return {record.undoes for record in known if record.kind == "undo"}


def _standing(hiding: list[Compaction]) -> list[Standing]:
    """Return the summaries that stand, without their texts."""
    standing: list[Standing] = []
    for each in _summaries(hiding):
        while standing and standing[-1].first >= each.first:
            standing.pop()  # a later one takes the place of those whose positions it covers
        standing.append(each)
    return standing


def _with_told_ranges(connection: Connection, pointer: Pointer, left: Visible) -> Visible:
    """Return what is visible with the texts that stand for ranges."""
    standing = _with_texts(connection, pointer, summaries_of(left.ranges))
    told = {each.compaction: each for each in standing}
    ranges = (each._replace(summary=told.get(each.compaction)) for each in left.ranges)
    return left._replace(ranges=tuple(ranges))


def _range(record: Compaction) -> Range:
    """Return the range of a record, without its summary's texts."""
    first, last = record.hidden or (0, 0)
    return Range(first, last, record.id, next(_summaries([record]), None))


def _with_texts(
    connection: Connection, pointer: Pointer, standing: Sequence[Standing]
) -> tuple[Standing, ...]:
    """Return summaries with their texts."""
    if not standing:
        return ()
    numbers = json.dumps([each.number for each in standing])
    rows = TEXTS.rows(connection, tree_id=pointer.tree_id, numbers=numbers)
    shown = RowsByKey({number: Texts(*texts) for number, *texts in rows})
    return tuple(each._replace(**shown[each.number]._asdict()) for each in standing)


def _summaries(hiding: list[Compaction]) -> Iterator[Standing]:
    """Yield the summary of each record that has one, without its texts."""
    for record in hiding:
        if record.summary_number is not None:
            _, last = record.hidden or (0, 0)
            first = record.stands_from or 1
            yield Standing(record.summary_number, record.id, first, last, "", None)


def _written(
    connection: Connection, pointer: Pointer, numbers: list[int | None]
) -> dict[int | None, Written]:
    """Return what is written of summaries by their numbers."""
    if not any(numbers):
        return {}
    rows = WRITTEN.rows(connection, tree_id=pointer.tree_id, numbers=json.dumps(numbers))
    return RowsByKey({number: Written(*texts) for number, *texts in rows})
