"""The OpenAI Responses format: a list of items, with separate items for calls and reasoning.

An item that came in this format is sent as it came, with its content and ids made fit for sending.
An item of a type that is not in `ITEM_KEYS` may belong to a later version of the API; it is sent
with all keys except those of the store. So is an item without a type, a role and a content, which
is one that the host has encrypted. The API refuses a reasoning item without the item that it
led to, so a reasoning item is left out if its next item is not sent or comes from another provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..messages import WIRE_KEY, Media, Message, is_unreadable
from .call_names import WORD_ALPHABET, AcceptedNames, fit_ids
from .chat_rows import (
    Problem,
    build_row,
    empty_keys,
    fill_keys,
    find_first_key,
    find_wire_values,
    get_wire_values,
    join_rows,
)
from .openai import CHAT_PART_TYPES, ITEM_FORMAT, render_arguments, replace_surrogates
from .parts import (
    PartWriter,
    clean_own_part,
    parse_arguments,
    replace_nested_surrogates,
    write_part,
    write_parts,
)
from .request_messages import ApiCall, PlacedMessage

MESSAGE_ITEM = "message"
ITEM_KEYS: Mapping[str, frozenset[str]] = {
    kind: frozenset(("type", "id", *keys.split()))
    for kind, keys in {
        MESSAGE_ITEM: "role content status phase",
        "additional_tools": "role tools",
        "apply_patch_call": "call_id caller operation status",
        "apply_patch_call_output": "call_id caller output status",
        "code_interpreter_call": "code container_id outputs status",
        "compaction": "encrypted_content",
        "compaction_trigger": "",
        "computer_call": "action actions call_id pending_safety_checks status",
        "computer_call_output": "acknowledged_safety_checks call_id output status",
        "configuration_update": "reasoning text",
        "custom_tool_call": "async call_id caller input name namespace",
        "custom_tool_call_output": "call_id caller output",
        "file_search_call": "queries results status",
        "function_call": "arguments async call_id caller name namespace status",
        "function_call_output": "call_id caller name namespace output status",
        "image_generation_call": (
            "action background error output_format quality result revised_prompt size status "
            "svg_usage"
        ),
        "item_reference": "",
        "local_shell_call": "action call_id status",
        "local_shell_call_output": "call_id output status",
        "mcp_approval_request": "arguments name server_label",
        "mcp_approval_response": "approval_request_id approve reason",
        "mcp_call": "approval_request_id arguments error name output server_label status",
        "mcp_list_tools": "error server_label tools",
        "program": "call_id code fingerprint",
        "program_output": "call_id result status",
        "reasoning": "content encrypted_content status summary",
        "shell_call": "action call_id caller environment status",
        "shell_call_output": "call_id caller max_output_length output status",
        "tool_search_call": "arguments call_id execution status",
        "tool_search_output": "call_id execution status tools",
        "web_search_call": "action status",
    }.items()
}
"""The keys that an item of each type may have in a request."""
RESULT_TYPES: Mapping[str, str] = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "function_call": "function_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
"""The types of calls that a client answers, with the types of their results."""


RESPONSES_NAME = ITEM_FORMAT
RESPONSES_ACCEPTED_NAMES = AcceptedNames(ids=WORD_ALPHABET, tools=WORD_ALPHABET)
CALL, FREE = "function_call", "custom_tool_call"
"""The types of calls that any text answers: calls of functions, and calls with a text as input."""
SHELL_RESULT = "local_shell_call_output"
"""A result that names its call under its own id, in the types of the provider's clients."""
PATCH_RESULT = "apply_patch_call_output"
TEXT_RESULT_TYPES = (f"{CALL}_output", f"{FREE}_output", SHELL_RESULT, PATCH_RESULT)
"""Types of results that are a text."""
CALL_INPUT_KEYS = ("arguments", "input", "action", "operation")
"""Keys for the input of a call."""
RESULT_CONTENT_KEYS = ("output", "tools")
"""Keys for the content of a result."""
SEARCH, FOUND = "tool_search_call", "tool_search_output"
"""The server's search for tools, and its result directly after it; those of a client have ids."""
ASKS, APPROVED = "mcp_approval_request", "mcp_approval_response"
"""An item that asks whether a tool may be called, and its answer."""
PROGRAM, ENDED = "program", "program_output"
"""An item that calls tools from its own code, and the item with its output."""
CALLER_KEY = "caller"
"""The key under which a call and its result name the program that made them."""
STORE_ITEM_KEYS = ("timestamp", "messageStatus")
"""Keys that no provider has, for items of unknown types."""
ASKING_ID_KEYS = {ASKS: "id", PROGRAM: "call_id"}
"""Types of items that another item answers, and the key of the id that the answer refers to."""
ANSWERING_ID_KEYS = {APPROVED: "approval_request_id", ENDED: "call_id"}
"""Types of items that answer another item, and the key under which they name it."""
RESPONSES_ID_KEYS = ("id", "approval_request_id")
"""Keys of an item for its own id, and for the id of another."""
RESPONSES_PDF_TYPE = "application/pdf"


