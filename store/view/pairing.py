"""Pairing of calls and results when a view is built; nothing stored is changed.

Providers refuse a request in which a call has no result, a result has no call, or another message
comes between them. Here each assistant message is followed at once by one result for each of its
calls, in order. The entry of a message names each repair.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..formats import (
    ApiCall,
    PlacedMessage,
    is_continuing_item,
    list_foreign_types,
    make_api_call,
    make_call_id,
)
from ..history import CALLS_IN_RUN
from ..messages import UNKNOWN_TOOL, WIRE_KEY, Message, extract_content_text, join_call
from ..policy import Policy
from ..ready import render_phrase
from ..text import is_text


class MessageCalls(NamedTuple):
    """The calls of a message as stored, and the sendable ones among them by id."""

    stored: list[Any] | None
    sendable: dict[str, ApiCall]

    @property
    def calls(self) -> tuple[ApiCall, ...]:
        """The calls that can be sent, in order."""
        return (*self.sendable.values(),)


NO_CALLS = MessageCalls(None, {})
"""The value for a message without calls."""


def load_message_calls(connection: Connection, run: dict[str, int]) -> dict[int, MessageCalls]:
    """Return the calls of a run's messages, by position.

    A call in the usual shape needs no check of its texts: columns hold only text that can be sent.
    """
    calls: dict[int, MessageCalls] = {}
    for seq, call_id, name, form, arguments, extra in CALLS_IN_RUN.rows(connection, **run):
        if seq not in calls:
            stored: list[Any] = []
            sendable: dict[str, ApiCall] = {}
            calls[seq] = MessageCalls(stored, sendable)
        call = join_call(call_id, name, form, arguments, extra)
        if extra is None and call_id and name and call_id not in sendable:
            sendable[call_id] = make_api_call((len(stored), call_id, name, arguments))
        else:
            _add_sendable(sendable, seq, len(stored), call)
        stored.append(call)
    return calls


def select_sendable_calls(seq: int, stored: list[Any]) -> tuple[ApiCall, ...]:
    """Return the calls of the message at a position that can be sent.

    The id of each is unique in the message.
    """
    sendable: dict[str, ApiCall] = {}
    for position, call in enumerate(stored):
        _add_sendable(sendable, seq, position, call)
    return (*sendable.values(),)


def _add_sendable(sendable: dict[str, ApiCall], seq: int, position: int, call: Any) -> None:
    """Add a call to the sendable calls of its message, under a unique id."""
    if not isinstance(call, dict):
        return
    call_id = get_sendable_text(call, "id")
    if call_id is None or call_id in sendable:
        call_id = make_call_id(seq, position)
        while call_id in sendable:
            call_id += "_"
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    name = get_sendable_text(function, "name") or UNKNOWN_TOOL
    sendable[call_id] = ApiCall(position, call_id, name, function.get("arguments"))


def get_sendable_text(message: Message, key: str) -> str | None:
    """Return the text under a key if it can be sent unchanged.

    Other texts are not repaired: different ids must not become one id.
    """
    value = message.get(key)
    return value if value and is_text(value) else None


class LineMessage(NamedTuple):
    """A message of the line after the rules were applied.

    ``call`` is the place of the call that a result answers, ``calls`` are the sendable calls of an
    assistant, ``sound`` is the content if no part of it needs a repair.
    """

    seq: int
    message: Message
    call: tuple[int, int] | None = None
    tool_name: str | None = None
    calls: tuple[ApiCall, ...] = ()
    sound: str | None = None


make_line_message: Callable[[tuple[Any, ...]], LineMessage] = partial(tuple.__new__, LineMessage)
"""Builds a message from its fields, in C because there may be thousands."""


class LineStretch(NamedTuple):
    """Where a stretch begins: its first position, and its index among the placed messages."""

    seq: int
    begin: int


class PairedMessages(NamedTuple):
    """The messages of a line, each in its place, and their stretches.

    ``loose`` is the index of the first stretch that may still change.
    """

    placed: list[PlacedMessage]
    stretches: list[LineStretch]
    loose: int


def pair_messages(
    items: list[LineMessage],
    policy: Policy,
    *,
    turn_over: bool = False,
) -> PairedMessages:
    """Return the messages so that calls and results are paired, adjacent and in order.

    ``turn_over``: a new turn begins after the messages, so none of their turns is open.
    """
    return _Pairing(items, policy, turn_over).pair()


class _Pairing:
    """The state of a pairing: the messages placed so far, and the calls without results yet."""

    def __init__(self, items: list[LineMessage], policy: Policy, turn_over: bool) -> None:
        self._items, self._policy = items, policy
        self._continued = {
            place
            for place, item in enumerate(items)
            if WIRE_KEY in item.message
            and place
            and items[place - 1].message["role"] == "assistant"
            and is_continuing_item(item.message)
        }
        self._results = {item.call: place for place, item in enumerate(items) if item.call}
        self._sendable: set[tuple[int, int] | None] | None = None
        if policy.orphans == "adopt":
            self._sendable = {(item.seq, call.position) for item in items for call in item.calls}
        self._running = find_open_turn(items)
        self._open_from = items[-1].seq if turn_over and items else self._running
        self._placed: list[PlacedMessage] = []
        self._stretches: list[LineStretch] = []
        self._waiting: list[tuple[int, ApiCall]] = []
        self._loose: int | None = None
        self._reach = -1

    def pair(self) -> PairedMessages:
        """Return the messages in their places."""
        continued, waiting = self._continued, self._waiting
        placed, stretches = self._placed, self._stretches
        for place, item in enumerate(self._items):
            seq, message, call, tool_name, calls, sound = item
            if place > self._reach:
                self._reach = place
                if place not in continued:
                    stretches.append(LineStretch(seq, len(placed)))
            if calls:
                self._place_calling(item)
            elif message["role"] != "tool":
                placed.append(PlacedMessage(seq, message, None, (), None, sound))
            elif self._sendable is not None and call not in self._sendable:
                self._place_orphan(seq, message, tool_name)
            if waiting and place + 1 not in continued:
                self._place_results(place)
        loose = len(stretches) - 1 if self._loose is None else self._loose
        return PairedMessages(placed, stretches, loose)

    def _place_calling(self, item: LineMessage) -> None:
        """Place an assistant message with the calls that are sent, unless it is empty then."""
        seq, message, _, _, calls, sound = item
        self._waiting += [(seq, call) for call in calls]
        sent, repair = calls, None
        if self._policy.unanswered == "drop":
            sent = tuple(each for each in calls if (seq, each.position) in self._results)
            dropped = len(calls) - len(sent)
            repair = f"{dropped} calls without result left out" if dropped else None
        if sent or message.get("content"):
            self._placed.append(PlacedMessage(seq, message, repair, sent, None, sound))

    def _place_orphan(self, seq: int, message: Message, tool_name: str | None) -> None:
        """Place a result without a call after a made-up call."""
        call_id = get_sendable_text(message, "tool_call_id") or f"call_{seq}"
        name = tool_name or get_sendable_text(message, "name") or UNKNOWN_TOOL
        call = ApiCall(0, call_id, name, "{}")
        function = {"name": call.name, "arguments": call.arguments}
        tool_call = {"id": call.id, "type": "function", "function": function}
        calling = {"role": "assistant", "content": None, "tool_calls": [tool_call]}
        self._placed += (
            PlacedMessage(None, calling, f"the result at {seq} has no call", (call,)),
            PlacedMessage(seq, message, None, (), call_id),
        )

    def _place_results(self, place: int) -> None:
        """Place the results of an answer's calls after its last message, which is at ``place``."""
        items, results, placed = self._items, self._results, self._placed
        for calling, call in self._waiting:
            found = results.get((calling, call.position))
            if found is None:
                self._place_missing(calling, call)
                continue
            place += 1
            if found > self._reach:
                self._reach = found
            seq, message, _, _, _, sound = items[found]
            repair = None if found == place else "moved to its call"
            placed.append(PlacedMessage(seq, message, repair, (), call.id, sound))
        self._waiting.clear()

    def _place_missing(self, seq: int, call: ApiCall) -> None:
        """Place a made-up result for a call that has none, if the policy wants one.

        While its turn runs, a result may still come, so the stretch is loose. Calls of finished
        turns are never kept open.
        """
        if self._loose is None and seq > self._running:
            self._loose = len(self._stretches) - 1
        unanswered = self._policy.unanswered
        if unanswered == "synthetic" or (unanswered == "keep" and seq <= self._open_from):
            text = render_phrase("no_result", self._policy.language)
            message = {"role": "tool", "tool_call_id": call.id, "content": text}
            self._placed.append(
                PlacedMessage(None, message, f"call {call.id} has no result", (), call.id)
            )


