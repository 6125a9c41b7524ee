"""What Claude Code prints as a stream of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts

from store import Store
from store.errors import UnknownTranscript
from store.importing import import_file
from store.transcripts import sniff

Fields = dict[str, Any]
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
FIRST = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"p": 1}, "caller": {"type": "x"}}
SECOND = {**FIRST, "id": "t2"}
SERVER = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
TEXT = {"type": "text", "text": "so"}
USAGE = {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 1}


def row(kind: str, second: int, **fields: Any) -> Fields:
    """A row of a stream."""
    at = f"2026-01-01T00:00:{second:02}Z"
    common = {"session_id": "s", "uuid": f"u{second}", "timestamp": at}
    return {"type": kind, "parent_tool_use_id": None, **common, **fields}


def answer(second: int, name: str, *blocks: Fields, **fields: Any) -> Fields:
    """A row with blocks of an answer."""
    message = {"role": "assistant", "id": name, "model": "m", "stop_reason": None, "usage": USAGE}
    return row("assistant", second, message={**message, "content": [*blocks]}, **fields)


def results(second: int, *ids: str) -> Fields:
    """A row of results of tools."""
    content = [{"type": "tool_result", "tool_use_id": each, "content": "x"} for each in ids]
    return row("user", second, message={"role": "user", "content": content}, tool_use_result={})


STREAM = [
    row("system", 0, subtype="init", cwd="/p", model="m", tools=["Read"]),
    answer(1, "m1", THOUGHT),
    row("system", 1, subtype="thinking_tokens"),
    answer(2, "m1", FIRST),
    results(3, "t1"),
    answer(4, "m1", SECOND),
    results(5, "t2"),
    answer(6, "m2", SERVER, FOUND, TEXT),
    row("result", 7, subtype="success", usage={**USAGE, "input_tokens": 10, "output_tokens": 9}),
]


def write(path: Path, rows: list[Fields]) -> Path:
    """Write rows as lines."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    return path


def test_rows_of_an_answer_are_one_message(url: str, tmp_path: Path) -> None:
    """In the format of the API: its blocks go out as they came, server tools and signatures too."""
    path = write(tmp_path / "f.jsonl", STREAM)
    assert sniff(path) == "stream_json"
    with Store(url, durability="normal") as store:
        for appended in (4, 0):
            (session,) = import_file(store, path).sessions
            assert (session.id, session.appended, session.tool_calls) == ("s", appended, 2)
        first, one, _, last = (each.message for each in store.messages("s"))
        assert (first["id"], first["content"]) == ("m1", [THOUGHT, FIRST, SECOND])
        assert first["stream_json"]["uuids"] == ["u1", "u2", "u4"]
        assert one["content"][0]["tool_use_id"] == "t1"
        sent = store.view("s", format="anthropic").messages
        assert [each["content"] for each in sent[1::2]] == [
            [THOUGHT, without_caller(FIRST), without_caller(SECOND)],
            last["content"],
        ]
        known = store.session("s")
        assert (known.project_root, known.metadata["model"]) == ("/p", "m")
        usages = store.usages("s")
        assert [each.seq for each in usages] == [0, 3, 3]
        assert sum(each.input for each in usages) == 50
        assert sum(each.output for each in usages) == 9
        assert store.verify() == []


def without_caller(block: Fields) -> Fields:
    """A call as it is sent."""
    return {key: held for key, held in block.items() if key != "caller"}


def test_a_stream_that_grows_is_continued(url: str, tmp_path: Path) -> None:
    """An answer that was not whole is replaced by the whole one, wherever an import falls."""
    with Store(url, durability="normal") as store:
        for count in range(2, len(STREAM) + 1):
            path = write(tmp_path / "f.jsonl", STREAM[:count])
            (session,) = import_file(store, path).sessions
            assert session.differs_at is None
        whole = [each.message for each in store.messages("s")]
    with Store(":memory:") as store:
        import_file(store, path)
        assert [each.message for each in store.messages("s")] == whole


def test_subagents_are_sessions_of_their_own(url: str, tmp_path: Path) -> None:
    """Linked to the call that began each; partial events tell what an answer cost."""
    own = {"parent_tool_use_id": "t1"}
    delta = {
        "type": "message_delta",
        "delta": {"stop_reason": "end"},
        "usage": {"output_tokens": 7},
    }
    rows = [
        answer(1, "m1", FIRST),
        row("user", 2, message={"role": "user", "content": "look"}, **own),
        answer(3, "m2", TEXT, **own),
        row("stream_event", 4, event=delta, **own),
        results(5, "t1"),
        row("system", 6, subtype="compact_boundary"),
        row("user", 7, message={"role": "user", "content": "so far"}),
        row("rate_limit_event", 8),
    ]
    with Store(url, durability="normal") as store:
        report = import_file(store, write(tmp_path / "f.jsonl", rows))
        assert [each.id for each in report.sessions] == ["s", "s/agent-t1"]
        assert [note.left_out for note in report.notes] == [1]
        metadata = store.session("s/agent-t1").metadata
        assert (metadata["parent_session"], metadata["parent_call"]) == ("s", "t1")
        said = store.messages("s/agent-t1")[-1].message
        assert (said["stop_reason"], said["usage"]["output_tokens"]) == ("end", 7)
        assert [each.output for each in store.usages("s/agent-t1")] == [7]
        (hidden,) = store.compactions("s")
        assert hidden.hidden == (1, 2)


def test_each_result_of_a_session_tells_its_own_turn(tmp_path: Path) -> None:
    """Of the shape of 2.1.197 with ``--input-format stream-json``: only the dollars add up in it."""
    rows = []
    for turn in (1, 2, 3):
        rows.append(row("system", turn, subtype="init", cwd="/p", model="m"))
        rows.append(answer(turn, f"m{turn}", TEXT))
        spent = {**USAGE, "output_tokens": 20 * turn}
        so_far = {"inputTokens": 5 * turn, "cacheReadInputTokens": 20 * turn, "costUSD": turn / 10}
        told = {"usage": spent, "total_cost_usd": turn / 10, "modelUsage": {"m": so_far}}
        rows.append(row("result", turn, subtype="success", num_turns=1, **told))
    with Store(":memory:") as store:
        import_file(store, write(tmp_path / "f.jsonl", rows))
        (total,) = store.usage_totals("s")
        assert (total.input, total.cached, total.output) == (75, 60, 120)


def test_calls_of_another_program_are_not_lost(tmp_path: Path) -> None:
    """Whose rows look the same, but for those of calls."""
    rows = [answer(1, "m1", TEXT), row("tool_call", 2, subtype="started")]
    with pytest.raises(UnknownTranscript, match="Cursor"):
        sniff(write(tmp_path / "f.jsonl", rows))


@needs_transcripts
def test_real_streams_are_whole() -> None:
    """Each block of each row is in the store, and all that the results say was spent."""
    for path in sorted((TRANSCRIPTS / "claude_stream_json").glob("*")):
        rows = [*map(json.loads, path.read_text("utf-8").splitlines())]
        with Store(":memory:") as store:
            (session,) = import_file(store, path).sessions
            there = [each.message["content"] for each in store.messages(session.id)]
            spoken = [each["message"]["content"] for each in rows if "message" in each]
            assert [each for part in there for each in part] == [b for part in spoken for b in part]
            told = rows[-1]["usage"]
            usages = store.usages(session.id)
            assert sum(each.output for each in usages) == told["output_tokens"]
            assert sum(each.cached for each in usages) == told["cache_read_input_tokens"]
