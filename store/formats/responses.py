"""The OpenAI Responses format: a list of items, with separate items for calls and reasoning.

An item that came in this format is sent as it came, with its content and ids made fit for sending.
The API refuses a reasoning item without the item that it led to, so a reasoning item is left out if
its next item is not sent or comes from another provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..messages import WIRE, Media, Message, is_unreadable
from .item_keys import ITEM_KEYS, MESSAGE, RESULTS
from .kept import kept
from .naming import WORD, Names, with_ids
from .openai import ITEMS, PARTS, arguments_text, sendable
from .parts import Speech, arguments_object, as_sent, mended, part_told, told
from .placed import ApiCall, Placed
from .rows import Problem, emptied, filled, first_key, row, together, wire_of

NAME = ITEMS
NAMES = Names(ids=WORD, tools=WORD)
CALL, FREE = "function_call", "custom_tool_call"
"""The types of calls that any text answers: calls of functions, and calls with a text as input."""
SHELL = "local_shell_call_output"
"""A result that names its call under its own id, in the types of the provider's clients."""
PATCHED = "apply_patch_call_output"
PLAIN = (f"{CALL}_output", f"{FREE}_output", SHELL, PATCHED)
"""Types of results that are a text."""
ASKED = ("arguments", "input", "action", "operation")
"""Keys for the input of a call."""
ANSWERED = ("output", "tools")
"""Keys for the content of a result."""
SEARCH, FOUND = "tool_search_call", "tool_search_output"
"""The server's search for tools, and its result directly after it; those of a client have ids."""
ASKS, APPROVED = "mcp_approval_request", "mcp_approval_response"
"""An item that asks whether a tool may be called, and its answer."""
PROGRAM, ENDED = "program", "program_output"
"""An item that calls tools from its own code, and the item with its output."""
CALLER = "caller"
"""The key under which a call and its result name the program that made them."""
OURS = ("timestamp", "messageStatus")
"""Keys that no provider has, for items of unknown types."""
ASKED_BY = {ASKS: "id", PROGRAM: "call_id"}
"""Types of items that another item answers, and the key of the id that the answer refers to."""
ANSWERS = {APPROVED: "approval_request_id", ENDED: "call_id"}
"""Types of items that answer another item, and the key under which they name it."""
IDS = ("id", "approval_request_id")
"""Keys of an item for its own id, and for the id of another."""
PDF = "application/pdf"


def write(placed: Sequence[Placed]) -> list[Message]:
    """Return a request as items."""
    writing = _written(placed)
    items = _with_programs(writing.items) if writing.has_programs else writing.items
    return [with_ids(item, IDS) for item in items]


def unsent(placed: Sequence[Placed]) -> list[Placed]:
    """Return the items of this format that are left out because an item they need is missing."""
    writing = _written(placed)
    there = {id(item) for item in _with_programs(writing.items)}
    return [each for each, item in writing.own if id(item) not in there]


def _written(placed: Sequence[Placed]) -> _Writing:
    writing = _Writing()
    for each in placed:
        writing.add(each)
    writing.end_step()
    return writing


def _with_programs(items: list[Message]) -> list[Message]:
    """Return items without interrupted programs; the calls of these become independent.

    A program without output is still running as long as the user says nothing new.
    """
    kinds = [each.get("type") for each in items]
    if PROGRAM not in kinds and not any("caller" in each for each in items):
        return items
    asked = max(
        (place for place, each in enumerate(items) if each.get("role") == "user"), default=0
    )
    ended = {str(each.get("call_id")) for each in items if each.get("type") == ENDED}
    programs = {
        str(each.get("call_id"))
        for place, each in enumerate(items)
        if each.get("type") == PROGRAM and (place > asked or str(each.get("call_id")) in ended)
    }
    return [
        _called_by(each, programs)
        for each in items
        if each.get("type") != PROGRAM or str(each.get("call_id")) in programs
    ]


