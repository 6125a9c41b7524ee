"""What other programs write, told by name, so that it is refused and not misread.

Their files look much like those that are read, and lose their calls, results or words if they are
taken for them. Here is what gives them away: the keys of a whole value, the keys and types of the
parts of a message, the shape of its calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..text import as_list
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
    "server_tool_use": ANTHROPIC,
    "mcp_tool_use": ANTHROPIC,
    "container_upload": ANTHROPIC,
    "compaction": ANTHROPIC,
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

SERVER_RESULT = "_tool_result"
"""What the types of Anthropic's results end with whose tools its server runs."""

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
    """What gives a program's value away: where it has something, and by which pattern that goes.

    A place is a path of keys, through the first object of a list. ``always`` where a kind that is
    read would take the value for its own.
    """

    program: str
    places: dict[tuple[str, ...], str | None]
    always: bool = False


def _mark(program: str, places: str, *, always: bool = False) -> Mark:
    """Return a mark as it is written: ``key``, ``key.inner`` or ``key=pattern``, in any order."""
    patterns: dict[tuple[str, ...], str | None] = {}
    for place in places.split():
        at, _, pattern = place.partition("=")
        patterns[tuple(at.split("."))] = pattern or None
    return Mark(program, patterns, always)


MARKS = (
    _mark("Amp", "id=T-* messages", always=True),
    _mark("Cline (what its screen shows)", "ts type=say say", always=True),
    _mark("Cline (what its screen shows)", "ts type=ask ask", always=True),
    _mark("QwenPaw", "agent.memory.content"),
    _mark("AgentScope, as QwenPaw writes it", "id name role content metadata timestamp"),
    _mark("Grok Build", "type=tool_result tool_call_id content"),
    _mark("Grok Build", "type=backend_tool_call kind"),
    _mark("Grok Build", "type=user content prompt_index"),
    _mark("Grok Build", "type=user content synthetic_reason"),
    _mark("Grok Build", "type=assistant content model_id"),
    _mark("Grok Build (what its screen shows)", "method params.update.sessionUpdate"),
    _mark("GitHub Copilot (its old history.json)", "history.role history.text"),
    _mark("a program whose messages have no 'content'", "role text"),
    _mark("Kimi", "type=metadata protocol_version"),
    _mark("Kimi", "timestamp message.type message.payload"),
    _mark("Antigravity", "step_index source type status"),
    _mark("Command Code", "sessionId role content.type metadata.cwd"),
    _mark("Snowflake Cortex", "session_id history_length connection_name"),
    _mark("Snowflake Cortex", "role content.tool_use.tool_use_id"),
    _mark("Zencoder", "id creationReason createdAt"),
    _mark("Zencoder", "role content.tag"),
    _mark("Zed", "messages.User"),
    _mark("Zed", "messages.Agent"),
    _mark("Letta", "agents.in_context_message_ids"),
    _mark("Letta", "agent_type messages.tool_calls in_context_message_indices"),
    _mark("LangChain", "lc type=constructor id"),
    _mark("pydantic-ai", "parts.part_kind kind"),
    _mark("Harbor (an ATIF trajectory)", "schema_version=ATIF* steps"),
    _mark("a collector of OpenTelemetry traces", "resourceSpans"),
    _mark("a collector of OpenTelemetry traces", "traceId spanId"),
    _mark("Claude Code on the web", "loglines"),
    _mark("Cowork (a record beside its session)", "cliSessionId processName"),
    _mark("ChatGPT (a conversation that does not tell its present path)", "mapping create_time"),
    _mark("Gemini in Google Takeout", "header=Gemini* title time products"),
    _mark("Claude Code (its stream-json)", "session_id cwd type=system subtype=init"),
    _mark("goose (its stream-json)", "type=message message"),
    _mark("opencode (its run --format json)", "type sessionID part"),
    _mark("Continue, or Kiro before 1.0", "sessionId history"),
    _mark("Kiro before 1.0", "executionId chat"),
    _mark("ToolBench", "answer_generation"),
    _mark("a recorder of HTTP requests", "request response"),
    _mark(VERCEL, "role parts.type"),
    _mark(VERCEL, "messages.parts.type"),
    _mark(GEMINI, "contents"),
    _mark(GEMINI, "parts role"),
)
"""What gives a whole value away, the narrowest first."""

DATABASES = {
    "Warp": "agent_conversations.conversation_data ai_queries.exchange_id",
    "Zed": "threads.data_type threads.data",
    "Forge": "conversations.context conversations.metrics",
    "Shelley": "messages.llm_data messages.user_data",
    "Piebald": "message_parts.parent_chat_message_id chats.message_count",
    "Cursor (its command's store.db)": "blobs.id blobs.data meta.key meta.value",
}
"""Program → columns of its database that tell it, the narrowest first."""


def program_of_columns(columns: set[str]) -> str | None:
    """Return the program whose database has some columns, None where it is not known."""
    told = (program for program, own in DATABASES.items() if columns.issuperset(own.split()))
    return next(told, None)


def program_of(value: object, *, always: bool = False) -> str | None:
    """Return the program that wrote a value, None where it is not known.

    ``always``: only one whose value no kind may take, though it looks like one of its own.
    """
    first = next(iter(as_list(value)), None)
    marks = (mark for mark in MARKS if mark.always or not always)
    return next(
        (
            mark.program
            for mark in marks
            if all(_has(first, place, pattern) for place, pattern in mark.places.items())
        ),
        None,
    )


def _has(value: object, place: tuple[str, ...], pattern: str | None) -> bool:
    """Tell whether a value has anything at a place, or a text that matches ``pattern`` if given."""
    for key in place:
        if isinstance(value, list):
            value = next((each for each in value if isinstance(each, dict)), None)
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return pattern is None or (isinstance(value, str) and fnmatchcase(value, pattern))


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
    if not isinstance(kind, str):
        return None
    return PART_TYPES.get(kind) or (ANTHROPIC if kind.endswith(SERVER_RESULT) else None)


def _program_of_call(call: object) -> str | None:
    fields = fields_of(call)
    if "function" in fields or "name" not in fields:
        return None
    return next((program for key, program in CALL_KEYS.items() if key in fields), None)
