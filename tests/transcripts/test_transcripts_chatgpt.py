"""Exports of ChatGPT, made up after their description."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import StoreError, UnknownTranscript
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff


def node(name: str, parent: str | None, role: str, said: Any, **more: Any) -> dict[str, Any]:
    """Return a node of a conversation; a text is its only part."""
    content = {"content_type": "text", "parts": [said]} if isinstance(said, str) else said
    author = {"role": role, "name": more.pop("tool", None), "metadata": {}}
    message = {"id": name, "author": author, "create_time": 1_700_000_000.25, "content": content}
    recipient = more.pop("recipient", "all")
    message |= {"recipient": recipient, "status": "finished_successfully", "metadata": more}
    return {"id": name, "message": message, "parent": parent, "children": []}


def conversation(current: str, *nodes: dict[str, Any], name: str = "c1") -> dict[str, Any]:
    """Return a conversation of nodes below an empty root."""
    root = {"id": "root", "message": None, "parent": None, "children": []}
    mapping = {each["id"]: each for each in (root, *nodes)}
    return {
        "title": "Talk",
        "create_time": 1_700_000_000.0,
        "mapping": mapping,
        "current_node": current,
        "conversation_id": name,
        "default_model_slug": "gpt-4o",
    }


QUESTION = node("u1", "root", "user", "How many?")
FIRST = node("a1", "u1", "assistant", "Two.", model_slug="gpt-4o")
AGAIN = node("a2", "u1", "assistant", "Three.", model_slug="o3")
THANKS = node("u2", "a2", "user", "Thanks.")
TREE = (QUESTION, FIRST, AGAIN, THANKS)

CODE = {"content_type": "code", "language": "python", "text": "print(1)"}
OUTPUT = {"content_type": "execution_output", "text": "1\n"}


def write(path: Path, value: object) -> Path:
    """Write an export."""
    path.write_text(json.dumps(value))
    return path


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of an export, without what is kept beside the chat's shape."""
    said = [event.message for event in read(path) if isinstance(event, SessionMessage)]
    return [{key: held for key, held in each.items() if key != "chatgpt"} for each in said]


def contents(path: Path) -> list[object]:
    """Return what the messages of an export say."""
    return [message["content"] for message in messages(path)]


def line(store: Store, session_id: str) -> list[object]:
    """Return what a stored session says."""
    return [stored.message["content"] for stored in store.messages(session_id)]


def test_the_present_path_is_a_session_and_others_are_its_branches(tmp_path: Path) -> None:
    """A branch is named after its first node, and says where it leaves which session."""
    path = write(tmp_path / "conversations.json", [conversation("u2", *TREE)])
    assert sniff(path) == "chatgpt"
    opened = [event for event in read(path) if isinstance(event, SessionEvent)]
    assert [each.session_id for each in opened] == ["c1", "c1/branch-a1"]
    assert (opened[0].title, opened[0].metadata["model"]) == ("Talk", "gpt-4o")
    assert opened[1].metadata == {"parent_session": "c1", "forked_at": 1}
    assert contents(path) == ["How many?", "Three.", "Thanks.", "Two."]
    moments = {message["timestamp"] for message in messages(path)}
    assert moments == {1_700_000_000_250}
    extras = [event.message["chatgpt"] for event in read(path) if isinstance(event, SessionMessage)]
    assert extras[1]["metadata"] == {"model_slug": "o3"}


def test_branches_of_branches_tell_their_nearest_session(tmp_path: Path) -> None:
    """Positions are those of the line that they leave."""
    deeper = [node("u3", "a1", "user", "Sure?"), node("u4", "a1", "user", "Really?")]
    path = write(tmp_path / "f.json", conversation("u2", *TREE, *deeper))
    opened = [event for event in read(path) if isinstance(event, SessionEvent)]
    links = [(each.session_id, each.metadata.get("forked_at")) for each in opened]
    assert links == [("c1", None), ("c1/branch-a1", 1), ("c1/branch-u4", 2)]
    assert opened[2].metadata["parent_session"] == "c1/branch-a1"


