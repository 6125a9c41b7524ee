"""The texts of messages and of their calls: read, cleaned and shortened.

A text of a message is not always by the person or tool that its role names. A program that runs a
model speaks to it as the user: of commands, reminders and skills. And a user who refuses a call
gives the reasons in the result of the call.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from .. import text as shorteners
from ..messages import UNKNOWN_TOOL, Message, extract_content_text, extract_part_text
from ..text import wrap_in_list
from ..tools import normalise_key

SYSTEM_ROLES = frozenset({"system", "developer"})
"""The roles of instructions, which no transcript shows and a view keeps unchanged."""
RESULT_ROLES = frozenset({"tool", "function"})
"""Roles of tool results."""

SUMMARY_ELLIPSIS = "..."

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def scrub_text(text: str) -> str:
    """Return a text that every engine, wire and terminal accepts.

    It has no lone surrogates, and no control characters except tab and line end.
    """
    if text.isprintable():
        return text  # the fast path: most names are
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _CONTROLS.sub("", text)


shorten_text = partial(shorteners.truncate, ellipsis=SUMMARY_ELLIPSIS)
cut_at_line_end = partial(shorteners.truncate, ellipsis=SUMMARY_ELLIPSIS, at_line_end=True)
flatten_to_line = partial(shorteners.truncate_to_line, ellipsis=SUMMARY_ELLIPSIS)
"""Summaries mark with three dots that something was left out."""


def count_fitting(lengths: Iterable[int], room: int) -> int:
    """Return how many of the first texts fit into the room together, by their lengths."""
    return sum(1 for _ in takewhile(lambda total: total <= room, accumulate(lengths)))


def extract_message_text(message: Message) -> str:
    """Return the text of a message's content; an object, as some tools give it, as compact JSON."""
    content = message.get("content")
    if isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str)
    return extract_content_text(content)


class GivenCall(NamedTuple):
    """A tool call of a message, whatever its shape there."""

    id: object
    name: str
    arguments: Any


def parse_calls(message: Message) -> Iterator[GivenCall]:
    """Yield the calls of a message."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            function = call.get("function")
            if not isinstance(function, dict):
                function = call  # some shapes have the name and the arguments beside the id
            yield GivenCall(call.get("id"), _read_tool_name(function), function.get("arguments"))


def index_calls(message: Message) -> dict[object, GivenCall]:
    """Return the calls of a message that a result can answer, by their ids."""
    return {call.id: call for call in parse_calls(message) if isinstance(call.id, str)}


def make_unknown_call(result: Message) -> GivenCall:
    """Return a call for a result that answers none, with the tool's name if the result has it."""
    return GivenCall(None, _read_tool_name(result), None)


def _read_tool_name(source: Mapping[str, Any]) -> str:
    """Return the name of the tool in a function or in a result."""
    name = source.get("name")
    return name if isinstance(name, str) and name else UNKNOWN_TOOL


def parse_json_container(text: object) -> Any:
    """Return the JSON object or list of a text, other values and texts unchanged."""
    if not isinstance(text, str):
        return text
    bare = text.strip(_JSON_SPACE)
    if bare[:1] not in ("{", "["):
        return text
    try:
        return shorteners.parse_json(bare)
    except (ValueError, RecursionError):
        return text


_JSON_SPACE = " \t\n\r"


_COMMAND_KEYS = (
    "command",
    "cmd",
    "commandline",
    "commands",
    "cmds",
    "script",
    "code",
    "input",
    "chars",
    "action",
)
_SHELL = re.compile(
    r"(?:.*[/\\])?(?:(?:ba|z|da|k|fi)?sh|pwsh|powershell|cmd)(?:\.exe)?", re.IGNORECASE | re.DOTALL
)
_SHELL_FLAG = re.compile(r"-\w*c|-command|/c", re.IGNORECASE)


def extract_command(arguments: object) -> str | None:
    """Return the command line in the arguments of a terminal tool; None where there is none.

    Arguments are an object or its JSON text, or the bare text of a tool that takes no JSON. A list
    is one command and its words, without a shell and its flag; under a plural name it is several
    commands.
    """
    return _find_command(parse_json_container(arguments), plural=False)


def _find_command(value: object, *, plural: bool) -> str | None:
    if isinstance(value, str):
        return None if value.lstrip()[:1] in ("", "{") else value.strip()
    if isinstance(value, list):
        words = [each for each in value if isinstance(each, str)]
        if plural or len(words) < len(value):
            commands = (_find_command(each, plural=False) for each in value)
            return "; ".join(filter(None, commands)) or None
        if len(words) > 2 and _SHELL.fullmatch(words[0]) and _SHELL_FLAG.fullmatch(words[-2]):
            return words[-1].strip() or None
        return shlex.join(words) or None
    if isinstance(value, dict):
        arguments = {normalise_key(key): each for key, each in value.items()}
        for key in _COMMAND_KEYS:
            command = _find_command(arguments.get(key), plural=key.endswith("s"))
            if command:
                return command
    return None


PROGRAM_TAGS = (
    "command-[a-z]+",
    "environment_context",
    "ide_[a-z_]+",
    "local-command-[a-z]+",
    "skill",
    "system-reminder",
    "system_warning",
    "task-notification",
    "turn_aborted",
    "user-prompt-submit-hook",
    "user_instructions",
    "user_shell_command",
)
"""Tags of texts by programs."""
PROGRAM_BEGINNINGS = (
    "Caveat: The messages below",
    "[Request interrupted",
    "[Image: ",
    "Base directory for this skill",
    "# AGENTS.md instructions",
    "This session is being continued",
    "Unknown skill: ",
    "Unknown slash command: ",
)
"""Beginnings of texts that are by a program as a whole."""
REJECTION_BEGINNINGS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "User rejected tool use",
)
"""Beginnings of the results of calls that the user refused."""
REASON_MARKERS = ("the user said:", "with the following reason:", "Reason:")
"""Texts before the user's own words in such a result."""

_TAGGED_TEXT = re.compile(rf"<({'|'.join(PROGRAM_TAGS)})(?: [^>\n]*)?>.*?</\1>", re.DOTALL)
_PROGRAM_BEGINNING = re.compile(rf"\s*(?:{'|'.join(map(re.escape, PROGRAM_BEGINNINGS))})")
_REJECTION = re.compile(rf"\s*(?:Error: )?(?:{'|'.join(map(re.escape, REJECTION_BEGINNINGS))})")
_REASON_MARKER = re.compile("|".join(map(re.escape, REASON_MARKERS)))


def extract_user_words(text: str) -> str:
    """Return the words of the person in a user's message; "" where a program wrote all of it."""
    words = strip_program_tags(text)
    return "" if _PROGRAM_BEGINNING.match(words) else words.strip()


def is_by_program(message: Message) -> bool:
    """Tell a message of a user that a program wrote, as far as it has any text."""
    texts = [*filter(None, map(extract_part_text, wrap_in_list(message.get("content"))))]
    return message.get("role") == "user" and bool(texts) and not any(map(extract_user_words, texts))


def strip_program_tags(text: str) -> str:
    """Return a text without the tags of programs and their contents."""
    return _TAGGED_TEXT.sub("", text) if "</" in text else text


def extract_rejection_reason(result: str) -> str:
    """Return the user's words in the result of a refused call; "" for any other result."""
    if not _REJECTION.match(result):
        return ""
    _, *words = _REASON_MARKER.split(result, maxsplit=1)
    return "".join(words).strip()
