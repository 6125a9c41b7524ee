"""Tables of LangGraph's SQLite saver, read as threads: each of them a tree of messages.

Every checkpoint holds all messages so far, so a message stands in many; here it stands once, below
the one before it. A checkpoint that says something else than the one it goes on from makes the tree
branch; one from which only the first messages were removed goes on behind the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from ...errors import StoreError
from ...text import Fields
from ..database import Layout, Rows, json_in
from ..events import Noted, SessionNames, fields_of, first_text, left_out, list_of, text_of, without

THREADS = """
    SELECT thread_id, sum(checkpoint_ns <> '') AS inner
    FROM checkpoints GROUP BY thread_id ORDER BY min(rowid)
"""
CHECKPOINTS = """
    SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id
"""

MESSAGES = "messages"
"""The usual name of the channel that holds the messages."""

OF_STEP = ("source", "step", "parents", "writes", "thread_id", "checkpoint_id", "checkpoint_ns")
"""Metadata that each checkpoint has of its own."""

ARRAY, SNAPSHOT = 6, 7
"""Codes of packed objects that are not (module, class, what it is made of, …)."""


class Thread:
    """The messages of a thread, taken checkpoint by checkpoint.

    ``nodes`` has each under a name, with the name of the one before it (``parent``), and when the
    first checkpoint with it was made (``at``); ``current`` is the last of the newest checkpoint.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Fields] = {}
        self.current: str | None = None
        self._names = SessionNames("message")
        self._below: dict[tuple[str | None, str], str] = {}
        self._ends: dict[str, str | None] = {}

    def take(self, name: str, before: str | None, held: Fields) -> None:
        """Take the messages that a checkpoint holds, which goes on from another one."""
        end = self._ends.get(before or "")
        texts = [json.dumps(each, default=str) for each in _messages_in(held)]
        shared = _shared(self._line(end), texts)
        node = end if shared else None
        for text in texts[shared:]:
            node = self._node(node, text, held.get("ts"))
        self._ends[name] = self.current = node

    def _line(self, node: str | None) -> list[str]:
        """Return the messages up to a node."""
        line = []
        while node is not None:
            line.append(self.nodes[node]["text"])
            node = self.nodes[node]["parent"]
        return line[::-1]

    def _node(self, parent: str | None, text: str, moment: object) -> str:
        """Return the name of a message behind another one; a new one where it is not known."""
        known = self._below.get((parent, text))
        if known:
            return known
        message = fields_of(json.loads(text))
        name = self._names.name(text_of(message.get("id")))
        self.nodes[name] = {"parent": parent, "text": text, "at": moment}
        self._below[parent, text] = name
        return name


def _shared(line: list[str], texts: list[str]) -> int:
    """Return how many messages of a checkpoint are the end of a line, which it goes on from."""
    begins = (place for place, text in enumerate(line) if texts[:1] == [text])
    ends = (line[begin:] for begin in begins)
    return next((len(end) for end in ends if texts[: len(end)] == end), 0)


def _messages_in(held: Fields) -> list[Any]:
    """Return a checkpoint's messages: those of the usual channel, else of the first with any."""
    channels = fields_of(held.get("channel_values"))
    listed = map(list_of, (channels.get(MESSAGES), *channels.values()))
    told = (each for each in listed if each and all(map(_is_message, each)))
    return next(told, [])


def _is_message(value: object) -> bool:
    fields = fields_of(value)
    kind = first_text((fields.get("type"), fields.get("role")))
    return kind is not None and "content" in fields


def _threads(rows: Rows) -> Iterator[Any]:
    for name, inner in rows.execute(THREADS).fetchall():
        thread, told, made = Thread(), Fields(), []
        for row in rows.execute(CHECKPOINTS, (name,)):
            held = _decoded(row["type"], row["checkpoint"])
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
    return without(node, "text") | {"message": json.loads(node["text"])}


def _decoded(kind: object, held: bytes) -> Any:
    """Return what a column holds, None where it cannot be read; no code of a pickle is run."""
    try:
        if kind == "json":
            return json.loads(held, object_hook=_revived)
        return _unpacked(held) if kind == "msgpack" else None
    except (ValueError, TypeError, RecursionError):
        return None


def _revived(fields: Fields) -> Any:
    """Return what an object of LangChain's was made of; any other as it is."""
    if not {"lc", "type", "id"} <= fields.keys() or fields["type"] != "constructor":
        return fields
    return fields.get("kwargs") or fields.get("args")


def _unpacked(held: bytes) -> Any:
    """Return what was packed, of objects what they were made of. Raises ValueError, StoreError."""
    try:
        import ormsgpack
    except ImportError as problem:
        how = "pip install 'convostore[langgraph]'"
        raise StoreError(f"the checkpoints are packed; to read them: {how}") from problem
    unpack = partial(ormsgpack.unpackb, option=ormsgpack.OPT_NON_STR_KEYS)
    return unpack(held, ext_hook=_made_of)


def _made_of(code: int, held: bytes) -> Any:
    if code == ARRAY:
        return None
    made = _unpacked(held)
    return made if code == SNAPSHOT else made[2]


LAYOUT = Layout(
    frozenset({"checkpoints.thread_id", "checkpoints.checkpoint_ns", "writes.channel"}),
    _threads,
)
"""How the saver's database is laid out."""
