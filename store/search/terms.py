"""The terms of a query, and their places in a text.

The index holds texts as words, pairs of signs, and parts of names. Chinese, Japanese and Korean are
written without spaces, so each run of their signs is indexed as all pairs of neighbours, and its
last sign alone: 数据库 as 数据 据库 库. A query has the pairs in sequence, and a single sign is a
prefix of a pair. The database splits all other text into words; a path or a name with underscores
is a sequence of several words. Parts of a word are found only in names, by their trigrams.

No text of a user reaches the database as an operator: each word of a query is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from ..messages import (
    CJK_RUN,
    LONGEST_TERM,
    SHORTEST_PART,
    WORD_PATTERN,
    fold_text,
    normalize_text,
    split_cjk,
)
from ..text import ELLIPSES

MOST_TERMS = 32
"""Words of a query; further ones are left out."""
SNIPPET_LENGTH = 160
"""Code points of a snippet."""
SNIPPET_LEAD = 40
"""Code points of a snippet before its first word."""
SNIPPET_STARTS = 100
"""Places that are tried for the snippet with most of the terms."""
MOST_TERM_PLACES = SNIPPET_STARTS + SNIPPET_LENGTH
"""Places of a term that are looked for: those tried, and as many as a snippet from there holds."""
_ELLIPSIS = "…"

_QUERY_WORD = re.compile(r'"([^"]+)"|(\S+)')
TextRange = tuple[int, int]
"""The first and the last code point of a word, the last one excluded."""
TermRange = tuple[int, int, int]
"""The range of a term, and the number of the term."""


class Term(NamedTuple):
    """A word of a query, or several in quotes: as written, and as the index holds it.

    With ``is_prefix``, its last sign may begin a pair, or its last word may begin a longer word.
    ``index_words`` are all words in the index that begin with it; none if they are not known.
    """

    text: str
    index_text: str
    is_prefix: bool
    index_words: tuple[str, ...] = ()

    @property
    def name_part(self) -> str | None:
        """The text to search inside names; None for a text that is too short, or no name."""
        is_part = len(self.text) >= SHORTEST_PART and not CJK_RUN.search(self.text)
        return self.text if is_part else None


def parse_terms(text: str) -> list[Term]:
    """Return the terms of a query, each once: its words, and its phrases in double quotes.

    A term that ends in an ellipsis, as a shortened text does, is a prefix.
    """
    found = (quoted or word for quoted, word in _QUERY_WORD.findall(normalize_text(text)))
    words = (each[:LONGEST_TERM] for each in found if WORD_PATTERN.search(each))
    return [_parse_term(each) for each in list(dict.fromkeys(words))[:MOST_TERMS]]


def _parse_term(text: str) -> Term:
    if text.endswith(ELLIPSES):
        return _parse_term(text.rstrip("".join(ELLIPSES)))._replace(is_prefix=True)
    runs = [*CJK_RUN.finditer(text)]
    last = runs[-1] if runs else None
    if last is None or WORD_PATTERN.search(text, last.end()):
        return Term(text, split_cjk(text), is_prefix=False)
    signs = last[0]
    pairs = [signs[at : at + 2] for at in range(max(1, len(signs) - 1))]
    index_text = f"{split_cjk(text[: last.start()])} {' '.join(pairs)}"
    return Term(text, index_text, is_prefix=len(signs) == 1)


@lru_cache(maxsize=256)
def get_first_word(text: str) -> str:
    """Return the first word of a term's text; each folded text with the term has it."""
    found = WORD_PATTERN.search(fold_text(text))
    return found[0] if found else ""