def write_responses_items(placed: Sequence[PlacedMessage]) -> list[Message]:
    """Return a request as items."""
    writer = _collect_items(placed)
    items = _remove_interrupted_programs(writer.items) if writer.has_programs else writer.items
    return [fit_ids(item, RESPONSES_ID_KEYS) for item in items]


def list_unsent_items(placed: Sequence[PlacedMessage]) -> list[PlacedMessage]:
    """Return the items of this format that are left out because an item they need is missing."""
    writer = _collect_items(placed)
    there = {id(item) for item in _remove_interrupted_programs(writer.items)}
    return [each for each, item in writer.own if id(item) not in there]


def _collect_items(placed: Sequence[PlacedMessage]) -> _ItemWriter:
    writer = _ItemWriter()
    for each in placed:
        writer.add(each)
    writer.end_step()
    return writer


def _remove_interrupted_programs(items: list[Message]) -> list[Message]:
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
    sent = []
    for each in items:
        if each.get("type") == PROGRAM and str(each.get("call_id")) not in programs:
            continue
        caller = each.get(CALLER_KEY)
        if isinstance(caller, dict) and caller.get("caller_id") not in (None, *programs):
            sent.append({key: held for key, held in each.items() if key != CALLER_KEY})
        else:
            sent.append(each)
    return sent


