"""Traces of requests to models: OTLP as JSON, and what Phoenix, Logfire and Langfuse export.

Each span of a request has all messages that were sent, so a conversation is the longest line of
them; a request that goes another way begins a session of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from ..records import Message
from ..text import JsonFields, wrap_in_list
from .conversations import (
    GatheredSession,
    build_chat_message,
    build_picture_part,
    build_result_message,
    join_content,
)
from .parser_events import (
    Event,
    NoteEvent,
    RequestUsage,
    SessionMessage,
    build_chat_call,
    drop_empty_fields,
    find_first_text,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_omission,
    note_unread_value,
    parse_iso_milliseconds,
)
from .source import TranscriptSource
from .usages import TokenKeys, build_request_usage

__all__ = ["is_trace_value", "parse_traces"]

SENT_KEYS = (
    "gen_ai.input.messages",
    "llm.input_messages",
    "gen_ai.prompt",
    "pydantic_ai.all_messages",
)
GIVEN_KEYS = ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion")
"""Attributes that hold the messages of a request and its answer."""
CONVERSATION_KEYS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id", "sessionId")
SPAN_MODEL_KEYS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "model")
PROVIDER_KEYS = ("gen_ai.provider.name", "gen_ai.system", "llm.provider")
TOKEN_KEYS = (
    TokenKeys(
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        beside=False,
    ),
    TokenKeys("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
    TokenKeys(
        "llm.token_count.prompt",
        "llm.token_count.completion",
        "llm.token_count.prompt_details.cache_read",
        beside=False,
    ),
    TokenKeys("input", "output"),
)
TOOL_KEYS = ("gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result")
VALUE_KEYS = ("stringValue", "boolValue", "doubleValue", "bytesValue")
MESSAGE_ROLES = {
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
}
"""Role in a trace → the role in the chat; any other is the user's."""
SPAN_RESULT_TYPES = ("tool_call_response", "tool-result")


class TraceSpan(NamedTuple):
    """A span: when it began (ms), its ids, and its attributes by their names."""

    began: int
    trace: str
    name: str
    told: JsonFields

    @property
    def conversation(self) -> str:
        """Return the conversation that the span is of; its trace where it tells none."""
        return find_first_text(map(self.told.get, CONVERSATION_KEYS)) or self.trace

    @property
    def model(self) -> str | None:
        """Return the model that answered, else the one that was asked."""
        return find_first_text(map(self.told.get, SPAN_MODEL_KEYS))

    @property
    def is_agent(self) -> bool:
        """Whether the span is of a whole run, which sums up the requests in it."""
        return self.told.get("gen_ai.operation.name") == "invoke_agent"

    @property
    def messages(self) -> list[Message]:
        """Return all messages of the request, and its answer."""
        sent = _list_span_messages(self, SENT_KEYS)
        told = _parse_json_text(self.told.get("gen_ai.system_instructions"))
        system = join_texts(map(_find_text, wrap_in_list(told)))
        if system and not any(each["role"] == "system" for each in sent):
            sent = [build_chat_message("system", system), *sent]
        return [*sent, *_list_span_messages(self, GIVEN_KEYS)]

    @property
    def costs(self) -> tuple[RequestUsage, ...]:
        """Return what the request cost."""
        provider = find_first_text(map(self.told.get, PROVIDER_KEYS))
        found = (build_request_usage(self.told, keys, self.model, provider) for keys in TOKEN_KEYS)
        first: tuple[RequestUsage, ...] = next(filter(None, found), ())
        return tuple(each._replace(told={"span": self.name}) for each in first)

    def calls(self) -> Iterator[SessionMessage]:
        """Yield a call and its result, where nothing else of a conversation is recorded."""
        tool, given, result = map(self.told.get, TOOL_KEYS)
        if not get_text(tool):
            return
        name = get_text(self.told.get("gen_ai.tool.call.id")) or self.name
        moment = drop_empty_fields({"timestamp": self.began or None})
        call = build_chat_call(name, tool, given)
        asked = build_chat_message("assistant", None, tool_calls=[call])
        yield SessionMessage(asked | moment | {"id": f"{self.name}-call"})
        if result is not None:
            answer = build_result_message(name, result, name=tool)
            yield SessionMessage(answer | moment | {"id": f"{self.name}-result"})


