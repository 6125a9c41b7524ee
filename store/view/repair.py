"""Calls and results in pairs, at render time: nothing stored is touched, every repair is said.

Providers refuse a request in which a tool call has no result, a result no call, or something stands
between them. Here each assistant message is followed at once by one result for each of its calls,
in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from ..formats import ApiCall, Placed, continues, foreign_kinds
from ..messages import UNKNOWN_TOOL, WIRE, Message, content_text
from ..policy import Policy
from ..ready import phrase
from .spoken import text_of


class Item(NamedTuple):
    """A message of the line as the rules left it.

    ``call`` is the position of the call that a result answers, ``calls`` are those of an assistant
    that can be sent, ``sound`` is its content where nothing in that has to be mended.
    """

    seq: int
    message: Message
    call: tuple[int, int] | None = None
    tool_name: str | None = None
    calls: tuple[ApiCall, ...] = ()
    sound: str | None = None


new_item: Callable[[tuple[Any, ...]], Item] = partial(tuple.__new__, Item)
"""Makes one of its fields; without a step of Python, for there may be thousands."""


class Stretch(NamedTuple):
    """Where a stretch begins: at which position, and at which place among what was made."""

    seq: int
    begin: int


class Arranged(NamedTuple):
    """The messages of a line, each in its place, and the stretches that they fall into.

    ``loose`` is the place of the first stretch that may become something else.
    """

    placed: list[Placed]
    stretches: list[Stretch]
    loose: int


def arrange(
    items: list[Item],
    policy: Policy,
    *,
    turn_over: bool = False,
) -> Arranged:
    """Return the messages so that calls and results are paired, adjacent and in order.

    ``turn_over``: a new turn begins behind them, so none of theirs is open.
    """
    return _Pairing(items, policy, turn_over).arranged()


class _Pairing:
    """Messages on their way into their places; of the answer just placed, the calls that wait."""

    def __init__(self, items: list[Item], policy: Policy, turn_over: bool) -> None:
        self._items, self._policy = items, policy
        self._continued = _continued(items)
        self._results = {item.call: place for place, item in enumerate(items) if item.call}
        self._sent = _sent(items) if policy.orphans == "adopt" else None
        self._running = open_turn(items)
        self._open_from = items[-1].seq if turn_over and items else self._running
        self._placed: list[Placed] = []
        self._stretches: list[Stretch] = []
        self._waiting: list[tuple[int, ApiCall]] = []
        self._loose: int | None = None
        self._reach = -1

    def arranged(self) -> Arranged:
        """Return the messages in their places."""
        continued, waiting = self._continued, self._waiting
        placed, stretches = self._placed, self._stretches
        for place, item in enumerate(self._items):
            seq, message, call, tool_name, calls, sound = item
            if place > self._reach:
                self._reach = place
                if place not in continued:
                    stretches.append(Stretch(seq, len(placed)))
            if calls:
                self._say(item)
            elif message["role"] != "tool":
                placed.append(Placed(seq, message, None, (), None, sound))
            elif self._sent is not None and call not in self._sent:
                placed += _adopt(seq, message, tool_name)
            if waiting and place + 1 not in continued:
                self._answer(place)
        loose = len(stretches) - 1 if self._loose is None else self._loose
        return Arranged(placed, stretches, loose)

    def _say(self, item: Item) -> None:
        """Place an assistant message with the calls that are sent, if anything is left of it."""
        seq, message, _, _, calls, sound = item
        self._waiting += [(seq, call) for call in calls]
        sent, repair = calls, None
        if self._policy.unanswered == "drop":
            sent = tuple(each for each in calls if (seq, each.position) in self._results)
            repair = _dropped(len(calls) - len(sent))
        if sent or message.get("content"):
            self._placed.append(Placed(seq, message, repair, sent, None, sound))

    def _answer(self, place: int) -> None:
        """Place the results of an answer's calls behind it; its last message is at a place."""
        items, results, placed = self._items, self._results, self._placed
        for calling, call in self._waiting:
            found = results.get((calling, call.position))
            if found is None:
                self._leave(calling, call)
                continue
            place += 1
            if found > self._reach:
                self._reach = found
            seq, message, _, _, _, sound = items[found]
            repair = None if found == place else "moved to its call"
            placed.append(Placed(seq, message, repair, (), call.id, sound))
        self._waiting.clear()

    def _leave(self, seq: int, call: ApiCall) -> None:
        """Leave a call without a result: what it is in may become something else while it runs."""
        if self._loose is None and seq > self._running:
            self._loose = len(self._stretches) - 1
        if self._unanswered(seq) == "synthetic":
            self._placed.append(_made_up(call, self._policy))

    def _unanswered(self, seq: int) -> str:
        """Return what becomes of unanswered calls; nothing answers those of finished turns."""
        if seq <= self._open_from and self._policy.unanswered == "keep":
            return "synthetic"
        return self._policy.unanswered


