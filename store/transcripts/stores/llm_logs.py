"""Conversations that ``llm`` logged (``logs.db``): a prompt and its response a row.

Results that a prompt gave to a model stand before what it asked. Versions from 0.32 on log threads;
a conversation that one of them goes on with is read there.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..database import Layout, SqliteConnection, load_table_names, parse_json_cell
from ..parser_events import (
    Event,
    ForkPoint,
    SessionEvent,
    SessionMessage,
    SessionNames,
    build_chat_call,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_objects,
    get_text,
    join_texts,
    parse_iso_milliseconds,
    render_first_title,
    simplify_content,
)
from ..source import SourceValue, for_each_conversation
from ..trees import list_ancestors

__all__ = ["LLM_LOGS_LAYOUT", "is_llm_conversation", "parse_llm_logs"]

SELECT_LLM_THREADS = (
    "SELECT * FROM threads WHERE tip_message_hash IS NOT NULL ORDER BY datetime_utc, id"
)
SELECT_MESSAGE_PARENTS = "SELECT hash, parent_hash FROM messages"
SELECT_LLM_MESSAGE = "SELECT role, provider_metadata FROM messages WHERE hash = ?"
SELECT_LLM_PARTS = "SELECT type, text, payload FROM parts WHERE message_hash = ? ORDER BY position"
SELECT_LLM_TURNS = "SELECT * FROM turns WHERE thread_id = ? ORDER BY datetime_utc, id"
SELECT_LLM_FRAGMENT = "SELECT content FROM fragments WHERE id = ?"
SELECT_LLM_ATTACHMENT = "SELECT type, url, path, content FROM attachments WHERE id = ?"

LLM_REQUEST_KEYS = (
    "model",
    "resolved_model",
    "duration_ms",
    "input_tokens",
    "output_tokens",
    "reasoning",
)
"""What the log tells of a request."""


def _load_llm_message(rows: SqliteConnection, name: str) -> JsonFields:
    (row,) = rows.execute(SELECT_LLM_MESSAGE, (name,))
    held = rows.execute(SELECT_LLM_PARTS, (name,)).fetchall()
    parts: list[JsonFields] = []
    for part in held:
        piece = {**get_fields(parse_json_cell(part["payload"])), "type": part["type"]}
        if part["text"] is not None:
            piece["text"] = part["text"]
        if "text_ref" in piece:
            pieces = get_objects(piece.pop("text_ref"))
            piece["text"] = "".join(_load_text_piece(rows, each) for each in pieces)
        files = [piece.get("attachment"), *get_list(piece.get("attachments"))]
        names = [get_fields(each).get("id") for each in files]
        found = [_load_attached_file(rows, name) for name in names if name]
        llm_part = drop_keys(piece, "attachment", "attachments") | drop_empty_fields(
            {"files": found}
        )
        parts.append(llm_part)
    extra = {"provider_metadata": parse_json_cell(row["provider_metadata"])}
    return {"hash": name, "role": row["role"], "parts": parts, **extra}


def _load_text_piece(rows: SqliteConnection, piece: JsonFields) -> str:
    if "fragment" not in piece:
        return get_text(piece.get("literal")) or ""
    found = rows.execute(SELECT_LLM_FRAGMENT, (piece["fragment"],)).fetchone()
    return found[0] if found else ""


def _load_attached_file(rows: SqliteConnection, name: object) -> JsonFields:
    """Return a file as a part: a picture as ``image_url``, any other with its description."""
    row = rows.execute(SELECT_LLM_ATTACHMENT, (name,)).fetchone()
    told = {"type": "attachment", "id": name}
    if row is None:
        return told
    url = row["url"]
    if row["content"] is not None:
        url = f"data:{row['type']};base64,{base64.b64encode(row['content']).decode()}"
    if url and str(row["type"]).startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return told | drop_empty_fields({"mime_type": row["type"], "url": url, "path": row["path"]})


def parse_llm_thread(fields: JsonFields, names: SessionNames) -> Iterator[Event]:
    """Return the session of a thread, and the messages that are its own."""
    thread, turns = get_fields(fields["thread"]), get_fields(fields.get("turns"))
    shared = fields.get("shared")
    told = _parse_dated_messages(fields, turns)
    end = shared if isinstance(shared, int) else 0
    before, own = [*chain(*told[:end])], chain(*told[end:])
    models = (get_fields(turn).get("model") for turn in turns.values())
    title = render_first_title([thread.get("name")])
    name = names.name(get_text(thread.get("id")))
    origin = get_text(thread.get("forked_from"))
    stem = ForkPoint(origin, len(before)) if origin and before else None
    link = {"parent_session": stem.session_id, "forked_at": stem.after} if stem else {}
    metadata = drop_empty_fields({"model": find_first_text(models)}) | link
    yield SessionEvent(name, title, None, metadata, stem=stem)
    yield from map(SessionMessage, own)


def _parse_dated_messages(fields: JsonFields, turns: JsonFields) -> list[list[Message]]:
    """Return what each message says, with the moment of the turn in which it was said."""
    made: list[list[Message]] = []
    moment: int | None = None
    for each in reversed(get_objects(fields.get("messages"))):
        turn = get_fields(turns.get(str(each.get("hash"))))
        moment = parse_iso_milliseconds(turn.get("datetime_utc")) or moment
        parts = get_objects(each.get("parts"))
        results = [
            _parse_llm_thread_result(part) for part in parts if part.get("type") == "tool_result"
        ]
        rest = [part for part in parts if part.get("type") != "tool_result"]
        messages = (
            [*results, _parse_thread_parts(each, rest, turn)] if rest or not results else results
        )
        name = get_text(each.get("hash")) or ""
        names = [*(f"{name}-{number}" for number in range(1, len(messages))), name]
        when = drop_empty_fields({"timestamp": moment})
        named = zip(messages, names, strict=True)
        made.append([item | {"id": name} | when for item, name in named])
    return made[::-1]


def _parse_thread_parts(told: JsonFields, parts: list[JsonFields], turn: JsonFields) -> Message:
    calls = [part for part in parts if part.get("type") == "tool_call"]
    said: list[JsonFields] = []
    for part in parts:
        if part.get("type") == "text" and get_text(part.get("text")):
            said.append(build_text_part(part["text"]))
        said += get_objects(part.get("files"))
    thoughts = join_texts(part.get("text") for part in parts if part.get("type") == "reasoning")
    role = get_text(told.get("role")) or "user"
    facts = {key: turn.get(key) for key in LLM_REQUEST_KEYS}
    beside = [part["provider_metadata"] for part in parts if part.get("provider_metadata")]
    facts |= {"provider_metadata": told.get("provider_metadata"), "parts": beside}
    message: Message = {"role": role, "content": simplify_content(said)}
    if role != "assistant":
        message["content"] = message["content"] or ""
    more = {
        "tool_calls": [
            build_chat_call(part.get("tool_call_id"), part.get("name"), part.get("arguments"))
            for part in calls
        ],
        "reasoning_content": thoughts,
    }
    return message | drop_empty_fields({**more, "llm": drop_empty_fields(facts)})


def _parse_llm_thread_result(part: JsonFields) -> Message:
    link = {"tool_call_id": part.get("tool_call_id"), "name": part.get("name")}
    failed = {"messageStatus": "error"} if part.get("exception") else {}
    text = build_text_part(get_text(part.get("output")) or "")
    content = simplify_content([text, *get_objects(part.get("files"))])
    return {"role": "tool", "content": content, **drop_empty_fields(link), **failed}


SELECT_LLM_CONVERSATIONS = "SELECT * FROM conversations ORDER BY id"
SELECT_LLM_RESPONSES = "SELECT * FROM responses WHERE conversation_id = ? ORDER BY datetime_utc, id"
SELECT_RESPONSE_TOOLS = "SELECT * FROM {} WHERE response_id = ? ORDER BY id"
RESPONSE_TOOL_TABLES = ("tool_calls", "tool_results")
"""Tables of the parts of a response."""
SELECT_PROMPT_FRAGMENTS = """
    SELECT content FROM fragments JOIN {} AS used ON used.fragment_id = fragments.id
    WHERE response_id = ? ORDER BY "order"
