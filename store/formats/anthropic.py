"""The Anthropic Messages format: turns of content blocks, with separate system text.

Thinking is sent back with its signature, and to no other provider.

Markers for the cache: a request holds at most four, and from a marker the provider looks back over
20 blocks only, so a long turn gets one in its middle. Markers that came in with messages belong to
the requests of that time; they are sent only on request.

The provider's own tools run on its server; their calls and results are both blocks of the
assistant. A request with one of them but not the other is refused, as with the tools of a client: a
call must be followed by its result, which may be in a later answer. Calls may only be open at the
end of the last answer, so that the provider continues with them. An answer that was interrupted,
hidden or overwritten in part leaves a call or a result alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ..messages import WIRE_KEY, Media, Message
from .call_names import WORD_ALPHABET, AcceptedNames, fit_ids
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
    remove_sealed_values,
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

CACHE_KEY = "cache_control"
CACHE_MARKER = {"type": "ephemeral"}
UNMARKABLE_TYPES = ("thinking", "redacted_thinking")
"""Types of blocks that cannot have a marker."""
CACHE_MARKER_LIMIT = 4
"""Markers that a request may hold."""
CACHE_LOOK_BACK = 20
"""Blocks before a marker in which the provider looks for a cached beginning."""


def mark_last_block(blocks: list[Message]) -> None:
    """Mark the end of blocks for the cache, at the last block that can have a marker."""
    for place in range(len(blocks) - 1, -1, -1):
        if blocks[place]["type"] not in UNMARKABLE_TYPES:
            blocks[place][CACHE_KEY] = CACHE_MARKER.copy()
            return


def keep_own_markers(placed: Sequence[PlacedMessage], name: str) -> list[PlacedMessage]:
    """Return a request that sends the markers its messages came in with, up to the limit."""
    left = CACHE_MARKER_LIMIT
    marked: list[PlacedMessage] = []
    for each in reversed(placed):
        held = find_wire_values(each.message, name)
        number = 0
        if held is not None:
            content = each.message.get("content")
            parts = content if isinstance(content, list) else ()
            blocks = [*parts, *held.get("calls", {}).values(), held.get("block", {})]
            number = sum(CACHE_KEY in block for block in blocks if isinstance(block, dict))
        left -= number
        marked.append(each._replace(marked=True) if number and left >= 0 else each)
    return marked[::-1]


SERVER_CALL_TYPES = ("server_tool_use", "mcp_tool_use")
"""Types of blocks that are calls of the provider's own tools."""
SERVER_RESULT_SUFFIX = "_tool_result"
"""The ending of the types of their results."""


class BlockPlace(NamedTuple):
    """The place of a block."""

    blocks: list[Message]
    number: int


def find_unpaired_blocks(turns: Sequence[SideTurn]) -> list[BlockPlace]:
    """Return the places of server calls and results without each other, or under a used id."""
    calls: dict[str, BlockPlace] = {}
    answered: set[str] = set()
    alone: list[BlockPlace] = []
    for turn in turns:
        for number, block in enumerate(turn.said):
            kind = block["type"]
            if kind in SERVER_CALL_TYPES:
                call_id = str(block.get("id"))
                if call_id not in calls and not turn.is_users:
                    calls[call_id] = BlockPlace(turn.said, number)
                    continue
            elif kind.endswith(SERVER_RESULT_SUFFIX):
                call_id = str(block.get("tool_use_id"))
                if call_id in calls and call_id not in answered and not turn.is_users:
                    answered.add(call_id)
                    continue
            else:
                continue
            alone.append(BlockPlace(turn.said, number))
    last = len(turns) - 1
    if (
        last > 0
        and turns[last].is_users
        and all(block["type"] == TOOL_RESULT for block in turns[last].said)
    ):
        last -= 1
    going_on = None if last < 0 or turns[last].is_users else turns[last].said
    unanswered = (spot for call_id, spot in calls.items() if call_id not in answered)
    return alone + [spot for spot in unanswered if spot.blocks is not going_on]


