"""What a tool result is, read off once when it is stored: facts, not verdicts.

Facts never change, so they are computed at append and stored in narrow rows. Whether a fact makes a result stale, or an
error, is judged by a policy when a view is built. Everything here is pure and total: any JSON value may come in,
nothing is raised. Nothing here knows databases, sessions, policies or clocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeGuard

from . import tool_kinds
from .messages import content_text, milliseconds, utf8_size
from .paths import UNSTORABLE, normalise_path
from .tool_kinds import DECIDED_BY, EXIT_KEYS, EXIT_SAID_FIRST, EXIT_SAID_LAST, FILE_WORDS, FOLDER_WORDS, LINE_WORDS

KINDS = tool_kinds.KINDS
TOOL_KINDS = tool_kinds.TOOL_KINDS


class Facts(NamedTuple):
    """The facts of one tool result; flags are 0 or 1, as columns hold them."""

    at: int | None
    """The message's own time in ms, None where unknown."""
    status: str | None
    exit_code: int | None
    has_stderr: int
    error_prefix: int
    looks_terminal: int
    length: int
    """Code points of the content's text; JSON text where it is neither text nor parts."""
    size: int
    """Bytes of the same in UTF-8."""
    paths_complete: int
    """0 where the call named something that could not be recognised; set by the caller from `call_paths`."""


class ToolPath(NamedTuple):
    """A file a call named, with the lines asked for, counted from 1.

    Both lines None: the whole file; only ``end_line`` None: to its end. ``contiguous`` 0: not all lines between were
    asked for, or which ones is unknown. Such a read covers no other for sure, and is covered only by all of its hull.
    """

    path: str
    start_line: int | None
    end_line: int | None
    contiguous: int
    mentions: int


class Paths(NamedTuple):
    """The distinct files a call named, and whether that is all it named."""

    paths: tuple[ToolPath, ...]
    complete: bool


_INTEGER_LIMIT = 2**63
_TERMINAL_MARK = re.compile('"(?:stdout|stderr|exitCode)":')
_NEAR = 300  # characters from either end in which programs say the exit code


def result_facts(message: Mapping[str, Any], text_size: int | None = None) -> Facts:
    """Read the facts off a tool result (S0.21-S0.25, S1.36, A0.3, A0.6, A0.9).

    The time is any finite number that 63 bits hold, floored. The exit code comes from the fields of JSON content or of
    its ``data`` (S4.18), else from the words of the programs in use, near either end of the text. A ``status`` of
    ``error`` in it counts where the message has none of its own. Broken JSON is text like any other.
    ``text_size`` is how many bytes a content that is text has, where they were counted already.
    """
    text = _text(content := message.get("content"))
    bare = text.strip()
    fields = content if isinstance(content, dict) else _json_object(bare)
    stderr = next((found for source in _sources(fields) if (found := source.get("stderr"))), None)
    status = message.get("messageStatus")
    if status is None and fields.get("status") == "error":
        status = "error"
    return Facts(
        milliseconds(message.get("timestamp")),
        status if _is_text(status) else None,
        exit_code_field(fields) if fields else exit_said(bare)[0],
        int(isinstance(stderr, str | list)),
        int(bare.startswith("Error:")),
        int(_TERMINAL_MARK.search(text) is not None),
        len(text),
        utf8_size(text) if text_size is None else text_size,
        1,
    )


def looks_terminal(content: object) -> bool:
    """Tell whether a content looks like the output of a command: any of three marks is in its text (S0.21-S0.23)."""
    return _TERMINAL_MARK.search(_text(content)) is not None


def answered_call_id(message: Mapping[str, Any]) -> str | None:
    """Return the id of the call that a result answers, or None where it names none.

    It is ``tool_call_id``, else the only element of ``tool_call_ids``, as SWE-agent writes it.
    """
    call_id, call_ids = message.get("tool_call_id"), message.get("tool_call_ids")
    if not call_id and isinstance(call_ids, list) and len(call_ids) == 1:
        call_id = call_ids[0]
    return call_id if call_id and _is_text(call_id) else None


