"""The digest of a request as it is sent, which is kept in the log of requests.

Most requests begin as the one before. A digest is therefore kept as it was after each few messages,
and that of the next request continues where the two differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import to_json

from ..formats import PlacedMessage, System
from ..messages import Message

if TYPE_CHECKING:
    from hashlib import _Hash

SENT_PARTS = ("messages", "system", "tools")
"""The parts of a request in the order in which its digest covers them."""
BATCH = 32
"""The messages after which a digest is kept as it is."""
KEY_BYTES = 100
"""Bytes that are kept for each message: its key, and its part of a kept digest."""

_BEGIN = b'{"messages":['

SentParts = tuple[list[Any], System, list[Any] | None]
"""The messages, the system text and the tools of a request."""
MessageKey = int | str | tuple[int, str]
"""What decides about the text of a message: it, or the text itself."""


class KeyedMessages(NamedTuple):
    """The keys of messages, and these as they are ``held``: the key of one that is kept is its id.

    Nobody may change a message that is held.
    """

    keys: Sequence[MessageKey]
    held: Sequence[Message]


class SentDigest:
    """The digest of requests that may begin as the one before."""

    def __init__(self) -> None:
        self._known: tuple[KeyedMessages, list[_Hash]] = KeyedMessages((), ()), []

    def compute(self, sent: SentParts, keyed: KeyedMessages | None = None) -> bytes:
        """Return the SHA-256 of a request: the JSON text of its messages, system text and tools.

        With keys it is continued, and the next one continues it.
        """
        known, states = self._known
        keys = keyed.keys if keyed else ()
        same = sum(takewhile(bool, map(eq, known.keys, keys)))
        kept = states[: same // BATCH]
        try:
            digest = _digest_sent(sent, kept)
        except (ValueError, UnicodeError):  # such as half of a character outside the Basic Plane
            return sha256(json.dumps(_name_parts(sent), default=str).encode()).digest()
        if keyed:
            self._known = keyed, kept
        return digest


def _digest_sent(sent: SentParts, states: list[_Hash]) -> bytes:
    """Return the digest of a request from its last kept state on; add the states in between."""
    messages, *_ = sent
    state = states[-1].copy() if states else sha256(_BEGIN)
    for first in range(BATCH * len(states), len(messages), BATCH):
        batch = messages[first : first + BATCH]
        text = to_json({"messages": batch})[len(_BEGIN) : -len(b"]}")]
        state.update(b"," + text if first else text)
        if len(batch) == BATCH:
            states.append(state.copy())
    rest = to_json(_name_parts(sent, SENT_PARTS[1:]))
    state.update(b"]," + rest[1:] if len(rest) > len(b"{}") else b"]}")
    return state.digest()


def _name_parts(sent: SentParts, names: Sequence[str] = SENT_PARTS) -> dict[str, Any]:
    parts = zip(SENT_PARTS, sent, strict=True)
    return {name: value for name, value in parts if name in names and value is not None}


def key_messages(placed: list[PlacedMessage], written: list[Message]) -> KeyedMessages:
    """Return the keys of messages as they are written; those made up are written each time."""
    pairs = zip(placed, written, strict=True)
    keys = [repr(sent) if each.seq is None else id(sent) for each, sent in pairs]
    return KeyedMessages(keys, written)
