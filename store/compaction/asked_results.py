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
from typing import NamedTuple

from ..history import load_session_chat_messages
from ..tokens import message_text
from ..tools import count_names
from ..view import ViewContext
from .job import split_range

ASKING_MESSAGES = 8
"""The newest messages, whose names and words are looked for: a question and what led to it."""
_PLAIN_WORD = re.compile(r"[^\W\d_]{5,}")


class OldResult(NamedTuple):
    """A result that a clearing would replace: its position, that of its call, tokens saved."""

    seq: int
    call: int | None
    saved: int


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
    asked = _extract_strings(message_text(each.message) for each in newest)
    texts: dict[int, str] = {}
    first_call = min(each.call or each.seq for each in old)
    for first, end in split_range(first_call, max(each.seq for each in old)):
        for stored in load_session_chat_messages(context.connection, session_id, first, end):
            texts[stored.seq] = message_text(stored.message)
    told = {
        each: (texts[each.seq], texts.get(each.call or 0, ""))  # without a call: its own text
        for each in old
    }
    shared = {each: asked & _extract_strings(both) for each, both in told.items()}
    found = Counter(string for strings in shared.values() for string in strings)
    worth = {string: math.log(1 + len(old) / number) for string, number in found.items()}
    return {
        each: sum(worth[string] for string in sorted(strings))
        / math.sqrt(1 + sum(map(len, told[each])))
        for each, strings in shared.items()
        if strings
    }


def _extract_strings(texts: Iterable[str]) -> frozenset[str]:
    """Return the names and the words of texts, words in small letters."""
    text = "\n".join(texts)
    names = (name.text for name in count_names(text))
    return frozenset((*names, *map(str.lower, _PLAIN_WORD.findall(text))))
