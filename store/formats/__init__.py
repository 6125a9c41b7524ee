"""Wire formats: write a request for a provider, or for a model that reads plain text.

A format is one row of `FORMATS`. It gets the whole request at once, so that it can join several
messages or split one. The functions are pure. Views and contexts write with a format; history uses
it to recognize calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..errors import VERIFY_HINT, Damaged, InvalidMessage, InvalidValue, quote_value
from ..messages import (
    WIRE_KEY,
    Message,
    PreparedMessage,
    digest_row,
    extract_content_text,
    prepare_message,
)
from ..phrases import PHRASES, Language, render_phrase
from ..text import wrap_in_list
from . import anthropic, gemini, openai, react, responses
from .answer_chunks import ChunkReader, read_chunk
from .anthropic import keep_own_markers
from .call_names import (
    AcceptedNames,
    Alphabet,
    describe_renames,
    make_call_id,
    rename_continuation,
    rename_request,
)
from .chat_rows import Codec, find_wire_values
from .message_templates import (
    KeptMessage,
    ShapedRow,
    find_shaped_part,
    keep_message,
    restore_shaped_row,
    restore_shaped_rows,
    shape_row,
    write_shaped_row,
)
from .openai import (
    CHAT_PART_TYPES,
    ITEM_FORMAT,
    clean_message,
    copy_written_message,
    find_audio,
    is_continuing_item,
    list_foreign_types,
    remove_audio,
    remove_extensions,
    replace_surrogates,
)
from .reasoning import add_reasoning, find_reasoning
from .request_messages import ApiCall, PlacedMessage, System, make_api_call
from .response_usage import ResponseUsage, read_response_usage
from .responses import write_plain_item
from .sendable_calls import add_sendable_call, get_sendable_text, select_sendable_calls
from .tool_definitions import (
    GivenTools,
    ToolDefinition,
    build_anthropic_tool,
    build_chat_tool,
    build_gemini_tool,
    build_responses_tool,
    write_definitions,
)
from .turns import FIRST_USER_TEXT, TURN_SYSTEM_ROLES, mark_system_text
from .value_templates import (
    MOST_TEMPLATES,
    SPECIMEN_MARK,
    Build,
    TemplateEntry,
    compile_display,
    render_display,
)

__all__ = [
    "ANTHROPIC",
    "CHAT",
    "CODECS",
    "FORMATS",
    "GEMINI",
    "REACT",
    "REQUEST_BEGINNINGS",
    "RESPONSES",
    "WIRE_KEY",
    "AcceptedNames",
    "Alphabet",
    "ApiCall",
    "ChunkReader",
    "Codec",
    "EncodedMessage",
    "Format",
    "PlacedMessage",
    "PreparedMessage",
    "ResponseUsage",
    "System",
    "WrittenRequest",
    "digest_row",
    "encode_message",
    "encode_parsed_message",
    "get_format",
    "mark_system_text",
    "prepare_message",
    "read_chunk",
    "read_response_usage",
    "render_draft_text",
    "replace_surrogates",
]


class WrittenRequest(NamedTuple):
    """A request as a format writes it; ``system`` is its text outside the messages."""

    messages: list[Message]
    system: System = None


def place_row(seq: int, row: Message) -> PlacedMessage:
    """Return a row of a line in a place of its own, with the calls that are sent of it."""
    calls = select_sendable_calls(seq, wrap_in_list(row.get("tool_calls") or []))
    result_id = get_sendable_text(row, "tool_call_id") if row["role"] == "tool" else None
    return PlacedMessage(seq, row, None, calls, result_id)


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
    names: AcceptedNames | None = None
    """The ids and names that are accepted; None if a request has none."""
    system: Callable[[Sequence[PlacedMessage]], System] | None = None
    """Returns leading system messages as a separate value; None if they are sent as messages."""
    tools_apart: bool = True
    """Whether tool definitions are sent separately from the messages."""
    unsent: Callable[[Sequence[PlacedMessage]], list[PlacedMessage]] = lambda _: []
    """Returns the placed messages that the written request leaves out."""
    asks_for_tool: Callable[[str], bool] | None = None
    """Tells whether a text of the assistant is a call; None if calls are no part of a text."""
    build_tool: Callable[[ToolDefinition], Message] | None = None
    """Returns the definition of a tool; None if definitions are sent as text."""

    def write_tools(self, tools: GivenTools) -> list[Message]:
        """Return definitions of tools, given in the form of any provider, in that of the format."""
        if self.build_tool is None or self.names is None:
            return [{**tool} for tool in tools]
        return write_definitions(tools, self.build_tool, self.names.tools)

    def write_row(self, seq: int, row: Message) -> list[Message]:
        """Return the messages of a request that has one row of a line only."""
        placed = [place_row(seq, row)]
        written = self.write(placed if self.names is None else rename_request(placed, self.names))
        is_preceded = self.system is not None and row["role"] == "assistant"
        return written[1:] if is_preceded else written

    def request(self, placed: Sequence[PlacedMessage], language: Language = "en") -> WrittenRequest:
        """Return a request, with its system text separate if the format sends it so.

        ``language`` is the language of texts that the format adds.
        """
        if self.names is not None:
            placed = rename_request(placed, self.names)
        if self.system is None:
            return WrittenRequest(self.write(placed))
        split = 0
        while split < len(placed) and placed[split].message["role"] in TURN_SYSTEM_ROLES:
            split += 1
        beginning = render_phrase("beginning", language)
        return WrittenRequest(self.write(placed[split:], beginning), self.system(placed[:split]))


CHAT_NAMES = openai.OPENAI_ACCEPTED_NAMES
CHAT = Format(
    openai.OPENAI_NAME,
    openai.write_chat_messages,
    Codec(
        lambda _: None,  # any message may be of a chat
        openai.has_moved_key,
        openai.build_chat_rows,
        openai.restore_chat_message,
    ),
    CHAT_NAMES,
    build_tool=build_chat_tool,
)
"""One message for each placed one, in the shape that a context also uses to show its pieces."""
RESPONSES_NAMES = responses.RESPONSES_ACCEPTED_NAMES
RESPONSES = Format(
    responses.RESPONSES_NAME,
    responses.write_responses_items,
    Codec(
        responses.find_responses_problem,
        responses.is_responses_item,
        responses.build_responses_rows,
        responses.restore_responses_item,
    ),
    RESPONSES_NAMES,
    unsent=responses.list_unsent_items,
    build_tool=build_responses_tool,
)
"""The items of OpenAI's Responses API."""
ANTHROPIC = Format(
    anthropic.ANTHROPIC_NAME,
    anthropic.write_anthropic_messages,
    Codec(
        anthropic.find_anthropic_problem,
        anthropic.is_anthropic_message,
        anthropic.build_anthropic_rows,
        anthropic.restore_anthropic_message,
        anthropic.build_redacted_block,
        anthropic.write_anthropic_blocks,
    ),
    anthropic.ANTHROPIC_ACCEPTED_NAMES,
    anthropic.write_anthropic_system,
    build_tool=build_anthropic_tool,
)
"""The messages of Anthropic's API, its system text apart."""
GEMINI = Format(
    gemini.GEMINI_NAME,
    gemini.write_gemini_contents,
    Codec(
        gemini.find_gemini_problem,
        gemini.is_gemini_content,
        gemini.build_gemini_rows,
        gemini.restore_gemini_content,
        gemini.build_redacted_part,
        gemini.write_gemini_parts,
    ),
    gemini.GEMINI_ACCEPTED_NAMES,
    gemini.write_gemini_system,
    build_tool=build_gemini_tool,
)
"""The contents of Google's Gemini API, its system text apart."""
REACT = Format(
    "react", react.write_react_text, tools_apart=False, asks_for_tool=react.has_react_action
)
"""A plain text with lines for thoughts, actions and observations, for models without tools."""