"""
LLM_PROMPT_COLUMNS = ("prompt", "system")
FRAGMENT_SEPARATORS = {"prompt_fragments": "\n", "system_fragments": "\n\n"}
"""Tables of texts that stand before a prompt, or a system prompt → what stands between them."""


def is_llm_conversation(value: Any) -> bool:
    """Tell whether a value is a conversation of such a database."""
    fields = get_fields(value)
    return "thread" in fields or fields.keys() >= {"conversation", "responses"}


@for_each_conversation(is_llm_conversation, "conversation of the database")
def parse_llm_logs(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return a conversation as a session, or a thread of newer versions."""
    fields = get_fields(item.value)
    if "thread" in fields:
        yield from parse_llm_thread(fields, names)
        return
    known = get_fields(fields.get("conversation"))
    title = render_first_title([known.get("name")])
    name = names.name(get_text(known.get("id")))
    yield SessionEvent(name, title, None, drop_empty_fields({"model": known.get("model")}))
    system: str | None = None
    for response in map(get_fields, get_list(fields.get("responses"))):
        yield from map(SessionMessage, _parse_llm_response(response, system))
        system = get_text(response.get("system")) or system


def _parse_llm_response(response: JsonFields, system: str | None) -> Iterator[Message]:
    """Yield questions and answers; a system prompt where it is not the one before."""
    moment = drop_empty_fields({"timestamp": parse_iso_milliseconds(response.get("datetime_utc"))})
    told = get_text(response.get("system"))
    if told and told != system:
        yield {"role": "system", "content": told} | moment
    for result in map(get_fields, get_list(response.get("tool_results"))):
        failed = {"messageStatus": "error"} if result.get("exception") else {}
        named = drop_empty_fields(
            {"tool_call_id": result.get("tool_call_id"), "name": result.get("name")}
        )
        yield {"role": "tool", "content": result.get("output") or "", **named, **failed} | moment
    if get_text(response.get("prompt")):
        yield {"role": "user", "content": response["prompt"]} | moment
    calls = [
        {
            "id": call.get("tool_call_id") or f"call-{call.get('id')}",
            "type": "function",
            "function": {
                "name": call.get("name") or "",
                "arguments": call.get("arguments") or "{}",
            },
        }
        for call in map(get_fields, get_list(response.get("tool_calls")))
    ]
    answer: Message = {"role": "assistant", "content": response.get("response") or None}
    extra = drop_empty_fields({key: response.get(key) for key in LLM_REQUEST_KEYS})
    answer |= {**drop_empty_fields({"id": response.get("id")}), **moment, "llm": extra}
    yield answer | ({"tool_calls": calls} if calls else {})


