"""Messages as frameworks for apps keep them: one document, or a line for each message.

These are the UI messages of the Vercel AI SDK 5, messages of LangChain as ``dumps`` writes them and
in LangSmith's runs, the history of pydantic-ai, contents of Google's Gemini API, trajectories of
Harbor (ATIF), and agents of Letta (``.af``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..records import Message
from ..text import JsonFields, wrap_in_list
from .conversations import GatheredSession, build_chat_message, build_result_message, join_content
from .gemini.parts import (
    join_gemini_thoughts,
    list_gemini_responses,
    parse_gemini_calls,
    parse_gemini_content,
    parse_gemini_response,
)
from .parser_events import (
    Event,
    NoteEvent,
    RequestUsage,
    SessionMessage,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_unread_value,
    parse_iso_milliseconds,
)
from .source import TranscriptSource
from .usages import TokenKeys, build_request_usage
from .vercel_parts import parse_media_part

__all__ = ["is_framework_value", "parse_frameworks"]

MESSAGE_HOLDERS = ("messages", "contents", "steps", "agents")
"""Keys of a document under which its messages are."""
LANGCHAIN_TYPE_ROLES = {"ai": "assistant", "human": "user", "system": "system", "tool": "tool"}
USAGE_WORDS = (
    TokenKeys(
        "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", beside=False
    ),
    TokenKeys("prompt_tokens", "completion_tokens", "cached_tokens", beside=False),
)
GEMINI_PART_KEYS = {"text", "functionCall", "functionResponse", "inlineData", "fileData"}
LETTA_KEYS = {"agent_id", "in_context", "tool_call_id"}
ENDED_UI_STATES = {"output-available": False, "output-error": True, "output-denied": True}


MessageLister = Callable[[JsonFields], Iterator[Message]]
FRAMEWORKS: dict[str, tuple[Callable[[JsonFields], bool], MessageLister]] = {}
"""Framework → the marks of its messages, and its reader; the narrowest first."""


def _enter(
    name: str, looks: Callable[[JsonFields], bool]
) -> Callable[[MessageLister], MessageLister]:
    """Enter a function in `FRAMEWORKS`, with what tells the messages that it reads."""

    def decorate(read: MessageLister) -> MessageLister:
        FRAMEWORKS[name] = looks, read
        return read

    return decorate


def _has_part_with(*keys: str) -> Callable[[JsonFields], bool]:
    """Return what tells a message by a part that has one of some keys."""
    known = {*keys}
    return lambda told: any(known & part.keys() for part in get_objects(told.get("parts")))


def _is_langchain_record(told: JsonFields) -> bool:
    is_typed = get_text(told.get("type")) in LANGCHAIN_TYPE_ROLES
    is_stored = is_typed and "content" in get_fields(told.get("data"))
    return is_stored or {"lc", "kwargs"} <= told.keys()


@_enter("langchain", _is_langchain_record)
def _list_langchain_messages(told: JsonFields) -> Iterator[Message]:
    """Yield a message of LangChain: as its constructor's arguments, or as ``data`` of its type."""
    held = get_fields(told.get("kwargs")) or get_fields(told.get("data"))
    kind, content = _find_langchain_type(told, held), held.get("content")
    if kind == "tool":
        name, failed = get_text(held.get("name")), held.get("status") == "error"
        yield build_result_message(held.get("tool_call_id"), content, failed=failed, name=name)
        return
    told_calls = get_objects(held.get("tool_calls"))
    calls = [build_chat_call(*map(each.get, ("id", "name", "args"))) for each in told_calls]
    parts = [each for each in wrap_in_list(content) if not _is_langchain_call(each)]
    role = LANGCHAIN_TYPE_ROLES.get(kind, "user")
    yield build_chat_message(role, join_content(parts), tool_calls=calls)


def _find_langchain_type(told: JsonFields, held: JsonFields) -> str:
    """Return the type of a message: as it tells, else by the name of its class."""
    kind = get_text(held.get("type")) or get_text(told.get("type")) or ""
    if kind != "constructor":
        return kind
    name = str([*get_list(told.get("id")), ""][-2:][0])
    return name.removesuffix("Chunk").removesuffix("Message").lower()


def _is_langchain_call(part: object) -> bool:
    return get_fields(part).get("type") in ("tool_use", "function_call", "tool_call")


