"""The facts of a tool result, read once when it is stored: facts, not verdicts.

Facts never change, so they are computed at append and stored in narrow rows. A policy decides, when
a view is built, whether a fact makes a result stale or an error. Everything here is pure and total:
any JSON value is accepted, nothing is raised. Nothing here knows databases, sessions, policies or
clocks.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ..messages import Message, count_utf8_bytes, extract_content_text
from ..text import JsonFields, as_plain_str, is_text, parse_object
from .calls import parse_integer
from .failure import ResultEnd
from .kinds import DECIDING_ARGUMENTS, EXIT_CODE_AT_END, EXIT_CODE_AT_START, EXIT_KEYS, TOOL_KINDS


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


class ExitCode(NamedTuple):
    """The exit code in a text, and its place; None and 0 if there is none."""

    code: int | None = None
    place: int = 0


PROTOCOL_FIELDS = frozenset(("status", "data", "text", "error", "stats", "context"))
"""The fields of the protocol."""

PROTOCOL_STATUSES = ("success", "partial", "error")

_NO_EXIT_CODE = ExitCode()
_TERMINAL_MARK = re.compile('"(?:stdout|stderr|exitCode)":')
"""The look of the content that a tool returns for a command."""

EXIT_CODE_REACH = 300
"""Characters at either end of a text in which programs print the exit code."""


def compute_result_facts(
    message: Message, text_size: int | None = None, *, at: int | None = None
) -> Facts:
    """Return the facts of a tool result that was said ``at`` a moment (ms).

    The exit code comes from the fields of JSON content or of its ``data``, otherwise from the words
    of known programs near either end of the text. A ``status`` of ``error`` in a result of the
    protocol counts if the message has none of its own. Broken JSON is text like any other.
    ``text_size`` is the number of bytes of a text content, if they were counted already.
    """
    text = _render_result_text(message.get("content"))
    size = count_utf8_bytes(text) if text_size is None else text_size
    return Facts(at, *_parse_result_end(message, text), _has_terminal_mark(text), len(text), size)


def find_result_end(message: Message, fields: JsonFields | None = None) -> ResultEnd:
    """Return the facts of a tool result that tell of a failure.

    ``fields`` are those of a text that is a JSON object, {} for any other (None: not read yet).
    """
    content = message.get("content")
    if fields is None or not isinstance(content, str):
        return _parse_result_end(message, _render_result_text(content))
    return _build_result_end(message, content.strip(), fields)


def is_terminal_result(message: Message) -> bool:
    """Tell whether a tool result looks like the output of a command."""
    return bool(_has_terminal_mark(_render_result_text(message.get("content"))))


def _has_terminal_mark(text: str) -> int:
    return int('"' in text and _TERMINAL_MARK.search(text) is not None)


def _parse_result_end(message: Message, text: str) -> ResultEnd:
    content = message.get("content")
    bare = text.strip()
    fields = parse_object(content if isinstance(content, dict) else bare)
    return _build_result_end(message, bare, fields)


def _build_result_end(message: Message, bare: str, fields: JsonFields) -> ResultEnd:
    """Return the facts of a result from its text without space around it, and from its fields.

    The places of a JSON result that may hold a command's outcome are the fields themselves, their
    ``metadata`` and their ``data``. The message's own status counts before that of its content.
    """
    status = message.get("messageStatus")
    if status is None and fields.get("status") == "error" and is_protocol_result(fields):
        status = "error"
    shown = status if is_text(status) else None
    error_prefix = int(bare.lstrip("\ufeff").startswith("Error:"))
    if not fields:
        return ResultEnd(shown, find_exit_code(bare).code, 0, error_prefix)
    inner = (fields.get("metadata"), fields.get("data"))
    sources = [fields, *(source for source in inner if isinstance(source, dict))]
    codes = (parse_integer(source.get(key)) for source in sources for key in EXIT_KEYS)
    code = next((code for code in codes if code is not None), None)
    stderrs = (source["stderr"] for source in sources if source.get("stderr"))
    has_stderr = int(isinstance(next(stderrs, None), str | list))
    return ResultEnd(shown, code, has_stderr, error_prefix)


def is_protocol_result(value: JsonFields) -> bool:
    """Tell a result of the protocol from any other JSON object."""
    return value.get("status") in PROTOCOL_STATUSES and not PROTOCOL_FIELDS.isdisjoint(
        value.keys() - {"status"}
    )


def find_answered_call_id(message: Message) -> str | None:
    """Return the id of the call that a result answers, or None if it names none.

    It is ``tool_call_id``, otherwise the only element of ``tool_call_ids``, as SWE-agent writes it.
    """
    call_id, call_ids = message.get("tool_call_id"), message.get("tool_call_ids")
    if not call_id and isinstance(call_ids, list) and len(call_ids) == 1:
        call_id = call_ids[0]
    return as_plain_str(call_id) if call_id and is_text(call_id) else None


def find_kind_name(tool_name: str | None, arguments: object) -> str | None:
    """Return the name under which a call's kind is looked up; None if none can be stored.

    It is the tool's own, or ``name:argument`` if an argument changes the kind of the tool:
    `DECIDING_ARGUMENTS` names the argument, `TOOL_KINDS` holds the names.
    """
    if not is_text(tool_name):
        return None
    if tool_name not in DECIDING_ARGUMENTS:
        return tool_name
    said = parse_object(arguments).get(DECIDING_ARGUMENTS[tool_name])
    decided = f"{tool_name}:{said}"
    if isinstance(said, str) and decided in TOOL_KINDS:
        return decided
    return tool_name


def find_exit_code(bare: str) -> ExitCode:
    """Return the exit code in a text, in the words of known programs, and its place."""
    # All wordings except one contain "exit", in some spelling: most results contain none and are
    # finished before any expression is tried.
    head = bare[:EXIT_CODE_REACH]
    match = EXIT_CODE_AT_START.search(head) if "xit" in head or head[:1] == "<" else None
    last = max(0, len(bare) - EXIT_CODE_REACH)
    if match is None and bare.find("xit", last) >= 0:
        *_, match = None, *EXIT_CODE_AT_END.finditer(bare, last)
    if match is None:
        return _NO_EXIT_CODE
    group = match.lastindex or 0
    return ExitCode(int(match[group]), match.start(group))


def _render_result_text(content: object) -> str:
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
        return extract_content_text(content)
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return ""
