"""The Gemini format: contents of the user and the model, made of parts, with separate system text.

A function response has the name of its call. A call of a thinking model carries a signature, which
is sent back unchanged. For calls of other models the provider documents a replacement text, which
the first call of each content needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..messages import UNKNOWN_TOOL, WIRE_KEY, Media, Message
from .call_names import WORD_ALPHABET, AcceptedNames, Alphabet
from .chat_rows import (
    CALL,
    PART,
    Problem,
    build_outer_keys,
    build_row,
    empty_keys,
    fill_keys,
    find_first_key,
    find_wire_values,
    get_wire_values,
    index_calls_by_position,
    join_rows,
    order_by_plan,
    restore_outer_keys,
    sort_blocks,
    split_runs,
)
from .openai import replace_surrogates
from .parts import (
    PartWriter,
    clean_own_part,
    list_parts,
    parse_arguments,
    render_readable_json,
    replace_nested_surrogates,
    write_part,
    write_parts,
)
from .request_messages import ApiCall, PlacedMessage
from .turns import (
    FIRST_USER_TEXT,
    TURN_SYSTEM_ROLES,
    SideTurn,
    join_turns,
    render_marked_system,
    render_system_text,
)

GEMINI_NAME = "gemini"
GEMINI_ACCEPTED_NAMES = AcceptedNames(
    ids=WORD_ALPHABET, tools=Alphabet(64, re.compile(r"[^A-Za-z0-9_.:-]"), begins="_")
)
SIGNATURE_KEYS = ("thoughtSignature", "thought_signature")
FUNCTION_CALL_KEYS = ("functionCall", "function_call")
FUNCTION_RESPONSE_KEYS = ("functionResponse", "function_response")
"""Keys in the two spellings of the API and of its client for Python."""
MISSING_SIGNATURE = "skip_thought_signature_validator"
"""The replacement for the signature of a call by another model."""
WHOLE_RESPONSE_KEY = "response"
"""The type and key of a part that is a whole response, for responses with pictures."""
RESPONSE_TEXT_KEYS = ("output", "result", "content", "error")
"""Keys that hold the text of a response that has only one text."""


def write_gemini_contents(
    placed: Sequence[PlacedMessage], beginning: str = FIRST_USER_TEXT
) -> list[Message]:
    """Return a request as contents in which the user and the model take turns."""
    writer = _ContentWriter({})
    contents: list[Message] = []
    for turn in join_turns(map(writer.build_turn, placed), _build_gemini_text(beginning)):
        calls = () if turn.is_users else (part for part in turn.said if "functionCall" in part)
        first = next(iter(calls), None)
        if first is not None and not any(map(first.get, SIGNATURE_KEYS)):
            first[SIGNATURE_KEYS[0]] = MISSING_SIGNATURE
        contents.append({"role": "user" if turn.is_users else "model", "parts": turn.said})
    return contents


def write_gemini_parts(placed: PlacedMessage) -> list[Message]:
    """Return the parts that are sent of one message; the name of a result is that of its call."""
    message = placed.message
    names = {} if placed.call_id is None else {placed.call_id: message["name"]}
    return _ContentWriter(names).build_turn(placed).said


def write_gemini_system(placed: Sequence[PlacedMessage]) -> str | None:
    """Return system messages as the instruction that is sent separately."""
    texts = (render_system_text(each) for each in placed)
    return "\n\n".join(text for text in texts if text.strip()) or None


class _ContentWriter:
    """Writes the messages of a request and keeps the names of their calls by id."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def build_turn(self, placed: PlacedMessage) -> SideTurn:
        """Return the turn of one message."""
        message = placed.message
        role = message["role"]
        if role == "assistant":
            for call in placed.calls:
                self._names[call.id] = call.name
        if placed.written is not None:
            return SideTurn(role != "assistant", placed.written)
        if role == "assistant":
            return SideTurn(False, _write_gemini_answer(placed))
        if role == "tool":
            return SideTurn(True, self._write_response(placed))
        if role in TURN_SYSTEM_ROLES:
            said = render_marked_system(placed)
            return SideTurn(True, [_build_gemini_text(said)] if said else [])
        return SideTurn(
            True,
            write_parts(
                message.get("content"),
                (
                    GEMINI_PART_WRITER
                    if find_wire_values(message, GEMINI_NAME) is None
                    else GEMINI_OWN_WRITER
                ),
            ),
        )

    def _write_response(self, placed: PlacedMessage) -> list[Message]:
        """Return a result as its part, followed by its pictures."""
        call_id = placed.call_id or ""
        name = self._names.pop(call_id, call_id)
        message = placed.message
        response = _write_response_object(message)
        part = {"functionResponse": {"id": call_id, "name": name, "response": response}}
        if isinstance(message.get("content"), list):
            return [
                part,
                *[
                    part
                    for part in write_parts(message["content"], GEMINI_PART_WRITER)
                    if "text" not in part
                ],
            ]
        return [part]


