"""Files of programs that are not read, though they look like those that are."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import UnknownTranscript
from store.importing import import_file
from store.transcripts import Noted, Said, read, sniff


def user(content: object = "x") -> dict[str, Any]:
    """Return a message that is alike in most shapes."""
    return {"role": "user", "content": content}


def answer(*parts: object, **more: Any) -> dict[str, Any]:
    """Return an answer with some parts."""
    return {"role": "assistant", "content": list(parts), **more}


def row(role: str, **message: Any) -> dict[str, Any]:
    """Return a row such as Claude Code and Qwen Code write."""
    return {"type": role, "uuid": "u", "sessionId": "s", "message": {"role": role, **message}}


QWEN = [row("user", parts=[{"text": "hi"}]), row("assistant", parts=[{"text": "ho"}])]
TOOL_USE = answer({"type": "tool_use", "id": "t", "name": "f", "input": {}})
FLAT = {"id": "c", "name": "f", "arguments": {}}

LOOK_ALIKES = {
    "tau2-bench": [{"messages": [user(), answer(tool_calls=[FLAT | {"requestor": "user"}])]}],
    "LangChain": [user(), answer(tool_calls=[{"id": "c", "name": "f", "args": {}}])],
    "whose tool calls have no 'function'": [user(), answer(tool_calls=[FLAT])],
    "goose": [user(), answer({"type": "toolRequest", "id": "t", "toolCall": {}})],
    "the Vercel AI SDK": [[user(), answer({"type": "tool-call", "toolCallId": "t"})]],
    "Amazon Bedrock": [{"messages": [user([{"text": "x"}]), answer({"toolUse": {}})]}],
    "of pi": [{"messages": [user(), answer({"type": "toolCall", "id": "t"})]}],
    "Google's Gemini API": [user(), answer({"functionCall": {"name": "f"}})],
}
"""Words of the refusal → values that look like messages of the chat."""

OTHERS = {
    "stream-json": {"type": "system", "subtype": "init", "cwd": "/", "session_id": "s"},
    "the Vercel AI SDK": [{"role": "user", "parts": []}],
    "goose .its stream-json": {"type": "message", "message": {"role": "assistant"}},
    "opencode .its run": {"type": "text", "sessionID": "s", "part": {"type": "text"}},
    "Continue, or Kiro": {"sessionId": "s", "history": [{"message": {"role": "user"}}]},
    "Kiro before 1.0": {"executionId": "e", "chat": [{"role": "human"}]},
}
"""Words of the refusal → a value that no kind is told by."""


def write(path: Path, values: list[Any]) -> Path:
    """Write a value a line."""
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
    return path


@pytest.mark.parametrize("words", LOOK_ALIKES)
def test_a_file_that_only_looks_like_a_kind_is_refused_by_name(tmp_path: Path, words: str) -> None:
    """Its calls or words would be lost; what tells it may be said late."""
    values = LOOK_ALIKES[words]
    path = write(tmp_path / "f.jsonl", [*values[:-1], *values[:-1] * 40, values[-1]])
    with pytest.raises(UnknownTranscript, match=f"looks like a file .*{words}.*expected one of"):
        sniff(path)
    write(path, [values])
    if not isinstance(values[0], list):
        with pytest.raises(UnknownTranscript, match=words):
            sniff(path)


@pytest.mark.parametrize("words", OTHERS)
def test_a_file_of_a_known_program_is_refused_by_name(tmp_path: Path, words: str) -> None:
    """Two keys tell most of them."""
    with pytest.raises(UnknownTranscript, match=f"looks like a file .*{words}"):
        sniff(write(tmp_path / "f.jsonl", [OTHERS[words]]))


@pytest.mark.parametrize("one_a_line", [True, False])
def test_a_kind_that_is_named_reads_all_the_same_and_says_so(
    tmp_path: Path, one_a_line: bool
) -> None:
    """Whoever names the kind gets the messages as they are, and is told once what they may miss."""
    values = [user(), TOOL_USE, TOOL_USE]
    path = write(tmp_path / "f.jsonl", values if one_a_line else [values])
    events = list(read(path, kind="openai"))
    assert [event.message for event in events if isinstance(event, Said)] == values
    notes = [event for event in events if isinstance(event, Noted)]
    assert [("Anthropic" in note.text, note.broken) for note in notes] == [(True, True)]


def test_rows_without_readable_words_are_broken(tmp_path: Path, url: str) -> None:
    """Also where the kind is named: nothing comes of such a file."""
    path = write(tmp_path / "f.jsonl", QWEN)
    events = list(read(path, kind="claude_code"))
    assert [event.broken for event in events if isinstance(event, Noted)] == [True, True, False]
    with Store(url) as store, pytest.raises(UnknownTranscript, match="holds no message"):
        import_file(store, path, kind="claude_code")


@pytest.mark.parametrize(
    "value",
    [
        {"history": [{"role": "user", "text": "x"}]},
        [{"name": "Ann", "role": "admin", "content": "x"}],
        {"kind": "Event", "source": {"component": "kubelet"}, "timestamp": "2026-01-01"},
    ],
)
def test_what_only_has_a_name_in_common_is_refused(tmp_path: Path, value: object) -> None:
    """A list called history, a role that is none, an event of something else."""
    with pytest.raises(UnknownTranscript, match="begins with"):
        sniff(write(tmp_path / "f.jsonl", [value]))


def test_what_is_no_text_in_utf_8_is_named(tmp_path: Path) -> None:
    """Compressed or otherwise encoded files are refused with what to do, whatever the kind."""
    path = write(tmp_path / "f.jsonl", [user(), user()])
    text = path.read_text()
    (tmp_path / "gzip").write_bytes(gzip.compress(text.encode()))
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.write(path)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        (tmp_path / encoding).write_bytes(text.encode(encoding))
    for name in ("gzip", "zip", "utf-16", "utf-16-le", "utf-16-be"):
        for kind in (None, "openai"):
            with pytest.raises(UnknownTranscript, match=name.upper()[:6] + "|" + name):
                list(read(tmp_path / name, kind=kind))
