"""Calls and results in pairs, at render time: nothing stored is touched, every repair is said.

Providers refuse a request in which a tool call has no result, a result no call, or something stands between them.
Here each assistant message is followed at once by one result for each of its calls, in their order (X.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .messages import Message, content_text, is_text
from .policy import Policy

NO_RESULT = "No result of this call was recorded."
"""What stands where a call has no result."""
UNKNOWN_TOOL = "unknown_tool"
"""The name of a call that has none."""


class Item(NamedTuple):
    """A message of the line as the rules left it; ``call`` is the position of the call that a result answers."""

    seq: int
    message: Message
    call: tuple[int, int] | None = None
    tool_name: str | None = None


class ApiCall(NamedTuple):
    """A tool call as it is sent: ``position`` in its message, an id, a name and arguments as they went in."""

    position: int
    id: str
    name: str
    arguments: Any


class Placed(NamedTuple):
    """A message in its place; ``seq`` None means that the store made it, ``repair`` says what was mended or why."""

    seq: int | None
    message: Message
    repair: str | None
    calls: tuple[ApiCall, ...]
    call_id: str | None
    rule: str | None = None


Results = dict[tuple[int, int] | None, tuple[int, Item]]
"""Where the result of each call is among the items, by the call's position."""


def arrange(items: list[Item], policy: Policy, *, turn_over: bool = False) -> Iterator[Placed]:
    """Yield the messages so that calls and results are paired, adjacent and in order.

    ``turn_over``: a new turn begins behind them, so none of theirs is open.
    """
    calls = {item.seq: api_calls(item) for item in items if item.message.get("role") == "assistant"}
    wanted = {(seq, call.position) for seq, made in calls.items() for call in made}
    results: Results = {item.call: (index, item) for index, item in enumerate(items) if item.call in wanted}
    begun = (item.seq for item in reversed(items) if turn_over or item.message.get("role") == "user")
    open_turn = next(begun, 0)
    closed = "synthetic" if policy.unanswered == "keep" else policy.unanswered
    for index, item in enumerate(items):
        if made := calls.get(item.seq):
            yield from _group(item, made, index, results, policy.unanswered if item.seq > open_turn else closed)
        elif item.message.get("role") != "tool":
            yield Placed(item.seq, item.message, None, (), None)
        elif item.call not in results and policy.orphans == "adopt":
            yield from _adopt(item)


def api_calls(item: Item) -> tuple[ApiCall, ...]:
    """Return the calls of an assistant message that can be sent, each with an id that is its own in the message."""
    given = item.message.get("tool_calls")
    made: dict[str, ApiCall] = {}
    for position, call in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        if not isinstance(function, dict):
            function = call
        call_id = _text(call.get("id"))
        if not call_id or call_id in made:
            call_id = f"call_{item.seq}_{position}"
            while call_id in made:
                call_id += "_"
        made[call_id] = ApiCall(
            position, call_id, _text(function.get("name")) or UNKNOWN_TOOL, function.get("arguments")
        )
    return tuple(made.values())


def _group(item: Item, calls: tuple[ApiCall, ...], index: int, results: Results, unanswered: str) -> Iterator[Placed]:
    """Yield an assistant message, which is at an index, and the results of its calls."""
    sent = calls
    if unanswered == "drop":
        sent = tuple(call for call in calls if (item.seq, call.position) in results)
    if sent or item.message.get("content"):
        dropped = len(calls) - len(sent)
        repair = f"{dropped} calls without result left out" if dropped else None
        yield Placed(item.seq, item.message, repair, sent, None)
    for call in calls:
        place, result = results.get((item.seq, call.position), (0, None))
        if result:
            index += 1
            yield Placed(result.seq, result.message, None if place == index else "moved to its call", (), call.id)
        elif unanswered == "synthetic":
            message = {"role": "tool", "tool_call_id": call.id, "content": NO_RESULT}
            yield Placed(None, message, f"call {call.id} has no result", (), call.id)


def _adopt(item: Item) -> Iterable[Placed]:
    """Return a result without call behind a call made up for it."""
    call_id = _text(item.message.get("tool_call_id")) or f"call_{item.seq}"
    name = item.tool_name or _text(item.message.get("name")) or UNKNOWN_TOOL
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    made = ApiCall(0, call_id, name, "{}")
    return (
        Placed(None, message, f"the result at {item.seq} has no call", (made,), None),
        Placed(item.seq, item.message, None, (), call_id),
    )


def _text(value: object) -> str | None:
    """Return a text that can be sent as it is; ids that differ must not become one by mending."""
    return value if value and is_text(value) else None


def merged(placed: list[Placed]) -> list[Placed]:
    """Return the messages with the summaries in the first system message, for providers that take only one (A2.11).

    It stands where the first of them stood, so that no summary comes behind what is newer. Where the view has no system
    message, the first summary is it.
    """
    summaries = [each for each in placed if each.rule == "summary"]
    if not summaries:
        return placed
    systems = (each for each in placed if each.message.get("role") == "system" and each.rule is None)
    first = next(systems, summaries[0])
    parts = [first, *(each for each in summaries if each is not first)]
    texts = [content_text(each.message.get("content")) for each in parts]
    message = {**first.message, "content": "\n\n".join(texts)}
    whole = first._replace(message=message, repair="; ".join(each.repair or "" for each in summaries), rule="summary")
    gone = {id(each) for each in parts}
    place = next(index for index, each in enumerate(placed) if id(each) in gone)
    left = [each for each in placed if id(each) not in gone]
    return [*left[:place], whole, *left[place:]]
