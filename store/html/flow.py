"""The flow of a page: messages, calls with their results, bands, alternatives, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ..messages import Message, find_message_time
from .message_parts import CallPart, Part, ResultPart, read_message


class CallEnd(NamedTuple):
    """How a call ended: whether it failed, and the seconds that it took (None: not known)."""

    failed: bool | None = None
    seconds: float | None = None


class ShownMessage(NamedTuple):
    """A message to be shown.

    ``seq`` is its position (None: it has none), ``at`` the time (ms) for a message that tells none.
    ``margin`` are short texts beside it, such as tokens and cost. ``note`` says why it is as it is,
    ``ends`` how its calls ended, by their places among them. ``anchor`` is the name by which a link
    finds it (None: made of its position). What it says is ``folded`` if nobody said it to be read.
    """

    seq: int | None
    message: Message
    at: int | None = None
    margin: Sequence[str] = ()
    note: str | None = None
    ends: Mapping[int, CallEnd] = {}
    anchor: str | None = None
    folded: bool = False


class Alternatives(NamedTuple):
    """Lines that follow the same message; ``current`` is the shown one, counted from 0.

    The current one is only its first message; the line goes on below it. ``name`` is one that no
    others on the page have.
    """

    name: str
    current: int
    lines: Sequence[Sequence[ShownMessage]]


class Band(NamedTuple):
    """Messages that something hides: a title, the text in their place, and they themselves."""

    title: str
    text: str | None
    items: Iterable[ShownMessage | Alternatives]


Item: TypeAlias = ShownMessage | Band | Alternatives
"""What a page shows of a line."""


@dataclass
class ShownCall:
    """A call with its result, which may come later or never."""

    call: CallPart
    end: CallEnd
    result: ResultPart | None = None
    anchor: str = ""
    note: str | None = None
    margin: Sequence[str] = ()

    @property
    def failed(self) -> bool:
        """Whether it failed: as its end says, else as its result does."""
        if self.end.failed is not None:
            return self.end.failed
        return self.result is not None and self.result.failed


@dataclass
class ShownGroup:
    """A message with its calls and their results."""

    shown: ShownMessage
    role: str
    at: int | None
    anchor: str
    thoughts: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    calls: list[ShownCall] = field(default_factory=list)
    results: list[ResultPart] = field(default_factory=list)

    @property
    def is_waiting(self) -> bool:
        """Whether a call has no result yet."""
        return any(each.result is None for each in self.calls)


def is_result_message(message: Message) -> bool:
    """Tell a message that holds results of tools and nothing else."""
    read = read_message(message)
    return bool(read.results) and not (read.parts or read.calls or read.thoughts)


MOST_WAITING = 100
"""Groups that wait for results, at most."""


def group_items(items: Iterable[Item]) -> Iterator[ShownGroup | Band | Alternatives]:
    """Yield items with each result at its call, as far as both are near; all else in its order."""
    waiting: list[ShownGroup] = []
    for item in items:
        if not isinstance(item, ShownMessage):
            yield from waiting
            waiting = []
            yield item
            continue
        group = _read_group(item)
        if not _place_results(waiting, group):
            waiting.append(group)
            if (group.role == "user" and group.parts) or len(waiting) > MOST_WAITING:
                yield from waiting
                waiting = []
        while waiting and not waiting[0].is_waiting:
            yield waiting.pop(0)
    yield from waiting


def _read_group(item: ShownMessage) -> ShownGroup:
    """Return a message as a group of its own."""
    read = read_message(item.message)
    at = find_message_time(item.message)
    seq = "" if item.seq is None else f"m{item.seq}"
    calls = [
        ShownCall(call, item.ends.get(number, CallEnd())) for number, call in enumerate(read.calls)
    ]
    return ShownGroup(
        item,
        read.role,
        item.at if at is None else at,
        seq if item.anchor is None else item.anchor,
        read.thoughts,
        read.parts,
        calls,
        read.results,
    )


def _place_results(waiting: list[ShownGroup], group: ShownGroup) -> bool:
    """Put the results of a group to the calls that they answer; tell whether nothing is left."""
    answered, left = None, []
    for result in group.results:
        call = _find_call(waiting, result)
        if call is None:
            left.append(result)
        else:
            call.result, answered = result, call
            call.note, call.margin = group.shown.note, group.shown.margin
    group.results = left
    if answered is None or left or group.parts or group.calls:
        return False
    answered.anchor = group.anchor
    return True


def _find_call(waiting: list[ShownGroup], result: ResultPart) -> ShownCall | None:
    """Return the newest call without a result that a result names, by its id if it has one."""
    for group in reversed(waiting):
        for shown in group.calls:
            same = shown.call.id == result.id if result.id else shown.call.name == result.name
            if shown.result is None and same:
                return shown
    return None
