"""Conversations that ``llm`` logged (``logs.db``): a prompt and its response a row.

Results that a prompt gave to a model stand before what it asked. What versions from 0.32 on log, in
tables of messages, is told and left out.
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
    left_out,
    list_of,
    telling,
    text_of,
    title_line,
)
from ..several import conversations
from ..source import Source, Value

CONVERSATIONS = "SELECT * FROM conversations ORDER BY id"
RESPONSES = "SELECT * FROM responses WHERE conversation_id = ? ORDER BY datetime_utc, id"
OF_RESPONSE = "SELECT * FROM {} WHERE response_id = ? ORDER BY id"
TOOLS = ("tool_calls", "tool_results")
"""Tables of what belongs to a response."""
UNREAD = {
    "turns": ("SELECT count(*) FROM turns", "turn of newer tables"),
    "prompt_fragments": ("SELECT count(*) FROM prompt_fragments", "fragment of a prompt"),
}
"""Tables of what is not read: what newer versions log, and texts that prompts only point to."""
KEPT = ("model", "resolved_model", "duration_ms", "input_tokens", "output_tokens", "reasoning")


def looks(value: Any) -> bool:
    """Tell whether a value is a conversation of such a database."""
    return fields_of(value).keys() >= {"conversation", "responses"}


def parse(source: Source) -> Iterator[Event]:
    """Return each conversation as a session."""
    return conversations(source, looks, "conversation of the database", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    known = fields_of(fields.get("conversation"))
    title = title_line(text_of(known.get("name")) or "") or None
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
    for known in rows.execute(CONVERSATIONS):
        found = map(dict, rows.execute(RESPONSES, (known["id"],)))
        yield {
            "conversation": dict(known),
            "responses": [each | _tools(rows, tables, each["id"]) for each in found],
        }
    for table in sorted(UNREAD.keys() & tables):
        counting, thing = UNREAD[table]
        (count,) = rows.execute(counting).fetchone()
        if count:
            why = ", which only the program itself puts together"
            yield left_out(count, thing, why)._replace(broken=True)


def _tools(rows: Rows, tables: set[str], response: str) -> Fields:
    """Return the calls of a response, and the results that its prompt gave."""
    return {
        table: list(map(dict, rows.execute(OF_RESPONSE.format(table), (response,))))
        if table in tables
        else []
        for table in TOOLS
    }


LAYOUT = Layout(
    frozenset({"conversations.model", "responses.prompt_json", "responses.conversation_id"}),
    _conversations,
)
"""How the program's database is laid out."""
