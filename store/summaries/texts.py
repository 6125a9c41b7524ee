"""Texts made shorter and cleaner, and the texts that messages and their calls hold."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from .. import text as shorteners
from ..messages import UNKNOWN_TOOL, Message, content_text
from ..tools import bare_word

SYSTEM_ROLES = frozenset({"system", "developer"})
"""Roles that no transcript shows: instructions, which a view keeps as they are."""
RESULT_ROLES = frozenset({"tool", "function"})
"""Roles of tool results."""

ELLIPSIS = "..."

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def scrub_text(text: str) -> str:
    """Return a text that every engine, wire and terminal takes.

    It has no lone surrogate, and no control characters but tab and line end.
    """
    if text.isprintable():
        return text  # most names are: seen at once
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _CONTROLS.sub("", text)


shorten = partial(shorteners.shortened, ellipsis=ELLIPSIS)
cut_at_line_end = partial(shorteners.shortened, ellipsis=ELLIPSIS, at_line_end=True)
flatten_to_line = partial(shorteners.one_line, ellipsis=ELLIPSIS)
"""Summaries say with three dots that something was left out, ``cut_at_line_end`` at a line end."""


def count_fitting(lengths: Iterable[int], room: int) -> int:
    """Return how many of the first texts have room together, by their lengths."""
    sums = accumulate(lengths)
    return sum(1 for _ in takewhile(lambda taken: taken <= room, sums))


_compact_json = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), default=str)


def extract_message_text(message: Message) -> str:
    """Return the text of a message's content; an object, as some tools give it, as compact JSON."""
    content = message.get("content")
    if isinstance(content, dict):
        return _compact_json(content)
    return content_text(content)


class GivenCall(NamedTuple):
    """A tool call, whatever shape it was given in."""

    id: object
    name: str
    arguments: Any


def parse_calls(message: Message) -> Iterator[GivenCall]:
    """Yield the calls of a message."""
    given = message.get("tool_calls")
    for call in given if isinstance(given, list) else ():
        if isinstance(call, dict):
            yield _given_call(call)


def index_calls(message: Message) -> dict[object, GivenCall]:
    """Return the calls of a message that a result can answer, by their ids."""
    return {call.id: call for call in parse_calls(message) if isinstance(call.id, str)}


def _given_call(call: dict[str, Any]) -> GivenCall:
    function = _function(call)
    return GivenCall(call.get("id"), tool_name(function), function.get("arguments"))


def _function(call: dict[str, Any]) -> dict[str, Any]:
    """Return what holds a call's name and arguments: in some shapes it is the call itself."""
    function = call.get("function")
    return function if isinstance(function, dict) else call


def tool_name(given: Mapping[str, Any]) -> str:
    """Return the name that a function or a result tells of its tool."""
    name = given.get("name")
    if not isinstance(name, str) or not name:
        return UNKNOWN_TOOL
    return name


def parse_json(text: object) -> Any:
    """Return the JSON object or list that a text is, other values and texts as they are."""
    if not isinstance(text, str):
        return text
    bare = text.strip(_SPACE)
    if bare[:1] not in ("{", "["):
        return text
    try:
        return shorteners.value_of(bare)
    except (ValueError, RecursionError):
        return text


_SPACE = " \t\n\r"
"""What may stand around JSON."""


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
    return _command(parse_json(arguments), plural=False)


def _command(value: object, *, plural: bool) -> str | None:
    if isinstance(value, str):
        return None if value.lstrip()[:1] in ("", "{") else value.strip()
    if isinstance(value, list):
        return _command_of_list(value, plural=plural)
    if not isinstance(value, dict):
        return None
    given = {bare_word(key): each for key, each in value.items()}
    for key in _COMMAND_KEYS:
        command = _command(given.get(key), plural=key.endswith("s"))
        if command:
            return command
    return None


def _command_of_list(values: list[Any], *, plural: bool) -> str | None:
    words = [each for each in values if isinstance(each, str)]
    if plural or len(words) < len(values):
        commands = (_command(each, plural=False) for each in values)
        return "; ".join(filter(None, commands)) or None
    if _is_shell_with_script(words):
        return words[-1].strip() or None
    return shlex.join(words) or None


def _is_shell_with_script(words: list[str]) -> bool:
    if len(words) <= 2 or not _SHELL.fullmatch(words[0]):
        return False
    return _SHELL_FLAG.fullmatch(words[-2]) is not None
