"""What a parser reports: a session begins, its next message, a note for the user.

Beside these three words stand the few rules that all parsers share: titles, session ids, and what
goes into a session's metadata. Nothing here knows a file format or a store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import add, sub
from typing import Any, NamedTuple

from ..records import Message, extract_part_text
from ..text import JsonFields, format_count, truncate_to_line, wrap_in_list


class UsageTokens(NamedTuple):
    """Tokens of a request: all that was sent, the answer, and what of the first a cache held."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    def less(self, paid: UsageTokens) -> UsageTokens:
        """Return the remaining tokens if some are paid already."""
        left = map(sub, self, paid)
        return UsageTokens(*(max(0, each) for each in left))

    def plus(self, others: UsageTokens) -> UsageTokens:
        """Return them with others."""
        return UsageTokens(*map(add, self, others))


class RequestUsage(NamedTuple):
    """What a request cost: its tokens, who answered, and what the file says (``told``).

    ``name`` tells the answer from all others of its session, where its message does not.
    """

    tokens: UsageTokens
    model: str | None
    provider: str | None
    told: JsonFields
    name: str | None = None


TypeCounts = Mapping[tuple[str, str], int]
"""How many things there are of each type and subtype; the subtype may be ""."""

TITLE_LENGTH = 80
"""Code points a title made from a prompt may have."""

METADATA_VALUE_LIMIT = 100_000
"""Code points of JSON text that one value may have in metadata, which every list reads."""

EXTRA_KEYS = (
    *("claude_code", "codex", "openhands"),
    *("chatgpt", "claude_ai", "gemini_cli", "qwen_code", "copilot_cli"),
    *("vscode_chat", "pi", "opencode", "sharegpt", "oasst", "cursor"),
    *("droid", "tau2_bench", "inspect", "moatless", "goose", "kiro"),
    *("adk", "llm", "langgraph", "open_webui", "librechat"),
    *("grok_build", "amp", "antigravity", "cursor_cli", "gemini_takeout"),
    *("hermes", "continue_dev", "aider"),
)
"""Keys of a message for what its file says beyond it; a longer file may say other things there."""

PREAMBLE_TAGS_BY_PROGRAM = {
    "Gemini CLI": "session_context",
    "Codex": "environment_context user_instructions permissions INSTRUCTIONS",
    "Claude Code": "system-reminder command-message command-name local-command-stdout",
    "Cline": "environment_details slash_command",
    "Cursor": "user_info project_layout git_status rules open_and_recently_viewed_files",
    "VS Code": "environment_info workspace_info reminderInstructions context attachments",
    "Antigravity": "ADDITIONAL_METADATA",
    "Forge": "current_working_directory",
    "Copilot CLI": "current_datetime",
}
"""Program → tags around texts that it puts before a user's input, or sends instead of it."""
PREAMBLE_TEXT_STARTS = (
    "# AGENTS.md instructions",
    "Caveat: The messages below",
    "This is the Gemini CLI. We are setting up the context",
    "[Request interrupted",
)
"""Beginnings of texts that programs send instead of a user's input."""
USER_INPUT_TAGS = (
    *("user_query", "user_input", "userRequest", "USER_REQUEST", "task", "feedback"),
)
"""Tags that programs put around what a user typed."""
_PREAMBLE_TAGS = frozenset(" ".join(PREAMBLE_TAGS_BY_PROGRAM.values()).split())
_OPENING_TAG = re.compile(r"<([A-Za-z][\w-]*)(?: [^<>]*)?>")
_GAP_PATTERN = re.compile(r"\s*")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ForkPoint(NamedTuple):
    """The place where a session continues another of its file: after that many of its messages."""

    session_id: str
    after: int


class SessionEvent(NamedTuple):
    """A session begins: the messages that follow are its own, until the next session begins.

    ``titles`` are those that the same file may have given it when it was shorter; ``stem`` is what
    it continues, None where it begins anew; ``created_at`` is when it was created (ms), if the file
    tells.
    """

    session_id: str
    title: str | None
    project_root: str | None
    metadata: JsonFields
    owner: str | None = None
    titles: tuple[str, ...] = ()
    stem: ForkPoint | None = None
    created_at: int | None = None


