"""Files that somebody wrote to do harm: to fill the memory, to take for ever, to reach further.

Run as a program it writes all of them into a folder.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import json
import os
import sqlite3
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from store import Store
from store.exporting import export_store

MB = 1_000_000
CONTENT = {"content_type": "text", "parts": ["hi"]}
MOMENT = "2026-01-01T00:00:00Z"
USER = {"role": "user", "content": "hi"}

Write = Callable[[Path], object]
Rows = Iterable[Any]


def text(said: str | bytes) -> Write:
    """Return what writes a text."""
    held = said.encode() if isinstance(said, str) else said
    return lambda path: path.write_bytes(held)


def rows(*values: Any) -> Write:
    """Return what writes a value a line."""
    return lambda path: path.write_text("".join(f"{json.dumps(each)}\n" for each in values))


def many(count: int, row: Callable[[int], Any], *before: Any) -> Write:
    """Return what writes a line for each number, behind some values."""

    def write(path: Path) -> None:
        with path.open("w") as file:
            for value in (*before, *map(row, range(count))):
                file.write(f"{json.dumps(value)}\n")

    return write


def packed(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Write:
    """Return what writes a zip archive."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, held in files:
                archive.writestr(name, held)

    return write


def linked(path: Path) -> None:
    """Write an archive of which a file is a link out of it."""
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("conversations.json")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")


def bomb(pack: Callable[[bytes], bytes]) -> Write:
    """Return what writes 20 MB of nothing, packed."""
    return lambda path: path.write_bytes(pack(b" " * 20 * MB))


def spoilt(write: Write, change: Callable[[bytearray], None]) -> Write:
    """Return what writes a file, and changes its bytes."""

    def both(path: Path) -> None:
        write(path)
        held = bytearray(path.read_bytes())
        change(held)
        path.write_bytes(held)

    return both


def tarred(path: Path) -> None:
    """Write a tar archive with a name that leads out of it."""
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("../../out"))


def database(*statements: str, values: Iterable[tuple[str, Rows]] = ()) -> Write:
    """Return what makes a database."""

    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as held, held:
            for statement in statements:
                held.execute(statement)
            for insert, told in values:
                held.executemany(insert, told)

    return write


def nested(depth: int, opening: str, closing_: str, inner: str = "1") -> str:
    """Return a value within many others."""
    return opening * depth + inner + closing_ * depth


def claude(number: int, parent: str | None) -> dict[str, Any]:
    """Return a row of Claude Code."""
    return {
        "type": "user",
        "uuid": f"u{number}",
        "parentUuid": parent,
        "sessionId": "s",
        "timestamp": MOMENT,
        "message": USER,
    }


def node(name: str, parent: str | None, *children: str) -> dict[str, Any]:
    """Return a node of a conversation of ChatGPT."""
    message = {"id": name, "author": {"role": "user"}, "content": CONTENT}
    return {"id": name, "parent": parent, "children": list(children), "message": message}


def chatgpt(*nodes: dict[str, Any], current: str = "n0") -> dict[str, Any]:
    """Return a conversation of ChatGPT."""
    mapping = {each["id"]: each for each in nodes}
    return {"id": "c", "title": "t", "mapping": mapping, "current_node": current, "create_time": 1}


def entry(number: int, parent: str | None) -> dict[str, Any]:
    """Return an entry of pi."""
    return {"type": "message", "id": f"e{number}", "parentId": parent, "message": USER}


def sample(*messages: dict[str, Any], attachments: dict[str, str] | None = None) -> Write:
    """Return what writes a log of Inspect."""
    told = {"id": 1, "epoch": 1, "target": "", "messages": messages, "attachments": attachments}
    return rows({"version": 2, "status": "success", "eval": {}, "samples": [told]})


def tasks(path: Path) -> None:
    """Write a log of many samples, whose head has a long name for all."""
    told = [{"id": n, "epoch": 1, "target": "", "messages": [USER]} for n in range(400)]
    head = {"version": 2, "status": "success", "eval": {"task": "t" * 5 * MB}}
    rows({**head, "samples": told})(path)


def whole(path: Path) -> None:
    """Write a whole store of others."""
    with Store(":memory:") as store:
        store.create_session("private", owner="alice")
        export_store(store, path)


def replies(depth: int) -> dict[str, Any]:
    """Return a tree of replies, each below the other."""
    tree: dict[str, Any] = {"message_id": "m", "text": "x", "role": "prompter", "replies": []}
    for number in range(depth):
        tree = {"message_id": f"m{number}", "text": "x", "role": "prompter", "replies": [tree]}
    return tree


