"""Which of all that was said has room in a summary: users' texts first, then the last answer.

Then come the other texts, the newest first, as they were said: plain words are what a summary
loses, and no index of names brings them back. A text is cut only where there is no room for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .texts import ELLIPSIS, count_fitting, cut_at_line_end, flatten_to_line, scrub_text, shorten

USER, LAST, SAID, DRAFT, SHOWN = range(5)
"""What a text is, the first to have room: a user's, the last answer, another answer, what was said
on the way to one, and what a result shows.
"""

SHORT = 200
"""Code points up to which a text is whole even where that makes a summary no shorter."""

FLOOR = 100
"""Code points of a text below which it is rather left out."""

HELD = 16
"""So many times the room is held of the newest texts while more are read."""


class Speech(NamedTuple):
    """Who speaks, the text, and its rank."""

    voice: str
    text: str
    rank: int


class Heard:
    """What was said, as it comes: of very much the first and the newest are held."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._size = 0
        self._held: list[Speech] = []

    def add(self, speeches: Iterable[Speech]) -> None:
        """Hold texts, as much of them as could have room."""
        for speech in speeches:
            if speech.text:
                self._hold(speech)
        if self._size > 4 * HELD * self._room:
            self._forget()

    def _hold(self, speech: Speech) -> None:
        if len(speech.text) > 2 * self._room:
            speech = speech._replace(text=speech.text[: 2 * self._room])
        self._held.append(speech)
        self._size += len(speech.text)

    def all(self) -> list[Speech]:
        """Return what is held, in order; the last that an assistant said is the last answer.

        What an assistant says before it speaks again is said on the way.
        """
        ranked: list[Speech] = []
        rest = {SAID: LAST}
        after = USER
        for speech in filter(None, map(_cleaned, reversed(self._held))):
            is_draft = speech.rank == after == SAID
            after = speech.rank
            rank = DRAFT if is_draft else rest.pop(after, after)
            ranked.append(speech._replace(rank=rank))
        return ranked[::-1]

    def _forget(self) -> None:
        """Hold the first and the newest of users' texts, and the newest of all others."""
        users, others = self._places(of_users=True), self._places(of_users=False)
        kept = {*users[:1], *self._newest(users), *self._newest(others)}
        self._held = [self._held[place] for place in sorted(kept)]
        self._size = sum(len(each.text) for each in self._held)

    def _places(self, *, of_users: bool) -> list[int]:
        ranks = enumerate(each.rank for each in self._held)
        return [place for place, rank in ranks if (rank == USER) is of_users]

    def _newest(self, places: list[int]) -> list[int]:
        sizes = (len(self._held[place].text) for place in reversed(places))
        first = len(places) - count_fitting(sizes, HELD * self._room)
        return places[first:]


def least_room(said: Sequence[Speech]) -> int:
    """Return the code points that texts have however short a summary should be."""
    needed = (each for each in said if each.rank != DRAFT)
    return sum(min(len(each.text), SHORT) + len(each.voice) + 3 for each in needed)


def selected(said: Sequence[Speech], room: int) -> str:
    """Return what was said in at most ``room`` code points, a text on each line, in order."""
    lines = [f"{each.voice}: {each.text}" for each in said]
    text = "\n".join(lines)
    if len(text) <= room:
        return text
    if room <= 0:
        return ""
    floor = min(FLOOR, room // 2)
    limit = _limit_of_users(said, lines, room)
    if limit < floor:
        return _goal_and_newest([*_firm(said, lines)], room)
    shown = _shown(_by_rank(said), said, lines, _Room(room, limit, floor))
    return "\n".join(shown[place] for place in sorted(shown))


class _Room(NamedTuple):
    """The code points that there are, how many a user's text may have, and any at least."""

    points: int
    of_user: int
    floor: int


def _shown(
    places: Iterable[int], said: Sequence[Speech], lines: Sequence[str], room: _Room
) -> dict[int, str]:
    """Return the lines that have room, by their places; those given first come first."""
    shown: dict[int, str] = {}
    left = room.points
    for place in places:
        most = min(left, room.of_user) if said[place].rank == USER else left
        line = lines[place]
        if len(line) <= most or most >= room.floor:
            shown[place] = shorten(line, most)
            left -= len(shown[place]) + 1
    return shown


def _by_rank(said: Sequence[Speech]) -> list[int]:
    """Return the places of texts, the first to have room first: by rank, then the newest."""
    newest_first = range(len(said))[::-1]
    return sorted(newest_first, key=lambda place: said[place].rank)


def _limit_of_users(said: Sequence[Speech], lines: Sequence[str], room: int) -> int:
    """Return how long a user's text may be, so that the last answer has at most a quarter."""
    answer = sum(_sizes(said, lines, LAST))
    return _limit([*_sizes(said, lines, USER)], room - min(answer, room // 4))


def _sizes(said: Sequence[Speech], lines: Sequence[str], rank: int) -> Iterator[int]:
    """Yield how much room the lines of a rank take."""
    for each, line in zip(said, lines, strict=True):
        if each.rank == rank:
            yield len(line) + 1


def _limit(lengths: list[int], room: int) -> int:
    """Return the length to which texts are cut so that all have room, as long as can be."""
    lengths.sort()
    left = room
    for place, length in enumerate(lengths):
        rest = len(lengths) - place
        if length * rest > left:
            return left // rest - 1
        left -= length
    return room


def _firm(said: Sequence[Speech], lines: Sequence[str]) -> Iterator[str]:
    """Yield what users said, and the last answer."""
    for each, line in zip(said, lines, strict=True):
        if each.rank <= LAST:
            yield line


def _goal_and_newest(lines: Sequence[str], room: int) -> str:
    """Return the first line, which names the goal, and the newest, with ``...`` between."""
    goal = cut_at_line_end(lines[0], room // 2)
    left = room - len(goal) - len(f"\n{ELLIPSIS}")
    sizes = (len(line) + 1 for line in reversed(lines[1:]))
    first = len(lines) - count_fitting(sizes, left)
    return cut_at_line_end("\n".join([goal, ELLIPSIS, *lines[first:]]), room)


def _cleaned(held: Speech) -> Speech | None:
    """Return a text in one line; None where nothing of it is left."""
    line = flatten_to_line(scrub_text(held.text), len(held.text))
    return held._replace(text=line) if line else None
