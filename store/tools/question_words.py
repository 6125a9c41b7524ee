"""The words of a question that are worth a search, and how each is found in a text.

The common words of a question are left out, and the endings of the others do not count.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from ..errors import InvalidValue

MOST_WORDS = 12
LONGEST_PHRASE = 4
"""Words of a quotation that is searched as a whole; of a longer one each is searched."""
SHORTEST_NUMBER = 3
"""Digits of a number that says something."""

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


class QuestionWord(NamedTuple):
    """A word of a question: how it is searched, and how it is found in a text in small letters.

    The pattern begins with the letters ``begin``, since a text that lacks them is known faster.
    """

    text: str
    begin: str
    pattern: re.Pattern[str]

    def find_places(self, lowered: str, most: int) -> list[int]:
        """Return the first places of the word in a text in small letters."""
        at = lowered.find(self.begin)
        found = islice(self.pattern.finditer(lowered, at), most) if at >= 0 else ()
        return [each.start() for each in found]


def parse_question_words(text: str) -> list[QuestionWord]:
    """Return at most 12 words of a question that tell something, names and long ones first.

    Raises InvalidValue for a question without a word.
    """
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


def _make_word(text: str) -> QuestionWord:
    lowered = text.lower()
    if _PLAIN.fullmatch(lowered):
        stem = _ENDING.sub(r"\1", lowered)
        if stem != lowered or len(lowered) >= SHORTEST_STEM:
            return QuestionWord(f"{stem}…", stem, re.compile(rf"{stem}(?<![^\W_]{stem})"))
    parts = _NAME_PARTS.findall(lowered)
    pattern = re.compile(r"[\W_]+".join(map(re.escape, parts)))
    return QuestionWord(f'"{text}"', parts[0], pattern)
