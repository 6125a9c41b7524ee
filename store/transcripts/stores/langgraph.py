"""Threads of LangGraph: messages of LangChain as those of the chat.

The line is that of the newest checkpoint; what other checkpoints say instead are branches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from ...errors import StoreError
from ...records import Message
from ...text import JsonFields, wrap_in_list
from ..blocks import convert_block_to_part
from ..database import Layout, SqliteConnection, load_column_names, parse_json_cell
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionNames,
    build_chat_call,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_omission,
    parse_iso_milliseconds,
    simplify_content,
    split_metadata,
)
from ..source import SourceValue, for_each_conversation
from ..trees import Tree, build_tree_events, find_node_parents

__all__ = ["LANGGRAPH_LAYOUT", "is_langgraph_thread", "parse_langgraph"]

ARRAY, SNAPSHOT = 6, 7
"""Codes of packed objects that are not (module, class, arguments, …)."""


def decode_packed_column(kind: object, held: bytes) -> Any:
    """Return what a column holds, None where it cannot be read."""
    try:
        if kind == "json":
            return json.loads(held, object_hook=_unwrap_langchain_object)
        return _unpack_msgpack(held) if kind == "msgpack" else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _unwrap_langchain_object(fields: JsonFields) -> Any:
    """Return what an object of LangChain's was made of; any other as it is."""
    if not {"lc", "type", "id"} <= fields.keys() or fields["type"] != "constructor":
        return fields
    return fields.get("kwargs") or fields.get("args")


def _unpack_msgpack(held: bytes) -> Any:
    """Return a packed value, of an object its arguments. Raises ValueError, StoreError."""
    try:
        import ormsgpack
    except ImportError as problem:
        how = "pip install 'convostore[langgraph]'"
        raise StoreError(f"the checkpoints are packed; to read them: {how}") from problem
    unpack = partial(ormsgpack.unpackb, option=ormsgpack.OPT_NON_STR_KEYS)
    return unpack(held, ext_hook=_unpack_extension)


def _unpack_extension(code: int, held: bytes) -> Any:
    if code == ARRAY:
        return None
    made = _unpack_msgpack(held)
    return made if code == SNAPSHOT else made[2]


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
"""The name of a value that replaces everything that a channel held."""


class CheckpointMessage(NamedTuple):
    """A message that a checkpoint holds: its id, and its JSON text, by which it is compared."""

    id: str | None
    text: str


class CheckpointEnd(NamedTuple):
    """Where the line of a checkpoint ends, and how many of its messages that one still holds."""

    node: str | None = None
    size: int = 0


WritesLoader = Callable[[str], Iterable[Any]]
"""The writes to the usual channel at a checkpoint."""


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
        has, tells = (get_fields(held.get(key)) for key in ("channel_versions", "channel_values"))
        # A delta has the usual channel, and leaves out what it holds.
        if before and MESSAGES_CHANNEL in has and MESSAGES_CHANNEL not in tells:
            said = _replay_writes(line[len(line) - end.size :], self._written(before))
        else:
            channels = get_fields(held.get("channel_values"))
            listed = map(get_list, (channels.get(MESSAGES_CHANNEL), *channels.values()))
            told = (each for each in listed if each and all(map(_is_langchain_message, each)))
            said = [*map(_build_checkpoint_message, next(told, []))]
        begins = (place for place, each in enumerate(line) if said[:1] == [each])
        ends = (line[begin:] for begin in begins)
        shared = next((len(end) for end in ends if said[: len(end)] == end), 0)
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
        """Return the name of a message after another one; a new one where it is not known."""
        known = self._below.get((parent, held.text))
        if known:
            return known
        name = self._names.name(held.id)
        self.nodes[name] = {"parent": parent, "held": held, "at": moment}
        self._below[parent, held.text] = name
        return name


def _build_checkpoint_message(message: object) -> CheckpointMessage:
    text = json.dumps(message, default=str, skipkeys=True)
    return CheckpointMessage(get_text(get_nested(message, "id")), text)


def _replay_writes(
    held: list[CheckpointMessage], written: Iterable[Any]
) -> list[CheckpointMessage]:
    """Return messages after something was written to their channel."""
    kept: dict[object, CheckpointMessage] = {each.id or object(): each for each in held}
    for value in written:
        added, told = value, get_fields(value)
        if OVERWRITE_KEY in (told.get("type"), *told):
            kept.clear()
            added = told.get("value", told.get(OVERWRITE_KEY))
        for message in wrap_in_list(added):
            each = _build_checkpoint_message(message)
            if get_nested(message, "type") == "remove":
                kept.pop(each.id, None)
            elif _is_langchain_message(message):
                kept[each.id or object()] = each
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
        nodes = {
            name: drop_keys(node, "held") | {"message": json.loads(node["held"].text)}
            for name, node in thread.nodes.items()
        }
        began = {"current": thread.current, "metadata": told, "created_at": (made or [None])[0]}
        yield {"langgraph_thread": name, "nodes": nodes, **began}


def _load_channel_writes(
    rows: SqliteConnection, statement: str, thread: str, checkpoint: str
) -> Iterator[Any]:
    """Return the writes to the usual channel at a checkpoint, in the program's order."""
    found = rows.execute(statement, (thread, checkpoint))
    return (decode_packed_column(row["type"], row["value"]) for row in found)