def kind_name(tool_name: str | None, arguments: object) -> str | None:
    """Return the name under which a call's kind is looked up; None where it has no name that can be stored.

    It is the tool's own, but ``name:argument`` where an argument makes it another kind of tool: `DECIDED_BY` says
    which argument, `TOOL_KINDS` holds the names.
    """
    if not _is_text(tool_name):
        return None
    argument = DECIDED_BY.get(tool_name)
    if argument is None:
        return tool_name
    said = _arguments(arguments).get(argument)
    decided = f"{tool_name}:{said}" if isinstance(said, str) else tool_name
    return decided if decided in TOOL_KINDS else tool_name


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if content is None or (isinstance(content, list) and _are_parts(content)):
        return content_text(content)
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return ""


def _are_parts(content: list[Any]) -> bool:
    """Tell a part list, which may be all pictures, from a list that is itself the result."""
    return not content or any(isinstance(part, dict) and ("type" in part or "text" in part) for part in content)


def _json_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a text is, {} where it is none."""
    if text[:1] != "{" or text[-1:] != "}":
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _integer(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and -_INTEGER_LIMIT <= value < _INTEGER_LIMIT else None


def exit_code_field(fields: Mapping[str, Any]) -> int | None:
    """Return the exit code that a JSON result has in a field of its own."""
    codes = (_integer(source.get(key)) for source in _sources(fields) for key in EXIT_KEYS)
    return next((code for code in codes if code is not None), None)


def _sources(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return where in a JSON result a command's outcome may stand."""
    return [fields, *(source for key in ("metadata", "data") if isinstance(source := fields.get(key), dict))]


def exit_said(bare: str) -> tuple[int | None, int]:
    """Return the exit code that a text says in the words of the programs in use, and where; None and 0 if none."""
    # Every wording but one has "exit" in it, in some spelling: most results say nothing and are done here.
    head, last = bare[:_NEAR], max(0, len(bare) - _NEAR)
    match = EXIT_SAID_FIRST.search(head) if "xit" in head or head[:1] == "<" else None
    if match is None and bare.find("xit", last) >= 0:
        *_, match = None, *EXIT_SAID_LAST.finditer(bare, last)
    return (int(match[match.lastindex or 0]), match.start(match.lastindex or 0)) if match else (None, 0)


def _is_text(value: object) -> TypeGuard[str]:
    """Tell whether a text column holds a value exactly."""
    return isinstance(value, str) and "\0" not in value and (value.isascii() or not UNSTORABLE.search(value))


_Lines = tuple[tuple[int, int | None], ...]
_WHOLE: _Lines = ((1, None),)
_UNKNOWN: _Lines = ()
_LAST_LINE = _INTEGER_LIMIT - 1
_LEVELS = 3  # files: [{path: {...}}] is as deep as any program goes
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.*\S)\s*$", re.MULTILINE)
_DIGITS = re.compile(r"-?[0-9]{1,18}")
_PAIR_TEXT = re.compile(r"[\s\[(]*([0-9]{1,18})\s*[-,:]\s*(-?[0-9]{1,18})[\s\])]*")


def call_paths(arguments: object, project_root: str | None = None, *, fold_case: bool = False) -> Paths:
    """Return the files that a call's arguments name, one entry per normalised path (S1.35, S1.42, A1.2, A1.4, A1.14).

    Arguments are an object or its JSON text, or a patch as ``apply_patch`` takes it. Keys count in any spelling
    (``filePath``, ``file_path``, ``FilePath``); folders only where no file is named. Empty and null paths are nothing
    (S1.32); an element of a list that is no path makes the result incomplete, as does a path of over 2,000 bytes. Lines
    that make no sense are unknown, never "all". Offsets count lines from 1, as most programs do; for one that counts
    from 0 the range is a line early.
    """
    found: dict[str, list[_Lines]] = {}
    complete = True
    fields = _arguments(arguments) or ({"patch": arguments} if isinstance(arguments, str) else {})
    for path, lines in _named(fields, _WHOLE, _LEVELS):
        key = normalise_path(path, project_root, fold_case=fold_case) if path else ""
        if key:
            found.setdefault(key, []).append(lines)
        else:
            complete = False
    return Paths(tuple(_tool_path(key, mentions) for key, mentions in found.items()), complete)


def _arguments(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):
        return _json_object(arguments.strip())
    return arguments if isinstance(arguments, dict) else {}


