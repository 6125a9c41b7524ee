"""Which passages answer a question: by its words, the rarest of which count most.

A question is a sentence of a person or a model. Its common words are left out, and the endings of
the others do not count. Each word is searched alone, so that it is known how rare it is; passages
with the rarest words are read, and scored by all words. Only messages of the asked sessions count,
so nothing is told of others.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import compress, islice
from typing import NamedTuple, TypeVar

from ..clock import Day
from ..errors import InvalidValue
from ..records import Hit
from .answers import NOTICE, Source
from .passages import Group, Line, cut_passage, list_lines, load_group

MOST_WORDS = 12
LONGEST_PHRASE = 4
"""Words of a quotation that is searched as a whole; of a longer one each is searched."""
SHORTEST_NUMBER = 3
"""Digits of a number that says something."""
MOST_READ = 16
"""Messages whose passages are read."""
FOUND_LIMITS = (64, 150, 1_000)
"""Messages that are found: more where too few of them are of the asked sessions, or are no answers
of this server, which are recorded with their calls."""
PAIR_SHARE = 0.4
"""What the other messages of a passage count beside its best one."""
SESSION_SHARE = 0.1
"""What the best other passage of its session counts for a passage."""
CLOSE_SHARE = 0.7
"""What counts beside the words of a passage that they stand close together."""
CLOSE_LENGTH = 160
"""Code points in which words are close together."""
MOST_PLACES = 50
"""Places of a word that are compared with those of others."""
READ_LOSS, SHOWN_LOSS = 0.95, 0.9
"""What is left of a message's score, and of a passage's, for each better one of its session: other
sessions that may hold the answer are seen too."""

Scored = TypeVar("Scored")

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
_PLAIN = re.compile("[a-z]+")
_NAME_PARTS = re.compile(r"[^\W_]+")
SHORTEST_STEM = 4
_ENDING = re.compile(rf"^(.{{{SHORTEST_STEM},}}?)(?:ings?|edly|ies|e[ds]|s|e)$")


class Word(NamedTuple):
    """A word of a question: how it is searched, and how it is found in a text in small letters.

    The pattern begins with letters, as such a one is found faster.
    """

    text: str
    pattern: re.Pattern[str]


class Ranking(NamedTuple):
    """The passages for a question, the best first, with what each of its words is worth.

    ``centers`` are the places of passages around which their words stand close together.
    """

    groups: list[Group]
    worth: dict[Word, float]
    centers: dict[tuple[str, int], int]

    def weigh(self, lines: list[Line]) -> list[float]:
        """Return what lines are worth, by their words."""
        lowered = [line.text.lower() for line in lines]
        found = [[word.pattern.search(line) for word in self.worth] for line in lowered]
        worth = [*self.worth.values()]
        return [sum(compress(worth, each)) for each in found]

    def list_lines(self, group: Group, clean: Callable[[str], str]) -> list[Line]:
        """Return the lines of a passage that may be the best."""
        return list_lines(group.text, self.centers[group.place], clean)

    def cut(self, group: Group, clean: Callable[[str], str], room: int) -> str:
        """Return as much of a passage as so many tokens hold."""
        return cut_passage(group, self.centers[group.place], clean, self.weigh, room)


def parse_question_words(text: str) -> list[Word]:
    """Return the words of a question that are worth a search. Raises InvalidValue for none."""
    found = (each for word in _WORD.findall(text) for each in _split_phrase(word))
    given = dict.fromkeys(each.strip("\"'.:*") for each in found)
    words = [each for each in given if _NAME_PARTS.search(each)]
    telling = [each for each in words if _is_telling(each)] or words
    if not telling:
        raise InvalidValue("text has no word to look for; give a name, a path, or some words")
    telling.sort(key=lambda each: -_guess_rarity(each))
    return [_make_word(each) for each in telling[:MOST_WORDS]]


def _split_phrase(found: str) -> list[str]:
    """Return the words of a long quotation, of which another text may lack some."""
    words = found.strip('"').split()
    return words if len(words) > LONGEST_PHRASE else [found]


def _is_telling(word: str) -> bool:
    is_short_number = word.isdecimal() and len(word) < SHORTEST_NUMBER
    return word.lower() not in _STOPPED and not is_short_number


def _guess_rarity(word: str) -> int:
    """Return a number that is higher for names and long words."""
    is_plain = word.isalpha() and word[1:].islower()
    return len(word) + (0 if is_plain else 20)


def _make_word(text: str) -> Word:
    lowered = text.lower()
    if _PLAIN.fullmatch(lowered):
        stem = _ENDING.sub(r"\1", lowered)
        if stem != lowered or len(lowered) >= SHORTEST_STEM:
            return Word(f"{stem}…", re.compile(rf"{stem}(?<![^\W_]{stem})"))
    parts = _NAME_PARTS.findall(lowered)
    return Word(f'"{text}"', re.compile(r"[\W_]+".join(map(re.escape, parts))))


class Wanted(NamedTuple):
    """What passages may be of: a session, some sessions, roles and a day (None: any)."""

    session: str | None = None
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
        session=wanted.session,
        roles=wanted.roles,
        since=wanted.day and wanted.day.first,
        until=wanted.day and wanted.day.end - 1,
    )
    for limit in FOUND_LIMITS[wanted.sessions is not None :]:
        hits = search(limit=limit)
        chosen = _spread_sessions(
            [(hit.score, hit.session_id, hit) for hit in hits if wanted.has(hit)], READ_LOSS
        )
        found = _load_groups(source, (hit for _, hit in chosen))
        loaded = [*islice(found, MOST_READ)]
        if len(hits) < limit or len(loaded) == MOST_READ:
            break
    return _rank_loaded(loaded, words)


def _spread_sessions(
    scored: Iterable[tuple[float, str, Scored]], loss: float
) -> list[tuple[float, Scored]]:
    """Return what has a score and a session, the best first: less counts what is one more of it."""
    seen: Counter[str] = Counter()
    spread = []
    for score, session_id, value in scored:
        spread.append((score * loss ** seen[session_id], value))
        seen[session_id] += 1
    return sorted(spread, key=lambda each: -each[0])


def _load_groups(source: Source, hits: Iterable[Hit]) -> Iterator[tuple[Hit, Group]]:
    """Yield hits with their passages, but none that repeats an answer of this server."""
    group_of: dict[tuple[str, int], Group] = {}
    for hit in hits:
        place = (hit.session_id, max(1, hit.seq))
        group = group_of.get(place) or load_group(source, *place)
        if group is not None and NOTICE not in group.text:
            group_of |= {(hit.session_id, each.seq): group for each in group.messages}
            yield hit, group


def _rank_loaded(found: list[tuple[Hit, Group]], words: list[Word]) -> Ranking:
    """Return the passages of hits, the best first, and of equal ones the newest.

    A passage has the score of its best message, a part of those of its others and of those of other
    passages of its session, and more, the closer together its words are.
    """
    groups = {group.place: group for _, group in found}
    scores: dict[tuple[str, int], float] = {}
    for hit, group in found:
        share = PAIR_SHARE if group.place in scores else 1.0
        scores[group.place] = scores.get(group.place, 0) + share * hit.score
    places = {place: _list_places(group.text.lower(), words) for place, group in groups.items()}
    worth = {
        word: math.log(1 + len(places) / (1 + sum(word in each for each in places.values())))
        for word in words
    }
    most = max(scores.values(), default=0) or 1
    total: dict[str, float] = defaultdict(float)
    centers = {}
    for place, each in places.items():
        closeness, centers[place] = _measure_closeness(each, worth)
        scores[place] = scores[place] / most + CLOSE_SHARE * closeness
        total[place[0]] += scores[place]
    ranked = [
        (score + SESSION_SHARE * min(score, total[place[0]] - score), place[0], groups[place])
        for place, score in scores.items()
    ]
    ranked.sort(key=lambda each: (-each[0], -each[2].at))
    spread = [group for _, group in _spread_sessions(ranked, SHOWN_LOSS)]
    return Ranking(spread, worth, centers)


def _list_places(lowered: str, words: list[Word]) -> dict[Word, list[int]]:
    """Return the places of the words that a text has, of each the first ones."""
    found = {word: islice(word.pattern.finditer(lowered), MOST_PLACES) for word in words}
    places = {word: [each.start() for each in every] for word, every in found.items()}
    return {word: every for word, every in places.items() if every}


def _measure_closeness(
    places: dict[Word, list[int]], worth: dict[Word, float]
) -> tuple[float, int]:
    """Return the share of the words' worth that stands close together, at most, and where."""
    inside: dict[Word, int] = {}
    best, center = 0.0, 0
    for at, word in sorted((at, word) for word, every in places.items() for at in every):
        inside[word] = at
        inside = {word: last for word, last in inside.items() if at - last <= CLOSE_LENGTH}
        close = sum(map(worth.__getitem__, inside))
        if close > best:
            best, center = close, at
    return best / (sum(worth.values()) or 1), center
