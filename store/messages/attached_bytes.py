"""Pictures and files in a content, apart from its text: each can be kept once.

A content of parts is JSON, and a picture in it is base64, a million characters for a screenshot.
Longer ones leave the text for the bytes that they stand for, if these give back the same characters
exactly; base64 that is written otherwise stays where it is. The text keeps a reference in each
place. A reference is known by its position, which is kept beside the text, never by how it looks:
so a message may hold any text.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from ..errors import VERIFY_HINT, Damaged

ATTACHED_FORM = "attached"
"""The form of a content whose JSON has references in its row; what went in is ``json``."""
LARGEST_INLINE_BYTES = 64 * 1024
"""Bytes up to which a picture or a file stays in the text of its message."""
LEAST_ATTACHED_LENGTH = (LARGEST_INLINE_BYTES + 1) * 4 // 3
"""The least code points of a content, or of base64, that can hold more bytes."""
BYTES_KEYS = (
    *("data", "file_data", "url", "image_url", "video_url", "image"),
    *("base64", "b64_json", "blob", "bytes"),
)
"""The keys of bytes, and of URLs that hold them. No key of a text is among them, so whoever reads
the words of a message alone needs no bytes.
"""
ALPHABETS = {"base64": b"+/", "base64url": b"-_"}
"""The last two characters of each alphabet; Gemini's client writes that of URLs."""

_HELD_BYTES = re.compile(
    rf'"(?:{"|".join(BYTES_KEYS)})":"(?:data:[^",\\]{{0,200}};base64,)?+'
    rf'([A-Za-z0-9+/_-]{{{LEAST_ATTACHED_LENGTH - 2},}}+={{0,2}}+)"'
)


class AttachedBytes(NamedTuple):
    """Bytes that a content holds as base64: where, in which alphabet, and their SHA-256."""

    position: int
    encoding: str
    digest: bytes
    data: bytes


class DetachedContent(NamedTuple):
    """A content without its attached bytes: its JSON with references, and the bytes in order."""

    text: str
    attached: tuple[AttachedBytes, ...]


def detach_bytes(content: str) -> DetachedContent | None:
    """Return the JSON of a content without its large base64; None if it has none."""
    attached: list[AttachedBytes] = []
    text, end = "", 0
    for match in _HELD_BYTES.finditer(content):
        encoded = match[1]
        encoding = "base64url" if "-" in encoded or "_" in encoded else "base64"
        held = _decode_exactly(encoded, encoding)
        if held is None or len(held) <= LARGEST_INLINE_BYTES:
            continue
        digest = sha256(held).digest()
        text += content[end : match.start(1)]
        attached.append(AttachedBytes(len(text), encoding, digest, held))
        text += _render_reference(digest)
        end = match.end(1)
    return DetachedContent(text + content[end:], tuple(attached)) if attached else None


def attach_bytes(text: str, attached: Iterable[AttachedBytes]) -> str:
    """Return the JSON of a content with its base64 in the places of the references.

    Raises Damaged where there is no reference to the bytes.
    """
    pieces, end = [], 0
    for position, encoding, digest, held in attached:
        reference = _render_reference(digest)
        is_there = position >= end and text.startswith(reference, position)
        if encoding not in ALPHABETS or not is_there:
            raise Damaged(f"a content lacks its reference to {reference}; {VERIFY_HINT}")
        pieces += [text[end:position], b64encode(held, ALPHABETS[encoding]).decode()]
        end = position + len(reference)
    if not pieces:
        raise Damaged(f"a content lacks its attached bytes; {VERIFY_HINT}")
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