ANTHROPIC_NAME = "anthropic"
ANTHROPIC_ACCEPTED_NAMES = AcceptedNames(ids=WORD_ALPHABET, tools=WORD_ALPHABET)
ANTHROPIC_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
ANTHROPIC_PDF_TYPE = "application/pdf"
THINKING_KEYS = {"thinking": "signature", "redacted_thinking": "data"}
"""Types of blocks that are reasoning, and the key without which one is refused."""
SOURCE_BLOCK_TYPES = ("image", "document", "search_result")
"""Types of blocks with a source of their own."""
USER_BLOCK_TYPES = (
    *("text", *SOURCE_BLOCK_TYPES, "container_upload"),
    *("tool_reference", "tool_addition", "tool_removal"),
)
"""Types of blocks that a user's message or a result may have; others belong to a program."""
CALLER, MADE_BY = "caller", "tool_id"
"""The key under which a call names its caller, and the key there with the id of a server's call."""
EXTRA_CALL_KEYS = (CALLER, "toolset_name", CACHE_KEY)
"""Keys that a call may have beside its name and input."""
ANTHROPIC_ID_KEYS = ("id", "tool_use_id")
"""Keys of a server's call and of its result."""


def write_anthropic_messages(
    placed: Sequence[PlacedMessage], beginning: str = FIRST_USER_TEXT
) -> list[Message]:
    """Return a request as messages in which the user and the assistant take turns."""
    turns = join_turns(map(_build_anthropic_turn, placed), _build_text_block(beginning))
    for blocks, number in find_unpaired_blocks(turns):
        block = blocks[number]
        said = render_readable_json(remove_sealed_values(_remove_marker(block)))
        marker = {CACHE_KEY: block[CACHE_KEY]} if CACHE_KEY in block else {}
        blocks[number] = _build_text_block(said) | marker
    _remove_unsent_callers(turns)
    if any(each.cached for each in placed):
        all_blocks = [block for turn in turns for block in turn.said]
        places = [place for place, block in enumerate(all_blocks) if CACHE_KEY in block]
        before, last = [0, 0, *places][-2:]
        if last - before > CACHE_LOOK_BACK:  # too far for the cache, so one in the middle
            mark_last_block(all_blocks[: last - CACHE_LOOK_BACK + 1])
    return [
        {"role": "user" if turn.is_users else "assistant", "content": turn.said} for turn in turns
    ]


def write_anthropic_blocks(placed: PlacedMessage) -> list[Message]:
    """Return the blocks that are sent of one message."""
    return _build_anthropic_turn(placed).said


def write_anthropic_system(placed: Sequence[PlacedMessage]) -> list[Message] | None:
    """Return system messages as the blocks that are sent separately.

    If the markers of a message are sent, its last one marks its block.
    """
    blocks: list[Message] = []
    for each in placed:
        text = render_system_text(each)
        if text.strip():
            content = each.message.get("content")
            parts = content if each.marked and isinstance(content, list) else ()
            markers = [
                part[CACHE_KEY] for part in parts if isinstance(part, dict) and CACHE_KEY in part
            ]
            marker = {CACHE_KEY: replace_nested_surrogates(markers[-1])} if markers else {}
            blocks.append(_build_text_block(text) | marker)
        if each.cached:
            mark_last_block(blocks)
    return blocks or None


def _remove_unsent_callers(turns: Sequence[SideTurn]) -> None:
    """Remove from calls the name of the server's call that made them, if that is not sent.

    A call that the model made itself names no caller and needs none.
    """
    answers = [turn.said for turn in turns if not turn.is_users]
    called = [block for said in answers for block in said if CALLER in block]
    if not called:
        return
    there = {
        block["id"] for said in answers for block in said if block["type"] in SERVER_CALL_TYPES
    }
    for block in called:
        caller = block.pop(CALLER)
        named = fit_ids(caller, (MADE_BY,)) if isinstance(caller, dict) else {}
        if named.get(MADE_BY) in there:
            block[CALLER] = named


