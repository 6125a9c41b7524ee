"""The index of names: the names in a hidden range, whoever writes the summary of it.

A model that goes on has to spell paths, urls, error codes, numbers and identifiers exactly, and
cannot make them up; summaries keep a third of those that are needed again. So the best of them are
sent with every summary, as many as have room. The uses of each are stored, so that the next index
has the names of all that was ever hidden without reading it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..messages import Message
from ..phrases import Language, render_phrase
from ..text import decode_json, encode_json
from ..tools import count_names
from .message_texts import extract_message_text, parse_calls, parse_json_container

SPEAKER_BITS = {"assistant": 1, "user": 2}
"""Who used a name, as one bit each; in results of tools only the number of uses counts."""
SPEAKER_WORTH = {0: 0, 1: 3, 2: 2, 3: 5}
"""The worth of a name that the model, the user or both have used."""
MOST_NAME_TIMES = 8
"""Uses of a name that count, at most."""
OLDEST_WORTH = 0.3
"""The worth of a name that was last used at the very beginning; at the end it is 1.3."""
NAME_COST = 8
"""Code points that a name costs besides its own."""
STORED_ROOMS = 3
"""So many times the room is stored of the best names: the next index may show others of them."""


class NameUse(NamedTuple):
    """The uses of a name: who ``said`` it (bits), how many messages have it, the last of them."""

    said: int
    times: int
    last: int


NameIndex = dict[str, NameUse]
"""Names and their uses."""


def add_message(index: NameIndex, seq: int, message: Message, root: str | None) -> int:
    """Add the names of a message at a position; return how many code points were searched.

    The texts of a message are its content, and each text in the arguments of its calls, however
    deep.
    """
    texts = [extract_message_text(message)]
    for call in parse_calls(message):
        values = [parse_json_container(call.arguments)]
        while values:
            value = values.pop()
            if isinstance(value, str):
                texts.append(value)
            elif isinstance(value, dict):
                values.extend(value.values())
            elif isinstance(value, list):
                values.extend(value)
    use = NameUse(SPEAKER_BITS.get(str(message.get("role")), 0), 1, seq)
    for name in extract_text_names(texts, root):
        index[name] = _add_uses(index.get(name), use)
    return sum(map(len, texts))


def extract_text_names(texts: Iterable[str], root: str | None) -> set[str]:
    """Return the names in texts, paths below the root relative to it."""
    names = {name.text for text in texts for name in count_names(text)}
    return {_make_relative(name, root) for name in names} if root else names


def _make_relative(name: str, root: str) -> str:
    if not name.startswith(root):
        return name
    rest = name[len(root.rstrip("/\\")) :]
    return rest.lstrip("/\\") if rest.startswith(("/", "\\")) else name


def merge_indexes(older: Mapping[str, NameUse], newer: Mapping[str, NameUse]) -> NameIndex:
    """Return the names of two ranges as of one."""
    merged = dict(older)
    for name, use in newer.items():
        merged[name] = _add_uses(older.get(name), use)
    return merged


def _add_uses(before: NameUse | None, use: NameUse) -> NameUse:
    if before is None:
        return use
    times = before.times + use.times
    return NameUse(before.said | use.said, times, max(before.last, use.last))


def select_names(index: NameIndex, room: int) -> NameIndex:
    """Return the names worth storing for an index of so much room, the best first."""
    length = max((use.last for use in index.values()), default=1)
    worth = {
        name: (SPEAKER_WORTH[use.said] + min(use.times, MOST_NAME_TIMES))
        * (OLDEST_WORTH + use.last / length)
        / (NAME_COST + len(name))
        for name, use in index.items()
    }
    ranked = sorted(sorted(index), key=worth.__getitem__, reverse=True)
    return {name: index[name] for name in _list_fitting_names(ranked, STORED_ROOMS * room)}


def render_index(ranked: Iterable[str], room: int, language: Language = "en") -> str:
    """Return names, the best first, one a line under a heading; "" where none has room.

    A name is whole or left out.
    """
    heading = render_phrase("names_met", language)
    names = [*_list_fitting_names(ranked, room - len(heading))]
    return "\n".join([heading, *names]) if names else ""


def _list_fitting_names(names: Iterable[str], room: int) -> Iterator[str]:
    """Yield the names that fit, each on a line: after a long one the next may still fit."""
    for name in names:
        if len(name) < room:
            room -= len(name) + 1
            yield name


def dump_index(index: NameIndex) -> str:
    """Return names as a text that `parse_index` reads."""
    return encode_json([[name, *use] for name, use in index.items()])


def parse_index(text: str | None) -> NameIndex:
    """Return the names of a text."""
    return {name: NameUse(*use) for name, *use in decode_json(text or "[]")}
