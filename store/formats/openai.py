"""The OpenAI chat format: exactly the keys that the API knows, with the types that it accepts.

A message may have values under keys that a row does not have. A refusal and the transcript of a
spoken answer come with an empty content. A call may belong to a tool that takes free text, or be
the single ``function_call`` of older programs, whose result has the role ``function``. Each is
stored where every rule and format looks for it: in the content, among the calls, or as a tool's
result. Other values and the order of the keys are kept beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..messages import (
    WIRE_KEY,
    Media,
    Message,
    copy_message,
    find_media,
    is_unreadable,
    parse_media,
    replace_media,
)
from ..text import get_at_path, parse_object
from .call_names import WORD_ALPHABET, AcceptedNames, Alphabet
from .chat_rows import empty_keys, fill_keys, find_wire_values, get_wire_values
from .request_messages import ApiCall, PlacedMessage

CHAT_PART_TYPES: dict[str, dict[str, type]] = {
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
OPENAI_NAME = "openai"
CUSTOM_CALL = "custom"
"""The type of calls whose tool takes any text, and the key under which such a call has it."""
ITEM_FORMAT = "responses"
"""The format that splits an answer into several items."""
PROVIDER_TEXT_TYPES = ("text", "input_text", "output_text")
"""Parts that are text, by the names of several providers."""

ANSWER_EXTENSIONS: dict[str, type] = {
    "reasoning_content": str,
    "reasoning": str,
    "reasoning_details": list,
    "extra_content": dict,
}
"""Keys that providers of this API add to an answer, and the types of their values.

DeepSeek, Kimi and GLM require the reasoning while tools are called, OpenRouter its details, and
Gemini the signature of a thought in ``extra_content``.
"""
CALL_EXTENSION = "extra_content"
"""The one of them that a call may have."""
USUAL_KEY_COUNT = 3
"""The number of keys of a call without additions: its id, its type and its function."""
OPENAI_PDF_TYPE = "application/pdf"
SOUND_FORMATS = {
    **dict.fromkeys(("wav", "audio/wav", "audio/x-wav"), "wav"),
    **dict.fromkeys(("mp3", "audio/mp3", "audio/mpeg"), "mp3"),
}
"""Types of sounds that a user's message may have, and their names in the API."""
READER_MARK = "read"
"""The format kept by a message that a reader of transcripts gives in the shape of a chat."""
AUDIO_KEY = "audio"
"""The key for the audio of a spoken answer; the provider knows the audio by its id."""
ADDITION_KEYS = frozenset((*ANSWER_EXTENSIONS, AUDIO_KEY))
"""Keys for the additions of a provider to an answer."""

_SURROGATES = re.compile("[\ud800-\udfff]")
OPENAI_ACCEPTED_NAMES = AcceptedNames(ids=Alphabet(40, _SURROGATES), tools=WORD_ALPHABET)


def write_chat_messages(placed: Sequence[PlacedMessage]) -> list[Message]:
    """Return a request as messages, one for each, and one for pictures of tool results.

    A tool result can only have text here. So the pictures and files that a policy leaves in results
    follow in a message of the user, after the results of the same calls. The texts and calls that
    an answer has in separate items are joined to one message.
    """
    messages: list[Message] = []
    shown: list[Message] = []
    for each in placed:
        sent = clean_message(each)
        if each.message["role"] == "tool":
            messages.append(sent)
            if not isinstance(each.message.get("content"), str):
                parts = map(_build_media_part, find_media(each.message.get("content")))
                shown += [part for part in parts if part is not None]
            continue
        if shown:
            messages.append({"role": "user", "content": shown})
            shown = []
        if sent["role"] == "assistant":
            _add_extensions(sent, each)
        if (
            messages
            and WIRE_KEY in each.message
            and (messages[-1]["role"] == "assistant" and is_continuing_item(each.message))
        ):
            messages[-1] = _join_answer_items(messages[-1], sent)
        else:
            messages.append(sent)
    if shown:
        messages.append({"role": "user", "content": shown})
    return messages


