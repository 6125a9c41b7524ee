"""The visible set of a line, which its compactions leave, and the context of one view of it.

**Records that count.** A compaction marks no message. It writes a record with the place where it
was made: the branch, and the position of the head. Whether the record counts is decided for each
line from these two alone:

- It was made on the line, at or before its head. A line is made of parts, each a branch up to a
  position; the record must lie on one of these branches, with a head not beyond that part. So a
  rewind to before the record brings the messages back, undoing the rewind hides them again, and a
  fork keeps the messages hidden that were hidden in its past. Nothing is written at these moments.
- It existed when the line left the branch. Head and branch alone cannot tell that: a fork at
  position 10 is made, then the parent compacts with its head still at 10. The position is in the
  past of both, the compaction only in that of the parent. So a branch keeps in ``records_seen``
  the newest record at the time it was made, and a line counts no later one of its ancestors.

A record that counts is active if it was applied and not undone. An undo is a record too, and counts
by the same two rules: messages shown again by an undo on one branch are still hidden on another.

**A prefix, and ranges after it.** A compaction hides a prefix: from one position on everything is
kept, and before it only pinned messages stay. The summaries of the prefix replace the others; a
summary that includes an earlier one covers its positions and replaces it.

A record of the kind ``hide`` hides a range that a caller named, anywhere after the prefix: a hole
in the kept messages, with a text or nothing in its place. A later range may include an earlier one,
but never only a part of it, since hiding a part hides the whole. It then replaces the earlier one,
and undoing it brings that back. A prefix that grows over a range covers it: the text of the range
is part of the summary of the prefix, and is not shown separately. Undoing the prefix brings the
range back. Neither needs a write, because the visible set is always computed from the records. So
it has all ranges, and its `holes` are those that are still shown.

**Records are read once.** A long session has hundreds of records, and every view and check needs
all of them. So only the numbers and outcomes of those that count are read each time. A record
itself is read if its number is new or its outcome differs, since an ended record never changes. An
erasure removes records, and a number may be used again, so the cached records of a tree are valid
until one of its parts is erased (`ViewCache`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from sys import intern
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, and_, bindparam, select

from ..database import (
    Row,
    RowsByKey,
    Statement,
    compaction_records,
    measure_bytes,
    select_positions,
    summaries,
)
from ..errors import VERIFY_HINT, Damaged
from ..history import (
    LastRequest,
    Line,
    Pointer,
    Segment,
    TreeState,
    Validity,
    ViewCache,
    build_line_branches,
    facts,
    find_last_usage,
    lines,
    load_kinds_json,
    load_totals,
    load_tree_state,
    match_visible_records,
)
from ..messages import Message, decode_as
from ..policy import Policy
from ..records import Compaction, Hidden

PositionRange = tuple[int, int]
"""Positions, from the first to the last."""
CachedRecords = dict[int, Compaction]
"""Records of a tree by their numbers."""


class RecordOutcome(NamedTuple):
    """The number of a record that counts on a line, and its outcome until now."""

    number: int
    outcome: str


class SummaryTexts(NamedTuple):
    """The texts of a summary for the report on its compaction; the lists are JSON."""

    title: str | None
    body: str
    key_actions: str | None
    file_changes: str | None


class ActiveSummary(NamedTuple):
    """A summary that a view shows for ``first`` to ``last``, with the facts sent with it.

    ``notice`` is the end of a body that says why there is no summary.
    """

    number: int
    compaction: int | None
    first: int
    last: int
    body: str
    facts: str | None
    notice: str | None = None

    def message(self, policy: Policy) -> Message:
        """Return the message that a view sends."""
        return build_summary_message(self.body, self.facts, policy)

    @property
    def reason(self) -> str:
        """The reason in the summary's entry of a view."""
        return f"stands for positions {self.first} to {self.last}, compaction {self.compaction}"


class HiddenRange(NamedTuple):
    """Positions that a caller hid, and the summary in their place, if any."""

    first: int
    last: int
    compaction: int | None
    summary: ActiveSummary | None = None

    @property
    def size(self) -> int:
        """How many messages are hidden."""
        return self.last - self.first + 1

    def holds(self, position: int) -> bool:
        """Tell whether a position is hidden."""
        return self.first <= position <= self.last

    def covers(self, other: HiddenRange) -> bool:
        """Tell whether every position of another range is hidden."""
        return self.first <= other.first and other.last <= self.last


