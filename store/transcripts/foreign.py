"""What other programs write, told by name, so that it is refused and not misread.

Their files look much like those that are read, and lose their calls, results or words if they are
taken for them. Here is what gives them away: the keys of a whole value, the keys and types of the
parts of a message, the shape of its calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..text import Fields, items_of
from .events import fields_of, list_of

ANTHROPIC = "Anthropic's Messages API"
BEDROCK = "Amazon Bedrock's Converse API"
GEMINI = "Google's Gemini API"
RESPONSES = "the OpenAI Responses API"
VERCEL = "the Vercel AI SDK"

PART_TYPES = {
    "tool_use": ANTHROPIC,
    "tool_result": ANTHROPIC,
    "thinking": ANTHROPIC,
    "redacted_thinking": ANTHROPIC,
    "toolRequest": "goose",
    "toolResponse": "goose",
    "tool-call": VERCEL,
    "tool-result": VERCEL,
    "tool-invocation": VERCEL,
    "toolCall": "pi",
    "input_text": RESPONSES,
    "output_text": RESPONSES,
}
"""Type of a content part → whose it is; the words or calls in it would be lost.

Types that an import keeps as they are, as it knows no counterpart, are not among them.
"""

PART_KEYS = {
    "toolUse": BEDROCK,
    "toolResult": BEDROCK,
    "functionCall": GEMINI,
    "functionResponse": GEMINI,
}
"""Key of a content part without a type → whose it is."""

CALL_KEYS = {
    "requestor": "tau2-bench",
    "args": "LangChain",
    "arguments": "a program whose tool calls have no 'function'",
}
"""Key of a tool call without a ``function`` → whose it is."""

ITEM_TYPES = (
    *("reasoning", "item_reference", "function_call", "function_call_output"),
    *("custom_tool_call", "custom_tool_call_output", "tool_search_call", "tool_search_output"),
    *("local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output"),
    *("apply_patch_call", "apply_patch_call_output", "computer_call", "computer_call_output"),
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
)
"""Types of the Responses API's items that have no role."""


class Mark(NamedTuple):
    """What a program's value has: some keys, and some values under them."""

    program: str
    keys: frozenset[str]
    values: Fields


def _mark(program: str, keys: str, **values: Any) -> Mark:
    return Mark(program, frozenset(keys.split()), values)


MARKS = (
    _mark("Claude Code (its stream-json)", "session_id cwd", type="system", subtype="init"),
    _mark("goose (its stream-json)", "type message", type="message"),
    _mark("opencode (its run --format json)", "type sessionID part"),
    _mark("Continue, or Kiro before 1.0", "sessionId history"),
    _mark("Kiro before 1.0", "executionId chat"),
    _mark("ToolBench", "answer_generation"),
    _mark("a recorder of HTTP requests", "request response"),
    _mark(VERCEL, "role parts", role="user"),
    _mark(GEMINI, "contents"),
    _mark(GEMINI, "parts role"),
)
"""What gives a whole value away, the narrowest first."""


def program_of(value: object) -> str | None:
    """Return the program that wrote a value no kind is told by, None where it is not known."""
    fields = fields_of(next(iter(items_of(value)), None))
    marks = (mark.program for mark in MARKS if _bears(fields, mark))
    return next(marks, None)


def _bears(fields: Fields, mark: Mark) -> bool:
    return mark.keys <= fields.keys() and mark.values.items() <= _plain(fields).items()


def _plain(fields: Fields) -> dict[str, str]:
    return {key: held for key, held in fields.items() if isinstance(held, str)}


def program_of_messages(messages: Iterable[object]) -> str | None:
    """Return whose messages these are where they are not of the chat's shape, else None."""
    return next(filter(None, map(_program_of_message, messages)), None)


def _program_of_message(message: object) -> str | None:
    fields = fields_of(message)
    if "role" not in fields:
        return RESPONSES if fields.get("type") in ITEM_TYPES else None
    parts = map(_program_of_part, list_of(fields.get("content")))
    calls = map(_program_of_call, list_of(fields.get("tool_calls")))
    return next(filter(None, (*parts, *calls)), None)


def _program_of_part(part: object) -> str | None:
    fields = fields_of(part)
    kind = fields.get("type")
    if kind is None:
        return next((PART_KEYS[key] for key in fields if key in PART_KEYS), None)
    return PART_TYPES.get(kind) if isinstance(kind, str) else None


def _program_of_call(call: object) -> str | None:
    fields = fields_of(call)
    if "function" in fields or "name" not in fields:
        return None
    return next((program for key, program in CALL_KEYS.items() if key in fields), None)
