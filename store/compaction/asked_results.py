"""The results that are likely to be asked for again, which a clearing leaves.

A cold cache mostly means a new question. Of the older results those stay that share names with the
newest messages: a name counts more the fewer of the results have it, and a long result has to share
more of them. Plain words tell little: any long text has those of its language.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ..history import load_session_chat_messages
from ..text import clearable_cache
from ..tokens import message_text
from ..tools import count_names
from ..view import CallAnswer, ViewContext
from .job import split_range

ASKING_MESSAGES = 8
"""The newest messages, whose names are looked for: a question and what led to it."""
_ESCAPED_SPACE = re.compile(r"\\[nrt]")
"""White space in the JSON of arguments, which is no part of the name after it."""


class OldResult(NamedTuple):
    """A result that a clearing would replace, with its call, and the tokens saved."""

    answer: CallAnswer
    saved: int

    @property
    def seq(self) -> int:
        """The position of the result."""
        return self.answer.result.seq


class ResultNames(NamedTuple):
    """The names of a result and its call, and the code points of both."""

    names: tuple[str, ...]
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
    newest = _load_texts(context, max(1, context.last - ASKING_MESSAGES + 1), context.last)
    asked = frozenset[str]().union(*map(_extract_message_names, newest.values()))
    answers = [each.answer for each in old]
    told = context.cache.load_or_compute(("names",), answers, partial(_load_names, context))
    shared = {each: asked.intersection(told[each.answer].names) for each in old}
    found = Counter(name for names in shared.values() for name in names)
    worth = {name: math.log(1 + len(old) / number) for name, number in found.items()}
    return {
        each: sum(worth[name] for name in sorted(names)) / math.sqrt(1 + told[each.answer].length)
        for each, names in shared.items()
        if names
    }


def _load_names(context: ViewContext, answers: list[CallAnswer]) -> dict[CallAnswer, ResultNames]:
    """Return the names of results and of their calls, reading both."""
    calls = {each: each.call[0] if each.call else each.result.seq for each in answers}
    texts = _load_texts(context, min(calls.values()), max(each.result.seq for each in answers))
    told: dict[CallAnswer, ResultNames] = {}
    for each, call in calls.items():
        places = dict.fromkeys((each.result.seq, call))  # without a call: its own text
        both = "\n".join(texts.get(place, "") for place in places)
        told[each] = ResultNames(tuple(_extract_names(both)), len(both))
    return told


def _load_texts(context: ViewContext, first: int, last: int) -> dict[int, str]:
    """Return the texts of messages, by position."""
    session_id = context.pointer.session_id
    return {
        stored.seq: message_text(stored.message)
        for begin, end in split_range(first, last)
        for stored in load_session_chat_messages(context.connection, session_id, begin, end)
    }


@clearable_cache(4 * ASKING_MESSAGES)
def _extract_message_names(text: str) -> frozenset[str]:
    """Return the names of a text; most of the newest messages were asked before."""
    return _extract_names(text)


def _extract_names(text: str) -> frozenset[str]:
    """Return the names of a text."""
    return frozenset(name.text for name in count_names(_ESCAPED_SPACE.sub(" ", text)))
