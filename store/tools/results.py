"""The facts of a tool result, read once when it is stored: facts, not verdicts.

Facts never change, so they are computed at append and stored in narrow rows. A policy decides, when
a view is built, whether a fact makes a result stale or an error. Everything here is pure and total:
any JSON value is accepted, nothing is raised. Nothing here knows databases, sessions, policies or
clocks.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from ..messages import Message, content_text, utf8_size
from ..text import Fields, as_object, as_plain_str, is_text
from .failure import Ended
from .kinds import DECIDED_BY, EXIT_KEYS, EXIT_SAID_FIRST, EXIT_SAID_LAST, TOOL_KINDS
from .line_ranges import integer


class Facts(NamedTuple):
    """The facts of one tool result; flags are 0 or 1, as in the columns."""

    at: int | None
    """The message's own time in ms, None if unknown."""
    status: str | None
    exit_code: int | None
    has_stderr: int
    error_prefix: int
    looks_terminal: int
    length: int
    """Code points of the content's text; of its JSON text if it is neither text nor parts."""
    size: int
    """Bytes of the same in UTF-8."""


class ExitSaid(NamedTuple):
    """The exit code in a text, and its place; None and 0 if there is none."""

    code: int | None = None
    place: int = 0


ENVELOPE = frozenset(("status", "data", "text", "error", "stats", "context"))
"""The fields of the protocol."""

STATUSES = ("success", "partial", "error")

_NOTHING_SAID = ExitSaid()
_TERMINAL_MARK = re.compile('"(?:stdout|stderr|exitCode)":')
"""The look of the content that a tool returns for a command."""

NEAR = 300
"""Characters at either end of a text in which programs print the exit code."""


def result_facts(message: Message, text_size: int | None = None, *, at: int | None = None) -> Facts:
    """Return the facts of a tool result that was said ``at`` a moment (ms).

    The exit code comes from the fields of JSON content or of its ``data``, otherwise from the words
    of known programs near either end of the text. A ``status`` of ``error`` in a result of the
    protocol counts if the message has none of its own. Broken JSON is text like any other.
    ``text_size`` is the number of bytes of a text content, if they were counted already.
    """
    text = _text(message.get("content"))
    size = utf8_size(text) if text_size is None else text_size
    return Facts(at, *_ended(message, text), _looks_terminal(text), len(text), size)


def how_it_ended(message: Message, fields: Fields | None = None) -> Ended:
    """Return the facts of a tool result that tell of a failure.

    ``fields`` are those of a text that is a JSON object, {} for any other (None: not read yet).
    """
    content = message.get("content")
    if fields is None or not isinstance(content, str):
        return _ended(message, _text(content))
    return _of_fields(message, content.strip(), fields)


def looks_terminal(message: Message) -> bool:
    """Tell whether a tool result looks like the output of a command."""
    return bool(_looks_terminal(_text(message.get("content"))))


def _looks_terminal(text: str) -> int:
    return int('"' in text and _TERMINAL_MARK.search(text) is not None)


def _ended(message: Message, text: str) -> Ended:
    content = message.get("content")
    bare = text.strip()
    fields = as_object(content if isinstance(content, dict) else bare)
    return _of_fields(message, bare, fields)


def _of_fields(message: Message, bare: str, fields: Fields) -> Ended:
    return Ended(
        status=_status(message, fields),
        exit_code=exit_code_field(fields) if fields else exit_said(bare).code,
        has_stderr=int(bool(fields) and _has_stderr(fields)),
        error_prefix=int(bare.lstrip("\ufeff").startswith("Error:")),
    )


def is_protocol(value: Fields) -> bool:
    """Tell a result of the protocol from any other JSON object."""
    return value.get("status") in STATUSES and not ENVELOPE.isdisjoint(value.keys() - {"status"})


def answered_call_id(message: Message) -> str | None:
    """Return the id of the call that a result answers, or None if it names none.

    It is ``tool_call_id``, otherwise the only element of ``tool_call_ids``, as SWE-agent writes it.
    """
    call_id = message.get("tool_call_id") or _only_item(message.get("tool_call_ids"))
    return as_plain_str(call_id) if call_id and is_text(call_id) else None


def _only_item(value: object) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else None


def kind_name(tool_name: str | None, arguments: object) -> str | None:
    """Return the name under which a call's kind is looked up; None if none can be stored.

    It is the tool's own, or ``name:argument`` if an argument changes the kind of the tool:
    `DECIDED_BY` names the argument, `TOOL_KINDS` holds the names.
    """
    if not is_text(tool_name):
        return None
    if tool_name not in DECIDED_BY:
        return tool_name
    said = as_object(arguments).get(DECIDED_BY[tool_name])
    decided = f"{tool_name}:{said}"
    if isinstance(said, str) and decided in TOOL_KINDS:
        return decided
    return tool_name


def exit_code_field(fields: Fields) -> int | None:
    """Return the exit code that a JSON result has in a field of its own."""
    for source in _sources(fields):
        for key in EXIT_KEYS:
            code = integer(source.get(key))
            if code is not None:
                return code
    return None


def exit_said(bare: str) -> ExitSaid:
    """Return the exit code in a text, in the words of known programs, and its place."""
    head = bare[:NEAR]
    match = (
        EXIT_SAID_FIRST.search(head) if "xit" in head or head[:1] == "<" else None
    ) or _said_last(bare)
    if match is None:
        return _NOTHING_SAID
    group = match.lastindex or 0
    return ExitSaid(int(match[group]), match.start(group))


# All wordings except one contain "exit", in some spelling: most results contain none and are
# finished here, before any expression is tried.


def _said_last(bare: str) -> re.Match[str] | None:
    last = max(0, len(bare) - NEAR)
    if bare.find("xit", last) < 0:
        return None
    *_, match = None, *EXIT_SAID_LAST.finditer(bare, last)
    return match


def _status(message: Message, fields: Fields) -> str | None:
    """Return the message's own status, otherwise ``error`` if its content says so."""
    status = message.get("messageStatus")
    if status is None and fields.get("status") == "error" and is_protocol(fields):
        return "error"
    return status if is_text(status) else None


def _has_stderr(fields: Fields) -> bool:
    said = (source.get("stderr") for source in _sources(fields))
    return isinstance(next(filter(None, said), None), str | list)


def _sources(fields: Fields) -> list[Fields]:
    """Return the places in a JSON result that may hold a command's outcome."""
    inner = (fields.get("metadata"), fields.get("data"))
    return [fields, *(source for source in inner if isinstance(source, dict))]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if content is None or (
        isinstance(content, list)
        and (
            not content
            or any(
                isinstance(part, dict) and ("type" in part or "text" in part) for part in content
            )
        )
    ):
        return content_text(content)
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return ""
