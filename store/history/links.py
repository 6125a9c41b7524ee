"""Which call each tool result answers.

Providers join the two by the call's id, but in real conversations ids repeat (some programs count
from zero in every turn), and some are missing. So an id alone says little: a result answers the
nearest earlier call of its line that has the same id (or none, like itself) and that no other
result has answered yet. Where one of the two is redacted, its id may be one that stands for the
other's (`make_neutral_id`), so ids are compared by what stands for them. What the batch being
appended says itself is looked at in memory; only what it leaves open is looked up, and near the end
first, because there the call nearly always is.

A provider may have been sent a call under another id than its own (`store.formats.call_names`), and
a program may store the result under that one. So a result whose id no call has answers the nearest
open call that is sent under it, among those of the last positions before it.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnClause, bindparam, func, literal_column, or_, select

from ..database import Statement, message_facts, tool_calls, tool_results
from ..formats import is_sent_call_id, make_call_id
from ..messages import StoredCall, decode, is_neutral_id, make_neutral_id
from . import lines
from .lines import Line

FIRST_REACH = 8
"""How many positions back a result's call is looked for at first."""
REACH_FACTOR = 16
"""How many times as far each further look goes."""
RENAMED_REACH = 128
"""How many positions before a result an open call is looked for that was sent under its id."""
OBJECT_PREFIXES = ("{", '{"', "{}", "=e")
"""How the JSON of an object begins, as it is or as base64; so no list does, and no text."""
_PREFIX_BOUNDS: tuple[ColumnClause[int], ...] = (literal_column("1"), literal_column("2"))


CallPlace = tuple[int | None, int | None]
"""The position of a call's message, and the place of the call in it."""


class LineCall(NamedTuple):
    """A tool call on the line, as far as its result needs it; ``arguments`` as they went in."""

    seq: int | None
    position: int | None
    name: str | None
    arguments: object
    call_id: str | None

    @property
    def place(self) -> CallPlace:
        """The position of its message, and its own place in it."""
        return self.seq, self.position


NO_CALL = LineCall(None, None, None, None, None)
"""What a result answers that no call of its line asked for."""


class OpenCall(NamedTuple):
    """A call as it is stored, which nothing may have answered."""

    seq: int
    position: int
    name: str | None
    arguments_form: str | None
    arguments: str | None
    call_id: str | None

    @property
    def place(self) -> CallPlace:
        """The position of its message, and its own place in it."""
        return self.seq, self.position

    def given(self) -> LineCall:
        """Return the call as it went in."""
        arguments = restore_arguments(self.arguments_form, self.arguments)
        return LineCall(self.seq, self.position, self.name, arguments, self.call_id)


class AnsweredPlace(NamedTuple):
    """The call that a result has answered."""

    call_seq: int
    call_position: int


_object_start: ColumnClause[str] = literal_column("'{'")
_call_extra = func.coalesce(tool_calls.c.extra, _object_start)
_extra_prefix = func.substr(_call_extra, *_PREFIX_BOUNDS)
_object_prefixes = (f"'{signs}'" for signs in OBJECT_PREFIXES)
_empty_id: ColumnClause[str] = literal_column("''")
IS_CALL = or_(
    tool_calls.c.call_id.is_not(None),
    tool_calls.c.name.is_not(None),
    _extra_prefix.in_([*map(literal_column, _object_prefixes)]),
)
"""A row is a call and not some other JSON in its place, for which nothing can be sent.

What stands behind long arguments is read last.
"""
_run_calls = (
    select(*(tool_calls.c[name] for name in OpenCall._fields))
    .join(
        message_facts,
        (message_facts.c.tree_id == bindparam("tree_id"))
        & (message_facts.c.branch == tool_calls.c.branch)
        & (message_facts.c.seq == tool_calls.c.seq),
    )
    .where(
        lines.match_run(tool_calls),
        IS_CALL,
        message_facts.c.role == literal_column("'assistant'"),
    )
    .order_by(tool_calls.c.seq.desc(), tool_calls.c.position)
)
_has_call_id = func.coalesce(tool_calls.c.call_id, _empty_id).in_(
    (bindparam("call_id"), bindparam("neutral_id"))
)
OPEN_CALLS = Statement(_run_calls.where(_has_call_id), row=OpenCall)
RUN_CALLS = Statement(_run_calls, row=OpenCall)
ANSWERED_PLACES = Statement(
    select(tool_results.c.call_seq, tool_results.c.call_position).where(
        lines.match_run(tool_results), tool_results.c.call_seq.is_not(None)
    ),
    row=AnsweredPlace,
)