class VisibleSet(NamedTuple):
    """The visible part of a line: pinned positions, summaries, then all from ``first_kept`` on.

    Except the ``ranges`` that callers hid: in order, none within another. ``cleared`` names the
    rule of each result that a recorded clearing replaces, by its position.
    """

    first_kept: int
    pinned: tuple[int, ...]
    summaries: tuple[ActiveSummary, ...]
    cleared: dict[int, str]
    ranges: tuple[HiddenRange, ...] = ()

    @property
    def holes(self) -> tuple[HiddenRange, ...]:
        """The ranges among the kept positions."""
        if not self.ranges:
            return ()
        return tuple(each for each in self.ranges if each.last >= self.first_kept)

    @property
    def active_summaries(self) -> tuple[ActiveSummary, ...]:
        """All active summaries: those of the prefix, then those of the holes."""
        if not self.ranges:
            return self.summaries
        return (*self.summaries, *list_range_summaries(self.holes))

    def hide_before(
        self, first_kept: int, pinned: Iterable[int], released: Iterable[int] = ()
    ) -> VisibleSet:
        """Return the set with all before a position hidden too, except the pinned positions.

        The ``released`` positions are no longer pinned, and are hidden too.
        """
        places = {*self.pinned, *pinned} - {*released}
        return self._replace(first_kept=first_kept, pinned=tuple(sorted(places)))

    def hide_range(self, later: HiddenRange) -> VisibleSet:
        """Return the set with a range hidden too, which replaces the ranges within it."""
        others = (each for each in self.ranges if not later.covers(each))
        return self._replace(ranges=tuple(sorted((*others, later))))

    def shows(self, position: int) -> bool:
        """Tell whether no range hides a position."""
        return not any(each.holds(position) for each in self.ranges)

    def shown_ranges(self, first: int, last: int) -> Iterator[PositionRange]:
        """Yield the positions between the hidden ranges as ranges, in order."""
        for each in self.ranges:
            if each.first > last:
                break
            if first < each.first:
                yield first, each.first - 1
            first = max(first, each.last + 1)
        if first <= last:
            yield first, last

    def find_hole(self, cut: int) -> HiddenRange | None:
        """Return the hole that a cut before a position would fall into."""
        around = (each for each in self.holes if each.first < cut <= each.last)
        return next(around, None)


