"""The Gemini format: contents of the user and the model, made of parts, with separate system text.

A function response has the name of its call. A call of a thinking model carries a signature, which
is sent back unchanged. For calls of other models the provider documents a replacement text, which
the first call of each content needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..messages import UNKNOWN_TOOL, WIRE, Media, Message
from .kept import CALL, PART, by_position, kept, planned
from .naming import WORD, Alphabet, Names
from .openai import sendable
from .parts import Speech, arguments_object, as_json, as_sent, mended, part_told, parts_of, told
from .placed import ApiCall, Placed
from .rows import (
    Problem,
    emptied,
    filled,
    first_key,
    outer_from,
    outer_of,
    row,
    sorted_out,
    together,
    wire_of,
)
from .turns import BEGINNING, SYSTEM_ROLES, Turn, alternating, marked_system, system_text

NAME = "gemini"
NAMES = Names(ids=WORD, tools=Alphabet(64, re.compile(r"[^A-Za-z0-9_.:-]"), begins="_"))
SIGNATURES = ("thoughtSignature", "thought_signature")
CALLS = ("functionCall", "function_call")
RESPONSES = ("functionResponse", "function_response")
"""Keys in the two spellings of the API and of its client for Python."""
UNSIGNED = "skip_thought_signature_validator"
"""The replacement for the signature of a call by another model."""
WHOLE = "response"
"""The type and key of a part that is a whole response, for responses with pictures."""
SAID = ("output", "result", "content", "error")
"""Keys that hold the text of a response that has only one text."""


def write(placed: Sequence[Placed], beginning: str = BEGINNING) -> list[Message]:
    """Return a request as contents in which the user and the model take turns."""
    writing = _Writing()
    turns = alternating(map(writing.spoken, placed), _text(beginning))
    return [_content(turn) for turn in turns]


def system(placed: Sequence[Placed]) -> str | None:
    """Return system messages as the instruction that is sent separately."""
    texts = (system_text(each) for each in placed)
    return "\n\n".join(text for text in texts if text.strip()) or None


def _content(turn: Turn) -> Message:
    if turn.is_users:
        return {"role": "user", "parts": turn.said}
    first = next((part for part in turn.said if "functionCall" in part), None)
    if first is not None and not any(map(first.get, SIGNATURES)):
        first[SIGNATURES[0]] = UNSIGNED
    return {"role": "model", "parts": turn.said}


class _Writing:
    """Writes the messages of a request and keeps the names of their calls by id."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def spoken(self, placed: Placed) -> Turn:
        """Return the turn of one message."""
        message = placed.message
        role = message["role"]
        if role == "assistant":
            for call in placed.calls:
                self._names[call.id] = call.name
            return Turn(False, _answer(placed))
        if role == "tool":
            return Turn(True, self._response(placed))
        if role in SYSTEM_ROLES:
            said = marked_system(placed)
            return Turn(True, [_text(said)] if said else [])
        return Turn(
            True, told(message.get("content"), (SPEECH if kept(message, NAME) is None else OWN))
        )

    def _response(self, placed: Placed) -> list[Message]:
        """Return a result as its part, followed by its pictures."""
        call_id = placed.call_id or ""
        name = self._names.pop(call_id, call_id)
        message = placed.message
        response = _said_by_tool(message)
        part = {"functionResponse": {"id": call_id, "name": name, "response": response}}
        if isinstance(message.get("content"), list):
            return [
                part,
                *[part for part in told(message["content"], SPEECH) if "text" not in part],
            ]
        return [part]


def _said_by_tool(message: Message) -> Message:
    """Return the content of a result as a response; its key tells whether the call failed."""
    content = message.get("content")
    key = "error" if message.get("messageStatus") == "error" else "output"
    text = sendable(content) if isinstance(content, str) else _as_text(content)
    held = kept(message, NAME)
    if held is None:
        return {key: text}
    said = content[0] if isinstance(content, list) and content else content
    if isinstance(said, dict) and said.get("type") != "text":
        return mended(said.get(WHOLE, said))  # type: ignore[no-any-return]
    return {held.get("said", key): text}


def _as_text(content: Any) -> str:
    if isinstance(content, list):
        return "\n\n".join(part["text"] for part in told(content, TEXTS_ALONE))
    return "" if content is None else as_json(content)


def _text(text: str) -> Message:
    return {"text": text}


def _media(media: Media) -> Message | None:
    if media.data is None or "/" not in media.type:
        return None
    return {"inlineData": {"mimeType": media.type, "data": media.data}}


def _own(part: Message) -> Message | None:
    """Return a part of a message that came in this format, without its type in the store.

    A blank text is left out, unless it has a signature that the provider requires.
    """
    is_text = part.get("type") == "text"
    if is_text and not part["text"].strip() and not any(map(part.get, SIGNATURES)):
        return None
    return as_sent(part, "type")


