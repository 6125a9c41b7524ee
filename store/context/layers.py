"""The layers of a request: each message as a piece of one, with its tokens.

Hashes of the pieces tell which of them the next request changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from ..formats import PlacedMessage, clean_message, replace_surrogates
from ..messages import Message, copy_message, copy_value, extract_content_text
from ..phrases import Language
from ..records import View
from ..tokens import count_message_tokens, estimate
from .file_mentions import Root, render_reminder

LAYERS = ("system", "tools", "code_law", "history", "user_input", "steps", "todo_recap")
"""The layers of a request, in their order."""

CACHED_LAYERS = (LAYERS[:3], ("history",), ("user_input", "steps"))
"""The layers at whose ends a prompt cache is asked to keep a request."""


class Piece(NamedTuple):
    """One message of a request: its layer, the message as a chat message, and its tokens.

    ``placed`` is the same message before it is written in a format, ``reminder`` the tokens of the
    reminder to read files, which is never stored.
    """

    layer: str
    message: Message
    tokens: int
    placed: PlacedMessage
    reminder: int = 0

    @property
    def seq(self) -> int | None:
        """Its position; None where it is not stored."""
        return self.placed.seq


class Reminders:
    """The reminders of a request to read the files that its user messages mention.

    They depend on the files that exist below ``root``, so each is rendered once: ``by_seq`` has
    them by position, None for the input that is not stored. Those of a recorded request are
    ``kept`` as they were.
    """

    def __init__(
        self,
        root: Root | None = None,
        language: Language = "en",
        kept: dict[int | None, str] | None = None,
    ) -> None:
        self._root, self._language, self._is_kept = root, language, kept is not None
        self.by_seq: dict[int | None, str] = kept or {}

    def remind_of(self, seq: int | None, text: str) -> str:
        """Return the reminder of a message, "" if it mentions no file."""
        if self._is_kept or seq in self.by_seq:
            return self.by_seq.get(seq, "")
        added = render_reminder(text, self._root, self._language)
        if not added or text.endswith(added):
            return ""
        self.by_seq[seq] = added
        return added


def make_pieces(layer: str, role: str, content: str | None) -> list[Piece]:
    """Return the message of a layer that is not stored; none for an empty content."""
    if not content or not content.strip():
        return []
    message = {"role": role, "content": replace_surrogates(content)}
    return [
        Piece(layer, message, count_message_tokens(message, estimate), PlacedMessage(None, message))
    ]


def list_view_pieces(
    view: View,
    placed: Sequence[PlacedMessage],
    begins: int | None,
    reminders: Reminders,
) -> Iterator[Piece]:
    """Yield the messages of a view in their layers, each user message with its reminder.

    ``placed`` are the same messages before they were written, ``begins`` is the position where the
    current turn begins (None: all are history). The caller may change the pieces.
    """
    layer = "history"
    for entry, each in zip(view.explained.shared_entries, placed, strict=True):
        if layer == "user_input":
            layer = "steps"
        if begins is not None and entry.seq == begins:
            layer = "user_input"
        message = clean_message(each)
        calls = [call._replace(arguments=copy_value(call.arguments)) for call in each.calls]
        own = each._replace(message=copy_message(each.message), calls=tuple(calls))
        piece = Piece(layer, message, entry.tokens, own)
        if message["role"] == "user" and entry.rule is None:
            piece = add_reminder(piece, reminders)
        yield piece


def list_reminded_messages(
    view: View, placed: Sequence[PlacedMessage], reminders: Reminders
) -> Iterator[Message]:
    """Yield the messages that a view sends to a chat, each user message with its reminder."""
    for message, each in zip(view.messages, placed, strict=True):
        is_unchanged = each.seq is not None and not (each.rule or each.repair)
        if message["role"] == "user" and is_unchanged:
            yield add_reminder(Piece("", message, 0, each), reminders).message
        else:
            yield message


def add_reminder(piece: Piece, reminders: Reminders) -> Piece:
    """Return a user message that mentions files with the reminder to read them, once."""
    content = piece.message["content"]
    text = extract_content_text(content)
    added = reminders.remind_of(piece.seq, text)
    if not added:
        return piece
    cost = estimate(added)
    longer = piece._replace(tokens=piece.tokens + cost, reminder=cost)
    if isinstance(content, list):
        part = {"type": "text", "text": added}
        stored = piece.placed.message["content"]
        return _replace_contents(longer, [*content, part], [*stored, part])
    whole = f"{text}\n\n{added}"
    return _replace_contents(longer, whole, whole)


def merge_system_pieces(pieces: list[Piece]) -> list[Piece]:
    """Return a request whose leading system messages are one, for providers that take only one."""
    leading = list(takewhile(lambda piece: piece.message["role"] == "system", pieces))
    if len(leading) < 2:
        return pieces
    whole = "\n\n".join(extract_content_text(piece.message.get("content")) for piece in leading)
    tokens = sum(piece.tokens for piece in leading)
    first = _replace_contents(leading[0], whole, whole)._replace(tokens=tokens)
    return [first, *pieces[len(leading) :]]


def _replace_contents(piece: Piece, sent: object, stored: object) -> Piece:
    """Return a piece with other contents, of the message that is sent and of the one placed."""
    placed = piece.placed
    return piece._replace(
        message={**piece.message, "content": sent},
        placed=placed._replace(message={**placed.message, "content": stored}),
    )


def mark_cache_ends(pieces: Sequence[Piece]) -> list[Piece]:
    """Return a request that asks a prompt cache to keep the beginning of the next request.

    This is the leading layers, the history and the current turn, without the todo list, whose text
    differs each time. Stored markers are removed.
    """
    ends = {
        max((place for place, piece in enumerate(pieces) if piece.layer in layers), default=None)
        for layers in CACHED_LAYERS
    }
    return [
        piece._replace(placed=piece.placed._replace(cached=place in ends, marked=False))
        for place, piece in enumerate(pieces)
    ]


class Layered:
    """The layers of a request, built on first use; sending it needs none of them.

    ``make`` returns the messages in their layers, before any of them are merged into one. ``tools``
    are definitions, kept as their JSON text.
    """

    def __init__(
        self,
        make: Callable[[], list[Piece]],
        tools: object,
        *,
        merges: bool,
    ) -> None:
        self._make, self._merges = make, merges
        self.tools = encode_part_json(tools) if tools else ""  # now: they stay the caller's

    @property
    def pieces(self) -> list[Piece]:
        """Each message in its layer; they are hashed before anybody can change them."""
        _ = self.hashes
        return self._pieces

    @cached_property
    def tokens(self) -> dict[str, int]:
        """The tokens of each layer."""
        tokens = dict.fromkeys(LAYERS, 0)
        for piece in self._unmerged:
            tokens[piece.layer] += piece.tokens
        tokens["tools"] += estimate(self.tools)
        return tokens

    @cached_property
    def hashes(self) -> list[int]:
        """The request as hashes: of its tools, and of each message."""
        hashes = [hash(self.tools)]
        for piece in self._pieces:
            message = piece.message
            content, calls = message.get("content"), message.get("tool_calls")
            text = content if isinstance(content, str) else encode_part_json(content)
            calls_text = encode_part_json(calls) if calls else None
            hashes.append(hash((message["role"], text, message.get("tool_call_id"), calls_text)))
        return hashes

    @cached_property
    def costs(self) -> list[int]:
        """The tokens of the tools, and of each message."""
        return [estimate(self.tools), *(piece.tokens for piece in self._pieces)]

    @cached_property
    def _unmerged(self) -> list[Piece]:
        return self._make()

    @cached_property
    def _pieces(self) -> list[Piece]:
        return merge_system_pieces(self._unmerged) if self._merges else self._unmerged


class Hashed(NamedTuple):
    """The hashes of a request, which tell how the next one differs from it."""

    hashes: Sequence[int]


def encode_part_json(value: object) -> str:
    """Return the JSON text of tools or of parts of a message."""
    return json.dumps(value, ensure_ascii=False, default=str)