READER_FORMAT = "read"
"""The value of `Said.format` for a message in a reader's own words."""


class SessionMessage(NamedTuple):
    """The next message of the session that was opened last.

    ``format`` names its wire format, None if its shape tells, and `READER_FORMAT` if the program's
    own record was read and is given here in the shape of a chat. ``moment`` (ms) is the time of the
    message, if the message itself does not tell it; ``spent`` is its cost as told elsewhere in the
    file.
    """

    message: Message
    format: str | None = READER_FORMAT
    moment: int | None = None
    spent: tuple[RequestUsage, ...] = ()


class CompactionEvent(NamedTuple):
    """A compaction of the context: the session's first messages went out of the model's sight.

    ``through`` is their number, ``summary`` the text that replaced them, None if a later message
    has it.
    """

    through: int
    summary: str | None = None


class SideRowsEvent(NamedTuple):
    """What a program kept beside the message before: hooks, its own commands, context it added."""

    rows: list[JsonFields]


class NoteEvent(NamedTuple):
    """A notice for the user, with the row of the file that it is about, if there is one.

    ``broken``: a part of the file could not be read; the rest is kept. ``left_out``: the number of
    omitted values of kind ``thing``, if the note reports these. ``speaks``: the note is about a
    value that has words, and yet is no message; ``unfinished``: about a last line without an end,
    which may still be written.
    """

    row: int | None
    text: str
    broken: bool = False
    left_out: int = 0
    thing: str = ""
    speaks: bool = False
    unfinished: bool = False


class StoreRow(NamedTuple):
    """A row of a whole store, as its table holds it, with the row of the file that it stands in."""

    table: str
    fields: JsonFields
    row: int | None


MESSAGE_TEXT_KEYS = ("content", "text", "output")
"""Keys under which messages and their parts have their words."""
FALLBACK_TEXT_KEYS = ("message", "parts", "value", "body", "prompt", "answer", "blocks", "summary")
"""Keys under which a message has them that is of no known shape."""
THOUGHT_PART_TYPES = ("thinking", "redacted_thinking", "reasoning", "reasoning_text")
"""Types of parts that no one said."""
MAX_TEXT_DEPTH = 8
"""Levels of a message in which words are looked for: results in parts have them in the fifth."""

Event = SessionEvent | SessionMessage | CompactionEvent | SideRowsEvent | NoteEvent | StoreRow
"""What a parser reports: sessions, their messages, and what belongs to these."""


class SessionNames:
    """Give every session of a file an id of its own, the same each time the file is read."""

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self._taken: set[str] = set()
        self._count = 0

    def name(self, wanted: str | None = None) -> str:
        """Return the wanted id (None: the file's name); where it is taken, with a number.

        That is the session's number in the file.
        """
        self._count += 1
        wanted = name = wanted or self.stem
        if wanted in self._taken:
            name = f"{wanted}-{self._count}"
        while name in self._taken:
            name += "+"
        self._taken.add(name)
        return name


def find_title(messages: Iterable[Message]) -> str | None:
    """Return the first text that a user typed as a title, None where no user typed anything."""
    users = (message for message in messages if message.get("role") == "user")
    parts = (part for message in users for part in wrap_in_list(message.get("content")))
    typed = filter(None, map(_strip_preamble, map(extract_part_text, parts)))
    return next(map(render_title, typed), None)


def _strip_preamble(text: str) -> str:
    """Return a user's text without what the program put before it; "" where it is all of it."""
    place = len(text) - len(text.lstrip())
    while found := _OPENING_TAG.match(text, place):
        name = found[1]
        if name in USER_INPUT_TAGS:
            return text[found.end() :].partition(f"</{name}>")[0].strip()
        if name not in _PREAMBLE_TAGS:
            break
        end = text.find(f"</{name}>", found.end())
        if end < 0:
            return ""
        place = _GAP_PATTERN.match(text, end + len(name) + 3).end()  # type: ignore[union-attr]
    return "" if text.startswith(PREAMBLE_TEXT_STARTS, place) else text[place:].strip()


