"""What other programs write, told by name, so that it is refused and not misread.

Their files look much like those that are read, and lose their calls, results or words if they are
taken for them. Here is what gives them away: the keys of a whole value, the keys and types of the
parts of a message, the shape of its calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..text import wrap_in_list
from .parser_events import get_fields, get_list

ANTHROPIC_PROGRAM = "Anthropic's Messages API"
BEDROCK_PROGRAM = "Amazon Bedrock's Converse API"
GEMINI_PROGRAM = "Google's Gemini API"
RESPONSES_PROGRAM = "the OpenAI Responses API"
VERCEL_PROGRAM = "the Vercel AI SDK"

PROGRAM_BY_PART_TYPE = {
    "tool_use": ANTHROPIC_PROGRAM,
    "tool_result": ANTHROPIC_PROGRAM,
    "thinking": ANTHROPIC_PROGRAM,
    "redacted_thinking": ANTHROPIC_PROGRAM,
    "server_tool_use": ANTHROPIC_PROGRAM,
    "mcp_tool_use": ANTHROPIC_PROGRAM,
    "container_upload": ANTHROPIC_PROGRAM,
    "compaction": ANTHROPIC_PROGRAM,
    "toolRequest": "goose",
    "toolResponse": "goose",
    "tool-call": VERCEL_PROGRAM,
    "tool-result": VERCEL_PROGRAM,
    "tool-invocation": VERCEL_PROGRAM,
    "toolCall": "pi",
    "input_text": RESPONSES_PROGRAM,
    "output_text": RESPONSES_PROGRAM,
}
"""Type of a content part → whose it is; the words or calls in it would be lost.

Types that an import keeps as they are, as it knows no counterpart, are not among them.
"""

ANTHROPIC_RESULT_ENDING = "_tool_result"
"""What the types of Anthropic's results end with whose tools its server runs."""

PROGRAM_BY_PART_KEY = {
    "toolUse": BEDROCK_PROGRAM,
    "toolResult": BEDROCK_PROGRAM,
    "functionCall": GEMINI_PROGRAM,
    "functionResponse": GEMINI_PROGRAM,
}
"""Key of a content part without a type → whose it is."""