_records_line = build_line_branches()
_records_tree: BindParameter[int] = bindparam("tree_id")
_c, _s = compaction_records, summaries
RECORD_OUTCOMES = Statement(
    select(_c.c.compaction, _c.c.outcome)
    .select_from(_records_line)
    .join(_c, match_visible_records(_records_line))
    .order_by(_c.c.compaction),
    row=RecordOutcome,
)
_RECORD_COLUMNS = (
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
_RECORD_COLUMN_NAMES = [column.name for column in _RECORD_COLUMNS]
RECORDS = Statement(
    select(*_RECORD_COLUMNS)
    .select_from(_c)
    .outerjoin(_s, (_s.c.tree_id == _records_tree) & (_s.c.summary == _c.c.summary))
    .where(_c.c.tree_id == _records_tree)
    .where(_c.c.compaction.in_(select_positions("numbers")))
)
_is_wanted_summary = and_(
    _s.c.tree_id == _records_tree, _s.c.summary.in_(select_positions("numbers"))
)
REPORTED_SUMMARY_TEXTS = Statement(
    select(_s.c.summary, *(_s.c[name] for name in SummaryTexts._fields)).where(_is_wanted_summary)
)
ACTIVE_SUMMARY_TEXTS = Statement(
    select(_s.c.summary, *(_s.c[name] for name in ("body", "facts", "notice"))).where(
        _is_wanted_summary
    )
)
"""Apart from the records: a line has many, and few of their summaries are active."""


CACHED_RECORDS = ("records",)
"""The name of a tree's compactions in its cache."""


def load_records(
    connection: Connection,
    pointer: Pointer,
    last: int,
    cache: ViewCache | None = None,
    state: TreeState | None = None,
) -> list[Compaction]:
    """Return the records that count on a line up to a position, oldest first, undos included.

    They are as recorded: an undone one has the outcome ``applied``, and no texts are read. With
    the ``cache`` of the tree only new records are read; a writer adds none to it.
    """
    tree_id = pointer.tree_id
    state = state or load_tree_state(connection, tree_id)
    if not state.has_records:
        return []
    counting = RECORD_OUTCOMES.rows(connection, **pointer.line, last=last, newest=pointer.newest)
    known: CachedRecords = (cache.load(CACHED_RECORDS) if cache else None) or {}
    new = [
        each.number
        for each in counting
        if (record := known.get(each.number)) is None or record.outcome != each.outcome
    ]
    if new:
        rows = RECORDS.rows(connection, tree_id=tree_id, numbers=json.dumps(new))
        known = known | {row[0]: _parse_record(row) for row in rows}
        if cache and cache.is_enabled:
            cache.save(CACHED_RECORDS, known, measure_bytes(known))
    return [known[each.number] for each in counting]


def _parse_record(row: Row) -> Compaction:
    """Return a row of `RECORDS` as a record, without its texts."""
    stored = dict(zip(_RECORD_COLUMN_NAMES, row, strict=True))
    hidden = (stored.pop("hidden_first"), stored.pop("hidden_last"))
    pinned = _decode_array(stored.pop("pinned"))
    cleared = _decode_array(stored.pop("cleared"))
    return Compaction(
        hidden=None if None in hidden else hidden,
        pinned=tuple(pinned),
        cleared=tuple(map(tuple, cleared)),
        **stored,
    )


def _decode_array(text: str | None) -> list[Any]:
    """Return the JSON array of a column, [] for NULL."""
    return decode_as(list, text) if text else []


def select_active_records(records: list[Compaction]) -> list[Compaction]:
    """Return the active records: applied, and not undone."""
    undone = _list_undone_numbers(records)
    return [
        record
        for record in records
        if record.kind != "undo" and record.outcome == "applied" and record.id not in undone
    ]


def _list_undone_numbers(records: list[Compaction]) -> set[int | None]:
    return {record.undoes for record in records if record.kind == "undo"}


def load_visible_set(connection: Connection, pointer: Pointer, last: int) -> VisibleSet:
    """Return the visible set of a line up to a position."""
    records = load_records(connection, pointer, last)
    return build_visible_set(connection, pointer, select_active_records(records))


def build_visible_set(
    connection: Connection, pointer: Pointer, records: list[Compaction]
) -> VisibleSet:
    """Return the visible set of a line from its active records, with the texts of summaries."""
    hiding = [record for record in records if record.kind == "summary"]
    first_kept = max((record.first_kept or 1 for record in hiding), default=1)
    pinned: set[int] = set()
    for record in hiding:  # oldest first: a later one may hide what an earlier one pinned
        if record.hidden:
            first, last = record.hidden
            pinned = {place for place in pinned if not first <= place <= last}
        pinned.update(record.pinned)
    active: list[ActiveSummary] = []
    for summary in filter(None, map(_build_record_summary, hiding)):
        while active and active[-1].first >= summary.first:
            active.pop()  # a later one takes the place of those whose positions it covers
        active.append(summary)
    if active:
        facts.send_totals(Line(connection, pointer), first_kept - 1)
    visible = VisibleSet(
        first_kept,
        tuple(sorted(place for place in pinned if place < first_kept)),
        _load_active_texts(connection, pointer, active),
        dict(chain.from_iterable(record.cleared for record in records)),
    )
    for record in records:
        if record.kind == "hide":
            first, last = record.hidden or (0, 0)
            hidden_range = HiddenRange(first, last, record.id, _build_record_summary(record))
            visible = visible.hide_range(hidden_range)
    if not visible.ranges:
        return visible
    loaded = _load_active_texts(connection, pointer, list_range_summaries(visible.ranges))
    by_compaction = {each.compaction: each for each in loaded}
    ranges = (each._replace(summary=by_compaction.get(each.compaction)) for each in visible.ranges)
    return visible._replace(ranges=tuple(ranges))


def _build_record_summary(record: Compaction) -> ActiveSummary | None:
    """Return the summary of a record without its texts, if it has one."""
    if record.summary_number is None:
        return None
    _, last = record.hidden or (0, 0)
    first = record.stands_from or 1
    return ActiveSummary(record.summary_number, record.id, first, last, "", None)


def _load_active_texts(
    connection: Connection, pointer: Pointer, active: Sequence[ActiveSummary]
) -> tuple[ActiveSummary, ...]:
    """Return summaries with their texts."""
    if not active:
        return ()
    numbers = json.dumps([each.number for each in active])
    rows = ACTIVE_SUMMARY_TEXTS.rows(connection, tree_id=pointer.tree_id, numbers=numbers)
    texts = RowsByKey({number: (body, facts, notice) for number, body, facts, notice in rows})
    loaded = []
    for each in active:
        body, facts, notice = texts[each.number]
        loaded.append(each._replace(body=body, facts=facts, notice=notice))
    return tuple(loaded)


def hidden(
    connection: Connection,
    session_id: str,
    at: int | None = None,
) -> dict[int, Hidden]:
    """Return the positions that compactions hide in the view of a line, and since when.

    Raises SessionNotFound, PositionOutOfRange.
    """
    pointer = lines.load_pointer(connection, session_id)
    records = select_active_records(
        load_records(connection, pointer, lines.resolve_position(pointer, at))
    )
    found: dict[int, Hidden] = {}
    for record in records:
        if not record.hidden:
            continue
        if record.id:
            first, last = record.hidden
            # The line bounds the range of a damaged record.
            places = range(max(1, first), min(last, pointer.head) + 1)
            found = dict.fromkeys(places, Hidden(record.id, record.created_at)) | found
        for position in record.pinned:
            found.pop(position, None)
    return dict(sorted(found.items()))


def describe_records(
    connection: Connection, pointer: Pointer, records: list[Compaction], number: int | None = None
) -> list[Compaction]:
    """Return the records of a line as a caller sees them: with their texts, undone ones marked.

    With a ``number`` only that one.
    """
    undone = _list_undone_numbers(records)
    wanted = [each for each in records if each.kind != "undo" and number in (None, each.id)]
    numbers = [each.summary_number for each in wanted]
    texts: dict[int | None, SummaryTexts] = {}
    if any(numbers):
        values = {"tree_id": pointer.tree_id, "numbers": json.dumps(numbers)}
        rows = REPORTED_SUMMARY_TEXTS.rows(connection, **values)
        texts = RowsByKey({number: SummaryTexts(*columns) for number, *columns in rows})
    described = []
    for record in wanted:
        changes: dict[str, Any] = {"outcome": "undone"} if record.id in undone else {}
        if of_summary := texts.get(record.summary_number):
            changes["summary"] = of_summary.body
            changes["title"] = of_summary.title
            changes["key_actions"] = _decode_pairs(of_summary.key_actions)
            changes["file_changes"] = _decode_pairs(of_summary.file_changes)
        described.append(record._replace(**changes))
    return described


def _decode_pairs(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return a column's JSON array of objects with two texts each, as pairs."""
    objects = _decode_array(text)
    try:
        return tuple((first, second) for first, second in map(dict.values, objects))
    except (TypeError, ValueError) as error:
        raise Damaged(f"a compaction's record holds {text!r:.60}; {VERIFY_HINT}") from error


def list_range_summaries(ranges: Iterable[HiddenRange]) -> tuple[ActiveSummary, ...]:
    """Return the summaries in the places of ranges."""
    return tuple(each.summary for each in ranges if each.summary)


def build_summary_message(text: str, facts: str | None, policy: Policy) -> Message:
    """Return a summary and its facts as the message that a view sends.

    With ``summary_role="merge"`` the message is a system message.
    """
    notice = policy.recall_notice if policy.recall else None
    body = "\n\n".join(filter(None, (text, facts, notice)))
    content = "\n".join(filter(None, (policy.summary_heading, body)))
    role = "system" if policy.summary_role == "merge" else policy.summary_role
    return {"role": role, "content": content}


class ViewSight(NamedTuple):
    """The values of a look by which its messages are rendered and explained, without its rows."""

    policy: Policy
    visible: VisibleSet
    last: int
    now: int
    records: list[Compaction]


class ViewContext(NamedTuple):
    """A line as a policy sees it up to position ``last`` at a moment, ``now`` in ms.

    ``records`` are the compactions that count on the line, ``visible`` is the part that they leave.
    ``turn_over``: a new turn begins after ``last``, so the turn of ``last`` is finished. The
    verdicts of the rules, the cost of a view and the view itself all follow from these values.
    ``cache`` has what an open store keeps of the tree, ``state`` tells what there is.
    """

    connection: Connection
    pointer: Pointer
    policy: Policy
    records: list[Compaction]
    visible: VisibleSet
    last: int
    now: int
    turn_over: bool
    cache: ViewCache
    state: TreeState

    @property
    def line(self) -> dict[str, int]:
        """The values by which statements name the line."""
        return self.pointer.line

    @property
    def sight(self) -> ViewSight:
        """The look without its connection."""
        return ViewSight(self.policy, self.visible, self.last, self.now, self.records)

    @property
    def raw(self) -> Line:
        """The line itself, hidden positions included."""
        return Line(self.connection, self.pointer)

    def runs(self, first: int, last: int) -> list[Segment]:
        """Return the runs that hold the positions ``first`` to ``last`` of the line, in order."""
        memo, key = self.cache.memo, ("runs", first, last)
        if key not in memo:
            memo[key] = self.raw.runs(first, last)
        return [*memo[key]]

    def shown(self, first: int, last: int) -> list[Segment]:
        """Return the runs of the positions ``first`` to ``last`` that no range hides."""
        runs = (self.runs(*span) for span in self.visible.shown_ranges(first, last))
        return [*chain.from_iterable(runs)]

    def load_tokens(self, position: int) -> int:
        """Return the estimated tokens, as stored, of the line up to a position."""
        memo, key = self.cache.memo, ("tokens", position)
        if key not in memo:
            memo[key] = load_totals(self.raw, position).tokens
        return int(memo[key])

    def load_last_request(self) -> LastRequest | None:
        """Return the last usage that the session can see, recorded up to the look's position."""
        return find_last_usage(self.raw, self.last) if self.state.has_usages else None

    def visible_runs(self) -> list[Segment]:
        """Return the visible runs: the pinned positions, then the kept ones."""
        places = (place for place in self.visible.pinned if place <= self.last)
        pinned = (self.runs(place, place) for place in places)
        kept = self.shown(self.visible.first_kept, self.last)
        return [*chain.from_iterable(pinned), *kept]

    def told(self, first: int, last: int) -> list[dict[str, int]]:
        """Return the runs of `shown` as the values by which statements name them."""
        return [run.within(self.pointer.tree_id) for run in self.shown(first, last)]

    def build_cache_name(self, *purpose: str) -> tuple[Hashable, ...]:
        """Return the name of a value of the line by its policy, for a purpose."""
        # The text of a policy is larger than a short session: one object serves all names.
        memo, key = self.cache.memo, ("policy", id(self.policy))
        if key not in memo:  # with the policy, whose id is no other's as long as it lives
            memo[key] = (self.policy, intern(self.policy.model_dump_json()))
        return (self.pointer.branch, *purpose, memo[key][1])

    def load_validity(self) -> Validity:
        """Return what a cached view of the line depends on besides its policy and moment.

        Recorded clearings are left out: verdicts remember by which of them they were settled.
        """
        changes, root = self.cache.of_rows.changes, self.pointer.project_root
        return Validity(changes, root, self.load_kinds(), self.visible._replace(cleared={}))

    def load_kinds(self) -> str:
        """Return the kinds of tools in force, as JSON."""
        memo, key = self.cache.memo, ("kinds",)
        if key not in memo:
            memo[key] = load_kinds_json(self.connection)
        return str(memo[key])


def load_view_context(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    *,
    last: int,
    now: int,
    turn_over: bool = False,
    records: Collection[int] | None = None,
    state: TreeState | None = None,
) -> ViewContext:
    """Return a look at a line up to a position, with the visible set that its compactions leave.

    ``records`` are the numbers of those that count (None: all that are there by now).
    """
    state = state or load_tree_state(connection, pointer.tree_id)
    cache = ViewCache(connection, pointer.tree_id, state)
    known = load_records(connection, pointer, last, cache, state)
    if records is not None:
        known = [each for each in known if each.id in records]
    visible = build_visible_set(connection, pointer, select_active_records(known))
    at = (last, now, turn_over)
    return ViewContext(connection, pointer, policy, known, visible, *at, cache, state)
