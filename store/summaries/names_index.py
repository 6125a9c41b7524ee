"""The index of names: what a hidden range calls things, whoever writes the summary of it.

A model that goes on has to spell paths, urls, error codes, numbers and identifiers exactly, and
cannot make them up; summaries keep a third of those that are needed again. So the best of them are
told beside every summary, as many as have room. What each was met as is kept, so that the next
index knows the names of all that was ever hidden without reading that again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..messages import Message
from ..ready import Language, phrase
from ..text import decode_json, encode_json
from ..tools import names_in
from .texts import extract_message_text, parse_calls, parse_json

SAID = {"assistant": 1, "user": 2}
"""Who said a name, as one bit each; what tools return counts by its times alone."""
WORTH = {0: 0, 1: 3, 2: 2, 3: 5}
"""What it is worth that the model, the user or both have said a name."""
MOST_TIMES = 8
"""So many times count."""
OLDEST = 0.3
"""What a name is worth that was last met at the very beginning, to one met at the end: 1.3."""
LINE = 8
"""Code points that a name costs beside its own."""
KEPT = 3
"""So many times the room is kept of the best names: what is not told now may be next time."""


class NameUse(NamedTuple):
    """How a name was met: who ``said`` it (bits), how many messages have it, the last of them."""

    said: int
    times: int
    last: int


NameIndex = dict[str, NameUse]
"""Names, and how each was met."""


def add_message(known: NameIndex, seq: int, message: Message, root: str | None) -> int:
    """Note the names of a message at a position; return how many code points were looked at."""
    said = SAID.get(str(message.get("role")), 0)
    texts = [*_texts(message)]
    for name in extract_names(texts, root):
        known[name] = _both(known.get(name), NameUse(said, 1, seq))
    return sum(map(len, texts))


def extract_names(texts: Iterable[str], root: str | None) -> set[str]:
    """Return the names in texts, paths below the root as they are seen from there."""
    return {_below(name.text, root) for text in texts for name in names_in(text)}


def merge_indexes(older: Mapping[str, NameUse], newer: Mapping[str, NameUse]) -> NameIndex:
    """Return the names of two ranges as of one."""
    together = dict(older)
    for name, met in newer.items():
        together[name] = _both(older.get(name), met)
    return together


def select_names(known: NameIndex, room: int) -> NameIndex:
    """Return the names worth keeping for an index of so much room, the best first."""
    length = max((met.last for met in known.values()), default=1)
    worth = {name: _worth(name, met, length) for name, met in known.items()}
    ranked = sorted(sorted(known), key=worth.__getitem__, reverse=True)
    return {name: known[name] for name in _fitting(ranked, KEPT * room)}


def render_index(ranked: Iterable[str], room: int, language: Language = "en") -> str:
    """Return names, given the best first, one a line under a heading; "" where none has room.

    A name is whole or left out.
    """
    heading = phrase("names_met", language)
    names = [*_fitting(ranked, room - len(heading))]
    return "\n".join([heading, *names]) if names else ""


def dump_index(known: NameIndex) -> str:
    """Return names as a text that `load_index` reads."""
    return encode_json([[name, *met] for name, met in known.items()])


def load_index(text: str | None) -> NameIndex:
    """Return the names of a text."""
    return {name: NameUse(*met) for name, *met in decode_json(text or "[]")}


def _texts(message: Message) -> Iterator[str]:
    """Yield all that a message says: its content, and each text in the arguments of its calls."""
    yield extract_message_text(message)
    for call in parse_calls(message):
        yield from _leaves(parse_json(call.arguments))


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts in a value, however deep."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _below(name: str, root: str | None) -> str:
    if not root or not name.startswith(root):
        return name
    rest = name[len(root.rstrip("/\\")) :]
    return rest.lstrip("/\\") if rest.startswith(("/", "\\")) else name


def _both(before: NameUse | None, met: NameUse) -> NameUse:
    if before is None:
        return met
    times = before.times + met.times
    return NameUse(before.said | met.said, times, max(before.last, met.last))


def _worth(name: str, met: NameUse, length: int) -> float:
    """Return what it is worth to tell a name, by the code point."""
    value = WORTH[met.said] + min(met.times, MOST_TIMES)
    return value * (OLDEST + met.last / length) / (LINE + len(name))


def _fitting(names: Iterable[str], room: int) -> Iterator[str]:
    """Yield the names that have room, each on a line: of a long one the next may still fit."""
    for name in names:
        if len(name) < room:
            room -= len(name) + 1
            yield name
