"""The strings by which is judged whether something is still in sight: names, words, exact lines.

A text is cut at white space and brackets, and each piece is a url, a path, an error code, or else
is taken apart into identifiers, numbers and plain words. Names are what an index of names can hold;
words and lines are there because no index can serve them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from ..facts import COMMANDS, PATCH
from ..recorded import Message

GROUPS = {
    "names": ("path", "url", "error", "number", "identifier", "command"),
    "words": ("word",),
    "lines": ("line",),
}
"""The kinds of strings, as they are counted together."""


class String(NamedTuple):
    """A string of a kind; a ``word`` in small letters, a ``line`` without indentation."""

    kind: str
    text: str


LONGEST = 200
"""Code points of a piece that may be a name; what is longer is data."""
SHORTEST = {"line": 10, "command": 8}
"""Code points from which on a line, or a command, is not there by chance."""
REPEATED = ("old_string", "old_str", "old_text", "oldText", "oldString", "search")
"""Arguments of edits that repeat what a file has."""
FILES = re.compile(
    r"c|cc|cfg|cpp|cs|css|csv|go|h|hpp|html|ini|ipynb|java|jsx?|jsonl?|kt|lock|log|lua|mdx?|mjs|php"
    r"|png|pony|py|rb|rst?|scala|scss|sh|sql|svg|swift|toml|tsx?|txt|xml|ya?ml|zsh"
)
"""Endings by which a word with a dot is a file's name."""

_PIECE = re.compile(r"[^\s\"'`()<>{}\[\],;|=*]+")
_PART = re.compile(r"\w+")
_ENDS = ".:!?-"
_LINE_NUMBERS = re.compile(r"(?::\d+)+\Z|#L\d+(?:-L?\d+)?\Z")
_NUMBERED = re.compile(r"\A\s*\d+[→\t:|]")
_KINDS = (
    ("error", re.compile(r"[A-Z]{1,6}\d{2,5}|E[A-Z]{4,}|[A-Z]\w*(?:Error|Exception|Warning)")),
    ("number", re.compile(r"\d{4,}|(?=[a-f]*\d)[0-9a-f]{7,}")),
    ("identifier", re.compile(r"(?=\w*(?:[a-z][A-Z]|_|\d))(?=\w*[^\W\d_])\w{4,}")),
    ("word", re.compile(r"[^\W\d_]{5,}")),
)
"""What a part of a piece may be, the first that fits it whole."""


def strings(text: str) -> set[String]:
    """Return the names and plain words of a text."""
    return {string for piece in set(_PIECE.findall(text)) for string in _of_piece(piece)}


def lines(text: str) -> set[str]:
    """Return the lines of a text that tell, without indentation and a reader's line numbers."""
    bare = (_NUMBERED.sub("", line).strip() for line in text.splitlines())
    return {line for line in bare if len(line) >= SHORTEST["command"]}


def texts(message: Message) -> Iterator[str]:
    """Yield all texts of a message: its content, and each text among the arguments of its calls."""
    yield from _leaves(_parts(message.get("content")))
    for _, arguments in calls(message):
        yield from _leaves(arguments)


def calls(message: Message) -> Iterator[tuple[str, Any]]:
    """Yield the names of the tools that a message calls, and the arguments, read from JSON."""
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        yield function.get("name", ""), _read(function.get("arguments"))


def repeated(message: Message) -> set[String]:
    """Return the exact lines that the edits of a message repeat, and the commands that it runs."""
    found: set[String] = set()
    for name, arguments in calls(message):
        named = arguments if isinstance(arguments, dict) else {"text": arguments}
        found.update(String("line", line) for line in _edited(named))
        command = str(named.get(COMMANDS.get(name, ""), "")).strip()
        found.add(String("command", command.partition("\n")[0]))
    return {each for each in found if len(each.text) >= SHORTEST[each.kind]}


def _edited(arguments: Message) -> Iterator[str]:
    """Yield the lines that an edit must find in its file."""
    for name, text in arguments.items():
        lines = text.splitlines() if isinstance(text, str) else []
        if name in REPEATED:
            yield from map(str.strip, lines)
        elif PATCH in lines:
            known = (line for line in lines if line.startswith((" ", "-")))
            yield from (line[1:].strip() for line in known)


@lru_cache(maxsize=1 << 18)
def _of_piece(piece: str) -> tuple[String, ...]:
    if len(piece) > LONGEST:
        return ()
    name = piece.rstrip(_ENDS).removeprefix("./")
    bare = _LINE_NUMBERS.sub("", name)
    if bare.startswith(("http://", "https://")):
        return (String("url", bare),)
    if _is_path(bare):
        return (String("path", bare),)
    parts = map(_of_part, _PART.findall(bare))
    return tuple(filter(None, parts))


def _is_path(piece: str) -> bool:
    """Tell whether a piece names a file: ``and/or`` does not."""
    steps = re.split(r"[/\\]", piece)
    if len(steps) == 1:
        name, _, ending = piece.rpartition(".")
        return bool(name and FILES.fullmatch(ending))
    return (len(steps) > 2 or "." in piece) and any(map(str.isalpha, piece))


def _of_part(part: str) -> String | None:
    for kind, pattern in _KINDS:
        if pattern.fullmatch(part):
            return String(kind, part.lower() if kind == "word" else part)
    return None


def _parts(content: object) -> object:
    """Return the texts of a content; of pictures nothing."""
    if not isinstance(content, list):
        return content
    return [part.get("text") for part in content if isinstance(part, dict)]


def _read(arguments: object) -> object:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def _leaves(value: object) -> Iterator[str]:
    """Yield the texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
