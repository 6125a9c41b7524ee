"""The text of a message that a search reads, and the forms in which an index holds it.

An index holds texts as words, pairs of signs, and parts of names. Chinese, Japanese and Korean are
written without spaces, so each run of their signs is indexed as all pairs of neighbours, and its
last sign alone: 数据库 as 数据 据库 库. Case and accents do not count.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .columns import Message, extract_part_text

LONGEST_TERM = 200
"""Code points of a word of a query."""
SHORTEST_PART = 3
"""The least code points of a part of a name."""
LONGEST_INDEXED_NAME = 200
"""The most code points of a name that is indexed for its parts; a longer word is no name."""

_CJK = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\u1100-\u11ff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003134f"
)
CJK_RUN = re.compile(f"[{_CJK}]+")
"""A run of Chinese, Japanese and Korean signs."""
WORD_PATTERN = re.compile(r"[^\W_]+")
_NAME = re.compile("[A-Za-z0-9_À-ɏ][A-Za-z0-9_À-ɏ./:@#-]*[A-Za-z0-9_À-ɏ]")
_NAME_SIGN = re.compile("[a-z0-9][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]|[_./:@#-]")
_CJK_BYTES = bytes((0xE1, *range(0xE3, 0xEE), 0xEF, 0xF0))
"""The first bytes of the signs of `CJK_RUN` in UTF-8, and of some others."""
_ASCII_BYTES = bytes(range(128))
MOST_REPLACED = 40
"""Different signs of a text that are replaced one by one."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def join_message_texts(message: Message) -> str:
    """Return the searched text of a message: its texts, and the names and arguments of calls.

    Pictures and other data are left out.
    """
    content = message.get("content")
    texts = [content] if isinstance(content, str) else []
    texts += filter(None, map(extract_part_text, _get_list(content)))
    for function in list_called_functions(message):
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            with suppress(ValueError, RecursionError):  # search invalid JSON as a text
                arguments = json.loads(arguments)
        texts += [*_list_scalar_texts(function.get("name")), *_list_scalar_texts(arguments)]
    return normalize_text("\n".join(texts))


def join_summary_texts(title: str | None, body: str) -> str:
    """Return the searched text of a summary, after its title."""
    return normalize_text("\n".join(filter(None, (title, body))))


def list_called_functions(message: Message) -> list[dict[str, Any]]:
    """Return the functions of a message's calls, in whatever shape these are."""
    return [_get_called_function(call) for call in _get_list(message.get("tool_calls"))]


def _get_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _get_called_function(call: Any) -> dict[str, Any]:
    fields = call if isinstance(call, dict) else {}
    function = fields.get("function")
    return function if isinstance(function, dict) else fields


def _list_scalar_texts(value: Any) -> Iterator[str]:
    """Yield the keys, texts and numbers of a JSON value, in their order."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += [part for pair in reversed(each.items()) for part in reversed(pair)]
        elif isinstance(each, list):
            waiting += reversed(each)
        elif each is not None:
            yield str(each)


def normalize_text(text: str) -> str:
    """Return a text in a form that every database can hold, with composed signs."""
    if text.isascii():
        return text.replace("\0", " ")
    encodable = text.encode("utf-8", "replace").decode().replace("\0", " ")
    return unicodedata.normalize("NFC", encodable)


def split_cjk(text: str) -> str:
    """Return a text with each run of signs as pairs of neighbours, and its last sign alone."""
    if text.isascii():
        return text
    encoded = text.encode()
    if len(encoded.translate(None, _CJK_BYTES)) == len(encoded):  # far faster than a search
        return text
    return CJK_RUN.sub(
        lambda run: f" {' '.join(run[0][at : at + 2] for at in range(len(run[0])))} ", text
    )


def extract_name_lines(text: str) -> str:
    """Return the names in a text, such as identifiers and paths, each once and on its own line."""
    names = [
        word
        for word in dict.fromkeys(_NAME.findall(text))
        # Most words are plain: such a word has no sign, which is known without a search.
        if not word[1:].islower() or not word.isalpha()
        if SHORTEST_PART < len(word) <= LONGEST_INDEXED_NAME and _NAME_SIGN.search(word)
    ]
    return "\n".join(names)


class _FoldedSigns(dict[int, str]):
    """The folded form of each sign, without case and accents: always a single sign."""

    def __missing__(self, point: int) -> str:
        sign = chr(point)
        lowered = unicodedata.normalize("NFKD", sign)[:1].lower()
        self[point] = lowered if len(lowered) == 1 else sign
        return self[point]


_FOLDED_SIGNS = _FoldedSigns()


def fold_text(text: str) -> str:
    """Return a text of the same length without case and accents."""
    if text.isascii():
        return text.lower()
    # Bytes are searched and lowered far faster than signs that are not all ASCII.
    encoded = text.encode("utf-8", "surrogatepass")
    signs = {*encoded.translate(None, _ASCII_BYTES).decode("utf-8", "surrogatepass")}
    if len(signs) > MOST_REPLACED:
        text = _NOT_ASCII.sub(lambda run: run[0].translate(_FOLDED_SIGNS), text)
    else:
        for sign in signs:
            text = text.replace(sign, _FOLDED_SIGNS[ord(sign)])
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


LONGEST_ON_SERVER = 400_000
"""Code points of a message whose words a server indexes: more than its type has room for."""
LAST_WORD_PLACE = 16_383
"""The highest position of a word on a server."""


def build_server_forms(text: str) -> tuple[str, str]:
    """Return the words of a text with their places, and its names, as a server indexes them."""
    content = text[:LONGEST_ON_SERVER]
    words, beyond = WORD_PATTERN.findall(fold_text(split_cjk(content))), ""
    if len(words) > LAST_WORD_PLACE or len(max(words, key=len, default="")) > LONGEST_TERM:
        cut = (f"'{word[:LONGEST_TERM]}':{LAST_WORD_PLACE}" for word in words[LAST_WORD_PLACE:])
        words = [word[:LONGEST_TERM] for word in words[:LAST_WORD_PLACE]]
        beyond = " ".join(cut)
    vector = " ".join([f"'{word}':{place}" for place, word in enumerate(words, start=1)])
    return f"{vector} {beyond}", extract_name_lines(content).lower()