FORMATS: Mapping[str, Format] = {
    row.name: row for row in (CHAT, REACT, RESPONSES, ANTHROPIC, GEMINI)
}
"""The formats by name."""
CODECS = (RESPONSES, ANTHROPIC, GEMINI)
"""The formats whose messages are recognized by a shape that no message of a chat has."""

REQUEST_BEGINNINGS = (*PHRASES["beginning"].values(),)
"""The texts with which formats begin a request if the user has not spoken first."""


def get_format(name: object) -> Format:
    """Return the format of a name. Raises InvalidValue for an unknown name."""
    if not isinstance(name, str) or name not in FORMATS:
        raise InvalidValue(
            f"no format is named {quote_value(name)}; there are {', '.join(FORMATS)}"
        )
    return FORMATS[name]


def is_sent_call_id(sent: str, call_id: str) -> bool:
    """Tell whether an id is sent by any format for a call id or for a repetition of it."""
    return any(row.names.ids.stands_for(sent, call_id) for row in FORMATS.values() if row.names)


class EncodedMessage(NamedTuple):
    """A message as it is stored: the format in which it came, None for a chat's, and its rows."""

    name: str | None
    rows: list[Message]


def encode_message(message: Message, name: str | None, index: int) -> EncodedMessage:
    """Return a message of a format as rows; without a name its shape decides the format.

    Raises InvalidMessage, naming ``index`` and the key, if it is not of the format.
    """
    row = _detect_format(message) if name is None else get_format(name)
    if row.codec is None:
        return EncodedMessage(None, [message])
    problem = row.codec.find_problem(message)
    if problem:
        raise InvalidMessage(index, *problem)
    rows = row.codec.build_rows(message)
    return EncodedMessage(None if rows[0] is message else row.name, rows)