def _called_by(item: Message, programs: set[str]) -> Message:
    """Return an item without its caller if that is a program that is not sent."""
    caller = item.get(CALLER)
    if not isinstance(caller, dict) or caller.get("caller_id") in (None, *programs):
        return item
    return {key: held for key, held in item.items() if key != CALLER}


class _Writing:
    """The written items, the open calls among them by id, and the open requests for approval."""

    def __init__(self) -> None:
        self.items: list[Message] = []
        self.own: list[tuple[Placed, Message]] = []
        self.has_programs = False
        self._open: dict[str, tuple[int, ApiCall]] = {}
        self._asked: set[str] = set()

    def add(self, placed: Placed) -> None:
        """Add the items of one message."""
        message = placed.message
        if message["role"] == "tool":
            self.end_step()
            self._add(self._result(placed))
            return
        held = kept(message, NAME)
        if held is None or message["role"] != "assistant":
            self.end_step()
        if held is not None and "block" in held and not placed.calls:
            self.own.append((placed, _sent(held["block"])))
            self._add_own(self.own[-1][1])
            return
        self._end_search()
        self.items.extend(_said(message, held, alone=not placed.calls))
        for call in placed.calls:
            self._open[call.id] = (len(self.items), call)
            self._add(_call(call, held))

    def _add(self, item: Message) -> None:
        if CALLER in item:
            self.has_programs = True
        self.items.append(item)

    def end_step(self) -> None:
        """Remove items from the end that led to no sent item: reasoning, a server's search."""
        self._end_search()
        while self._ends_with("reasoning"):
            self.items.pop()

    def _end_search(self) -> None:
        if self._ends_with(SEARCH) and not isinstance(self.items[-1].get("call_id"), str):
            self.items.pop()

    def _add_own(self, item: Message) -> None:
        """Add an item that came in this format, unless it answers one that is not sent."""
        kind = item["type"]
        if kind == FOUND:
            is_sent = self._ends_with(SEARCH)
        else:
            self._end_search()
            asked = ANSWERS.get(kind)
            is_sent = asked is None or str(item.get(asked)) in self._asked
        if kind in ASKED_BY:
            self.has_programs |= kind == PROGRAM
            self._asked.add(str(item.get(ASKED_BY[kind])))
        if is_sent:
            self.items.append(item)

    def _ends_with(self, kind: str) -> bool:
        return bool(self.items) and self.items[-1].get("type") == kind

    def _result(self, placed: Placed) -> Message:
        """Return a result in the type that its call requires.

        If that is impossible, both are written as those of a function.
        """
        call_id = placed.call_id or ""
        place, call = self._open.pop(call_id, (0, None))
        kind = self.items[place]["type"] if call else CALL
        wanted = RESULTS.get(kind, f"{kind}_output")
        own = _own_result(placed, wanted)
        if own is not None:
            return own
        if call and wanted not in PLAIN:
            wanted = RESULTS[CALL]
            self.items[place] = _call(call, None)
        made = {"type": wanted, "call_id": call_id, "output": _output(placed.message)}
        return made | _beside(wanted, placed)


def _beside(wanted: str, placed: Placed) -> Message:
    """Return the keys that a written result of a type must have in addition to its text."""
    if wanted == SHELL:
        return {"id": placed.call_id}
    if wanted != PATCHED:
        return {}
    is_failed = placed.seq is None or placed.message.get("messageStatus") == "error"
    return {"status": "failed" if is_failed else "completed"}


def _own_result(placed: Placed, wanted: str) -> Message | None:
    """Return a result that came as an item of the wanted type; None for any other."""
    message = placed.message
    held = kept(message, NAME)
    block = held.get("block") if held else None
    if not block or block["type"] != wanted:
        return None
    content = message.get("content")
    is_plain = wanted in PLAIN
    if not is_plain and (isinstance(content, str) or is_unreadable(content)):
        return None
    said = {str(first_key(block, ANSWERED)): _output(message) if is_plain else content}
    return _sent(filled(block, **{_paired_by(block): placed.call_id}, **said))


