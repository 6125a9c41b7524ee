"""The OpenAI chat format: exactly the keys that the API knows, with the types that it accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..messages import (
    WIRE,
    Media,
    Message,
    copy_message,
    find_media,
    is_unreadable,
    parse_media,
    replace_media,
)
from ..text import as_object
from .kept import kept
from .naming import WORD, Alphabet, Names
from .placed import ApiCall, Placed

PARTS: dict[str, dict[str, type]] = {
    "system": {"text": str},
    "developer": {"text": str},
    "user": {"text": str, "image_url": dict, "input_audio": dict, "file": dict},
    "assistant": {"text": str, "refusal": str},
    "tool": {"text": str},
}
"""The roles of the API, the content parts that each may have, and the type of the value that a part
holds under its own name.

Any other role is sent as the user. Media without a part in a role are replaced by their type and
size; any other part is sent as its JSON text.
"""
NAME = "openai"
CUSTOM = "custom"
"""The type of calls whose tool takes any text, and the key under which such a call has it."""
ITEMS = "responses"
"""The format that splits an answer into several items."""
TEXTS = ("text", "input_text", "output_text")
"""Parts that are text, by the names of several providers."""

EXTENSIONS: dict[str, type] = {
    "reasoning_content": str,
    "reasoning": str,
    "reasoning_details": list,
    "extra_content": dict,
}
"""Keys that providers of this API add to an answer, and the types of their values.

DeepSeek, Kimi and GLM require the reasoning while tools are called, OpenRouter its details, and
Gemini the signature of a thought in ``extra_content``.
"""
OF_CALLS = "extra_content"
"""The one of them that a call may have."""
USUAL_KEYS = 3
"""The number of keys of a call without additions: its id, its type and its function."""
PDF = "application/pdf"
SOUNDS = {
    **dict.fromkeys(("wav", "audio/wav", "audio/x-wav"), "wav"),
    **dict.fromkeys(("mp3", "audio/mp3", "audio/mpeg"), "mp3"),
}
"""Types of sounds that a user's message may have, and their names in the API."""
READ = "read"
"""The format kept by a message that a reader of transcripts gives in the shape of a chat."""
AUDIO = "audio"
"""The key for the audio of a spoken answer; the provider knows the audio by its id."""
BESIDE = frozenset((*EXTENSIONS, AUDIO))
"""Keys for the additions of a provider to an answer."""

_SURROGATES = re.compile("[\ud800-\udfff]")
NAMES = Names(ids=Alphabet(40, _SURROGATES), tools=WORD)


def write(placed: Sequence[Placed]) -> list[Message]:
    """Return a request as messages, one for each, and one for pictures of tool results.

    A tool result can only have text here. So the pictures and files that a policy leaves in results
    follow in a message of the user, after the results of the same calls. The texts and calls that
    an answer has in separate items are joined to one message.
    """
    messages: list[Message] = []
    shown: list[Message] = []
    for each in placed:
        sent = clean(each)
        if each.message["role"] == "tool":
            messages.append(sent)
            if not isinstance(each.message.get("content"), str):
                parts = map(_shown, find_media(each.message.get("content")))
                shown += [part for part in parts if part is not None]
            continue
        if shown:
            messages.append({"role": "user", "content": shown})
            shown = []
        if sent["role"] == "assistant" and _may_be_extended(each):
            sent = _extended(sent, each)
        if (
            messages
            and WIRE in each.message
            and (messages[-1]["role"] == "assistant" and continues(each.message))
        ):
            messages[-1] = _as_one(messages[-1], sent)
        else:
            messages.append(sent)
    if shown:
        messages.append({"role": "user", "content": shown})
    return messages


def _may_be_extended(placed: Placed) -> bool:
    """Tell whether an answer may have additions; cheap, as most have none."""
    message = placed.message
    if placed.calls:
        given = message["tool_calls"]
        if any(len(given[call.position]) > USUAL_KEYS for call in placed.calls):
            return True
    return not BESIDE.isdisjoint(message) or (WIRE in message and audio_of(message) is not None)