def is_trace_value(value: Any) -> bool:
    """Tell whether a value is an export of spans, a span, or a list of these."""
    first = get_fields(next(iter(wrap_in_list(value)), None))
    return "resourceSpans" in first or bool(_find_span_ids(first))


def _find_span_ids(fields: JsonFields) -> tuple[str, str] | None:
    """Return the trace and the id of a span as one of the exports names them."""
    context = get_fields(fields.get("context"))
    for holder, trace, span in (
        (context, "trace_id", "span_id"),
        (fields, "trace_id", "span_id"),
        (fields, "traceId", "spanId"),
        (fields, "traceId", "id"),
    ):
        ids = get_text(holder.get(trace)), get_text(holder.get(span))
        if all(ids) and ("attributes" in fields or {"type", "startTime"} <= fields.keys()):
            return ids[0] or "", ids[1] or ""
    return None


def parse_traces(source: TranscriptSource) -> Iterator[Event]:
    """Yield a session for each conversation of the spans, and the notes."""
    spans: list[TraceSpan] = []
    for item in source.items():
        if isinstance(item, NoteEvent):
            yield item
            continue
        found = list(_list_spans(get_fields(item.value)))
        if not found and "resourceSpans" not in get_fields(item.value):
            yield note_unread_value(item.row, item.value, "no span")
        spans += found
    silent = 0
    by_conversation: dict[str, list[TraceSpan]] = {}
    for span in sorted(spans, key=attrgetter("is_agent", "began")):
        by_conversation.setdefault(span.conversation, []).append(span)
    for name, group in by_conversation.items():
        lines = _list_lines(name, group)
        silent += 0 if lines else len(group)
        for line in lines:
            yield from line.events()
    if silent:
        yield note_omission(silent, "span", " of traces without a message")


def _list_spans(value: JsonFields) -> Iterator[TraceSpan]:
    if "resourceSpans" in value:
        for resource in get_objects(value["resourceSpans"]):
            for scope in get_objects(resource.get("scopeSpans")):
                for each in get_objects(scope.get("spans")):
                    yield from _list_spans(each)
    elif ids := _find_span_ids(value):
        yield TraceSpan(_find_span_begin(value), *ids, _read_attributes(value))


def _find_span_begin(value: JsonFields) -> int:
    nanoseconds = str(value.get("startTimeUnixNano") or "")
    if nanoseconds.isdecimal() and len(nanoseconds) < 20:
        return int(nanoseconds) // 1_000_000
    keys = ("start_time", "startTime", "start_timestamp")
    return next(filter(None, (parse_iso_milliseconds(value.get(key)) for key in keys)), 0)


def _read_attributes(value: JsonFields) -> JsonFields:
    """Return a span's attributes; an observation of Langfuse has its own keys in their place."""
    told = value.get("attributes")
    if isinstance(told, str):
        told = _parse_json_text(told)
    if isinstance(told, dict):
        return _flatten_attributes(told)
    if isinstance(told, list):
        return {
            str(each.get("key")): _read_any_value(get_fields(each.get("value")))
            for each in get_objects(told)
        }
    usage = get_fields(value.get("usageDetails")) or get_fields(value.get("usage"))
    messages = {SENT_KEYS[0]: value.get("input"), GIVEN_KEYS[0]: value.get("output")}
    is_request = value.get("type") == "GENERATION"
    return {**value, **usage, **messages} if is_request else {}


