"""Chats of Cursor: those in its database, and the transcripts of its agents."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any
from urllib.parse import unquote

from ..records import Message
from ..text import JsonFields
from .blocks import build_answer_messages, build_user_messages, parse_blocks
from .database import Layout, SqliteConnection, load_table_names, parse_json_cell
from .parser_events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    list_omission_notes,
    note_omission,
    note_unread_value,
    parse_iso_milliseconds,
    render_titles,
    simplify_content,
)
from .source import TranscriptSource
from .trees import insert_compactions

__all__ = ["CURSOR_LAYOUT", "is_cursor_chat", "parse_cursor"]

SELECT_CURSOR_CHATS = """
    SELECT key, value FROM cursorDiskKV
    WHERE key >= 'composerData:' AND key < 'composerData;'
    ORDER BY key
"""

SELECT_CURSOR_BUBBLES = """
    SELECT key, value FROM cursorDiskKV
    WHERE key >= :first AND key < :behind
    ORDER BY rowid
"""

SELECT_CURSOR_HEAD = "SELECT value FROM composerHeaders WHERE composerId = :name"

SELECT_OLDEST_CHATS = """
    SELECT value FROM ItemTable
    WHERE key = 'workbench.panel.aichat.view.aichat.chatdata'
"""


def _load_cursor_chats(rows: SqliteConnection) -> Iterator[Any]:
    """Yield each chat: its metadata and its bubbles."""
    tables = load_table_names(rows)
    if "cursorDiskKV" in tables:
        has_heads = "composerHeaders" in tables
        for key, value in rows.execute(SELECT_CURSOR_CHATS):
            chat, name = get_fields(parse_json_cell(value)), key.partition(":")[2]
            if value is not None and not chat:
                yield NoteEvent(None, f"the chat {name!r} is left out, it is no JSON", broken=True)
            elif chat:
                head = get_fields(_load_cursor_head(rows, name)) if has_heads else {}
                known = {"composerId": name, **head, **chat}
                yield {"composerData": known, "bubbles": _load_bubbles(rows, name, chat)}
    for (value,) in rows.execute(SELECT_OLDEST_CHATS):
        chat = get_fields(parse_json_cell(value))
        if "requests" in chat:
            yield _build_windsurf_chat(chat)
        for tab in map(get_fields, get_list(chat.get("tabs"))):
            known = {"composerId": get_text(tab.get("tabId")), "name": tab.get("chatTitle")}
            yield {"composerData": known, "bubbles": get_list(tab.get("bubbles"))}


def _build_windsurf_chat(chat: JsonFields) -> JsonFields:
    """Return a chat of Windsurf, in the shape of VS Code's, as one of Cursor's."""
    bubbles: list[JsonFields] = []
    for number, request in enumerate(get_objects(chat.get("requests")), 1):
        name, moment = get_text(request.get("requestId")), request.get("timestamp")
        asked = {"bubbleId": name or f"request-{number}", "createdAt": moment}
        texts = (part.get("value") for part in get_objects(request.get("response")))
        answer = join_texts(texts, "")
        told = {"type": 2, "text": answer, "bubbleId": f"{asked['bubbleId']}-answer"}
        text = get_nested(request, "message", "text")
        bubbles += [{"type": 1, "text": text, **asked}, {"createdAt": moment, **told}]
    known = {"composerId": chat.get("sessionId"), "createdAt": chat.get("creationDate")}
    return {"composerData": {"name": chat.get("customTitle"), **known}, "bubbles": bubbles}


def _load_cursor_head(rows: SqliteConnection, name: str) -> Any:
    found = rows.execute(SELECT_CURSOR_HEAD, {"name": name}).fetchone()
    return parse_json_cell(found[0]) if found else None


def _load_bubbles(rows: SqliteConnection, name: str, chat: JsonFields) -> list[Any]:
    """Return a chat's bubbles: those that it holds, else those of its rows, under their ids."""
    held = get_list(chat.get("conversation"))
    if held:
        return held
    first = f"bubbleId:{name}:"
    found = rows.execute(SELECT_CURSOR_BUBBLES, {"first": first, "behind": f"bubbleId:{name};"})
    return [
        get_fields(parse_json_cell(value)) | {"bubbleId": key.removeprefix(first)}
        for key, value in found
        if value is not None
    ]


CURSOR_LAYOUT = Layout(frozenset({"ItemTable.value"}), _load_cursor_chats)
"""How Cursor's databases are laid out: that of all chats, and older ones, of each workspace."""


CURSOR_BUBBLE_ROLES = {
    1: "user",
    2: "assistant",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
}
"""Type of a bubble → who said it; names are of the first versions, and of Windsurf's."""

