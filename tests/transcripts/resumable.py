"""What the loaders of Claude Code and Codex ask of a file, written down from files that they wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

Fields = dict[str, Any]
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ENVELOPE = {
    "uuid": str,
    "sessionId": str,
    "cwd": str,
    "version": str,
    "gitBranch": str,
    "userType": str,
    "isSidechain": bool,
    "timestamp": str,
    "message": dict,
}
ANSWER = {"id": str, "model": str, "content": list, "usage": dict}
BLOCKS: dict[str, Fields] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "image": {"source": dict},
    "document": {"source": dict},
    "fallback": {},
}
ITEMS: dict[str, Fields] = {
    "message": {"role": str, "content": list},
    "reasoning": {"summary": list},
    "function_call": {"name": str, "arguments": str, "call_id": str},
    "function_call_output": {"call_id": str, "output": (str, list)},
    "custom_tool_call": {"name": str, "input": str, "call_id": str},
    "custom_tool_call_output": {"call_id": str, "output": (str, list)},
}
PARTS = {"input_text": "text", "output_text": "text", "input_image": "image_url"}
META = {"id": str, "timestamp": str, "cwd": str, "originator": str, "cli_version": str}
EVENTS = {"user_message": {"message": str}, "agent_message": {"message": str}}
ROWS = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}


def rows_of(path: Path) -> list[Fields]:
    """Return the rows of a file that can be read."""
    rows = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def lacking(where: str, fields: Any, wanted: Fields) -> Iterator[str]:
    """Yield what is no value of its type."""
    for key, kind in wanted.items():
        if not isinstance(fields, dict) or not isinstance(fields.get(key), kind):
            yield f"{where}: {key} is no {kind}"


def claude_code(rows: Iterable[Fields], *, whole: bool) -> list[str]:
    """Return what a loader of Claude Code would not take, or lose.

    Of a ``whole`` file every row of the conversation is on the way up from the last one, and each
    result right behind its call.
    """
    read = [row for row in rows if row.get("type") in ("user", "assistant") or is_boundary(row)]
    said = [row for row in read if not is_boundary(row)]
    found = [problem for row in said for problem in _of_row(row)]
    found += _twice(row.get("uuid") for row in said)
    return [*found, *_unchained(read)] if whole else found


def is_boundary(row: Fields) -> bool:
    """Tell where the program compacted: its loader goes up no farther."""
    return row.get("subtype") == "compact_boundary"


def _of_row(row: Fields) -> Iterator[str]:
    where = f"row {row.get('uuid')}"
    yield from lacking(where, row, ENVELOPE)
    if not isinstance(row.get("parentUuid"), str | None):
        yield f"{where}: no parent"
    if not ISO.fullmatch(str(row.get("timestamp"))):
        yield f"{where}: no moment"
    message = row.get("message") or {}
    if message.get("role") != row["type"]:
        yield f"{where}: the role of another"
    if row["type"] == "assistant":
        yield from lacking(where, message, ANSWER if "id" in message else {"content": list})
    content = message.get("content")
    if not isinstance(content, str | list):
        yield f"{where}: no content"
    for block in content if isinstance(content, list) else ():
        yield from _of_block(where, row["type"], block)


def _of_block(where: str, role: str, block: Fields) -> Iterator[str]:
    kind = block.get("type")
    if kind not in BLOCKS:
        yield f"{where}: a block {kind}"
    yield from lacking(where, block, BLOCKS.get(str(kind), {}))
    if (kind == "tool_use") > (role == "assistant") or (kind == "tool_result") > (role == "user"):
        yield f"{where}: {kind} of {role}"


def _twice(names: Iterable[Any]) -> list[str]:
    seen: list[Any] = [*names]
    return [] if len({*seen}) == len(seen) else ["an id is used twice"]


def _unchained(said: list[Fields]) -> Iterator[str]:
    """Yield what is not in one chain, with results behind their calls."""
    last: str | None = None
    open_calls: set[str] = set()
    for row, before in zip(said, [{}, *said], strict=False):
        if is_boundary(row):
            yield from _of_boundary(row, last)
            last = row["uuid"]
            continue
        if is_boundary(before) != (row.get("isCompactSummary") is True):
            yield f"row {row['uuid']} is no summary behind a boundary"
        if row["parentUuid"] != last:
            yield f"row {row['uuid']} hangs on {row['parentUuid']}, behind {last}"
        last = row["uuid"]
        content = row["message"]["content"]
        blocks = content if isinstance(content, list) else [{"type": "text"}]
        answers = {each["tool_use_id"] for each in blocks if each["type"] == "tool_result"}
        if not answers <= open_calls:
            yield f"row {last} answers no call"
        if row["type"] == "user" and not answers and open_calls:
            yield f"row {last} comes before the results of {open_calls}"
        open_calls -= answers
        open_calls |= {each["id"] for each in blocks if each["type"] == "tool_use"}
    if open_calls:
        yield f"no results of {open_calls}"


def _of_boundary(row: Fields, last: str | None) -> Iterator[str]:
    if row["parentUuid"] is not None or row["logicalParentUuid"] != last:
        yield f"boundary {row['uuid']} hangs on {row['parentUuid']}, behind {last}"
    yield from lacking("boundary", row, {**ENVELOPE, "message": object, "compactMetadata": dict})


def codex(rows: list[Fields], *, whole: bool) -> list[str]:
    """Return what the loader of Codex would not take; of a ``whole`` file also calls left open."""
    found = [problem for number, row in enumerate(rows) for problem in _of_line(number, row)]
    first = rows[0]
    if first.get("type") != "session_meta":
        found.append("begins with no session_meta")
    return (
        [*found, *(each for items in contexts(rows) for each in _unanswered(items))]
        if whole
        else found
    )


def contexts(rows: list[Fields]) -> list[list[Fields]]:
    """Return what a model is sent: up to each compaction, from there on what takes its place."""
    found: list[list[Fields]] = [[]]
    for row in rows:
        if row["type"] == "response_item":
            found[-1].append(row["payload"])
        elif row["type"] == "compacted":
            found.append([*row["payload"]["replacement_history"]])
    return found


def _of_line(number: int, row: Fields) -> Iterator[str]:
    where = f"line {number}"
    yield from lacking(where, row, {"timestamp": str, "type": str, "payload": dict})
    kind, payload = row.get("type"), row.get("payload") or {}
    if not ISO.fullmatch(str(row.get("timestamp"))):
        yield f"{where}: no moment"
    if kind == "session_meta":
        yield from lacking(where, payload, META)
        UUID(payload["id"])
    elif kind == "response_item":
        yield from lacking(where, payload, {"type": str} | ITEMS.get(payload["type"], {}))
        yield from _of_parts(where, payload)
    elif kind == "compacted":
        yield from lacking(where, payload, {"message": str, "replacement_history": list})
    elif kind == "event_msg":
        yield from lacking(where, payload, {"type": str} | EVENTS.get(payload["type"], {}))


def _of_parts(where: str, item: Fields) -> Iterator[str]:
    content = item.get("content") if item["type"] == "message" else item.get("output")
    for part in content if isinstance(content, list) else ():
        key = PARTS.get(part.get("type"), "")
        if not isinstance(part.get(key), str):
            yield f"{where}: a part {part.get('type')}"


def _unanswered(items: list[Fields]) -> Iterator[str]:
    open_calls: set[str] = set()
    for item in items:
        kind = item["type"]
        if kind.endswith("_output") and "call_id" in item:  # a server's own have none
            if item["call_id"] not in open_calls:
                yield f"answers no call: {item['call_id']}"
            open_calls.discard(item["call_id"])
        elif kind.endswith("_call") and "call_id" in item:
            open_calls.add(item["call_id"])
        elif kind == "message" and item["role"] == "user" and open_calls:
            yield f"said before the results of {open_calls}"
    if open_calls:
        yield f"no results of {open_calls}"
