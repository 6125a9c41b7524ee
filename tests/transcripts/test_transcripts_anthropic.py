"""Messages of Anthropic's API, however a file has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import UnknownTranscript
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, is_kept, read, sniff
from tests.formats.judge import complaints

Message = dict[str, Any]
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}}
OTHER = {**CALL, "id": "t2"}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x = 1"}
FAILED = {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True}
LINE: list[Message] = [
    {"role": "user", "content": "What is in a.py?"},
    {
        "role": "assistant",
        "content": [THOUGHT, CALL, OTHER],
        "id": "m1",
        "timestamp": 1_700_000_000_000,
    },
    {"role": "user", "content": [RESULT, FAILED, {"type": "text", "text": "and?"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "so"}]},
]


def forms(tmp_path: Path) -> dict[str, str]:
    """The same messages, in the ways in which they are kept."""
    return {
        "a message a line": "".join(f"{json.dumps(each)}\n" for each in LINE),
        "a list": json.dumps(LINE, indent=1),
        "under messages": json.dumps({"sessionId": "s", "messages": LINE}),
        "a conversation a line": f"{json.dumps(LINE)}\n{json.dumps(LINE)}\n",
        "a list of conversations": json.dumps([{"messages": LINE}, {"messages": LINE}]),
    }


@pytest.mark.parametrize("form", forms(Path()))
def test_messages_are_kept_as_they_are(tmp_path: Path, form: str) -> None:
    """Whatever comes first in the file."""
    path = tmp_path / "f.json"
    path.write_text(forms(tmp_path)[form])
    assert sniff(path) == "anthropic"
    events = list(read(path))
    assert not any(event.broken for event in events if isinstance(event, NoteEvent))
    sessions = sum(isinstance(event, SessionEvent) for event in events)
    said = [event.message for event in events if isinstance(event, SessionMessage)]
    assert said == LINE * sessions


def test_system_text_in_a_row_before_the_messages_is_read(tmp_path: Path) -> None:
    """So it is exported for an API that takes it beside the messages."""
    path = tmp_path / "f.jsonl"
    rows = [{"system": [{"type": "text", "text": "Be kind."}]}, *LINE]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    first, *others = (event.message for event in read(path) if isinstance(event, SessionMessage))
    assert first == {"role": "system", "content": rows[0]["system"]}
    assert others == LINE
    assert not any(isinstance(event, NoteEvent) for event in read(path))


def test_they_go_out_as_they_were(url: str, tmp_path: Path) -> None:
    """In their own format, with what only it has."""
    path = tmp_path / "f.json"
    file = {"type": "file", "path": "b.py", "content": "y = 2"}
    uploaded = {"type": "container_upload", "file_id": "f1"}
    line = [*LINE, {"role": "user", "content": [uploaded, file]}]
    path.write_text(json.dumps(line))
    with Store(url, durability="normal") as store:
        for appended in (5, 0):
            (session,) = import_file(store, path).sessions
            assert session.appended == appended
        assert [each.message for each in store.messages("f")] == line
        assert store.session("f").head == 7
        chat = store.view("f").messages
        assert [call["id"] for call in chat[1]["tool_calls"]] == ["t1", "t2"]
        assert [each["content"] for each in chat[2:4]] == ["x = 1", "no"]
        view = store.view("f", format="anthropic")
        assert complaints("anthropic", view.messages) == []
        assert view.messages[1:-1] == [
            {key: each[key] for key in ("role", "content")} for each in LINE[1:]
        ]
        assert view.messages[-1]["content"][0] == uploaded
        assert json.loads(view.messages[-1]["content"][1]["text"]) == file


def test_what_is_no_message_of_theirs_is_refused_or_kept(tmp_path: Path) -> None:
    """Parts of other programs between them are told; odd contents stay as they are."""
    path = tmp_path / "f.jsonl"
    goose = {"role": "assistant", "content": [{"type": "toolRequest", "id": "t"}]}
    path.write_text("".join(f"{json.dumps(each)}\n" for each in [*LINE, goose]))
    with pytest.raises(UnknownTranscript, match="goose"):
        sniff(path)
    odd = [{"role": "user", "content": [5]}, {"role": "system", "content": "be kind"}, 7]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in [LINE[1], *odd]))
    events = list(read(path, kind="anthropic"))
    said = [event.message for event in events if isinstance(event, SessionMessage)]
    assert said[1:] == odd[:2]
    assert [event.broken for event in events if isinstance(event, NoteEvent)] == [True]


def test_files_of_one_name_are_told_by_their_folders(store: Store, tmp_path: Path) -> None:
    """Cline names each task's file the same; imported again, it is the same session."""
    code = tmp_path / ".config/Code/User/globalStorage/saoudrizwan.claude-dev"
    for task, line in (("1733", LINE), ("1734", LINE[:1])):
        path = code / "tasks" / task / "api_conversation_history.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(line))
        assert is_kept(path) is True
        assert is_kept(path.with_name("ui_messages.json")) is False
        report = import_file(store, path)
        assert [each.id for each in report.sessions] == [task]
        assert [each.appended for each in import_file(store, path).sessions] == [0]