def _sent(items: list[Item]) -> set[tuple[int, int] | None]:
    """Return the positions of the calls that can be sent."""
    return {(item.seq, call.position) for item in items for call in item.calls}


def _continued(items: list[Item]) -> set[int]:
    """Return the places of the messages that are one answer with the message before."""
    return {
        place
        for place, item in enumerate(items)
        if WIRE in item.message and place and _goes_on(items[place - 1], item)
    }


def _goes_on(before: Item, item: Item) -> bool:
    return before.message["role"] == "assistant" and continues(item.message)


def open_turn(items: list[Item]) -> int:
    """Return the position of the last user message, 0 where there is none."""
    newest_first = reversed(items)
    users = (item.seq for item in newest_first if item.message.get("role") == "user")
    return next(users, 0)


def _dropped(calls: int) -> str | None:
    return f"{calls} calls without result left out" if calls else None


def _made_up(call: ApiCall, policy: Policy) -> Placed:
    """Return a result for a call that has none."""
    text = phrase("no_result", policy.language)
    message = {"role": "tool", "tool_call_id": call.id, "content": text}
    return Placed(None, message, f"call {call.id} has no result", (), call.id)


def _adopt(seq: int, message: Message, tool_name: str | None) -> Iterable[Placed]:
    """Return a result without call behind a call made up for it."""
    call_id = text_of(message, "tool_call_id") or f"call_{seq}"
    name = tool_name or text_of(message, "name") or UNKNOWN_TOOL
    call = ApiCall(0, call_id, name, "{}")
    repair = f"the result at {seq} has no call"
    return (
        Placed(None, _message_with(call), repair, (call,)),
        Placed(seq, message, None, (), call_id),
    )


def _message_with(call: ApiCall) -> Message:
    """Return an assistant message that says nothing but one call."""
    function = {"name": call.name, "arguments": call.arguments}
    made = {"id": call.id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def reported(placed: list[Placed]) -> list[Placed]:
    """Return messages that say which of their parts go out as JSON text, if any do."""
    return [
        each if isinstance(each.message.get("content"), str) else _reported(each) for each in placed
    ]


def _reported(placed: Placed) -> Placed:
    kinds = sorted({*foreign_kinds(placed.message)})
    if not kinds:
        return placed
    said = f"no part of a chat, sent as its JSON text: {', '.join(kinds)}"
    return placed._replace(repair="; ".join(filter(None, (placed.repair, said))))


def merged(placed: list[Placed]) -> list[Placed]:
    """Return the messages with the summaries in the first system message.

    For providers that take only one. It stands where the first of them stood, so that no summary
    comes behind what is newer. Where the view has no system message, the first summary is it.
    """
    summaries = [each for each in placed if each.rule == "summary"]
    if not summaries:
        return placed
    first = next((each for each in placed if _is_system(each)), summaries[0])
    parts = [first, *(each for each in summaries if each is not first)]
    return _with_one_for(placed, parts, _as_one(parts, summaries))


def _with_one_for(
    placed: list[Placed],
    parts: list[Placed],
    one: Placed,
) -> list[Placed]:
    """Return messages with one for several of them, where the first of these stands."""
    gone = {id(each) for each in parts}
    place = next(index for index, each in enumerate(placed) if id(each) in gone)
    left = [each for each in placed if id(each) not in gone]
    return [*left[:place], one, *left[place:]]


def _is_system(placed: Placed) -> bool:
    return placed.message.get("role") == "system" and placed.rule is None


def _as_one(parts: list[Placed], summaries: list[Placed]) -> Placed:
    """Return one message of several: the first, with the texts of the others behind its own."""
    first, *_ = parts
    return first._replace(
        message={**first.message, "content": _texts(parts)},
        repair="; ".join(each.repair or "" for each in summaries),
        rule="summary",
        compaction=summaries[-1].compaction,
    )


def _texts(parts: list[Placed]) -> str:
    return "\n\n".join(content_text(each.message.get("content")) for each in parts)