def _flatten_attributes(told: JsonFields, before: str = "") -> JsonFields:
    """Return attributes by their whole names, whether objects hold them or not."""
    found: JsonFields = {}
    for key, held in told.items():
        name = f"{before}{key}"
        if isinstance(held, dict) and not name.endswith("messages"):
            found |= _flatten_attributes(held, f"{name}.")
        else:
            found[name] = held
    return found


def _read_any_value(value: JsonFields) -> Any:
    if "intValue" in value:
        number = str(value["intValue"])
        return int(number) if number.isdecimal() and len(number) < 17 else None
    if "arrayValue" in value:
        return list(map(_read_any_value, get_objects(get_nested(value, "arrayValue", "values"))))
    if "kvlistValue" in value:
        pairs = get_objects(get_nested(value, "kvlistValue", "values"))
        return {
            str(each.get("key")): _read_any_value(get_fields(each.get("value"))) for each in pairs
        }
    return next((value[key] for key in VALUE_KEYS if key in value), None)


def _parse_json_text(told: object) -> Any:
    """Return what a text of JSON says; anything else as it is."""
    if not isinstance(told, str) or told[:1] not in ("[", "{"):
        return told
    try:
        return json.loads(told)
    except (ValueError, RecursionError):
        return told


def _list_lines(name: str, spans: list[TraceSpan]) -> list[GatheredSession]:
    """Return the lines of a conversation: each request goes on with the line that it repeats."""
    lines: list[GatheredSession] = []
    for span in spans:
        whole = span.messages
        if not whole:
            continue
        line = next((line for line in lines if _is_of_line(line, whole)), None)
        if line is None:
            known, parent = (f"{name}/{span.name}", name) if lines else (name, None)
            line = GatheredSession("traces", known, [], model=span.model, parent=parent)
            lines.append(line)
        _extend_line(line.said, span, whole)
    if lines:
        return lines
    said = [message for span in spans for message in span.calls()]
    model = find_first_text(span.model for span in spans)
    return [GatheredSession("traces", name, said, model=model)] if said else []


def _is_of_line(line: GatheredSession, whole: list[Message]) -> bool:
    """Tell whether a request with its answer goes on with a line, or is a part of it."""
    known = [drop_marks(each.message) for each in line.said[: len(whole)]]
    return known == [drop_marks(each) for each in whole[: len(line.said)]]


def drop_marks(message: Message) -> JsonFields:
    """Return what a message says, without what tells it from others."""
    calls = [get_nested(each, "function", "name") for each in message.get("tool_calls", ())]
    return {"role": message["role"], "content": message["content"] or None, "calls": calls}


def _extend_line(said: list[SessionMessage], span: TraceSpan, whole: list[Message]) -> None:
    """Add what a line does not have yet, and to the answer what its request cost."""
    for message in whole[len(said) :]:
        told = {"id": f"message-{len(said) + 1}", "timestamp": span.began or None}
        said.append(SessionMessage(message | drop_empty_fields(told)))
    answer = said[len(whole) - 1]
    if answer.message["role"] == "assistant" and not span.is_agent:
        spent = (*answer.spent, *span.costs)
        said[len(whole) - 1] = answer._replace(spent=spent)


def _list_span_messages(span: TraceSpan, keys: Iterable[str]) -> list[Message]:
    """Return the messages under the first of some keys, whole or in flat attributes."""
    for key in keys:
        told = _parse_json_text(span.told.get(key))
        if told is None:
            told = _unflatten_attributes(span.told, f"{key}.")
        told = get_fields(told).get("messages", told)
        if isinstance(told, str):
            role = "assistant" if key in GIVEN_KEYS else "user"
            return [build_chat_message(role, told)]
        if told:
            role = "assistant" if key in GIVEN_KEYS else "user"
            return [
                message
                for each in wrap_in_list(told)
                for message in _parse_trace_message(get_fields(each), role)
            ]
    return []


