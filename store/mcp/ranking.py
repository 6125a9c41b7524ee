"""Which passages answer a question: by its words, the rarest of which count most.

Passages with the rarest words are read, and scored by all words. Only messages of the asked
sessions count.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial
from itertools import compress
from typing import Any, NamedTuple, TypeVar

from ..records import Hit
from ..tools import QuestionWord, parse_question_words
from .answers import NOTICE, Source, SourceState
from .passages import Group, PassageLine, load_group

MOST_READ = 16
"""Messages whose passages are read."""
FOUND_LIMITS = (40, 150, 1_000)
"""Messages that are found: more where too few of them are of the asked sessions, or are no answers
of this server, which are recorded with their calls."""
PAIR_SHARE, SESSION_SHARE, CLOSE_SHARE = 0.4, 0.1, 0.7
"""What counts for a passage beside the score of its best message: the scores of its others, that of
the other passages of its session, and that its words stand close together."""
CLOSE_LENGTH = 160
"""Code points in which words are close together."""
MOST_WORD_PLACES = 50
"""Places of a word that are compared with those of others."""
READ_LOSS, SHOWN_LOSS = 0.95, 0.9
"""What is left of a message's score, and of a passage's, for each better one of its session: other
sessions that may hold the answer are seen too."""

Scored = TypeVar("Scored")


class Ranking(NamedTuple):
    """The passages for a question, the best first, with what each of its words is worth.

    ``centers`` are the places of passages around which their words stand close together.
    """

    groups: list[Group]
    worth: dict[QuestionWord, float]
    centers: dict[str, int]

    def weigh(self, lines: list[PassageLine]) -> list[float]:
        """Return what lines are worth, by their words."""
        lowered = [line.text.lower() for line in lines]
        found = [[word.pattern.search(line) for word in self.worth] for line in lowered]
        return [sum(compress(self.worth.values(), each)) for each in found]


def rank_groups(
    source: Source, text: str, sessions: frozenset[str] | None = None, **filters: Any
) -> Ranking:
    """Return the passages that answer a question, the best first.

    They are of some sessions (None: any), and pass the filters of `Store.search`.
    """
    words = parse_question_words(text)
    for limit in FOUND_LIMITS[sessions is not None :]:
        hits = source.search(text, order="rarest", limit=limit, **filters)
        scored = [
            (hit.score, hit.session_id, hit)
            for hit in hits
            if hit.on_line and (sessions is None or hit.session_id in sessions)
        ]
        chosen = _spread_sessions(scored, READ_LOSS)
        loaded = source.reading(partial(_load_groups, [hit for _, hit in chosen]))
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


def _load_groups(hits: list[Hit], state: SourceState) -> list[tuple[Hit, Group]]:
    """Return the first hits with their passages, but none that repeats an answer of this server."""
    group_of: dict[tuple[str, int], Group] = {}
    loaded: list[tuple[Hit, Group]] = []
    for hit in hits:
        place = (hit.session_id, max(1, hit.seq))
        group = group_of.get(place) or load_group(state, *place)
        if group is not None and NOTICE not in group.text:
            group_of |= {(hit.session_id, each.seq): group for each in group.messages}
            loaded.append((hit, group))
        if len(loaded) == MOST_READ:
            break
    return loaded


def _rank_loaded(found: list[tuple[Hit, Group]], words: list[QuestionWord]) -> Ranking:
    """Return the passages of hits, the best first, and of equal ones the newest.

    A passage has the score of its best message, a part of those of its others and of those of other
    passages of its session, and more, the closer together its words are.
    """
    groups = {group.name: group for _, group in found}
    lowered = {name: group.text.lower() for name, group in groups.items()}
    places = {name: _list_places(text, words) for name, text in lowered.items()}
    having = Counter(word for each in places.values() for word in each)
    worth = {word: math.log(1 + len(places) / (1 + having[word])) for word in words}
    close = {name: _measure_closeness(each, worth) for name, each in places.items()}
    said = _add_up_scores(found)
    most = max(said.values(), default=0) or 1
    scores = {name: said[name] / most + CLOSE_SHARE * near for name, (near, _) in close.items()}
    centers = {name: center for name, (_, center) in close.items()}
    return Ranking(_rank_beside_others(scores, groups), worth, centers)


def _add_up_scores(found: list[tuple[Hit, Group]]) -> dict[str, float]:
    """Return the scores of passages by their names: of the best message, and a part of others."""
    scores: dict[str, float] = {}
    for hit, group in found:
        share = PAIR_SHARE if group.name in scores else 1.0
        scores[group.name] = scores.get(group.name, 0) + share * hit.score
    return scores


def _rank_beside_others(scores: dict[str, float], groups: dict[str, Group]) -> list[Group]:
    """Return passages in the order of their scores and those of others of their sessions."""
    total: dict[str, float] = defaultdict(float)
    for name, score in scores.items():
        total[groups[name].session_id] += score
    ranked = []
    for name, score in scores.items():
        session_id = groups[name].session_id
        others = min(score, total[session_id] - score)
        ranked.append((score + SESSION_SHARE * others, session_id, groups[name]))
    ranked.sort(key=lambda each: (-each[0], -each[2].at))
    return [group for _, group in _spread_sessions(ranked, SHOWN_LOSS)]


def _list_places(lowered: str, words: list[QuestionWord]) -> dict[QuestionWord, list[int]]:
    """Return the places of the words that a text has, of each the first ones."""
    places = {word: word.find_places(lowered, MOST_WORD_PLACES) for word in words}
    return {word: some for word, some in places.items() if some}


def _measure_closeness(
    places: dict[QuestionWord, list[int]], worth: dict[QuestionWord, float]
) -> tuple[float, int]:
    """Return the share of the words' worth that stands close together, at most, and where."""
    inside: dict[QuestionWord, int] = {}
    best, center = 0.0, 0
    found = [(at, word) for word, every in places.items() for at in every]
    for at, word in sorted(found):
        inside[word] = at
        inside = {word: last for word, last in inside.items() if at - last <= CLOSE_LENGTH}
        close = sum(map(worth.__getitem__, inside))
        if close > best:
            best, center = close, at
    return best / (sum(worth.values()) or 1), center