class _ItemWriter:
    """The written items, the open calls among them by id, and the open requests for approval."""

    def __init__(self) -> None:
        self.items: list[Message] = []
        self.own: list[tuple[PlacedMessage, Message]] = []
        self.has_programs = False
        self._open: dict[str, tuple[int, ApiCall]] = {}
        self._asked: set[str] = set()

    def add(self, placed: PlacedMessage) -> None:
        """Add the items of one message."""
        message = placed.message
        if message["role"] == "tool":
            self.end_step()
            self._add(self._write_result(placed))
            return
        held = find_wire_values(message, RESPONSES_NAME)
        if held is None or message["role"] != "assistant":
            self.end_step()
        if held is not None and "block" in held and not placed.calls:
            self.own.append((placed, _clean_own_item(held["block"])))
            self._add_own(self.own[-1][1])
            return
        self._end_search()
        self.items.extend(_write_message_item(message, held, alone=not placed.calls))
        for call in placed.calls:
            self._open[call.id] = (len(self.items), call)
            self._add(_write_call_item(call, held))

    def _add(self, item: Message) -> None:
        if CALLER_KEY in item:
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
        kind = item.get("type", "")
        if kind == FOUND:
            is_sent = self._ends_with(SEARCH)
        else:
            self._end_search()
            asked = ANSWERING_ID_KEYS.get(kind)
            is_sent = asked is None or str(item.get(asked)) in self._asked
        if kind in ASKING_ID_KEYS:
            self.has_programs |= kind == PROGRAM
            self._asked.add(str(item.get(ASKING_ID_KEYS[kind])))
        if is_sent:
            self.items.append(item)

    def _ends_with(self, kind: str) -> bool:
        return bool(self.items) and self.items[-1].get("type") == kind

    def _write_result(self, placed: PlacedMessage) -> Message:
        """Return a result in the type that its call requires.

        If that is impossible, both are written as those of a function.
        """
        call_id = placed.call_id or ""
        place, call = self._open.pop(call_id, (0, None))
        kind = self.items[place]["type"] if call else CALL
        wanted = RESULT_TYPES.get(kind, f"{kind}_output")
        message = placed.message
        held = find_wire_values(message, RESPONSES_NAME)
        block = held.get("block") if held else None
        if block and block["type"] == wanted:
            content = message.get("content")
            is_plain = wanted in TEXT_RESULT_TYPES
            if is_plain or not (isinstance(content, str) or is_unreadable(content)):
                said = {
                    _find_pairing_key(block): placed.call_id,
                    str(find_first_key(block, RESULT_CONTENT_KEYS)): _write_result_output(message)
                    if is_plain
                    else content,
                }
                return _clean_own_item(fill_keys(block, **said))
        if call and wanted not in TEXT_RESULT_TYPES:
            wanted = RESULT_TYPES[CALL]
            self.items[place] = _write_call_item(call, None)
        output = _write_result_output(message)
        made: Message = {"type": wanted, "call_id": call_id, "output": output}
        if wanted == SHELL_RESULT:
            made["id"] = placed.call_id
        if wanted == PATCH_RESULT:
            is_failed = placed.seq is None or message.get("messageStatus") == "error"
            made["status"] = "failed" if is_failed else "completed"
        return made


def _write_call_item(call: ApiCall, held: Message | None) -> Message:
    """Return a call as a function's, or as its original item."""
    block = held.get("block") if held else None
    if not block:
        arguments = render_arguments(call.arguments)
        return {"type": CALL, "call_id": call.id, "name": call.name, "arguments": arguments}
    kind = block["type"]
    asked = call.arguments
    if kind == FREE:
        asked = parse_arguments(asked).get("input")
    elif kind == CALL:
        asked = render_arguments(asked)
    said = {str(find_first_key(block, CALL_INPUT_KEYS)): asked}
    return _clean_own_item(fill_keys(block, call_id=call.id, name=call.name, **said))


def _clean_own_item(item: Message) -> Message:
    """Return the sent form of an item that came in this format: without null and unknown keys."""
    known = None if is_shapeless_item(item) else ITEM_KEYS.get(item.get("type", MESSAGE_ITEM))
    if known is None:
        return clean_own_part(item, *STORE_ITEM_KEYS)
    return {
        key: held
        if type(held) is str and held.isascii()  # as most are
        else replace_nested_surrogates(held)
        for key, held in item.items()
        if held is not None and key in known
    }


def write_plain_item(item: Message) -> Message | None:
    """Return an item as it is sent, where nothing but itself decides about that; else None.

    Such are messages with words, calls of functions, and their results if they are texts.
    """
    kind = item.get("type", MESSAGE_ITEM)
    changed = item
    if CALLER_KEY in item:
        return None
    if kind == MESSAGE_ITEM:
        content, role = item.get("content"), item.get("role")
        if not content or role == "tool" or role not in CHAT_PART_TYPES:
            return None
        if is_unreadable(content):
            return None
        changed = {**item, "content": _write_own_content(item)}
    elif kind == CALL and "arguments" in item:
        changed = {**item, "arguments": render_arguments(item["arguments"])}
    elif kind != RESULT_TYPES[CALL] or type(item.get("output")) is not str:
        return None
    sent = _clean_own_item(changed)
    return fit_ids(sent, RESPONSES_ID_KEYS) if "id" in sent else sent


