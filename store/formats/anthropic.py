"""The Anthropic Messages format: turns of content blocks, with separate system text.

Thinking is sent back with its signature, and to no other provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..messages import WIRE, Media, Message
from .cache_markers import CACHE, mark, mark_between
from .kept import CALL, PART, by_position, kept, planned
from .naming import WORD, Names, with_ids
from .openai import sendable
from .parts import (
    Speech,
    arguments_object,
    as_json,
    as_sent,
    mended,
    opened,
    part_told,
    parts_of,
    told,
)
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
from .server_tools import CALLS as SERVER_CALLS
from .server_tools import left_alone
from .turns import BEGINNING, SYSTEM_ROLES, Turn, alternating, marked_system, system_text

NAME = "anthropic"
NAMES = Names(ids=WORD, tools=WORD)
PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"
THINKING = {"thinking": "signature", "redacted_thinking": "data"}
"""Types of blocks that are reasoning, and the key without which one is refused."""
OF_USERS = ("image", "document", "search_result")
"""Types of blocks with a source of their own."""
SAID_BY_USERS = (
    *("text", *OF_USERS, "container_upload"),
    *("tool_reference", "tool_addition", "tool_removal"),
)
"""Types of blocks that a user's message or a result may have; others belong to a program."""
CALLER, MADE_BY = "caller", "tool_id"
"""The key under which a call names its caller, and the key there with the id of a server's call."""
BESIDE_CALLS = (CALLER, "toolset_name", CACHE)
"""Keys that a call may have beside its name and input."""
IDS = ("id", "tool_use_id")
"""Keys of a server's call and of its result."""


def write(placed: Sequence[Placed], beginning: str = BEGINNING) -> list[Message]:
    """Return a request as messages in which the user and the assistant take turns."""
    turns = alternating(map(_spoken, placed), _text(beginning))
    for blocks, number in left_alone(turns):
        blocks[number] = _as_text(blocks[number])
    _name_callers_there(turns)
    if any(each.cached for each in placed):
        mark_between([block for turn in turns for block in turn.said])
    return [
        {"role": "user" if turn.is_users else "assistant", "content": turn.said} for turn in turns
    ]


def system(placed: Sequence[Placed]) -> list[Message] | None:
    """Return system messages as the blocks that are sent separately."""
    blocks: list[Message] = []
    for each in placed:
        text = system_text(each)
        if text.strip():
            blocks.append(_text(text) | _marker_of_system(each))
        if each.cached:
            mark(blocks)
    return blocks or None


def _marker_of_system(placed: Placed) -> Message:
    """Return the last marker of a system message if its own markers are sent."""
    content = placed.message.get("content")
    if not placed.marked or not isinstance(content, list):
        return {}
    markers = [part[CACHE] for part in content if isinstance(part, dict) and CACHE in part]
    return {CACHE: mended(markers[-1])} if markers else {}


def _name_callers_there(turns: Sequence[Turn]) -> None:
    """Remove from calls the name of the server's call that made them, if that is not sent.

    A call that the model made itself names no caller and needs none.
    """
    answers = [turn.said for turn in turns if not turn.is_users]
    called = [block for said in answers for block in said if CALLER in block]
    if not called:
        return
    there = {block["id"] for said in answers for block in said if block["type"] in SERVER_CALLS}
    for block in called:
        caller = block.pop(CALLER)
        named = with_ids(caller, (MADE_BY,)) if isinstance(caller, dict) else {}
        if named.get(MADE_BY) in there:
            block[CALLER] = named


def _spoken(placed: Placed) -> Turn:
    """Return the turn of one message, with its end marked for the cache on request."""
    message = placed.message
    role = message["role"]
    if role == "assistant":
        is_users, blocks = False, _answer(placed)
    elif role == "tool":
        is_users, blocks = True, [_result(placed)]
    elif role in SYSTEM_ROLES:
        said = marked_system(placed)
        is_users, blocks = True, [_text(said)] if said else []
    else:
        speech = _speech(placed, kept(message, NAME), of_user=True)
        is_users, blocks = True, told(message.get("content"), speech)
    if placed.cached:
        mark(blocks)
    return Turn(is_users, blocks)


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _as_text(block: Message) -> Message:
    """Return a block as its JSON text, with its marker for the cache."""
    said = _text(as_json(opened(_unmarked(block))))
    return said | {CACHE: block[CACHE]} if CACHE in block else said


def _media(media: Media) -> Message | None:
    """Return a picture or a document as its block if its type is accepted."""
    if media.data is None:
        if media.type == "image" and media.url.startswith(("https://", "http://")):
            return {"type": "image", "source": {"type": "url", "url": media.url}}
        return None
    source = {"type": "base64", "media_type": media.type, "data": media.data}
    if media.type in PICTURES:
        return {"type": "image", "source": source}
    return {"type": "document", "source": source} if media.type == PDF else None


def _own_of_user(part: Message) -> Message | None:
    """Return a picture or document that has the provider's own shape, whatever its origin."""
    if part.get("type") in OF_USERS and isinstance(part.get("source"), dict | str):
        return _unmarked(part)
    return None


