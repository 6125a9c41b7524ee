from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from test_transcripts_claude import Lines, Recorder, call, events_of, opened, split, text, told

from store.transcripts import NoteEvent


def test_copies_of_a_resumed_session_count_once(tmp_path: Path) -> None:
    """Copied lines, with their uuid or a new one, whole or a block a line, are said once."""
    session = Recorder()
    root = session.user([text("a"), text("b")])
    session.answer("m1", text("c"), call("t1"))
    session.result("t1")
    old = json.loads(json.dumps(session.lines))
    copied: Lines = [old[0] | {"uuid": f"n{at}", "message": {"content": [text(at)]}} for at in "ab"]
    copied += [
        old[1] | {"uuid": "n3", "parentUuid": "nb"},
        old[2] | {"uuid": "n4", "parentUuid": "n3"},
        old[1],
    ]
    session.lines += copied
    session.user("new", parentUuid="n4")
    events = events_of(tmp_path, session.lines)
    messages = split(events)["S"]
    assert told(messages) == ["u:a+b", "a:c", "t:t1", "u:new"]
    assert (
        messages[0]["claude_code"] | {"copies": ["na", "nb"], "uuids": [root]}
        == messages[0]["claude_code"]
    )
    assert any("5 copied lines" in event.text for event in events if isinstance(event, NoteEvent))


def test_a_copy_stands_for_the_line_it_repeats(tmp_path: Path) -> None:
    """A prompt that hangs on a copy takes the place of the one that hangs on the original."""
    session = Recorder()
    session.answer("m1", text("ready"))
    old = session.user("old way")
    session.answer("m2", text("done"))
    first: Any = session.lines[0]
    session.lines.append(first | {"uuid": "copy"})
    session.user("new way", parentUuid="copy")
    assert {
        name: told(messages) for name, messages in split(events_of(tmp_path, session.lines)).items()
    } == {
        "S": ["a:ready", "u:new way"],
        f"S/branch-{old}": ["u:old way", "a:done"],
    }


def test_a_line_that_says_something_new_is_no_copy(tmp_path: Path) -> None:
    """A line with one old block and one new is kept whole."""
    session = Recorder()
    session.user([text("a")])
    session.user([text("a"), text("b")], timestamp="2026-01-01T00:00:01.000Z")
    assert told(split(events_of(tmp_path, session.lines))["S"]) == ["u:a", "u:a+b"]


def test_the_same_words_later_are_no_copy(tmp_path: Path) -> None:
    """Two equal prompts at different moments are two messages, and so are equal uuids with other
    words.
    """
    session = Recorder()
    session.user("go on")
    session.user("go on")
    session.user("other", uuid="u1", parentUuid="u2")
    messages = split(events_of(tmp_path, session.lines))["S"]
    assert told(messages) == ["u:go on", "u:go on", "u:other"]
    assert [message["id"] for message in messages] == ["u1", "u2", "u1#1"]


def test_parallel_calls_are_no_fork(tmp_path: Path) -> None:
    """Results hang on their own call's line.

    The tree branches, the line holds everything in file order.
    """
    session = Recorder()
    session.user("go")
    one = session.answer("m1", call("t1"))
    two = session.answer("m1", call("t2"))
    session.result("t1", parentUuid=one)
    session.result("t2", parentUuid=two)
    session.answer("m2", text("both"))
    events = events_of(tmp_path, session.lines)
    assert {name: told(messages) for name, messages in split(events).items()} == {
        "S": ["u:go", "a:t1,t2", "t:t1", "t:t2", "a:both"]
    }


def test_a_result_never_comes_before_its_call(tmp_path: Path) -> None:
    """The tree decides where the file has a result before its call, or a line before its parent."""
    session = Recorder()
    session.user("go")
    session.result("t1", parentUuid=None)
    session.answer("m1", call("t1"), parentUuid="u1")
    session.user("late child", parentUuid="u5")
    session.answer("m2", text("parent"), parentUuid="u2")
    assert told(split(events_of(tmp_path, session.lines))["S"]) == [
        "u:go",
        "a:t1",
        "t:t1",
        "a:parent",
        "u:late child",
    ]


