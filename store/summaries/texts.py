"""Texts made shorter and cleaner, and the texts that messages and their calls hold."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from ..messages import Message, content_text

SYSTEM_ROLES = frozenset({"system", "developer"})
"""Roles that no transcript shows (S2.22): instructions, which a view keeps themselves."""
RESULT_ROLES = frozenset({"tool", "function"})
"""Roles of tool results."""

ELLIPSIS = "..."
UNKNOWN_TOOL = "unknown_tool"

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def scrubbed(text: str) -> str:
    """Return a text that every engine, wire and terminal takes: no lone surrogate, no control but tab and line end."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _CONTROLS.sub("", text)


def cut(text: str, max_chars: int) -> str:
    """Shorten a text to so many code points, ``...`` included; at a line end where its last half has one (A3.6)."""
    if len(text) <= max_chars:
        return text
    room = max(max_chars - len(ELLIPSIS), 0)
    line_end = text.rfind("\n", 0, room + 1)
    return shortened(text, line_end + 1 + len(ELLIPSIS) if room // 2 <= line_end < room else max_chars)


def shortened(text: str, max_chars: int) -> str:
    """Return the beginning of a text, ``...`` included in its limit (S2.23, A2.6)."""
    return text if len(text) <= max_chars else (text[: max(max_chars - len(ELLIPSIS), 0)] + ELLIPSIS)[:max_chars]


def shortened_inside(text: str, max_chars: int) -> str:
    """Return both ends of a text with ``...`` on a line of its own between them."""
    gap = f"\n{ELLIPSIS}\n"
    if len(text) <= max_chars or max_chars < 4 * len(gap):
        return shortened(text, max_chars)
    tail = (max_chars - len(gap)) // 2
    return text[: max_chars - len(gap) - tail] + gap + text[-tail:]


def one_line(text: str, max_chars: int) -> str:
    """Return a text in one line, shortened."""
    line = " ".join(text[: 4 * max_chars].split())
    return shortened(line + ELLIPSIS if len(text) > 4 * max_chars else line, max_chars)


def message_content(message: Message) -> str:
    """Return the text of a message's content; an object, as some tools give it, as compact JSON."""
    content = message.get("content")
    if isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str)
    return content_text(content)


class Call(NamedTuple):
    """A tool call, whatever shape it was given in."""

    id: object
    name: str
    arguments: Any


def calls_of(message: Message) -> Iterator[Call]:
    """Yield the calls of a message."""
    given = message.get("tool_calls")
    for call in given if isinstance(given, list) else ():
        if isinstance(call, dict):
            function = call["function"] if isinstance(call.get("function"), dict) else call
            name = function.get("name")
            named = name if isinstance(name, str) and name else UNKNOWN_TOOL
            yield Call(call.get("id"), named, function.get("arguments"))


def json_value(text: object) -> Any:
    """Return the JSON value that a text is, other values and texts as they are."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_COMMAND_WORDS = ("command", "cmd", "commandline", "commands", "cmds", "script", "code", "input", "chars", "action")
_SHELL = re.compile(r"(?:.*[/\\])?(?:(?:ba|z|da|k|fi)?sh|pwsh|powershell|cmd)(?:\.exe)?", re.IGNORECASE | re.DOTALL)
_SHELL_FLAG = re.compile(r"-\w*c|-command|/c", re.IGNORECASE)


def command_of(arguments: object) -> str | None:
    """Return the command line in the arguments of a terminal tool; None where there is none.

    Arguments are an object or its JSON text, or the bare text of a tool that takes no JSON. A list is one command and
    its words, of which a shell and its flag are left away; under a plural name it is several commands.
    """
    return _command(json_value(arguments), plural=False)


def _command(value: object, *, plural: bool) -> str | None:
    if isinstance(value, str):
        return None if value.lstrip()[:1] in ("", "{") else value.strip()
    if isinstance(value, list):
        return _command_of_list(value, plural=plural)
    if not isinstance(value, dict):
        return None
    given = {_word(key): each for key, each in value.items()}
    for word in _COMMAND_WORDS:
        command = _command(given[word], plural=word.endswith("s")) if word in given else None
        if command:
            return command
    return None


@lru_cache(maxsize=256)
def _word(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _command_of_list(values: list[Any], *, plural: bool) -> str | None:
    words = [each for each in values if isinstance(each, str)]
    if plural or len(words) < len(values):
        return "; ".join(filter(None, (_command(each, plural=False) for each in values))) or None
    if len(words) > 2 and _SHELL.fullmatch(words[0]) and _SHELL_FLAG.fullmatch(words[-2]):
        return words[-1].strip() or None
    return shlex.join(words) or None
