"""Conversations that ``llm`` logged (``logs.db``): a prompt and its response a row.

Results that a prompt gave to a model stand before what it asked. Versions from 0.32 on log threads;
a conversation that one of them goes on with is read there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..database import Layout, SqliteConnection, load_table_names
from ..events import (
    Event,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    get_fields,
    get_list,
    get_text,
    join_texts,
    parse_iso_milliseconds,
    render_first_title,
)
from ..several import parse_conversations
from ..source import SourceValue, TranscriptSource
from .llm_threads import LLM_REQUEST_KEYS, SELECT_LLM_THREADS, load_llm_threads, parse_llm_thread

SELECT_LLM_CONVERSATIONS = "SELECT * FROM conversations ORDER BY id"
SELECT_LLM_RESPONSES = "SELECT * FROM responses WHERE conversation_id = ? ORDER BY datetime_utc, id"
SELECT_RESPONSE_TOOLS = "SELECT * FROM {} WHERE response_id = ? ORDER BY id"
RESPONSE_TOOL_TABLES = ("tool_calls", "tool_results")
"""Tables of what belongs to a response."""
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


def parse_llm_logs(source: TranscriptSource) -> Iterator[Event]:
    """Return each conversation as a session, and each thread of newer versions."""
    return parse_conversations(
        source, is_llm_conversation, "conversation of the database", _parse_llm_conversation
    )


def _parse_llm_conversation(item: SourceValue, names: SessionNames) -> Iterator[Event]:
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
    """Yield what was asked and answered; a system prompt where it is not the one before."""
    moment = drop_empty_fields({"timestamp": parse_iso_milliseconds(response.get("datetime_utc"))})
    told = get_text(response.get("system"))
    if told and told != system:
        yield {"role": "system", "content": told} | moment
    for result in map(get_fields, get_list(response.get("tool_results"))):
        yield _parse_llm_result(result) | moment
    if get_text(response.get("prompt")):
        yield {"role": "user", "content": response["prompt"]} | moment
    calls = [_parse_llm_call(get_fields(each)) for each in get_list(response.get("tool_calls"))]
    answer: Message = {"role": "assistant", "content": response.get("response") or None}
    extra = drop_empty_fields({key: response.get(key) for key in LLM_REQUEST_KEYS})
    answer |= {**drop_empty_fields({"id": response.get("id")}), **moment, "llm": extra}
    yield answer | ({"tool_calls": calls} if calls else {})


def _parse_llm_call(row: JsonFields) -> JsonFields:
    function = {"name": row.get("name") or "", "arguments": row.get("arguments") or "{}"}
    name = row.get("tool_call_id") or f"call-{row.get('id')}"
    return {"id": name, "type": "function", "function": function}


def _parse_llm_result(row: JsonFields) -> Message:
    failed = {"messageStatus": "error"} if row.get("exception") else {}
    named = drop_empty_fields({"tool_call_id": row.get("tool_call_id"), "name": row.get("name")})
    return {"role": "tool", "content": row.get("output") or "", **named, **failed}


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
        yield from load_llm_threads(rows)


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
    """Return a prompt behind the texts that stand before it."""
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