BUBBLE_TOOL_KEY = "toolFormerData"

_BUBBLE_KEYS = (
    *("_v", "type", "bubbleId", "id", "text", "rawText", "richText", "createdAt", "thinking"),
    *("allThinkingBlocks", BUBBLE_TOOL_KEY, "capabilities", "capabilityStatuses", "capabilityType"),
    *("supportedTools", "serverBubbleId", "isThought", "timingInfo", "delegate"),
)

_BUBBLE_CALL_KEYS = ("tool", "name", "rawArgs", "params", "result", "error", "status", "toolCallId")

ENDED_BUBBLE_STATES = ("completed", "error", "cancelled")


def find_bubble_id(bubble: JsonFields) -> str | None:
    """Return a bubble's id."""
    return find_first_text((bubble.get("bubbleId"), bubble.get("id")))


def is_bubble(value: object) -> bool:
    """Tell whether a value is a bubble that can be read."""
    kind = get_fields(value).get("type")
    return isinstance(kind, int | str) and kind in CURSOR_BUBBLE_ROLES


def parse_bubble(bubble: JsonFields) -> list[Message]:
    """Return the messages of a bubble; none where it says nothing."""
    call = get_fields(bubble.get(BUBBLE_TOOL_KEY))
    if call.get("name") or call.get("rawArgs"):
        return _parse_bubble_call(bubble, call)
    said = find_first_text((bubble.get("text"), bubble.get("rawText")))
    role = CURSOR_BUBBLE_ROLES[bubble["type"]]
    if not said and role == "assistant":
        return []
    return [{"role": role, "content": said or ""} | _collect_bubble_extra(bubble)]


def _parse_bubble_call(bubble: JsonFields, call: JsonFields) -> list[Message]:
    """Return a call, and its result where there is one."""
    name = get_text(call.get("toolCallId")) or f"call-{find_bubble_id(bubble)}"
    tool = get_text(call.get("name")) or f"tool_{call.get('tool')}"
    asked = build_chat_call(name, tool, _render_bubble_arguments(call))
    said = get_text(bubble.get("text"))
    message = {"role": "assistant", "content": said, "tool_calls": [asked]}
    return [message | _collect_bubble_extra(bubble), *_parse_bubble_result(name, tool, call)]


def _render_bubble_arguments(call: JsonFields) -> str:
    """Return what a call asks for as a JSON object: as the model wrote it, else as it was read."""
    for told in (call.get("rawArgs"), call.get("params")):
        if isinstance(told, str) and _is_json_object_text(told):
            return told
        if told and isinstance(told, dict):
            return _render_bubble_json(told)
    told = get_text(call.get("rawArgs"))
    return _render_bubble_json({"input": told} if told else {})


