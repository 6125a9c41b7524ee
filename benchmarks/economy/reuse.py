"""How much of what a request needs is in sight, and in two plain ways to send as many tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .recording import Recording, bare
from .strings import String, strings, texts

SENT, RECALLED, NEWEST, TRUNCATED = "sent", "recalled", "newest", "truncated"
"""What is looked at: what a policy sends, and with it what one recall brings of each missing
string; of as many tokens as it sends the newest messages, and both ends.
"""

LONG = ("path", "url", "command", "line")
"""Strings that are found in a text whatever stands around them; all others stand by themselves."""


class Sight(NamedTuple):
    """What a model sees: indexes of messages as they were said, and the texts of all else."""

    whole: Collection[int]
    texts: Sequence[str] = ()


@dataclass(slots=True)
class Tally:
    """How many requests were looked at, and their strings: needed, and seen in what was looked at.

    The strings are counted by their kinds.
    """

    requests: int = 0
    needed: Counter[str] = field(default_factory=Counter)
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Count what another one has counted."""
        self.requests += other.requests
        self.needed.update(other.needed)
        self.seen.update(other.seen)

    def share(self, looked_at: str, kinds: Iterable[str]) -> float | None:
        """Return the share of needed strings that was in sight.

        None where none was needed, or no recall was asked.
        """
        needed = self.count(kinds)
        if looked_at == RECALLED and all(each != RECALLED for each, _ in self.seen):
            return None
        seen = sum(self.seen[looked_at, kind] for kind in kinds)
        return seen / needed if needed else None

    def count(self, kinds: Iterable[str]) -> int:
        """Return how many strings of some kinds were needed."""
        return sum(self.needed[kind] for kind in kinds)


def summed(tallies: Iterable[Tally]) -> Tally:
    """Return tallies as one."""
    total = Tally()
    for each in tallies:
        total.add(each)
    return total


Recall = Callable[[list[String]], set[String]]
"""Returns which of some strings a recall brings back."""


def look(
    needed: Sequence[String],
    recording: Recording,
    index: int,
    sent: Sight,
    tokens: int,
    recall: Recall | None = None,
) -> Tally:
    """Count what of needed strings is in sight of a request: in what is sent and in its rivals."""
    found = Tally(requests=1, needed=Counter(string.kind for string in needed))
    sights = {
        SENT: sent,
        NEWEST: newest(recording, index, tokens),
        TRUNCATED: truncated(recording, index, tokens),
    }
    for looked_at, sight in sights.items():
        seen = in_sight(needed, sight, recording, index)
        found.seen.update((looked_at, string.kind) for string in seen)
    if recall:
        seen = {*in_sight(needed, sent, recording, index)}
        seen |= recall([string for string in needed if string not in seen])
        found.seen.update((RECALLED, string.kind) for string in needed if string in seen)
    return found


def newest(recording: Recording, index: int, tokens: int) -> Sight:
    """Return the newest whole messages that fit into so many tokens, behind those of the system."""
    pinned = recording.pinned(index)
    room = tokens - recording.size(pinned)
    others = (place for place in reversed(range(index)) if place not in pinned)
    return Sight(pinned | _fitting(recording, others, room).whole)


def truncated(recording: Recording, index: int, tokens: int) -> Sight:
    """Return beginning and end of all before an index, cut to half of so many tokens each."""
    everything = range(index)
    if recording.size(everything) <= tokens:
        return Sight(everything)
    first = _fitting(recording, everything, tokens // 2)
    last = _fitting(recording, reversed(everything), tokens - tokens // 2)
    beginning = _text(recording, first.cut)[: _length(recording, first)]
    length = _length(recording, last)
    ending = _text(recording, last.cut)[-length:] if length else ""
    return Sight(first.whole | last.whole, [beginning, ending])


class _Fitting(NamedTuple):
    """Messages that fit, the one that has to be cut, and the tokens that are left for it."""

    whole: set[int]
    cut: int
    room: int


def _fitting(recording: Recording, places: Iterable[int], room: int) -> _Fitting:
    whole: set[int] = set()
    place = 0
    for place in places:
        if recording.tokens[place] > room:
            break
        whole.add(place)
        room -= recording.tokens[place]
    return _Fitting(whole, place, room)


def _length(recording: Recording, part: _Fitting) -> int:
    """Return how many code points of a message there is room for."""
    text = _text(recording, part.cut)
    return len(text) * max(part.room, 0) // recording.tokens[part.cut]


def _text(recording: Recording, place: int) -> str:
    return "\n".join(texts(recording.messages[place]))


def in_sight(
    needed: Iterable[String], sight: Sight, recording: Recording, index: int
) -> Iterator[String]:
    """Yield the strings that are in sight, where they are told as they were or in other texts."""
    text = bare("\n".join(sight.texts), recording.transcript.root)
    told = strings(text)
    for string in needed:
        in_text = string in told or (string.kind in LONG and string.text in text)
        if in_text or in_whole(string, sight, recording, index):
            yield string


def in_whole(string: String, sight: Sight, recording: Recording, index: int) -> bool:
    """Tell whether a string is told by a message before an index that is there as it was said."""
    return any(place in sight.whole for place in recording.told_before(string, index))
