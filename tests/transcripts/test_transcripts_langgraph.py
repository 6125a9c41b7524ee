"""Checkpoints of LangGraph, made up as its SQLite saver packs them."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from store import Store, StoreError
from store.importing import import_file

Fields = dict[str, Any]

TABLES = """
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE writes (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '', idx INTEGER NOT NULL,
    channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
"""
METADATA = {"source": "loop", "step": 1, "parents": {}, "user_id": "ann"}


def said(kind: str, content: Any, number: str, **more: Any) -> Fields:
    """Make a message as LangChain dumps it."""
    return {"content": content, "additional_kwargs": {}, "type": kind, "id": number, **more}


CALL = {"name": "weather", "args": {"city": "Rome"}, "id": "c1", "type": "tool_call"}
SYSTEM = said("system", "Be kind.", "s1")
QUESTION = said("human", "Weather?", "h1")
ASKING = said(
    "ai",
    [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "c1", "name": "weather"}],
    "a1",
    tool_calls=[CALL],
    usage_metadata={
        "input_tokens": 10,
        "output_tokens": 5,
        "input_token_details": {"cache_read": 4},
    },
    response_metadata={"model_name": "m"},
)
RESULT = said("tool", "sunny", "t1", name="weather", tool_call_id="c1", status="success")
ANSWER = said("ai", "Sunny.", "a2")
THANKS = said("human", "Thanks.", "h2")
OSLO = said("human", "And in Oslo?", "h3")
WHOLE = [SYSTEM, QUESTION, ASKING, RESULT, ANSWER]


def packed(message: Fields) -> ormsgpack.Ext:
    """Pack a message as the saver does: its class, and what it was made of."""
    told = ("langchain_core.messages", "Message", message, "model_validate_json")
    return ormsgpack.Ext(5, ormsgpack.packb(told))


def revivable(message: Fields) -> Fields:
    """Make of a message what older savers wrote as JSON."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "Message"], "kwargs": message}


def row(number: int, messages: list[Fields], after: int | None = None, **more: Any) -> Fields:
    """Make the row of a checkpoint that goes on from another one."""
    held = {
        "v": 4,
        "ts": f"2026-01-01T00:00:{number:02}+00:00",
        "id": f"k{number:02}",
        "channel_values": {"messages": [*map(packed, messages)], "seen": ormsgpack.Ext(6, b"")},
    }
    return {
        "checkpoint_id": held["id"],
        "parent_checkpoint_id": None if after is None else f"k{after:02}",
        "type": "msgpack",
        "checkpoint": ormsgpack.packb(held),
        "metadata": json.dumps(METADATA),
        **more,
    }


def saved(path: Path, *rows: Fields, table: str = "checkpoints") -> Path:
    """Write rows of the thread that the file is named after, behind those that it has."""
    is_new = not path.exists()
    with closing(sqlite3.connect(path)) as database, database:
        if is_new:
            database.executescript(TABLES)
        for each in ({"thread_id": path.stem, **row} for row in rows):
            names, places = ", ".join(each), ", ".join("?" for _ in each)
            database.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", [*each.values()])
    return path


def delta(number: int, after: int) -> Fields:
    """Make the row of a checkpoint that leaves out what its channel of messages holds."""
    held = {"id": f"k{number:02}", "channel_values": {}, "channel_versions": {"messages": "7"}}
    metadata = json.dumps({**METADATA, "counters_since_delta_snapshot": {"messages": [1, 1]}})
    return {**row(number, [], after), "checkpoint": ormsgpack.packb(held), "metadata": metadata}


def written(number: int, value: Any, task: str = "1", **more: Any) -> Fields:
    """Make the row of what a task wrote to the channel of messages at a checkpoint."""
    told = {"checkpoint_id": f"k{number:02}", "task_id": task, "idx": 0, "channel": "messages"}
    return {**told, "type": "msgpack", "value": ormsgpack.packb(value), **more}


def texts(store: Store, name: str) -> list[str]:
    """Return what the messages of a session say."""
    return [str(each.message["content"]) for each in store.messages(name)]


def test_a_thread_is_a_session(store: Store, tmp_path: Path) -> None:
    """Messages of every role, once each; calls with their results, what an answer cost."""
    lines = [WHOLE[:length] for length in range(len(WHOLE) + 1)]
    rows = [row(number, line, number - 1) for number, line in enumerate(lines)]
    report = import_file(store, saved(tmp_path / "thread.db", *rows))
    assert (report.kind, report.notes) == ("langgraph", [])
    assert [(each.id, each.messages, each.tool_calls) for each in report.sessions] == [
        ("thread", 5, 1)
    ]
    session = store.session("thread")
    assert session.metadata == {"model": "m", "langgraph": {"user_id": "ann"}}
    assert (session.title, session.created_at) == ("Weather?", 1_767_225_600_000)
    asking = store.message("thread", 3).message
    assert (asking["content"], asking["timestamp"]) == ("Let me look.", 1_767_225_603_000)
    assert json.loads(asking["tool_calls"][0]["function"]["arguments"]) == {"city": "Rome"}
    view = store.view("thread")
    roles = ["system", "user", "assistant", "tool", "assistant"]
    assert [each["role"] for each in view.messages] == roles
    assert [(each.input, each.output, each.cached) for each in store.usages("thread")] == [
        (10, 5, 4)
    ]
    again = import_file(store, tmp_path / "thread.db")
    assert [each.appended for each in again.sessions] == [0]
    assert store.verify() == []


def test_what_other_checkpoints_say_are_branches(store: Store, tmp_path: Path) -> None:
    """A thread that went on from an earlier checkpoint, and a message that was said anew."""
    edited = [SYSTEM, {**QUESTION, "content": "Weather in Paris?"}]
    rows = [
        row(1, WHOLE),
        row(2, [*WHOLE, THANKS], 1),
        row(3, edited, 1),
        row(4, [*WHOLE, OSLO], 1),
    ]
    report = import_file(store, saved(tmp_path / "edited.db", *rows))
    assert [each.id for each in report.sessions] == [
        "edited",
        "edited/branch-h2",
        "edited/branch-h1-7",
    ]
    assert texts(store, "edited")[-2:] == ["Sunny.", "And in Oslo?"]
    assert texts(store, "edited/branch-h2")[-2:] == ["Sunny.", "Thanks."]
    assert texts(store, "edited/branch-h1-7") == ["Be kind.", "Weather in Paris?"]
    assert store.session("edited/branch-h2").forked_from == "edited"


def test_a_thread_goes_on_behind_what_was_removed(store: Store, tmp_path: Path) -> None:
    """A graph that keeps only the last messages; the file of it grows."""
    path = saved(tmp_path / "trimmed.db", row(1, WHOLE), row(2, [ANSWER, THANKS], 1))
    import_file(store, path)
    saved(path, row(3, [THANKS, {**ANSWER, "id": "a3"}], 2))
    report = import_file(store, path)
    assert [(each.id, each.messages, each.appended) for each in report.sessions] == [
        ("trimmed", 7, 1)
    ]


def test_deltas_are_replayed(store: Store, tmp_path: Path) -> None:
    """What tasks wrote since a whole checkpoint, in their order: new, said anew, taken out."""
    path = saved(tmp_path / "deltas.db", row(1, [SYSTEM]), *(delta(n, n - 1) for n in range(2, 6)))
    better = packed({**ANSWER, "content": "Very sunny."})
    gone = packed(said("remove", "", SYSTEM["id"]))
    rows = [
        written(1, packed(QUESTION), "9", task_path="a"),
        written(1, [packed(ASKING)], "1", task_path="b"),
        written(2, [packed(RESULT), packed(ANSWER)]),
        written(2, "none of them", "2", channel="log"),
        written(3, [better, {"odd": 1}]),
        written(4, gone),
    ]
    saved(path, *rows, table="writes")
    report = import_file(store, path)
    assert [(each.id, each.messages) for each in report.sessions] == [
        ("deltas", 5),
        ("deltas/branch-a2", 1),
    ]
    assert texts(store, "deltas") == [
        "Be kind.",
        "Weather?",
        "Let me look.",
        "sunny",
        "Very sunny.",
    ]
    assert store.session("deltas").metadata == {"model": "m", "langgraph": {"user_id": "ann"}}


def test_deltas_go_on_behind_what_is_written_anew(store: Store, tmp_path: Path) -> None:
    """In a database of before its tasks had paths, and beside a checkpoint that has all again."""
    path = tmp_path / "anew.db"
    fresh = ormsgpack.Ext(
        2, ormsgpack.packb(("m", "Overwrite", {"value": [packed(OSLO)], "type": "__overwrite__"}))
    )
    saved(path, row(1, [THANKS]), delta(2, 1), delta(3, 2), row(4, [OSLO, ANSWER], 3))
    saved(path, written(1, fresh), written(2, packed(ANSWER)), table="writes")
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE writes DROP COLUMN task_path")
    import_file(store, path)
    assert texts(store, "anew") == ["And in Oslo?", "Sunny."]
    assert texts(store, "anew/branch-h2") == ["Thanks."]


def test_checkpoints_as_json_and_such_as_cannot_be_read(store: Store, tmp_path: Path) -> None:
    """What older savers wrote; what only its program may load is told, and no code of it is run."""
    held = {"channel_values": {"chat": [*map(revivable, [QUESTION, ANSWER])], "count": 1}}
    more = {"type": "json", "checkpoint": json.dumps(held).encode()}
    rows = [
        row(1, [], **more),
        row(2, [], 1, type="pickle", checkpoint=b"cos\nsystem\n(S'false'\ntR."),
        row(3, WHOLE, checkpoint_ns="inner:1"),
    ]
    report = import_file(store, saved(tmp_path / "older.db", *rows))
    assert texts(store, "older") == ["Weather?", "Sunny."]
    assert [note.text for note in report.notes] == [
        "checkpoint k02 of older cannot be read",
        "left out 1 checkpoint of a graph in the graph of 'older'",
    ]


def test_packed_checkpoints_need_their_library(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the refusal says how to get it, and nothing is written."""
    path = saved(tmp_path / "refused.db", row(1, WHOLE))
    monkeypatch.setitem(sys.modules, "ormsgpack", None)
    with pytest.raises(StoreError, match=r"convostore\[langgraph\]"):
        import_file(store, path)
    assert "refused" not in {each.id for each in store.sessions()}