@pytest.mark.parametrize("current", [None, "gone", "u2"])
def test_without_a_present_node_the_last_leaf_is_present(tmp_path: Path, current: Any) -> None:
    """Also where the nodes go round in a circle, each is told once."""
    path = write(tmp_path / "f.json", conversation(current, *TREE))
    assert contents(path)[:3] == ["How many?", "Three.", "Thanks."]
    circle = [node("x", "y", "user", "x"), node("y", "x", "user", "y")]
    circle[0]["message"]["content"]["parts"] = ["x"]
    round_about = conversation(current, *circle)
    del round_about["mapping"]["root"]
    assert sorted(map(str, contents(write(path, round_about)))) == ["x", "y"]


def test_a_present_path_that_says_nothing_gives_way(tmp_path: Path) -> None:
    """The first path with words is the session, so that a branch never hangs on nothing."""
    path = write(tmp_path / "f.json", conversation("root", *TREE))
    empty = conversation("e", {"id": "e", "message": None, "parent": None}, *TREE)
    for value in (empty, conversation("root", *TREE)):
        opened = [each for each in read(write(path, value)) if isinstance(each, SessionEvent)]
        assert [each.session_id for each in opened] == ["c1", "c1/branch-a2"]


def test_what_is_meant_for_a_tool_is_a_call_and_its_answer_the_result(tmp_path: Path) -> None:
    """Calls have no ids: the node's is taken, and the result is linked by its place."""
    nodes = [
        QUESTION,
        node("k1", "u1", "assistant", CODE, recipient="python"),
        node("r1", "k1", "tool", OUTPUT, tool="python"),
        node("r2", "r1", "tool", "more", tool="python"),
        node("k2", "r2", "assistant", '{"q": 1}', recipient="web.run"),
        node("k3", "k2", "assistant", "note", recipient="bio"),
        node("r3", "k3", "tool", {"content_type": "system_error", "text": "no"}, tool="bio"),
        node("r4", "r3", "tool", "found", tool="web.run"),
        node("a1", "r4", "assistant", "One."),
    ]
    path = write(tmp_path / "f.json", [conversation("a1", *nodes)])
    said = messages(path)
    calls = [call for message in said for call in message.get("tool_calls", ())]
    assert [(call["id"], call["function"]["name"]) for call in calls] == [
        ("k1", "python"),
        ("k2", "web.run"),
        ("k3", "bio"),
    ]
    arguments = [call["function"]["arguments"] for call in calls]
    assert arguments == ['{"input": "print(1)"}', '{"q": 1}', '{"input": "note"}']
    results = [message for message in said if message["role"] == "tool"]
    assert [each.get("tool_call_id") for each in results] == ["k1", None, "k3", "k2"]
    assert [each.get("messageStatus") for each in results] == [None, None, "error", None]
    assert [each["content"] for each in results] == ["1\n", "more", "no", "found"]


def test_all_contents_are_kept(tmp_path: Path) -> None:
    """Pictures as they are, thoughts as reasoning, hidden nodes as any other."""
    asset = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    heard = {"content_type": "audio_transcription", "text": "hi", "direction": "in"}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Hm."}]}
    recap = {"content_type": "reasoning_recap", "content": "Thought for 2 s"}
    mine = {"content_type": "user_editable_context", "user_profile": "I", "user_instructions": "!"}
    nodes = [
        node("s", "root", "system", "", is_visually_hidden_from_conversation=True),
        node("c", "s", "user", mine),
        node("u", "c", "user", {"content_type": "multimodal_text", "parts": ["see", asset, heard]}),
        node("t", "u", "assistant", thoughts),
        node("p", "t", "assistant", recap),
        node("n", "p", "assistant", {"content_type": "new", "what": 1}),
    ]
    path = write(tmp_path / "f.json", conversation("n", *nodes))
    said = messages(path)
    assert [each["content"] for each in said[:2]] == ["", "I\n\n!"]
    assert said[2]["content"] == [{"type": "text", "text": "see"}, asset, {"type": "text", **heard}]
    reasoned = [(each["content"], each.get("reasoning_content")) for each in said[3:]]
    assert reasoned == [(None, "Hm."), (None, "Thought for 2 s"), (None, None)]
    extras = [event.message["chatgpt"] for event in read(path) if isinstance(event, SessionMessage)]
    assert extras[0]["metadata"] == {"is_visually_hidden_from_conversation": True}
    assert extras[5]["content"] == {"content_type": "new", "what": 1}


