"""The commands that write by hand, and the tree of what continues what."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Run

from store import Store

DB = ("--db", "s.db")


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let a text stand on standard input."""
    stream = io.StringIO(text)
    monkeypatch.setattr(
        "sys.stdin", SimpleNamespace(read=stream.read, buffer=io.BytesIO(text.encode()))
    )


def said(session_id: str) -> list[object]:
    """What the messages of a session say."""
    with Store("s.db") as store:
        return [each.message["content"] for each in store.messages(session_id)]


def test_a_conversation_is_written_by_hand(run: Run) -> None:
    """Made, appended to, named and tagged; the store with it."""
    assert run(*DB, "create", "--id", "chat", "--title", "Tea").out == (
        "chat is there, without messages\n"
    )
    assert run(*DB, "append", "chat", "Hello.").out == "chat: 1 message, the last at position 1\n"
    answer = json.loads(run(*DB, "append", "ch", "Hi.", "--role", "assistant", "--json").out)
    assert answer == {"session": "chat", "positions": [2]}
    assert run(*DB, "rename", "chat", "Coffee").out == "chat: Coffee\n"
    assert run(*DB, "rename", "chat", "").out == "chat has no title\n"
    assert run(*DB, "tag", "chat", "project=tea", "stars=3").status == 0
    assert run(*DB, "tag", "chat", "project=null", "done=true").status == 0
    assert json.loads(run(*DB, "tag", "chat", "--json").out) == {"stars": 3, "done": True}
    assert said("chat") == ["Hello.", "Hi."]


