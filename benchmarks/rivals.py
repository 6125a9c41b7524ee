"""The rivals.

What a good engineer writes straight on ``sqlite3`` for the same jobs, with the store's settings.

`Raw` keeps a session as one run of rows, `Branches` as branches that continue others. Both do only
what the job needs: no digests, no facts, no checks of what comes in, no unknown keys, no log of
moves. That is what they show: the price of everything else.
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Row = tuple[Any, ...]

PRAGMAS = """
PRAGMA foreign_keys = ON;
PRAGMA recursive_triggers = ON;
PRAGMA trusted_schema = OFF;
PRAGMA secure_delete = ON;
PRAGMA journal_size_limit = 67108864;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -16000;
"""
"""The store's own settings, so that only the code differs."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    session INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT,
    project_root TEXT, metadata TEXT,
    head INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_updated_at ON sessions (updated_at, session);
CREATE TABLE IF NOT EXISTS messages (
    session INTEGER NOT NULL REFERENCES sessions, seq INTEGER NOT NULL,
    role TEXT NOT NULL, name TEXT,
    tool_call_id TEXT, created_at INTEGER, content TEXT, PRIMARY KEY (session, seq)
);
CREATE TABLE IF NOT EXISTS tool_calls (
    session INTEGER NOT NULL, seq INTEGER NOT NULL, position INTEGER NOT NULL,
    call_id TEXT, name TEXT, arguments TEXT,
    PRIMARY KEY (session, seq, position),
    FOREIGN KEY (session, seq) REFERENCES messages (session, seq)
);
"""
FIND = "SELECT session, head FROM sessions WHERE id = ?"
INSERT_SESSION = """INSERT INTO sessions
    (id, title, project_root, metadata, head, created_at, updated_at)
