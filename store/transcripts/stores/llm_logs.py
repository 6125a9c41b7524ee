"""Conversations that ``llm`` logged (``logs.db``): a prompt and its response a row.

Results that a prompt gave to a model stand before what it asked. Versions from 0.32 on log threads;
a conversation that one of them goes on with is read there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields
from ..database import Layout, Rows, tables_in
from ..events import (
    Event,
    Opened,
    Said,
    SessionNames,
    fields_of,
    iso_milliseconds,
    joined,
    list_of,
    telling,
    text_of,
    title_in,
)
from ..several import conversations
from ..source import Source, Value
from .llm_threads import KEPT, THREADS, thread_events, threads_in

CONVERSATIONS = "SELECT * FROM conversations ORDER BY id"
RESPONSES = "SELECT * FROM responses WHERE conversation_id = ? ORDER BY datetime_utc, id"
OF_RESPONSE = "SELECT * FROM {} WHERE response_id = ? ORDER BY id"
TOOLS = ("tool_calls", "tool_results")
"""Tables of what belongs to a response."""
FRAGMENTS = """
    SELECT content FROM fragments JOIN {} AS used ON used.fragment_id = fragments.id
    WHERE response_id = ? ORDER BY "order"
"""
PROMPTS = ("prompt", "system")
BETWEEN = {"prompt_fragments": "\n", "system_fragments": "\n\n"}
"""Tables of texts that stand before a prompt, or a system prompt → what stands between them."""


def looks(value: Any) -> bool:
    """Tell whether a value is a conversation of such a database."""
    fields = fields_of(value)
    return "thread" in fields or fields.keys() >= {"conversation", "responses"}


def parse(source: Source) -> Iterator[Event]:
    """Return each conversation as a session, and each thread of newer versions."""
    return conversations(source, looks, "conversation of the database", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    if "thread" in fields:
        yield from thread_events(fields, names)
        return
    known = fields_of(fields.get("conversation"))
    title = title_in([known.get("name")])
    name = names.name(text_of(known.get("id")))
    yield Opened(name, title, None, telling({"model": known.get("model")}))
    system: str | None = None
    for response in map(fields_of, list_of(fields.get("responses"))):
        yield from map(Said, _messages(response, system))
        system = text_of(response.get("system")) or system


def _messages(response: Fields, system: str | None) -> Iterator[Message]:
    """Yield what was asked and answered; a system prompt where it is not the one before."""
    moment = telling({"timestamp": iso_milliseconds(response.get("datetime_utc"))})
    told = text_of(response.get("system"))
    if told and told != system:
        yield {"role": "system", "content": told} | moment
    for result in map(fields_of, list_of(response.get("tool_results"))):
        yield _result(result) | moment
    if text_of(response.get("prompt")):
        yield {"role": "user", "content": response["prompt"]} | moment
    calls = [_call(fields_of(each)) for each in list_of(response.get("tool_calls"))]
    answer: Message = {"role": "assistant", "content": response.get("response") or None}
    extra = telling({key: response.get(key) for key in KEPT})
    answer |= {**telling({"id": response.get("id")}), **moment, "llm": extra}
    yield answer | ({"tool_calls": calls} if calls else {})


def _call(row: Fields) -> Fields:
    function = {"name": row.get("name") or "", "arguments": row.get("arguments") or "{}"}
    name = row.get("tool_call_id") or f"call-{row.get('id')}"
    return {"id": name, "type": "function", "function": function}


def _result(row: Fields) -> Message:
    failed = {"messageStatus": "error"} if row.get("exception") else {}
    named = telling({"tool_call_id": row.get("tool_call_id"), "name": row.get("name")})
    return {"role": "tool", "content": row.get("output") or "", **named, **failed}


def _conversations(rows: Rows) -> Iterator[Any]:
    tables = tables_in(rows)
    has_threads = "threads" in tables
    continued = {thread["id"] for thread in rows.execute(THREADS)} if has_threads else set()
    for known in rows.execute(CONVERSATIONS):
        if known["id"] not in continued:
            found = map(dict, rows.execute(RESPONSES, (known["id"],)))
            responses = [_whole(rows, tables, each) for each in found]
            yield {"conversation": dict(known), "responses": responses}
    if has_threads:
        yield from threads_in(rows)


def _whole(rows: Rows, tables: set[str], response: Fields) -> Fields:
    """Return a response with its calls and results, and its prompts as they were sent."""
    name = response["id"]
    prompts = {key: _text(rows, tables, f"{key}_fragments", response) for key in PROMPTS}
    return (
        response
        | prompts
        | {
            table: list(map(dict, rows.execute(OF_RESPONSE.format(table), (name,))))
            if table in tables
            else []
            for table in TOOLS
        }
    )


def _text(rows: Rows, tables: set[str], table: str, response: Fields) -> str:
    """Return a prompt behind the texts that stand before it."""
    said = [response[table.removesuffix("_fragments")]]
    if table in tables:
        used = rows.execute(FRAGMENTS.format(table), (response["id"],))
        said[:0] = [text for (text,) in used]
    return joined(said, BETWEEN[table])


LAYOUT = Layout(
    frozenset({"conversations.model", "responses.prompt_json", "responses.conversation_id"}),
    _conversations,
)
"""How the program's database is laid out."""