@_enter("pydantic_ai", _has_part_with("part_kind"))
def _list_pydantic_messages(told: JsonFields) -> Iterator[Message]:
    """Yield a request or a response of pydantic-ai, part for part."""
    parts = get_objects(told.get("parts"))
    if told.get("kind") == "response":
        texts = [part.get("content") for part in parts if part.get("part_kind") == "text"]
        thoughts = [part.get("content") for part in parts if part.get("part_kind") == "thinking"]
        calls = [
            build_chat_call(part.get("tool_call_id"), part.get("tool_name"), part.get("args"))
            for part in parts
            if part.get("part_kind") == "tool-call"
        ]
        content = join_content(texts)
        yield build_chat_message(
            "assistant", content, tool_calls=calls, reasoning_content=join_texts(thoughts)
        )
        return
    for part in parts:
        yield from _list_request_part(part)


def _list_request_part(part: JsonFields) -> Iterator[Message]:
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_call_id")):
        failed = kind == "retry-prompt"
        name = get_text(part.get("tool_name"))
        yield build_result_message(part.get("tool_call_id"), content, failed=failed, name=name)
    elif kind in ("user-prompt", "system-prompt", "retry-prompt"):
        role = "system" if kind == "system-prompt" else "user"
        yield build_chat_message(role, join_content(content))


@_enter("vercel", _has_part_with("type"))
def _list_ui_messages(told: JsonFields) -> Iterator[Message]:
    """Yield a UI message: runs of parts, each with its calls, then their results."""
    said: list[Any] = []
    thoughts: list[Any] = []
    calls: list[JsonFields] = []
    for part in get_objects(told.get("parts")):
        kind = get_text(part.get("type")) or ""
        if kind.startswith("tool-") or kind == "dynamic-tool":
            calls.append(part)
        elif kind == "step-start" and calls:
            yield from _build_ui_step(told, said, thoughts, calls)
            said, thoughts, calls = [], [], []
        elif kind == "reasoning":
            thoughts.append(part.get("text"))
        elif kind in ("text", "file"):
            said.append(parse_media_part(drop_keys(part, "state", "providerMetadata")))
    yield from _build_ui_step(told, said, thoughts, calls)


def _build_ui_step(
    told: JsonFields, said: list[Any], thoughts: list[Any], calls: list[JsonFields]
) -> Iterator[Message]:
    """Yield what a step said and called, then the results of its calls that have ended."""
    if said or calls or thoughts:
        yield build_chat_message(
            get_text(told.get("role")) or "user",
            join_content(said),
            tool_calls=list(map(_parse_ui_call, calls)),
            reasoning_content=join_texts(thoughts),
        )
    for part in calls:
        failed = ENDED_UI_STATES.get(get_text(part.get("state")) or "")
        if failed is not None:
            given = part.get("output") if "output" in part else part.get("errorText")
            yield build_result_message(part.get("toolCallId"), given, failed=failed)


def _parse_ui_call(part: JsonFields) -> JsonFields:
    given = part.get("input", part.get("args"))
    name = part.get("toolName") or str(part.get("type")).removeprefix("tool-")
    return build_chat_call(part.get("toolCallId"), name, given)


@_enter("gemini", _has_part_with(*GEMINI_PART_KEYS))
def _list_content_messages(told: JsonFields) -> Iterator[Message]:
    """Yield a content of Gemini's API: responses of functions, then text and calls."""
    parts = get_list(told.get("parts"))
    yield from map(parse_gemini_response, list_gemini_responses(parts))
    said, calls = parse_gemini_content(parts), parse_gemini_calls(parts, "content")
    if said is not None or calls:
        role = "assistant" if told.get("role") == "model" else "user"
        thoughts = join_gemini_thoughts(parts)
        yield build_chat_message(role, said, tool_calls=calls, reasoning_content=thoughts)


@_enter("atif", {"step_id", "source", "message"}.issubset)
def _list_atif_messages(told: JsonFields) -> Iterator[Message]:
    """Yield a step of a trajectory: its message and calls, then the observations."""
    source = get_text(told.get("source")) or ""
    calls = [
        build_chat_call(call.get("tool_call_id"), call.get("function_name"), call.get("arguments"))
        for call in get_objects(told.get("tool_calls"))
    ]
    role = {"agent": "assistant", "system": "system"}.get(source, "user")
    content = join_content(told.get("message"))
    thoughts = get_text(told.get("reasoning_content"))
    yield build_chat_message(role, content, tool_calls=calls, reasoning_content=thoughts)
    first = calls[0]["id"] if calls else None
    for result in get_objects(get_nested(told, "observation", "results")):
        yield _parse_observation(result, first)


