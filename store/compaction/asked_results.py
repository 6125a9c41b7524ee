"""The results that are likely to be asked for again, which a clearing leaves.

A cold cache mostly means a new question. Of the older results those stay that share names and words
with the newest messages: a string counts more the fewer of the results have it, and a long result
has to share more of them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ..history import load_session_chat_messages
from ..text import clearable_cache
from ..tokens import message_text
from ..tools import count_names
from ..view import CallAnswer, ViewContext
from .job import split_range

ASKING_MESSAGES = 8
"""The newest messages, whose names and words are looked for: a question and what led to it."""
_PLAIN_WORD = re.compile(r"[^\W\d_]{5,}")


class OldResult(NamedTuple):
    """A result that a clearing would replace, with its call, and the tokens saved."""

    answer: CallAnswer
    saved: int

    @property
    def seq(self) -> int:
        """The position of the result."""
        return self.answer.result.seq


class ResultStrings(NamedTuple):
    """The names and words of a result and its call, and the code points of both."""

    strings: tuple[str, ...]
    length: int


def find_asked_results(context: ViewContext, old: Sequence[OldResult], room: int) -> set[int]:
    """Return the positions of the results that share most, as many as fit into tokens."""
    if not room or not old:
        return set()
    scores = _score_results(context, old)
    kept: set[int] = set()
    best = sorted(scores, key=lambda each: (-scores[each], -each.seq))
    for each in best:
        if each.saved <= room:
            kept.add(each.seq)
            room -= each.saved
    return kept


def _score_results(context: ViewContext, old: Sequence[OldResult]) -> dict[OldResult, float]:
    """Return how much of the newest messages each result shares, if anything."""
    session_id, last = context.pointer.session_id, context.last
    newest = load_session_chat_messages(
        context.connection, session_id, max(1, last - ASKING_MESSAGES + 1), last
    )
    texts = (message_text(each.message) for each in newest)
    asked = frozenset[str]().union(*map(_extract_text_strings, texts))
    answers = [each.answer for each in old]
    told = context.cache.load_or_compute(("strings",), answers, partial(_load_strings, context))
    shared = {each: asked.intersection(told[each.answer].strings) for each in old}
    found = Counter(string for strings in shared.values() for string in strings)
    worth = {string: math.log(1 + len(old) / number) for string, number in found.items()}
    return {
        each: sum(worth[string] for string in sorted(strings))
        / math.sqrt(1 + told[each.answer].length)
        for each, strings in shared.items()
        if strings
    }


def _load_strings(
    context: ViewContext, answers: list[CallAnswer]
) -> dict[CallAnswer, ResultStrings]:
    """Return the strings of results and of their calls, reading both."""
    calls = {each: each.call[0] if each.call else each.result.seq for each in answers}
    texts: dict[int, str] = {}
    for first, end in split_range(min(calls.values()), max(each.result.seq for each in answers)):
        session_id = context.pointer.session_id
        for stored in load_session_chat_messages(context.connection, session_id, first, end):
            texts[stored.seq] = message_text(stored.message)
    told: dict[CallAnswer, ResultStrings] = {}
    for each, call in calls.items():
        places = dict.fromkeys((each.result.seq, call))  # without a call: its own text
        both = [texts.get(place, "") for place in places]
        told[each] = ResultStrings(tuple(_extract_strings(both)), sum(map(len, both)))
    return told


@clearable_cache(4 * ASKING_MESSAGES)
def _extract_text_strings(text: str) -> frozenset[str]:
    """Return the names and the words of a text; most of the newest messages were asked before."""
    return _extract_strings((text,))


def _extract_strings(texts: Iterable[str]) -> frozenset[str]:
    """Return the names and the words of texts, words in small letters."""
    text = "\n".join(texts)
    names = (name.text for name in count_names(text))
    return frozenset((*names, *map(str.lower, _PLAIN_WORD.findall(text))))
