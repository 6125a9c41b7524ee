"""The pieces of a request: each message in its layer, with what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from ..formats import Placed, clean, sendable
from ..messages import Message, content_text, copy_message, copy_value
from ..ready import Language
from ..records import Entry, View
from ..tokens import estimate, message_tokens
from .at_files import Root, remind, reminder

LAYERS = ("system", "tools", "code_law", "history", "user_input", "steps", "todo_recap")
"""The layers of a request, in their order."""

CACHED_LAYERS = (LAYERS[:3], ("history",), ("user_input", "steps"))
"""The layers at whose ends a prompt cache is asked to keep a request."""


class Piece(NamedTuple):
    """One message of a request: its layer, the message as a chat message, and its tokens.

    ``placed`` is the same before it is written in a format, ``reminder`` how many of the tokens are
    of the reminder to read files, which is never stored.
    """

    layer: str
    message: Message
    tokens: int
    placed: Placed
    reminder: int = 0

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


def of_view(
    view: View,
    placed: Sequence[Placed],
    begins: int | None,
    root: Root | None = None,
    language: Language = "en",
) -> Iterator[Piece]:
    """Yield the messages of a view in their layers, each user message with its reminder.

    ``placed`` are the same before they were written, ``begins`` is where the current turn does
    (None: all are history), ``root`` is the folder of the files that are mentioned.
    """
    entries = view.explained.shared_entries
    for layer, entry, each in zip(_layers(entries, begins), entries, placed, strict=True):
        message = clean(each)
        piece = Piece(layer, message, entry.tokens, _owned(each))
        if message["role"] == "user" and entry.rule is None:
            piece = reminded(piece, root, language)
        yield piece


def _owned(placed: Placed) -> Placed:
    """Return a message in its place that is the caller's."""
    calls = [each._replace(arguments=copy_value(each.arguments)) for each in placed.calls]
    return placed._replace(message=copy_message(placed.message), calls=tuple(calls))


def with_reminders(
    view: View, placed: Sequence[Placed], root: Root | None, language: Language
) -> Iterator[Message]:
    """Yield what a view sends to a chat, each user message with its reminder."""
    for message, each in zip(view.messages, placed, strict=True):
        if message["role"] == "user" and _is_as_it_was(each):
            yield reminded(Piece("", message, 0, each), root, language).message
        else:
            yield message


def _is_as_it_was(placed: Placed) -> bool:
    """Tell whether a message is one that was said, and nothing of it was mended."""
    return placed.seq is not None and not (placed.rule or placed.repair)


def reminded(piece: Piece, root: Root | None, language: Language) -> Piece:
    """Return a user message that mentions files with the reminder to read them, once."""
    said = piece.message["content"]
    text = content_text(said)
    added = reminder(text, root, language)
    if not added or text.endswith(added):
        return piece
    cost = estimate(added)
    longer = piece._replace(tokens=piece.tokens + cost, reminder=cost)
    if isinstance(said, list):
        part = {"type": "text", "text": added}
        stored = piece.placed.message["content"]
        return _rewritten(longer, [*said, part], [*stored, part])
    whole = remind(said, root, language)
    return _rewritten(longer, whole, whole)


def merged(pieces: list[Piece]) -> list[Piece]:
    """Return a request whose system messages in front are one, for providers that take only one."""
    fronts = list(takewhile(_is_system, pieces))
    if len(fronts) < 2:
        return pieces
    whole = _together(fronts)
    tokens = sum(piece.tokens for piece in fronts)
    front = _rewritten(fronts[0], whole, whole)._replace(tokens=tokens)
    return [front, *pieces[len(fronts) :]]


def with_markers(pieces: Sequence[Piece]) -> list[Piece]:
    """Return a request that asks a prompt cache to keep what the next request begins with, too.

    That is what stands in front, the history, and all that was said and done: what is left to do is
    another text each time.
    """
    ends = {_last_of(pieces, layers) for layers in CACHED_LAYERS}
    return [_cached(piece, is_end=place in ends) for place, piece in enumerate(pieces)]


def _last_of(pieces: Sequence[Piece], layers: Sequence[str]) -> int | None:
    """Return the place of the last piece of some layers; None where there is none."""
    places = (place for place, piece in enumerate(pieces) if piece.layer in layers)
    return max(places, default=None)


def _cached(piece: Piece, *, is_end: bool) -> Piece:
    """Return a piece that is marked as an end or not, whatever markers it came in with."""
    return piece._replace(placed=piece.placed._replace(cached=is_end, marked=False))


def _is_system(piece: Piece) -> bool:
    return bool(piece.message["role"] == "system")


def _together(pieces: Sequence[Piece]) -> str:
    """Return what several messages say as one text."""
    texts = (content_text(piece.message.get("content")) for piece in pieces)
    return "\n\n".join(texts)


def _layers(entries: Sequence[Entry], begins: int | None) -> Iterator[str]:
    layer = "history"
    for entry in entries:
        if layer == "user_input":
            layer = "steps"
        if begins is not None and entry.seq == begins:
            layer = "user_input"
        yield layer


def _rewritten(piece: Piece, said: object, stored: object) -> Piece:
    """Return a piece with other contents, of the message that is sent and of the one placed."""
    return piece._replace(
        message=_saying(piece.message, said),
        placed=piece.placed._replace(message=_saying(piece.placed.message, stored)),
    )


def _saying(message: Message, content: object) -> Message:
    return {**message, "content": content}