LANGGRAPH_LAYOUT = Layout(
    frozenset({"checkpoints.thread_id", "checkpoints.checkpoint_ns", "writes.channel"}),
    _load_checkpoint_threads,
)
"""How the saver's database is laid out."""


LANGGRAPH_KEY = "langgraph"

LANGCHAIN_ROLES = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
    "function": "tool",
}
"""Type of a message → its role; one of another type tells its role."""

LANGCHAIN_CALL_TYPES = (
    "tool_use",
    "tool_call",
    "tool_call_chunk",
    "function_call",
    "input_json_delta",
)
"""Types of blocks that say a call, which stands among the message's calls, too."""

LANGCHAIN_CALL_KEYS = ("tool_calls", "invalid_tool_calls")

LANGCHAIN_THOUGHT_TYPES = ("thinking", "redacted_thinking")

_LANGCHAIN_MESSAGE_KEYS = (
    "type",
    "role",
    "content",
    "id",
    "name",
    "tool_calls",
    "invalid_tool_calls",
)
_LANGCHAIN_RESULT_KEYS = ("tool_call_id", "status")


def is_langgraph_thread(value: Any) -> bool:
    """Tell whether a value is a thread of such a database."""
    return "langgraph_thread" in get_fields(value)


@for_each_conversation(is_langgraph_thread, "thread of checkpoints")
def parse_langgraph(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a thread, its branches after it."""
    fields = get_fields(item.value)
    nodes = get_fields(fields.get("nodes"))
    said = {name: _parse_langchain_message(name, get_fields(node)) for name, node in nodes.items()}
    metadata, notes = split_metadata(get_fields(fields.get("metadata")))
    answers = (
        get_fields(get_nested(message, LANGGRAPH_KEY, "response_metadata"))
        for message in reversed(said.values())
    )
    model = find_first_text(
        answer.get(key) for answer in answers for key in ("model_name", "model")
    )
    told = {"model": model, LANGGRAPH_KEY: metadata}
    name = names.name(get_text(fields.get("langgraph_thread")))
    began = parse_iso_milliseconds(fields.get("created_at"))
    title, current = find_title(said.values()), get_text(fields.get("current"))
    opened = SessionEvent(name, title, None, drop_empty_fields(told), created_at=began)
    tree = Tree(find_node_parents(nodes, "parent"), current, lambda node: [said[node]])
    yield from build_tree_events(tree, opened)
    yield from notes


def _parse_langchain_message(name: str, node: JsonFields) -> Message:
    """Return a message of LangChain's as one of the chat."""
    told = get_fields(node.get("message"))
    known = LANGCHAIN_ROLES.get(str(told.get("type")))
    role = find_first_text((known, told.get("role"))) or "user"
    moment = {"timestamp": parse_iso_milliseconds(node.get("at"))}
    blocks = [_parse_langchain_block(each) for each in wrap_in_list(told.get("content"))]
    beside = (*LANGCHAIN_CALL_TYPES, *LANGCHAIN_THOUGHT_TYPES, "reasoning")
    message: Message = {
        "role": role,
        "content": (
            simplify_content([each for each in blocks if get_nested(each, "type") not in beside])
            or ""
        ),
        "id": name,
    }
    message |= drop_empty_fields({**moment, "name": told.get("name")})
    if role == "assistant":
        more = _parse_langchain_calls(told)
    elif role == "tool":
        failed = told.get("status") == "error"
        link = {"tool_call_id": told.get("tool_call_id")}
        more = drop_empty_fields(link) | ({"messageStatus": "error"} if failed else {})
    else:
        more = {}
    extra = drop_empty_fields(
        drop_keys(
            told, *_LANGCHAIN_MESSAGE_KEYS, *(_LANGCHAIN_RESULT_KEYS if role == "tool" else ())
        )
    )
    return message | more | drop_empty_fields({LANGGRAPH_KEY: extra})


def _parse_langchain_block(block: Any) -> Any:
    """Return a block as a part of the chat's."""
    fields = get_fields(block)
    if not fields:
        return build_text_part(get_text(block) or "")
    if fields.get("type") == "text":
        return build_text_part(get_text(fields.get("text")) or "")
    if fields.get("type") == "image":
        data = find_first_text((fields.get("base64"), fields.get("data")))
        media = get_text(fields.get("mime_type")) or "image/png"
        url = get_text(fields.get("url")) or (data and f"data:{media};base64,{data}")
        return (
            {"type": "image_url", "image_url": {"url": url}}
            if url
            else get_fields(convert_block_to_part(fields))
        )
    return fields


def _parse_langchain_calls(told: JsonFields) -> JsonFields:
    """Return what an answer says beside its content: its calls, and its thinking."""
    calls = [
        build_chat_call(call.get("id"), call.get("name"), call.get("args"))
        for key in LANGCHAIN_CALL_KEYS
        for call in get_objects(told.get(key))
    ]
    blocks = [get_fields(each) for each in get_list(told.get("content"))]
    thoughts = [block.get("reasoning") for block in blocks if block.get("type") == "reasoning"]
    thoughts.append(get_nested(told, "additional_kwargs", "reasoning_content"))
    return drop_empty_fields(
        {
            "tool_calls": calls,
            "thinking_blocks": [
                block for block in blocks if block.get("type") in LANGCHAIN_THOUGHT_TYPES
            ],
            "reasoning_content": join_texts(thoughts),
        }
    )
