"""How well a message has what is asked for, and the order of hits.

The score follows from the text alone: how often each word is in it, the more the less each further
one says, and how long it is, as in BM25, whose constants these are. What BM25 asks of all texts
(how rare a word is, how long they are on average) is left out: it would change with what others
say, so one owner's hits would tell of another's messages, and with each message that comes, so
pages would overlap. Since a hit has all words, how rare each is hardly changes the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..records import Hit
from .documents import Row
from .scope import Holder
from .snippets import times
from .terms import Term

SATURATION = 1.2
"""How many times a word has to be in a text of the usual length for half of the score, about."""
SHARE_OF_LENGTH = 0.75
"""How much of it goes by the length."""
USUAL = 1_000
"""Code points of a text of the usual length."""

IN_NAMES = 0.0
"""The score of what has a word in a name only."""
LEAST = 1e-6
"""The score of what the index says has the words, though none is seen in the text."""
UNRANKED = 1.0
"""The score of what has the words, where nothing is ranked: above all others."""

Key = tuple[float, int, int, str, int, int]
"""What hits are sorted by: their score or their place, then what tells all hits apart."""


class Found(NamedTuple):
    """A row that has what is asked for, and whose it is."""

    row: Row
    holder: Holder
    score: float

    @property
    def rank(self) -> Key:
        """What it is sorted by where hits are ranked."""
        row, score = self.row, -self.score
        return score, -row.at, -row.seq, self.holder.session_id, -row.branch, row.record

    @property
    def order(self) -> Key:
        """What it is sorted by in the order of storing, the last first."""
        row = self.row
        return -row.place, 0, -row.seq, self.holder.session_id, -row.branch, row.record


def rank_of(hit: Hit) -> Key:
    """Return what a hit is sorted by where hits are ranked."""
    return -hit.score, -hit.at, -hit.seq, hit.session_id, -hit.branch, hit.compaction or 0


def order_of(hit: Hit, place: int) -> Key:
    """Return what a hit that was stored at a place is sorted by in the order of storing."""
    return -place, 0, -hit.seq, hit.session_id, -hit.branch, hit.compaction or 0


def score(plain: str, asked: Sequence[Term]) -> float:
    """Return how well a folded text has the terms as words: below 1; 0 where it lacks one."""
    length = 1 - SHARE_OF_LENGTH + SHARE_OF_LENGTH * len(plain) / USUAL
    counted = [times(plain, term) for term in asked]
    if not all(counted):
        return 0.0
    return sum(each / (each + SATURATION * length) for each in counted) / len(counted)