def _own(part: Message) -> Message | None:
    """Return a part of a message that came in this format, without its marker."""
    return with_ids(_unmarked(part), IDS) if _is_own(part) else None


def _own_marked(part: Message) -> Message | None:
    return with_ids(as_sent(part), IDS) if _is_own(part) else None


def _is_own(part: Message) -> bool:
    kind = part.get("type")
    if kind in THINKING or not isinstance(kind, str):
        return False
    return kind != "text" or bool(str(part.get("text", "")).strip())


def _own_said(part: Message) -> Message | None:
    """Return a part that a user or a tool said in this format."""
    return _own(part) if part.get("type") in SAID_BY_USERS else None


def _own_said_marked(part: Message) -> Message | None:
    return _own_marked(part) if part.get("type") in SAID_BY_USERS else None


def _unmarked(part: Message) -> Message:
    """Return a block without its marker for the cache: a request sets its own markers."""
    return as_sent(part, CACHE)


ASSISTANT = Speech(_text, lambda _: None)
USER = Speech(_text, _media, _own_of_user)
OWN = Speech(_text, _media, _own)
OWN_SAID = Speech(_text, _media, _own_said)
OWN_MARKED = Speech(_text, _media, _own_marked)
OWN_SAID_MARKED = Speech(_text, _media, _own_said_marked)


def _speech(placed: Placed, held: Message | None, *, of_user: bool) -> Speech:
    if held is None:
        return USER if of_user else ASSISTANT
    if placed.marked:
        return OWN_SAID_MARKED if of_user else OWN_MARKED
    return OWN_SAID if of_user else OWN


def _answer(placed: Placed) -> list[Message]:
    """Return the thoughts, texts and calls of the assistant, in their own order if it is known."""
    message = placed.message
    held = kept(message, NAME)
    speech, plan = _speech(placed, held, of_user=False), _plan(message, held)
    content = message.get("content")
    own = held.get("calls", {}) if held else {}
    without = () if placed.marked else (CACHE,)
    if not plan:
        calls = (_call(call, own, without) for call in placed.calls)
        return _without_end([*told(content, speech), *calls])
    blocks: list[Message] = []
    for place, there in planned(plan, parts_of(content), by_position(placed.calls)):
        if place == CALL:
            blocks.append(_call(there, own, without))
        elif place == PART:
            blocks.extend(part_told(there, speech))
        elif _is_signed(there):
            blocks.append(_unmarked(there))
    return _without_end(blocks)


def _plan(message: Message, held: Message | None) -> Sequence[Any]:
    """Return the order of an answer; reasoning that an import kept separately comes first."""
    if held is not None:
        return held.get("plan") or ()
    blocks = message.get("thinking_blocks")
    return blocks if isinstance(blocks, list) else ()


def _is_signed(block: Any) -> bool:
    """Tell whether a block is reasoning that the provider accepts back."""
    if not isinstance(block, dict) or block.get("type") not in THINKING:
        return False
    return bool(block.get(THINKING[block["type"]]))


def _without_end(blocks: list[Message]) -> list[Message]:
    """Return blocks without white space after the last text: a request that ends so is refused."""
    if blocks and blocks[-1].get("type") == "text":
        blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"].rstrip()}
    return blocks


def _call(call: ApiCall, own: Message, without: Sequence[str]) -> Message:
    """Return a call with the other keys that the provider gave it, if it came in this format."""
    name, given = call.name, arguments_object(call.arguments)
    block = {"type": "tool_use", "id": call.id, "name": name, "input": given}
    came = own.get(str(call.position)) if own else None
    if not came:
        return block
    beside = {key: came[key] for key in BESIDE_CALLS if key in came}
    return block | as_sent(beside, *without)


def _result(placed: Placed) -> Message:
    message = placed.message
    block: Message = {"type": "tool_result", "tool_use_id": placed.call_id}
    content = message.get("content")
    said: str | list[Message]
    if isinstance(content, str):
        said = "" if content.isspace() else sendable(content)
    else:
        said = told(content, _speech(placed, kept(message, NAME), of_user=True))
    failed = message.get("messageStatus") == "error"
    if said or failed:
        block["content"] = said or "Error"
    if failed:
        block["is_error"] = True
    held = kept(message, NAME) if placed.marked else None
    marker = held.get("block", {}).get(CACHE) if held else None
    return {**block, CACHE: mended(marker)} if marker else block


# --- messages to rows and back --------------------------------------------------------------------

ROLES = ("user", "assistant", "system")
CALL_KEYS = ("type", "id", "name", "input")
USUAL_CALL = {"type": "tool_use", "id": None, "name": None, "input": None}
RESULT = "tool_result"
USUAL_RESULT = {"type": RESULT, "tool_use_id": None, "content": None}
ALONE = (
    *("tool_use", RESULT, "server_tool_use", "mcp_tool_use"),
    *("container_upload", "compaction", *THINKING),
)
"""Types of blocks that no other format has, apart from results of the provider's own tools."""
FOREIGN_KEYS = ("tool_calls", "tool_call_id", WIRE)