LONG = "x" * 10 * MB
ATTACHED = {"type": "reasoning", "reasoning": "attachment://a"}
PART = {"type": "text", "text": "attachment://a"}
PI = {"type": "session", "id": "s", "cwd": "/", "timestamp": MOMENT}
GEMINI = {"sessionId": "s", "projectHash": "h"}
CHATS = "CREATE TABLE conversations_v2 (key, conversation_id, value, created_at)"
TALK = '{"history": [{"user": {"content": {"Prompt": {"prompt": "x"}}}, "assistant": {"Response": {}}}]}'
OPENCODE = (
    "CREATE TABLE session (id, directory, title, parent_id, time_created, time_updated, version)",
    "CREATE TABLE message (id, session_id, data, time_created)",
    "CREATE TABLE part (id, message_id, session_id, data, time_created)",
)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@functools.cache
def files() -> dict[str, Write]:
    """Return what writes each file, by what the file does; large texts are made when asked for."""
    return {
        "lists in lists, open": text("[" * MB),
        "lists in lists": text(nested(100_000, "[", "]")),
        "objects in objects": text(nested(100_000, '{"a":', "}")),
        "a deep content": text('{"role": "user", "content": ' + nested(900, "[", "]") + "}"),
        "a deep argument": rows(
            {
                "role": "assistant",
                "tool_calls": [{"function": {"arguments": nested(5_000, "[", "]")}}],
            }
        ),
        "many empty lists": text("[\n" + "[],\n" * (2 * MB) + "1]"),
        "many empty objects": text('{"messages":\n[' + "{}," * (2 * MB) + "{}]}"),
        "many keys": rows({"role": "user", "content": "x", **{f"k{n}": n for n in range(300_000)}}),
        "a long number": text('{"role": "user", "content": "x", "n": ' + "9" * 2 * MB + "}"),
        "a long fraction": text('{"role": "user", "content": "x", "n": 1e999999999}'),
        "no numbers": text('{"role": "user", "content": NaN, "x": Infinity}\n' * 3),
        "half characters": text(
            rb'{"role": "user", "content": "\ud800"}' + b"\n\xed\xa0\x80\xff\n"
        ),
        "nothing but NUL": text(b"\0" * MB),
        "NUL in texts": rows({"role": "user", "content": "a\0b", "title": "\0"}),
        "a long line": text(json.dumps({"role": "user", "content": LONG})),
        "a line without end": text('{"role": "user", "content": "' + LONG),
        "short lines": many(60_000, lambda n: {"role": "user", "content": str(n)}),
        "broken lines": text('{"role": "user"\n' * 200_000),
        "empty lines": text("\n" * 5 * MB),
        "values side by side": text(json.dumps(USER) * 50_000),
        "the same key": text(
            '{"role": "user", ' + '"content": "x", ' * 200_000 + '"content": "y"}'
        ),
        "the same id": many(30_000, lambda _: {**USER, "id": "m"}),
        "many calls": rows(
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": f"c{n}", "type": "function", "function": {}} for n in range(20_000)
                ],
            }
        ),
        "many results": many(
            20_000, lambda n: {"role": "tool", "tool_call_id": f"c{n}", "content": "x"}, USER
        ),
        "a long key": rows({"k" * 5 * MB: 1, "other": 2}),
        "a long role": rows({"role": "r" * 5 * MB, "content": "x"}, USER),
        "a long id": rows({"session_id": "i" * 5 * MB, "messages": [USER]}),
        "a long title": rows({"title": "t" * 5 * MB, "messages": [USER]}),
        "long metadata": rows({"notes": ["n" * 90_000] * 50, "messages": [USER]}),
        "somebody's session": rows(
            {"owner": "alice"}, USER, {"role": "assistant", "content": "ho"}
        ),
        "many sessions": many(20_000, lambda n: {"session_id": f"s{n}", "messages": [USER]}),
        "an id that leads out": rows({"session_id": "../../etc/passwd", "messages": [USER]}),
        "text of 16 bits": text('{"role": "user"}'.encode("utf-16")),
        "a gzip bomb": bomb(gzip.compress),
        "a bzip2 bomb": bomb(bz2.compress),
        "a zip bomb": packed(("conversations.json", b" " * 120 * MB)),
        "a loose zip": packed(
            ("conversations.json", json.dumps([chatgpt(node("n0", None))] * 60_000).encode())
        ),
        "a zip of many": packed(*((f"conversations-{n}.json", b"[]") for n in range(5_000))),
        "a zip that leads out": packed(("../../../conversations.json", b"[1]")),
        "a zip with a link": linked,
        "a zip within a zip": packed(("conversations.json", b"PK\3\4" * MB)),
        "a zip with wrong sums": spoilt(
            packed(("conversations.json", b"[" + b"{}," * 9_000 + b"{}]"), method=0),
            lambda held: held.__setitem__(slice(100, 200), b"9" * 100),
        ),
        "a zip that was cut": spoilt(
            packed(("conversations.json", b"[]" * 9)), lambda held: held.__delitem__(slice(40, 60))
        ),
        "a tar that leads out": tarred,
        "a pipe": lambda path: os.mkfifo(path),
        "a device": lambda path: path.symlink_to("/dev/zero"),
        "a loop of links": lambda path: path.symlink_to(path),
        "a folder": lambda path: path.mkdir(),
        "nothing": text(""),
        "noise": lambda path: path.write_bytes(Random(1).randbytes(5 * MB)),
        "noise of a database": lambda path: path.write_bytes(
            b"SQLite format 3\0" + Random(2).randbytes(MB)
        ),
        "a database of others": database("CREATE TABLE accounts (secret)"),
        "a column that makes a gigabyte": database(
            "CREATE TABLE conversations_v2 (key, value, created_at, conversation_id "
            "GENERATED ALWAYS AS (hex(zeroblob(40000000))))",
            values=[("INSERT INTO conversations_v2 VALUES (?, ?, ?)", [("/", TALK, 1)])],
        ),
        "a chat in many rows": database(
            CHATS,
            values=[
                ("INSERT INTO conversations_v2 VALUES (?, ?, ?, ?)", [("/", "s", TALK, 1)] * 30_000)
            ],
        ),
        "a view without end": database(
            "CREATE TABLE conversations_v2 (key, value)",
            f"CREATE TABLE agent_sessions AS {ENDLESS} 's' session_id FROM n LIMIT 3",
            "CREATE TABLE agent_messages (message_data, session_id)",
            "DROP TABLE conversations_v2",
            f"CREATE VIEW message_structure AS {ENDLESS} i FROM n",
        ),
        "sessions times messages": database(
            *OPENCODE,
            values=[
                ("INSERT INTO session (id, directory) VALUES (?, ?)", [("s", "/")] * 2_000),
                (
                    "INSERT INTO message VALUES (?, ?, ?, ?)",
                    [("m", "s", '{"role": "user"}', 1)] * 2_000,
                ),
                (
                    "INSERT INTO part VALUES (?, ?, ?, ?, ?)",
                    [("p", "m", "s", '{"type": "text", "text": "x"}', 1)] * 2_000,
                ),
            ],
        ),
        "parents in a loop": rows(*(claude(n, f"u{(n + 1) % 50}") for n in range(50))),
        "a parent of its own": rows(claude(0, "u0"), claude(1, "u1")),
        "a chain of rows": many(20_000, lambda n: claude(n, f"u{n - 1}" if n else None)),
        "a fan of rows": many(5_000, lambda n: claude(n, "u0" if n else None)),
        "nodes in a loop": rows(chatgpt(node("n0", "n1", "n1"), node("n1", "n0", "n0"))),
        "a chain of nodes": rows(
            chatgpt(
                *(node(f"n{n}", f"n{n - 1}" if n else None, f"n{n + 1}") for n in range(30_000)),
                current="n29999",
            )
        ),
        "a fan of nodes": rows(
            chatgpt(
                node("n0", None, *(f"n{n}" for n in range(1, 8_000))),
                *(node(f"n{n}", "n0") for n in range(1, 8_000)),
            )
        ),
        "entries in a loop": rows(PI, *(entry(n, f"e{(n + 1) % 40}") for n in range(40))),
        "a fan of entries": many(8_000, lambda n: entry(n, "e0" if n else None), PI),
        "a context taken back again and again": many(
            30_000,
            lambda n: (
                {"$rewindTo": "m0"} if n % 2 else {"id": f"m{n}", "type": "user", "content": "x"}
            ),
            GEMINI,
        ),
        "an attachment thought a thousand times": sample(
            {"role": "assistant", "content": [ATTACHED] * 1_000}, attachments={"a": LONG}
        ),
        "an attachment said a thousand times": sample(
            *({"role": "user", "content": [PART]} for _ in range(1_000)), attachments={"a": LONG}
        ),
        "an attachment of an attachment": sample(
            {"role": "user", "content": [PART]}, attachments={"a": "attachment://a"}
        ),
        "a head that is said with each sample": tasks,
        "a chat that pushes for ever": many(
            20_000,
            lambda n: {
                "kind": 2,
                "k": ["requests"],
                "v": [{"requestId": f"r{n}", "message": {"text": "x"}}],
            },
            {"kind": 0, "v": {"version": 3, "requests": [], "sessionId": "s"}},
        ),
        "a chat with a far place": rows(
            {"kind": 0, "v": {"version": 3, "requests": [], "sessionId": "s"}},
            {"kind": 1, "k": ["requests", 10**12], "v": 1},
            {"kind": 2, "k": ["requests"], "v": [], "i": -(10**12)},
        ),
        "replies below replies": text(json.dumps({"message_tree_id": "t", "prompt": replies(400)})),
        "a store of others": whole,
        "requests that begin alike": many(
            1_000,
            lambda n: {
                "request": {"body": {"messages": [USER] * (n % 400 + 1)}},
                "response": {
                    "body": {"choices": [{"message": {"role": "assistant", "content": str(n)}}]}
                },
            },
        ),
    }


def main(folder: Path) -> None:
    """Write each file under its number, and their names."""
    for number, write in enumerate(files().values()):
        write(folder / f"file-{number}")
    (folder / "names.json").write_text(json.dumps([*files()]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
