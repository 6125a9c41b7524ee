"""Requests to the APIs and their answers, as recorders keep them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts

from store import Store
from store.errors import UnknownTranscript
from store.importing import ImportReport, import_file
from store.transcripts import sniff

Fields = dict[str, Any]
RECORDED = ("anthropic_messages_http", "openai_chat_http", "openai_responses_http")
USER = {"role": "user", "content": "go"}
MORE = {"role": "user", "content": "on"}


def exchange(path: str, body: Fields, answer: Any, code: int = 200) -> str:
    """A line of a recording."""
    request = {"method": "POST", "uri": f"https://api.example.com{path}", "body": body}
    response = {"status": {"code": code}, "body": answer}
    return json.dumps({"request": request, "response": response}) + "\n"


def taken(store: Store, path: Path, lines: list[str]) -> ImportReport:
    """A recording in the store, imported twice: the second time adds nothing."""
    path.write_text("".join(lines))
    report = import_file(store, path)
    again = import_file(store, path)
    assert [(each.appended, each.differs_at) for each in again.sessions] == [
        (0, None) for _ in report.sessions
    ]
    assert store.verify() == []
    return report


def said(store: Store, session_id: str) -> list[Fields]:
    """What was said in a session."""
    return [each.message for each in store.messages(session_id)]


CHAT = {"role": "assistant", "content": "gone"}
BLOCKS = [{"type": "thinking", "thinking": "", "signature": "c2ln"}, {"type": "text", "text": "so"}]
ITEMS = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="}]
PARTS = [{"text": "so", "thoughtSignature": "c2ln"}]
ANSWERS: dict[str, tuple[str, str, Fields, list[Fields]]] = {
    "openai": (
        "/v1/chat/completions",
        "messages",
        {
            "id": "cc_1",
            "created": 1_700_000_000,
            "model": "m",
            "choices": [{"message": CHAT}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        },
        [CHAT],
    ),
    "anthropic": (
        "/v1/messages",
        "messages",
        {
            "id": "msg_1",
            "model": "m",
            "content": BLOCKS,
            "usage": {"input_tokens": 1, "cache_read_input_tokens": 4, "output_tokens": 2},
        },
        [{"role": "assistant", "content": BLOCKS}],
    ),
    "responses": (
        "/v1/responses",
        "input",
        {
            "id": "resp_1",
            "model": "m",
            "output": ITEMS,
            "usage": {"input_tokens": 5, "output_tokens": 2},
        },
        ITEMS,
    ),
    "gemini": (
        "/v1beta/models/m:generateContent",
        "contents",
        {
            "candidates": [{"content": {"role": "model", "parts": PARTS}}],
            "modelVersion": "m",
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2},
        },
        [{"role": "model", "parts": PARTS}],
    ),
}
ASKED = dict.fromkeys(ANSWERS, USER) | {"gemini": {"role": "user", "parts": [{"text": "go"}]}}
SSE = {
    "openai": [
        {"id": "cc_1", "created": 1_700_000_000, "model": "m", "choices": [{"delta": {}}]},
        {"choices": [{"delta": {"role": "assistant", "content": "go"}}]},
        {"choices": [{"delta": {"content": "ne"}}]},
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": []}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {**BLOCKS[0], "signature": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "c2ln"},
        },
        {"type": "content_block_start", "index": 1, "content_block": {**BLOCKS[1], "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "so"}},
        {"type": "message_delta", "delta": {}, "usage": ANSWERS["anthropic"][2]["usage"]},
    ],
    "responses": [
        {"type": "response.created", "response": {"id": "resp_1", "output": []}},
        {"type": "response.completed", "response": ANSWERS["responses"][2]},
    ],
    "gemini": [ANSWERS["gemini"][2]],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_conversation_is_told_once(url: str, tmp_path: Path, name: str, streamed: bool) -> None:
    """Each request sends it again, in other words; each message is stored as it came, in its format."""
    path, key, answer, answered = ANSWERS[name]
    told: Any = answer
    if streamed:
        told = "".join(f"event: e\ndata: {json.dumps(each)}\n\n" for each in SSE[name])
        told += "data: [DONE]\n"
    asked = ASKED[name]
    line = [asked, *answered, asked | {"role": "user"}]
    second = {"tools": [], key: [{**each} for each in line]}
    with Store(url, durability="normal") as store:
        lines = [exchange(path, {"model": "m", key: [asked]}, told), exchange(path, second, {})]
        report = taken(store, tmp_path / "f.jsonl", lines)
        (session,) = report.sessions
        assert (report.kind, session.id) == ("exchanges", "f")
        assert said(store, "f") == line
        (usage,) = store.usages("f")
        assert (usage.seq, usage.input, usage.output, usage.model) == (1, 5, 2, "m")
        assert store.session("f").metadata["model"] == "m"
        assert store.view("f", format="openai").messages


def test_a_request_that_begins_otherwise_is_a_branch(url: str, tmp_path: Path) -> None:
    """Behind what both have in common, past an answer; else it is a session of its own."""
    path, key, answer, answered = ANSWERS["openai"]
    bodies = [
        [USER],
        [USER, *answered, MORE],
        [USER, *answered, {**MORE, "content": "off"}],
        [MORE],
    ]
    with Store(url, durability="normal") as store:
        lines = [
            exchange(path, {key: body}, answer | {"id": str(n)}) for n, body in enumerate(bodies)
        ]
        report = taken(store, tmp_path / "f.jsonl", lines)
        heads = {each.id: each.head for each in report.sessions}
        assert heads == {"f": 4, "f-2": 4, "f-3": 2}
        assert store.session("f-2").forked_from == "f"
        assert said(store, "f-2") == [*bodies[2], CHAT]
        assert said(store, "f-3") == [MORE, CHAT]
        assert sum(len(store.usages(each)) for each in heads) == 4


def test_a_request_names_the_answer_before(url: str, tmp_path: Path) -> None:
    """Then it sends only what is new, and continues what that answer ended."""
    path, key, answer, answered = ANSWERS["responses"]
    first = {key: "go", "model": "m"}
    later = {key: [MORE], "previous_response_id": "resp_1"}
    other = [{**answered[0], "id": f"rs_{number}"} for number in (2, 3)]
    with Store(url, durability="normal") as store:
        lines = [
            exchange(path, first, answer),
            exchange(path, later, answer | {"id": "resp_2", "output": other[:1]}),
            exchange(path, later, answer | {"id": "resp_3", "output": other[1:]}),
        ]
        report = taken(store, tmp_path / "f.jsonl", lines)
        assert [each.head for each in report.sessions] == [4, 4]
        assert said(store, "f") == [USER, *answered, MORE, other[0]]
        assert said(store, "f-2") == [USER, *answered, MORE, other[1]]


def test_what_the_provider_compacted_is_hidden(url: str, tmp_path: Path) -> None:
    """A request that begins with the compaction goes on with the session."""
    path, key, answer, _ = ANSWERS["responses"]
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "eHh4"}
    text = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "4"}],
    }
    compacted = {"object": "response.compaction", "output": [{**USER, "id": "m"}, sealed]}
    with Store(url, durability="normal") as store:
        lines = [
            exchange(path, {key: [USER]}, answer | {"output": [text]}),
            exchange(
                f"{path}/compact", {key: [USER, {"role": "assistant", "content": "4"}]}, compacted
            ),
            exchange(path, {key: [sealed, MORE]}, answer | {"id": "resp_2", "output": [text]}),
        ]
        report = taken(store, tmp_path / "f.jsonl", lines)
        assert [each.head for each in report.sessions] == [5]
        assert said(store, "f") == [USER, text, sealed, MORE, text]
        sent = store.view("f", format="responses").messages
        assert [each.get("type", each.get("role")) for each in sent].count("compaction") == 1
        assert text not in sent[:-1]


def test_what_is_refused_or_no_exchange_is_told(url: str, tmp_path: Path) -> None:
    """A refusal is no answer; what was asked is there once."""
    path, key, answer, answered = ANSWERS["openai"]
    with Store(url, durability="normal") as store:
        lines = [
            exchange(path, {key: [USER]}, {"error": {"message": "slow down"}}, 429),
            "7\n",
            exchange(path, {key: [USER]}, answer),
        ]
        report = taken(store, tmp_path / "f.jsonl", lines)
        assert said(store, "f") == [USER, *answered]
        assert [(note.broken, note.left_out) for note in report.notes] == [(True, 0), (False, 1)]


def test_other_recordings_are_refused_by_name(tmp_path: Path) -> None:
    """Of an address that is none of an API's."""
    path = tmp_path / "f.jsonl"
    path.write_text(exchange("/cats", {"name": "Tom"}, {"ok": True}))
    with pytest.raises(UnknownTranscript, match="recorder of HTTP requests"):
        sniff(path)