SPEECH = Speech(_text, _media)
TEXTS_ALONE = Speech(_text, lambda _: None)
OWN = Speech(_text, _media, _own)


def _answer(placed: Placed) -> list[Message]:
    """Return the thoughts, texts and calls of the model, in their own order if it is known."""
    message = placed.message
    held = kept(message, NAME)
    content = message.get("content")
    if held is None:
        return [*told(content, TEXTS_ALONE), *map(_bare_call, placed.calls)]
    plan, parts = held.get("plan", ()), parts_of(content)
    places = planned(plan, parts, by_position(placed.calls))
    return [part for place, value in places for part in _parts(place, value, held)]


def _parts(place: str, held: Any, own: Message) -> Iterator[Message]:
    """Yield the parts at one place of an answer."""
    if place == CALL:
        yield _call(held, own)
    elif place == PART:
        yield from part_told(held, OWN)
    else:
        yield as_sent(held)


def _bare_call(call: ApiCall) -> Message:
    args = arguments_object(call.arguments)
    return {"functionCall": {"id": call.id, "name": call.name, "args": args}}


def _call(call: ApiCall, own: Message) -> Message:
    """Return a call as its part, with all other keys of the original part."""
    came = own.get("calls", {}).get(str(call.position), {})
    return {**_bare_call(call), **as_sent(came, *CALLS)}


# --- messages to rows and back --------------------------------------------------------------------

ROLES = ("user", "model", "function", None)
FOREIGN_KEYS = ("content", "tool_calls", "tool_call_id", WIRE)
TYPES = {"text": "text"} | dict.fromkeys(("inlineData", "inline_data"), "file")
"""Key of a part → its type as a part of a chat. The type of any other part is its first key with a
value that is not null: a part may have null under all keys except its own.
"""


def is_told(message: Message) -> bool:
    """Recognize a message by its parts."""
    return "parts" in message and problem(message) is None


def problem(message: Message) -> Problem | None:
    """Return why a message is not of this format; None if it is."""
    role = message.get("role")
    if role not in ROLES:
        return "role", "Gemini has user, model and function"
    foreign = first_key(message, FOREIGN_KEYS)
    if foreign:
        return foreign, "is no key of a Gemini content"
    parts = message.get("parts")
    if not isinstance(parts, list):
        return "parts", "is a list of parts"
    return None if all(_fits(part, role) for part in parts) else ("parts", UNFIT)


UNFIT = (
    "a part is an object without a type that says something; a functionCall is the model's, and "
    "has a name and args, a functionResponse is the user's, and has a name and a response"
)


def _fits(part: Any, role: str | None) -> bool:
    if not isinstance(part, dict) or "type" in part or _said_key(part, part) is None:
        return False
    call, response = _within(part, CALLS), _within(part, RESPONSES)
    if call is not None:
        return role == "model" and _is_whole(call) and isinstance(call.get("args"), dict | None)
    if response is not None:
        return role != "model" and _is_whole(response) and isinstance(response["response"], dict)
    return isinstance(part.get("text"), str | None)


def _said_key(part: Message, keys: Iterable[str]) -> str | None:
    """Return the first of some keys under which a part has a value."""
    return next((key for key in keys if part.get(key) is not None), None)


def _within(part: Message, keys: Sequence[str]) -> Any:
    """Return the value of a part under the first of some keys; None if it has none of them."""
    key = _said_key(part, keys)
    return None if key is None else part[key]


def _is_whole(held: Any) -> bool:
    """Tell whether a call or a response has a name."""
    if not isinstance(held, dict) or not isinstance(held.get("name"), str):
        return False
    return isinstance(held.get("id"), str | None)


def rows(message: Message) -> list[Message]:
    """Return a message as rows: one for each response, and one for each run of other parts."""
    parts = message["parts"]
    if message.get("role") == "model":
        return together([_answer_row(parts)], message, outer_of(message, "parts", "model"))
    found = [_user_row(run) for run in _runs(parts)]
    return together(found, message, outer_of(message, "parts", "user"))


def _answer_row(parts: list[Message]) -> Message:
    found = sorted_out(parts, _place_of, _typed, _row_call)
    called = [part for part in parts if _place_of(part) == CALL]
    skeletons = {str(number): _without_said(part, CALLS) for number, part in enumerate(called)}
    beside = {"calls": skeletons} if skeletons else {}
    return row(NAME, "assistant", found.shown, found.order | beside)


def _place_of(part: Message) -> str:
    if _said_key(part, CALLS):
        return CALL
    return "" if part.get("thought") is True else PART