def _write_response_object(message: Message) -> Message:
    """Return the content of a result as a response; its key tells whether the call failed."""
    content = message.get("content")
    key = "error" if message.get("messageStatus") == "error" else "output"
    if isinstance(content, str):
        text = replace_surrogates(content)
    elif isinstance(content, list):
        text = "\n\n".join(part["text"] for part in write_parts(content, GEMINI_TEXT_WRITER))
    else:
        text = "" if content is None else render_readable_json(content)
    held = find_wire_values(message, GEMINI_NAME)
    if held is None:
        return {key: text}
    said = content[0] if isinstance(content, list) and content else content
    if isinstance(said, dict) and said.get("type") != "text":
        return replace_nested_surrogates(said.get(WHOLE_RESPONSE_KEY, said))  # type: ignore[no-any-return]
    return {held.get("said", key): text}


def _build_gemini_text(text: str) -> Message:
    return {"text": text}


def _build_inline_data(media: Media) -> Message | None:
    if media.data is None or "/" not in media.type:
        return None
    return {"inlineData": {"mimeType": media.type, "data": media.data}}


def _write_gemini_part(part: Message) -> Message | None:
    """Return a part of a message that came in this format, without its type in the store.

    A blank text is left out, unless it has a signature that the provider requires.
    """
    is_text = part.get("type") == "text"
    if is_text and not part["text"].strip() and not any(map(part.get, SIGNATURE_KEYS)):
        return None
    return clean_own_part(part, "type")


GEMINI_PART_WRITER = PartWriter(_build_gemini_text, _build_inline_data)
GEMINI_TEXT_WRITER = PartWriter(_build_gemini_text, lambda _: None)
GEMINI_OWN_WRITER = PartWriter(_build_gemini_text, _build_inline_data, _write_gemini_part)


def _write_gemini_answer(placed: PlacedMessage) -> list[Message]:
    """Return the thoughts, texts and calls of the model, in their own order if it is known."""
    message = placed.message
    held = find_wire_values(message, GEMINI_NAME)
    content = message.get("content")
    if held is None:
        return [*write_parts(content, GEMINI_TEXT_WRITER), *map(_build_function_call, placed.calls)]
    parts: list[Message] = []
    for place, there in order_by_plan(
        held.get("plan", ()), list_parts(content), index_calls_by_position(placed.calls)
    ):
        if place == CALL:
            came = held.get("calls", {}).get(str(there.position), {})
            own = clean_own_part(came, *FUNCTION_CALL_KEYS)
            parts.append({**_build_function_call(there), **own})
        elif place == PART:
            parts.extend(write_part(there, GEMINI_OWN_WRITER))
        else:
            parts.append(clean_own_part(there))
    return parts


def _build_function_call(call: ApiCall) -> Message:
    args = parse_arguments(call.arguments)
    return {"functionCall": {"id": call.id, "name": call.name, "args": args}}


# --- messages to rows and back --------------------------------------------------------------------

GEMINI_ROLES = ("user", "model", "function", None)
GEMINI_FOREIGN_KEYS = ("content", "tool_calls", "tool_call_id", WIRE_KEY)
GEMINI_PART_TYPES = {"text": "text"} | dict.fromkeys(("inlineData", "inline_data"), "file")
"""Key of a part → its type as a part of a chat. The type of any other part is its first key with a
value that is not null: a part may have null under all keys except its own.
"""