def _call(call: ApiCall, held: Message | None) -> Message:
    """Return a call as a function's, or as its original item."""
    block = held.get("block") if held else None
    if not block:
        arguments = arguments_text(call.arguments)
        return {"type": CALL, "call_id": call.id, "name": call.name, "arguments": arguments}
    kind = block["type"]
    asked = call.arguments
    if kind == FREE:
        asked = arguments_object(asked).get("input")
    elif kind == CALL:
        asked = arguments_text(asked)
    said = {str(first_key(block, ASKED)): asked}
    return _sent(filled(block, call_id=call.id, name=call.name, **said))


def _sent(item: Message) -> Message:
    """Return the sent form of an item that came in this format: without null and unknown keys."""
    known = ITEM_KEYS.get(item.get("type", MESSAGE))
    if known is None:
        return as_sent(item, *OURS)
    there = ((key, held) for key, held in item.items() if held is not None)
    return {key: mended(held) for key, held in there if key in known}


def _said(message: Message, held: Message | None, *, alone: bool) -> list[Message]:
    """Return the content of a message as an item; no item if it has only calls."""
    role = message["role"]
    if held is not None and "outer" in held:
        return [_sent(filled(held["outer"], content=_own_content(message)))]
    content = message.get("content")
    said: str | list[Message]
    if role in ("system", "developer", "assistant"):
        said = _text_of(content)
    elif isinstance(content, str):
        said = sendable(content)
    else:
        said = told(content, SPEECH) or ""
    if not said and not alone:
        return []
    return [{"type": "message", "role": role if role in PARTS else "user", "content": said}]


def _text_of(content: Any) -> str:
    """Return a content as one text: an answer without an id may have no other content."""
    if isinstance(content, str):
        return sendable(content)
    return "\n\n".join(part["text"] for part in told(content, TEXTS_ALONE))


def _own_content(message: Message) -> Any:
    """Return a content unchanged; an empty list, which the API refuses, is replaced."""
    content = message.get("content") or ""
    if not isinstance(content, list):
        return content
    if is_unreadable(content):
        return [
            each
            for part in content
            for each in (
                part_told(part, SPEECH)
                if is_unreadable(part)
                else [as_sent(part) if isinstance(part, dict) else part]
            )
        ]
    return [as_sent(part) if isinstance(part, dict) else part for part in content]


def _output(message: Message) -> str | list[Message]:
    content = message.get("content")
    if isinstance(content, str):
        return sendable(content)
    if content is None or not isinstance(content, list):
        return _text_of(content)
    return told(content, SPEECH) or ""


def _text(text: str) -> Message:
    return {"type": "input_text", "text": text}


def _media(media: Media) -> Message | None:
    if media.type.startswith("image"):
        return {"type": "input_image", "image_url": sendable(media.url), "detail": "auto"}
    if media.type == PDF and media.data is not None:
        return {"type": "input_file", "filename": "document.pdf", "file_data": media.url}
    return None


def _own(part: Message) -> Message | None:
    """Return a part that has the shape of this format, whatever its origin."""
    kind = part.get("type")
    return {**OWN[kind], **as_sent(part)} if isinstance(kind, str) and kind in OWN else None


OWN_PARTS = ("input_text", "input_image", "input_file", "output_text", "refusal")
OWN: dict[str, Message] = {"input_text": {}, "input_image": {"detail": "auto"}, "input_file": {}}
"""Types of parts of a user's message, and the keys that each requires."""
SPEECH = Speech(_text, _media, _own)
TEXTS_ALONE = Speech(_text, lambda _: None)


# --- messages to rows and back --------------------------------------------------------------------

TEXTS = {CALL: ("call_id", "name", "arguments"), FREE: ("call_id", "name", "input")}
"""Types of calls, and the keys of each that hold texts."""


