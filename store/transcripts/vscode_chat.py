"""Chats of VS Code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..records import Message
from ..text import JsonFields
from .parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionNames,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_text,
    list_omission_notes,
    note_unread_value,
    render_json,
    render_titles,
    split_metadata,
)
from .source import SourceValue, TranscriptSource
from .trees import Tree, build_tree_events

__all__ = ["is_vscode_chat", "parse_vscode_chat"]

WHOLE, SET, PUSH, DELETE = range(4)


def is_log_entry(value: object) -> bool:
    """Tell whether a JSON value is an entry of such a log."""
    fields = get_fields(value)
    return type(fields.get("kind")) is int and not fields.keys().isdisjoint("kv")


def render_vscode_result(result: Any) -> str:
    """Return a result as text; values that are neither text nor a tree, as JSON text."""
    parts = get_list(get_fields(result).get("content"))
    values = (get_fields(part).get("value", part) for part in parts)
    result_values: list[str] = []
    for value in values:
        if isinstance(value, str):
            result_value = value
        else:
            node = get_fields(get_fields(value).get("node"))
            if node:
                result_value = "".join(_list_prompt_pieces(node)).removeprefix("\n")
            else:
                result_value = render_json(value)
        result_values.append(result_value)
    return "\n".join(result_values)


def _list_prompt_pieces(node: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a tree in their order, with the line breaks before them."""
    if node.get("lineBreakBefore") is True:
        yield "\n"
    if isinstance(node.get("text"), str):
        yield node["text"]
    for child in get_list(node.get("children")):
        yield from _list_prompt_pieces(get_fields(child))


TOOL_PART_KIND = "toolInvocationSerialized"
THOUGHT_PART_KIND = "thinking"

TEXT_PART_KINDS = (None, "markdownContent", "markdownVuln", "inlineReference")
"""Kinds of parts that are the text of an answer."""

VSCODE_PART_KINDS = (*TEXT_PART_KINDS, THOUGHT_PART_KIND, TOOL_PART_KIND)
"""Kinds of parts that are read."""


def find_part_kind(part: Any) -> str | None:
    """Return the kind of a part, None for text without one."""
    return get_text(get_fields(part).get("kind"))


def parse_shown_answers(name: str, request: JsonFields) -> Iterator[Message]:
    """Yield the answers of a request: a new one begins with the first text after tools."""
    parts = [get_fields(part) for part in get_list(request.get("response"))]
    spoken = [part for part in parts if find_part_kind(part) in VSCODE_PART_KINDS]
    runs = [(used, list(run)) for used, run in groupby(spoken, _is_tool_part)]
    said: list[JsonFields] = []
    number = 0
    for used, run in runs:
        if used:
            calls = {f"{name}-call-{number + place}": each for place, each in enumerate(run, 1)}
            number += len(run)
            yield _parse_shown_answer(said, calls)
            yield from map(_parse_shown_result, calls, run)
        said = [] if used else run
    if said:
        yield _parse_shown_answer(said, {})


def _is_tool_part(part: JsonFields) -> bool:
    return find_part_kind(part) == TOOL_PART_KIND


def _parse_shown_answer(said: list[JsonFields], calls: dict[str, JsonFields]) -> Message:
    texts = [_render_shown_part(part) for part in said if find_part_kind(part) != THOUGHT_PART_KIND]
    values = [part.get("value") for part in said if find_part_kind(part) == THOUGHT_PART_KIND]
    thoughts = [
        "".join(map(str, value)) if isinstance(value, list) else get_text(value) or ""
        for value in values
    ]
    more = {
        "tool_calls": [_parse_shown_call(name, part) for name, part in calls.items()],
        "reasoning_content": "\n\n".join(filter(None, thoughts)),
    }
    return {"role": "assistant", "content": "".join(texts) or None} | drop_empty_fields(more)


def find_shown_text(value: Any) -> str:
    """Return a text of the screen: plain, or markdown."""
    told = (
        value,
        get_fields(value).get("value"),
        get_fields(get_fields(value).get("content")).get("value"),
    )
    return find_first_text(told) or ""


