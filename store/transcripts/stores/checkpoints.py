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

from ...text import Fields, as_list
from ..database import Layout, Rows, columns_in, json_in
from ..events import (
    Noted,
    SessionNames,
    fields_of,
    first_text,
    left_out,
    list_of,
    text_of,
    within,
    without,
)
from .packed import decoded

THREADS = """
    SELECT thread_id, sum(checkpoint_ns <> '') AS inner
    FROM checkpoints GROUP BY thread_id ORDER BY min(rowid)
"""
CHECKPOINTS = """
    SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id
"""
WRITTEN = """
    SELECT type, value FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = 'messages'
    ORDER BY {path} task_id, idx
"""
TASK_PATH = "writes.task_path"
"""A column that younger databases have."""

MESSAGES = "messages"
"""The usual name of the channel that holds the messages."""

OF_STEP = (
    *("source", "step", "parents", "writes", "counters_since_delta_snapshot"),
    *("thread_id", "checkpoint_id", "checkpoint_ns"),
)
"""Metadata that each checkpoint has of its own."""

ANEW = "__overwrite__"
"""Names what is written in place of all that a channel held."""


class Held(NamedTuple):
    """A message that a checkpoint holds: its id, and its JSON text, by which it is compared."""

    id: str | None
    text: str


class End(NamedTuple):
    """Where the line of a checkpoint ends, and how many of its messages that one still holds."""

    node: str | None = None
    size: int = 0


Written = Callable[[str], Iterable[Any]]
"""What was written to the usual channel at a checkpoint."""


class Thread:
    """The messages of a thread, taken checkpoint by checkpoint.

    ``nodes`` has each under a name, with the name of the one before it (``parent``), and when the
    first checkpoint with it was made (``at``); ``current`` is the last of the newest checkpoint.
    """

    def __init__(self, written: Written) -> None:
        self.nodes: dict[str, Fields] = {}
        self.current: str | None = None
        self._written = written
        self._names = SessionNames("message")
        self._below: dict[tuple[str | None, str], str] = {}
        self._ends: dict[str, End] = {}

    def take(self, name: str, before: str | None, held: Fields) -> None:
        """Take the messages that a checkpoint holds, which goes on from another one."""
        end = self._ends.get(before or "", End())
        line = self._line(end.node)
        if before and _tells_deltas(held):
            said = _replayed(line[len(line) - end.size :], self._written(before))
        else:
            channels = fields_of(held.get("channel_values"))
            listed = map(list_of, (channels.get(MESSAGES), *channels.values()))
            told = (each for each in listed if each and all(map(_is_message, each)))
            said = [*map(_held, next(told, []))]
        shared = _shared(line, said)
        node = end.node if shared else None
        for each in said[shared:]:
            node = self._node(node, each, held.get("ts"))
        self._ends[name] = End(node, len(said))
        self.current = node

    def _line(self, node: str | None) -> list[Held]:
        """Return the messages up to a node."""
        line = []
        while node is not None:
            line.append(self.nodes[node]["held"])
            node = self.nodes[node]["parent"]
        return line[::-1]

    def _node(self, parent: str | None, held: Held, moment: object) -> str:
        """Return the name of a message behind another one; a new one where it is not known."""
        known = self._below.get((parent, held.text))
        if known:
            return known
        name = self._names.name(held.id)
        self.nodes[name] = {"parent": parent, "held": held, "at": moment}
        self._below[parent, held.text] = name
        return name


def _shared(line: list[Held], said: list[Held]) -> int:
    """Return how many messages of a checkpoint are the end of a line, which it goes on from."""
    begins = (place for place, each in enumerate(line) if said[:1] == [each])
    ends = (line[begin:] for begin in begins)
    return next((len(end) for end in ends if said[: len(end)] == end), 0)


def _held(message: object) -> Held:
    text = json.dumps(message, default=str, skipkeys=True)
    return Held(text_of(within(message, "id")), text)


def _tells_deltas(held: Fields) -> bool:
    """Tell whether a checkpoint has the usual channel, and leaves out what it holds."""
    has, tells = (fields_of(held.get(key)) for key in ("channel_versions", "channel_values"))
    return MESSAGES in has and MESSAGES not in tells


def _replayed(held: list[Held], written: Iterable[Any]) -> list[Held]:
    """Return messages after something was written to their channel."""
    numbers = count()
    kept: dict[object, Held] = {each.id or next(numbers): each for each in held}
    for value in written:
        told = fields_of(value)
        is_anew = ANEW in (told.get("type"), *told)
        if is_anew:
            kept.clear()
        for message in as_list(told.get("value", told.get(ANEW)) if is_anew else value):
            each = _held(message)
            if within(message, "type") == "remove":
                kept.pop(each.id, None)
            elif _is_message(message):
                kept[each.id or next(numbers)] = each
    return [*kept.values()]


def _is_message(value: object) -> bool:
    fields = fields_of(value)
    kind = first_text((fields.get("type"), fields.get("role")))
    return kind is not None and "content" in fields


def _threads(rows: Rows) -> Iterator[Any]:
    written = WRITTEN.format(path="task_path," if TASK_PATH in columns_in(rows) else "")
    for name, inner in rows.execute(THREADS).fetchall():
        thread = Thread(partial(_written, rows, written, name))
        told, made = Fields(), []
        for row in rows.execute(CHECKPOINTS, (name,)):
            held = decoded(row["type"], row["checkpoint"])
            if not isinstance(held, dict):
                what = f"checkpoint {row['checkpoint_id']} of {name} cannot be read"
                yield Noted(None, what, broken=True)
                continue
            thread.take(row["checkpoint_id"], row["parent_checkpoint_id"], held)
            told = without(fields_of(json_in(row["metadata"])), *OF_STEP)
            made.append(held.get("ts"))
        if inner:
            yield left_out(inner, "checkpoint of a graph in the graph", f" of {name!r}")
        nodes = {name: _said(node) for name, node in thread.nodes.items()}
        began = {"current": thread.current, "metadata": told, "created_at": (made or [None])[0]}
        yield {"langgraph_thread": name, "nodes": nodes, **began}


def _said(node: Fields) -> Fields:
    return without(node, "held") | {"message": json.loads(node["held"].text)}


def _written(rows: Rows, statement: str, thread: str, checkpoint: str) -> Iterator[Any]:
    """Return what was written to the usual channel at a checkpoint, in the program's order."""
    found = rows.execute(statement, (thread, checkpoint))
    return (decoded(row["type"], row["value"]) for row in found)


LAYOUT = Layout(
    frozenset({"checkpoints.thread_id", "checkpoints.checkpoint_ns", "writes.channel"}),
    _threads,
)
"""How the saver's database is laid out."""
