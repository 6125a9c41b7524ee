"""What the loaders of opencode, pi, Gemini CLI and Qwen Code ask of a file, as their code reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from resumable import ISO

Fields = dict[str, Any]


def opencode(rows: list[Fields]) -> Iterator[str]:
    """Yield what is wrong with a document: each part is in its message, each call has ended."""
    (document,) = rows
    messages = document["messages"]
    parts = [part for message in messages for part in message["parts"]]
    names = [each["info"]["id"] for each in messages]
    yield from _find_disorder(names)
    for message in messages:
        yield from _find_disorder([part["id"] for part in message["parts"]])
        info = message["info"]
        if info["sessionID"] != document["info"]["id"]:
            yield f"{info['id']} is of another session"
        if any(part["messageID"] != info["id"] for part in message["parts"]):
            yield f"a part of another message in {info['id']}"
        if info["role"] == "assistant" and info["parentID"] not in names:
            yield f"{info['id']} answers nothing"
    for part in parts:
        if part["type"] == "tool" and part["state"]["status"] not in ("completed", "error"):
            yield f"{part['callID']} has no result"


def pi(rows: list[Fields]) -> Iterator[str]:
    """Yield what is wrong with entries: one chain, each result behind its call."""
    head, *entries = rows
    if head["type"] != "session":
        yield "begins with no head"
    yield from _find_unchained(entries, "id", "parentId")
    said = [entry["message"] for entry in entries if entry["type"] == "message"]
    calls = [
        [block["id"] for block in message["content"] if block["type"] == "toolCall"]
        for message in said
    ]
    results = [[message["toolCallId"]] if "toolCallId" in message else [] for message in said]
    yield from _find_unanswered(calls, results)


def gemini_cli(rows: list[Fields]) -> Iterator[str]:
    """Yield what is wrong with lines: ids are used once, each call has its result in its line."""
    if not {"sessionId", "projectHash"} <= rows[0].keys():
        yield "begins with no head"
    replaced = chain.from_iterable(row.get("$set", {}).get("messages", ()) for row in rows)
    lines = [*(row for row in rows if "id" in row), *replaced]
    if len({line["id"] for line in lines}) != len(lines):
        yield "an id is used twice"
    for line in lines:
        calls = [part["functionCall"]["id"] for part in line["content"] if "functionCall" in part]
        results = [
            call["result"][0]["functionResponse"]["id"] for call in line.get("toolCalls", ())
        ]
        if calls != results:
            yield f"{calls} have the results {results}"


def qwen_code(rows: list[Fields]) -> Iterator[str]:
    """Yield what is wrong with rows: one chain, each result behind its call."""
    yield from _find_unchained(rows, "uuid", "parentUuid")
    parts = [row["message"]["parts"] for row in rows if "message" in row]
    calls, results = (
        [[part[key]["id"] for part in each if key in part] for each in parts]
        for key in ("functionCall", "functionResponse")
    )
    yield from _find_unanswered(calls, results)
    if not all(ISO.fullmatch(row["timestamp"]) for row in rows):
        yield "no moment"


def _find_disorder(names: list[str]) -> Iterator[str]:
    if names != sorted(set(names)):
        yield f"ids are not in order: {names[:3]}"


def _find_unchained(rows: list[Fields], own: str, parent: str) -> Iterator[str]:
    last = None
    for row in rows:
        if row[parent] != last:
            yield f"{row[own]} hangs on {row[parent]}, behind {last}"
        last = row[own]


def _find_unanswered(calls: list[list[str]], results: list[list[str]]) -> Iterator[str]:
    open_calls: set[str] = set()
    for made, answered in zip(calls, results, strict=True):
        if not set(answered) <= open_calls:
            yield f"{answered} answer no call"
        open_calls -= set(answered)
        open_calls |= set(made)
    if open_calls:
        yield f"no results of {open_calls}"


CHECKS: dict[str, Callable[[list[Fields]], Iterator[str]]] = {
    "opencode": opencode,
    "pi": pi,
    "gemini_cli": gemini_cli,
    "qwen_code": qwen_code,
}
"""The checks by the shapes of exports."""
