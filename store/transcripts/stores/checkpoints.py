"""Tables of LangGraph's SQLite saver, read as threads: each of them a tree of messages.

Every checkpoint holds all messages so far, so a message stands in many; here it stands once, below
the one before it. A checkpoint that says something else than the one it goes on from makes the tree
branch; one from which only the first messages were removed goes on behind the others.

A channel of deltas is held by one checkpoint in a hundred or so. What any other has of it is what
the one before has, and what was written there: messages of new ids stand behind the others, one of
a known id takes the place of that one, or removes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from ...text import JsonFields, wrap_in_list
from ..database import Layout, SqliteConnection, load_column_names, parse_json_cell
from ..events import (
    NoteEvent,
    SessionNames,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_nested,
    get_text,
    note_omission,
)
from .packed import decode_packed_column

SELECT_CHECKPOINT_THREADS = """
    SELECT thread_id, sum(checkpoint_ns <> '') AS inner
    FROM checkpoints GROUP BY thread_id ORDER BY min(rowid)
"""
SELECT_CHECKPOINTS = """
    SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id
"""
SELECT_CHANNEL_WRITES = """
    SELECT type, value FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = 'messages'
    ORDER BY {path} task_id, idx
"""
TASK_PATH_COLUMN = "writes.task_path"
"""A column that younger databases have."""

MESSAGES_CHANNEL = "messages"
"""The usual name of the channel that holds the messages."""

STEP_METADATA_KEYS = (
    *("source", "step", "parents", "writes", "counters_since_delta_snapshot"),
    *("thread_id", "checkpoint_id", "checkpoint_ns"),
)
"""Metadata that each checkpoint has of its own."""

OVERWRITE_KEY = "__overwrite__"
"""Names what is written in place of all that a channel held."""


class CheckpointMessage(NamedTuple):
    """A message that a checkpoint holds: its id, and its JSON text, by which it is compared."""

    id: str | None
    text: str


class CheckpointEnd(NamedTuple):
    """Where the line of a checkpoint ends, and how many of its messages that one still holds."""

    node: str | None = None
    size: int = 0


WritesLoader = Callable[[str], Iterable[Any]]
"""What was written to the usual channel at a checkpoint."""


class CheckpointThread:
    """The messages of a thread, taken checkpoint by checkpoint.

    ``nodes`` has each under a name, with the name of the one before it (``parent``), and when the
    first checkpoint with it was made (``at``); ``current`` is the last of the newest checkpoint.
    """

    def __init__(self, written: WritesLoader) -> None:
        self.nodes: dict[str, JsonFields] = {}
        self.current: str | None = None
        self._written = written
        self._names = SessionNames("message")
        self._below: dict[tuple[str | None, str], str] = {}
        self._ends: dict[str, CheckpointEnd] = {}

    def take(self, name: str, before: str | None, held: JsonFields) -> None:
        """Take the messages that a checkpoint holds, which goes on from another one."""
        end = self._ends.get(before or "", CheckpointEnd())
        line = self._line(end.node)
        if before and _is_delta_checkpoint(held):
            said = _replay_writes(line[len(line) - end.size :], self._written(before))
        else:
            channels = get_fields(held.get("channel_values"))
            listed = map(get_list, (channels.get(MESSAGES_CHANNEL), *channels.values()))
            told = (each for each in listed if each and all(map(_is_langchain_message, each)))
            said = [*map(_build_checkpoint_message, next(told, []))]
        shared = _count_shared_messages(line, said)
        node = end.node if shared else None
        for each in said[shared:]:
            node = self._node(node, each, held.get("ts"))
        self._ends[name] = CheckpointEnd(node, len(said))
        self.current = node

    def _line(self, node: str | None) -> list[CheckpointMessage]:
        """Return the messages up to a node."""
        line = []
        while node is not None:
            line.append(self.nodes[node]["held"])
            node = self.nodes[node]["parent"]
        return line[::-1]

    def _node(self, parent: str | None, held: CheckpointMessage, moment: object) -> str:
        """Return the name of a message behind another one; a new one where it is not known."""
        known = self._below.get((parent, held.text))
        if known:
            return known
        name = self._names.name(held.id)
        self.nodes[name] = {"parent": parent, "held": held, "at": moment}
        self._below[parent, held.text] = name
        return name


def _count_shared_messages(line: list[CheckpointMessage], said: list[CheckpointMessage]) -> int:
    """Return how many messages of a checkpoint are the end of a line, which it goes on from."""
    begins = (place for place, each in enumerate(line) if said[:1] == [each])
    ends = (line[begin:] for begin in begins)
    return next((len(end) for end in ends if said[: len(end)] == end), 0)


def _build_checkpoint_message(message: object) -> CheckpointMessage:
    text = json.dumps(message, default=str, skipkeys=True)
    return CheckpointMessage(get_text(get_nested(message, "id")), text)


def _is_delta_checkpoint(held: JsonFields) -> bool:
    """Tell whether a checkpoint has the usual channel, and leaves out what it holds."""
    has, tells = (get_fields(held.get(key)) for key in ("channel_versions", "channel_values"))
    return MESSAGES_CHANNEL in has and MESSAGES_CHANNEL not in tells


def _replay_writes(
    held: list[CheckpointMessage], written: Iterable[Any]
) -> list[CheckpointMessage]:
    """Return messages after something was written to their channel."""
    numbers = count()
    kept: dict[object, CheckpointMessage] = {each.id or next(numbers): each for each in held}
    for value in written:
        told = get_fields(value)
        is_anew = OVERWRITE_KEY in (told.get("type"), *told)
        if is_anew:
            kept.clear()
        for message in wrap_in_list(
            told.get("value", told.get(OVERWRITE_KEY)) if is_anew else value
        ):
            each = _build_checkpoint_message(message)
            if get_nested(message, "type") == "remove":
                kept.pop(each.id, None)
            elif _is_langchain_message(message):
                kept[each.id or next(numbers)] = each
    return [*kept.values()]


def _is_langchain_message(value: object) -> bool:
    fields = get_fields(value)
    kind = find_first_text((fields.get("type"), fields.get("role")))
    return kind is not None and "content" in fields


def _load_checkpoint_threads(rows: SqliteConnection) -> Iterator[Any]:
    written = SELECT_CHANNEL_WRITES.format(
        path="task_path," if TASK_PATH_COLUMN in load_column_names(rows) else ""
    )
    for name, inner in rows.execute(SELECT_CHECKPOINT_THREADS).fetchall():
        thread = CheckpointThread(partial(_load_channel_writes, rows, written, name))
        told, made = JsonFields(), []
        for row in rows.execute(SELECT_CHECKPOINTS, (name,)):
            held = decode_packed_column(row["type"], row["checkpoint"])
            if not isinstance(held, dict):
                what = f"checkpoint {row['checkpoint_id']} of {name} cannot be read"
                yield NoteEvent(None, what, broken=True)
                continue
            thread.take(row["checkpoint_id"], row["parent_checkpoint_id"], held)
            told = drop_keys(get_fields(parse_json_cell(row["metadata"])), *STEP_METADATA_KEYS)
            made.append(held.get("ts"))
        if inner:
            yield note_omission(inner, "checkpoint of a graph in the graph", f" of {name!r}")
        nodes = {name: _build_thread_node(node) for name, node in thread.nodes.items()}
        began = {"current": thread.current, "metadata": told, "created_at": (made or [None])[0]}
        yield {"langgraph_thread": name, "nodes": nodes, **began}


def _build_thread_node(node: JsonFields) -> JsonFields:
    return drop_keys(node, "held") | {"message": json.loads(node["held"].text)}


def _load_channel_writes(
    rows: SqliteConnection, statement: str, thread: str, checkpoint: str
) -> Iterator[Any]:
    """Return what was written to the usual channel at a checkpoint, in the program's order."""
    found = rows.execute(statement, (thread, checkpoint))
    return (decode_packed_column(row["type"], row["value"]) for row in found)


LANGGRAPH_LAYOUT = Layout(
    frozenset({"checkpoints.thread_id", "checkpoints.checkpoint_ns", "writes.channel"}),
    _load_checkpoint_threads,
)
"""How the saver's database is laid out."""
