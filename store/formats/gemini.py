"""The Gemini format: contents of the user and the model, made of parts, with system text apart.

A function's response has the name of its call. A call of a model that thinks carries a signature,
which goes back as it came; for calls of other models the provider documents a text that stands for
one, and the first call of each content needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..messages import Media, Message
from .kept import CALL, PART, by_position, kept, planned
from .naming import WORD, Alphabet, Names
from .openai import sendable
from .parts import Speech, arguments_object, as_json, mended, part_told, parts_of, told
from .placed import ApiCall, Placed
from .turns import BEGINNING, SYSTEM_ROLES, Turn, alternating, marked_system, system_text

NAME = "gemini"
NAMES = Names(ids=WORD, tools=Alphabet(64, re.compile(r"[^A-Za-z0-9_.:-]"), begins="_"))
SIGNATURES = ("thoughtSignature", "thought_signature")
CALLS = ("functionCall", "function_call")
RESPONSES = ("functionResponse", "function_response")
"""Keys in the two spellings of the API and of its client for Python."""
UNSIGNED = "skip_thought_signature_validator"
"""What stands for the signature of a call that another model made."""
SAID = ("output", "result", "content", "error")
"""Keys under which a response that says one text has it."""


def write(placed: Sequence[Placed]) -> list[Message]:
    """Return a request as contents in which the user and the model take turns."""
    writing = _Writing()
    turns = alternating(map(writing.spoken, placed), _text(BEGINNING))
    return [_content(turn) for turn in turns]


def system(placed: Sequence[Placed]) -> str | None:
    """Return system messages as the instruction that is sent apart."""
    texts = (system_text(each) for each in placed)
    return "\n\n".join(text for text in texts if text.strip()) or None


def _content(turn: Turn) -> Message:
    if turn.is_users:
        return {"role": "user", "parts": turn.said}
    return {"role": "model", "parts": _signed(turn.said)}


def _signed(parts: list[Message]) -> list[Message]:
    """Return parts in which the first call has a signature."""
    for place, part in enumerate(parts):
        if any(key in part for key in CALLS):
            if not any(map(part.get, SIGNATURES)):
                parts[place] = {**part, SIGNATURES[0]: UNSIGNED}
            break
    return parts


class _Writing:
    """What the messages say, and the names of the calls among them by their ids."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def spoken(self, placed: Placed) -> Turn:
        """Return what one message says."""
        message = placed.message
        role = message["role"]
        if role == "assistant":
            self._names.update((call.id, call.name) for call in placed.calls)
            return Turn(False, _answer(placed))
        if role == "tool":
            return Turn(True, self._response(placed))
        if role in SYSTEM_ROLES:
            said = marked_system(placed)
            return Turn(True, [_text(said)] if said else [])
        return Turn(True, told(message.get("content"), _speech(message)))

    def _response(self, placed: Placed) -> list[Message]:
        """Return a result as its part, and its pictures behind it."""
        call_id = placed.call_id or ""
        name = self._names.pop(call_id, call_id)
        own = _own_response(placed.message)
        response = _said_by_tool(placed.message) if own is None else own
        part = {"functionResponse": {"id": call_id, "name": name, "response": response}}
        return [part, *_pictures(placed.message)]


def _own_response(message: Message) -> Message | None:
    """Return the response that came in this format, if it is still what the message says."""
    content = message.get("content")
    if isinstance(content, dict) and kept(message, NAME) is not None:
        return mended(content)  # type: ignore[no-any-return]
    return None


def _said_by_tool(message: Message) -> Message:
    """Return what a result says as a response; which key it is under says whether it failed."""
    content = message.get("content")
    held = kept(message, NAME)
    key = "error" if message.get("messageStatus") == "error" else "output"
    if isinstance(content, list):
        content = "\n\n".join(part["text"] for part in told(content, TEXTS_ALONE))
    elif not isinstance(content, str):
        content = "" if content is None else as_json(content)
    return {held.get("said", key) if held else key: sendable(content)}


def _pictures(message: Message) -> list[Message]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [part for part in told(content, SPEECH) if "text" not in part]


def _text(text: str) -> Message:
    return {"text": text}


def _media(media: Media) -> Message | None:
    if media.data is None or "/" not in media.type:
        return None
    return {"inlineData": {"mimeType": media.type, "data": media.data}}


def _own(part: Message) -> Message | None:
    """Return a part of a message that came in this format: without the type that it has here."""
    sent = {key: mended(held) for key, held in part.items() if key != "type"}
    return None if part.get("type") == "text" and not sent["text"].strip() else sent


SPEECH = Speech(_text, _media)
TEXTS_ALONE = Speech(_text, lambda _: None)
OWN = Speech(_text, _media, _own)


def _speech(message: Message) -> Speech:
    return SPEECH if kept(message, NAME) is None else OWN


def _answer(placed: Placed) -> list[Message]:
    """Return what the model thought, said and called, in its own order where that is known."""
    message = placed.message
    held = kept(message, NAME)
    speech = TEXTS_ALONE if held is None else OWN
    plan = held.get("plan", ()) if held else ()
    parts = parts_of(message.get("content"))
    places = planned(plan, parts, by_position(placed.calls))
    return [part for place, value in places for part in _parts(place, value, speech, held)]


def _parts(place: str, held: Any, speech: Speech, own: Message | None) -> Iterator[Message]:
    """Yield the parts that stand in one place of an answer."""
    if place == CALL:
        yield _call(held, own)
    elif place == PART:
        yield from part_told(held, speech)
    else:
        yield mended(held)


def _call(call: ApiCall, own: Message | None) -> Message:
    """Return a call as its part, with all that it had beside the call if it came in this format."""
    args = arguments_object(call.arguments)
    part = {"functionCall": {"id": call.id, "name": call.name, "args": args}}
    beside = own.get("beside", {}).get(str(call.position), {}) if own else {}
    return {**part, **mended(beside)}
