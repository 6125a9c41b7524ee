"""Sessions written for opencode, pi, Gemini CLI and Qwen Code: as loaders ask, and the same again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import made_up
import pytest
import test_transcripts_written as told
from conftest import Run, needs_transcripts
from returning import CHECKS

from store import Store
from store.errors import UnknownTranscript
from store.exporting import export_session, session_lines
from store.importing import import_file
from store.transcripts.writing.gemini_contents import split_user_parts

pytestmark = pytest.mark.sqlite_only

SYSTEM = re.compile("<system>.*?</system>")
"""The system text, which is the user's in these programs."""
SERVER_TOOLS = ("stream_json",)
"""Kinds whose sample has a tool of a provider's own server, which is a text in these programs."""
ANTHROPIC_ONLY = ("server_tool_use", "mcp_tool_use", "tool_reference")
"""Types of blocks that become texts in opencode and pi."""
NO_FOLDER = ("gemini_cli",)
"""The programs whose files do not tell the folder of a project."""


@pytest.fixture
def store(run: Run) -> Iterator[Store]:
    """Give a store with a session of every sort of message."""
    with Store("convostore.db") as opened:
        told.talked(opened)
        yield opened


def find_faults(store: Store, name: str, program: str) -> list[str]:
    """Return what the loader would not take of an export, and how it differs when it is read."""
    lines = [*session_lines(store, name, shape=program).lines]
    faults = [*CHECKS[program]([*map(json.loads, lines)])]
    path = Path(f"{program}.jsonl")
    path.write_text("".join(lines))
    with Store(":memory:") as other:
        found = import_file(other, path).sessions
        said = told.spoken(store, name, program)
        again = told.spoken(other, found[0].id, program) if found else []
    pairs = zip(merge(again), merge(said), strict=False)
    different = [f"{each}\nwas {ours}" for each, ours in pairs if each != ours]
    return [*faults, *different, *([] if len(again) == len(said) else ["another length"])]


def merge(said: list[Any]) -> list[Any]:
    """Return runs of one side as one; a result of texts alone as its text."""
    runs = [(side, [*run]) for side, run in groupby(said, lambda each: each[0])]
    return [
        (
            side,
            SYSTEM.sub("", "".join(each[1] for each in run)),
            [join_result(part) for each in run for part in each[2]],
        )
        for side, run in runs
    ]


def join_result(part: Any) -> Any:
    """Return a result with its texts as one."""
    content = part.get("content")
    if not isinstance(content, list) or any(each["type"] != "text" for each in content):
        return part
    return {**part, "content": "\n\n".join(each["text"] for each in content)}


@pytest.mark.parametrize("program", CHECKS)
def test_what_was_written_is_read_as_what_was_said(store: Store, run: Run, program: str) -> None:
    """With its title and its folder; the same export twice is the same."""
    assert find_faults(store, "s", program) == []
    lines = [*session_lines(store, "s", shape=program).lines]
    assert [*session_lines(store, "s", shape=program).lines] == lines
    with Store(":memory:") as other:
        (found,) = import_file(other, f"{program}.jsonl").sessions
        session = other.session(found.id)
        assert session.title == "A `title`"
        assert session.project_root == (None if program in NO_FOLDER else "/home/ada/my_app")


@pytest.mark.parametrize("program", CHECKS)
def test_what_a_compaction_hides_is_hidden_there(store: Store, run: Run, program: str) -> None:
    """By an entry of the program's own; the line is whole."""
    told.compacted_once(store)
    rows = told.written(run, program)
    assert [*CHECKS[program](rows)] == []
    assert json.dumps(rows).count("so far") == 1
    assert "A word." in json.dumps(rows)
    (said,) = find_stands(rows, program)
    assert "so far" in json.dumps(said)
    assert "so far" in json.dumps(told.written(run, program, "--view"))


