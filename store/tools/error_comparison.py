"""Errors compared: lines are the same error if they differ in numbers, paths and ids alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_CHANGING = re.compile(
    r"""(?x)
    (?:[a-z]:)?(?:[\w.@~-]*[/\\])+[\w.@-]*   # paths
    | 0x[0-9a-f]+ | \b[0-9a-f]{7,40}\b | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
    | \d+(?:[.:,]\d+)*
    """
)
SIMILAR = 0.5
"""How much of the words of an error line another has that is taken for the same."""
CONTAINED_LOSS = 0.25
"""What a line loses that has the words of an error among others."""
TELLING_WORDS = 4
"""Words of an error that another line may have among others."""
LONGEST_ERROR_LINE = 500
LEAST_WORDS = 2
"""Words that a line needs, so that it tells one error from others."""


class LikeError(NamedTuple):
    """A line of a text that tells an error, and how much of the asked lines it has, up to 1.0."""

    likeness: float
    line: str


def _normalize_error(line: str) -> str:
    """Return a line without what changes from time to time: numbers, paths and ids."""
    plain = _CHANGING.sub(" ", line.lower())
    return " ".join(re.findall(r"[^\W\d_]+", plain))


def list_error_lines(text: str) -> list[str]:
    """Return the lines of a text that can tell an error, as they are compared, each once."""
    plain = dict.fromkeys(map(_normalize_error, text.splitlines()))
    return [each for each in plain if len(each.split()) >= LEAST_WORDS]


def find_like_error(asked: Iterable[str], lines: list[str]) -> LikeError | None:
    """Return the line that is the most like an asked one of `list_error_lines`; None for none."""
    words = ({*line.split()} for line in asked)
    found = (each for wanted in words for each in _compare_lines(wanted, lines))
    alike = (each for each in found if each.likeness >= SIMILAR)
    return max(alike, key=lambda each: each.likeness, default=None)


def _compare_lines(words: set[str], lines: list[str]) -> Iterator[LikeError]:
    """Yield the lines that may be like an asked one: the share of words that both have.

    A line with nearly all words of an error among others counts too.
    """
    # A line that is alike lacks at most so many words, so it has one of these.
    missing = int(len(words) * (1 - SIMILAR))
    rarest = sorted(words, key=len)[-missing - 1 :]
    pattern = re.compile("|".join(map(re.escape, rarest)))
    for line in lines:
        lowered = line[:LONGEST_ERROR_LINE].lower()
        if pattern.search(lowered):
            found = {*_normalize_error(lowered).split()}
            both = len(words & found)
            among = both / len(words) - CONTAINED_LOSS if len(words) >= TELLING_WORDS else 0.0
            yield LikeError(max(both / len(words | found), among), line)