def find_open_turn(items: list[LineMessage]) -> int:
    """Return the position of the last user message, 0 where there is none."""
    users = (item.seq for item in reversed(items) if item.message.get("role") == "user")
    return next(users, 0)


def report_foreign_parts(placed: list[PlacedMessage]) -> list[PlacedMessage]:
    """Return messages whose entries name the kinds of their parts that are sent as JSON text."""
    reported = [*placed]
    for index, each in enumerate(placed):
        if isinstance(each.message.get("content"), str):
            continue
        if kinds := sorted({*list_foreign_types(each.message)}):
            reason = f"no part of a chat, sent as its JSON text: {', '.join(kinds)}"
            repair = "; ".join(filter(None, (each.repair, reason)))
            reported[index] = each._replace(repair=repair)
    return reported


def merge_summaries(placed: list[PlacedMessage]) -> list[PlacedMessage]:
    """Return the messages with the summaries merged into the first system message.

    For providers that accept only one. It is placed where the first of them was, so that no summary
    comes after newer messages. In a view without a system message, the first summary is used.
    """
    summaries = [each for each in placed if each.rule == "summary"]
    if not summaries:
        return placed
    system = (each for each in placed if each.message.get("role") == "system" and each.rule is None)
    first = next(system, summaries[0])
    parts = [first, *(each for each in summaries if each is not first)]
    texts = [extract_content_text(each.message.get("content")) for each in parts]
    merged = first._replace(
        message={**first.message, "content": "\n\n".join(texts)},
        repair="; ".join(each.repair or "" for each in summaries),
        rule="summary",
        compaction=summaries[-1].compaction,
    )
    merged_ids = {id(each) for each in parts}
    place = next(index for index, each in enumerate(placed) if id(each) in merged_ids)
    others = [each for each in placed if id(each) not in merged_ids]
    return [*others[:place], merged, *others[place:]]
