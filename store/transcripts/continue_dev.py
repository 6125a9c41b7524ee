"""Sessions of Continue, as its extension for editors and its command ``cn`` write them.

A session is a document. The extension tells a result in an item of its own, the command only in the
state of the call; both may tell it twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..text import JsonFields, wrap_in_list
from .conversations import GatheredSession, build_chat_message, build_result_message, join_content
from .parser_events import (
    CompactionEvent,
    Event,
    RequestUsage,
    SessionMessage,
    SessionNames,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_omission,
    note_unread_value,
)
from .source import SourceValue, for_each_conversation
from .usages import TokenKeys, build_request_usage

__all__ = ["is_continue_session", "parse_continue"]

CONTINUE_TOKENS = TokenKeys(
    "promptTokens", "completionTokens", "cachedTokens", "cacheWriteTokens", beside=False
)
CONTINUE_ROLES = ("system", "user", "assistant", "thinking", "tool")
ENDED_STATES = {"done": False, "errored": True, "canceled": True}
"""State of a call that has ended → whether it failed."""
UNNAMED_TITLES = ("New Session", "Untitled Session")
"""Titles of sessions that have none yet."""
_CONTINUE_SESSION_KEYS = ("sessionId", "title", "workspaceDirectory", "history")
_CONTINUE_ITEM_KEYS = (
    *("message", "contextItems", "editorState", "promptLogs", "toolCallStates", "toolCallState"),
    *("reasoning", "conversationSummary", "isGatheringContext"),
)


def is_history_item(value: object) -> bool:
    """Tell whether a value is an item of a history; Kiro's tell the answers elsewhere."""
    fields = get_fields(value)
    return get_nested(fields, "message", "role") in CONTINUE_ROLES and "executionId" not in fields


def is_continue_session(value: Any) -> bool:
    """Tell whether a value is a session."""
    fields = get_fields(value)
    items = fields.get("history")
    if not (get_text(fields.get("sessionId")) and isinstance(items, list)):
        return False
    return any(map(is_history_item, items)) or (not items and "workspaceDirectory" in fields)