def _write_message_item(message: Message, held: Message | None, *, alone: bool) -> list[Message]:
    """Return the content of a message as an item; no item if it has only calls."""
    role = message["role"]
    if held is not None and "outer" in held:
        return [_clean_own_item(fill_keys(held["outer"], content=_write_own_content(message)))]
    content = message.get("content")
    said: str | list[Message]
    if role in ("system", "developer", "assistant"):
        said = _render_item_text(content)
    elif isinstance(content, str):
        said = replace_surrogates(content)
    else:
        said = write_parts(content, RESPONSES_PART_WRITER) or ""
    if not said and not alone:
        return []
    return [
        {"type": "message", "role": role if role in CHAT_PART_TYPES else "user", "content": said}
    ]


def _render_item_text(content: Any) -> str:
    """Return a content as one text: an answer without an id may have no other content."""
    if isinstance(content, str):
        return replace_surrogates(content)
    return "\n\n".join(part["text"] for part in write_parts(content, RESPONSES_TEXT_WRITER))


def _write_own_content(message: Message) -> Any:
    """Return a content unchanged; an empty list, which the API refuses, is replaced."""
    content = message.get("content") or ""
    if not isinstance(content, list):
        return content
    if is_unreadable(content):
        return [
            each
            for part in content
            for each in (
                write_part(part, RESPONSES_PART_WRITER)
                if is_unreadable(part)
                else [clean_own_part(part) if isinstance(part, dict) else part]
            )
        ]
    return [clean_own_part(part) if isinstance(part, dict) else part for part in content]


def _write_result_output(message: Message) -> str | list[Message]:
    content = message.get("content")
    if isinstance(content, str):
        return replace_surrogates(content)
    if content is None or not isinstance(content, list):
        return _render_item_text(content)
    return write_parts(content, RESPONSES_PART_WRITER) or ""


def _build_input_text(text: str) -> Message:
    return {"type": "input_text", "text": text}


def _build_input_media(media: Media) -> Message | None:
    if media.type.startswith("image"):
        return {"type": "input_image", "image_url": replace_surrogates(media.url), "detail": "auto"}
    if media.type == RESPONSES_PDF_TYPE and media.data is not None:
        return {"type": "input_file", "filename": "document.pdf", "file_data": media.url}
    return None


def _write_input_part(part: Message) -> Message | None:
    """Return a part that has the shape of this format, whatever its origin."""
    kind = part.get("type")
    return (
        {**INPUT_PART_DEFAULTS[kind], **clean_own_part(part)}
        if isinstance(kind, str) and kind in INPUT_PART_DEFAULTS
        else None
    )


RESPONSES_PART_TYPES = ("input_text", "input_image", "input_file", "output_text", "refusal")
INPUT_PART_DEFAULTS: dict[str, Message] = {
    "input_text": {},
    "input_image": {"detail": "auto"},
    "input_file": {},
}
"""Types of parts of a user's message, and the keys that each requires."""
RESPONSES_PART_WRITER = PartWriter(_build_input_text, _build_input_media, _write_input_part)
RESPONSES_TEXT_WRITER = PartWriter(_build_input_text, lambda _: None)


# --- messages to rows and back --------------------------------------------------------------------

CALL_TEXT_KEYS = {CALL: ("call_id", "name", "arguments"), FREE: ("call_id", "name", "input")}
"""Types of calls, and the keys of each that hold texts."""


def is_responses_item(message: Message) -> bool:
    """Recognize an item by its type, and a message by its type and the types of its parts."""
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in ITEM_KEYS:
        return False
    if kind == MESSAGE_ITEM:
        content = message.get("content")
        if not isinstance(content, list) or not content:
            return False
        kinds = (part.get("type") for part in content if isinstance(part, dict))
        return all(isinstance(kind, str) and kind in RESPONSES_PART_TYPES for kind in kinds)
    return "role" not in message or "role" in ITEM_KEYS[kind]