def _render_shown_part(part: JsonFields) -> str:
    """Return the text of a part; a reference to a file or a symbol, as its name."""
    if find_part_kind(part) != "inlineReference":
        return find_shown_text(part)
    told = get_fields(part.get("inlineReference"))
    place = (
        get_fields(told.get("uri"))
        or get_fields(get_fields(told.get("location")).get("uri"))
        or told
    )
    path = get_text(place.get("path")) or ""
    names = (part.get("name"), told.get("name"), path.rpartition("/")[2])
    return f"`{find_first_text(names) or path}`"


def _parse_shown_call(name: str, part: JsonFields) -> JsonFields:
    details, data = get_fields(part.get("resultDetails")), get_fields(part.get("toolSpecificData"))
    given = details.get("input") or data.get("rawInput")
    if isinstance(given, str):
        arguments = given if given.lstrip().startswith("{") else render_json({"input": given})
    else:
        line = get_fields(data.get("commandLine"))
        command = find_first_text((line.get("original"), data.get("command")))
        arguments = render_json(given or ({"command": command} if command else {}))
    return build_chat_call(get_text(part.get("toolCallId")) or name, part.get("toolId"), arguments)


def _parse_shown_result(name: str, part: JsonFields) -> Message:
    details = get_fields(part.get("resultDetails"))
    messages = map(find_shown_text, (part.get("pastTenseMessage"), part.get("invocationMessage")))
    content = _render_shown_output(details) or find_first_text(messages) or ""
    confirmed = part.get("isConfirmed")
    is_denied = confirmed is False or get_fields(confirmed).get("type") == 0
    failed = details.get("isError") is True or is_denied
    link = {"tool_call_id": get_text(part.get("toolCallId")) or name, "content": content}
    return {"role": "tool"} | link | ({"messageStatus": "error"} if failed else {})


def _render_shown_output(details: JsonFields) -> str:
    output = details.get("output")
    values = [output] if isinstance(output, str) else get_list(output)
    return "\n".join(filter(None, map(find_shown_text, values)))


PENDING_ANSWER_STATES = (0, 4)
"""States of an answer that is still being written: it is pending, or it needs input."""

_REQUEST_MESSAGE_KEYS = ("requestId", "message", "response", "timestamp", "agent", "result")
_ROUNDS_METADATA_KEYS = ("toolCallRounds", "toolCallResults")
_ROUND_MESSAGE_KEYS = ("response", "toolCalls", "thinking", "timestamp")


def is_vscode_request(value: object) -> bool:
    """Tell whether a JSON value is a request whose question can be read."""
    return _find_request_text(get_fields(value)) is not None


def is_pending_request(request: JsonFields) -> bool:
    """Tell whether the answer to a request is still being written."""
    return get_fields(request.get("modelState")).get("value") in PENDING_ANSWER_STATES


def find_request_model(request: JsonFields) -> str | None:
    """Return the model that answered."""
    return get_text(request.get("modelId"))


def _find_request_text(request: JsonFields) -> str | None:
    asked = request.get("message")
    text = asked if isinstance(asked, str) else get_fields(asked).get("text")
    return text if isinstance(text, str) else None


def _find_result_metadata(request: JsonFields) -> JsonFields:
    return get_fields(get_fields(request.get("result")).get("metadata"))


def _parse_vscode_timestamp(fields: JsonFields) -> JsonFields:
    """Return when something was said, in ms; nothing where it does not tell."""
    moment = fields.get("timestamp")
    return {"timestamp": moment} if type(moment) is int and 0 < moment < 2**53 else {}