SEARCHED = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
FOUND = {
    "type": "web_search_result",
    "title": "X",
    "url": "https://x.org",
    "encrypted_content": "e",
}
ASKED = {
    "type": "mcp_tool_use",
    "id": "m1",
    "name": "ask",
    "server_name": "wiki",
    "input": {"q": 1},
}
SAID = {"type": "text", "text": "So it is."}
ALONE: dict[str, list[dict[str, Any]]] = {
    "compaction": [{"type": "compaction", "content": "They talked of x."}, SAID],
    "a search of the server": [
        SEARCHED,
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [FOUND]},
        SAID,
    ],
    "code of the server": [
        {**SEARCHED, "name": "bash_code_execution", "input": {"command": "ls"}},
        {
            "type": "bash_code_execution_tool_result",
            "tool_use_id": "s1",
            "content": {"stdout": "a"},
        },
        SAID,
    ],
    "a tool of a server of tools": [
        ASKED,
        {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": False, "content": [SAID]},
    ],
}
"""What the only blocks are that no chat has → an answer with them."""


@pytest.mark.parametrize("only", ALONE)
def test_one_kind_of_block_tells_whose_messages_they_are(
    url: str, tmp_path: Path, only: str
) -> None:
    """They go out as they came; what is exported in their format is read as that again."""
    asked = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    line = [asked, {"role": "assistant", "content": ALONE[only]}]
    path, exported = tmp_path / "f.jsonl", tmp_path / "again.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in line))
    assert sniff(path) == "anthropic"
    with Store(url, durability="normal") as store:
        import_file(store, path)
        sent = store.view("f", format="anthropic").messages
        assert sent == line
        exported.write_text("".join(f"{json.dumps(each)}\n" for each in sent))
        assert import_file(store, exported).kind == "anthropic"
        assert store.view("again", format="anthropic").messages == sent


SPENT = {"inputTokens": 100, "outputTokens": 20, "cacheReadTokens": 50, "cacheWriteTokens": 10}
"""What a request cost in Cline's words (3.0.65); what a cache had to do with is part of it."""


def cline(folder: Path) -> Path:
    """Write a session of Cline's command line, and the file beside it."""
    said: list[Message] = [
        {**each, "ts": 1_700_000_000_000 + number} for number, each in enumerate(LINE)
    ]
    said[0]["content"] = [{"type": "text", "text": '<user_input mode="act">Read a.py</user_input>'}]
    said[1].pop("timestamp")
    model = {"id": "claude-sonnet-4-6", "provider": "anthropic", "family": "claude-sonnet"}
    said[1] |= {"modelInfo": model, "metrics": SPENT}
    path = folder / "17_a.messages.json"
    path.write_text(json.dumps({"version": 1, "sessionId": "17_a", "messages": said}))
    beside = {"session_id": "17_a", "cwd": "/app", "metadata": {"title": "Names of a.py"}}
    path.with_name("17_a.json").write_text(json.dumps(beside))
    return path


def test_cline_tells_times_costs_and_a_folder(store: Store, tmp_path: Path) -> None:
    """Such a session was used at its last message, and not at its import; messages stay unchanged."""
    path = cline(tmp_path)
    said = json.loads(path.read_text())["messages"]
    for _ in range(2):
        import_file(store, path)
    stored = store.messages("17_a")
    assert [each.stored_at for each in stored] == [each["ts"] for each in said]
    assert [each.message for each in stored] == said
    session = store.session("17_a")
    told = session.updated_at, session.title, session.project_root
    assert told == (said[-1]["ts"], "Names of a.py", "/app")
    (spent,) = store.usages("17_a")
    assert (spent.input, spent.output, spent.cached, spent.written) == (100, 20, 50, 10)
    assert (spent.model, spent.provider) == ("claude-sonnet-4-6", "anthropic")


def test_clines_extension_tells_costs_in_other_words(store: Store, tmp_path: Path) -> None:
    """And a session without calls is a chat, whose title is what was typed."""
    tokens = {"prompt": 9, "completion": 2, "cached": 5}
    model = {"modelId": "gpt-5", "providerId": "openai-native", "mode": "act"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}], "modelInfo": model}
    asked = {"role": "user", "content": "<user_input>Hello</user_input>", "ts": 1_700_000_000_000}
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([asked, answer | {"metrics": {"tokens": tokens, "cost": 0.1}}]))
    import_file(store, path)
    (spent,) = store.usages("talk")
    assert (spent.input, spent.output, spent.cached) == (9, 2, 5)
    assert (spent.model, spent.provider) == ("gpt-5", "openai-native")
    assert (store.session("talk").title, store.messages("talk")[0].stored_at) == (
        "Hello",
        asked["ts"],
    )


def test_sessions_of_clines_command_line_are_found() -> None:
    """In its own folder, beside files of other things."""
    session = Path("/home/ada/.cline/data/sessions/17_a/17_a.messages.json")
    assert is_kept(session)
    assert not is_kept(session.with_name("17_a.json"))