def find_responses_problem(message: Message) -> Problem | None:
    """Return why a message is no item; None if it is one."""
    if WIRE_KEY in message:
        return WIRE_KEY, "is no key of an item"
    if is_shapeless_item(message):
        return None
    if _is_message_item(message):
        role = message.get("role")
        if not isinstance(role, str) or role not in CHAT_PART_TYPES or role == "tool":
            return "role", "Responses has system, developer, user, assistant"
        if "tool_calls" in message:
            return "tool_calls", "a call is an item of its own"
        if not isinstance(message.get("content"), str | list):
            return "content", "is a text or a list of parts"
        return None
    kind = message.get("type")
    if not isinstance(kind, str):
        return "type", "an item has a type, or a role and a content"
    no_text = (key for key in CALL_TEXT_KEYS.get(kind, ()) if not isinstance(message.get(key), str))
    key = next(no_text, None)
    return (key, f"is a text in a {kind}") if key else None


def _is_message_item(message: Message) -> bool:
    kind = message.get("type", MESSAGE_ITEM)
    return bool(kind == MESSAGE_ITEM) and not is_shapeless_item(message)


def is_shapeless_item(message: Message) -> bool:
    """Tell whether an item has no shape that the API knows, such as one that a host encrypted."""
    return message.keys().isdisjoint(("type", "role", "content"))


def build_responses_rows(message: Message) -> list[Message]:
    """Return an item as its row."""
    if _is_message_item(message):
        shown = {"content": message["content"]}
        found = build_row(RESPONSES_NAME, message["role"], shown, {})
        return join_rows([found], message, {"outer": {**message, "content": None}})
    return join_rows(
        [_build_item_row(message)],
        {} if message.get("type") in ("item_reference", SHELL_RESULT) else message,
        {},
    )


def _build_item_row(item: Message) -> Message:
    kind = item.get("type", "")
    paired = _find_pairing_key(item)
    if not isinstance(item.get(paired), str):
        return build_row(RESPONSES_NAME, "assistant", {}, {"block": item})
    if kind in RESULT_TYPES:
        asked = str(find_first_key(item, CALL_INPUT_KEYS))
        arguments = {"input": item.get(asked)} if kind == FREE else item.get(asked)
        name = item.get("name")
        named = name if isinstance(name, str) else kind.removesuffix("_call")
        function = {"name": named, "arguments": arguments}
        call = {"id": item["call_id"], "type": "function", "function": function}
        shown = {"content": None, "tool_calls": [call]}
        beside = {"block": empty_keys(item, "call_id", asked)}
        return build_row(RESPONSES_NAME, "assistant", shown, beside)
    if kind in RESULT_TYPES.values():
        answered = str(find_first_key(item, RESULT_CONTENT_KEYS))
        shown = {"tool_call_id": item[paired], "content": item.get(answered)}
        return build_row(
            RESPONSES_NAME, "tool", shown, {"block": empty_keys(item, paired, answered)}
        )
    return build_row(RESPONSES_NAME, "assistant", {}, {"block": item})


def _find_pairing_key(item: Message) -> str:
    """Return the key whose value pairs a call with its result."""
    return "id" if item.get("type") == SHELL_RESULT and "call_id" not in item else "call_id"


def restore_responses_item(rows: Sequence[Message]) -> Message:
    """Return the original item from its row."""
    (one,) = rows
    held = get_wire_values(one)
    if "outer" in held:
        return fill_keys(held["outer"], content=one["content"])
    block = held["block"]
    if one["role"] == "tool":
        said = {str(find_first_key(block, RESULT_CONTENT_KEYS)): one["content"]}
        return fill_keys(block, **{_find_pairing_key(block): one["tool_call_id"]}, **said)
    if "tool_calls" not in one:
        return dict(block)
    (call,) = one["tool_calls"]
    asked = call["function"]["arguments"]
    said = {
        str(find_first_key(block, CALL_INPUT_KEYS)): asked["input"]
        if block["type"] == FREE
        else asked
    }
    return fill_keys(block, call_id=call["id"], **said)
