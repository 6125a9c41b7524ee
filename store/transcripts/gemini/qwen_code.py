"""Sessions of Qwen Code: rows much like Claude Code's, with the parts of the Gemini API in them.

Rows name the row before them. The path to the last message is the session; messages taken back
leave it, and are a branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import (
    Event,
    Noted,
    Opened,
    fields_of,
    first_text,
    iso_milliseconds,
    list_of,
    omissions,
    telling,
    text_of,
    title_lines,
    title_of,
    unread,
    without,
)
from ..shelf import Shelf, Shelved
from ..source import Source
from ..trees import Parents, Tree, tree_events
from .parts import calls_in, content_of, responses_in, result_of, thoughts_in

SPOKEN = ("user", "assistant", "tool_result")
"""Types of rows that the model saw; others are the program's own."""

_SAID = ("uuid", "parentUuid", "sessionId", "timestamp", "type", "message", "cwd")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a row that is this program's alone."""
    fields = fields_of(value)
    if not isinstance(fields.get("sessionId"), str):
        return False
    if fields.get("type") == "system":
        return "systemPayload" in fields
    return fields.get("type") in SPOKEN and _is_told(fields)


def parse(source: Source) -> Iterator[Event]:
    """Return the session of a file, its branches after it, then the notes."""
    with Shelf() as shelf:
        rows = Shelved(shelf)
        for item in source.values():
            if isinstance(item, Noted):
                yield item
            elif isinstance(item.value, dict) and "type" in item.value:
                rows[text_of(item.value.get("uuid")) or f"row-{len(rows) + 1}"] = item.value
            else:
                yield unread(item.row, item.value, "no line of a session")
        if rows:
            yield from _session(rows, Shelved(shelf), source.stem)


def _session(rows: Shelved, said: Shelved, stem: str) -> Iterator[Event]:
    waiting: list[Fields] = []
    left: Counter[tuple[str, str]] = Counter()
    for name, row in rows.items():
        messages = _messages_of(name, row)
        _link(messages, waiting)
        if messages:
            said[name] = messages
        else:
            left[(str(row["type"]), str(row.get("subtype") or ""))] += 1
    newest = next(reversed(said), None)
    tree = Tree(_parents(rows), newest, lambda name: said.get(name, []))
    first = (messages[0] for messages in said.values())
    yield from tree_events(tree, _opened(rows, stem, first))
    yield from omissions(left, "line")


def _opened(rows: Shelved, stem: str, messages: Iterable[Message]) -> Opened:
    name = _first("sessionId", rows.values()) or stem
    payloads = (fields_of(row.get("systemPayload")) for row in _from_the_last(rows))
    given = (*(payload.get("customTitle") for payload in payloads), title_of(messages))
    titles = title_lines(given)
    beside = {key: _first(key, rows.values()) for key in ("version", "gitBranch")}
    model = _first("model", _from_the_last(rows))
    metadata = telling({"model": model, "qwen_code": telling(beside)})
    root = _first("cwd", rows.values())
    return Opened(name, first_text(titles), root, metadata, titles=titles)


def _first(key: str, rows: Iterable[Fields]) -> str | None:
    return first_text(row.get(key) for row in rows)


def _from_the_last(rows: Shelved) -> Iterator[Fields]:
    return map(rows.__getitem__, reversed(rows))


def _parents(rows: Shelved) -> Parents:
    """Return what each row follows: the one before it where no row tells."""
    if any("parentUuid" in row for row in rows.values()):
        return {name: text_of(row.get("parentUuid")) for name, row in rows.items()}
    first: dict[str, str | None] = dict.fromkeys(list(rows)[:1])
    return first | {after: before for before, after in pairwise(rows)}


def _messages_of(name: str, row: Fields) -> list[Message]:
    """Return the messages of a row; the first has its id, and what else the row says."""
    if row["type"] not in SPOKEN or not _is_told(row):
        return []
    parts = list_of(fields_of(row.get("message")).get("parts"))
    if row["type"] == "assistant":
        more = {"tool_calls": calls_in(parts, name), "reasoning_content": thoughts_in(parts)}
        messages = [({"role": "assistant", "content": content_of(parts)} | telling(more))]
    else:
        messages = [*_results(row, parts), *_asked(parts)]
    for number, message in enumerate(messages, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
        moment = iso_milliseconds(row.get("timestamp"))
        message.update({} if moment is None else {"timestamp": moment})
    for message in messages[:1]:
        message["qwen_code"] = telling(without(row, *_SAID))
    return messages


def _is_told(row: Fields) -> bool:
    return "parts" in fields_of(row.get("message")) or "toolCallResult" in row


def _asked(parts: list[Any]) -> list[Message]:
    """Return what a user said, which may be nothing beside results."""
    content = content_of(parts)
    return [] if content is None else [{"role": "user", "content": content}]


def _results(row: Fields, parts: list[Any]) -> list[Message]:
    """Return the results that a row tells; where its parts do not, the program's own copy."""
    results = list(map(result_of, responses_in(parts)))
    told = fields_of(row.get("toolCallResult"))
    if told and not parts:
        said = first_text(told.get(key) for key in ("result", "resultDisplay"))
        call, tool = map(text_of, map(told.get, ("callId", "name")))
        results = [
            ({"role": "tool", "content": said} | telling({"tool_call_id": call, "name": tool}))
        ]
    if told.get("status") in ("error", "cancelled"):
        results = [result | {"messageStatus": "error"} for result in results]
    return results


def _link(messages: list[Message], waiting: list[Fields]) -> None:
    """Let results without an id answer the first open call of their name, of those that wait."""
    for message in messages:
        waiting += message.get("tool_calls", [])
        if message["role"] == "tool":
            call = next((call for call in waiting if _answers(message, call)), None)
            if call:
                waiting.remove(call)
                message["tool_call_id"] = call["id"]


def _answers(result: Message, call: Fields) -> bool:
    if "tool_call_id" in result:
        return bool(result["tool_call_id"] == call["id"])
    return bool(result.get("name") == call["function"]["name"])
