"""Items of the Responses API, however a file has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store import Policy, Store
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff

Item = dict[str, Any]
SEEING = Policy(picture_keep=1)
INPUT: list[Item] = [
    {"role": "user", "content": "What is in a.py?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="},
    {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": '{"path": "a.py"}'},
    {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [
            {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"}
        ],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "q"}},
]
OUTPUT: list[Item] = [
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "so", "annotations": []}],
    }
]
ITEMS = INPUT + OUTPUT
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "model": "gpt-5",
    "output": OUTPUT,
    "usage": {
        "input_tokens": 30,
        "input_tokens_details": {"cached_tokens": 10},
        "output_tokens": 7,
    },
}
FORMS = {
    "an item a line": "".join(f"{json.dumps(each)}\n" for each in ITEMS),
    "a list": json.dumps(ITEMS, indent=1),
    "under input and output": json.dumps({"model": "gpt-5", "input": INPUT, "output": OUTPUT}),
    "under messages": json.dumps({"messages": ITEMS}),
    "a conversation a line": f"{json.dumps(ITEMS)}\n{json.dumps(ITEMS)}\n",
    "a list of conversations": json.dumps([{"items": ITEMS}, {"items": ITEMS}]),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS)
def test_items_go_out_as_they_came(url: str, tmp_path: Path, form: str) -> None:
    """In their own format: reasoning, pictures and calls of the server's tools too."""
    path = tmp_path / "f.json"
    path.write_text(FORMS[form])
    assert sniff(path) == "responses"
    with Store(url, durability="normal") as store:
        for appended in (len(ITEMS), 0):
            report = import_file(store, path)
            assert {each.appended for each in report.sessions} == {appended}
            assert [note for note in report.notes if note.broken] == []
        for session in report.sessions:
            assert [each.message for each in store.messages(session.id)] == ITEMS
            sent = store.view(session.id, SEEING, format="responses").messages
            assert sent[1:] == ITEMS[1:]
            assert store.view(session.id, format="anthropic").messages
        assert store.session(session.id).title == "What is in a.py?"
        assert store.verify() == []


def test_what_a_response_tells_of_itself_is_kept(url: str, tmp_path: Path) -> None:
    """When it was made, by which model, what it cost; a text alone is what the user said."""
    path = tmp_path / "f.json"
    path.write_text(json.dumps(RESPONSE | {"input": "hi"}))
    with Store(url, durability="normal") as store:
        (session,) = import_file(store, path).sessions
        assert session.id == "resp_1"
        said, _ = store.messages("resp_1")
        assert said.message == {"role": "user", "content": "hi"}
        assert said.stored_at == 1_700_000_000_000
        (usage,) = store.usages("resp_1")
        assert (usage.seq, usage.input, usage.cached, usage.output) == (1, 30, 10, 7)
        assert (usage.model, usage.at) == ("gpt-5", 1_700_000_000_000)
        assert store.session("resp_1").metadata["model"] == "gpt-5"


def test_a_file_that_grows_adds_its_items(url: str, tmp_path: Path) -> None:
    """And one that says something else is left alone, from the position where it does."""
    path = tmp_path / "f.jsonl"
    with Store(url, durability="normal") as store:
        for count in (2, 4, 6):
            path.write_text("".join(f"{json.dumps(each)}\n" for each in ITEMS[:count]))
            (session,) = import_file(store, path, kind="responses").sessions
            assert (session.appended, session.head) == (2, count)
        path.write_text(json.dumps([*ITEMS[:4], {"role": "user", "content": "no"}]))
        (session,) = import_file(store, path, kind="responses").sessions
        assert (session.appended, session.differs_at) == (0, 5)


def test_what_is_no_item_is_told(tmp_path: Path) -> None:
    """In its place; the others are kept."""
    path = tmp_path / "f.jsonl"
    values = [ITEMS[1], 7, {"x": 1}, [ITEMS[0], 8]]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in values))
    events = list(read(path))
    assert sum(isinstance(event, SessionMessage) for event in events) == 1
    assert [event.row for event in events if isinstance(event, NoteEvent)] == [2, 3, 4]
    path.write_text(json.dumps({"output": [ITEMS[1], 7], "object": "response"}) + "\n5\n")
    events = list(read(path))
    assert [type(event) for event in events] == [SessionEvent, SessionMessage, NoteEvent, NoteEvent]
