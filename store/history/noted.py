"""What an append says in the log of messages that are stored, but not understood whole."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from ..messages import TIME_KEYS, Prepared

log = logging.getLogger(__name__)

FOREIGN_PARTS = {
    *("tool_use", "server_tool_use", "tool_result", "toolCall", "toolResult"),
    *("function_call", "function_call_output"),
    *("input_text", "output_text", "input_image", "input_file"),
}
"""Types of content parts that other providers' requests are made of."""

_NOTED: set[str] = set()
"""What this process has said already: a host that does it once does it with every message."""


def note(session_id: str, batch: Iterable[Prepared]) -> None:
    """Say once, at WARNING, what the rules cannot go by in messages that were stored."""
    for prepared in batch:
        for problem in _problems(prepared):
            if problem not in _NOTED:
                _NOTED.add(problem)
                log.warning(problem, extra={"session_id": session_id})


def _problems(prepared: Prepared) -> Iterator[str]:
    if prepared.columns.created_at is None:
        yield from _no_moments(prepared)
    if prepared.columns.content_form == "json":
        yield from _foreign_parts(prepared.message["content"])


def _foreign_parts(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in FOREIGN_PARTS:
            yield (
                f"a message has a content part {kind!r}, which is not of the chat shape: it is "
                "kept, but views send it as its JSON text and no rule knows it; give texts as "
                "text parts, calls as tool_calls, results as messages with the role tool"
            )


def _no_moments(prepared: Prepared) -> Iterator[str]:
    for key in TIME_KEYS:
        given = prepared.message.get(key)
        if given is not None:
            yield (
                f"the {key} of a message tells no moment (a {type(given).__name__}): rules that go "
                "by time leave it alone; give ms, seconds, ISO 8601 with a zone, or a datetime "
                "with one"
            )
