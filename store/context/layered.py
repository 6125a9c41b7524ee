"""The layers of a request: what each costs, and hashes that tell what the next one changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from ..messages import Message
from ..tokens import estimate
from .pieces import LAYERS, Piece, merged


class Layered:
    """The layers of a request, made when somebody asks for them; what is sent needs none of them.

    ``make`` returns the messages in their layers, before any of them are put into one.
    """

    def __init__(
        self,
        make: Callable[[], list[Piece]],
        tools: object,
        *,
        merges: bool,
    ) -> None:
        self._make, self._merges = make, merges
        self._tools = as_json(tools) if tools else ""  # now: they stay the caller's

    @property
    def pieces(self) -> list[Piece]:
        """Each message in its layer; they are hashed before anybody can change them."""
        _ = self.hashes
        return self._pieces

    @cached_property
    def tokens(self) -> dict[str, int]:
        """The tokens of each layer."""
        return _layer_tokens(self._apart, self._tools)

    @cached_property
    def hashes(self) -> list[int]:
        """The request as hashes: of its tools, and of each message."""
        messages = (_hash(piece.message) for piece in self._pieces)
        return [hash(self._tools), *messages]

    @cached_property
    def costs(self) -> list[int]:
        """The tokens of the tools, and of each message."""
        messages = (piece.tokens for piece in self._pieces)
        return [estimate(self._tools), *messages]

    @cached_property
    def _apart(self) -> list[Piece]:
        return self._make()

    @cached_property
    def _pieces(self) -> list[Piece]:
        return merged(self._apart) if self._merges else self._apart


class Hashed(NamedTuple):
    """A request of which no more is known than how the next one differs from it."""

    hashes: Sequence[int]


def _layer_tokens(pieces: Sequence[Piece], tools: str) -> dict[str, int]:
    layers = dict.fromkeys(LAYERS, 0)
    for piece in pieces:
        layers[piece.layer] += piece.tokens
    layers["tools"] += estimate(tools)
    return layers


def _hash(message: Message) -> int:
    content, calls = message.get("content"), message.get("tool_calls")
    said = content if isinstance(content, str) else as_json(content)
    called = as_json(calls) if calls else None
    return hash((message["role"], said, message.get("tool_call_id"), called))


def as_json(value: object) -> str:
    """Return the JSON text of tools or of parts of a message."""
    return json.dumps(value, ensure_ascii=False, default=str)