def is_own_answer(message: Message) -> bool:
    """Tell whether an answer came in this format, with possible additions of its provider."""
    held = find_wire_values(message, OPENAI_NAME)
    is_own = WIRE_KEY not in message if held is None else READER_MARK not in held
    return is_own and message["role"] == "assistant"


def _add_extensions(sent: Message, placed: PlacedMessage) -> None:
    """Add to an answer the additions of its provider, if it came in this format."""
    message = placed.message
    given = message["tool_calls"] if placed.calls else ()
    has_extended_calls = bool(placed.calls) and any(
        len(given[call.position]) > USUAL_KEY_COUNT for call in placed.calls
    )
    has_own_keys = WIRE_KEY in message or not ADDITION_KEYS.isdisjoint(message)
    if not (has_extended_calls or has_own_keys) or not is_own_answer(message):
        return
    if has_extended_calls:
        for call, written in zip(placed.calls, sent["tool_calls"], strict=True):
            if CALL_EXTENSION in given[call.position]:
                extension = given[call.position][CALL_EXTENSION]
                written[CALL_EXTENSION] = _replace_value_surrogates(extension)
    for key, kind in ANSWER_EXTENSIONS.items():
        if isinstance(message.get(key), kind) and message[key]:
            sent[key] = _replace_value_surrogates(message[key])
    audio = find_audio(message)
    if audio:
        sent[AUDIO_KEY] = {"id": replace_surrogates(audio["id"])}
        if AUDIO_KEY not in message or not message.get("content"):
            sent["content"] = None


def find_audio(message: Message) -> Message | None:
    """Return the audio of a spoken answer, if it has an id."""
    audio = message.get(AUDIO_KEY)
    if audio is None:
        held = message.get(WIRE_KEY)
        if held is None or not isinstance(held, dict) or held.get("format") != OPENAI_NAME:
            return None
        audio = held.get("moved", {}).get(AUDIO_KEY)
    return audio if isinstance(audio, dict) and isinstance(audio.get("id"), str) else None


def remove_audio(message: Message) -> Message:
    """Return a message without the id of its audio; the words stay."""
    rest = {key: held for key, held in message.items() if key != AUDIO_KEY}
    held = find_wire_values(message, OPENAI_NAME)
    if held and AUDIO_KEY in held.get("moved", ()):
        rest[WIRE_KEY] = {**held, "moved": {**held["moved"], AUDIO_KEY: None}}
    return rest


def remove_extensions(placed: PlacedMessage) -> PlacedMessage:
    """Return a message without the additions of its provider."""
    message = placed.message
    if message["role"] != "assistant":
        return placed
    there = remove_audio(message).items()
    rest = {key: held for key, held in there if key not in ANSWER_EXTENSIONS}
    if placed.calls:
        rest["tool_calls"] = [
            {key: held for key, held in call.items() if key != CALL_EXTENSION}
            if isinstance(call, dict)
            else call
            for call in message["tool_calls"]
        ]
    return placed._replace(message=rest)


def copy_written_message(message: Message) -> Message:
    """Return a copy of a written message, which the caller may change."""
    content = message["content"]
    if not isinstance(content, str) and content is not None:
        return copy_message(message)
    if len(message) == 2:
        return message.copy()
    if not ADDITION_KEYS.isdisjoint(message):
        return copy_message(message)
    calls = message.get("tool_calls")
    if calls is None:
        return message.copy()
    copied = [
        {**call, call["type"]: call[call["type"]].copy()}
        if len(call) <= USUAL_KEY_COUNT
        else copy_message(call)
        for call in calls
    ]
    return {**message, "tool_calls": copied}


