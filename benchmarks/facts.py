"""What must be told of hidden messages.

Files, commands and errors, found in the raw messages without the store.

The same rules in other words, so that neither side's mistake hides the other's: names of tools and
arguments are those of the recorded transcripts, paths are Python's, the text of a view is read as a
person reads it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

Message = dict[str, Any]

COMMANDS = {"exec_command": "cmd", "write_stdin": "chars"} | dict.fromkeys(
    ("Bash", "bash", "execute_bash", "terminal-execute"), "command"
)
"""Tools that run commands, and the argument that holds one."""
PATHS = ("file_path", "filePath", "notebook_path", "path")
"""Arguments that name a file or a folder."""
PATCH = "*** Begin Patch"
"""How a patch begins that names its files in lines of their own."""
HEADINGS = {
    "Files touched:": "file",
    "Commands run:": "command",
    "Errors met:": "error",
    "涉及的文件：": "file",
    "执行的命令：": "command",
    "遇到的错误：": "error",
}
"""The headings in a view under which each kind of fact stands, in English and in Chinese."""

REFUSED = ("refused by the user: ", "被用户拒绝：")
"""What stands before the words of a user who refused a call, in either language."""

SAYS_ERROR = (
    "error",
    "fail",
    "exception",
    "traceback",
    "fatal",
    "panic",
    "denied",
    "abort",
    "no such",
    "not found",
)
"""What a line says, in whatever case, that tells of an error."""
ERROR_START = 200
"""Code points of an error that are to be told."""
COMPARED = 150
"""Code points in which a text that may be shortened is compared."""
NOTE = 130
"""Code points set aside for headings and for what is said of what is left out."""

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REFUSED = re.compile(
    r"(?:Error: )?The user doesn't want to .*?(?:said|reason): ?(.+)",
    re.DOTALL,
)
"""What a program makes of a call that the user refused, with the user's own words behind it."""
_EXIT = re.compile(
    r"\A(?:Error: )?Exit code:? (-?\d+)\b|^Process exited with code (-?\d+)$", re.MULTILINE
)


class Fact(NamedTuple):
    """A ``file`` touched, a ``command`` run or an ``error`` met.

    ``exit_code`` where a command's result tells it.
    """

    kind: str
    text: str
    exit_code: int | None = None


def facts(messages: Iterable[Message], root: str | None) -> list[Fact]:
    """Return the distinct facts of messages, each as it was last, the newest last."""
    found: dict[tuple[str, str], Fact] = {}
    for fact in _met(messages, root):
        found.pop(fact[:2], None)
        found[fact[:2]] = fact
    return list(found.values())


def due(known: Sequence[Fact], budget: int) -> list[Fact]:
    """Return the facts that a budget of code points surely has room for.

    The newest of each kind, round by round.
    """
    rounds: list[list[Fact]] = []
    ranks = {kind: count() for kind in HEADINGS.values()}
    for fact in reversed(known):
        rank = next(ranks[fact.kind])
        rounds += [[]] if rank == len(rounds) else []
        rounds[rank].append(fact)
    surely: list[Fact] = []
    room = budget - NOTE
    for each in rounds:
        room -= sum(_size(fact, budget) for fact in each)
        if room < 0:
            break
        surely += each
    return surely


