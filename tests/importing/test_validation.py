"""A kind is believed by what can be read of a file, not by one row that looks like it."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import UnknownTranscript
from store.importing import import_file

Fields = dict[str, Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def said(role: str, number: int = 0) -> Fields:
    """Return a message of a chat."""
    return {"role": role, "content": f"What was said as number {number}."}


def called(name: str = "c1") -> Fields:
    """Return an answer that calls a tool."""
    return {"role": "assistant", "content": None, "tool_calls": [CALL | {"id": name}]}


def returned(**more: Any) -> Fields:
    """Return a result of a tool."""
    return {"role": "tool", "content": "a.py", **more}


MUTE = {"role": "user", "content": "", "value": "Said where no API looks."}
UNREAD = {"kind": "note", "content": "Said by no one."}
REASONING = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}
OWN = {"type": "assistant", "content": "Said under a type of its own."}

BELIEVED: dict[str, list[Fields]] = {
    "one message says nothing that a request has": [said("user"), MUTE, said("assistant", 1)],
    "one row is no message": [said("user"), UNREAD, said("assistant", 1)],
    "one of forty items is of a type of tomorrow": [
        *(said("user", number) for number in range(39)),
        REASONING,
        {"type": "hologram", "text": "Shown."},
    ],
    "a file begins with a result whose call was cut off": [
        returned(tool_call_id="c0"),
        said("user"),
        called(),
        returned(tool_call_id="c1"),
    ],
    "results without ids answer calls without ids": [said("user"), called(""), returned()],
    "calls wait for results at the end": [said("user"), called()],
}

REFUSED: dict[str, list[Fields]] = {
    "messages have their words elsewhere": [said("user"), MUTE, MUTE],
    "the only message has its words elsewhere": [MUTE],
    "most rows are no messages": [said("user"), UNREAD, UNREAD, UNREAD],
    "items are of types that are none": [said("user"), REASONING, OWN, OWN],
    "no result meets a call": [said("user"), called(), returned(tool_call_id="other")],
    "one result in two meets a call by chance": [
        *(said("user"), called(), returned(tool_call_id="c1")),
        *(called("c2"), returned(tool_call_id="x"), called("c3"), returned(tool_call_id="y")),
    ],
    "results are parts of another API": [
        said("user"),
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "content": "x = 1"}]},
    ],
}


def write(path: Path, rows: list[Fields]) -> Path:
    """Write a value a line."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("why", BELIEVED)
def test_single_oddities_are_borne(tmp_path: Path, why: str) -> None:
    """Crashed writers leave them, and so do programs that are newer than this release."""
    with Store(tmp_path / "chat.db", durability="normal") as store:
        (session,) = import_file(store, write(tmp_path / "f.jsonl", BELIEVED[why])).sessions
        assert session.messages == sum(row is not UNREAD for row in BELIEVED[why])


@pytest.mark.parametrize("why", REFUSED)
def test_a_file_that_cannot_be_read_rightly_is_refused(tmp_path: Path, why: str) -> None:
    """With the reason, and nothing of it is stored; the program is not known."""
    with Store(tmp_path / "chat.db", durability="normal") as store:
        with pytest.raises(UnknownTranscript, match=r"messages|results") as refused:
            import_file(store, write(tmp_path / "f.jsonl", REFUSED[why]))
        assert refused.value.program == "a program that is not known"
        assert store.sessions() == []


@pytest.mark.parametrize("why", REFUSED)
def test_whoever_names_the_kind_gets_it_with_a_note(tmp_path: Path, why: str) -> None:
    """The note is broken, so that the command says so with its exit status."""
    with Store(tmp_path / "chat.db", durability="normal") as store:
        report = import_file(store, write(tmp_path / "f.jsonl", REFUSED[why]), kind="openai")
        assert any(note.broken and "read as openai, as asked" in note.text for note in report.notes)


def test_the_whole_beginning_of_a_file_is_judged_and_not_its_first_rows(tmp_path: Path) -> None:
    """Nine good messages do not speak for those that follow."""
    rows = [said("user", number) for number in range(9)] + [MUTE] * 9
    path = write(tmp_path / "f.jsonl", rows)
    with (
        Store(tmp_path / "chat.db", durability="normal") as store,
        pytest.raises(UnknownTranscript, match="9 of 18 messages"),
    ):
        import_file(store, path)


@pytest.mark.parametrize("odd", [[1], {"a": 1}, 5, None, True])
def test_what_no_message_may_hold_breaks_no_judgement(tmp_path: Path, odd: Any) -> None:
    """It is left out with a note, or the file is refused; no other error comes of it."""
    rows = [
        said("user"),
        {**said("user", 1), "role": odd},
        {**called(), "tool_calls": [{"id": odd, "function": odd}, odd]},
        returned(tool_call_id=odd),
        *(said("user", number) for number in range(2, 9)),
    ]
    with Store(tmp_path / "chat.db", durability="normal") as store:
        path = write(tmp_path / "f.jsonl", rows)
        with suppress(UnknownTranscript):
            import_file(store, path)
        (session,) = import_file(store, path, kind="openai").sessions
        assert session.head >= 8