def is_told(message: Message) -> bool:
    """Recognize a message by a block that no other format has."""
    content = message.get("content")
    if not isinstance(content, list) or not any(map(_is_alone, content)):
        return False
    return problem(message) is None


def _is_alone(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        return False
    if kind in OF_USERS:
        return isinstance(block.get("source"), dict)
    return kind in ALONE or kind.endswith("_tool_result")


def problem(message: Message) -> Problem | None:
    """Return why a message is not of this format; None if it is."""
    role = message.get("role")
    if role not in ROLES:
        return "role", f"Anthropic has {', '.join(ROLES)}"
    foreign = first_key(message, FOREIGN_KEYS)
    if foreign:
        return foreign, "is no key of an Anthropic message"
    content = message.get("content")
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "content", "is a text or a list of blocks"
    unfit = next(filter(None, (_unfit(block, role) for block in content)), None)
    return ("content", unfit) if unfit else None


def _unfit(block: Any, role: str) -> str | None:
    """Return why a role cannot have a block; None if it can."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return "a block is an object with a type"
    if block["type"] == "tool_use" and not _is_call(block, role):
        return "a tool_use is the assistant's, and has an id, a name and an input"
    if block["type"] == RESULT and not (
        role == "user" and isinstance(block.get("tool_use_id"), str)
    ):
        return "a tool_result is the user's, and has a tool_use_id"
    return None


def _is_call(block: Message, role: str) -> bool:
    texts = (block.get("id"), block.get("name"))
    is_whole = all(isinstance(text, str) for text in texts)
    return role == "assistant" and is_whole and isinstance(block.get("input"), dict)


def rows(message: Message) -> list[Message]:
    """Return a message as rows: one for each result, and one for each run of other blocks."""
    content, role = message["content"], message["role"]
    if isinstance(content, str):
        found = [row(NAME, role, {"content": content}, {})]
    elif role == "assistant":
        found = [_answer_row(content)]
    else:
        found = [_user_row(role, run) for run in _runs(content)]
    return together(found, message, outer_of(message, "content", role))


def _answer_row(blocks: list[Message]) -> Message:
    found = sorted_out(blocks, _place_of, lambda block: block, _row_call)
    odd = [block for block in blocks if _place_of(block) == CALL]
    unusual = {
        str(number): emptied(block, *CALL_KEYS[1:])
        for number, block in enumerate(odd)
        if tuple(block) != CALL_KEYS
    }
    beside = {"calls": unusual} if unusual else {}
    return row(NAME, "assistant", found.shown, found.order | beside)


def _place_of(block: Message) -> str:
    if block["type"] in THINKING:
        return ""
    return CALL if block["type"] == "tool_use" else PART


def _row_call(block: Message) -> Message:
    function = {"name": block["name"], "arguments": block["input"]}
    return {"id": block["id"], "type": "function", "function": function}


def _runs(content: list[Message]) -> list[list[Message]]:
    """Return the blocks of a user in runs: each result alone; one empty run if there are none."""
    runs: list[list[Message]] = []
    for block in content:
        is_result = block["type"] == RESULT
        if is_result or not runs or runs[-1][0]["type"] == RESULT:
            runs.append([block])
        else:
            runs[-1].append(block)
    return runs or [[]]


def _user_row(role: str, run: list[Message]) -> Message:
    if not run or run[0]["type"] != RESULT:
        return row(NAME, role, {"content": run}, {})
    (block,) = run
    shown = {"tool_call_id": block["tool_use_id"], "content": block.get("content")}
    if block.get("is_error") is True:
        shown["messageStatus"] = "error"
    return row(NAME, "tool", shown, {"block": emptied(block, "tool_use_id", "content")})


def given(rows: Sequence[Message]) -> Message:
    """Return the original message from its rows."""
    first = rows[0]
    role = "user" if first["role"] == "tool" else first["role"]
    content = first.get("content")
    is_list = first["role"] == "tool" or len(rows) > 1 or not isinstance(content, str)
    if is_list:
        content = [block for each in rows for block in _given_blocks(each)]
    return filled(outer_from(rows[-1], "content", role), content=content)


def left(row: Message, redacted: Message) -> Message:
    """Return the values kept of a redacted part: that it is a result."""
    if redacted["role"] != "tool":
        return {}
    block = wire_of(row)["block"]
    is_error = block.get("is_error")
    failed = {"is_error": is_error} if isinstance(is_error, bool) else {}
    return {"block": {**USUAL_RESULT, **failed}}


def _given_blocks(row: Message) -> list[Any]:
    held, content = wire_of(row), row.get("content")
    if row["role"] == "tool":
        return [filled(held["block"], tool_use_id=row["tool_call_id"], content=content)]
    if isinstance(content, str):
        return [_text(content)]
    unusual = held.get("calls", {})
    calls = {
        number: _given_call(call, unusual.get(str(number), USUAL_CALL))
        for number, call in enumerate(row.get("tool_calls", ()))
    }
    return [block for _, block in planned(held.get("plan", ()), content or [], calls)]


def _given_call(call: Message, block: Message) -> Message:
    function = call["function"]
    return filled(block, id=call["id"], name=function["name"], input=function["arguments"])