def told(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return what the summaries of a view tell.

    Each item under one of the headings, with its kind, in one line.
    """
    items: list[tuple[str, str]] = []
    for text in texts:
        kind = None
        for line in text.split("\n"):
            if line in HEADINGS:
                kind = HEADINGS[line]
            elif kind and line.startswith("- "):
                items.append((kind, line[2:]))
            elif kind and items and line.startswith("  "):
                items[-1] = (kind, f"{items[-1][1]} {line[2:]}")
            else:
                kind = None
    return [(kind, _plain(text)) for kind, text in items]


def is_told(fact: Fact, items: Iterable[tuple[str, str]]) -> bool:
    """Tell whether a fact is among what a view tells.

    A path whole, a command with its exit code up to what it is fed, an error's start.
    """
    text = _plain(fact.text)
    same_kind = (item for kind, item in items if kind == fact.kind)
    if fact.kind == "file":
        return any(item == text or item.startswith(f"{text} (") for item in same_kind)
    code = fact.exit_code
    ending = "" if code is None else (f"(exit {code})", f"(退出码 {code})")
    text = _plain(fact.text.partition("<<")[0])
    refused = (text.replace(REFUSED[0], sign, 1) for sign in REFUSED)
    begins = tuple(each[:COMPARED] for each in refused)
    return any(item.startswith(begins) and item.endswith(ending) for item in same_kind)


def _met(messages: Iterable[Message], root: str | None) -> Iterator[Fact]:
    """Yield what the answered calls of messages did, in the order of their answers."""
    waiting: dict[str, tuple[str, Message]] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call.get("function", call)
            waiting[str(call.get("id"))] = (
                function.get("name", ""),
                _object(function.get("arguments")),
            )
        if message.get("role") == "tool":
            yield from _of_result(
                message, *waiting.pop(str(message.get("tool_call_id")), ("", {})), root
            )


def _of_result(message: Message, name: str, arguments: Message, root: str | None) -> Iterator[Fact]:
    text = _text(message.get("content")).strip()
    exit_code = _exit_code(text) if name in COMMANDS else None
    yield from (
        Fact("file", path) for path in sorted(_path(each, root) for each in _paths(arguments))
    )
    command = arguments.get(COMMANDS.get(name, ""))
    if isinstance(command, str) and command.strip():
        yield Fact("command", command.strip(), exit_code)
    said = "error" in (message.get("messageStatus"), _object(text).get("status"))
    if said or text.startswith("Error:") or exit_code:
        yield Fact("error", _error(text))


def _error(text: str) -> str:
    """Return what is to be told of an error.

    All of a short one, else the first line that says it and the last.

    Of a call that the user refused it is what the user said. Of JSON it is looked for where it has
    its place; the words of a program before an output are none of it.
    """
    refused = _REFUSED.match(text)
    if refused:
        return f"{REFUSED[0]}{refused[1].strip()}"
    ends, text = _reason(text)
    if (
        text.startswith(("Command: ", "Chunk ID: ", "Exit code: ", "Wall time: "))
        and "\nOutput:\n" in text
    ):
        text = text.split("\nOutput:\n", 1)[1].strip() or text
    elif re.match(r"(Error: )?Exit code -?\d+\n", text):
        text = text.split("\n", 1)[1].strip()
    lines = [
        line.strip()
        for line in text.split("\n")
        if any(word in line.lower() for word in SAYS_ERROR)
    ]
    lines = [
        line
        for line in dict.fromkeys(lines)
        if line.rstrip(":") != "Traceback (most recent call last)"
    ]
    if len(text) <= ERROR_START or not lines:
        return text[-ERROR_START:] if ends else text[:ERROR_START]
    if len(lines) == 1:
        return lines[0][:ERROR_START]
    told = [lines[0][: ERROR_START // 2]]
    fits = [
        count
        for count in range(len(lines))
        if len("\n".join(told + lines[len(lines) - count :])) <= ERROR_START
    ]
    return "\n".join(told + lines[len(lines) - fits[-1] :])


def _reason(text: str) -> tuple[bool, str]:
    """Return the text of a JSON result that says why it is an error; whether its end says more."""
    fields = _object(text)
    error, data = fields.get("error"), fields.get("data")
    if isinstance(error, dict):
        return False, f"{error.get('code')}: {error.get('message')}"
    ran = data if isinstance(data, dict) else fields
    said = ((0, error), (1, ran.get("stderr")), (0, fields.get("message")), (1, ran.get("stdout")))
    found = (
        (bool(ends), each.strip()) for ends, each in said if isinstance(each, str) and each.strip()
    )
    return next(found, (False, text))


def _object(arguments: object) -> Message:
    """Return the arguments of a call by their names; a tool that takes no JSON is given a text."""
    try:
        value = (
            json.loads(arguments)
            if isinstance(arguments, str) and arguments.startswith("{")
            else arguments
        )
    except ValueError:
        value = arguments
    return value if isinstance(value, dict) else {"text": value}


def _paths(arguments: Message) -> Iterator[str]:
    """Yield the files that arguments name, else those that a patch among them changes."""
    given = [arguments[key] for key in PATHS if isinstance(arguments.get(key), str)]
    named = [path for path in given if path and not _is_folder(path, arguments)]
    patches = [text for text in arguments.values() if isinstance(text, str) and PATCH in text]
    yield from named or (
        line.split(": ", 1)[1]
        for text in patches
        for line in text.splitlines()
        if _names_file(line)
    )


def _is_folder(path: str, arguments: Message) -> bool:
    """Tell whether a path without an ending is where a tool searched, or what it listed."""
    looks_into = "pattern" in arguments or arguments.keys() == {"path"}
    return looks_into and not re.search(r"\.[^\W_]+\Z", path)


def _names_file(line: str) -> bool:
    return line.startswith(
        ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    )


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part.get("type") == "text")
    return content if isinstance(content, str) else ""


def _exit_code(text: str) -> int | None:
    if text.startswith("{") and text.endswith("}"):
        return _object(text).get("exitCode")
    match = _EXIT.search(text[:300])
    return int(match[1] or match[2]) if match else None


def _path(path: str, root: str | None) -> str:
    """Return a path as the root sees it, if it lies below; with Unix's separators."""
    normal, below = (posixpath.normpath(each.replace("\\", "/")) for each in (path, root or ""))
    if below == normal:
        return "."
    return normal.removeprefix(below.rstrip("/") + "/") if root else normal


def _plain(text: str) -> str:
    return " ".join(_CONTROLS.sub("", text).split())


def _size(fact: Fact, budget: int) -> int:
    """Return at most how many code points a fact takes.

    Its text, what stands around it, and longer line ends.
    """
    text = fact.text if fact.kind == "file" else fact.text[: budget // 4]
    return len(text) + 2 * text.count("\n") + len("-  (file_edit)\n") + len(str(fact.exit_code))
