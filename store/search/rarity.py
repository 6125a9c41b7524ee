"""Searches by rarity: messages with some of the words, those with the rarest words first.

A question in words of a person has common words and rare ones, and hardly a message has all. Each
word is looked for alone, in the searched messages only, so one owner's hits do not depend on the
messages of others. A word is worth more, the fewer messages have it. The messages with the rarest
words are read, and scored by how often they have each word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import log2
from typing import NamedTuple, Protocol

from ..messages import fold_text
from ..records import Hit
from .documents import Document
from .query import Match, Query, score_text
from .terms import Term

MOST_COUNTED_WORD = 64
"""Messages that are counted of a word: the last stored; one that more have is a common word."""
MOST_WITH_ALL = 50
"""Messages with all words that any has, which are looked at besides, since these may be older."""
FEW_WORDS = 20
"""Messages that have a term as a word, below which it is looked for in names too."""
MOST_SCORED = 10
"""Messages that are read at most, beside as many as are asked for."""


class WordSearch(Protocol):
    """A search for some words, as far as a search by rarity uses it."""

    def word_matches(self) -> Iterator[Match]:
        """Yield the documents that match by words."""

    def name_matches(self) -> Iterator[Match]:
        """Yield the documents that may match by names."""

    def mark(self, matches: list[Match], /) -> list[Match]:
        """Return matches whose documents are marked as those of programs where they are."""

    def load_texts(self, matches: Iterable[Match], /) -> Iterator[tuple[Match, str]]:
        """Yield matches with their texts."""


class Candidates(NamedTuple):
    """Messages with some of the words, the worth of the words that each has, and of each word."""

    matches: dict[Document, Match]
    worths: dict[Document, float]
    worth_of: dict[Term, float]

    def list_best(self) -> list[Match]:
        """Return the messages, those with the most worth first, and of equal ones the newest."""
        newest = sorted(self.worths, key=lambda each: (each.at, each.place), reverse=True)
        newest.sort(key=lambda each: -self.worths[each])
        return [self.matches[each] for each in newest]


def find_rarest(query: Query, search: Callable[[Query], WordSearch]) -> list[Hit]:
    """Return the hits of a query, those with the rarest words first, and of equal ones the newest.

    Scores are from 0 to 1; messages of the system and the developer come last.
    """
    found = _find_candidates(query, search)
    best = found.list_best()[: query.limit + MOST_SCORED]
    whole = search(query)
    read = whole.load_texts(whole.mark(best))
    scored = [_score_text(match, text, found.worth_of) for match, text in read]
    scored.sort(key=lambda each: (each[0].document.is_prompt, each[0].rank_key))
    shown = scored[: query.limit]
    return [match.make_hit(text, query.terms, folded) for match, text, folded in shown]


def _find_candidates(query: Query, search: Callable[[Query], WordSearch]) -> Candidates:
    """Return the messages with some of the words, and what these are worth."""
    matches: dict[Document, Match] = {}
    worths: dict[Document, float] = {}
    worth_of: dict[Term, float] = {}
    had: list[Term] = []
    for term in query.terms:
        words = search(query._replace(terms=(term,)))
        found = [*islice(words.word_matches(), MOST_COUNTED_WORD)]
        if len(found) < FEW_WORDS:
            found += islice(words.name_matches(), FEW_WORDS)
        worth_of[term] = log2(1 + MOST_COUNTED_WORD / max(1, len(found)))
        had += [term] if found else []
        for match in found:
            matches[match.document] = match
            worths[match.document] = worths.get(match.document, 0) + worth_of[term]
    # A word that no message has would leave out those with all others.
    query = query._replace(terms=tuple(had))
    for match in islice(search(query).word_matches() if had else (), MOST_WITH_ALL):
        matches[match.document] = match
        worths[match.document] = sum(worth_of[term] for term in had)
    return Candidates(matches, worths, worth_of)


def _score_text(match: Match, text: str, worth_of: dict[Term, float]) -> tuple[Match, str, str]:
    """Return a match with the share of the words' worth that its text has, and the text folded."""
    folded = fold_text(text)
    has = sum(worth * score_text(folded, (term,)) for term, worth in worth_of.items())
    return match._replace(score=has / sum(worth_of.values())), text, folded