@pytest.mark.sampled(3)
@needs_transcripts
@pytest.mark.parametrize("folder", RECORDED)
def test_recorded_requests_are_in_the_store(folder: str) -> None:
    """Every message that was sent, and every answer that was whole, as it was."""
    for path in sorted((TRANSCRIPTS / folder).glob("*")):
        with Store(":memory:") as store:
            report = import_file(store, path)
            assert (report.kind, report.notes) == ("exchanges", [])
            there = [each for session in report.sessions for each in said(store, session.id)]
            for line in map(json.loads, path.read_text("utf-8").splitlines()):
                body = line["response"]["body"]
                for item in body.get("output", ()) if isinstance(body, dict) else ():
                    assert item in there or body["object"] == "response.compaction"
            spent = sum(each.output for s in report.sessions for each in store.usages(s.id))
            assert spent == _spent(path)


def _spent(path: Path) -> int:
    """The tokens of all answers of a file, read in the plainest way."""
    total = 0
    for line in map(json.loads, path.read_text("utf-8").splitlines()):
        body = line["response"]["body"]
        if isinstance(body, str):
            told = [
                json.loads(each[5:])
                for each in body.splitlines()
                if each[5:9] == ' {"t' or '"usage":{' in each
            ]
            body = next(each.get("response", each) for each in reversed(told))
        usage = body.get("usage") or {}
        total += usage.get("output_tokens", usage.get("completion_tokens", 0))
    return total