def is_gemini_content(message: Message) -> bool:
    """Recognize a message by its parts."""
    return "parts" in message and find_gemini_problem(message) is None


def find_gemini_problem(message: Message) -> Problem | None:
    """Return why a message is not of this format; None if it is."""
    role = message.get("role")
    if role not in GEMINI_ROLES:
        return "role", "Gemini has user, model and function"
    foreign = find_first_key(message, GEMINI_FOREIGN_KEYS)
    if foreign:
        return foreign, "is no key of a Gemini content"
    parts = message.get("parts")
    if not isinstance(parts, list):
        return "parts", "is a list of parts"
    return None if all(_is_valid_part(part, role) for part in parts) else ("parts", PART_PROBLEM)


PART_PROBLEM = (
    "a part is an object without a type that says something; a functionCall is the model's, and "
    "has a name and args, a functionResponse is the user's, and has a name and a response"
)


def _is_valid_part(part: Any, role: str | None) -> bool:
    if not isinstance(part, dict) or "type" in part or _find_set_key(part, part) is None:
        return False
    call, response = (
        _get_first_value(part, FUNCTION_CALL_KEYS),
        _get_first_value(part, FUNCTION_RESPONSE_KEYS),
    )
    if call is not None:
        return (
            role == "model" and _is_named_object(call) and isinstance(call.get("args"), dict | None)
        )
    if response is not None:
        return (
            role != "model"
            and _is_named_object(response)
            and isinstance(response["response"], dict)
        )
    return isinstance(part.get("text"), str | None)


def _find_set_key(part: Message, keys: Iterable[str]) -> str | None:
    """Return the first of some keys under which a part has a value."""
    return next((key for key in keys if part.get(key) is not None), None)


def _get_first_value(part: Message, keys: Sequence[str]) -> Any:
    """Return the value of a part under the first of some keys; None if it has none of them."""
    key = _find_set_key(part, keys)
    return None if key is None else part[key]


def _is_named_object(held: Any) -> bool:
    """Tell whether a call or a response has a name."""
    if not isinstance(held, dict) or not isinstance(held.get("name"), str):
        return False
    return isinstance(held.get("id"), str | None)


def build_gemini_rows(message: Message) -> list[Message]:
    """Return a message as rows: one for each response, and one for each run of other parts."""
    parts = message["parts"]
    if message.get("role") != "model":
        runs = split_runs(parts, lambda part: _find_set_key(part, FUNCTION_RESPONSE_KEYS))
        rows = [_build_part_row(run) for run in runs]
        return join_rows(rows, message, build_outer_keys(message, "parts", "user"))
    found = sort_blocks(parts, _classify_part, _add_part_type, _parse_function_call)
    calls = [part for part in parts if _classify_part(part) == CALL]
    skeletons = {
        str(number): _strip_row_values(part, FUNCTION_CALL_KEYS)
        for number, part in enumerate(calls)
    }
    beside = {"calls": skeletons} if skeletons else {}
    row = build_row(GEMINI_NAME, "assistant", found.shown, found.order | beside)
    return join_rows([row], message, build_outer_keys(message, "parts", "model"))


def _classify_part(part: Message) -> str:
    if _find_set_key(part, FUNCTION_CALL_KEYS):
        return CALL
    return "" if part.get("thought") is True else PART


def _add_part_type(part: Message) -> Message:
    kind = _find_set_key(part, GEMINI_PART_TYPES)
    return {"type": GEMINI_PART_TYPES[kind] if kind else _find_set_key(part, part), **part}


def _parse_function_call(part: Message) -> Message:
    call = _get_first_value(part, FUNCTION_CALL_KEYS)
    function = {"name": call["name"], "arguments": call.get("args")}
    return {"id": call.get("id") or call["name"], "type": "function", "function": function}


def _strip_row_values(part: Message, keys: Sequence[str]) -> Message:
    """Return a part with null for the values of a call or a response that its row holds."""
    key = str(_find_set_key(part, keys))
    media = ("parts",) if keys is FUNCTION_RESPONSE_KEYS and _has_response_parts(part[key]) else ()
    return {**part, key: empty_keys(part[key], "args", "response", *media)}