def _typed(part: Message) -> Message:
    kind = _said_key(part, TYPES)
    return {"type": TYPES[kind] if kind else _said_key(part, part), **part}


def _row_call(part: Message) -> Message:
    call = _within(part, CALLS)
    function = {"name": call["name"], "arguments": call.get("args")}
    return {"id": call.get("id") or call["name"], "type": "function", "function": function}


def _without_said(part: Message, keys: Sequence[str]) -> Message:
    """Return a part with null for the values of a call or a response that its row holds."""
    key = str(_said_key(part, keys))
    media = ("parts",) if keys is RESPONSES and _has_media(part[key]) else ()
    return {**part, key: emptied(part[key], "args", "response", *media)}


def _runs(parts: list[Message]) -> list[list[Message]]:
    """Return the parts of a user in runs: each response alone; one empty run if there are none."""
    runs: list[list[Message]] = []
    for part in parts:
        if not runs or _said_key(part, RESPONSES) or _said_key(runs[-1][0], RESPONSES):
            runs.append([part])
        else:
            runs[-1].append(part)
    return runs or [[]]


def _user_row(run: list[Message]) -> Message:
    if not run or not _said_key(run[0], RESPONSES):
        return row(NAME, "user", {"content": [*map(_typed, run)]}, {})
    (part,) = run
    held = _within(part, RESPONSES)
    response = held["response"]
    key = first_key(response, SAID) if len(response) == 1 else None
    said = response[key] if key else None
    if not isinstance(said, str):
        key, said = None, response
    content = _with_media(said, held["parts"]) if _has_media(held) else said
    named = {"tool_call_id": held.get("id") or held["name"], "name": held["name"]}
    shown = {**named, "content": content}
    if key == "error":
        shown["messageStatus"] = "error"
    beside = {"block": _without_said(part, RESPONSES)}
    return row(NAME, "tool", shown, {**beside, "said": key} if key else beside)


def _has_media(response: Message) -> bool:
    """Tell whether a response has parts of its own, such as pictures."""
    parts = response.get("parts")
    if not isinstance(parts, list) or not parts:
        return False
    return all(isinstance(part, dict) and _fits(part, None) for part in parts)


def _with_media(said: Any, parts: list[Message]) -> list[Message]:
    """Return a content with the values of a response as its first part, then its own parts."""
    is_text = isinstance(said, str)
    first = {"type": "text", "text": said} if is_text else {"type": WHOLE, WHOLE: said}
    return [first, *map(_typed, parts)]


def given(rows: Sequence[Message]) -> Message:
    """Return the original message from its rows."""
    role = "model" if rows[0]["role"] == "assistant" else "user"
    outer = outer_from(rows[-1], "parts", role)
    return filled(outer, parts=[part for each in rows for part in _given_parts(each)])


def left(row: Message, redacted: Message) -> Message:
    """Return the values kept of a redacted part: the call that it responds to.

    A response without an id is known by its name, so a removed name is replaced by the stored id.
    """
    if redacted["role"] != "tool":
        return {}
    block = wire_of(row)["block"]
    key = str(_said_key(block, RESPONSES))
    said = "error" if redacted.get("messageStatus") == "error" else SAID[0]
    call_id, has_id = redacted["tool_call_id"], bool(block[key].get("id"))
    name = redacted.get("name") or (UNKNOWN_TOOL if has_id else call_id)
    named = {"id": call_id, "name": name} if has_id else {"name": name}
    return {"block": {key: {**named, "response": None}}, "said": said}


def _given_parts(row: Message) -> list[Message]:
    held, content = wire_of(row), row.get("content")
    if row["role"] == "tool":
        return [_given_response(held, content)]
    if isinstance(content, str):
        return [_text(content)]
    skeletons = held.get("calls", {})
    calls = {
        number: _with_said(skeletons[str(number)], CALLS, args=call["function"]["arguments"])
        for number, call in enumerate(row.get("tool_calls", ()))
    }
    places = planned(held.get("plan", ()), content or [], calls)
    return [_untyped(part) if place == PART else part for place, part in places]


def _given_response(held: Message, content: Any) -> Message:
    """Return a response from the content of its row and the values kept beside it."""
    media: Message = {}
    if isinstance(content, list):
        first, *parts = content
        content = first.get("text", first.get(WHOLE))
        media = {"parts": [*map(_untyped, parts)]}
    response = {held["said"]: content} if "said" in held else content
    return _with_said(held["block"], RESPONSES, response=response, **media)


def _with_said(part: Message, keys: Sequence[str], **said: Any) -> Message:
    """Return a part with the values of its row filled in."""
    key = str(_said_key(part, keys))
    return {**part, key: filled(part[key], **said)}


def _untyped(part: Message) -> Message:
    return {key: held for key, held in part.items() if key != "type"}
