"""Conversations of data sets: ShareGPT and OpenAssistant, made up in the shape of real ones.

Those of MOSS and AgentBench are made up after their descriptions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kind_checks import Counts, bring, check_counts

from store import Store
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff

MOSS = {
    "conversation_id": "7",
    "meta_instruction": "You are MOSS.",
    "num_turns": 2,
    "chat": {
        "turn_1": {
            "Human": "<|Human|>: Who won?<eoh>\n",
            "Inner Thoughts": "<|Inner Thoughts|>: I look it up.<eot>\n",
            "Commands": '<|Commands|>: Search("who won")<eoc>\n',
            "Tool Responses": "<|Results|>: Search =>\n<|1|>: Ada.<eor>\n",
            "MOSS": "<|MOSS|>: Ada won.<eom>\n",
        },
        "turn_2": {
            "Human": "<|Human|>: Thanks.<eoh>\n",
            "Inner Thoughts": "<|Inner Thoughts|>: None<eot>\n",
            "Commands": "<|Commands|>: None<eoc>\n",
            "Tool Responses": "<|Results|>: None<eor>\n",
            "MOSS": "<|MOSS|>: You are welcome.<eom>\n",
        },
    },
    "category": "Web search",
}
RUN = {
    "index": 3,
    "error": None,
    "output": {
        "index": 3,
        "status": "completed",
        "result": {"score": 1},
        "history": [
            {"role": "user", "content": "Count the files."},
            {"role": "agent", "content": "Act: bash\n\nls | wc -l"},
            {"role": "user", "content": "The output is 4."},
            {"role": "agent", "content": "Act: answer(4)"},
        ],
    },
    "time": {"timestamp": 1690000000000, "str": "2023-07-22 04:26:40"},
}


def turn(speaker: str, value: Any, **more: Any) -> dict[str, Any]:
    """Return a turn of ShareGPT."""
    return {"from": speaker, "value": value, **more}


def reply(name: str, text: str, *replies: Any, **more: Any) -> dict[str, Any]:
    """Return a message of OpenAssistant."""
    known = {"message_id": name, "text": text, "role": "assistant", "lang": "en"}
    return {**known, "replies": list(replies), **more}


def tree(*replies: Any) -> dict[str, Any]:
    """Return a tree of OpenAssistant."""
    prompt = reply("p", "Why?", *replies, role="prompter", created_date="2026-01-01T00:00:01Z")
    return {"message_tree_id": "t", "tree_state": "ready", "prompt": prompt}


def write(path: Path, *rows: Any) -> Path:
    """Write rows as lines."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in read(path) if isinstance(event, SessionMessage)]


def opened(path: Path) -> list[SessionEvent]:
    """Return the sessions of a file."""
    return [event for event in read(path) if isinstance(event, SessionEvent)]


def notes(path: Path) -> list[str]:
    """Return the notes on a file."""
    return [event.text for event in read(path) if isinstance(event, NoteEvent)]