def _parse_tool_rounds(rounds: list[JsonFields], request: JsonFields) -> Iterator[Message]:
    results = get_fields(_find_result_metadata(request).get("toolCallResults"))
    for each in rounds:
        calls = list(map(get_fields, get_list(each.get("toolCalls"))))
        thinking = get_fields(each.get("thinking"))
        thought = thinking.get("text")
        extra = drop_keys(each, *_ROUND_MESSAGE_KEYS) | {"thinking": drop_keys(thinking, "text")}
        more = {
            "tool_calls": [
                build_chat_call(
                    call.get("id"), call.get("name"), get_text(call.get("arguments")) or "{}"
                )
                for call in calls
            ],
            "reasoning_content": "\n".join(map(str, thought))
            if isinstance(thought, list)
            else thought,
            "vscode_chat": drop_empty_fields(extra),
        }
        said: Message = {"role": "assistant", "content": get_text(each.get("response"))}
        yield (said | _parse_vscode_timestamp(each) | drop_empty_fields(more))
        names = (get_text(call.get("id")) for call in calls)
        yield from (
            {"role": "tool", "tool_call_id": name, "content": render_vscode_result(results[name])}
            for name in names
            if name in results
        )


def _add_vscode_cost(answers: list[Message], request: JsonFields) -> None:
    """Add to the last answer what the file tells once of all: who answered, and its tokens."""
    result = get_fields(request.get("result"))
    usage = get_fields(request.get("usage")) or result.get("usage")
    told = drop_empty_fields({"model": find_request_model(request), "usage": usage})
    last = [answer for answer in answers if answer["role"] == "assistant"][-1:]
    for answer in last if told else ():
        answer["vscode_chat"] = answer.get("vscode_chat", {}) | told


VSCODE_CHAT_KEYS = ("sessionId", "responderUsername", "requesterUsername")
"""Keys that a chat has, or an export of one, beside its requests."""

_VSCODE_STATE_KEYS = ("requests", "sessionId", "customTitle", "computedTitle", "inputState")


def is_vscode_chat(value: Any) -> bool:
    """Tell whether a JSON value is a chat, or the entry that begins the log of one."""
    fields = get_fields(get_fields(value).get("v") if is_log_entry(value) else value)
    requests = fields.get("requests")
    named = not fields.keys().isdisjoint(VSCODE_CHAT_KEYS)
    return (
        named
        and isinstance(requests, list)
        and (not requests or any(map(is_vscode_request, requests)))
    )