def _build_part_row(run: list[Message]) -> Message:
    """Return the row of a run: of a response, or of other parts.

    The content of a response with parts of its own is a list that begins with its values.
    """
    if not run or not _find_set_key(run[0], FUNCTION_RESPONSE_KEYS):
        return build_row(GEMINI_NAME, "user", {"content": [*map(_add_part_type, run)]}, {})
    (part,) = run
    held = _get_first_value(part, FUNCTION_RESPONSE_KEYS)
    response = held["response"]
    key = find_first_key(response, RESPONSE_TEXT_KEYS) if len(response) == 1 else None
    if key is None or not isinstance(response[key], str):
        key, content = None, response
    else:
        content = response[key]
    if _has_response_parts(held):
        kind = "text" if key else WHOLE_RESPONSE_KEY
        content = [{"type": kind, kind: content}, *map(_add_part_type, held["parts"])]
    named = {"tool_call_id": held.get("id") or held["name"], "name": held["name"]}
    shown = {**named, "content": content}
    if key == "error":
        shown["messageStatus"] = "error"
    beside = {"block": _strip_row_values(part, FUNCTION_RESPONSE_KEYS)}
    return build_row(GEMINI_NAME, "tool", shown, {**beside, "said": key} if key else beside)


def _has_response_parts(response: Message) -> bool:
    """Tell whether a response has parts of its own, such as pictures."""
    parts = response.get("parts")
    if not isinstance(parts, list) or not parts:
        return False
    return all(isinstance(part, dict) and _is_valid_part(part, None) for part in parts)


def restore_gemini_content(rows: Sequence[Message]) -> Message:
    """Return the original message from its rows."""
    role = "model" if rows[0]["role"] == "assistant" else "user"
    outer = restore_outer_keys(rows[-1], "parts", role)
    return fill_keys(outer, parts=[part for each in rows for part in _restore_parts(each)])


def build_redacted_part(row: Message, redacted: Message) -> Message:
    """Return the values kept of a redacted part: the call that it responds to.

    A response without an id is known by its name, so a removed name is replaced by the stored id.
    """
    if redacted["role"] != "tool":
        return {}
    block = get_wire_values(row)["block"]
    key = str(_find_set_key(block, FUNCTION_RESPONSE_KEYS))
    said = "error" if redacted.get("messageStatus") == "error" else RESPONSE_TEXT_KEYS[0]
    call_id, has_id = redacted["tool_call_id"], bool(block[key].get("id"))
    name = redacted.get("name") or (UNKNOWN_TOOL if has_id else call_id)
    named = {"id": call_id, "name": name} if has_id else {"name": name}
    return {"block": {key: {**named, "response": None}}, "said": said}


def _restore_parts(row: Message) -> list[Message]:
    held, content = get_wire_values(row), row.get("content")
    if row["role"] == "tool":
        media: Message = {}
        if isinstance(content, list):
            first, *parts = content
            content = first.get("text", first.get(WHOLE_RESPONSE_KEY))
            media = {"parts": [*map(_remove_part_type, parts)]}
        response = {held["said"]: content} if "said" in held else content
        return [
            _restore_row_values(held["block"], FUNCTION_RESPONSE_KEYS, response=response, **media)
        ]
    if isinstance(content, str):
        return [_build_gemini_text(content)]
    skeletons = held.get("calls", {})
    calls = {
        number: _restore_row_values(
            skeletons[str(number)], FUNCTION_CALL_KEYS, args=call["function"]["arguments"]
        )
        for number, call in enumerate(row.get("tool_calls", ()))
    }
    places = order_by_plan(held.get("plan", ()), content or [], calls)
    return [_remove_part_type(part) if place == PART else part for place, part in places]


def _restore_row_values(part: Message, keys: Sequence[str], **said: Any) -> Message:
    """Return a part with the values of its row filled in."""
    key = str(_find_set_key(part, keys))
    return {**part, key: fill_keys(part[key], **said)}


def _remove_part_type(part: Message) -> Message:
    return {key: held for key, held in part.items() if key != "type"}