def _unflatten_attributes(told: JsonFields, before: str) -> Any:
    """Return what flat attributes hold: ``a.0.b`` is the key ``b`` of the first item of ``a``."""
    tree: dict[str, Any] = {}
    for name, held in told.items():
        if name.startswith(before):
            *way, last = name.removeprefix(before).split(".")
            place = tree
            for key in way:
                inner = place.setdefault(key, {})
                place = inner if isinstance(inner, dict) else {}
            place[last] = held
    return _order_items(tree)


def _order_items(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    found = {key: _order_items(held) for key, held in tree.items()}
    if found and all(key.isdecimal() and len(key) < 9 for key in found):
        return [found[key] for key in sorted(found, key=int)]
    return found


def _parse_trace_message(told: JsonFields, role: str) -> Iterator[Message]:
    """Yield what a message amounts to: results first, then text and calls."""
    inner = get_fields(told.get("message")) or told
    role = get_text(inner.get("role")) or role
    parts = _list_trace_parts(inner)
    results = [part for part in parts if part.get("type") in SPAN_RESULT_TYPES]
    yield from map(_parse_result_part, results)
    said = get_text(inner.get("content")) if not parts else None
    content = join_content(said, *map(_parse_text_part, parts))
    if role == "tool" and not results:
        call = inner.get("tool_call_id") or inner.get("id")
        yield build_result_message(call, content or inner.get("content"), name=inner.get("name"))
        return
    calls = [*_list_trace_calls(inner), *filter(None, map(_parse_call_part, parts))]
    if content or calls:
        known = MESSAGE_ROLES.get(role, "user")
        thoughts = _join_thoughts(inner, parts)
        yield build_chat_message(known, content, tool_calls=calls, reasoning_content=thoughts)


def _parse_result_part(part: JsonFields) -> Message:
    call = part.get("id") or part.get("toolCallId")
    return build_result_message(call, find_given(part, "response", "result", "output"))


def find_given(fields: JsonFields, *keys: str) -> Any:
    """Return the value of the first key that is present; None where there is none."""
    return next((fields[key] for key in keys if key in fields), None)


def _join_thoughts(message: JsonFields, parts: list[JsonFields]) -> str | None:
    thoughts = filter(lambda part: part.get("type") in ("reasoning", "thinking"), parts)
    return join_texts(map(_find_text, thoughts)) or get_text(message.get("reasoning_content"))


def _list_trace_parts(message: JsonFields) -> list[JsonFields]:
    for key in ("parts", "contents", "content"):
        parts = get_objects(_parse_json_text(message.get(key)))
        if parts:
            return [get_fields(each.get("message_content")) or each for each in parts]
    return []


def _list_trace_calls(message: JsonFields) -> Iterator[JsonFields]:
    for each in get_list(message.get("tool_calls")):
        call = get_fields(get_fields(each).get("tool_call")) or get_fields(each)
        function = get_fields(call.get("function")) or call
        arguments = function.get("arguments", function.get("args"))
        yield build_chat_call(call.get("id"), function.get("name"), arguments)


def _parse_call_part(part: JsonFields) -> JsonFields | None:
    if part.get("type") not in ("tool_call", "tool-call", "tool_use"):
        return None
    given = find_given(part, "arguments", "input", "args")
    name = find_first_text((part.get("name"), part.get("toolName")))
    return build_chat_call(part.get("id") or part.get("toolCallId"), name, given)


def _find_text(part: object) -> str | None:
    fields = get_fields(part)
    return get_text(part) or find_first_text((fields.get("content"), fields.get("text")))


def _parse_text_part(part: JsonFields) -> object:
    kind = part.get("type")
    if kind == "blob":
        media = part.get("mime_type")
        return build_picture_part(media, part.get("content") or part.get("data"))
    if kind in ("image", "image_url"):
        inner = get_nested(part, "image", "image")
        url = get_text(get_fields(part.get("image_url") or inner).get("url"))
        return {"type": "image_url", "image_url": {"url": url}} if url else None
    return _find_text(part) if kind in (None, "text", "input_text", "output_text") else None