class CallLinker:
    """The open calls of a line: those of a batch in memory, older ones looked up nearest first."""

    def __init__(self, line: Line, last: int) -> None:
        self._line, self._last = line, last
        self._offered: dict[str, list[LineCall]] = {}
        self._taken: set[CallPlace] = set()

    def offer(self, seq: int, calls: tuple[StoredCall, ...]) -> None:
        """Add the calls of a message of the batch.

        Of two with one id in it, the first is answered first.
        """
        for position in range(len(calls) - 1, -1, -1):
            call = calls[position]
            if (
                call.extra is None or call.extra[:2] in OBJECT_PREFIXES
            ):  # nothing can be sent for an entry that is none
                offered = self._offered.setdefault(_get_pairing_id(call.call_id), [])
                arguments = restore_arguments(call.arguments_form, call.arguments)
                offered.append(LineCall(seq, position, call.name, arguments, call.call_id))

    def answer(self, call_id: str, seq: int) -> LineCall | None:
        """Return the call that a result with this id at a position answers, and close it."""
        offered = self._offered.get(_get_pairing_id(call_id))
        if offered:
            return offered.pop()
        found = self._look_back(call_id)
        if found is None and call_id:
            found = self._sent_as(call_id, max(1, seq - RENAMED_REACH))
        if found:
            self._taken.add(found.place)
        return found

    def _sent_as(self, sent: str, since: int) -> LineCall | None:
        """Return the newest open call after a position that was sent under an id."""
        open_calls = ((key, calls[-1]) for key, calls in self._offered.items() if calls)
        fitting = [
            (call.seq or 0, -(call.position or 0), key)
            for key, call in open_calls
            if (call.seq or 0) >= since and _is_sent_as(sent, call)
        ]
        if fitting:
            *_, key = max(fitting)
            return self._offered[key].pop()
        return self._look_for_sent(sent, since)

    def _look_for_sent(self, sent: str, since: int) -> LineCall | None:
        for run in reversed(self._line.ranges(since, self._last)):
            found = RUN_CALLS.rows(self._line.connection, **run)
            fitting = [each for each in found if _is_sent_as(sent, each)]
            call = self._unanswered(fitting) if fitting else None
            if call:
                return call.given()
        return None

    def _look_back(self, call_id: str) -> LineCall | None:
        last, reach = self._last, FIRST_REACH
        while last > 0:
            first = max(1, self._last - reach + 1)
            found = self._look(call_id, first, last)
            if found:
                return found
            last, reach = first - 1, reach * REACH_FACTOR
        return None

    def _look(self, call_id: str, first: int, last: int) -> LineCall | None:
        """Look for an open call among the positions first to last."""
        for run in reversed(self._line.ranges(first, last)):
            found = self._with_id(call_id, run)
            call = self._unanswered(found) if found else None
            if call:
                return call.given()
        return None

    def _with_id(self, call_id: str, run: dict[str, int]) -> list[OpenCall]:
        """Return the calls of a run that have an id, or what stands for it."""
        connection, neutral = self._line.connection, _get_pairing_id(call_id)
        if not is_neutral_id(call_id):
            return OPEN_CALLS.rows(connection, **run, call_id=call_id, neutral_id=neutral)
        calls = RUN_CALLS.rows(connection, **run)
        return [each for each in calls if _get_pairing_id(each.call_id) == neutral]

    def _unanswered(self, found: list[OpenCall]) -> OpenCall | None:
        """Return the first call that nothing has answered; the last one found is the earliest."""
        answered = self._answered(found[-1].seq)
        for call in found:
            if call.place not in answered:
                return call
        return None

    def _answered(self, since: int) -> set[CallPlace]:
        """Return the calls that results after a position have answered."""
        answered = set(self._taken)
        for run in self._line.ranges(since, self._last):
            answered.update(ANSWERED_PLACES.scan(self._line.connection, **run))
        return answered


def _get_pairing_id(call_id: str | None) -> str:
    """Return what an id is compared by: that of a redacted message stands for the one it had."""
    return make_neutral_id(call_id) if call_id else ""


def _is_sent_as(sent: str, call: LineCall | OpenCall) -> bool:
    """Tell whether a call is sent under an id: for its own, or where it has none or another's."""
    if sent == make_call_id(call.seq or 0, call.position or 0):
        return True
    return bool(call.call_id) and is_sent_call_id(sent, call.call_id or "")


def restore_arguments(form: str | None, arguments: str | None) -> object:
    """Return a call's arguments as they went in: a text, or the value given in its place."""
    if form == "json" and arguments is not None:
        return decode(arguments)
    return arguments