VALUES (?, ?, ?, ?, 0, ?, ?)"""
INSERT_MESSAGE = "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)"
INSERT_CALL = "INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?)"
SET_HEAD = "UPDATE sessions SET head = ?, updated_at = ? WHERE session = ?"
DELETE_MESSAGES = "DELETE FROM messages WHERE session = ? AND seq > ?"
DELETE_CALLS = "DELETE FROM tool_calls WHERE session = ? AND seq > ?"
MESSAGES = """SELECT seq, role, name, tool_call_id, created_at, content
FROM messages WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq"""
CALLS = """SELECT seq, call_id, name, arguments
FROM tool_calls WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq, position"""
LIST = """SELECT id, title, head, project_root, metadata, created_at, updated_at
FROM sessions ORDER BY updated_at DESC, session DESC LIMIT ?"""


def connect(path: Path, synchronous: str) -> sqlite3.Connection:
    """Open a database with the store's settings; transactions are begun by hand."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(f"{PRAGMAS} PRAGMA synchronous = {synchronous};")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write as a whole or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class Raw:
    """A session as one run of rows."""

    def __init__(self, path: Path, synchronous: str = "FULL") -> None:
        self.connection = connect(path, synchronous)
        self.connection.executescript(SCHEMA)

    def create_sessions(self, rows: Iterable[Row]) -> None:
        """Create sessions: id, title, project root, metadata, created and updated."""
        with transaction(self.connection):
            self.connection.executemany(INSERT_SESSION, rows)

    def append(self, session_id: str, messages: list[Message]) -> int:
        """Append messages; return the new head."""
        with transaction(self.connection):
            session, head = self.connection.execute(FIND, (session_id,)).fetchone()
            calls = [
                (
                    session,
                    seq,
                    position,
                    call["id"],
                    call["function"]["name"],
                    call["function"]["arguments"],
                )
                for seq, message in enumerate(messages, head + 1)
                for position, call in enumerate(message.get("tool_calls", ()))
            ]
            self.connection.executemany(
                INSERT_MESSAGE,
                [
                    (session, seq, *_columns(message))
                    for seq, message in enumerate(messages, head + 1)
                ],
            )
            if calls:
                self.connection.executemany(INSERT_CALL, calls)
            head += len(messages)
            self.connection.execute(SET_HEAD, (head, _now(), session))
        return int(head)

    def messages(self, session_id: str, start: int = 1, stop: int = 2**62) -> list[Message]:
        """Return the messages of a range as they went in."""
        session, _ = self.connection.execute(FIND, (session_id,)).fetchone()
        return self._range(session, start, stop)

    def newest(self, session_id: str, count: int) -> list[Message]:
        """Return the newest messages, the oldest of them first."""
        session, head = self.connection.execute(FIND, (session_id,)).fetchone()
        return self._range(session, head - count + 1, head)

    def pages(self, session_id: str, size: int = 500) -> Iterator[list[Message]]:
        """Yield all messages in lists of at most ``size``."""
        session, head = self.connection.execute(FIND, (session_id,)).fetchone()
        for first in range(1, head + 1, size):
            yield self._range(session, first, first + size - 1)

    def rewind(self, session_id: str, to: int) -> None:
        """Delete all messages after a position."""
        with transaction(self.connection):
            session, _ = self.connection.execute(FIND, (session_id,)).fetchone()
            self.connection.execute(DELETE_CALLS, (session, to))
            self.connection.execute(DELETE_MESSAGES, (session, to))
            self.connection.execute(SET_HEAD, (to, _now(), session))

    def sessions(self, limit: int) -> list[Row]:
        """Return the sessions that were active last."""
        rows = self.connection.execute(LIST, (limit,)).fetchall()
        return [(*row[:4], json.loads(row[4]) if row[4] else {}, *row[5:]) for row in rows]

    def _range(self, session: int, first: int, last: int) -> list[Message]:
        calls: dict[int, list[Message]] = {}
        for seq, call_id, name, arguments in self.connection.execute(CALLS, (session, first, last)):
            call = {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            calls.setdefault(seq, []).append(call)
        rows = self.connection.execute(MESSAGES, (session, first, last)).fetchall()
        return [build_message(row, calls.get(row[0])) for row in rows]


def _now() -> int:
    return int(time.time() * 1000)


def _columns(message: Message) -> Row:
    get = message.get
    return message["role"], get("name"), get("tool_call_id"), get("timestamp"), get("content")


def build_message(row: Row, calls: list[Message] | None) -> Message:
    """Return a message of a row and its calls: a position, and what it holds."""
    _, role, name, tool_call_id, created_at, content = row
    message: Message = {"role": role, "content": content}
    if calls:
        message["tool_calls"] = calls
    if tool_call_id is not None:
        message["tool_call_id"] = tool_call_id
    if name is not None:
        message["name"] = name
    if created_at is not None:
        message["timestamp"] = created_at
    return message


BRANCH_SCHEMA = """
CREATE TABLE IF NOT EXISTS branches (
    tree INTEGER NOT NULL, branch INTEGER NOT NULL, parent INTEGER, position INTEGER NOT NULL,
    PRIMARY KEY (tree, branch), FOREIGN KEY (tree, parent) REFERENCES branches (tree, branch)
);
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, branch INTEGER NOT NULL,
    head INTEGER NOT NULL, title TEXT,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    FOREIGN KEY (tree, branch) REFERENCES branches (tree, branch)
);
CREATE INDEX IF NOT EXISTS sessions_updated_at ON sessions (updated_at, id);
"""
PARENT = "SELECT parent, position FROM branches WHERE tree = ? AND branch = ?"


class Branches:
    """Sessions as branches that continue others; without messages, because a fork touches none."""

    def __init__(self, path: Path, synchronous: str = "FULL") -> None:
        self.connection = connect(path, synchronous)
        self.connection.executescript(BRANCH_SCHEMA)

    def create(self, session_id: str, tree: int, head: int) -> None:
        """Create a session with one branch."""
        with transaction(self.connection):
            self.connection.execute("INSERT INTO branches VALUES (?, 1, NULL, 0)", (tree,))
            self.connection.execute(
                "INSERT INTO sessions VALUES (?, ?, 1, ?, NULL, 0, 0)", (session_id, tree, head)
            )

    def fork(self, source: str, at: int, session_id: str) -> None:
        """Create a session that continues another one from a position."""
        execute = self.connection.execute
        with transaction(self.connection):
            tree, parent, title = execute(
                "SELECT tree, branch, title FROM sessions WHERE id = ?", (source,)
            ).fetchone()
            parent = self._holder(tree, parent, at)
            branch = execute(
                "SELECT max(branch) + 1 FROM branches WHERE tree = ?", (tree,)
            ).fetchone()[0]
            execute("INSERT INTO branches VALUES (?, ?, ?, ?)", (tree, branch, parent, at))
            row = (session_id, tree, branch, at, title, _now(), _now())
            execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _holder(self, tree: int, branch: int, position: int) -> int:
        """Return the branch, from one upwards, that holds a position."""
        while True:
            parent, begin = self.connection.execute(PARENT, (tree, branch)).fetchone()
            if position > begin:
                return branch
            branch = parent


TERMINAL, FILE_READ = "terminal-execute", "filesystem-read"
TERMINAL_GONE = "此命令返回内容已过时"
FILE_READ_GONE = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
NEWEST, OLD = 5, 900_000


def view(messages: list[Message], now: int, root: str) -> list[Message]:
    """Apply the rules for old command output and old file reads in Python.

    Return what the API takes.
    """
    calls = {
        call["id"]: call["function"] for each in messages for call in each.get("tool_calls", ())
    }
    results = [
        each for each in messages if each["role"] == "tool" and each["tool_call_id"] in calls
    ]
    names = [calls[each["tool_call_id"]]["name"] for each in results]
    gone: dict[str, str] = {}
    ranked = [
        (result["timestamp"], index)
        for index, result in enumerate(results)
        if not is_error(result["content"], names[index])
    ]
    ranked.sort(reverse=True)
    reads: dict[str, int] = {}
    for rank, (moment, index) in enumerate(ranked):
        call_id = results[index]["tool_call_id"]
        if names[index] == TERMINAL and rank >= NEWEST and now - moment > OLD:
            gone[call_id] = TERMINAL_GONE
        elif names[index] == FILE_READ and _is_stale(calls[call_id]["arguments"], reads, root):
            gone[call_id] = FILE_READ_GONE
    return list(_paired(messages, {each["tool_call_id"]: each for each in results}, gone))


def is_error(content: str, name: str) -> bool:
    """Tell whether a tool result reports a failure."""
    if content.startswith("Error:"):
        return True
    if name != TERMINAL or not content.startswith("{"):
        return False
    answer = json.loads(content)
    return bool(answer.get("stderr")) or bool(answer.get("exitCode"))


def _is_stale(arguments: str, reads: dict[str, int], root: str) -> bool:
    """Count a read of files, newest first; tell whether there are enough newer ones of each."""
    given = json.loads(arguments)["filePath"]
    named = [given] if isinstance(given, str) else given
    paths = {posixpath.normpath(path.removeprefix(f"{root}/")) for path in named}
    for path in paths:
        reads[path] = reads.get(path, 0) + 1
    return all(reads[path] > NEWEST for path in paths)


def _paired(
    messages: list[Message], results: dict[str, Message], gone: dict[str, str]
) -> Iterator[Message]:
    """Yield clean messages, each call's result right behind it.

    Results without call are left out.
    """
    for message in messages:
        if message["role"] == "tool":
            continue
        clean = {"role": message["role"], "content": message["content"]}
        calls = message.get("tool_calls")
        if calls:
            clean["tool_calls"] = calls
        yield clean
        for call in calls or ():
            call_id = call["id"]
            result = results.get(call_id)
            content = gone.get(call_id) or (
                result["content"] if result else "没有记录此调用的结果。"
            )
            yield {"role": "tool", "tool_call_id": call_id, "content": content}