def is_told(message: Message) -> bool:
    """Recognize an item by its type, and a message by its type and the types of its parts."""
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in ITEM_KEYS:
        return False
    if kind == MESSAGE:
        content = message.get("content")
        if not isinstance(content, list) or not content:
            return False
        kinds = (part.get("type") for part in content if isinstance(part, dict))
        return all(isinstance(kind, str) and kind in OWN_PARTS for kind in kinds)
    return "role" not in message or "role" in ITEM_KEYS[kind]


def problem(message: Message) -> Problem | None:
    """Return why a message is no item; None if it is one."""
    if WIRE in message:
        return WIRE, "is no key of an item"
    if _is_speech(message):
        role = message.get("role")
        if not isinstance(role, str) or role not in PARTS or role == "tool":
            return "role", "Responses has system, developer, user, assistant"
        if "tool_calls" in message:
            return "tool_calls", "a call is an item of its own"
        if not isinstance(message.get("content"), str | list):
            return "content", "is a text or a list of parts"
        return None
    kind = message.get("type")
    if not isinstance(kind, str):
        return "type", "an item has a type, or a role and a content"
    no_text = (key for key in TEXTS.get(kind, ()) if not isinstance(message.get(key), str))
    key = next(no_text, None)
    return (key, f"is a text in a {kind}") if key else None


def _is_speech(message: Message) -> bool:
    return bool(message.get("type", MESSAGE) == MESSAGE)


def rows(message: Message) -> list[Message]:
    """Return an item as its row."""
    if _is_speech(message):
        shown = {"content": message["content"]}
        found = row(NAME, message["role"], shown, {})
        return together([found], message, {"outer": {**message, "content": None}})
    return together(
        [_row_of_item(message)],
        ({} if message["type"] in ("item_reference", SHELL) else message),
        {},
    )


def _row_of_item(item: Message) -> Message:
    kind = item["type"]
    paired = _paired_by(item)
    if not isinstance(item.get(paired), str):
        return row(NAME, "assistant", {}, {"block": item})
    if kind in RESULTS:
        return _row_of_call(item)
    if kind in RESULTS.values():
        answered = str(first_key(item, ANSWERED))
        shown = {"tool_call_id": item[paired], "content": item.get(answered)}
        return row(NAME, "tool", shown, {"block": emptied(item, paired, answered)})
    return row(NAME, "assistant", {}, {"block": item})


def _paired_by(item: Message) -> str:
    """Return the key whose value pairs a call with its result."""
    return "id" if item["type"] == SHELL and "call_id" not in item else "call_id"


def _row_of_call(item: Message) -> Message:
    asked = str(first_key(item, ASKED))
    arguments = item.get(asked)
    if item["type"] == FREE:
        arguments = {"input": arguments}
    name = item.get("name")
    named = name if isinstance(name, str) else item["type"].removesuffix("_call")
    function = {"name": named, "arguments": arguments}
    call = {"id": item["call_id"], "type": "function", "function": function}
    shown = {"content": None, "tool_calls": [call]}
    return row(NAME, "assistant", shown, {"block": emptied(item, "call_id", asked)})


def given(rows: Sequence[Message]) -> Message:
    """Return the original item from its row."""
    (one,) = rows
    held = wire_of(one)
    if "outer" in held:
        return filled(held["outer"], content=one["content"])
    block = held["block"]
    if one["role"] == "tool":
        said = {str(first_key(block, ANSWERED)): one["content"]}
        return filled(block, **{_paired_by(block): one["tool_call_id"]}, **said)
    if "tool_calls" not in one:
        return dict(block)
    (call,) = one["tool_calls"]
    asked = call["function"]["arguments"]
    said = {str(first_key(block, ASKED)): asked["input"] if block["type"] == FREE else asked}
    return filled(block, call_id=call["id"], **said)