def _build_anthropic_turn(placed: PlacedMessage) -> SideTurn:
    """Return the turn of one message, with its end marked for the cache on request."""
    message = placed.message
    role = message["role"]
    if role == "assistant":
        blocks = _write_anthropic_answer(placed) if placed.written is None else placed.written
        is_users, blocks = False, _strip_last_text(blocks)
    elif placed.written is not None:
        is_users, blocks = True, placed.written
    elif role == "tool":
        is_users, blocks = True, [_write_tool_result(placed)]
    elif role in TURN_SYSTEM_ROLES:
        said = render_marked_system(placed)
        is_users, blocks = True, [_build_text_block(said)] if said else []
    else:
        speech = _choose_block_writer(
            placed, find_wire_values(message, ANTHROPIC_NAME), of_user=True
        )
        is_users, blocks = True, write_parts(message.get("content"), speech)
    if placed.cached:
        mark_last_block(blocks)
    return SideTurn(is_users, blocks)


def _build_text_block(text: str) -> Message:
    return {"type": "text", "text": text}


def _build_media_block(media: Media) -> Message | None:
    """Return a picture or a document as its block if its type is accepted."""
    if media.data is None:
        if media.type == "image" and media.url.startswith(("https://", "http://")):
            return {"type": "image", "source": {"type": "url", "url": media.url}}
        return None
    source = {"type": "base64", "media_type": media.type, "data": media.data}
    if media.type in ANTHROPIC_IMAGE_TYPES:
        return {"type": "image", "source": source}
    return {"type": "document", "source": source} if media.type == ANTHROPIC_PDF_TYPE else None


def _write_source_block(part: Message) -> Message | None:
    """Return a picture or document that has the provider's own shape, whatever its origin."""
    if part.get("type") in SOURCE_BLOCK_TYPES and isinstance(part.get("source"), dict | str):
        return _remove_marker(part)
    return None


def _write_own_block(part: Message, *, of_user: bool, marked: bool) -> Message | None:
    """Return a block that came in this format; None for reasoning and for a blank text.

    The block of a user or a tool has one of their types; only a ``marked`` one keeps its marker.
    """
    kind = part.get("type")
    if kind in THINKING_KEYS or not isinstance(kind, str):
        return None
    is_blank = kind == "text" and not str(part.get("text", "")).strip()
    if is_blank or (of_user and kind not in USER_BLOCK_TYPES):
        return None
    return fit_ids(clean_own_part(part) if marked else _remove_marker(part), ANTHROPIC_ID_KEYS)


def _remove_marker(part: Message) -> Message:
    """Return a block without its marker for the cache: a request sets its own markers."""
    return clean_own_part(part, CACHE_KEY)


FOREIGN_ANSWER_WRITER = PartWriter(_build_text_block, lambda _: None)
FOREIGN_USER_WRITER = PartWriter(_build_text_block, _build_media_block, _write_source_block)
OWN_BLOCK_WRITERS = {
    (of_user, marked): PartWriter(
        _build_text_block,
        _build_media_block,
        partial(_write_own_block, of_user=of_user, marked=marked),
    )
    for of_user in (False, True)
    for marked in (False, True)
}
"""By whether the user or a tool said the blocks, and whether their markers are sent."""


def _choose_block_writer(
    placed: PlacedMessage, held: Message | None, *, of_user: bool
) -> PartWriter:
    if held is None:
        return FOREIGN_USER_WRITER if of_user else FOREIGN_ANSWER_WRITER
    return OWN_BLOCK_WRITERS[of_user, placed.marked]


def _write_anthropic_answer(placed: PlacedMessage) -> list[Message]:
    """Return the thoughts, texts and calls of the assistant, in their own order if it is known.

    Reasoning that an import kept separately comes first. Reasoning is sent only with the key that
    the provider requires.
    """
    message = placed.message
    held = find_wire_values(message, ANTHROPIC_NAME)
    speech = _choose_block_writer(placed, held, of_user=False)
    plan = message.get("thinking_blocks") if held is None else held.get("plan")
    content = message.get("content")
    own = held.get("calls", {}) if held else {}
    without = () if placed.marked else (CACHE_KEY,)
    if not plan or not isinstance(plan, list):
        calls = (_write_tool_use(call, own, without) for call in placed.calls)
        return [*write_parts(content, speech), *calls]
    blocks: list[Message] = []
    for place, there in order_by_plan(
        plan, list_parts(content), index_calls_by_position(placed.calls)
    ):
        if place == CALL:
            blocks.append(_write_tool_use(there, own, without))
        elif place == PART:
            blocks.extend(write_part(there, speech))
        elif (
            isinstance(there, dict)
            and there.get("type") in THINKING_KEYS
            and there.get(THINKING_KEYS[there["type"]])
        ):
            blocks.append(_remove_marker(there))
    return blocks