@pytest.mark.parametrize(
    "text",
    [
        '{"role": "user", "content": "a"}\n{"role": "user", "content": "b"}\n',
        '[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]',
    ],
)
def test_messages_are_read_from_standard_input(
    run: Run, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A list, or one a line; the session is made if that is asked for."""
    typed(monkeypatch, text)
    assert run(*DB, "append", "new", "-", "--create").out == (
        "new: 2 messages, the last at position 2\n"
    )
    assert said("new") == ["a", "b"]
    typed(monkeypatch, text)
    assert run(*DB, "import", "-", "--id", "piped").status == 0
    assert said("piped") == ["a", "b"]


def test_an_export_can_be_appended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages alone: whose it was is no message, and who reads it is told."""
    run(*DB, "create", "--id", "hers", "--owner", "ann", "--project-root", "/p")
    run(*DB, "append", "hers", "Hello.")
    typed(monkeypatch, run(*DB, "export", "hers").out)
    appended = run(*DB, "append", "new", "-", "--create")
    assert (appended.out, appended.status) == ("new: 1 message, the last at position 1\n", 0)
    assert "`import -` keeps it" in appended.err
    with Store("s.db") as store:
        assert store.messages("new")[0].message == store.messages("hers")[0].message
        assert store.session("new").owner is None
    typed(monkeypatch, '{"owner": "ann"}\n')
    assert "has no message" in run(*DB, "append", "new", "-").err


@pytest.mark.parametrize("shape", ["openai", "responses", "anthropic", "gemini"])
def test_what_is_written_for_a_provider_can_be_appended_with_its_system_text(
    run: Run, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """Also where that text has a row of its own before the messages."""
    run(*DB, "append", "chat", "Be kind.", "--role", "system", "--create")
    run(*DB, "append", "chat", "Hello.")
    typed(monkeypatch, run(*DB, "export", "chat", "--as", shape).out)
    assert run(*DB, "append", "new", "-", "--create").status == 0
    with Store("s.db") as store:
        views = [store.view(name, format=shape) for name in ("chat", "new")]
    assert views[0].system == views[1].system
    assert views[0].messages == views[1].messages


def test_what_is_piped_into_import_is_told_apart_by_what_it_is(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another text is another session; the same is there already."""
    new = []
    for content in ("a", "b", "a"):
        typed(monkeypatch, json.dumps({"role": "user", "content": content}))
        (ran,) = json.loads(run(*DB, "import", "-", "--json").out)
        new += [each["appended"] for each in ran["sessions"]]
    assert new == [1, 1, 0]
    listed = json.loads(run(*DB, "sessions", "--json").out)
    assert [each["file"] for each in listed] == [None, None]


def test_what_cannot_be_written_changes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it make a session or a store."""
    assert run(*DB, "append", "chat", "Hello.").status == 2
    typed(monkeypatch, "no JSON")
    assert "is not JSON" in run(*DB, "append", "chat", "-", "--create").err
    typed(monkeypatch, " \n")
    assert "has no message" in run(*DB, "append", "chat", "-", "--create").err
    typed(monkeypatch, "")
    ran = run(*DB, "import", "-")
    assert (ran.status, ran.err[:36]) == (2, "convostore: standard input is empty;")
    assert not Path("s.db").exists()
    run(*DB, "create", "--id", "chat")
    typed(monkeypatch, '[{"role": "user", "content": "a"}, {"content": "b"}]')
    assert run(*DB, "append", "chat", "-").status == 2
    assert "KEY=VALUE" in run(*DB, "tag", "chat", "done").err
    assert run(*DB, "create", "--id", "chat").status == 2
    assert said("chat") == []


def test_the_tree_shows_what_continues_what(run: Run) -> None:
    """Each below its source, whatever was active last; what is left of a deleted one stands alone."""
    assert run(*DB, "create", "--id", "other").status == 0
    assert run(*DB, "append", "tea", "Hello.", "--create").status == 0
    run(*DB, "fork", "tea", "--id", "mint", "--title", "Mint")
    run(*DB, "fork", "mint", "--id", "leaf")
    run(*DB, "rename", "tea", "Tea")
    tree = [
        "tea, 1 message: Tea",
        "└ mint from 1, 1 message: Mint",
        "  └ leaf from 1, 1 message: Mint",
    ]
    assert run(*DB, "tree", "leaf").out.splitlines() == tree
    assert sorted(run(*DB, "tree").out.splitlines()) == sorted([*tree, "other, 0 messages"])
    assert [each["id"] for each in json.loads(run(*DB, "tree", "tea", "--json").out)] == [
        *("tea", "mint", "leaf")
    ]
    run(*DB, "delete", "tea", "--yes")
    assert run(*DB, "tree", "leaf").out.splitlines()[0].startswith("mint from 1")


def test_a_tree_is_no_wider_than_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles give way; of each a few words are left."""
    monkeypatch.setenv("COLUMNS", "80")
    run(*DB, "create", "--id", "a" * 36, "--title", "Which of all teas is the mildest one? " * 3)
    run(*DB, "fork", "a" * 36, "--id", "b" * 50)
    first, second = run(*DB, "tree").out.splitlines()
    assert (len(first), second[-16:]) == (80, "Which of all te…")


def test_an_empty_store_has_no_tree(run: Run) -> None:
    """And says what to do."""
    with Store("s.db"):
        pass
    assert run(*DB, "tree").out == "no sessions; `convostore import` brings some in\n"


def test_sessions_have_owners_and_are_archived(run: Run) -> None:
    """Listed by whose they are, and by whether they are in use."""
    for name, owner in (("a1", "ann"), ("a2", "ann"), ("b1", "bob")):
        assert (
            json.loads(run("create", "--id", name, "--owner", owner, "--json").out)["owner"]
            == owner
        )

    def listed(*options: str) -> list[str]:
        return sorted(each["id"] for each in json.loads(run("sessions", "--json", *options).out))

    assert listed("--owner", "ann") == ["a1", "a2"]
    run("tag", "a2", "n=1", "who=x")
    assert listed("--where", "n=1", "--where", "who=x") == ["a2"]
    assert listed("--where", "n=one") == []
    assert run("archive", "a1").out == "a1 is archived\n"
    assert (listed(), listed("--archived", "--created")) == (["a2", "b1"], ["a1"])
    assert "a2" in run("sessions", "--owner", "ann").out
    assert run("sessions", "--owner", "nobody").out == "no such sessions\n"
    assert "a1" in run("tree").out
    assert json.loads(run("unarchive", "a1", "--json").out)["archived"] is False