def is_extended(message: Message) -> bool:
    """Tell whether an answer came in this format, with possible additions of its provider."""
    held = kept(message, NAME)
    is_own = WIRE not in message if held is None else READ not in held
    return is_own and message["role"] == "assistant"


def _extended(sent: Message, placed: Placed) -> Message:
    """Return an answer with the additions of its provider, if it came in this format."""
    message = placed.message
    if not is_extended(message):
        return sent
    if placed.calls:
        given = message["tool_calls"]
        for call, written in zip(placed.calls, sent["tool_calls"], strict=True):
            if len(given[call.position]) > USUAL_KEYS and OF_CALLS in given[call.position]:
                written[OF_CALLS] = _sendable_value(given[call.position][OF_CALLS])
    for key, kind in EXTENSIONS.items():
        if isinstance(message.get(key), kind) and message[key]:
            sent[key] = _sendable_value(message[key])
    audio = audio_of(message)
    if audio:
        sent[AUDIO] = {"id": sendable(audio["id"])}
        if AUDIO not in message or not message.get("content"):
            sent["content"] = None
    return sent


def audio_of(message: Message) -> Message | None:
    """Return the audio of a spoken answer, if it has an id."""
    audio = message.get(AUDIO)
    if audio is None:
        held = message.get(WIRE)
        if held is None or not isinstance(held, dict) or held.get("format") != NAME:
            return None
        audio = held.get("moved", {}).get(AUDIO)
    return audio if isinstance(audio, dict) and isinstance(audio.get("id"), str) else None


def without_audio(message: Message) -> Message:
    """Return a message without the id of its audio; the words stay."""
    rest = {key: held for key, held in message.items() if key != AUDIO}
    held = kept(message, NAME)
    if held and AUDIO in held.get("moved", ()):
        rest[WIRE] = {**held, "moved": {**held["moved"], AUDIO: None}}
    return rest


def without_extensions(placed: Placed) -> Placed:
    """Return a message without the additions of its provider."""
    message = placed.message
    if message["role"] != "assistant":
        return placed
    there = without_audio(message).items()
    rest = {key: held for key, held in there if key not in EXTENSIONS}
    if placed.calls:
        rest["tool_calls"] = [*map(_without_extension, message["tool_calls"])]
    return placed._replace(message=rest)


