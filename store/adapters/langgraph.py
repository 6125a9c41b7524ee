"""Checkpoints of LangGraph: ``builder.compile(checkpointer=Saver("chat.db"))``.

The messages of a thread are the session of its id: a list of messages that a checkpoint holds is a
line, known by the id of its last message, which is a digest of all up to it. So a list that goes on
costs what is new, and one that differs is a branch. Checkpoints, other values and pending writes
are items without a shape in a session beside, one for each namespace.
"""

from __future__ import annotations

import hashlib
import json
import random
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .. import InvalidValue, MessageNotFound, SessionNotFound
from ..records import Message, Session, StoredMessage
from .langchain import CHAT_FORMAT, restore_message, shape_message
from .stores import StoreSource, StoreUser, read_sessions

__all__ = ["Saver"]

LANGGRAPH_KEY = "langgraph"
ITEMS_FORMAT = "responses"
CHECKPOINT, VALUE, WRITES = "checkpoint/", "value/", "writes/"
"""The beginnings of the ids of items."""
MESSAGE_CLASSES = (
    *(HumanMessage, AIMessage, SystemMessage, ToolMessage, FunctionMessage),
    ChatMessage,
)
"""The classes of messages that come back from a line as they were."""

Fields: TypeAlias = dict[str, Any]
Fetch: TypeAlias = Callable[[str], Fields | None]
Write: TypeAlias = tuple[str, str, Any]
Writes: TypeAlias = Sequence[tuple[str, Any]]
Lines: TypeAlias = dict[tuple[str, int], list[StoredMessage]]


class Place(NamedTuple):
    """A namespace of a thread."""

    thread: str
    namespace: str

    @property
    def items(self) -> str:
        """The id of the session with its checkpoints, values and writes."""
        beside = f"/{self.namespace}" if self.namespace else ""
        return f"{self.thread}/checkpoints{beside}"

    def line(self, channel: str) -> str:
        """Return the id of the session with the messages of a channel."""
        if (self.namespace, channel) == ("", "messages"):
            return self.thread
        return f"{self.thread}/messages/{self.namespace}/{channel}"

    def describe(self, part: str) -> Fields:
        """Return the metadata of a session of it."""
        return {**describe_threads(part, self.thread), "namespace": self.namespace}

    def configure(self, checkpoint_id: str) -> RunnableConfig:
        """Return the configuration that names a checkpoint."""
        names = {"thread_id": self.thread, "checkpoint_ns": self.namespace}
        return {"configurable": {**names, "checkpoint_id": checkpoint_id}}


def describe_threads(part: str | None = None, thread: str | None = None) -> Fields:
    """Return the metadata by which sessions of threads are found."""
    told = {"framework": "langgraph", "part": part, "thread": thread}
    return {key: value for key, value in told.items() if value is not None}


def read_thread(reads: Any, thread: str) -> list[Session]:
    """Return the sessions of a thread; forks that `Store.fork` made of them are none."""
    found = read_sessions(reads, describe_threads(thread=thread))
    return [each for each in found if f"{each.id}/".startswith(f"{thread}/")]


def find_place(config: RunnableConfig) -> Place:
    """Return the namespace that a configuration names."""
    named = config["configurable"]
    return Place(str(named["thread_id"]), named.get("checkpoint_ns", ""))


