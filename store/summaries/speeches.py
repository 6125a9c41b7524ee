"""The selection of texts for a summary: users' texts first, then the last answer.

Then come the other texts, the newest first, in their own words: plain words are what a summary
loses, and no index of names brings them back. A text is cut only where there is no room for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .texts import (
    SUMMARY_ELLIPSIS,
    count_fitting,
    cut_at_line_end,
    flatten_to_line,
    scrub_text,
    shorten_text,
)

USER, LAST, SAID, DRAFT, SHOWN = range(5)
"""The ranks of texts, the first to have room: a user's, the last answer, another answer, a text on
the way to an answer, and the text of a result.
"""

SHORT_TEXT = 200
"""Code points up to which a text is whole even where that makes a summary no shorter."""

LEAST_TEXT = 100
"""Code points of a text below which it is left out rather than cut."""

BUFFERED_ROOMS = 16
"""The newest texts of so many times the room are buffered while more are read."""


class RankedSpeech(NamedTuple):
    """A text, its speaker and its rank."""

    voice: str
    text: str
    rank: int


class SpeechBuffer:
    """The texts of messages as they are read: of very many the first and the newest are kept."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._size = 0
        self._speeches: list[RankedSpeech] = []

    def add(self, speeches: Iterable[RankedSpeech]) -> None:
        """Add texts, as much of each as could have room."""
        longest = 2 * self._room
        for speech in speeches:
            if speech.text:
                is_long = len(speech.text) > longest
                part = speech._replace(text=speech.text[:longest]) if is_long else speech
                self._speeches.append(part)
                self._size += len(part.text)
        if self._size > 4 * BUFFERED_ROOMS * self._room:
            self._shrink()

    def ranked(self) -> list[RankedSpeech]:
        """Return the texts, each in one line, in order; the assistant's last is the last answer.

        A text of an assistant before its next one is on the way to an answer.
        """
        ranked: list[RankedSpeech] = []
        ranks = {SAID: LAST}
        next_rank = USER
        for speech in reversed(self._speeches):
            line = flatten_to_line(scrub_text(speech.text), len(speech.text))
            if line:
                is_draft = speech.rank == next_rank == SAID
                next_rank = speech.rank
                rank = DRAFT if is_draft else ranks.pop(next_rank, next_rank)
                ranked.append(RankedSpeech(speech.voice, line, rank))
        return ranked[::-1]

    def _shrink(self) -> None:
        """Keep the first and the newest of users' texts, and the newest of all others."""
        indices = range(len(self._speeches))
        users = [index for index in indices if self._speeches[index].rank == USER]
        others = [index for index in indices if self._speeches[index].rank != USER]
        kept = {*users[:1], *self._newest(users), *self._newest(others)}
        self._speeches = [self._speeches[index] for index in sorted(kept)]
        self._size = sum(len(speech.text) for speech in self._speeches)

    def _newest(self, indices: list[int]) -> list[int]:
        sizes = (len(self._speeches[index].text) for index in reversed(indices))
        first = len(indices) - count_fitting(sizes, BUFFERED_ROOMS * self._room)
        return indices[first:]


def select_speeches(speeches: Sequence[RankedSpeech], room: int) -> str:
    """Return texts in at most ``room`` code points, one on each line, in order."""
    lines = [f"{speech.voice}: {speech.text}" for speech in speeches]
    text = "\n".join(lines)
    if len(text) <= room:
        return text
    if room <= 0:
        return ""
    ranks = [speech.rank for speech in speeches]
    least = min(LEAST_TEXT, room // 2)
    # A user's text may be so long that the last answer has at most a quarter of the room.
    answer = sum(len(line) + 1 for line, rank in zip(lines, ranks, strict=True) if rank == LAST)
    user_sizes = [len(line) + 1 for line, rank in zip(lines, ranks, strict=True) if rank == USER]
    user_limit = _find_common_limit(user_sizes, room - min(answer, room // 4))
    if user_limit < least:
        first = [line for line, rank in zip(lines, ranks, strict=True) if rank <= LAST]
        return _join_goal_and_newest(first, room)
    shown: dict[int, str] = {}
    newest_first = range(len(lines))[::-1]
    for index in sorted(newest_first, key=ranks.__getitem__):
        limit = min(room, user_limit) if ranks[index] == USER else room
        if len(lines[index]) <= limit or limit >= least:
            shown[index] = shorten_text(lines[index], limit)
            room -= len(shown[index]) + 1
    return "\n".join(shown[index] for index in sorted(shown))


def _find_common_limit(sizes: list[int], room: int) -> int:
    """Return the greatest length to which texts can be cut so that all of them fit."""
    sizes.sort()
    left = room
    for index, size in enumerate(sizes):
        rest = len(sizes) - index
        if size * rest > left:
            return left // rest - 1
        left -= size
    return room


def _join_goal_and_newest(lines: Sequence[str], room: int) -> str:
    """Return the first line, which names the goal, and the newest, with ``...`` between."""
    goal = cut_at_line_end(lines[0], room // 2)
    left = room - len(goal) - len(f"\n{SUMMARY_ELLIPSIS}")
    sizes = (len(line) + 1 for line in reversed(lines[1:]))
    first = len(lines) - count_fitting(sizes, left)
    return cut_at_line_end("\n".join([goal, SUMMARY_ELLIPSIS, *lines[first:]]), room)