def is_continuing_item(message: Message) -> bool:
    """Tell whether an item continues an answer that the items before it began."""
    return (
        WIRE_KEY in message
        and message["role"] == "assistant"
        and find_wire_values(message, ITEM_FORMAT) is not None
    )


def _join_answer_items(message: Message, item: Message) -> Message:
    """Return an answer with the text and calls of one more of its items."""
    said = [each["content"] for each in (message, item) if each["content"]]
    calls = [*message.get("tool_calls", ()), *item.get("tool_calls", ())]
    content = (
        said[0]
        if len(said) == 1
        else [
            part
            for each in said
            for part in ([_build_text_part(each)] if isinstance(each, str) else each)
        ]
    )
    one = {**message, "content": content or (None if calls else "")}
    return {**one, "tool_calls": calls} if calls else one


def _build_media_part(media: Media) -> Message | None:
    """Return media as a part of a user's message; None if there is no part for them."""
    if _is_readable_image(media):
        return _build_image_url_part(media)
    if media.data is None or not media.is_readable:
        return None
    if media.type == OPENAI_PDF_TYPE:
        held = {"filename": "document.pdf", "file_data": media.url}
        return {"type": "file", "file": held}
    if media.type in SOUND_FORMATS:
        sound = {"data": media.data, "format": SOUND_FORMATS[media.type]}
        return {"type": "input_audio", "input_audio": sound}
    return None


def clean_message(placed: PlacedMessage) -> Message:
    """Return one message without anything that the API refuses.

    It has no unknown key, no lone surrogate, and no value of a type that is not accepted.
    """
    message = placed.message
    role, content = message["role"], message.get("content")
    if role not in CHAT_PART_TYPES:
        role = "user"
    said = content if content and content is placed.sound else _write_chat_content(content, role)
    if role == "tool":
        return {"role": role, "tool_call_id": placed.call_id or "", "content": said}
    sent: Message = {"role": role}
    name = message.get("name")
    if name and isinstance(name, str):
        sent["name"] = replace_surrogates(name)
    calls = placed.calls
    sent["content"] = None if content is None and calls else said
    if calls:
        held = find_wire_values(message, OPENAI_NAME) if WIRE_KEY in message else None
        customs = held["moved"].get("tool_calls", ()) if held else ()
        sent["tool_calls"] = [_write_chat_call(call, customs) for call in calls]
    return sent


def replace_surrogates(text: str) -> str:
    """Return a text with U+FFFD for lone surrogates: a request that holds one is refused."""
    if text.isascii():
        return text
    try:
        text.encode("utf-16-le")  # all that UTF-8 refuses, in half the time
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def _write_chat_content(content: Any, role: str) -> Any:
    """Return a content as a text, or as a list of known parts."""
    if isinstance(content, str):
        return replace_surrogates(content)
    if content is None:
        return ""
    if not isinstance(content, list):
        return _render_sendable_json(replace_media(content, Media.named))
    return [_write_chat_part(part, CHAT_PART_TYPES[role]) for part in content] or ""


def _write_chat_part(part: Any, known: dict[str, type]) -> Message:
    if isinstance(part, str):
        return _build_text_part(part)
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in PROVIDER_TEXT_TYPES and isinstance(part.get("text"), str):
        return _build_text_part(part["text"])
    if isinstance(kind, str) and kind in known:
        held = part.get(kind)
        if isinstance(held, known[kind]) and held != {} and not is_unreadable(part):
            return {"type": kind, kind: _replace_value_surrogates(held)}
    media = parse_media(part)
    if media is None:
        return _build_text_part(_render_sendable_json(replace_media(part, Media.named)))
    if "image_url" in known and _is_readable_image(media):
        return _build_image_url_part(media)
    return _build_text_part(media.named()["text"])