PROGRAM_BY_CALL_KEY = {
    "requestor": "tau2-bench",
    "args": "LangChain",
    "arguments": "Reasonix, or another program whose tool calls have no 'function'",
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


class ProgramMark(NamedTuple):
    """What gives a program's value away: where it has something, and by which pattern that goes.

    A place is a path of keys, through the first object of a list. ``always`` where a kind that is
    read would take the value for its own.
    """

    program: str
    places: dict[tuple[str, ...], str | None]
    always: bool = False


def _parse_program_mark(program: str, places: str, *, always: bool = False) -> ProgramMark:
    """Return a mark as it is written: ``key``, ``key.inner`` or ``key=pattern``, in any order."""
    patterns: dict[tuple[str, ...], str | None] = {}
    for place in places.split():
        at, _, pattern = place.partition("=")
        patterns[tuple(at.split("."))] = pattern or None
    return ProgramMark(program, patterns, always)


PROGRAM_MARKS = (
    _parse_program_mark("Cline (what its screen shows)", "ts type=say say", always=True),
    _parse_program_mark("Cline (what its screen shows)", "ts type=ask ask", always=True),
    _parse_program_mark("QwenPaw", "agent.memory.content"),
    _parse_program_mark(
        "AgentScope, as QwenPaw writes it", "id name role content metadata timestamp"
    ),
    _parse_program_mark("Grok Build (what its screen shows)", "method params.update.sessionUpdate"),
    _parse_program_mark("Grok Build (beside its session)", "info.cwd num_chat_messages"),
    _parse_program_mark("Grok Build (beside its session)", "turnCount toolsUsed primaryModelId"),
    _parse_program_mark("Gemini CLI (without a message)", "sessionId projectHash messages"),
    _parse_program_mark("GitHub Copilot (its old history.json)", "history.role history.text"),
    _parse_program_mark("a program whose messages have no 'content'", "role text"),
    _parse_program_mark("Command Code", "sessionId role content.type metadata.cwd"),
    _parse_program_mark("Snowflake Cortex", "session_id history_length connection_name"),
    _parse_program_mark("Snowflake Cortex", "role content.tool_use.tool_use_id"),
    _parse_program_mark("Zencoder", "id creationReason createdAt"),
    _parse_program_mark("Zencoder", "role content.tag"),
    _parse_program_mark("WorkBuddy", "type=function_call callId", always=True),
    _parse_program_mark("WorkBuddy", "type=function_call_result callId", always=True),
    _parse_program_mark("Poolside", "type=session.start session_start"),
    _parse_program_mark("Poolside", "type=session.input session_input"),
    _parse_program_mark("Codebuff or Freebuff", "variant content timestamp"),
    _parse_program_mark("DeepSeek Harness", "type=*/message seq data"),
    _parse_program_mark("Posit Assistant", "messages.lmMessageIds"),
    _parse_program_mark("Zed", "messages.User"),
    _parse_program_mark("Zed", "messages.Agent"),
    _parse_program_mark("Letta", "agent_type messages.tool_calls in_context_message_indices"),
    _parse_program_mark("Cowork (a record beside its session)", "cliSessionId processName"),
    _parse_program_mark(
        "ChatGPT (a conversation that does not tell its present path)", "mapping create_time"
    ),
    _parse_program_mark("Claude Code (its stream-json)", "session_id cwd type=system subtype=init"),
    _parse_program_mark("goose (its stream-json)", "type=message message"),
    _parse_program_mark("opencode (its run --format json)", "type sessionID part"),
    _parse_program_mark(
        "Continue (its list of sessions)", "sessionId dateCreated workspaceDirectory"
    ),
    _parse_program_mark("Kiro before 1.0", "sessionId history"),
    _parse_program_mark("Kiro before 1.0", "executionId chat"),
    _parse_program_mark("ToolBench", "answer_generation"),
    _parse_program_mark("Moatless Tools (its transitions)", "transitions.actions.action"),
    _parse_program_mark("a recorder of HTTP requests", "request response"),
)
"""What gives a whole value away, the narrowest first."""

COLUMNS_BY_PROGRAM = {
    "Warp": "agent_conversations.conversation_data ai_queries.exchange_id",
    "Zed": "threads.data_type threads.data",
    "Forge": "conversations.context conversations.metrics",
    "Shelley": "messages.llm_data messages.user_data",
    "Piebald": "message_parts.parent_chat_message_id chats.message_count",
    "Devin (its database; its transcripts are read)": "message_nodes.chat_message",
    "Omnigent": "conversation_items.position conversation_items.data",
    "ZCode": "model_usage.computed_total_tokens part.message_id",
}
"""Program → columns of its database that tell it, the narrowest first."""

PROGRAM_BY_STATE_KEY = {"memento/icube-ai-agent-storage": "Trae"}
"""Key of the state that an editor keeps → the program whose chats are there."""


def find_columns_program(columns: set[str]) -> str | None:
    """Return the program whose database has such columns, None where it is not known."""
    programs = COLUMNS_BY_PROGRAM.items()
    found = (name for name, own in programs if columns.issuperset(own.split()))
    return next(found, None)


def find_value_program(value: object, *, always: bool = False) -> str | None:
    """Return the program that wrote a value, None where it is not known.

    ``always``: only one whose value no kind may take, though it looks like one of its own.
    """
    first = next(iter(wrap_in_list(value)), None)
    marks = (mark for mark in PROGRAM_MARKS if mark.always or not always)
    return next(
        (
            mark.program
            for mark in marks
            if all(_has_value_at(first, place, pattern) for place, pattern in mark.places.items())
        ),
        None,
    )


def _has_value_at(value: object, place: tuple[str, ...], pattern: str | None) -> bool:
    """Tell whether a value has anything at a place, or a text that matches ``pattern`` if given."""
    for key in place:
        if isinstance(value, list):
            value = next((each for each in value if isinstance(each, dict)), None)
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return pattern is None or (isinstance(value, str) and fnmatchcase(value, pattern))


def find_messages_program(messages: Iterable[object]) -> str | None:
    """Return whose messages these are where they are not of the chat's shape, else None."""
    return next(filter(None, map(_find_message_program, messages)), None)


def _find_message_program(message: object) -> str | None:
    fields = get_fields(message)
    if "role" not in fields:
        return RESPONSES_PROGRAM if fields.get("type") in ITEM_TYPES else None
    parts = map(_find_part_program, get_list(fields.get("content")))
    calls = map(_find_call_program, get_list(fields.get("tool_calls")))
    return next(filter(None, (*parts, *calls)), None)


def _find_part_program(part: object) -> str | None:
    fields = get_fields(part)
    kind = fields.get("type")
    if kind is None:
        return next(
            (PROGRAM_BY_PART_KEY[key] for key in fields if key in PROGRAM_BY_PART_KEY), None
        )
    if not isinstance(kind, str):
        return None
    return PROGRAM_BY_PART_TYPE.get(kind) or (
        ANTHROPIC_PROGRAM if kind.endswith(ANTHROPIC_RESULT_ENDING) else None
    )


def _find_call_program(call: object) -> str | None:
    fields = get_fields(call)
    if "function" in fields or "name" not in fields:
        return None
    return next((program for key, program in PROGRAM_BY_CALL_KEY.items() if key in fields), None)