def _named(fields: dict[str, Any], lines: _Lines, levels: int) -> Iterator[tuple[str | None, _Lines]]:
    """Yield each path that an object names, with its lines; None for one that could not be recognised."""
    given = [(_word(key), value) for key, value in fields.items() if value is not None and value != ""]
    lines = _lines(given, lines)
    for words in (FILE_WORDS, FOLDER_WORDS):
        values = [value for word, value in given if word in words]
        for value in values:
            yield from _elements(value, lines, levels)
        if values:
            return
    yield from ((path, _UNKNOWN) for _, value in given for path in _patched(value))


def _patched(value: object) -> Iterator[str]:
    """Yield the files that a patch in the form of ``apply_patch`` names; it may stand in a command, or in its words."""
    for text in value if isinstance(value, list) else (value,):
        if isinstance(text, str) and "*** Begin Patch" in text:
            yield from (found[1] for found in _PATCHED.finditer(text))


def _elements(value: object, lines: _Lines, levels: int) -> Iterator[tuple[str | None, _Lines]]:
    for element in value if isinstance(value, list) else (value,):
        if isinstance(element, dict) and levels:
            yield from list(_named(element, lines, levels - 1)) or [(None, lines)]
        else:
            yield element if isinstance(element, str) else None, lines


@lru_cache(maxsize=1024)
def _word(key: str) -> str:
    """Return a key without the accidents of its spelling."""
    return key.replace("_", "").replace("-", "").lower()


def _lines(given: Sequence[tuple[str, Any]], inherited: _Lines) -> _Lines:
    """Return the lines that an object asks for, those of the object around it where it says nothing."""
    words = [(LINE_WORDS[word], value) for word, value in given if word in LINE_WORDS]
    if not words:
        return inherited
    meant = dict(words)
    if len(meant) < len(words):
        return _UNKNOWN
    if meant.get("whole") is True:
        return _WHOLE
    said = meant.keys() - {"whole"}
    if said == {"pair"}:
        return _pairs(meant["pair"])
    if said and said <= {"start", "end", "count"} and not {"end", "count"} <= said:
        return _span(meant.get("start"), meant.get("end"), meant.get("count"))
    return _UNKNOWN


def _pairs(value: object) -> _Lines:
    """Return the lines of [1, 50], "1-50" or a list of such; unknown if any of them is."""
    pair = _pair(value)
    if pair or not isinstance(value, list):
        return pair
    pairs = [_pair(each) for each in value]
    return tuple(chain.from_iterable(pairs)) if all(pairs) else _UNKNOWN


def _pair(value: object) -> _Lines:
    if isinstance(value, str) and (match := _PAIR_TEXT.fullmatch(value)):
        return _span(match[1], match[2], None)
    if isinstance(value, dict):
        ends = {LINE_WORDS.get(_word(key)): each for key, each in value.items()}
        value = [ends.get("start"), ends.get("end")]
    if isinstance(value, list) and len(value) == 2 and value[0] is not None:
        return _span(value[0], value[1], None)
    return _UNKNOWN


def _span(start: object, end: object, count: object) -> _Lines:
    """Return one range: -1 ends at the end of the file, 0 starts at line 1, other nonsense is unknown."""
    first = 1 if start is None else _number(start)
    if first is None or first < 0:
        return _UNKNOWN
    first = max(first, 1)
    if count is not None:
        lines = _number(count)
        return ((first, first + lines - 1),) if lines and lines > 0 else _UNKNOWN
    last = -1 if end is None else _number(end)
    if last == -1:
        return ((first, None),)
    return ((first, last),) if last is not None and last >= first else _UNKNOWN


def _number(value: object) -> int | None:
    if isinstance(value, str):
        value = int(value) if _DIGITS.fullmatch(value) else None
    number = _integer(value)
    return number if number is not None and abs(number) < 2**62 else None  # so that a sum of two is storable


def _tool_path(path: str, mentions: list[_Lines]) -> ToolPath:
    """Return one file with the hull of all lines asked for."""
    count = len(mentions)
    if _WHOLE in mentions:
        return ToolPath(path, None, None, 1, count)
    if _UNKNOWN in mentions:
        return ToolPath(path, None, None, 0, count)
    ranges = sorted((first, _LAST_LINE if last is None else last) for lines in mentions for first, last in lines)
    start, reached = ranges[0]
    contiguous = 1
    for first, last in ranges:
        if first > reached + 1:
            contiguous = 0
        reached = max(reached, last)
    end = None if reached == _LAST_LINE else reached
    return ToolPath(path, None if start == 1 and end is None else start, end, contiguous, count)
