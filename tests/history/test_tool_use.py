"""What tools were called for: calls, those without a result, files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store import CallRecord, FileUse, InvalidValue, OpenCall, SessionNotFound, Store

START = 1_700_000_000_000


def call(call_id: str | None, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a call as a chat has it."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def asked(*calls: dict[str, Any], at: int = START) -> dict[str, Any]:
    """Return an answer that calls tools."""
    return {"role": "assistant", "content": None, "tool_calls": [*calls], "timestamp": at}


def answered(call_id: str, content: str, at: int = START) -> dict[str, Any]:
    """Return a result."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, "timestamp": at}


def test_calls_have_kind_outcome_and_time(store: Store) -> None:
    """In order of the calls, whatever the order of the results."""
    store.create_session("s1", project_root="/p")
    calls = call("a", "Read", file_path="/p/x.py"), call("b", "Bash", command="make")
    store.append("s1", asked(*calls))
    store.append("s1", answered("b", "Error: no rule", START + 2500))
    store.append("s1", answered("a", "text", START + 4000))
    store.append("s1", asked(call("c", "fly", to="moon")))
    read, made, flown = store.calls("s1")
    assert read == CallRecord(1, 0, "Read", "file_read", '{"file_path": "/p/x.py"}', False, 4.0)
    assert (made.kind, made.failed, made.seconds) == ("terminal", True, 2.5)
    assert flown == CallRecord(4, 0, "fly", "other", '{"to": "moon"}', None, None)
    assert store.calls("s1", kind="terminal") == store.calls("s1", failed=True) == [made]
    assert store.calls("s1", failed=False) == [read]
    with pytest.raises(InvalidValue, match="there are file_edit, file_read"):
        store.calls("s1", kind="reading")


def test_calls_and_results_on_both_sides_of_a_fork(store: Store) -> None:
    """A result in the fork answers the call before it; the source's call stays open."""
    store.create_session("s2")
    store.append("s2", asked(call("a", "Bash", command="ls")))
    store.fork("s2", session_id="f2")
    store.append("f2", answered("a", "x.py", START + 1000))
    assert [each.seconds for each in store.calls("f2")] == [1.0]
    assert store.open_calls("f2") == []
    assert store.open_calls("s2") == [OpenCall(1, 0, "a", "Bash", {"command": "ls"})]


def test_results_of_repeated_ids_answer_their_calls(store: Store) -> None:
    """Of calls with one id, each open call has an id that leads to it, in any order."""
    store.create_session("s3")
    store.append("s3", asked(call("0", "one"), call(None, "two")))
    store.append("s3", {"role": "user", "content": "Go on."})
    store.append("s3", asked(call("0", "three")))
    found = store.open_calls("s3")
    assert [each.name for each in found] == ["one", "two", "three"]
    assert [each.arguments for each in found] == [{}, {}, {}]
    assert len({each.id for each in found}) == 3
    for each in found:
        store.append("s3", answered(each.id, f"of {each.name}"))
    assert store.open_calls("s3") == []
    said = {each.message["content"]: each.seq for each in store.messages("s3", 4)}
    with store.database.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT seq, call_seq, call_position FROM tool_results WHERE tree_id = "
            "(SELECT tree_id FROM sessions WHERE id = 's3') ORDER BY seq"
        )
        places = {seq: (call_seq, position) for seq, call_seq, position in rows}
    assert [places[said[f"of {name}"]] for name in ("one", "two", "three")] == [
        *((1, 0), (1, 1), (3, 0))
    ]


def test_files_are_those_that_calls_named(store: Store) -> None:
    """Relative to the project; one of them by its relative or absolute path."""
    store.create_session("s4", project_root="/p")
    store.append("s4", asked(call("a", "Read", file_path="/p/x.py")))
    store.append("s4", answered("a", "text", START + 5))
    store.append("s4", asked(call("b", "Edit", file_path="/p/y.py")))
    store.append("s4", {"role": "tool", "tool_call_id": "b", "content": "done"}, now=START + 9)
    used = [
        FileUse("x.py", 2, 1, "file_read", START + 5),
        FileUse("y.py", 4, 3, "file_edit", START + 9),
    ]
    assert store.files("s4") == used
    assert store.files("s4", "y.py") == store.files("s4", "/p/y.py") == used[1:]


def test_an_owner_has_them_and_nobody_else(store: Store) -> None:
    """Another owner is told that there is no session."""
    ann, bob = store.scoped("ann"), store.scoped("bob")
    ann.create_session("s5")
    ann.append("s5", asked(call("a", "Read", file_path="x.py")))
    assert [each.name for each in ann.open_calls("s5")] == ["Read"]
    ann.append("s5", answered("a", "text"))
    assert len(ann.calls("s5")) == len(ann.files("s5")) == 1
    for name in ("calls", "open_calls", "files"):
        with pytest.raises(SessionNotFound):
            getattr(bob, name)("s5")


def test_messages_have_one_shape(store: Store) -> None:
    """Those of the format as they went in, others written position by position."""
    store.create_session("s6")
    use = {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}}
    results = [{"type": "tool_result", "tool_use_id": "a", "content": "seen"}]
    store.append("s6", {"role": "user", "content": "Hi", "id": "m1"})
    store.append("s6", {"role": "assistant", "content": [use]})
    store.append("s6", {"role": "user", "content": [*results, {"type": "text", "text": "And?"}]})
    chat = store.messages("s6", format="openai")
    assert chat[0].message == {"role": "user", "content": "Hi", "id": "m1"}
    assert chat[1].message["tool_calls"][0]["function"] == {
        "name": "look",
        "arguments": '{"at": 1}',
    }
    assert [(each.seq, each.message["role"]) for each in chat[2:]] == [(3, "tool"), (4, "user")]
    own = store.messages("s6", format="anthropic")
    assert own[0].message == {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    assert own[1:] == store.messages("s6", 2)
    assert store.messages("s6", last=1, format="openai") == chat[2:]
    assert store.messages("s6", last=2, format="anthropic") == own[1:]
    with pytest.raises(InvalidValue, match="no format is named"):
        store.messages("s6", format="morse")


def test_several_messages_and_the_notes_of_one(store: Store) -> None:
    """Positions and ids in the order asked for."""
    store.create_session("s7")
    store.append("s7", [{"role": "user", "content": text, "id": text} for text in "abc"])
    assert [each.seq for each in store.message("s7", [3, "a"])] == [3, 1]
    store.annotate("s7", 1, "rating", 1)
    store.annotate("s7", 2, "rating", 2)
    assert [each.value for each in store.annotations("s7", seq=2)] == [2]
    with pytest.raises(InvalidValue, match="name the session"):
        store.annotations(seq=2)