def list_foreign_types(message: Message) -> list[str]:
    """Return the types of the parts of a message that are sent as their JSON text."""
    content = message.get("content")
    known = CHAT_PART_TYPES.get(message["role"], CHAT_PART_TYPES["user"])
    parts = content if isinstance(content, list) else [content]
    typed = (part for part in parts if isinstance(part, dict) and parse_media(part) is None)
    kinds = (part.get("type") for part in typed)
    return [
        kind
        for kind in kinds
        if isinstance(kind, str) and kind not in (*known, *PROVIDER_TEXT_TYPES)
    ]


def _is_readable_image(media: Media) -> bool:
    return media.type.startswith("image") and media.is_readable


def _build_image_url_part(media: Media) -> Message:
    return {"type": "image_url", "image_url": {"url": replace_surrogates(media.url)}}


def _replace_value_surrogates(held: Any) -> Any:
    return (
        replace_surrogates(held)
        if isinstance(held, str)
        else json.loads(_render_sendable_json(held))
    )


def _build_text_part(text: str) -> Message:
    return {"type": "text", "text": replace_surrogates(text)}


def _write_chat_call(call: ApiCall, customs: Sequence[Any]) -> Message:
    if call.position < len(customs) and customs[call.position]:
        text = render_arguments(parse_object(call.arguments).get("input"))
        custom = {"name": call.name, "input": text}
        return {"id": call.id, "type": CUSTOM_CALL, CUSTOM_CALL: custom}
    function = {"name": call.name, "arguments": render_arguments(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def render_arguments(given: Any) -> str:
    """Return the arguments of a call as the text that some providers require."""
    if isinstance(given, str):
        return replace_surrogates(given)
    return "{}" if given is None else _render_sendable_json(given)


def _render_sendable_json(value: Any) -> str:
    return replace_surrogates(json.dumps(value, ensure_ascii=False))


# --- messages to rows and back --------------------------------------------------------------------


class MovedKey(NamedTuple):
    """A key of a chat whose value a row holds elsewhere: one row of the table."""

    key: str
    is_present: Callable[[Message], bool]
    """Tells whether a message has a value there."""
    move: Callable[[Message], Message]
    """Returns the keys of the row that hold the value."""
    strip: Callable[[Any], Any]
    """Returns the rest of the value that is kept beside the row."""
    restore: Callable[[Message, Any], Any]
    """Returns the original value from the row and the kept rest."""


def _is_refusal(message: Message) -> bool:
    return isinstance(message.get("refusal"), str) and not message.get("content")


def _convert_function_call(message: Message) -> Message:
    """Return an older call as one of a list; it has no id, so its result is known by its name."""
    function = message["function_call"]
    return {"tool_calls": [{"id": function["name"], "type": "function", "function": function}]}


def _is_custom_call(call: Any) -> bool:
    if not isinstance(call, dict) or call.get("type") != CUSTOM_CALL:
        return False
    return all(isinstance(get_at_path((CUSTOM_CALL, key), call), str) for key in CUSTOM_CALL_KEYS)


CUSTOM_CALL_KEYS = ("name", "input")


def _convert_custom_call(call: Any) -> Any:
    if not _is_custom_call(call):
        return call
    held = call[CUSTOM_CALL]
    function = {"name": held["name"], "arguments": {"input": held["input"]}}
    return {"id": call.get("id"), "type": "function", "function": function}


def _strip_custom_calls(calls: list[Any]) -> list[Message | None]:
    """Return the calls of free text in order, with null for the values that the row holds."""
    return [
        {**empty_keys(call, "id"), CUSTOM_CALL: empty_keys(call[CUSTOM_CALL], *CUSTOM_CALL_KEYS)}
        if _is_custom_call(call)
        else None
        for call in calls
    ]


def _restore_custom_calls(row: Message, left: list[Message | None]) -> list[Any]:
    calls = []
    for call, held in zip(row["tool_calls"], left, strict=True):
        if not held:
            calls.append(call)
            continue
        function = call["function"]
        said = {"name": function["name"], "input": function["arguments"]["input"]}
        custom = fill_keys(held[CUSTOM_CALL], **said)
        calls.append(fill_keys(held, id=call["id"], custom=custom))
    return calls


MOVED_KEYS = (
    MovedKey(
        "refusal",
        _is_refusal,
        lambda message: {"content": [{"type": "refusal", "refusal": message["refusal"]}]},
        lambda _: None,
        lambda row, _: row["content"][0]["refusal"],
    ),
    MovedKey(
        "audio",
        lambda message: (
            isinstance(get_at_path(("audio", "transcript"), message), str)
            and not message.get("content")
            and not _is_refusal(message)
        ),
        lambda message: {"content": message["audio"]["transcript"]},
        lambda audio: empty_keys(audio, "transcript"),
        lambda row, audio: fill_keys(audio, transcript=row["content"]),
    ),
    MovedKey(
        "function_call",
        lambda message: (
            isinstance(get_at_path(("function_call", "name"), message), str)
            and not message.get("tool_calls")
        ),
        _convert_function_call,
        lambda _: None,
        lambda row, _: row["tool_calls"][0]["function"],
    ),
    MovedKey(
        "tool_calls",
        lambda message: (
            isinstance(message.get("tool_calls"), list)
            and any(map(_is_custom_call, message["tool_calls"]))
        ),
        lambda message: {"tool_calls": [*map(_convert_custom_call, message["tool_calls"])]},
        _strip_custom_calls,
        _restore_custom_calls,
    ),
    MovedKey(
        "role",
        lambda message: message.get("role") == "function" and isinstance(message.get("name"), str),
        lambda message: {"role": "tool", "tool_call_id": message["name"]},
        lambda role: role,
        lambda _, role: role,
    ),
)
"""The keys; a message may have several of them."""
MOVED_KEY_NAMES = frozenset(each.key for each in MOVED_KEYS) - {"role"}


def has_moved_key(message: Message) -> bool:
    """Tell whether a message has such a key; most have none, and this is quick."""
    if MOVED_KEY_NAMES.isdisjoint(message) and message.get("role") != "function":
        return False
    return WIRE_KEY not in message and any(each.is_present(message) for each in MOVED_KEYS)


def build_chat_rows(message: Message) -> list[Message]:
    """Return the row of a message: the message itself if it has no such key."""
    if not has_moved_key(message):
        return [message]
    found = [each for each in MOVED_KEYS if each.is_present(message)]
    shown = {key: held for each in found for key, held in each.move(message).items()}
    moved = {each.key: each.strip(message[each.key]) for each in found}
    was = {key: message[key] for key in shown if key in message and key not in moved}
    rest = {key: held for key, held in message.items() if key not in moved}
    beside = {"format": OPENAI_NAME, "keys": [*message], "was": was, "moved": moved}
    return [{**rest, **shown, WIRE_KEY: beside}]


def build_parsed_rows(message: Message) -> list[Message]:
    """Return the row of a message that a reader of transcripts gives in the shape of a chat.

    The reasoning of a model is under a key that providers of a chat also use. It came from none of
    them, so it is sent to none.
    """
    (one,) = build_chat_rows(message)
    if WIRE_KEY in message or ANSWER_EXTENSIONS.keys().isdisjoint(message):
        return [one]
    new = {"format": OPENAI_NAME, "keys": [*message], "was": {}, "moved": {}}
    held = one.get(WIRE_KEY) or new
    return [{**one, WIRE_KEY: {**held, READER_MARK: True}}]


def restore_chat_message(rows: Sequence[Message]) -> Message:
    """Return the original message from its row."""
    (one,) = rows
    held = get_wire_values(one)
    left = ((each, held["moved"][each.key]) for each in MOVED_KEYS if each.key in held["moved"])
    moved = {each.key: each.restore(one, was) for each, was in left}
    whole = {**one, **held["was"], **moved}
    return {key: whole[key] for key in held["keys"]}