def test_turns_are_messages(tmp_path: Path) -> None:
    """A result answers the call before it; who speaks tells the role."""
    call = json.dumps({"name": "look", "arguments": {"at": "it"}})
    turns = [
        turn("human", "Hi"),
        turn("function_call", call),
        turn("observation", "seen"),
        turn("observation", "again"),
        turn("function_call", "no JSON"),
        turn("gpt", "Yes.", weight=1),
    ]
    first = {"id": "a", "system": "Be kind.", "conversations": turns, "lang": "en"}
    path = write(tmp_path / "f.json", [first, {"conversations": turns[:1]}])
    assert sniff(path) == "sharegpt"
    assert [(each.session_id, each.title) for each in opened(path)] == [("a", "Hi"), ("f", "Hi")]
    assert opened(path)[0].metadata == {"lang": "en"}
    system, hi, look, seen, again, text, yes, _ = messages(path)
    assert (system["content"], hi) == ("Be kind.", {"role": "user", "content": "Hi"})
    assert look["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "it"}'}
    assert seen == {"role": "tool", "content": "seen", "tool_call_id": "call-2"}
    assert "tool_call_id" not in again
    assert (text["role"], text["content"]) == ("assistant", "no JSON")
    assert (yes["role"], yes["sharegpt"]) == ("assistant", {"weight": 1})


def test_what_is_no_turn(tmp_path: Path) -> None:
    """It is noted, and the rest is kept."""
    odd = {"conversations": [turn("human", "Hi"), turn("odd", "x"), turn("gpt", 3)]}
    path = write(tmp_path / "f", odd, {"odd": 1})
    assert len(messages(path)) == 1
    assert notes(path) == [
        "an object with 'from', 'value' is no turn of a conversation",
        "an object with 'from', 'value' is no turn of a conversation",
        "an object with 'odd' is no conversation with turns of 'from' and 'value'",
    ]


def test_the_best_replies_are_the_session(tmp_path: Path, url: str) -> None:
    """Others are forks of it, whatever their order; a tree that is none is noted."""
    best = reply("b", "Best.", reply("d", "More?", role="prompter"), rank=0)
    path = write(tmp_path / "f", tree(reply("a", "Worse.", rank=1), best, {"odd": 1}), {"odd": 1})
    assert sniff(path) == "oasst"
    assert opened(path)[0].title == "Why?"
    assert messages(path)[0]["timestamp"] == 1767225601000
    assert messages(path)[1]["oasst"] == {"lang": "en", "rank": 0}
    assert notes(path)[-1] == "an object with 'odd' is no tree of messages"
    with Store(url) as store:
        import_file(store, path)
        line = [each.message["content"] for each in store.messages("t")]
        assert line == ["Why?", "Best.", "More?"]
        branch = [each.message["content"] for each in store.messages("t/branch-a")]
        assert branch == ["Why?", "Worse."]


def test_a_turn_of_moss_is_a_question_a_call_and_an_answer(tmp_path: Path) -> None:
    """Its marks are no words; "None" stands where nothing was said."""
    brought = bring(write(tmp_path / "f.jsonl", MOSS), "moss")
    check_counts(brought, Counts(sessions=1, messages=7, calls=1, results=1))
    (session,), (line,) = brought.sessions, brought.messages
    assert (session.id, session.title) == ("f-7", "Who won?")
    assert session.metadata["moss"]["category"] == "Web search"
    assert [each["content"] for each in line] == [
        *("You are MOSS.", "Who won?", None, "Search =>\n<|1|>: Ada."),
        *("Ada won.", "Thanks.", "You are welcome."),
    ]
    assert line[2]["reasoning_content"] == "I look it up."
    function = {"name": "Search", "arguments": '{"command": "Search(\\"who won\\")"}'}
    assert line[2]["tool_calls"][0]["function"] == function


def test_a_text_of_the_older_moss_is_a_conversation(tmp_path: Path) -> None:
    """Of the release before, which has all turns in one text."""
    text = "[Human]: Hi?<eoh> [MOSS]: Hello.\nYes?<eoa> [Human]: Bye.<eoh> [MOSS]: Bye!<eoa>"
    path = write(tmp_path / "f.jsonl", {"id": 1, "prefix": "Be MOSS.", "plain_text": text})
    brought = bring(path, "moss")
    check_counts(brought, Counts(sessions=1, messages=5))
    assert [each["role"] for each in brought.messages[0]] == ["system", *["user", "assistant"] * 2]
    assert brought.messages[0][2]["content"] == "Hello.\nYes?"


def test_a_run_of_agent_bench_is_a_session(tmp_path: Path) -> None:
    """The agent is the assistant; what came of it is metadata."""
    path = write(tmp_path / "runs.jsonl", RUN, RUN | {"index": 4})
    brought = bring(path, "agent_bench")
    check_counts(brought, Counts(sessions=2, messages=8))
    assert [each.id for each in brought.sessions] == ["runs-3", "runs-4"]
    assert [each["role"] for each in brought.messages[0]] == ["user", "assistant"] * 2
    told = brought.sessions[0].metadata["agent_bench"]
    assert (told["status"], told["result"]) == ("completed", {"score": 1})