def _parse_observation(result: JsonFields, first: str | None) -> Message:
    """Return the observations: the result of the call that it names, else of the first."""
    call, content = get_text(result.get("source_call_id")) or first, result.get("content")
    if call is None:
        return build_chat_message("user", join_content(content))
    return build_result_message(call, content)


@_enter("letta", lambda told: "role" in told and bool(LETTA_KEYS & told.keys()))
def _list_letta_messages(told: JsonFields) -> Iterator[Message]:
    """Yield a message of an agent's file."""
    content = [each.get("text") for each in get_objects(told.get("content"))]
    content = content or [told.get("text")]
    if told.get("role") == "tool":
        name = get_text(told.get("name"))
        yield build_result_message(told.get("tool_call_id"), join_content(content), name=name)
        return
    calls = list(map(_parse_letta_call, get_objects(told.get("tool_calls"))))
    role = told.get("role")
    role = role if role in ("system", "assistant") else "user"
    yield build_chat_message(str(role), join_content(content), tool_calls=calls)


def _parse_letta_call(call: JsonFields) -> JsonFields:
    function = get_fields(call.get("function"))
    return build_chat_call(call.get("id"), function.get("name"), function.get("arguments"))


def find_framework(value: object) -> str | None:
    """Return the framework whose message a value is, None where it is of none."""
    fields = get_fields(value)
    return next((name for name, (looks, _) in FRAMEWORKS.items() if looks(fields)), None)


def is_framework_value(value: Any) -> bool:
    """Tell whether a value is a document of a framework's messages, a list of them, or one."""
    first = next(iter(wrap_in_list(value)), None)
    fields = get_fields(first)
    if find_framework(fields):
        return not {"sessionId", "uuid", "session_id"} & fields.keys()
    return any(map(find_framework, _list_held_messages(fields)[:3]))


def _list_held_messages(document: JsonFields) -> list[Any]:
    """Return the messages that a document holds; of an agent of Letta, its own."""
    key = next((key for key in MESSAGE_HOLDERS if isinstance(document.get(key), list)), "")
    held = get_list(document.get(key))
    if key == "agents":
        return [each for agent in get_objects(held) for each in get_list(agent.get("messages"))]
    return held


def parse_frameworks(source: TranscriptSource) -> Iterator[Event]:
    """Yield the session of a file, and the notes."""
    said: list[SessionMessage] = []
    opened: JsonFields = {}
    for item in source.items():
        if isinstance(item, NoteEvent):
            yield item
            continue
        fields = get_fields(item.value)
        is_message = find_framework(fields) is not None
        opened = opened or ({} if is_message else fields)
        for each in [fields] if is_message else _list_held_messages(fields):
            name = find_framework(each)
            if name:
                said += _list_framework_messages(name, each, len(said))
            else:
                yield note_unread_value(item.row, each, "no message of a framework")
    yield from _open_document(opened, source.stem, said).events()


def _open_document(told: JsonFields, stem: str, said: list[SessionMessage]) -> GatheredSession:
    ids = map(told.get, ("session_id", "id", "chatId", "thread_id"))
    model = get_nested(told, "agent", "model_name") or told.get("model")
    name = find_first_text(ids) or stem
    return GatheredSession("frameworks", name, said, [told.get("title")], model=model)


def _list_framework_messages(name: str, told: JsonFields, count: int) -> Iterator[SessionMessage]:
    moments = (told.get("timestamp"), told.get("created_at"), told.get("createdAt"))
    moment = next(filter(None, map(parse_iso_milliseconds, moments)), None)
    spent = _list_framework_costs(told)
    for number, message in enumerate(FRAMEWORKS[name][1](told), count + 1):
        known = drop_empty_fields({"id": f"message-{number}", "timestamp": moment}) | message
        is_answer = message["role"] == "assistant"
        yield SessionMessage(known, spent=spent if is_answer else ())
        spent = () if is_answer else spent


def _list_framework_costs(told: JsonFields) -> tuple[RequestUsage, ...]:
    held = get_fields(told.get("kwargs")) or get_fields(told.get("data")) or told
    usage = held.get("usage") or held.get("usage_metadata") or held.get("metrics")
    answer = get_fields(held.get("response_metadata"))
    model = find_first_text((told.get("model_name"), answer.get("model_name")))
    found = (build_request_usage(usage, words, model) for words in USAGE_WORDS)
    return next(filter(None, found), ())