@for_each_conversation(is_continue_session, "session of Continue")
def parse_continue(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Yield a session, its compactions, and the notes."""
    told = item.value
    history = _ContinueHistory(told["history"])
    for number, entry in enumerate(told["history"], 1):
        if is_history_item(entry):
            history.take(number, entry)
        else:
            yield note_unread_value(item.row, entry, "no item of a history", f"item {number}")
    title = get_text(told.get("title"))
    opened = GatheredSession(
        "continue_dev",
        names.name(told["sessionId"]),
        history.said,
        titles=[] if title in UNNAMED_TITLES else [title],
        root=told.get("workspaceDirectory"),
        model=history.model or told.get("chatModelTitle"),
        told=drop_keys(told, *_CONTINUE_SESSION_KEYS),
    )
    yield from history.events(opened)


class _ContinueHistory:
    """What the items of a history say; thoughts wait for the answer after them."""

    def __init__(self, items: list[Any]) -> None:
        told = [get_fields(get_fields(item).get("message")) for item in items]
        states = (state for item in items for state in _list_call_states(get_fields(item)))
        self._results = {get_text(message.get("toolCallId")) for message in told}
        self._states = {get_text(each.get("toolCallId")): each.get("status") for each in states}
        self._thoughts: list[JsonFields] = []
        self._summaries: dict[int, str] = {}
        self._logs = 0
        self.said: list[SessionMessage] = []
        self.model: str | None = None

    def take(self, number: int, item: JsonFields) -> None:
        """Take the next item."""
        message = item["message"]
        logs = get_objects(item.get("promptLogs"))
        self._logs += len(logs)
        self.model = find_first_text([*(log.get("modelTitle") for log in logs[-1:]), self.model])
        name = get_text(message.get("id")) or f"message-{number}"
        if message["role"] == "tool":
            self._end_call(message.get("toolCallId"), message.get("content"))
        elif message["role"] == "thinking" and not message.get("toolCalls"):
            self._thoughts.append(message)
        else:
            self._say(name, item)
        if summary := get_text(item.get("conversationSummary")):
            self._summaries[len(self.said)] = summary

    def _say(self, name: str, item: JsonFields) -> None:
        """Take an item with the attachments of its text, its calls, and their results."""
        message, states = item["message"], _list_call_states(item)
        role = message["role"]
        if role == "thinking":
            self._thoughts.append(message)
        calls = get_objects(message.get("toolCalls")) or [
            get_fields(state.get("toolCall")) for state in states
        ]
        more = drop_empty_fields(drop_keys(item, *_CONTINUE_ITEM_KEYS))
        said = build_chat_message(
            "assistant" if role == "thinking" else role,
            None if role == "thinking" else _parse_continue_content(item),
            id=name,
            tool_calls=list(map(_parse_continue_call, calls)),
            continue_dev=more,
            **(self._end_thoughts(item) if role in ("assistant", "thinking") else {}),
        )
        self.said.append(SessionMessage(said, spent=_parse_continue_cost(message, self.model)))
        for state in states:
            call = get_text(state.get("toolCallId"))
            if state.get("status") in ENDED_STATES and call not in self._results:
                given = join_texts(each.get("content") for each in get_objects(state.get("output")))
                self._end_call(call, given or f"[{state['status']}]")

    def _end_thoughts(self, item: JsonFields) -> JsonFields:
        """Return the thoughts before an answer; those that no one signed are words."""
        thoughts, self._thoughts = self._thoughts, []
        signed = [each for each in thoughts if each.get("signature")]
        hidden = (get_text(each.get("redactedThinking")) for each in thoughts)
        words = [
            *(each.get("content") for each in thoughts if each not in signed),
            get_nested(item, "reasoning", "text"),
        ]
        blocks = [
            {
                "type": "thinking",
                "thinking": get_text(each.get("content")) or "",
                "signature": each["signature"],
            }
            for each in signed
        ]
        blocks += [{"type": "redacted_thinking", "data": data} for data in hidden if data]
        return {"reasoning_content": join_texts(words), "thinking_blocks": blocks}

    def _end_call(self, call: object, given: object) -> None:
        name = get_text(call)
        failed = ENDED_STATES.get(str(self._states.get(name)), False)
        content = join_content(*map(_parse_continue_part, wrap_in_list(given)))
        said = build_result_message(name, content, failed=failed, id=f"result-{name}")
        self.said.append(SessionMessage(said))

    def events(self, opened: GatheredSession) -> Iterator[Event]:
        """Yield the session, with a compaction after the last message that it summarizes."""
        count = 0
        for event in opened.events():
            yield event
            count += isinstance(event, SessionMessage)
            if isinstance(event, SessionMessage) and count in self._summaries:
                yield CompactionEvent(count, self._summaries[count])
        if self._logs:
            yield note_omission(self._logs, "prompt", " that repeats the messages")
        if self._thoughts:
            yield note_omission(len(self._thoughts), "thought", " without an answer")


def _list_call_states(item: JsonFields) -> list[JsonFields]:
    """Return the states of an item's calls; older versions made one at a time."""
    return get_objects(item.get("toolCallStates")) or get_objects([item.get("toolCallState")])


def _parse_continue_call(told: JsonFields) -> JsonFields:
    function = get_fields(told.get("function"))
    return build_chat_call(told.get("id"), function.get("name"), function.get("arguments"))


def _parse_continue_content(item: JsonFields) -> Any:
    """Return a text after its attachments, as the model is given it."""
    beside = [
        f'<context name="{each.get("name")}">\n{each["content"]}\n</context>'
        for each in get_objects(item.get("contextItems"))
        if get_text(each.get("content"))
    ]
    said = item["message"].get("content")
    return join_content(*beside, *map(_parse_continue_part, wrap_in_list(said)))


def _parse_continue_part(part: Any) -> Any:
    match part:
        case {"type": "imageUrl", "imageUrl": {"url": str(url)}}:
            return {"type": "image_url", "image_url": {"url": url}}
    return part


def _parse_continue_cost(message: JsonFields, model: str | None) -> tuple[RequestUsage, ...]:
    """Return what an answer cost; some providers count what a cache held beside the rest."""
    told = get_fields(message.get("usage"))
    flat = {**told, **get_fields(told.get("promptTokensDetails"))}
    counts = [flat.get(key) for key in ("promptTokens", "cachedTokens", "cacheWriteTokens")]
    sent, *cached = [count if isinstance(count, int) else 0 for count in counts]
    keys = CONTINUE_TOKENS._replace(beside=sum(cached) > sent)
    spent = build_request_usage(flat, keys, model)
    return tuple(each._replace(told=told) for each in spent)
