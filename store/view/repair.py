"""Calls and results in pairs, at render time: nothing stored is touched, every repair is said.

Providers refuse a request in which a tool call has no result, a result no call, or something stands
between them. Here each assistant message is followed at once by one result for each of its calls,
in their order.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from ..formats import ApiCall, Placed, continues, foreign_kinds, made_up_id
from ..messages import Message, content_text
from ..policy import Policy
from ..text import is_text

NO_RESULT = "No result of this call was recorded."
"""What stands where a call has no result."""
UNKNOWN_TOOL = "unknown_tool"
"""The name of a call that has none."""


class Item(NamedTuple):
    """A message of the line as the rules left it.

    ``call`` is the position of the call that a result answers.
    """

    seq: int
    message: Message
    call: tuple[int, int] | None = None
    tool_name: str | None = None


Calls = dict[int, tuple[ApiCall, ...]]
"""The calls of each assistant message, by its position."""
Results = dict[tuple[int, int] | None, tuple[int, Item]]
"""Where the result of each call is among the items, by the call's position."""


class Group(NamedTuple):
    """What an answer with its results became, or another message, or nothing.

    ``first`` is its place among the items, ``reach`` the place of the last item that is in it.
    ``is_whole``: none of its calls lacks a result.
    """

    first: int
    reach: int
    placed: tuple[Placed, ...]
    is_whole: bool = True


def arrange(
    items: list[Item],
    policy: Policy,
    *,
    turn_over: bool = False,
) -> Iterator[Group]:
    """Yield the messages in groups, so that calls and results are paired, adjacent and in order.

    ``turn_over``: a new turn begins behind them, so none of theirs is open.
    """
    calls = _calls(items)
    results = _results(items, calls)
    open_from = items[-1].seq if turn_over and items else open_turn(items)
    closed = _unanswered_when_closed(policy)
    for index, answer in _answers(items):
        item = answer[0]
        first = index - len(answer) + 1
        if any([calls.get(each.seq) for each in answer]):  # noqa: C419 - for one item it is quick
            unanswered = policy.unanswered if item.seq > open_from else closed
            yield _group(answer, calls, index, results, unanswered)
        elif item.message.get("role") != "tool":
            placed = tuple(Placed(each.seq, each.message) for each in answer)
            yield Group(first, index, placed)
        elif item.call not in results and policy.orphans == "adopt":
            yield Group(first, index, tuple(_adopt(item)))
        else:
            yield Group(first, index, ())


def _calls(items: list[Item]) -> Calls:
    """Return the calls that can be sent."""
    speaking = (item for item in items if item.message.get("role") == "assistant")
    return {item.seq: api_calls(item) for item in speaking}


def _unanswered_when_closed(policy: Policy) -> str:
    """Return what becomes of unanswered calls of finished turns: nothing will answer them."""
    return "synthetic" if policy.unanswered == "keep" else policy.unanswered


def _results(items: list[Item], calls: Calls) -> Results:
    """Return the result of each call that is sent, and where it is among the items."""
    wanted = _positions(calls)
    places = enumerate(items)
    return {item.call: (index, item) for index, item in places if item.call in wanted}


def _positions(calls: Calls) -> set[tuple[int, int] | None]:
    return {(seq, call.position) for seq, made in calls.items() for call in made}


def open_turn(items: list[Item]) -> int:
    """Return the position of the last user message, 0 where there is none."""
    newest_first = reversed(items)
    users = (item.seq for item in newest_first if item.message.get("role") == "user")
    return next(users, 0)


def api_calls(item: Item) -> tuple[ApiCall, ...]:
    """Return the calls of an assistant message that can be sent.

    Each has an id that is its own in the message.
    """
    given = item.message.get("tool_calls")
    if not isinstance(given, list):
        return ()
    made: dict[str, ApiCall] = {}
    for position, call in enumerate(given):
        if isinstance(call, dict):
            call_id = _text(call, "id")
            if call_id is None or call_id in made:
                call_id = _untaken(made_up_id(item.seq, position), made)
            made[call_id] = _api_call(position, call_id, call)
    return tuple(made.values())


