"""Which passages answer a question: by its words, the rarest of which count most.

A question is a sentence of a person or a model. Its common words are left out, and the endings of
the others do not count. Each word is searched alone, so that it is known how rare it is; passages
with the rarest words are read, and scored by all words. Only messages of the asked sessions count,
so nothing is told of others.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from ..errors import InvalidValue
from ..records import Hit
from .answers import NOTICE, Day, Source
from .passages import Group, load_group

MOST_WORDS = 12
MOST_READ = 16
"""Messages whose passages are read."""
FOUND_LIMITS = (16, 150, 1_000)
"""Messages that are found: more where too few of them are of the asked sessions, or are no answers
of this server, which are recorded with their calls."""
PAIR_SHARE = 0.4
"""What the other messages of a passage count beside its best one."""
SESSION_SHARE = 0.1
"""What the best other passage of its session counts for a passage."""

STOP_WORDS = """
a about after again all also am an and any are as at be been before being between both but by can
could did do does doing done for from get got had has have having he her here him his how i if in
into is it its itself just last like made make many may me might more most must my need no not now
of off on once only or other our out over own past please recently same she should so some such
than that the their them then there these they thing things this those through time to too under
until up us use used using very was we were what when where which while who whom whose why will
with work worked would yet you your one earlier previously day ago happened tell remember know
question file files change changed command commands run ran decide decided fix fixed ask asked
什么 哪个 怎么 如何 我们 的 了 是 在 吗 呢
"""
"""Words that say nothing about the matter of a question, or that it is a question."""
_STOPPED = frozenset(STOP_WORDS.split())
_WORD = re.compile(r'"[^"]+"|[^\s"\'`(),;!?<>{}\[\]]+')
_ENDINGS = ("ings", "ing", "edly", "ies", "ed", "es", "s", "e")
_PLAIN = re.compile("[a-z]+")
_NAME_PARTS = re.compile(r"[^\W_]+")
SHORTEST_STEM = 4


class Word(NamedTuple):
    """A word of a question: how it is searched, and how it is found in a text in small letters.

    A text with the pattern has the part, which is looked for first, as that is faster.
    """

    text: str
    part: str
    pattern: re.Pattern[str]

    def is_in(self, lowered: str) -> bool:
        """Tell whether a text has the word."""
        return self.part in lowered and self.pattern.search(lowered) is not None


class RankedGroup(NamedTuple):
    """A passage and its score."""

    group: Group
    score: float


class Ranking(NamedTuple):
    """The passages for a question, the best first, with what each of its words is worth."""

    found: list[RankedGroup]
    worth: dict[Word, float]

    @property
    def groups(self) -> list[Group]:
        """The passages without their scores."""
        return [each.group for each in self.found]

    def weigh(self, line: str) -> float:
        """Return what a line is worth, by its words."""
        lowered = line.lower()
        return sum(worth for word, worth in self.worth.items() if word.is_in(lowered))


def parse_question_words(text: str) -> list[Word]:
    """Return the words of a question that are worth a search. Raises InvalidValue for none."""
    given = [each.strip("\"'.:*") for each in _WORD.findall(text)]
    words = [each for each in dict.fromkeys(given) if each and _NAME_PARTS.search(each)]
    telling = [each for each in words if each.lower() not in _STOPPED] or words
    if not telling:
        raise InvalidValue("text has no word to look for; give a name, a path, or some words")
    telling.sort(key=lambda each: -_guess_rarity(each))
    return [_make_word(each) for each in telling[:MOST_WORDS]]


def _guess_rarity(word: str) -> int:
    """Return a number that is higher for names and long words."""
    is_plain = word.isalpha() and word[1:].islower()
    return len(word) + (0 if is_plain else 20)


def _make_word(text: str) -> Word:
    lowered = text.lower()
    if _PLAIN.fullmatch(lowered):
        stem = _cut_ending(lowered)
        if stem != lowered or len(lowered) >= SHORTEST_STEM:
            return Word(f"{stem}…", stem, re.compile(rf"(?<![^\W_]){stem}"))
    parts = _NAME_PARTS.findall(lowered)
    return Word(f'"{text}"', parts[0], re.compile(r"[\W_]+".join(map(re.escape, parts))))


def _cut_ending(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word[: -len(ending)]
    return word


class Wanted(NamedTuple):
    """What passages may be of: sessions, roles and a day (None: any)."""

    sessions: frozenset[str] | None = None
    roles: tuple[str, ...] | None = None
    day: Day | None = None

    def has(self, hit: Hit) -> bool:
        """Tell whether a found message is of the sessions, and stands on its line."""
        return hit.on_line and (self.sessions is None or hit.session_id in self.sessions)


ANY = Wanted()


def rank_groups(source: Source, text: str, wanted: Wanted = ANY) -> Ranking:
    """Return the passages that answer a question, the best first."""
    words = parse_question_words(text)
    search = partial(
        source.search,
        " ".join(word.text for word in words),
        order="rarest",
        roles=wanted.roles,
        since=wanted.day and wanted.day.first,
        until=wanted.day and wanted.day.end - 1,
    )
    for limit in FOUND_LIMITS[wanted.sessions is not None :]:
        hits = search(limit=limit)
        loaded = [*islice(_load_groups(source, filter(wanted.has, hits)), MOST_READ)]
        if len(hits) < limit or len(loaded) == MOST_READ:
            break
    found = _score_groups(loaded)
    return Ranking(found, _weigh_words(found, words))


def _weigh_words(
    found: list[RankedGroup],
    words: list[Word],
) -> dict[Word, float]:
    """Return what each word is worth: more, the fewer of the passages have it."""
    having: Counter[Word] = Counter()
    for ranked in found:
        lowered = ranked.group.text.lower()
        having.update(word for word in words if word.is_in(lowered))
    return {word: math.log(1 + len(found) / (1 + having[word])) for word in words}


def _load_groups(
    source: Source,
    hits: Iterable[Hit],
) -> Iterator[tuple[Hit, Group]]:
    """Yield hits with their passages, but none that repeats an answer of this server."""
    group_of: dict[tuple[str, int], Group] = {}
    for hit in hits:
        place = (hit.session_id, max(1, hit.seq))
        group = group_of.get(place) or load_group(source, *place)
        if group is not None and NOTICE not in group.text:
            group_of |= {(hit.session_id, each.seq): group for each in group.messages}
            yield hit, group


def _score_groups(found: Iterable[tuple[Hit, Group]]) -> list[RankedGroup]:
    """Return the passages of hits, the best first, and of equal ones the newest.

    A passage has the score of its best message, a part of those of its others, and a part of those
    of other passages of its session.
    """
    group_of: dict[tuple[str, int], Group] = {}
    scores: dict[tuple[str, int], float] = {}
    for hit, group in found:
        key = (group.session_id, group.first)
        group_of[key] = group
        scores[key] = hit.score if key not in scores else scores[key] + PAIR_SHARE * hit.score
    total: dict[str, float] = {}
    for (session_id, _), score in scores.items():
        total[session_id] = total.get(session_id, 0) + score
    ranked = [
        RankedGroup(group_of[key], score + SESSION_SHARE * min(score, total[key[0]] - score))
        for key, score in scores.items()
    ]
    return sorted(ranked, key=lambda each: (-each.score, -each.group.at))