class Saver(StoreUser, BaseCheckpointSaver[str]):
    """The threads of a store, as LangGraph's ``BaseCheckpointSaver`` has them.

    ``store`` is an open store, or the path or URL of one, which `close` gives back. ``serde`` is
    the framework's serializer of values; with any but its standard one, such as one that encrypts,
    lists of messages are values like others. `copy_thread` forks. What `prune` and
    `delete_for_runs` remove is erased, except lists of messages as long as the checkpoints that
    stay hold some on several branches.
    """

    def __init__(self, store: StoreSource, *, serde: Any = None) -> None:
        StoreUser.__init__(self, store)
        BaseCheckpointSaver.__init__(self, serde=serde)

    def get_next_version(self, current: str | None, _: None) -> str:
        """Return a version that follows another one, and no other checkpoint has."""
        before = int(str(current).partition(".")[0]) if current is not None else 0
        return f"{before + 1:032}.{random.getrandbits(64):016x}"

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: Mapping[str, str | int | float],
    ) -> RunnableConfig:
        """Store a checkpoint with its new values, as one change; return what names it."""
        return self.store.atomically(self._plan_put(config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: Mapping[str, str | int | float],
    ) -> RunnableConfig:
        """Store a checkpoint, as `put` does."""
        work = self._plan_put(config, checkpoint, metadata, new_versions)
        return await self.awaited.atomically(work)

    def _plan_put(
        self, config: Any, checkpoint: Any, metadata: Any, new_versions: Mapping[str, Any]
    ) -> Callable[[Any], RunnableConfig]:
        place, own_id = find_place(config), checkpoint["id"]
        values = checkpoint["channel_values"]
        told = {
            **self._pack_checkpoint(checkpoint, new_versions),
            "metadata": self._pack(get_checkpoint_metadata(config, metadata)),
            "parent": get_checkpoint_id(config),
        }
        chains = {key: self._shape_list(values.get(key)) for key in new_versions}
        packed = {
            key: self._pack(values[key]) if key in values and not chains[key] else {}
            for key in new_versions
        }

        def work(steps: Any) -> RunnableConfig:
            described = place.describe("checkpoints")
            session = steps.create_session(place.items, metadata=described, exist_ok=True)
            for channel, rows in chains.items():
                if rows:
                    write_line(steps, place, channel, rows)
                    packed[channel] = {"last": rows[-1]["id"]}
            items = [
                build_item(f"{VALUE}{channel}/{version}", packed[channel])
                for channel, version in new_versions.items()
            ]
            append_items(steps, place, [*items, build_item(CHECKPOINT + own_id, told)])
            if own_id > session.metadata.get("latest", ""):
                steps.set_metadata(place.items, {"latest": own_id}, merge=True)
            return place.configure(own_id)

        return work

    def _pack_checkpoint(self, checkpoint: Any, new_versions: Mapping[str, Any]) -> Fields:
        """Return a checkpoint without its values, but those of channels without a version."""
        rest, values = dict(checkpoint), checkpoint["channel_values"]
        del rest["channel_values"]
        told: Fields = {"checkpoint": self._pack(rest)}
        unversioned = values.keys() - checkpoint["channel_versions"].keys() - new_versions.keys()
        if unversioned:
            told["values"] = {key: self._pack(values[key]) for key in sorted(unversioned)}
        return told

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Writes,
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote at a checkpoint, which may be stored later."""
        self.store.atomically(self._plan_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Writes,
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote, as `put_writes` does."""
        await self.awaited.atomically(self._plan_writes(config, writes, task_id, task_path))

    def _plan_writes(
        self, config: Any, writes: Writes, task_id: str, task_path: str
    ) -> Callable[[Any], None]:
        place, begin = find_place(config), f"{WRITES}{get_checkpoint_id(config)}/"
        packed = [[channel, self._pack(value)] for channel, value in writes]
        told = {"task": task_id, "path": task_path, "writes": packed}

        def work(steps: Any) -> None:
            described = place.describe("checkpoints")
            steps.create_session(place.items, metadata=described, exist_ok=True)
            number = count_writes(build_fetch(steps, place), begin)
            append_items(steps, place, [build_item(f"{begin}{number}", told)])

        return work

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, the newest if none is named; None if there is none."""
        with suppress(SessionNotFound):
            return self.store.reading(self._plan_get(config))
        return None

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, as `get_tuple` does."""
        with suppress(SessionNotFound):
            return await self.awaited.reading(self._plan_get(config))
        return None

    def _plan_get(self, config: Any) -> Callable[[Any], CheckpointTuple | None]:
        place = find_place(config)

        def work(reads: Any) -> CheckpointTuple | None:
            latest = (reads.session(place.items).metadata or {}).get("latest")
            own_id = get_checkpoint_id(config) or latest
            fetch = build_fetch(reads, place)
            return self._build_tuple(reads, place, own_id, fetch, {}) if own_id else None

        return work

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Fields | None = None,  # noqa: A002 - the framework's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Return checkpoints, the newest first: of a thread, a namespace, or all threads."""
        yield from self.store.reading(self._plan_list(config, filter, before, limit))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Fields | None = None,  # noqa: A002 - the framework's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return checkpoints, as `list` does."""
        for each in await self.awaited.reading(self._plan_list(config, filter, before, limit)):
            yield each

    def _plan_list(
        self, config: Any, wanted: Fields | None, before: Any, limit: int | None
    ) -> Callable[[Any], Sequence[CheckpointTuple]]:
        named = config["configurable"] if config else {}
        where = describe_threads("checkpoints", named.get("thread_id"))
        if "checkpoint_ns" in named:
            where["namespace"] = named["checkpoint_ns"]
        only, end = named.get("checkpoint_id"), before and get_checkpoint_id(before)
        asked = [*wanted.items()] if wanted else []

        def work(reads: Any) -> Sequence[CheckpointTuple]:
            found = []
            for session in read_sessions(reads, where):
                items = read_items(reads, session.id)
                place = Place(session.metadata["thread"], session.metadata["namespace"])
                for own_id in list_checkpoints(items):
                    told = self._unpack(items[CHECKPOINT + own_id]["metadata"])
                    if (
                        (not only or own_id == only)
                        and (not end or own_id < end)
                        and all(find_key(told, key) == value for key, value in asked)
                    ):
                        found.append((own_id, place, items))
            found.sort(key=lambda each: each[0], reverse=True)
            lines: Lines = {}
            built = (
                self._build_tuple(reads, place, own_id, items.get, lines)
                for own_id, place, items in found[:limit]
            )
            return [each for each in built if each]

        return work

    def _build_tuple(
        self, reads: Any, place: Place, own_id: str, fetch: Fetch, lines: Lines
    ) -> CheckpointTuple | None:
        told = fetch(CHECKPOINT + own_id)
        if told is None:
            return None
        checkpoint = self._unpack(told["checkpoint"])
        values = {key: self._unpack(packed) for key, packed in told.get("values", {}).items()}
        for channel, version in checkpoint["channel_versions"].items():
            packed = fetch(f"{VALUE}{channel}/{version}")
            if packed and "last" in packed:
                values[channel] = read_line(reads, place.line(channel), packed["last"], lines)
            elif packed:
                values[channel] = self._unpack(packed)
        writes = merge_writes(read_writes(fetch, f"{WRITES}{own_id}/"))
        return CheckpointTuple(
            place.configure(own_id),
            {**checkpoint, "channel_values": values},
            self._unpack(told["metadata"]),
            place.configure(told["parent"]) if told["parent"] else None,
            [(task, channel, self._unpack(packed)) for task, channel, packed in writes],
        )

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread for good, but messages that copies of it share."""

        def work(steps: Any) -> None:
            found = read_thread(steps, thread_id)
            steps.delete_session([each.id for each in found], missing="ignore")

        self.store.atomically(work)

    async def adelete_thread(self, thread_id: str) -> None:
        """Erase a thread, as `delete_thread` does."""
        await run_in_executor(None, self.delete_thread, thread_id)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread: a fork, which shares all up to now. Raises SessionExists."""

        def work(steps: Any) -> None:
            for each in read_thread(steps, source_thread_id):
                name = target_thread_id + each.id.removeprefix(source_thread_id)
                metadata = {**each.metadata, "thread": target_thread_id}
                steps.fork(each.id, session_id=name, metadata=metadata)

        self.store.atomically(work)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, as `copy_thread` does."""
        await run_in_executor(None, self.copy_thread, source_thread_id, target_thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs, with their writes, from all threads."""
        if run_ids:
            runs = {*run_ids}
            self._remove(
                describe_threads("checkpoints"),
                lambda told: [key for key in told if told[key].get("run_id") not in runs],
            )

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs, as `delete_for_runs` does."""
        await run_in_executor(None, self.delete_for_runs, run_ids)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove all checkpoints of threads but the newest of each namespace, or all.

        A namespace whose newest checkpoint tells differences to older ones stays as it is.
        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidValue(f"strategy is 'keep_latest' or 'delete', not {strategy!r}")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                self._remove(describe_threads("checkpoints", thread_id), choose_latest)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove checkpoints, as `prune` does."""
        await run_in_executor(None, lambda: self.prune(thread_ids, strategy=strategy))

    def _remove(
        self,
        where: Fields,
        choose: Callable[[Fields], Sequence[str]],
    ) -> None:
        """Remove the checkpoints that are not chosen by the metadata of all of a namespace."""
        for session in read_sessions(self.store, where):
            with suppress(SessionNotFound):
                self.store.atomically(partial(self._remove_from, session.id, choose))

    def _remove_from(
        self, name: str, choose: Callable[[Fields], Sequence[str]], steps: Any
    ) -> None:
        items = read_items(steps, name)
        told = {
            each: self._unpack(items[CHECKPOINT + each]["metadata"])
            for each in list_checkpoints(items)
        }
        kept = sorted(choose(told))
        if len(kept) == len(told):
            return
        checkpoints = [self._unpack(items[CHECKPOINT + each]["checkpoint"]) for each in kept]
        values = [
            f"{VALUE}{channel}/{version}"
            for each in checkpoints
            for channel, version in each["channel_versions"].items()
        ]
        needed = {*values, *(CHECKPOINT + each for each in kept)}
        gone = told.keys() - kept | {None}
        left = [
            build_item(key, value)
            for key, value in items.items()
            if key in needed or find_writer(key) not in gone
        ]
        steps.replace(name, 0, left, format=ITEMS_FORMAT)
        steps.set_metadata(name, {"latest": max(kept, default=None)}, merge=True)
        steps.forget(name)
        forget_lists(steps, name, items, values)

    def _pack(self, value: Any) -> dict[str, str]:
        kind, held = self.serde.dumps_typed(value)
        return {"kind": kind, "held": b64encode(held).decode()}

    def _unpack(self, packed: Mapping[str, str]) -> Any:
        return self.serde.loads_typed((packed["kind"], b64decode(packed["held"])))

    def _shape_list(self, value: Any) -> Sequence[Message]:
        """Return the rows of a list of messages; none for any other value.

        The id of each is a digest of it and all before it.
        """
        is_plain = isinstance(self.serde, JsonPlusSerializer) and isinstance(value, list)
        if not is_plain or not all(type(each) in MESSAGE_CLASSES for each in value):
            return []
        rows, name = [], ""
        for message in value:
            row = shape_message(message)
            try:
                text = json.dumps(row, allow_nan=False)
            except (TypeError, ValueError):
                return []
            if json.loads(text) != row:
                return []
            name = hashlib.sha256(f"{name}{text}".encode()).hexdigest()[:32]
            rows.append({**row, "id": name})
        return rows


def find_key(told: Any, key: str) -> Any:
    """Return the value of a key, which may be a path with dots; None if there is none."""
    if not isinstance(told, dict) or key in told:
        return told[key] if isinstance(told, dict) else None
    first, dot, rest = key.partition(".")
    return find_key(told.get(first), rest) if dot else None


def choose_latest(told: Fields) -> Sequence[str]:
    """Return the newest checkpoint; all if it tells differences to older ones."""
    latest = max(told, default="")
    has_deltas = latest and told[latest].get("counters_since_delta_snapshot")
    return [*told] if has_deltas else [latest][: len(told)]


# --- lines of messages ----------------------------------------------------------------------------


def write_line(steps: Any, place: Place, channel: str, rows: Sequence[Message]) -> None:
    """Set the line of a session to rows: move to the known ones, append the new ones."""
    name = place.line(channel)
    session = steps.create_session(name, metadata=place.describe("messages"), exist_ok=True)
    names = [row["id"] for row in rows]
    known = bisect_left(names, True, key=lambda each: not steps.find(each, name))
    if known:
        found = steps.find(names[known - 1], name)[0]
        if (found.branch, found.seq) != (session.branch, session.head):
            steps.switch(name, found.branch, found.seq)
    elif session.head:
        steps.rewind(name, 0)
    if rows[known:]:
        steps.append(name, rows[known:], dedupe="off", format=CHAT_FORMAT)


def read_line(reads: Any, name: str, last: str, lines: Lines) -> Sequence[BaseMessage]:
    """Return the messages of a session up to the one of an id, on whatever branch it is."""
    places = reads.find(last, name)
    if not places:
        raise MessageNotFound(name, last)
    _, branch, end = places[0]
    if (name, branch) not in lines:
        lines[name, branch] = reads.messages(name, branch=branch)
    rows = takewhile(lambda each: each.seq <= end, lines[name, branch])
    return [restore_message(each.message) for each in rows]


def forget_lists(steps: Any, name: str, items: Mapping[str, Fields], values: Sequence[str]) -> None:
    """Erase the lists of messages of a namespace that none of some values hold any more."""
    described = steps.session(name).metadata
    place = Place(described["thread"], described["namespace"])
    for channel in {find_channel(key) for key, told in items.items() if "last" in told}:
        of_channel = (items.get(key, {}) for key in values if find_channel(key) == channel)
        held = [told["last"] for told in of_channel if "last" in told]
        with suppress(SessionNotFound):
            erase_left_branches(steps, place.line(channel), held)


def erase_left_branches(steps: Any, name: str, held: Sequence[str]) -> None:
    """Make the last of the lists that are held a session's line, and erase what is on no line.

    If another list is no part of the line, all branches stay.
    """
    session = steps.session(name)
    if not held:
        steps.rewind(name, 0)
    else:
        found = steps.find(held[-1], name)[0]
        if (found.branch, found.seq) != (session.branch, session.head):
            session = steps.switch(name, found.branch, found.seq)
    if all(steps.find(each, name)[0].branch == session.branch for each in held):
        steps.forget(name)


# --- items ----------------------------------------------------------------------------------------


def build_item(name: str, told: Mapping[str, Any]) -> Message:
    """Return an item without a shape."""
    return {"id": name, LANGGRAPH_KEY: told}


def append_items(steps: Any, place: Place, items: Sequence[Message]) -> None:
    """Append items; the newest of an id counts."""
    steps.append(place.items, items, dedupe="off", format=ITEMS_FORMAT)


def read_items(reads: Any, name: str) -> dict[str, Fields]:
    """Return what all items of a session tell, by their ids."""
    found = (each.message for each in reads.messages(name))
    return {each["id"]: each[LANGGRAPH_KEY] for each in found if LANGGRAPH_KEY in each}


def list_checkpoints(items: Iterable[str]) -> Sequence[str]:
    """Return the ids of the checkpoints among items."""
    return [key.removeprefix(CHECKPOINT) for key in items if key.startswith(CHECKPOINT)]


def find_writer(name: str) -> str | None:
    """Return the checkpoint that writes belong to, by their id; None for other items."""
    return name.split("/")[1] if name.startswith(WRITES) else None


def find_channel(name: str) -> str:
    """Return the channel that an item has a value of, by its id."""
    return name.removeprefix(VALUE).rpartition("/")[0]


def build_fetch(reads: Any, place: Place) -> Fetch:
    """Return a function that reads what an item tells; None if there is none."""

    def fetch(name: str) -> Fields | None:
        try:
            message: Message = reads.message(place.items, name).message
        except MessageNotFound:
            return None
        return message.get(LANGGRAPH_KEY)

    return fetch


def read_writes(fetch: Fetch, begin: str) -> Iterator[Fields]:
    """Return what tasks wrote, in the order in which it was stored."""
    number = 0
    while (told := fetch(f"{begin}{number}")) is not None:
        yield told
        number += 1


def count_writes(fetch: Fetch, begin: str) -> int:
    """Return how often tasks wrote, by few looks."""
    size = 1
    while fetch(f"{begin}{size - 1}") is not None:
        size *= 2
    return bisect_left(range(size), True, key=lambda number: fetch(f"{begin}{number}") is None)


def merge_writes(told: Iterable[Fields]) -> Iterator[Write]:
    """Return writes in the order of their tasks.

    The first at each place of a task counts, of special channels, such as errors, the last.
    """
    merged: dict[tuple[str, int], Write] = {}
    for each in told:
        for number, (channel, packed) in enumerate(each["writes"]):
            key = each["task"], WRITES_IDX_MAP.get(channel, number)
            if key[1] < 0 or key not in merged:
                merged[key] = each["path"], channel, packed
    sorted_keys = sorted(merged, key=lambda key: writes_sort_key(merged[key][0], *key))
    for key in sorted_keys:
        yield key[0], *merged[key][1:]