def render_title(text: str) -> str:
    """Return a text as one line of at most 80 code points."""
    return truncate_to_line(text, TITLE_LENGTH)


def wrap_raw_messages(
    values: Iterable[object], *, session_id: str, row: int | None = None
) -> Iterator[SessionMessage | NoteEvent]:
    """Return the messages of a list unchanged; any other value is noted with its place."""
    for number, value in enumerate(values, 1):
        yield wrap_raw_message(value, row=row, place=f"message {number} of {session_id}")


def wrap_raw_message(value: object, *, row: int | None, place: str) -> SessionMessage | NoteEvent:
    """Return one message exactly as it is, or a note that it is none."""
    if isinstance(value, dict) and get_text(value.get("role")):
        return SessionMessage(value, "openai")
    return note_unread_value(row, value, "not a message: an object with a role was expected", place)


def split_metadata(fields: JsonFields) -> tuple[JsonFields, list[NoteEvent]]:
    """Return the fields that become a session's metadata, and a note for each that is too big."""
    kept: JsonFields = {}
    notes: list[NoteEvent] = []
    for key, held in fields.items():
        size = len(json.dumps(held, ensure_ascii=False, default=str))
        if size <= METADATA_VALUE_LIMIT:
            kept[key] = held
        else:
            reason = f"{size:,} characters are too many for a session's metadata"
            notes.append(NoteEvent(None, f"left out {key!r}: {reason}"))
    return kept, notes


def render_sketch(value: object) -> str:
    """Return what a JSON value looks like from outside, for an error text."""
    if isinstance(value, dict):
        keys = ", ".join(map(repr, list(value)[:6]))
        return f"an object with {keys}" if keys else "an empty object"
    if isinstance(value, list):
        if not value or isinstance(value[0], list):
            return f"a list of {len(value)}"
        return f"a list of {len(value)}, the first {render_sketch(value[0])}"
    return f"{value!r:.60}"


def note_unread_value(
    row: int | None, value: object, what: str, place: str | None = None
) -> NoteEvent:
    """Return a note that a value of a file is ``what``, and not of the kind read there."""
    text = (
        f"{place} is {what}, this is {render_sketch(value)}"
        if place
        else f"{render_sketch(value)} is {what}"
    )
    return NoteEvent(row, text, broken=True, speaks=any(list_texts(value)))


def list_texts(value: object) -> Iterator[str]:
    """Yield the texts of a message, or of any value that may be one.

    Thoughts and the arguments of tools are not included.
    """
    fields = get_fields(value)
    keys = (
        MESSAGE_TEXT_KEYS
        if any(map(fields.get, (*MESSAGE_TEXT_KEYS, "tool_calls", "function_call")))
        else FALLBACK_TEXT_KEYS
    )
    for key in keys:
        yield from _list_words_below(fields.get(key), 1)


