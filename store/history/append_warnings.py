"""Warnings in the log about appended messages that are stored, but not wholly understood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..database import get_logger
from ..messages import TIME_KEYS, PreparedMessage, has_no_time
from ..text import parse_object
from ..tools import TOOL_KINDS

append_logger = get_logger(__name__)

FOREIGN_PARTS = {
    *("tool_use", "server_tool_use", "tool_result", "toolCall", "toolResult"),
    *("function_call", "function_call_output"),
    *("input_text", "output_text", "input_image", "input_file"),
}
"""Types of content parts in the requests of other providers."""

_GIVEN_WARNINGS: set[str] = set()
"""The warnings that this process has given: a host that causes one causes it with every message."""


def log_message_problems(session_id: str, batch: Iterable[PreparedMessage]) -> None:
    """Warn once about the parts of stored messages that the rules cannot use."""
    for prepared in batch:
        for problem in _list_problems(prepared):
            if problem not in _GIVEN_WARNINGS:
                _GIVEN_WARNINGS.add(problem)
                append_logger.warning(problem, extra={"session_id": session_id})


def _list_problems(prepared: PreparedMessage) -> Iterator[str]:
    if prepared.columns.created_at is None and not has_no_time(prepared.message):
        for key in TIME_KEYS:
            given = prepared.message.get(key)
            if given is not None:
                yield (
                    f"the {key} of a message tells no moment (a {type(given).__name__}): rules "
                    "that go by time leave it alone; give ms, seconds, ISO 8601 with a zone, or "
                    "a datetime with one"
                )
    if prepared.wire_format is None and prepared.columns.content_form == "json":
        content = prepared.message["content"]
        for part in content if isinstance(content, list) else [content]:
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind in FOREIGN_PARTS:
                yield (
                    f"a message has a content part {kind!r}, which is not of the chat shape: it "
                    "is kept, but no rule knows it, and a view that sends it as its JSON text says "
                    "so; give texts as text parts, calls as tool_calls, results as messages with "
                    "the role tool"
                )
    for call in prepared.calls:
        if TOOL_KINDS.get(call.name or "") == "file_read" and not _is_arguments_object(
            call.arguments
        ):
            yield (
                f"the arguments of a call to {call.name!r} are no JSON object: which files it "
                "reads is not known, so the rule of old reads leaves its results alone"
            )


def _is_arguments_object(arguments: str | None) -> bool:
    """Return whether arguments are a JSON object; missing ones are an object without fields."""
    text = (arguments or "{}").strip()
    return text == "{}" or bool(parse_object(text))
