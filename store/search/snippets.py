"""A hit in one line: what stands around the words, and where they are in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import takewhile

from .terms import SIGNS, WORD, Term, first_word, folded

LENGTH = 160
"""Code points of a snippet."""
BEFORE = 40
"""Code points that stand before the first word."""
_ELLIPSIS = "…"

TRIED = 100
"""So many places are tried for the line that has most of the words."""

Span = tuple[int, int]
"""Where a word begins and ends."""
Place = tuple[int, int, int]
"""Where a term begins and ends, and which one it is."""


@lru_cache(maxsize=256)
def _patterns(term: Term) -> tuple[re.Pattern[str], ...]:
    """Return what finds a term in a folded text: as words, else as a part of a name.

    What stands before the first word is asked behind it: what begins with a text is found far
    faster than what begins with a condition.
    """
    written = folded(term.written)
    first, *others = map(re.escape, WORD.findall(written))
    is_word = not SIGNS.search(written)
    before = rf"(?<![^\W_]{first})" if is_word else ""
    after = r"(?![^\W_])" if is_word and not term.begins else ""
    whole = re.compile(r"[\W_]+".join((first + before, *others)) + after)
    return whole, re.compile(re.escape(written))


def has(text: str, asked: Iterable[Term]) -> bool:
    """Tell whether a text has all that is asked for."""
    plain = folded(text)
    return all(has_term(plain, term) for term in asked)


def has_term(plain: str, term: Term) -> bool:
    """Tell whether a folded text has a term, as words or as a part of a name."""
    is_likely = first_word(term) in plain
    return is_likely and any(each.search(plain) for each in _patterns(term))


def times(plain: str, term: Term) -> int:
    """Return how often a folded text has a term as words."""
    if first_word(term) not in plain:
        return 0
    return sum(1 for _ in _patterns(term)[0].finditer(plain))


def snippet(text: str, asked: Iterable[Term]) -> tuple[str, tuple[Span, ...]]:
    """Return a line of what stands around the first words, and the places of the words in it."""
    found = sorted(_found(folded(text), asked))
    begin = max(0, _best(found) - BEFORE)
    end = min(len(text), begin + LENGTH)
    line = re.sub(r"\s", " ", text[begin:end])
    before, behind = _ELLIPSIS * (begin > 0), _ELLIPSIS * (end < len(text))
    moved = len(before) - begin
    shown = ((first, last) for first, last, _ in found if begin <= first < last <= end)
    marks = [(first + moved, last + moved) for first, last in shown]
    return f"{before}{line}{behind}", tuple(_apart(marks))


def around(text: str, asked: Iterable[Term], room: int) -> str:
    """Return so many code points of a text as it is, where it has most of what is asked for."""
    if len(text) <= room:
        return text
    begin = max(0, _best(sorted(_found(folded(text), asked))) - room // 4)
    end = begin + room
    before, behind = _ELLIPSIS * (begin > 0), _ELLIPSIS * (end < len(text))
    return f"{before}{text[begin:end]}{behind}"


def _found(plain: str, asked: Iterable[Term]) -> Iterator[Place]:
    """Yield where terms are in a folded text: as words, else as parts."""
    for number, term in enumerate(asked):
        for pattern in _patterns(term):
            places = [(*each.span(), number) for each in pattern.finditer(plain)]
            yield from places
            if places:
                break


def _best(found: list[Place]) -> int:
    """Return where a line begins that has most of the terms; the first of such places."""
    best, most = 0, 0
    for at, (first, *_) in enumerate(found[:TRIED]):
        near = takewhile(lambda place: place[1] <= first + LENGTH - BEFORE, found[at:])  # noqa: B023
        terms = len({term for *_, term in near})
        if terms > most:
            best, most = first, terms
    return best


def _apart(marks: list[Span]) -> Iterator[Span]:
    """Yield places that do not overlap."""
    last = 0
    for mark in marks:
        if mark[0] >= last:
            last = mark[1]
            yield mark