def _without_extension(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    return {key: held for key, held in call.items() if key != OF_CALLS}


def fresh(message: Message) -> Message:
    """Return a copy of a written message, which the caller may change."""
    content = message["content"]
    if not isinstance(content, str) and content is not None:
        return copy_message(message)
    if len(message) == 2:
        return message.copy()
    if not BESIDE.isdisjoint(message):
        return copy_message(message)
    calls = message.get("tool_calls")
    if calls is None:
        return message.copy()
    return {**message, "tool_calls": [*map(_fresh_call, calls)]}


def _fresh_call(call: Message) -> Message:
    if len(call) > USUAL_KEYS:
        return copy_message(call)
    kind = call["type"]
    return {**call, kind: call[kind].copy()}


def continues(message: Message) -> bool:
    """Tell whether an item continues an answer that the items before it began."""
    return WIRE in message and message["role"] == "assistant" and kept(message, ITEMS) is not None


def _as_one(message: Message, item: Message) -> Message:
    """Return an answer with the text and calls of one more of its items."""
    said = [each["content"] for each in (message, item) if each["content"]]
    calls = [*message.get("tool_calls", ()), *item.get("tool_calls", ())]
    content = (
        said[0]
        if len(said) == 1
        else [
            part
            for each in said
            for part in ([_text_part(each)] if isinstance(each, str) else each)
        ]
    )
    one = {**message, "content": content or (None if calls else "")}
    return {**one, "tool_calls": calls} if calls else one


def _shown(media: Media) -> Message | None:
    """Return media as a part of a user's message; None if there is no part for them."""
    if _is_picture(media):
        return _picture(media)
    if media.data is None or not media.is_readable:
        return None
    if media.type == PDF:
        held = {"filename": "document.pdf", "file_data": media.url}
        return {"type": "file", "file": held}
    if media.type in SOUNDS:
        sound = {"data": media.data, "format": SOUNDS[media.type]}
        return {"type": "input_audio", "input_audio": sound}
    return None


def clean(placed: Placed) -> Message:
    """Return one message without anything that the API refuses.

    It has no unknown key, no lone surrogate, and no value of a type that is not accepted.
    """
    message = placed.message
    role, content = message["role"], message.get("content")
    if role not in PARTS:
        role = "user"
    said = content if content and content is placed.sound else _content(content, role)
    if role == "tool":
        return {"role": role, "tool_call_id": placed.call_id or "", "content": said}
    sent: Message = {"role": role}
    name = message.get("name")
    if name and isinstance(name, str):
        sent["name"] = sendable(name)
    calls = placed.calls
    sent["content"] = None if content is None and calls else said
    if calls:
        customs = _customs(message) if WIRE in message else ()
        sent["tool_calls"] = [_call(call, customs) for call in calls]
    return sent


def sendable(text: str) -> str:
    """Return a text with U+FFFD for lone surrogates: a request that holds one is refused."""
    if text.isascii():
        return text
    try:
        text.encode("utf-16-le")  # all that UTF-8 refuses, in half the time
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def _content(content: Any, role: str) -> Any:
    """Return a content as a text, or as a list of known parts."""
    if isinstance(content, str):
        return sendable(content)
    if content is None:
        return ""
    if not isinstance(content, list):
        return _json_text(replace_media(content, Media.named))
    return [_part(part, PARTS[role]) for part in content] or ""


def _part(part: Any, known: dict[str, type]) -> Message:
    if isinstance(part, str):
        return _text_part(part)
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in TEXTS and isinstance(part.get("text"), str):
        return _text_part(part["text"])
    if isinstance(kind, str) and kind in known:
        held = part.get(kind)
        if isinstance(held, known[kind]) and held != {} and not is_unreadable(part):
            return {"type": kind, kind: _sendable_value(held)}
    media = parse_media(part)
    if media is None:
        return _text_part(_json_text(replace_media(part, Media.named)))
    if "image_url" in known and _is_picture(media):
        return _picture(media)
    return _text_part(media.named()["text"])


def foreign_kinds(message: Message) -> list[str]:
    """Return the types of the parts of a message that are sent as their JSON text."""
    content = message.get("content")
    known = PARTS.get(message["role"], PARTS["user"])
    parts = content if isinstance(content, list) else [content]
    typed = (part for part in parts if isinstance(part, dict) and parse_media(part) is None)
    kinds = (part.get("type") for part in typed)
    return [kind for kind in kinds if isinstance(kind, str) and kind not in (*known, *TEXTS)]


def _is_picture(media: Media) -> bool:
    return media.type.startswith("image") and media.is_readable


def _picture(media: Media) -> Message:
    return {"type": "image_url", "image_url": {"url": sendable(media.url)}}


def _sendable_value(held: Any) -> Any:
    return sendable(held) if isinstance(held, str) else json.loads(_json_text(held))


def _text_part(text: str) -> Message:
    return {"type": "text", "text": sendable(text)}


def _customs(message: Message) -> Sequence[Any]:
    """Return the kept values of calls of free text, at their places among the calls."""
    held = kept(message, NAME)
    return held["moved"].get("tool_calls", ()) if held else ()


def _call(call: ApiCall, customs: Sequence[Any]) -> Message:
    if call.position < len(customs) and customs[call.position]:
        text = arguments_text(as_object(call.arguments).get("input"))
        custom = {"name": call.name, "input": text}
        return {"id": call.id, "type": CUSTOM, CUSTOM: custom}
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def arguments_text(given: Any) -> str:
    """Return the arguments of a call as the text that some providers require."""
    if isinstance(given, str):
        return sendable(given)
    return "{}" if given is None else _json_text(given)


def _json_text(value: Any) -> str:
    return sendable(json.dumps(value, ensure_ascii=False))
