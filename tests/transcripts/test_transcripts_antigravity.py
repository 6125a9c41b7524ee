"""Conversations of Antigravity, made up in the shape that ``agy`` 1.0.16 and the IDE write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kind_checks import (
    Counts,
    bring,
    check_counts,
    check_growth,
    check_prefixes,
    write_rows,
    write_tables,
)

NAME = "6f1de9cc-6e3e-4a0e-9f34-a1b2c3d4e5f6"
TABLES = """
    CREATE TABLE steps (idx INTEGER, step_type INTEGER, status INTEGER, metadata BLOB,
        error_details BLOB, step_payload BLOB);
"""
COMMAND_TABLES = f"""
    {TABLES}
    CREATE TABLE trajectory_meta (trajectory_id TEXT, cascade_id TEXT);
    CREATE TABLE trajectory_metadata_blob (id TEXT, data BLOB);
    CREATE TABLE gen_metadata (idx INTEGER, data BLOB, size INTEGER);
"""
FOLDER = "file:///home/ada/the%20loop"


def number(value: int) -> bytes:
    """Return a number of protobuf."""
    told = b""
    while value >= 0x80:
        told += bytes([value & 0x7F | 0x80])
        value >>= 7
    return told + bytes([value])


def wire(**fields: Any) -> bytes:
    """Return a message of protobuf: ``f7="x"`` is its field 7; a list is one that repeats."""
    told = b""
    for key, held in fields.items():
        for value in held if isinstance(held, list) else [held]:
            if isinstance(value, int):
                told += number(int(key[1:]) << 3) + number(value)
            else:
                raw = value.encode() if isinstance(value, str) else value
                told += number(int(key[1:]) << 3 | 2) + number(len(raw)) + raw
    return told


def step(kind: int, moment: int, field: int, said: bytes, **metadata: Any) -> dict[str, Any]:
    """Return a row of a step."""
    about = wire(f1=wire(f1=1_780_000_000 + moment, f2=500_000_000), **metadata)
    payload = wire(f1=kind, f4=3, f5=about, **{f"f{field}": said})
    return {"step_type": kind, "status": 3, "metadata": about, "step_payload": payload}


def call(name: str, tool: str, **given: Any) -> bytes:
    """Return a call."""
    return wire(f1=name, f2=tool, f3=json.dumps(given))


RUN, VIEW, LIST = (
    call("c1", "run_command", CommandLine="make"),
    call("c2", "view_file"),
    call("c3", "list_dir"),
)
PICTURE = wire(f1="iVBORw0KGgo=", f2="image/png")
STEPS = [
    step(14, 0, 19, wire(f2="Mend the loop.", f5=PICTURE)),
    step(98, 0, 111, wire(f1="context")),
    step(
        15,
        1,
        20,
        wire(f1="Looking.", f3="Make it first.", f4="sig", f7=[RUN, VIEW, LIST], f12=10),
        f9=wire(f2=100, f3=20, f5=400),
        f11=1042,
    ),
    step(21, 2, 28, wire(f6=2, f21=wire(f1="no rule")), f4=RUN),
    step(8, 3, 14, wire(f4="while 1: pass"), f4=VIEW),
    step(9, 4, 15, wire(f1="file:///w", f3=[wire(f1="a.py"), wire(f1="b.py")]), f4=LIST),
    step(15, 5, 20, wire(f1="Mended.", f12=2), f9=wire(f2=50, f3=7)),
    step(23, 6, 30, wire(f1="A checkpoint.")),
]
LOG: list[dict[str, Any]] = [
    {"source": "USER_EXPLICIT", "type": "USER_INPUT", "content": "Mend the loop."},
    {"source": "SYSTEM", "type": "EPHEMERAL_MESSAGE", "content": "Be brief."},
    {
        "source": "MODEL",
        "type": "PLANNER_RESPONSE",
        "thinking": "Make it first.",
        "tool_calls": [
            {"name": "run_command", "args": {"CommandLine": "make"}},
            {"name": "view_file", "args": {"AbsolutePath": "a.py"}},
        ],
    },
    {"source": "MODEL", "type": "RUN_COMMAND", "content": "no rule", "status": "ERROR"},
    {"source": "MODEL", "type": "VIEW_FILE", "content": "while 1: pass"},
    {"source": "MODEL", "type": "PLANNER_RESPONSE", "content": "Mended."},
]
LINES = [
    {"step_index": place, "status": "DONE", "created_at": f"2026-06-01T10:00:0{place}Z", **each}
    for place, each in enumerate(LOG)
]


def database(path: Path, count: int = len(STEPS)) -> Path:
    """Write a conversation of the command with its first steps."""
    model = wire(f3=wire(f19="gemini-3.1-pro"))
    rows = [
        ("trajectory_meta", {"trajectory_id": "t", "cascade_id": NAME}),
        ("trajectory_metadata_blob", {"id": "main", "data": wire(f1=wire(f1=FOLDER))}),
        ("gen_metadata", {"idx": 2, "data": model, "size": len(model)}),
        *(("steps", {"idx": place, **each}) for place, each in enumerate(STEPS[:count])),
    ]
    return write_tables(path, COMMAND_TABLES, rows)


def own_counts() -> Counts:
    """Count what the steps say."""
    kinds = [each["step_type"] for each in STEPS]
    results = sum(kind in (21, 8, 9) for kind in kinds)
    return Counts(1, kinds.count(14) + kinds.count(15) + results, 3, results)


def test_a_conversation_of_the_command(tmp_path: Path) -> None:
    """What was said, called, thought and spent, with times, the model and the folder."""
    brought = bring(database(tmp_path / f"{NAME}.db"), "antigravity")
    check_counts(brought, own_counts())
    (opened,), (line,) = brought.sessions, brought.messages
    assert (opened.id, opened.title) == (NAME, "Mend the loop.")
    assert (opened.project_root, opened.metadata["model"]) == (
        "/home/ada/the loop",
        "gemini-3.1-pro",
    )
    asked, looking, made, viewed, listed, mended = line
    assert (asked["timestamp"], asked["content"][0]["text"]) == (
        1_780_000_000_500,
        "Mend the loop.",
    )
    assert looking["reasoning_content"] == "Make it first."
    assert (made["content"], made["messageStatus"]) == ("no rule", "error")
    assert (viewed["content"], viewed["name"]) == ("while 1: pass", "view_file")
    assert listed["content"] == "file:///w\na.py\nb.py"
    assert mended["content"] == "Mended."
    told = [(each.input, each.output, each.cached, each.model) for each in brought.usages]
    assert told == [(500, 20, 400, "gemini-3.1-pro"), (50, 7, 0, None)]
    assert {note.thing for note in brought.report.notes} == {"checkpoint step", "history step"}


def test_a_conversation_of_the_ide(tmp_path: Path) -> None:
    """Its database has the steps alone, and is named after the file."""
    rows = [("steps", {"idx": place, **each}) for place, each in enumerate(STEPS)]
    brought = bring(write_tables(tmp_path / f"{NAME}.db", TABLES, rows), "antigravity")
    check_counts(brought, own_counts())
    assert brought.sessions[0].id == NAME


def test_the_log_of_a_conversation(tmp_path: Path) -> None:
    """Its calls have no ids: the results after them answer them in order."""
    folder = tmp_path / NAME / ".system_generated/logs"
    brought = bring(write_rows(folder / "transcript.jsonl", LINES), "antigravity")
    results = sum(each["type"] in ("RUN_COMMAND", "VIEW_FILE") for each in LOG)
    calls = sum(len(each.get("tool_calls", ())) for each in LOG)
    check_counts(brought, Counts(1, len(LOG) - 1, calls, results))
    assert brought.sessions[0].id == f"{NAME}/transcript"
    assert brought.messages[0][2]["messageStatus"] == "error"


@pytest.mark.slow
def test_growing_conversations(tmp_path: Path) -> None:
    """After any step, then whole, they are what they are at once."""
    ends = range(1, len(STEPS) + 1)
    states = [lambda at, end=end: database(at, end) for end in ends]
    check_growth(tmp_path / "c.db", "antigravity", states)
    check_prefixes(tmp_path / "log.jsonl", "antigravity", LINES)


def test_a_spoilt_step_is_no_end_of_the_others(tmp_path: Path) -> None:
    """A message of protobuf is read up to where it is broken."""
    path = database(tmp_path / "c.db")
    rows = [
        ("steps", {"idx": 1, "step_type": 15, "step_payload": b"\xff" * 20}),
        *(("steps", {"idx": 2 + place, **each}) for place, each in enumerate(STEPS)),
    ]
    write_tables(path, TABLES, rows)
    check_counts(bring(path, "antigravity"), own_counts())