def archive(path: Path, files: dict[str, object]) -> Path:
    """Write an export's zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, value in files.items():
            packed.writestr(name, json.dumps(value))
    return path


def test_the_zip_is_read_as_its_conversations(tmp_path: Path, url: str) -> None:
    """Those in numbered files, too; nothing else in it is taken for one."""
    one, two = (conversation("u2", *TREE, name=name) for name in ("c1", "c2"))
    files = {"x/conversations-001.json": [two], "user.json": {}, "x/conversations-000.json": [one]}
    path = archive(tmp_path / "export.zip", files | {"shared_conversations.json": [{"id": "x"}]})
    seen: list[int] = []
    with Store(url) as store:
        report = import_file(store, path, progress=lambda done, _: seen.append(done))
        assert [each.id for each in report.sessions] == [
            *("c1", "c1/branch-a1"),
            *("c2", "c2/branch-a1"),
        ]
    assert max(seen) >= path.stat().st_size


def test_a_zip_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Damaged, or with other things in it: an error of our own."""
    path = archive(tmp_path / "a.zip", {"conversations.json": [conversation("u2", *TREE)] * 50})
    held = bytearray(path.read_bytes())
    held[100:140] = bytes(40)
    path.write_bytes(held)
    with pytest.raises(StoreError, match=r"cannot unpack .*a\.zip"):
        list(read(path, kind="chatgpt"))
    with pytest.raises(UnknownTranscript, match="a zip archive"):
        sniff(archive(path, {"notes.json": []}))
    with pytest.raises(UnknownTranscript, match="begins with"):
        sniff(archive(path, {"conversations.json": [{"title": "no words", "mapping": {}}]}))


def test_an_archive_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    """Before anything of it is unpacked: no words are packed that tightly."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("conversations.json", b" " * 100_000_001)
    with pytest.raises(StoreError, match=r"bytes would become 100,000,001"):
        sniff(tmp_path / "a.zip")


def test_what_is_no_conversation_is_broken(tmp_path: Path) -> None:
    """The others are read."""
    path = write(tmp_path / "f.json", [conversation("u2", *TREE), {"title": "x"}, 7])
    broken = [event.text for event in read(path) if isinstance(event, NoteEvent) and event.broken]
    assert len(broken) == 2
    assert "no 'mapping'" in broken[0]
    with pytest.raises(UnknownTranscript):
        sniff(write(path, [{"title": "t", "mapping": {}, "current_node": "n"}]))


def test_an_import_can_be_repeated_and_grows(tmp_path: Path, url: str) -> None:
    """What a later export has more is appended; nothing else changes."""
    path = write(tmp_path / "f.json", [conversation("a2", QUESTION, FIRST, AGAIN)])
    with Store(url) as store:
        import_file(store, path)
        later = [conversation("u2", *TREE, node("u3", "a1", "user", "Sure?"))]
        report = import_file(store, write(path, later))
        assert [(each.id, each.appended) for each in report.sessions] == [
            ("c1", 1),
            ("c1/branch-a1", 1),
        ]
        assert [each.appended for each in import_file(store, path).sessions] == [0, 0]
        assert line(store, "c1") == ["How many?", "Three.", "Thanks."]
        for form in ("openai", "responses", "anthropic", "gemini"):
            assert store.view("c1", format=form).messages
        assert not store.verify()
        branch = store.session("c1/branch-a1")
        assert (branch.forked_from, branch.forked_at) == ("c1", 1)