def parse_vscode_chat(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each chat of a file, its branches after it, then the notes."""
    names = SessionNames(source.stem)
    log = _VscodeChat(source)
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif is_log_entry(item.value):
            yield from log.take(item)
        elif is_vscode_chat(item.value):
            chat = _VscodeChat(source)
            chat.see(item.value)
            yield from chat.events(names)
        else:
            yield _note_unread_chat(item)
    yield from log.events(names)


def _note_unread_chat(item: SourceValue) -> NoteEvent:
    return note_unread_value(item.row, item.value, "no chat, and no change of one")


class _VscodeChat:
    """Follow the states of a chat: each request that was ever in it, and the one before it."""

    def __init__(self, source: TranscriptSource) -> None:
        self._source = source
        self._state: JsonFields = {}
        self._requests: dict[str, JsonFields] = {}
        self._parents: dict[str, str | None] = {}
        self._present: str | None = None

    def take(self, item: SourceValue) -> Iterator[NoteEvent]:
        """Take an entry of the log; return the problem."""
        try:
            # An entry that does not fit the state raises LookupError, TypeError or ValueError.
            if item.value["kind"] == WHOLE:
                entry = item.value["v"]
            else:
                *way, last = item.value["k"]
                holder = self._state
                for key in way:
                    holder = holder[key]
                if item.value["kind"] == SET:
                    holder[last] = item.value["v"]
                elif item.value["kind"] == DELETE:
                    holder.pop(last, None)
                elif item.value["kind"] == PUSH:
                    held = holder.get(last) or []
                    del held[item.value.get("i", len(held)) :]
                    holder[last] = [*held, *item.value.get("v", ())]
                else:
                    raise ValueError("no kind of an entry")
                entry = self._state
            self.see(get_fields(entry))
        except (LookupError, TypeError, ValueError, AttributeError):
            yield _note_unread_chat(item)

    def see(self, state: JsonFields) -> None:
        """Take a state."""
        self._state, self._present, before = state, None, None
        requests = map(get_fields, get_list(state.get("requests")))
        for number, request in enumerate(requests, 1):
            name = get_text(request.get("requestId")) or f"request-{number}"
            self._requests[name] = request
            self._parents.setdefault(name, before)
            before = name
            if not (request.get("shouldBeRemovedOnSend") or request.get("isHidden")):
                self._present = name

    def events(self, names: SessionNames) -> Iterator[Event]:
        """Return the session, its branches, and the notes."""
        if not self._state:
            return
        said = {name: self._messages_of(name) for name in self._requests}
        asked = [messages[0] for messages in said.values() if messages]
        opened, notes = self._opened(names, asked)
        if self._requests:
            yield from build_tree_events(
                Tree(self._parents, self._present, said.__getitem__), opened
            )
        else:
            yield opened
        yield from self._omissions()
        yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        request = self._requests[name]
        if not is_vscode_request(request):
            return []
        result = get_fields(request.get("result"))
        told = {
            **result,
            "metadata": drop_empty_fields(
                drop_keys(_find_result_metadata(request), *_ROUNDS_METADATA_KEYS)
            ),
        }
        agent = get_fields(request.get("agent")).get("id")
        extra = {
            **drop_keys(request, *_REQUEST_MESSAGE_KEYS),
            "agent": agent,
            "result": drop_empty_fields(told),
        }
        question = (
            {
                "role": "user",
                "content": _find_request_text(request) or "",
                "vscode_chat": drop_empty_fields(extra),
            }
            | {"id": name}
            | _parse_vscode_timestamp(request)
        )
        if is_pending_request(request):
            return [question]
        rounds = list(
            map(get_fields, get_list(_find_result_metadata(request).get("toolCallRounds")))
        )
        answers = list(
            _parse_tool_rounds(rounds, request) if rounds else parse_shown_answers(name, request)
        )
        for number, message in enumerate(answers, 1):
            message["id"] = f"{name}-{number}"
        _add_vscode_cost(answers, request)
        return [question, *(_parse_vscode_timestamp(request) | answer for answer in answers)]

    def _opened(
        self, names: SessionNames, asked: list[Message]
    ) -> tuple[SessionEvent, list[NoteEvent]]:
        told = self._state
        given = map(told.get, ("customTitle", "computedTitle"))
        titles = render_titles((*given, find_title(asked)))
        kept, notes = split_metadata(drop_empty_fields(drop_keys(told, *_VSCODE_STATE_KEYS)))
        model = find_first_text(map(find_request_model, reversed(self._requests.values())))
        metadata = drop_empty_fields({"model": model}) | {"vscode_chat": kept}
        root = read_workspace_folder(self._source.path)
        session_id = get_text(told.get("sessionId"))
        return SessionEvent(
            names.name(session_id), find_first_text(titles), root, metadata, titles=titles
        ), notes

    def _omissions(self) -> Iterator[NoteEvent]:
        requests = self._requests.values()
        parts = (
            find_part_kind(part) for each in requests for part in get_list(each.get("response"))
        )
        yield from list_omission_notes(
            Counter((str(kind), "") for kind in parts if kind not in VSCODE_PART_KINDS), "part"
        )
        for name, request in self._requests.items():
            if is_pending_request(request):
                yield NoteEvent(
                    None, f"the answer to {name!r} is still being written, and is left out"
                )


def read_workspace_folder(path: Path) -> str | None:
    """Return the folder that VS Code had open, named in a file beside those of the chats."""
    try:
        told = json.loads((path.parent.parent / "workspace.json").read_bytes())
    except (OSError, ValueError):
        return None
    folder = get_text(get_fields(told).get("folder")) or ""
    return unquote(folder.removeprefix("file://")) if folder.startswith("file:///") else None
