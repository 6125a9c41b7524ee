"""The Anthropic Messages format: turns of content blocks, with the system text apart.

Thinking goes back with its signature, and is nobody else's. A request holds at most four markers
for the cache, and behind a marker the provider looks back over 20 blocks only, so a long turn gets
one in its middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..messages import Media, Message
from .kept import CALL, PART, by_position, kept, planned
from .naming import WORD, Names
from .openai import sendable
from .parts import Speech, arguments_object, mended, part_told, parts_of, told
from .placed import ApiCall, Placed
from .turns import BEGINNING, SYSTEM_ROLES, Turn, alternating, marked_system, system_text

NAME = "anthropic"
NAMES = Names(ids=WORD, tools=WORD)
PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"
THINKING = {"thinking": "signature", "redacted_thinking": "data"}
"""Types of blocks that are reasoning, and the key without which one is refused."""
OF_USERS = ("image", "document", "search_result")
"""Types of blocks with a source of their own."""
CACHE = "cache_control"
EPHEMERAL = {"type": "ephemeral"}
LOOK_BACK = 20
"""Blocks that the provider looks back from a marker for what it has kept."""


def write(placed: Sequence[Placed]) -> list[Message]:
    """Return a request as messages in which the user and the assistant take turns."""
    turns = alternating(map(_spoken, placed), _text(BEGINNING))
    if any(each.cached for each in placed):
        _mark_between([block for turn in turns for block in turn.said])
    return [_message(turn) for turn in turns]


def system(placed: Sequence[Placed]) -> list[Message] | None:
    """Return system messages as the blocks that are sent apart."""
    blocks: list[Message] = []
    for each in placed:
        text = system_text(each)
        if text.strip():
            blocks.append(_text(text))
        if each.cached:
            _mark(blocks)
    return blocks or None


def _message(turn: Turn) -> Message:
    return {"role": "user" if turn.is_users else "assistant", "content": turn.said}


def _spoken(placed: Placed) -> Turn:
    """Return what one message says, its end marked for the cache where that is asked for."""
    is_users, blocks = _blocks(placed)
    if placed.cached:
        _mark(blocks)
    return Turn(is_users, blocks)


def _blocks(placed: Placed) -> tuple[bool, list[Message]]:
    message = placed.message
    role = message["role"]
    if role == "assistant":
        return False, _answer(placed)
    if role == "tool":
        return True, [_result(placed)]
    if role in SYSTEM_ROLES:
        said = marked_system(placed)
        return True, [_text(said)] if said else []
    return True, told(message.get("content"), _speech(message, of_user=True))


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _media(media: Media) -> Message | None:
    """Return a picture or a document as its block, where it is of a type that is taken."""
    if media.data is None:
        return _linked(media)
    source = {"type": "base64", "media_type": media.type, "data": media.data}
    if media.type in PICTURES:
        return {"type": "image", "source": source}
    return {"type": "document", "source": source} if media.type == PDF else None


def _linked(media: Media) -> Message | None:
    if media.type == "image" and media.url.startswith(("https://", "http://")):
        return {"type": "image", "source": {"type": "url", "url": media.url}}
    return None


def _own_of_user(part: Message) -> Message | None:
    """Return a picture or document that is in the provider's own shape, whoever stored it."""
    if part.get("type") in OF_USERS and isinstance(part.get("source"), dict | str):
        return _unmarked(part)
    return None


def _own(part: Message) -> Message | None:
    """Return a part of a message that came in this format."""
    kind = part.get("type")
    if kind in THINKING or not isinstance(kind, str):
        return None
    if kind == "text" and not str(part.get("text", "")).strip():
        return None
    return _unmarked(part)


def _unmarked(part: Message) -> Message:
    """Return a block without the marker that it had for the cache: a request sets its own."""
    return {key: mended(held) for key, held in part.items() if key != CACHE}


ASSISTANT = Speech(_text, lambda _: None)
USER = Speech(_text, _media, _own_of_user)
OWN = Speech(_text, _media, _own)


def _speech(message: Message, *, of_user: bool) -> Speech:
    if kept(message, NAME) is not None:
        return OWN
    return USER if of_user else ASSISTANT


def _answer(placed: Placed) -> list[Message]:
    """Return what the assistant thought, said and called, in its own order where that is known."""
    message = placed.message
    speech = _speech(message, of_user=False)
    parts = parts_of(message.get("content"))
    blocks: list[Message] = []
    for place, held in planned(_plan(message), parts, by_position(placed.calls)):
        if place == CALL:
            blocks.append(_call(held))
        elif place == PART:
            blocks.extend(part_told(held, speech))
        elif _is_signed(held):
            blocks.append(_unmarked(held))
    return _without_end(blocks)


def _plan(message: Message) -> Sequence[Any]:
    """Return the order of an answer; reasoning that an import kept apart comes first."""
    held = kept(message, NAME)
    if held is not None:
        return held.get("plan") or ()
    blocks = message.get("thinking_blocks")
    return blocks if isinstance(blocks, list) else ()


def _is_signed(block: Any) -> bool:
    """Tell reasoning that the provider takes back."""
    if not isinstance(block, dict) or block.get("type") not in THINKING:
        return False
    return bool(block.get(THINKING[block["type"]]))


def _without_end(blocks: list[Message]) -> list[Message]:
    """Return blocks whose last text ends with no white space: as the last one it is refused."""
    if blocks and blocks[-1].get("type") == "text":
        blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"].rstrip()}
    return blocks


def _call(call: ApiCall) -> Message:
    name, given = call.name, arguments_object(call.arguments)
    return {"type": "tool_use", "id": call.id, "name": name, "input": given}


def _result(placed: Placed) -> Message:
    message = placed.message
    block: Message = {"type": "tool_result", "tool_use_id": placed.call_id}
    said = _said_by_tool(message)
    failed = message.get("messageStatus") == "error"
    if said or failed:
        block["content"] = said or "Error"
    return {**block, "is_error": True} if failed else block


def _said_by_tool(message: Message) -> str | list[Message]:
    """Return the content of a result; a blank text says nothing."""
    content = message.get("content")
    if isinstance(content, str):
        return sendable(content) if content.strip() else ""
    return told(content, _speech(message, of_user=True))


def _mark(blocks: list[Message]) -> None:
    """Mark the end of blocks for the cache: the last one that can have a marker."""
    for place in range(len(blocks) - 1, -1, -1):
        if blocks[place]["type"] not in THINKING:
            blocks[place][CACHE] = EPHEMERAL
            return


def _mark_between(blocks: list[Message]) -> None:
    """Mark a block in the middle where the last marker is too far from the one before it."""
    places = [place for place, block in enumerate(blocks) if CACHE in block]
    before, last = [0, 0, *places][-2:]
    if last - before > LOOK_BACK:
        _mark(blocks[: last - LOOK_BACK + 1])