def _is_json_object_text(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _parse_bubble_result(name: str, tool: str, call: JsonFields) -> list[Message]:
    status, result = call.get("status"), call.get("result")
    if status not in ENDED_BUBBLE_STATES and result in (None, ""):
        return []
    said = _render_bubble_value(result) or _render_bubble_value(call.get("error"))
    failed = status == "error" or bool(call.get("error"))
    message: Message = {"role": "tool", "tool_call_id": name, "name": tool, "content": said}
    told = drop_empty_fields({"status": status, **drop_keys(call, *_BUBBLE_CALL_KEYS)})
    return [
        message | drop_empty_fields({"messageStatus": "error" if failed else "", "cursor": told})
    ]


def _render_bubble_value(value: Any) -> str:
    """Return a value as text: JSON where it is none."""
    return value if isinstance(value, str) else "" if value is None else _render_bubble_json(value)


def _collect_bubble_extra(bubble: JsonFields) -> JsonFields:
    """Return a bubble's id and time, and what else it says."""
    moment = parse_bubble_time(bubble)
    extra = drop_empty_fields(drop_keys(bubble, *_BUBBLE_KEYS))
    return drop_empty_fields({"id": find_bubble_id(bubble), "timestamp": moment, "cursor": extra})


def parse_bubble_time(bubble: JsonFields) -> int | None:
    """Return when a bubble came to be, in ms; None where it does not tell."""
    for told in (bubble.get("createdAt"), get_nested(bubble, "timingInfo", "clientStartTime")):
        moment = told if isinstance(told, int | float) else parse_iso_milliseconds(told)
        if moment and 10**12 < moment < 2**53:
            return int(moment)
    return None


def _render_bubble_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


CURSOR_LINE_ROLES = ("user", "assistant")

USER_QUERY_PATTERN = re.compile(r".*<user_query>\s*(.*?)\s*</user_query>.*", re.DOTALL)
"""The user's input within a sent text."""


def is_cursor_line(value: object) -> bool:
    """Tell whether a value is a line that can be read."""
    fields = get_fields(value)
    said = get_fields(fields.get("message"))
    return fields.get("role") in CURSOR_LINE_ROLES and bool(parse_blocks(said.get("content")))


def is_cursor_state(value: object) -> bool:
    """Tell whether a value is a line that tells what the program did."""
    fields = get_fields(value)
    return "role" not in fields and get_text(fields.get("type")) is not None


def parse_cursor_lines(lines: Iterable[tuple[int, JsonFields]]) -> Iterator[Message]:
    """Yield what lines say, each given with its number, after which its calls are named."""
    waiting: deque[str] = deque()
    for number, line in lines:
        told = line["message"]
        blocks = [
            _link_result_to_call(_ensure_call_id(block, f"{number}-{place}"), waiting)
            for place, block in enumerate(parse_blocks(told["content"]) or [], 1)
        ]
        made = (
            _parse_cursor_question(blocks)
            if line["role"] == "user"
            else build_answer_messages(blocks)
        )
        extra = {**drop_keys(line, "role", "message"), **drop_keys(told, "role", "content")}
        made[0] |= drop_empty_fields({"cursor": drop_empty_fields(extra)})
        yield from made


def _parse_cursor_question(blocks: list[JsonFields]) -> list[Message]:
    made = build_user_messages(blocks, blocks)
    if made[-1]["role"] == "user":
        made[-1]["content"] = simplify_content(made[-1]["content"]) or ""
    return made


def _link_result_to_call(block: JsonFields, waiting: deque[str]) -> JsonFields:
    """Note a call that waits; return a result with the call that it answers."""
    if block.get("type") == "tool_use":
        waiting.append(block["id"])
    if block.get("type") != "tool_result":
        return block
    told = get_text(block.get("tool_use_id"))
    answered = told or next(iter(waiting), None)
    if answered and answered in waiting:
        waiting.remove(answered)
    return {**block, "tool_use_id": answered}


def _ensure_call_id(block: JsonFields, number: str) -> JsonFields:
    """Return a block; a call that has no id, with one."""
    if block.get("type") != "tool_use" or block.get("id"):
        return block
    return {**block, "id": f"call-{number}"}


CURSOR_CHAT_KEYS = (
    *("status", "subtitle", "unifiedMode", "forceMode", "isAgentic", "createdAt", "lastUpdatedAt"),
    *("usageData", "contextTokensUsed", "contextTokenLimit", "subagentInfo"),
)
"""Fields of a chat that are kept; the others are the state of files and of the screen."""

WORKSPACE_FILE = "workspace.json"
"""The file beside the database of a folder's chats, which names the folder."""

BubblesById = dict[str, JsonFields]
"""The bubbles of a chat, each under its id, in order."""

MessagesByBubble = dict[str, list[Message]]
"""What each of them says."""


def is_cursor_chat(value: Any) -> bool:
    """Tell whether a value is a chat of a database, or a line of a transcript."""
    fields = get_fields(value)
    return {"composerData", "bubbles"} <= fields.keys() or is_cursor_line(value)


def parse_cursor(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a database, or the one of a transcript."""
    names, folder = SessionNames("chat"), _read_workspace_folder(source)
    lines: list[tuple[int, JsonFields]] = []
    states: Counter[tuple[str, str]] = Counter()
    for number, item in enumerate(source.values(), 1):
        if isinstance(item, NoteEvent):
            yield item
        elif is_cursor_line(item.value):
            lines.append((number, item.value))
        elif is_cursor_chat(item.value):
            yield from _parse_cursor_chat(item.value, names, folder)
        elif is_cursor_state(item.value):
            states[item.value["type"], ""] += 1
        else:
            yield note_unread_value(item.row, item.value, "no line of a chat")
    if lines:
        said = list(parse_cursor_lines(lines))
        yield _build_transcript_opening(source, said)
        yield from map(SessionMessage, said)
    yield from list_omission_notes(states, "line")


def _build_transcript_opening(source: TranscriptSource, lines: list[Message]) -> SessionEvent:
    """Return the session of an agent's file, which a database may hold as well, and better."""
    folder = source.path.parent
    parent = folder.parent.name if folder.name == "subagents" else None
    link = {"parent_session": f"{parent}/transcript"} if parent else {}
    words = (get_text(each["content"]) for each in lines if each["role"] == "user")
    title = USER_QUERY_PATTERN.sub(r"\1", next(filter(None, words), find_title(lines) or ""))
    return SessionEvent(
        f"{source.stem}/transcript", find_first_text(render_titles([title])), None, link
    )


def _read_workspace_folder(source: TranscriptSource) -> str | None:
    """Return the folder that a workspace's database is of, as the file beside it tells."""
    try:
        told = source.path.with_name(WORKSPACE_FILE).read_bytes()
    except OSError:
        return None
    return get_text(get_nested(parse_json_cell(told), "folder"))


def _parse_cursor_chat(
    chat: JsonFields, names: SessionNames, folder: str | None
) -> Iterator[Event]:
    known = get_fields(chat["composerData"])
    bubbles, missing, others = _order_bubbles(known, chat["bubbles"])
    said = _parse_bubbles(bubbles)
    messages = list(chain.from_iterable(said.values()))
    if not messages:
        return
    name = names.name(get_text(known.get("composerId")))
    opened = _build_cursor_opening(known, name, bubbles)
    titles = render_titles((known.get("name"), find_title(messages)))
    root = _find_cursor_folder(known, bubbles, folder)
    opened = opened._replace(title=find_first_text(titles), titles=titles, project_root=root)
    events: Iterator[Event] = chain([opened], map(SessionMessage, messages))
    yield from insert_compactions(events, dict(_find_cursor_compactions(known, said)))
    if missing:
        why = f" of {opened.session_id!r}, which the database does not have"
        yield note_omission(missing, "bubble", why)._replace(broken=True)
    if others:
        yield note_omission(others, "bubble", f" that {opened.session_id!r} no longer shows")


def _order_bubbles(known: JsonFields, held: list[Any]) -> tuple[BubblesById, int, int]:
    """Return the bubbles as the chat has them, how many are missing, and how many it left."""
    found = {
        find_bubble_id(bubble) or f"bubble-{place}": bubble
        for place, bubble in (
            (place, each) for place, each in enumerate(held, 1) if is_bubble(each)
        )
    }
    order = list(map(find_bubble_id, get_objects(known.get("fullConversationHeadersOnly"))))
    if not order:
        return found, 0, 0
    kept = {name: found[name] for name in order if name in found}
    return kept, len(order) - len(kept), len(found) - len(kept)


def _parse_bubbles(bubbles: BubblesById) -> MessagesByBubble:
    """Return the messages of each bubble; reasoning is added to the answer after it."""
    said: MessagesByBubble = {}
    thoughts: list[str] = []
    for name, bubble in bubbles.items():
        thinking = bubble.get("thinking")
        thoughts += filter(None, [get_text(thinking) or get_text(get_nested(thinking, "text"))])
        said[name] = parse_bubble(bubble)
        if thoughts and said[name] and said[name][0]["role"] == "assistant":
            said[name][0]["reasoning_content"] = "\n\n".join(thoughts)
            thoughts = []
    return said


def _build_cursor_opening(known: JsonFields, name: str, bubbles: BubblesById) -> SessionEvent:
    told = drop_empty_fields({key: known.get(key) for key in CURSOR_CHAT_KEYS})
    parent = get_nested(known, "subagentInfo", "parentComposerId")
    links = {"model": _find_cursor_model(known, bubbles), "parent_session": get_text(parent)}
    metadata = drop_empty_fields({**links, "cursor": told})
    return SessionEvent(name, None, None, metadata, created_at=parse_bubble_time(known))


def _find_cursor_model(known: JsonFields, bubbles: BubblesById) -> str | None:
    told = [get_nested(each, "modelInfo", "modelName") for each in bubbles.values()]
    return find_first_text((*told[::-1], get_nested(known, "modelConfig", "modelName")))


def _find_cursor_folder(known: JsonFields, bubbles: BubblesById, folder: str | None) -> str | None:
    """Return the folder that was open: as the chat tells, else a bubble, else its workspace."""
    place = get_nested(known, "workspaceIdentifier", "uri", "fsPath")
    told = (get_list(each.get("workspaceUris")) for each in bubbles.values())
    uri = find_first_text((place, *chain.from_iterable(told), folder))
    return unquote(uri.removeprefix("file://")) if uri else None


def _find_cursor_compactions(
    known: JsonFields, said: MessagesByBubble
) -> Iterator[tuple[int, CompactionEvent]]:
    """Yield the summary of the first bubbles, with the number of messages up to their last."""
    told = get_fields(get_nested(known, "latestConversationSummary", "summary"))
    summary, last = get_text(told.get("summary")), told.get("truncationLastBubbleIdInclusive")
    count = 0
    for name, messages in said.items():
        count += len(messages)
        if summary and name == last and count:
            yield count, CompactionEvent(count, summary)