def _untaken(made_up: str, taken: Container[str]) -> str:
    """Return an id that is made up as one that no call of the message has."""
    while made_up in taken:
        made_up += "_"
    return made_up


def _api_call(position: int, call_id: str, call: Message) -> ApiCall:
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    name = _text(function, "name") or UNKNOWN_TOOL
    return ApiCall(position, call_id, name, function.get("arguments"))


def _answers(items: list[Item]) -> Iterator[tuple[int, list[Item]]]:
    """Yield the messages with the place of each; items of one answer together, by the last one's.

    Where one of them calls, the results of all stand behind the last.
    """
    answer: list[Item] = []
    for index, item in enumerate(items):
        if answer and not (continues(item.message) and answer[-1].message["role"] == "assistant"):
            yield index - 1, answer
            answer = []
        answer.append(item)
    if answer:
        yield len(items) - 1, answer


def _group(
    answer: list[Item], calls: Calls, index: int, results: Results, unanswered: str
) -> Group:
    """Return an answer, whose last item is at an index, with the results of its calls."""
    first, reach, is_whole = index - len(answer) + 1, index, True
    placed = [each for item in answer for each in _said(item, calls[item.seq], results, unanswered)]
    for seq, *_ in answer:
        for call in calls[seq]:
            place, result = results.get((seq, call.position), (0, None))
            if result:
                index += 1
                repair = None if place == index else "moved to its call"
                placed.append(Placed(result.seq, result.message, repair, (), call.id))
                reach = max(reach, place)
            else:
                is_whole = False
                placed += [_made_up(call)] if unanswered == "synthetic" else ()
    return Group(first, reach, tuple(placed), is_whole)


def _said(
    item: Item, calls: tuple[ApiCall, ...], results: Results, unanswered: str
) -> Iterator[Placed]:
    """Yield an assistant message with the calls that are sent, if anything is left of it."""
    sent = calls
    if unanswered == "drop":
        sent = tuple(call for call in calls if (item.seq, call.position) in results)
    if sent or not calls or item.message.get("content"):
        yield _calling(item, sent, len(calls) - len(sent))


def _calling(item: Item, sent: tuple[ApiCall, ...], dropped: int) -> Placed:
    """Return an assistant message with the calls that are sent."""
    repair = f"{dropped} calls without result left out" if dropped else None
    return Placed(item.seq, item.message, repair, sent, None)


def _made_up(call: ApiCall) -> Placed:
    """Return a result for a call that has none."""
    message = {"role": "tool", "tool_call_id": call.id, "content": NO_RESULT}
    return Placed(None, message, f"call {call.id} has no result", (), call.id)


def _adopt(item: Item) -> Iterable[Placed]:
    """Return a result without call behind a call made up for it."""
    call = _call_of(item)
    repair = f"the result at {item.seq} has no call"
    return (
        Placed(None, _message_with(call), repair, (call,), None),
        Placed(item.seq, item.message, None, (), call.id),
    )


def _call_of(item: Item) -> ApiCall:
    """Return the call that a result without call may have answered."""
    call_id = _text(item.message, "tool_call_id") or f"call_{item.seq}"
    name = item.tool_name or _text(item.message, "name")
    return ApiCall(0, call_id, name or UNKNOWN_TOOL, "{}")


def _message_with(call: ApiCall) -> Message:
    """Return an assistant message that says nothing but one call."""
    function = {"name": call.name, "arguments": call.arguments}
    made = {"id": call.id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def _text(of: Message, key: str) -> str | None:
    """Return a text that can be sent as it is; ids that differ must not become one by mending."""
    value = of.get(key)
    return value if value and is_text(value) else None


def reported(placed: Placed) -> Placed:
    """Return a message that says which of its parts go out as JSON text, if any do."""
    content = placed.message.get("content")
    if content is None or isinstance(content, str):
        return placed
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
