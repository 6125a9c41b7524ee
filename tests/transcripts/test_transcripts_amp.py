"""Threads of Amp, made up in the shape that its command 0.0.1773 writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kind_checks import Counts, bring, check_counts, check_growth

NAME = "T-0199aaaa-bbbb-7ccc-8ddd-eeeeffff000a"
PICTURE = {"type": "base64", "mediaType": "image/png", "data": "iVBORw0KGgo="}


def text(words: str) -> dict[str, str]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def use(name: str, tool: str, **given: Any) -> dict[str, Any]:
    """Return a call."""
    return {"type": "tool_use", "complete": True, "id": name, "name": tool, "input": given}


def ran(name: str, status: str, **run: Any) -> dict[str, Any]:
    """Return how a call ended."""
    return {"type": "tool_result", "toolUseID": name, "run": {"status": status, **run}}


def usage(sent: int, moment: str | None = None) -> dict[str, Any]:
    """Return what an answer cost."""
    told = {"model": "claude-opus-4-5", "inputTokens": sent, "outputTokens": 80}
    return {
        **told,
        "cacheReadInputTokens": 3400,
        "cacheCreationInputTokens": 900,
        **({"timestamp": moment} if moment else {}),
    }


THINKING = {"type": "thinking", "thinking": "Look.", "signature": "sig", "provider": "anthropic"}
MESSAGES: list[dict[str, Any]] = [
    {
        "role": "user",
        "messageId": 0,
        "content": [text("Mend this."), {"type": "image", "source": PICTURE}],
        "meta": {"sentAt": 1_768_178_271_390},
    },
    {
        "role": "assistant",
        "messageId": 1,
        "content": [THINKING, text("Looking."), use("t1", "Bash", cmd="make"), use("t2", "Read")],
        "state": {"type": "complete", "stopReason": "tool_use"},
        "usage": usage(12),
    },
    {
        "role": "user",
        "messageId": 2,
        "content": [
            ran("t1", "done", result={"output": "ok\n", "exitCode": 0}),
            ran("t2", "error", error={"message": "No such file."}),
            text("And hurry."),
        ],
    },
    {
        "role": "assistant",
        "messageId": 3,
        "content": [
            {"type": "thinking", "thinking": "Plainly."},
            text("Again."),
            use("t3", "painter"),
            use("t4", "Bash"),
        ],
        "usage": usage(15, "2026-01-12T00:40:00Z"),
    },
    {
        "role": "user",
        "messageId": 4,
        "content": [
            ran("t3", "done", result=[{"type": "image", "mimeType": "image/png", "data": "AA=="}]),
            ran("t4", "rejected-by-user"),
        ],
    },
    {"role": "assistant", "messageId": 5, "content": [text("Done.")], "usage": usage(20)},
]
THREAD = {
    "v": 42,
    "id": NAME,
    "created": 1_768_178_184_664,
    "title": "Mend the build",
    "agentMode": "smart",
    "env": {
        "initial": {
            "trees": [{"uri": "file:///home/ada/the%20build", "repository": {"type": "git"}}],
            "platform": {"client": "CLI", "clientVersion": "0.0.1773000000"},
        }
    },
    "messages": MESSAGES,
}


def thread(path: Path, count: int = len(MESSAGES)) -> Path:
    """Write a thread with its first messages."""
    path.write_text(json.dumps({**THREAD, "messages": MESSAGES[:count]}, indent=2))
    return path


def own_counts() -> Counts:
    """Count what the thread says: each result is a message, and so is what a user says beside."""
    blocks = [block for each in MESSAGES for block in each["content"]]
    kinds = [block["type"] for block in blocks]
    spoken = sum(
        any(block["type"] != "tool_result" for block in each["content"]) for each in MESSAGES
    )
    results = kinds.count("tool_result")
    return Counts(1, spoken + results, kinds.count("tool_use"), results)


def test_a_thread_of_amp(tmp_path: Path) -> None:
    """What was said, called, thought and spent, when and where."""
    brought = bring(thread(tmp_path / f"{NAME}.json"), "amp")
    check_counts(brought, own_counts())
    (opened,), (line,) = brought.sessions, brought.messages
    assert (opened.id, opened.title, opened.project_root) == (
        NAME,
        "Mend the build",
        "/home/ada/the build",
    )
    assert opened.created_at == 1_768_178_184_664 or line[0]["timestamp"] == 1_768_178_271_390
    assert opened.metadata["model"] == "claude-opus-4-5"
    asked, looking, ok, missing, hurry, again, painted, refused, done = line
    assert asked["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    assert looking["thinking_blocks"] == [
        {key: THINKING[key] for key in ("type", "thinking", "signature")}
    ]
    assert json.loads(ok["content"])["output"] == "ok\n"
    assert (missing["content"], missing["messageStatus"]) == ("No such file.", "error")
    assert hurry["content"] == [text("And hurry.")]
    assert (again["reasoning_content"], again["timestamp"]) == ("Plainly.", 1_768_178_400_000)
    assert painted["content"][0]["image_url"]["url"] == "data:image/png;base64,AA=="
    assert (refused["content"], refused["messageStatus"]) == ("[rejected-by-user]", "error")
    assert done["content"] == "Done."
    told = [(each.input, each.output, each.cached, each.model) for each in brought.usages]
    assert told == [(sent + 4300, 80, 3400, "claude-opus-4-5") for sent in (12, 15, 20)]


@pytest.mark.slow
def test_a_growing_thread(tmp_path: Path) -> None:
    """After any message, then whole, it is what it is at once."""
    ends = range(1, len(MESSAGES) + 1)
    check_growth(tmp_path / "t.json", "amp", [lambda at, end=end: thread(at, end) for end in ends])


def test_what_is_no_message_is_told(tmp_path: Path) -> None:
    """A role that is not known is noted; results that wait are none."""
    path = tmp_path / "t.json"
    odd = {"role": "parent", "content": "From another thread."}
    waiting = {"role": "user", "messageId": 2, "content": [ran("t1", "in-progress")]}
    path.write_text(json.dumps({**THREAD, "messages": [*MESSAGES[:2] * 20, waiting, odd]}))
    brought = bring(path, "amp")
    assert [
        note.broken for note in brought.report.notes if "no message of a thread" in note.text
    ] == [True]