def test_an_answer_whose_lines_are_out_of_order_has_its_results(tmp_path: Path) -> None:
    """A line that follows the result of another of its answer's calls may stand first."""
    session = Recorder()
    session.user("go")
    session.result("t1", parentUuid="u4")
    session.answer("m1", call("t2"), parentUuid="u2")
    session.answer("m1", call("t1"), parentUuid="u1")
    session.result("t2", parentUuid="u3")
    told_of = split(events_of(tmp_path, [session.lines[place] for place in (0, 2, 1, 3, 4)]))
    assert told(told_of["S"]) == ["u:go", "a:t2,t1", "t:t1", "t:t2"]


def test_a_prompt_that_was_taken_back_is_a_session_of_its_own(tmp_path: Path) -> None:
    """An answered prompt with another one in its place, past hooks and attachments, leaves the
    line.
    """
    session = Recorder()
    session.user("start")
    here = session.answer("m1", text("ready"))
    session.add("attachment", attachment={"type": "hook_success"})
    old = session.user("old way")
    session.answer("m2", call("t1"))
    session.result("t1")
    session.add("system", subtype="turn_duration", parentUuid=here)
    session.user("new way")
    session.answer("m3", text("fine"))
    events = events_of(tmp_path, session.lines)
    assert {name: told(messages) for name, messages in split(events).items()} == {
        "S": ["u:start", "a:ready", "u:new way", "a:fine"],
        f"S/branch-{old}": ["u:old way", "a:t1", "t:t1"],
    }
    branch = opened(events)[f"S/branch-{old}"]
    assert (branch.metadata["parent_session"], branch.metadata["forked_after"]) == ("S", "m1")
    assert branch.title == "old way"
    assert any("taken back" in event.text for event in events if isinstance(event, NoteEvent))


def test_a_queued_prompt_is_no_fork(tmp_path: Path) -> None:
    """A prompt with an old parent stays in the line while the conversation goes on around it."""
    session = Recorder()
    here = session.answer("m1", text("ready"))
    session.user("first")
    working = session.answer("m2", call("t1"))
    session.user("queued long ago", parentUuid=here)
    session.result("t1", parentUuid=working)
    session.answer("m3", text("done"))
    session.user("unanswered", parentUuid="u6")
    session.user("again", parentUuid="u6")
    assert {
        name: told(messages) for name, messages in split(events_of(tmp_path, session.lines)).items()
    } == {
        "S": [
            "a:ready",
            "u:first",
            "a:t1",
            "u:queued long ago",
            "t:t1",
            "a:done",
            "u:unanswered",
            "u:again",
        ]
    }


def test_inline_sidechains_are_sessions_of_their_own(tmp_path: Path) -> None:
    """A subagent of 1.0 is found by its prompt: the call that began it has the same."""
    session = Recorder()
    session.user("go")
    main = session.answer("m1", call("t0", prompt="else"), call("t1", prompt="look"))
    root = session.user("look", parentUuid=None, isSidechain=True)
    session.answer("m2", call("t2"), isSidechain=True)
    session.result("t2", isSidechain=True)
    session.result("t1", "found", parentUuid=main)
    events = events_of(tmp_path, session.lines)
    assert {name: told(messages) for name, messages in split(events).items()} == {
        "S": ["u:go", "a:t0,t1", "t:t1"],
        f"S/sidechain-{root}": ["u:look", "a:t2", "t:t2"],
    }
    links = {"parent_session": "S", "parent_call": "t1"}
    assert opened(events)[f"S/sidechain-{root}"].metadata.items() >= links.items()
    backwards = events_of(tmp_path, [session.lines[place] for place in (0, 1, 4, 3, 2, 5)])
    assert split(backwards) == split(events), "a line may come before its parent"
    assert opened(backwards)[f"S/sidechain-{root}"].metadata.items() >= links.items()


def test_a_subagent_file_is_a_session_of_its_parent(tmp_path: Path) -> None:
    """A file of sidechain lines with an agent's id is that agent's session.

    The parent knows which call began it.
    """
    agent = Recorder()
    agent.user("look", isSidechain=True, agentId="a1")
    agent.answer("m1", text("found"), isSidechain=True, agentId="a1")
    events = events_of(tmp_path, agent.lines)
    assert list(split(events)) == ["S/agent-a1"]
    assert (
        opened(events)["S/agent-a1"].metadata.items()
        >= {"parent_session": "S", "agent_id": "a1"}.items()
    )
    parent = Recorder()
    parent.answer("m1", call("t1", prompt="look"))
    parent.result("t1", toolUseResult={"agentId": "a1", "content": []})
    assert opened(events_of(tmp_path, parent.lines))["S"].metadata["agents"] == {"a1": "t1"}
