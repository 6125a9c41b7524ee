"""The pieces of a request: each message in its layer, with what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from ..formats import Placed, sendable
from ..messages import Message, content_text
from ..records import Entry, View
from ..tokens import estimate, message_tokens
from .at_files import remind, reminder

LAYERS = ("system", "tools", "code_law", "history", "user_input", "steps", "todo_recap")
"""The layers of a request, in their order."""


class Piece(NamedTuple):
    """One message of a request: its layer, the message as a chat message, and its tokens.

    ``placed`` is the same before it is written in a format.
    """

    layer: str
    message: Message
    tokens: int
    placed: Placed

    @property
    def seq(self) -> int | None:
        """Its position; None where it is not stored."""
        return self.placed.seq


def made(layer: str, role: str, content: str | None) -> list[Piece]:
    """Return the message of a layer that is not stored; none where there is nothing to say."""
    if not content or not content.strip():
        return []
    message = {"role": role, "content": sendable(content)}
    return [Piece(layer, message, message_tokens(message, estimate), Placed(None, message))]


def of_view(view: View, placed: Sequence[Placed], begins: int | None) -> Iterator[Piece]:
    """Yield the messages of a chat view in their layers, each user message with its reminder.

    ``placed`` are the same before they were written, ``begins`` is where the current turn does
    (None: all are history).
    """
    layers = _layers(view.entries, begins)
    shown = zip(layers, view.messages, view.entries, placed, strict=True)
    for layer, message, entry, each in shown:
        piece = Piece(layer, message, entry.tokens, each)
        if message["role"] == "user" and entry.rule is None:
            piece = _reminded(piece)
        yield piece


def merged(pieces: list[Piece]) -> list[Piece]:
    """Return a request whose system messages in front are one, for providers that take only one."""
    fronts = list(takewhile(lambda piece: piece.message["role"] == "system", pieces))
    if len(fronts) < 2:
        return pieces
    texts = [content_text(piece.message.get("content")) for piece in fronts]
    first, whole = fronts[0], "\n\n".join(texts)
    front = first._replace(
        message=_saying(first.message, whole),
        placed=first.placed._replace(message=_saying(first.placed.message, whole)),
    )
    return [front, *pieces[len(fronts) :]]


def _layers(entries: Sequence[Entry], begins: int | None) -> Iterator[str]:
    layer = "history"
    for entry in entries:
        if layer == "user_input":
            layer = "steps"
        if begins is not None and entry.seq == begins:
            layer = "user_input"
        yield layer


def _reminded(piece: Piece) -> Piece:
    """Return a user message that mentions files with the reminder to read them."""
    said, given = piece.message["content"], piece.placed.message
    added = reminder(content_text(said))
    if not added:
        return piece
    written: object
    stored: object
    if isinstance(said, list):
        part = {"type": "text", "text": added}
        written, stored = [*said, part], [*given["content"], part]
    else:
        written = stored = remind(said)
    return Piece(
        piece.layer,
        _saying(piece.message, written),
        piece.tokens + estimate(added),
        piece.placed._replace(message=_saying(given, stored)),
    )


def _saying(message: Message, content: object) -> Message:
    return {**message, "content": content}