def _load_llm_conversations(rows: SqliteConnection) -> Iterator[Any]:
    tables = load_table_names(rows)
    has_threads = "threads" in tables
    continued = (
        {thread["id"] for thread in rows.execute(SELECT_LLM_THREADS)} if has_threads else set()
    )
    for known in rows.execute(SELECT_LLM_CONVERSATIONS):
        if known["id"] not in continued:
            found = map(dict, rows.execute(SELECT_LLM_RESPONSES, (known["id"],)))
            responses = [_load_whole_response(rows, tables, each) for each in found]
            yield {"conversation": dict(known), "responses": responses}
    if has_threads:
        # A message's hash covers what is before it, so two threads share only how they begin.
        parents = dict(map(tuple, rows.execute(SELECT_MESSAGE_PARENTS)))
        lines: dict[str, list[str]] = {}
        for thread in map(dict, rows.execute(SELECT_LLM_THREADS).fetchall()):
            line = [*list_ancestors(parents, thread["tip_message_hash"])][::-1]
            lines[thread["id"]] = line
            other = lines.get(thread["forked_from"] or "", [])
            turns = map(dict, rows.execute(SELECT_LLM_TURNS, (thread["id"],)))
            yield {
                "thread": thread,
                "messages": [_load_llm_message(rows, name) for name in line],
                "turns": {turn["tip_message_hash"]: turn for turn in turns},
                "shared": len({*line} & {*other}),
            }


def _load_whole_response(
    rows: SqliteConnection, tables: set[str], response: JsonFields
) -> JsonFields:
    """Return a response with its calls and results, and its prompts as they were sent."""
    name = response["id"]
    prompts = {
        key: _load_prompt_text(rows, tables, f"{key}_fragments", response)
        for key in LLM_PROMPT_COLUMNS
    }
    return (
        response
        | prompts
        | {
            table: list(map(dict, rows.execute(SELECT_RESPONSE_TOOLS.format(table), (name,))))
            if table in tables
            else []
            for table in RESPONSE_TOOL_TABLES
        }
    )


def _load_prompt_text(
    rows: SqliteConnection, tables: set[str], table: str, response: JsonFields
) -> str:
    """Return a prompt after the texts that precede it."""
    said = [response[table.removesuffix("_fragments")]]
    if table in tables:
        used = rows.execute(SELECT_PROMPT_FRAGMENTS.format(table), (response["id"],))
        said[:0] = [text for (text,) in used]
    return join_texts(said, FRAGMENT_SEPARATORS[table])


LLM_LOGS_LAYOUT = Layout(
    frozenset({"conversations.model", "responses.prompt_json", "responses.conversation_id"}),
    _load_llm_conversations,
)
"""How the program's database is laid out."""