@lru_cache(maxsize=256)
def _build_term_patterns(text: str, is_prefix: bool) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a term in a folded text: as words, and as a part of a name.

    The condition on the sign before the first word follows that word in the pattern, since a
    pattern that begins with a text is matched far faster than one that begins with a condition.
    """
    text = fold_text(text)
    first, *others = map(re.escape, WORD_PATTERN.findall(text))
    is_word = not CJK_RUN.search(text)
    before = rf"(?<![^\W_]{first})" if is_word else ""
    after = r"(?![^\W_])" if is_word and not is_prefix else ""
    as_words = re.compile(r"[\W_]+".join((first + before, *others)) + after)
    return as_words, re.compile(re.escape(text))


def has_terms(text: str, terms: Iterable[Term]) -> bool:
    """Tell whether a text has all terms."""
    folded = fold_text(text)
    return all(has_term(folded, term) for term in terms)


def has_term(folded: str, term: Term) -> bool:
    """Tell whether a folded text has a term, as words or as a part of a name."""
    begin = _find_begin(folded, term)
    if begin < 0:
        return False
    patterns = _build_term_patterns(term.text, term.is_prefix)
    return any(each.search(folded, begin) for each in patterns)


def count_term(folded: str, term: Term) -> int:
    """Return how often a folded text has a term as words."""
    begin = _find_begin(folded, term)
    if begin < 0:
        return 0
    return len(_build_term_patterns(term.text, term.is_prefix)[0].findall(folded, begin))


def _find_begin(folded: str, term: Term) -> int:
    """Return the place from which a folded text may have a term; -1 if it lacks the first word.

    A text is found far faster than a pattern.
    """
    at = folded.find(get_first_word(term.text))
    return at if at < 0 else max(0, at - len(term.text))


def make_snippet(
    text: str, terms: Iterable[Term], folded: str | None = None
) -> tuple[str, tuple[TextRange, ...]]:
    """Return a line of a text around its first terms, and the ranges of the words in the line."""
    found = sorted(_find_terms(fold_text(text) if folded is None else folded, terms))
    begin = max(0, _choose_start(found) - SNIPPET_LEAD)
    end = min(len(text), begin + SNIPPET_LENGTH)
    line = re.sub(r"\s", " ", text[begin:end])
    before, after = _ELLIPSIS * (begin > 0), _ELLIPSIS * (end < len(text))
    moved = len(before) - begin
    marks: list[TextRange] = []
    for first, last, _ in found:
        is_shown = begin <= first < last <= end
        if is_shown and (not marks or first + moved >= marks[-1][1]):  # marks do not overlap
            marks.append((first + moved, last + moved))
    return f"{before}{line}{after}", tuple(marks)


def cut_excerpt(text: str, terms: Iterable[Term], length: int) -> str:
    """Return ``length`` unchanged code points of a text, around most of the terms."""
    if len(text) <= length:
        return text
    start = _choose_start(sorted(_find_terms(fold_text(text), terms))) - length // 4
    begin = min(max(0, start), len(text) - length)
    end = begin + length
    before, after = _ELLIPSIS * (begin > 0), _ELLIPSIS * (end < len(text))
    return f"{before}{text[begin:end]}{after}"


def _find_terms(folded: str, terms: Iterable[Term]) -> Iterator[TermRange]:
    """Yield the ranges of terms in a folded text: as words, otherwise as parts."""
    for number, term in enumerate(terms):
        begin = _find_begin(folded, term)
        patterns = _build_term_patterns(term.text, term.is_prefix)
        for pattern in patterns if begin >= 0 else ():
            places = islice(pattern.finditer(folded, begin), MOST_TERM_PLACES)
            ranges = [(*each.span(), number) for each in places]
            yield from ranges
            if ranges:
                break


def _choose_start(found: list[TermRange]) -> int:
    """Return the first place from which a snippet has most of the terms."""
    best, most, last = 0, 0, 0
    for at, (first, *_) in enumerate(found[:SNIPPET_STARTS]):
        end = first + SNIPPET_LENGTH - SNIPPET_LEAD
        last = max(last, at)
        while last < len(found) and found[last][1] <= end:
            last += 1
        count = len({number for *_, number in found[at:last]}) if last - at > most else 0
        if count > most:
            best, most = first, count
    return best