def _strip_last_text(blocks: list[Message]) -> list[Message]:
    """Return blocks without white space after the last text: a request that ends so is refused."""
    if blocks and blocks[-1].get("type") == "text":
        blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"].rstrip()}
    return blocks


def _write_tool_use(call: ApiCall, own: Message, without: Sequence[str]) -> Message:
    """Return a call with the other keys that the provider gave it, if it came in this format."""
    name, given = call.name, parse_arguments(call.arguments)
    block = {"type": "tool_use", "id": call.id, "name": name, "input": given}
    came = own.get(str(call.position)) if own else None
    if not came:
        return block
    beside = {key: came[key] for key in EXTRA_CALL_KEYS if key in came}
    return block | clean_own_part(beside, *without)


def _write_tool_result(placed: PlacedMessage) -> Message:
    message = placed.message
    block: Message = {"type": "tool_result", "tool_use_id": placed.call_id}
    content = message.get("content")
    said: str | list[Message]
    if isinstance(content, str):
        said = "" if content.isspace() else replace_surrogates(content)
    else:
        said = write_parts(
            content,
            _choose_block_writer(placed, find_wire_values(message, ANTHROPIC_NAME), of_user=True),
        )
    failed = message.get("messageStatus") == "error"
    if said or failed:
        block["content"] = said or "Error"
    if failed:
        block["is_error"] = True
    held = find_wire_values(message, ANTHROPIC_NAME) if placed.marked else None
    marker = held.get("block", {}).get(CACHE_KEY) if held else None
    return {**block, CACHE_KEY: replace_nested_surrogates(marker)} if marker else block


# --- messages to rows and back --------------------------------------------------------------------

ANTHROPIC_ROLES = ("user", "assistant", "system")
TOOL_USE_KEYS = ("type", "id", "name", "input")
EMPTY_TOOL_USE = {"type": "tool_use", "id": None, "name": None, "input": None}
TOOL_RESULT = "tool_result"
EMPTY_TOOL_RESULT = {"type": TOOL_RESULT, "tool_use_id": None, "content": None}
DISTINCT_BLOCK_TYPES = (
    *("tool_use", TOOL_RESULT, "server_tool_use", "mcp_tool_use"),
    *("container_upload", "compaction", *THINKING_KEYS),
)
"""Types of blocks that no other format has, apart from results of the provider's own tools."""
ANTHROPIC_FOREIGN_KEYS = ("tool_calls", "tool_call_id", WIRE_KEY)


def is_anthropic_message(message: Message) -> bool:
    """Recognize a message by a block that no other format has."""
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in SOURCE_BLOCK_TYPES:
            is_distinct = isinstance(block.get("source"), dict)
        else:
            is_distinct = isinstance(kind, str) and (
                kind in DISTINCT_BLOCK_TYPES or kind.endswith(SERVER_RESULT_SUFFIX)
            )
        if is_distinct:
            return find_anthropic_problem(message) is None
    return False


def find_anthropic_problem(message: Message) -> Problem | None:
    """Return why a message is not of this format; None if it is."""
    role = message.get("role")
    if role not in ANTHROPIC_ROLES:
        return "role", f"Anthropic has {', '.join(ANTHROPIC_ROLES)}"
    foreign = find_first_key(message, ANTHROPIC_FOREIGN_KEYS)
    if foreign:
        return foreign, "is no key of an Anthropic message"
    content = message.get("content")
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "content", "is a text or a list of blocks"
    unfit = next(filter(None, (_find_block_problem(block, role) for block in content)), None)
    return ("content", unfit) if unfit else None


