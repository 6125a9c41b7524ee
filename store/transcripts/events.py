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
from typing import Any, NamedTuple

from ..messages import Message, part_text
from ..text import Fields, as_list, format_count, truncate_to_line
from .costs import Spent

Counts = Mapping[tuple[str, str], int]
"""How many things there are of each type and subtype; the subtype may be ""."""

TITLE_LENGTH = 80
"""Code points a title made from a prompt may have."""

METADATA_LIMIT = 100_000
"""Code points of JSON text that one value may have in metadata, which every list reads."""

EXTRA_KEYS = (
    *("claude_code", "codex", "openhands"),
    *("chatgpt", "claude_ai", "gemini_cli", "qwen_code", "copilot_cli"),
    *("vscode_chat", "pi", "opencode", "sharegpt", "oasst", "cursor"),
    *("droid", "tau2_bench", "inspect", "moatless", "goose", "kiro"),
    *("adk", "llm", "langgraph", "open_webui", "librechat"),
)
"""Keys of a message for what its file says beyond it; a longer file may say other things there."""

OWN_TAGS = {
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
OWN_WORDS = (
    "# AGENTS.md instructions",
    "Caveat: The messages below",
    "This is the Gemini CLI. We are setting up the context",
    "[Request interrupted",
)
"""Beginnings of texts that programs send instead of a user's input."""
AROUND = ("user_query", "userRequest", "USER_REQUEST", "task", "feedback")
"""Tags that programs put around what a user typed."""
_OWN = frozenset(" ".join(OWN_TAGS.values()).split())
_TAG = re.compile(r"<([A-Za-z][\w-]*)(?: [^<>]*)?>")
_GAP = re.compile(r"\s*")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stem(NamedTuple):
    """The place where a session continues another of its file: after that many of its messages."""

    session_id: str
    after: int


class Opened(NamedTuple):
    """A session begins: the messages that follow are its own, until the next session begins.

    ``titles`` are those that the same file may have given it when it was shorter; ``stem`` is what
    it continues, None where it begins anew; ``created_at`` is when it was created (ms), if the file
    tells.
    """

    session_id: str
    title: str | None
    project_root: str | None
    metadata: Fields
    owner: str | None = None
    titles: tuple[str, ...] = ()
    stem: Stem | None = None
    created_at: int | None = None


READ = "read"
"""The value of `Said.format` for a message in a reader's own words."""


class Said(NamedTuple):
    """The next message of the session that was opened last.

    ``format`` names its wire format, None if its shape tells, and `READ` if the program's own
    record was read and is given here in the shape of a chat. ``moment`` (ms) is the time of the
    message, if the message itself does not tell it; ``spent`` is its cost as told elsewhere in the
    file.
    """

    message: Message
    format: str | None = READ
    moment: int | None = None
    spent: tuple[Spent, ...] = ()


class Compacted(NamedTuple):
    """A compaction of the context: the session's first messages went out of the model's sight.

    ``through`` is their number, ``summary`` the text that replaced them, None if a later message
    has it.
    """

    through: int
    summary: str | None = None


class Beside(NamedTuple):
    """What a program kept beside the message before: hooks, its own commands, context it added."""

    rows: list[Fields]


class Noted(NamedTuple):
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
    fields: Fields
    row: int | None


WORDS = ("content", "text", "output")
"""Keys under which messages and their parts have their words."""
INSTEAD = ("message", "parts", "value", "body", "prompt", "answer", "blocks", "summary")
"""Keys under which a message has them that is of no known shape."""
THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_text")
"""Types of parts that no one said."""
WORDS_DEPTH = 8
"""Levels of a message in which words are looked for: results in parts have them in the fifth."""

Event = Opened | Said | Compacted | Beside | Noted | StoreRow


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


def title_of(messages: Iterable[Message]) -> str | None:
    """Return the first text that a user typed as a title, None where no user typed anything."""
    users = (message for message in messages if message.get("role") == "user")
    parts = (part for message in users for part in as_list(message.get("content")))
    typed = filter(None, map(_typed, map(part_text, parts)))
    return next(map(title_line, typed), None)


def _typed(text: str) -> str:
    """Return a user's text without what the program put before it; "" where it is all of it."""
    place = len(text) - len(text.lstrip())
    while found := _TAG.match(text, place):
        name = found[1]
        if name in AROUND:
            return text[found.end() :].partition(f"</{name}>")[0].strip()
        if name not in _OWN:
            break
        end = text.find(f"</{name}>", found.end())
        if end < 0:
            return ""
        place = _GAP.match(text, end + len(name) + 3).end()  # type: ignore[union-attr]
    return "" if text.startswith(OWN_WORDS, place) else text[place:].strip()


def title_line(text: str) -> str:
    """Return a text as one line of at most 80 code points."""
    return truncate_to_line(text, TITLE_LENGTH)


def as_messages(
    values: Iterable[object], *, session_id: str, row: int | None = None
) -> Iterator[Said | Noted]:
    """Return the messages of a list unchanged; any other value is noted with its place."""
    for number, value in enumerate(values, 1):
        yield as_message(value, row=row, place=f"message {number} of {session_id}")


def as_message(value: object, *, row: int | None, place: str) -> Said | Noted:
    """Return one message exactly as it is, or a note that it is none."""
    if isinstance(value, dict) and text_of(value.get("role")):
        return Said(value, "openai")
    return unread(row, value, "not a message: an object with a role was expected", place)


def split_metadata(fields: Fields) -> tuple[Fields, list[Noted]]:
    """Return the fields that become a session's metadata, and a note for each that is too big."""
    kept: Fields = {}
    notes: list[Noted] = []
    for key, held in fields.items():
        size = len(json.dumps(held, ensure_ascii=False, default=str))
        if size <= METADATA_LIMIT:
            kept[key] = held
        else:
            reason = f"{size:,} characters are too many for a session's metadata"
            notes.append(Noted(None, f"left out {key!r}: {reason}"))
    return kept, notes


def sketch(value: object) -> str:
    """Return what a JSON value looks like from outside, for an error text."""
    if isinstance(value, dict):
        keys = ", ".join(map(repr, list(value)[:6]))
        return f"an object with {keys}" if keys else "an empty object"
    if isinstance(value, list):
        if not value or isinstance(value[0], list):
            return f"a list of {len(value)}"
        return f"a list of {len(value)}, the first {sketch(value[0])}"
    return f"{value!r:.60}"


def unread(row: int | None, value: object, what: str, place: str | None = None) -> Noted:
    """Return a note that a value of a file is ``what``, and not of the kind read there."""
    text = f"{place} is {what}, this is {sketch(value)}" if place else f"{sketch(value)} is {what}"
    return Noted(row, text, broken=True, speaks=any(words_of(value)))


def words_of(value: object) -> Iterator[str]:
    """Yield the texts of a message, or of any value that may be one.

    Thoughts and the arguments of tools are not included.
    """
    fields = fields_of(value)
    keys = WORDS if any(map(fields.get, (*WORDS, "tool_calls", "function_call"))) else INSTEAD
    for key in keys:
        yield from _words_in(fields.get(key), 1)


def _words_in(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from filter(str.strip, [value])
    elif depth > WORDS_DEPTH:
        return
    elif isinstance(value, list):
        for each in value:
            yield from _words_in(each, depth + 1)
    elif isinstance(value, dict) and value.get("type") not in THOUGHTS:
        for key in WORDS:
            yield from _words_in(value.get(key), depth + 1)


def omissions(counts: Counts, thing: str) -> Iterator[Noted]:
    """Return a note for each type of thing that was left out."""
    by_name = groupby(sorted(counts), key=lambda each: each[0])
    for name, kinds in by_name:
        subtypes = {subtype: counts[name, subtype] for _, subtype in kinds}
        yield _omission(f"{name} {thing}", subtypes)


def _omission(thing: str, subtypes: Mapping[str, int]) -> Noted:
    details = [f"{count} {subtype}" for subtype, count in subtypes.items() if subtype]
    told = f" ({', '.join(details)})" if details else ""
    return left_out(sum(subtypes.values()), thing, told)


def left_out(count: int, thing: str, why: str) -> Noted:
    """Return a note that so many of a thing were left out, and why."""
    return Noted(None, f"left out {format_count(count, thing)}{why}", left_out=count, thing=thing)


def iso_milliseconds(timestamp: object) -> int | None:
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


def text_of(value: object) -> str | None:
    """Return a text that says something, None for anything else."""
    return value if isinstance(value, str) and value else None


def first_text(values: Iterable[object]) -> str | None:
    """Return the first value that is a text and says something, None where there is none."""
    return next(filter(None, map(text_of, values)), None)


def fields_of(value: object) -> Fields:
    """Return an object's fields; of anything else, none."""
    return value if isinstance(value, dict) else {}


def within(value: object, *keys: str) -> Any:
    """Return what objects hold, one in the other, under some keys; None where they do not."""
    for key in keys:
        value = fields_of(value).get(key)
    return value


def objects_of(value: object) -> list[Fields]:
    """Return the objects in a list that have any fields; of anything else, none."""
    return list(filter(None, map(fields_of, list_of(value))))


def call_of(name: object, tool: object, arguments: object) -> Fields:
    """Return a call of a tool; arguments that are no text, as JSON."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False)
    function = {"name": text_of(tool) or "", "arguments": arguments}
    return {"id": text_of(name) or "", "type": "function", "function": function}


def milliseconds_of(seconds: object) -> int | None:
    """Return a moment in seconds since the epoch as milliseconds, None for anything else."""
    if not isinstance(seconds, int | float) or not 0 < seconds < 2**40:
        return None
    return round(seconds * 1000)


def joined(texts: Iterable[object], between: str = "\n\n") -> str:
    """Return the texts that say something as one."""
    return between.join(filter(None, map(text_of, texts)))


def list_of(value: object) -> list[Any]:
    """Return a list's items; of anything else, none."""
    return value if isinstance(value, list) else []


def text_part(text: str) -> Fields:
    """Return a text as a content part."""
    return {"type": "text", "text": text}


def without(fields: Fields, *keys: str) -> Fields:
    """Return an object without some of its keys."""
    return {key: held for key, held in fields.items() if key not in keys}


def telling(fields: Fields) -> Fields:
    """Return an object without the keys that say nothing."""
    nothing: tuple[object, ...] = (None, "", [], {})
    return {key: held for key, held in fields.items() if held not in nothing}


def title_lines(texts: Iterable[object]) -> tuple[str, ...]:
    """Return the texts that say something as titles."""
    lines = (title_line(text_of(text) or "") for text in texts)
    return tuple(filter(None, lines))


def title_in(texts: Iterable[object]) -> str | None:
    """Return the first text that says something as a title, None where none does."""
    return first_text(title_lines(texts))


def simplest_content(parts: list[Any]) -> object:
    """Return content parts in their simplest form: None for none, a lone text, else the parts."""
    if len(parts) == 1 and _is_plain(parts[0]):
        return parts[0]["text"]
    return parts or None


def _is_plain(part: Any) -> bool:
    return part.keys() == {"type", "text"} and isinstance(part["text"], str)