def find_stands(rows: list[Any], program: str) -> Iterator[Any]:
    """Yield what stands in the place of what is hidden."""
    if program == "opencode":
        (document,) = rows
        yield from (each for each in document["messages"] if each["info"].get("summary"))
    for row in rows:
        if row.get("type") == "compaction" or row.get("subtype") == "chat_compression":
            yield row
        if "messages" in row.get("$set", {}):
            yield row


@pytest.mark.sampled(13)
@pytest.mark.parametrize("program", CHECKS)
@pytest.mark.parametrize("kind", [each for each in made_up.SAMPLES if each not in SERVER_TOOLS])
def test_a_session_of_any_kind_comes_back(run: Run, kind: str, program: str) -> None:
    """Equal in all that is sent to a model."""
    path = Path(kind)
    made_up.SAMPLES[kind](path)
    with Store(":memory:") as store:
        for each in import_file(store, path).sessions:
            if not store.hidden(each.id):
                assert find_faults(store, each.id, program) == []


@needs_transcripts
@pytest.mark.slow
@pytest.mark.parametrize("program", [each for each in CHECKS if each != "pi"])  # it names files
def test_any_recorded_session_comes_back(run: Run, program: str) -> None:
    """Of all kinds."""
    for path in told.recorded("*"):
        with Store(":memory:") as store:
            with suppress(UnknownTranscript):
                import_file(store, path)
            for session in store.sessions(limit=1):
                if store.hidden(session.id) or has_server_tools(store, session.id):
                    continue  # a summary is a message there, and such a call a text
                assert find_faults(store, session.id, program) == [], (path, session.id)


def has_server_tools(store: Store, name: str) -> bool:
    """Tell whether a provider's own server has run tools in a session."""
    sent = json.dumps(store.view(name, format="anthropic").messages)
    return any(f'"{kind}"' in sent for kind in ANTHROPIC_ONLY)


def test_a_picture_behind_a_result_is_named_once() -> None:
    """The response names it as the format does, and the picture itself stands behind it."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    response = {"id": "c", "name": "n", "response": {"output": "a\n\n[image/png, 2 B]\n\nb"}}
    parts = [{"functionResponse": response}, picture, {"text": "Look."}, picture]
    (result,), words = split_user_parts(parts)
    assert result.drop_names()["response"] == {"output": "a\n\nb"}
    assert (result.media, words) == ([picture], parts[2:])
    alone, _ = split_user_parts(parts[:1])
    assert alone[0].drop_names() == response


def test_where_to_put_a_file_is_told(store: Store, run: Run, monkeypatch: Any) -> None:
    """A file, or a command that takes it; Gemini CLI has given the project a folder, or will."""
    monkeypatch.setenv("HOME", str(Path.cwd()))
    advice = export_session(store, "s", "o.json", shape="opencode").advice
    assert advice
    assert "opencode import FILE, then: opencode -s ses_" in advice
    advice = export_session(store, "s", "p.jsonl", shape="pi").advice
    assert advice
    assert "~/.pi/agent/sessions/--home-ada-my_app--/2026" in advice
    for number, (owner, name) in enumerate(
        [
            (None, "my-app"),
            ("/other/my_app", "my-app-1"),
            ("/home/ada/my_app", "my-app"),
        ]
    ):
        folder = Path(".gemini/tmp/my-app")
        folder.mkdir(parents=True, exist_ok=True)
        if owner:
            (folder / ".project_root").write_text(owner)
        advice = export_session(store, "s", f"{number}.jsonl", shape="gemini_cli").advice
        assert advice
        assert f"~/.gemini/tmp/{name}/chats/session-2026" in advice
    Path(".gemini/projects.json").write_text('{"projects": {"/home/ada/my_app": "mine"}}')
    advice = export_session(store, "s", "q.jsonl", shape="gemini_cli").advice
    assert advice
    assert "~/.gemini/tmp/mine/chats/session-2026" in advice