def _find_block_problem(block: Any, role: str) -> str | None:
    """Return why a role cannot have a block; None if it can."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return "a block is an object with a type"
    if block["type"] == "tool_use":
        is_named = isinstance(block.get("id"), str) and isinstance(block.get("name"), str)
        if role != "assistant" or not is_named or not isinstance(block.get("input"), dict):
            return "a tool_use is the assistant's, and has an id, a name and an input"
    if block["type"] == TOOL_RESULT and not (
        role == "user" and isinstance(block.get("tool_use_id"), str)
    ):
        return "a tool_result is the user's, and has a tool_use_id"
    return None


def build_anthropic_rows(message: Message) -> list[Message]:
    """Return a message as rows: one for each result, and one for each run of other blocks."""
    content, role = message["content"], message["role"]
    if isinstance(content, str):
        rows = [build_row(ANTHROPIC_NAME, role, {"content": content}, {})]
    elif role == "assistant":
        found = sort_blocks(content, _classify_block, lambda block: block, _parse_tool_use)
        calls = [block for block in content if _classify_block(block) == CALL]
        unusual = {
            str(number): empty_keys(block, *TOOL_USE_KEYS[1:])
            for number, block in enumerate(calls)
            if tuple(block) != TOOL_USE_KEYS
        }
        beside = {"calls": unusual} if unusual else {}
        rows = [build_row(ANTHROPIC_NAME, role, found.shown, found.order | beside)]
    else:
        runs = split_runs(content, lambda block: block["type"] == TOOL_RESULT)
        rows = [_build_block_row(role, run) for run in runs]
    return join_rows(rows, message, build_outer_keys(message, "content", role))


def _classify_block(block: Message) -> str:
    if block["type"] in THINKING_KEYS:
        return ""
    return CALL if block["type"] == "tool_use" else PART


def _parse_tool_use(block: Message) -> Message:
    function = {"name": block["name"], "arguments": block["input"]}
    return {"id": block["id"], "type": "function", "function": function}


def _build_block_row(role: str, run: list[Message]) -> Message:
    if not run or run[0]["type"] != TOOL_RESULT:
        return build_row(ANTHROPIC_NAME, role, {"content": run}, {})
    (block,) = run
    shown = {"tool_call_id": block["tool_use_id"], "content": block.get("content")}
    if block.get("is_error") is True:
        shown["messageStatus"] = "error"
    return build_row(
        ANTHROPIC_NAME, "tool", shown, {"block": empty_keys(block, "tool_use_id", "content")}
    )


def restore_anthropic_message(rows: Sequence[Message]) -> Message:
    """Return the original message from its rows."""
    first = rows[0]
    role = "user" if first["role"] == "tool" else first["role"]
    content = first.get("content")
    is_list = first["role"] == "tool" or len(rows) > 1 or not isinstance(content, str)
    if is_list:
        content = [block for each in rows for block in _restore_blocks(each)]
    return fill_keys(restore_outer_keys(rows[-1], "content", role), content=content)


def build_redacted_block(row: Message, redacted: Message) -> Message:
    """Return the values kept of a redacted part: that it is a result."""
    if redacted["role"] != "tool":
        return {}
    block = get_wire_values(row)["block"]
    is_error = block.get("is_error")
    failed = {"is_error": is_error} if isinstance(is_error, bool) else {}
    return {"block": {**EMPTY_TOOL_RESULT, **failed}}


def _restore_blocks(row: Message) -> list[Any]:
    held, content = get_wire_values(row), row.get("content")
    if row["role"] == "tool":
        return [fill_keys(held["block"], tool_use_id=row["tool_call_id"], content=content)]
    if isinstance(content, str):
        return [_build_text_block(content)]
    unusual = held.get("calls", {})
    calls = {
        number: fill_keys(
            unusual.get(str(number), EMPTY_TOOL_USE),
            id=call["id"],
            name=call["function"]["name"],
            input=call["function"]["arguments"],
        )
        for number, call in enumerate(row.get("tool_calls", ()))
    }
    return [block for _, block in order_by_plan(held.get("plan", ()), content or [], calls)]
