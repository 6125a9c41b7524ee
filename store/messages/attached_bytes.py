"""Pictures and files in the texts of a message, apart from these: each can be kept once.

A content of parts is JSON, and a picture in it is base64, a million characters for a screenshot. So
are the arguments of a call, and the rest of a message that no column takes. Longer ones leave the
text for the bytes that they stand for, if these give back the same characters exactly; base64 that
is written otherwise stays where it is. The text keeps a reference in each place. A reference is
known by its position, which is kept beside the text, never by how it looks: so a message may hold
any text.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from ..errors import VERIFY_HINT, Damaged

ATTACHED_FORM = "attached"
"""The form of a content whose JSON has references in its row; what went in is ``json``."""
DETACHED_FORMS: Mapping[str | None, str] = MappingProxyType(
    {"json": ATTACHED_FORM, "text": "attached_text"}
)
"""The forms of texts that have references in their row, by the forms of what went in."""
WHOLE_FORMS: Mapping[str | None, str | None] = MappingProxyType(
    {apart: whole for whole, apart in DETACHED_FORMS.items()}
)
"""The forms of what went in, by the forms of texts that have references in their row."""
ATTACHED_MARK = " "
"""What follows the first sign of a rest that has references in its row; no other is stored so."""
CONTENT_NUMBER, REST_NUMBER, FIRST_CALL_NUMBER = 0, 1, 2
"""The numbers of a message's texts; the arguments of its second call have the number 3."""
TEXT_SPAN = 2**32
"""The positions of each text: those of the rest begin here, those of the first call at twice it."""
LARGEST_INLINE_BYTES = 64 * 1024
"""Bytes up to which a picture or a file stays in the text of its message."""
LEAST_ATTACHED_LENGTH = (LARGEST_INLINE_BYTES + 1) * 4 // 3
"""The least code points of a content, or of base64, that can hold more bytes."""
BYTES_KEYS = (
    *("data", "file_data", "url", "image_url", "video_url", "image"),
    *("base64", "b64_json", "blob", "bytes"),
)
"""The keys of bytes in a content, and of URLs that hold them. No key of a text is among them, so
whoever reads the words of a content alone needs no bytes. Tools call their arguments as they like,
so in all other texts of a message every key counts.
"""
ALPHABETS = {"base64": b"+/", "base64url": b"-_"}
"""The last two characters of each alphabet; Gemini's client writes that of URLs."""

_BASE64 = (
    r'"(?:data:[^",\\]{0,200};base64,)?+'
    rf'([A-Za-z0-9+/_-]{{{LEAST_ATTACHED_LENGTH - 2},}}+={{0,2}}+)"'
)
_HELD_ANYWHERE = re.compile(_BASE64)
_HELD_IN_CONTENT = re.compile(rf'"(?:{"|".join(BYTES_KEYS)})":{_BASE64}')


class AttachedBytes(NamedTuple):
    """Bytes that a text holds as base64: where, in which alphabet, and their SHA-256.

    The ``position`` counts the code points of the text, from the `TEXT_SPAN` of its number on.
    """

    position: int
    encoding: str
    digest: bytes
    data: bytes


class DetachedText(NamedTuple):
    """A text without its attached bytes: itself with references, and the bytes in order."""

    text: str
    attached: tuple[AttachedBytes, ...]


def detach_bytes(whole: str, number: int = CONTENT_NUMBER) -> DetachedText | None:
    """Return the text of a number without its large base64; None if it has none."""
    if len(whole) <= LEAST_ATTACHED_LENGTH:
        return None
    attached: list[AttachedBytes] = []
    text, end, first = "", 0, number * TEXT_SPAN
    held_bytes = _HELD_ANYWHERE if number else _HELD_IN_CONTENT
    for match in held_bytes.finditer(whole):
        encoded = match[1]
        encoding = "base64url" if "-" in encoded or "_" in encoded else "base64"
        held = _decode_exactly(encoded, encoding)
        if held is None or len(held) <= LARGEST_INLINE_BYTES:
            continue
        digest = sha256(held).digest()
        text += whole[end : match.start(1)]
        attached.append(AttachedBytes(first + len(text), encoding, digest, held))
        text += _render_reference(digest)
        end = match.end(1)
    return DetachedText(text + whole[end:], tuple(attached)) if attached else None


def attach_bytes(text: str, attached: Iterable[AttachedBytes]) -> str:
    """Return a text with its base64 in the places of the references.

    Raises Damaged where there is no reference to the bytes.
    """
    pieces, end = [], 0
    for place, encoding, digest, held in attached:
        position, reference = place % TEXT_SPAN, _render_reference(digest)
        is_there = position >= end and text.startswith(reference, position)
        if encoding not in ALPHABETS or not is_there:
            raise Damaged(f"a message lacks its reference to {reference}; {VERIFY_HINT}")
        pieces += [text[end:position], b64encode(held, ALPHABETS[encoding]).decode()]
        end = position + len(reference)
    if not pieces:
        raise Damaged(f"a message lacks its attached bytes; {VERIFY_HINT}")
    return "".join([*pieces, text[end:]])


def _decode_exactly(encoded: str, encoding: str) -> bytes | None:
    """Return the bytes of base64; None if they would be written otherwise."""
    characters = encoded.replace("-", "+").replace("_", "/")
    try:
        held = a2b_base64(characters)
    except ValueError:
        return None
    return held if b64encode(held, ALPHABETS[encoding]).decode() == encoded else None


def _render_reference(digest: bytes) -> str:
    return f"sha256:{digest.hex()}"
