"""Wire formats: write a request for a provider, or for a model that reads plain text.

A format is one row of `FORMATS`. It gets the whole request at once, so that it can join several
messages or split one. The functions are pure. Views and contexts write with a format; history uses
it to recognize calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..errors import VERIFY, Damaged, InvalidMessage, InvalidValue, quoted
from ..messages import WIRE, Message
from ..ready import Language, phrase
from . import anthropic, gemini, openai, react, responses, said_elsewhere
from .cache_markers import with_own_markers
from .kept import kept
from .naming import Alphabet, Names, made_up_id, named_behind, names_sent, renamed
from .openai import (
    ITEMS,
    audio_of,
    clean,
    continues,
    foreign_kinds,
    fresh,
    sendable,
    without_audio,
    without_extensions,
)
from .placed import ApiCall, Placed, System, new_call
from .reasoning import reasoning_of, with_reasoning
from .rows import Codec
from .turns import BEGINNING, apart, marked

__all__ = [
    "ANTHROPIC",
    "BEGINNING",
    "CHAT",
    "CHAT_NAMES",
    "CODECS",
    "FORMATS",
    "ITEMS",
    "REACT",
    "Alphabet",
    "ApiCall",
    "Codec",
    "Format",
    "Names",
    "Placed",
    "System",
    "Taken",
    "Written",
    "asks_for_tool",
    "audio_of",
    "clean",
    "continues",
    "foreign_kinds",
    "format_named",
    "fresh",
    "given_back",
    "kept",
    "left_of",
    "made_up_id",
    "marked",
    "named_behind",
    "names_sent",
    "new_call",
    "reasoning_of",
    "sendable",
    "stands_for_call",
    "taken",
    "taken_from_reader",
    "with_own_markers",
    "with_reasoning",
    "without_audio",
    "without_extensions",
]


class Written(NamedTuple):
    """A request as a format writes it; ``system`` is its text outside the messages."""

    messages: list[Message]
    system: System = None


class Format(NamedTuple):
    """A format of requests: one row of the table."""

    name: str
    write: Callable[..., list[Message]]
    """Returns the messages of a request, fewer or more than the given ones, which share no mutable
    value with them. A format with separate system text also gets the text that the user says first
    if the assistant spoke first.
    """
    codec: Codec | None = None
    """Converts messages of the format to rows and back; None if no messages come in it."""
    names: Names | None = None
    """The ids and names that are accepted; None if a request has none."""
    system: Callable[[Sequence[Placed]], System] | None = None
    """Returns leading system messages as a separate value; None if they are sent as messages."""
    tools_apart: bool = True
    """Whether tool definitions are sent separately from the messages."""
    unsent: Callable[[Sequence[Placed]], list[Placed]] = lambda _: []
    """Returns the placed messages that the written request leaves out."""
    asks_for_tool: Callable[[str], bool] | None = None
    """Tells whether a text of the assistant is a call; None if calls are no part of a text."""

    def request(self, placed: Sequence[Placed], language: Language = "en") -> Written:
        """Return a request, with its system text separate if the format sends it so.

        ``language`` is the language of texts that the format adds.
        """
        if self.names is not None:
            placed = renamed(placed, self.names)
        if self.system is None:
            return Written(self.write(placed))
        front, turns = apart(placed)
        beginning = phrase("beginning", language)
        return Written(self.write(turns, beginning), self.system(front))


CHAT_NAMES = openai.NAMES
CHAT = Format(
    openai.NAME,
    openai.write,
    Codec(
        said_elsewhere.problem, said_elsewhere.is_told, said_elsewhere.rows, said_elsewhere.given
    ),
    CHAT_NAMES,
)
"""One message for each placed one, in the shape that a context also uses to show its pieces."""
RESPONSES = Format(
    responses.NAME,
    responses.write,
    Codec(responses.problem, responses.is_told, responses.rows, responses.given),
    responses.NAMES,
    unsent=responses.unsent,
)
ANTHROPIC = Format(
    anthropic.NAME,
    anthropic.write,
    Codec(anthropic.problem, anthropic.is_told, anthropic.rows, anthropic.given, anthropic.left),
    anthropic.NAMES,
    anthropic.system,
)
GEMINI = Format(
    gemini.NAME,
    gemini.write,
    Codec(gemini.problem, gemini.is_told, gemini.rows, gemini.given, gemini.left),
    gemini.NAMES,
    gemini.system,
)
REACT = Format("react", react.write, tools_apart=False, asks_for_tool=react.asks_for_tool)

FORMATS: Mapping[str, Format] = {
    row.name: row for row in (CHAT, REACT, RESPONSES, ANTHROPIC, GEMINI)
}
"""The formats by name."""
CODECS = (RESPONSES, ANTHROPIC, GEMINI)
"""The formats whose messages are recognized by a shape that no message of a chat has."""


def format_named(name: object) -> Format:
    """Return the format of a name. Raises InvalidValue for an unknown name."""
    if not isinstance(name, str) or name not in FORMATS:
        raise InvalidValue(f"no format is named {quoted(name)}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def stands_for_call(sent: str, call_id: str) -> bool:
    """Tell whether an id is sent by any format for a call id or for a repetition of it."""
    return any(row.names.ids.stands_for(sent, call_id) for row in FORMATS.values() if row.names)


class Taken(NamedTuple):
    """A message as it is stored: the format in which it came, None for a chat's, and its rows."""

    name: str | None
    rows: list[Message]


def taken(message: Message, name: str | None, index: int) -> Taken:
    """Return a message of a format as rows; without a name its shape decides the format.

    Raises InvalidMessage, naming ``index`` and the key, if it is not of the format.
    """
    row = _told(message) if name is None else format_named(name)
    if row.codec is None:
        return Taken(None, [message])
    problem = row.codec.problem(message)
    if problem:
        raise InvalidMessage(index, *problem)
    rows = row.codec.rows(message)
    return Taken(None if rows[0] is message else row.name, rows)


def taken_from_reader(message: Message) -> Taken:
    """Return the row of a message that a reader of transcripts gives in the shape of a chat."""
    rows = said_elsewhere.rows_read(message)
    return Taken(None if rows[0] is message else CHAT.name, rows)


def _told(message: Message) -> Format:
    """Return the only format that a message can be of; the chat format if it can be of that."""
    if isinstance(message.get("content"), str):
        return CHAT
    for row in CODECS:
        if row.codec and row.codec.is_told(message) and row.codec.problem(message) is None:
            return row
    return CHAT


def _stored_format(name: str) -> Format:
    if name not in FORMATS:
        raise Damaged(f"a message is said to be of the format {name!r:.40}; {VERIFY}")
    return FORMATS[name]


def given_back(name: str, rows: Sequence[Message]) -> Message:
    """Return the original message from its rows; redacted words stay removed."""
    codec = _stored_format(name).codec
    if codec is None or not all(kept(each, name) for each in rows):
        return rows[-1]
    return codec.given(rows)


def left_of(name: str | None, row: Message, redacted: Message) -> Message:
    """Return the key `WIRE` with the values that one row of several keeps when it is redacted.

    So the original stays one message, with its other rows unchanged. The result is empty for any
    other row. ``redacted`` is the row after the redaction.
    """
    codec = _stored_format(name).codec if name else None
    held = kept(row, name) if name else None
    if codec is None or not held or "part" not in held:
        return {}
    return {WIRE: {"format": name, "part": held["part"], **codec.left(row, redacted)}}


def asks_for_tool(said: str) -> bool:
    """Tell whether a text calls a tool in any format that writes calls as text."""
    return any(row.asks_for_tool(said) for row in FORMATS.values() if row.asks_for_tool)