def encode_parsed_message(message: Message) -> EncodedMessage:
    """Return the row of a message that a reader of transcripts gives in the shape of a chat."""
    rows = openai.build_parsed_rows(message)
    return EncodedMessage(None if rows[0] is message else CHAT.name, rows)


def render_draft_text(message: Message, name: str | None) -> str:
    """Return the text of an unfinished message of a format.

    If it does not fit the format yet, it is read as a message of a chat.
    """
    try:
        rows = encode_message(message, name, 0).rows
    except InvalidMessage:
        rows = [message]
    return extract_content_text(rows[0].get("content"))


def _detect_format(message: Message) -> Format:
    """Return the only format that a message can be of; the chat format if it can be of that."""
    if isinstance(message.get("content"), str):
        return CHAT
    for row in CODECS:
        if (
            row.codec
            and row.codec.is_recognized(message)
            and row.codec.find_problem(message) is None
        ):
            return row
    return CHAT


def _get_stored_format(name: str) -> Format:
    if name not in FORMATS:
        raise Damaged(f"a message is said to be of the format {name!r:.40}; {VERIFY_HINT}")
    return FORMATS[name]


def decode_message(name: str, rows: Sequence[Message]) -> Message:
    """Return the original message from its rows; redacted words stay removed."""
    codec = _get_stored_format(name).codec
    if codec is None or not all(find_wire_values(each, name) for each in rows):
        return rows[-1]
    return codec.restore(rows)


def restore_row(shaped: ShapedRow) -> Message | None:
    """Return the original message from its only row, built by the template of its shape.

    Returns None for part of a message, and if messages of this shape have no template.
    """
    return restore_shaped_row(shaped, decode_message)


def restore_message(rows: Sequence[ShapedRow]) -> Message | None:
    """Return the original message from its rows, by the template of their shapes, if there is one.

    That is so from the second message of a shape on.
    """
    return restore_shaped_rows(rows, decode_message)


def write_row_parts(shaped: ShapedRow) -> list[Message] | None:
    """Return the parts that its own format sends of a row, built by the template of its shape.

    Returns None if there is none, and for texts that may be sent changed.
    """
    return write_shaped_row(shaped, _write_specimen)


def _write_specimen(name: str, rows: Sequence[Message]) -> list[Message]:
    codec = _get_stored_format(name).codec
    assert codec
    assert codec.write_parts
    return codec.write_parts(place_row(0, rows[0]))


def build_redacted_wire(name: str | None, row: Message, redacted: Message) -> Message:
    """Return the key `WIRE_KEY` with the values that one row of several keeps when it is redacted.

    So the original stays one message, with its other rows unchanged. The result is empty for any
    other row. ``redacted`` is the row after the redaction.
    """
    codec = _get_stored_format(name).codec if name else None
    held = find_wire_values(row, name) if name else None
    if codec is None or not held or "part" not in held:
        return {}
    return {WIRE_KEY: {"format": name, "part": held["part"], **codec.build_redacted(row, redacted)}}


def asks_for_tool(said: str) -> bool:
    """Tell whether a text calls a tool in any format that writes calls as text."""
    return any(row.asks_for_tool(said) for row in FORMATS.values() if row.asks_for_tool)