def _list_words_below(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from filter(str.strip, [value])
    elif depth > MAX_TEXT_DEPTH:
        return
    elif isinstance(value, list):
        for each in value:
            yield from _list_words_below(each, depth + 1)
    elif isinstance(value, dict) and value.get("type") not in THOUGHT_PART_TYPES:
        for key in MESSAGE_TEXT_KEYS:
            yield from _list_words_below(value.get(key), depth + 1)


def list_omission_notes(counts: TypeCounts, thing: str) -> Iterator[NoteEvent]:
    """Return a note for each type of thing that was left out."""
    by_name = groupby(sorted(counts), key=lambda each: each[0])
    for name, kinds in by_name:
        subtypes = {subtype: counts[name, subtype] for _, subtype in kinds}
        details = [f"{count} {subtype}" for subtype, count in subtypes.items() if subtype]
        told = f" ({', '.join(details)})" if details else ""
        yield note_omission(sum(subtypes.values()), f"{name} {thing}", told)


def note_omission(count: int, thing: str, why: str) -> NoteEvent:
    """Return a note that so many of a thing were left out, and why."""
    return NoteEvent(
        None, f"left out {format_count(count, thing)}{why}", left_out=count, thing=thing
    )


def parse_iso_milliseconds(timestamp: object) -> int | None:
    """Return an ISO time as milliseconds since the epoch, None for anything else.

    A time without a zone is in UTC.
    """
    if not isinstance(timestamp, str):
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
        if not moment.tzinfo:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


def get_text(value: object) -> str | None:
    """Return a text that says something, None for anything else."""
    return value if isinstance(value, str) and value else None


def find_first_text(values: Iterable[object]) -> str | None:
    """Return the first value that is a text and says something, None where there is none."""
    return next(filter(None, map(get_text, values)), None)


def get_fields(value: object) -> JsonFields:
    """Return an object's fields; of anything else, none."""
    return value if isinstance(value, dict) else {}


def get_nested(value: object, *keys: str) -> Any:
    """Return what objects hold, one in the other, under some keys; None where they do not."""
    for key in keys:
        value = get_fields(value).get(key)
    return value


def get_objects(value: object) -> list[JsonFields]:
    """Return the objects in a list that have any fields; of anything else, none."""
    return list(filter(None, map(get_fields, get_list(value))))


def render_json(value: object) -> str:
    """Return a value as JSON, with letters of all languages as they are."""
    return json.dumps(value, ensure_ascii=False)


def is_json_object(text: str) -> bool:
    """Tell whether a text is JSON of an object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def render_as_text(value: object) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else render_json(value)


def parse_mime_part(part: JsonFields) -> JsonFields:
    """Return a part with a text, or a picture and its ``mimeType``, as a part of the content."""
    match part:
        case {"type": "text", "text": str(text)}:
            return build_text_part(text)
        case {"type": "image", "mimeType": str(kind), "data": str(data)}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    return part


def build_chat_call(name: object, tool: object, arguments: object) -> JsonFields:
    """Return a call of a tool; arguments that are no text, as JSON."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False)
    function = {"name": get_text(tool) or "", "arguments": arguments}
    return {"id": get_text(name) or "", "type": "function", "function": function}


def convert_to_milliseconds(seconds: object) -> int | None:
    """Return a moment in seconds since the epoch as milliseconds, None for anything else."""
    if not isinstance(seconds, int | float) or not 0 < seconds < 2**40:
        return None
    return round(seconds * 1000)


def join_texts(texts: Iterable[object], between: str = "\n\n") -> str:
    """Return the texts that say something as one."""
    return between.join(filter(None, map(get_text, texts)))


def get_list(value: object) -> list[Any]:
    """Return a list's items; of anything else, none."""
    return value if isinstance(value, list) else []


def build_text_part(text: str) -> JsonFields:
    """Return a text as a content part."""
    return {"type": "text", "text": text}


def drop_keys(fields: JsonFields, *keys: str) -> JsonFields:
    """Return an object without some of its keys."""
    return {key: held for key, held in fields.items() if key not in keys}


def drop_empty_fields(fields: JsonFields) -> JsonFields:
    """Return an object without the keys that say nothing."""
    nothing: tuple[object, ...] = (None, "", [], {})
    return {key: held for key, held in fields.items() if held not in nothing}


def render_titles(texts: Iterable[object]) -> tuple[str, ...]:
    """Return the texts that say something as titles."""
    lines = (render_title(get_text(text) or "") for text in texts)
    return tuple(filter(None, lines))


def render_first_title(texts: Iterable[object]) -> str | None:
    """Return the first text that says something as a title, None where none does."""
    return find_first_text(render_titles(texts))


def simplify_content(parts: list[Any]) -> object:
    """Return content parts in their simplest form: None for none, a lone text, else the parts."""
    match parts:
        case [{"type": _, "text": str(text), **rest}] if not rest:
            return text
    return parts or None
