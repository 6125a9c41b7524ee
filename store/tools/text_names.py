"""The names in a text that a reader would ask for again, the best first.

A text is cut at white space and brackets. Each piece is a url or a path, otherwise it is split into
error codes, numbers and identifiers; plain words are not names. The worth of a name depends on its
kind and on how often it occurs, up to five times, and decreases with its length, so that a short
line holds as many as it can.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ..text import clearable_cache
from .path_normalization import UNSTORABLE_CHARACTERS


class TextName(NamedTuple):
    """A name with its kind, a key of `NAME_WEIGHTS`."""

    kind: str
    text: str


NAME_WEIGHTS = {"path": 3.0, "error": 3.0, "url": 2.0, "identifier": 1.5, "number": 1.0}
"""The kinds of names, and the weight of each."""
COUNTED_TIMES_LIMIT = 5
"""A name counts at most this many times."""
ADDED_LENGTH = 8
"""Code points that are added to the length of every name."""
PIECE_LIMIT = 160
"""Code points of a piece that may be a name; a longer piece is data."""

_PIECE = re.compile(r"https?://[^\s\"'`()<>{}\[\]|\\]+|[^\s\"'`()<>{}\[\],;|=*]+")
_PLAIN_PIECE = re.compile(r"[a-z]+[.:!?]?|[^\w]+")
"""Pieces that are not names, as most are: they are not examined further."""
_PATH_SEPARATOR = re.compile(r"[/\\]")
_PART = re.compile(r"\w+")
_OUTER_SIGNS = ".,;:!?-@#&$%^~+/"
_LINE_SUFFIX = re.compile(r"(?::\d+)+:?\Z|#L\d+(?:-L?\d+)?\Z")
_URL_PIECE = re.compile(r"https?://[^/\s].*")
_FILE_NAME = re.compile(r"[\w@~.+-]*\w\.[A-Za-z]\w{0,4}")
"""A word in the form of a file name; its ending decides whether it is one."""
_FILE_ENDINGS = re.compile(
    r"c|cc|cfg|conf|cpp|cs|css|csv|env|go|graphql|h|hpp|html|ini|ipynb|java|jsx?|jsonl?|kt|lock|log"
    r"|lua|mdx?|mjs|php|png|proto|ps1|py|rb|rst?|scala|scss|sh|sql|svelte|svg|swift|tf|toml|tsx?"
    r"|txt|vue|xml|ya?ml|zig|zsh",
    re.IGNORECASE,
)
_ERRNO = r"E(?:ACCES|ADDR|AGAIN|BUSY|CONN|EXIST|HOST|INVAL|ISDIR|MFILE|NET|NO|PERM|PIPE|TIME)[A-Z]*"
_PART_KINDS = (
    ("error", re.compile(rf"[A-Z]{{1,6}}\d{{3,5}}|{_ERRNO}|[A-Z]\w*(?:Error|Exception|Warning)")),
    ("number", re.compile(r"\d{4,}|(?=[a-f]*\d)[0-9a-f]{7,}")),
    ("identifier", re.compile(r"[A-Z]{1,6}\d\d|(?=\w*(?:[a-z][A-Z]|_|\d))(?=\w*[^\W\d_])\w{4,60}")),
)
"""The kinds of a part of a piece: the first whose pattern matches all of it."""


def count_names(text: str) -> Counter[TextName]:
    """Return the names of a text, with the number of their occurrences."""
    found: Counter[TextName] = Counter()
    for piece, times in Counter(_PIECE.findall(text)).items():
        for name in _parse_piece_names(piece) if len(piece) <= PIECE_LIMIT else ():
            found[name] += times
    return found


def rank_names(found: Counter[TextName]) -> Iterator[str]:
    """Yield the names that were found, the best first; equal ones in alphabetical order."""
    ranked = sorted(
        (
            -(
                NAME_WEIGHTS[name.kind]
                * min(COUNTED_TIMES_LIMIT, times)
                / (ADDED_LENGTH + len(name.text))
            ),
            name.text,
        )
        for name, times in found.items()
    )
    return (text for _, text in ranked)


@clearable_cache(1 << 16)
def _parse_piece_names(piece: str) -> tuple[TextName, ...]:
    """Return the names in a piece of a text, or the piece itself if it is one."""
    if _PLAIN_PIECE.fullmatch(piece) or UNSTORABLE_CHARACTERS.search(piece):
        return ()
    bare = _LINE_SUFFIX.sub("", piece.rstrip(_OUTER_SIGNS)).removeprefix("./")
    if _URL_PIECE.fullmatch(bare):
        return (TextName("url", bare),)
    if _is_path(bare):
        return (TextName("path", bare),)
    kinds = (
        (next((kind for kind, pattern in _PART_KINDS if pattern.fullmatch(part)), None), part)
        for part in _PART.findall(bare)
    )
    return tuple(TextName(kind, part) for kind, part in kinds if kind)


def _is_path(piece: str) -> bool:
    """Tell whether a piece names a file or a folder: ``and/or`` does not."""
    steps = _PATH_SEPARATOR.split(piece)
    word = steps[-1]
    _, _, ending = word.rpartition(".")
    is_file = bool(_FILE_ENDINGS.fullmatch(ending) and _FILE_NAME.fullmatch(word))
    if len(steps) == 1:
        return is_file
    return any(map(str.isalpha, piece)) and (is_file or len(steps) > 2)
