"""What is asked for and what is kept: texts as words, pairs of signs, and parts of names.

Chinese, Japanese and Korean are written without spaces, so each run of their signs is kept as all
pairs of neighbours, and its last sign alone: 数据库 as 数据 据库 库. What is asked for is then the
pairs one after the other, and a single sign is asked for as the beginning of a pair. Whatever else
a text holds is taken apart by the database, into words; a path or a name with underlines is several
of them, one after the other. Parts of a word are found in names alone, by their trigrams.

Nothing that a user writes is a command of the database: each word is asked for in quotes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ..text import ELLIPSES

MOST_TERMS = 32
"""Words that are asked for at once; further ones are left out."""
LONGEST_TERM = 200
"""Code points of a word that is asked for."""
SHORTEST_PART = 3
"""Code points that a part of a name has at least."""
LONGEST_NAME = 200
"""Code points of a name that is kept for its parts; what is longer is no name."""

_SIGNS = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\u1100-\u11ff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003134f"
)
SIGNS = re.compile(f"[{_SIGNS}]+")
"""Runs of Chinese, Japanese and Korean signs."""
WORD = re.compile(r"[^\W_]+")
_ASKED = re.compile(r'"([^"]+)"|(\S+)')
_NAME = re.compile("[A-Za-z0-9_À-ɏ][A-Za-z0-9_À-ɏ./:@#-]*[A-Za-z0-9_À-ɏ]")
_IS_NAME = re.compile("[a-z0-9][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]|[_./:@#-]")


class Term(NamedTuple):
    """A word that is asked for, or several in quotes: as written, and as it is kept.

    ``begins``: its last sign may be the beginning of a pair, or its last word that of a word.
    """

    written: str
    kept: str
    begins: bool

    @property
    def part(self) -> str | None:
        """What is looked for inside of names; None where that is too little, or no name."""
        is_part = len(self.written) >= SHORTEST_PART and not SIGNS.search(self.written)
        return self.written if is_part else None


def terms(text: str) -> list[Term]:
    """Return what a text asks for, each once: words, and what it has in double quotes.

    One that ends in an ellipsis, as what was shortened does, is the beginning of what is meant.
    """
    found = (quoted or word for quoted, word in _ASKED.findall(clean(text)))
    said = (each[:LONGEST_TERM] for each in found if WORD.search(each))
    return [_term(each) for each in list(dict.fromkeys(said))[:MOST_TERMS]]


def _term(written: str) -> Term:
    if written.endswith(ELLIPSES):
        return _term(written.rstrip("".join(ELLIPSES)))._replace(begins=True)
    runs = [*SIGNS.finditer(written)]
    last = runs[-1] if runs else None
    if last is None or WORD.search(written, last.end()):
        return Term(written, spaced(written), begins=False)
    pairs = _pairs(last[0])
    kept = f"{spaced(written[: last.start()])} {' '.join(pairs)}"
    return Term(written, kept, begins=len(last[0]) == 1)


def clean(text: str) -> str:
    """Return a text as every database holds it, its signs composed."""
    if text.isascii():
        return text.replace("\0", " ")
    held = text.encode("utf-8", "replace").decode().replace("\0", " ")
    return unicodedata.normalize("NFC", held)


def spaced(text: str) -> str:
    """Return a text in which runs of signs are pairs, and the last sign alone."""
    return text if text.isascii() else SIGNS.sub(_apart, text)


def _apart(run: re.Match[str]) -> str:
    signs = run[0]
    if len(signs) == 1:
        return f" {signs} "
    return f" {' '.join(_pairs(signs))} {signs[-1]} "


def _pairs(signs: str) -> list[str]:
    """Return the neighbours in a run of signs; a single one as it is."""
    return [signs[at : at + 2] for at in range(max(1, len(signs) - 1))]


def names(text: str) -> str:
    """Return the names in a text, each once: identifiers, paths and the like, a line each."""
    return "\n".join(dict.fromkeys(filter(_is_name, _NAME.findall(text))))


def _is_name(word: str) -> bool:
    is_long_enough = SHORTEST_PART < len(word) <= LONGEST_NAME
    return is_long_enough and _IS_NAME.search(word) is not None


class _Folds(dict[int, str]):
    """What signs become where neither case nor accents count: one sign for each."""

    def __missing__(self, point: int) -> str:
        sign = chr(point)
        lowered = unicodedata.normalize("NFKD", sign)[:1].lower()
        self[point] = lowered if len(lowered) == 1 else sign
        return self[point]


_FOLDS = _Folds()
_OTHER = re.compile(r"[^\x00-\x7f]+")


def folded(text: str) -> str:
    """Return a text of the same length in which neither case nor accents count."""
    return text.lower() if text.isascii() else _OTHER.sub(_fold, text).lower()


def _fold(run: re.Match[str]) -> str:
    return run[0].translate(_FOLDS)


@lru_cache(maxsize=256)
def first_word(term: Term) -> str:
    """Return the first word of a term, which a folded text that has the term has."""
    found = WORD.search(folded(term.written))
    return found[0] if found else ""


def words(text: str) -> Iterator[str]:
    """Yield the words of a text as a server keeps them."""
    return (word[:LONGEST_TERM] for word in WORD.findall(folded(spaced(text))))
