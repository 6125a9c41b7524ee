"""Answers that broke off, by the command."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Run

from store import Conflict, Draft, Store

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def drafts(path: Path) -> list[Draft]:
    """The drafts of a store as they began: two of one session, one of another."""
    begun: list[str] = []
    with Store(path) as store:
        for name in "st":
            store.create_session(name)
            store.append(name, {"role": "user", "content": "why?"})
        for name, text in (("s", "be\ncause"), ("s", "so"), ("t", "not")):
            with suppress(KeyError), store.streaming(name, {"role": "assistant"}) as answer:
                begun.append(answer.draft)
                answer.write(text)
                raise KeyError
        return sorted(store.drafts(), key=lambda each: begun.index(each.draft))


def test_drafts_are_listed(run: Run, path: Path, drafts: list[Draft]) -> None:
    """Of all sessions or of one, for people and for programs."""
    ran = run("--db", path, "drafts", "s")
    assert ran.status == 0
    assert "be cause" in ran.out
    assert "not" not in ran.out
    listed = json.loads(run("--db", path, "drafts", "--json").out)
    assert sorted(each["draft"] for each in listed) == sorted(each.draft for each in drafts)
    assert listed[0]["message"]["role"] == "assistant"
    assert run("--db", path, "drafts", "--idle", "5").out == "no drafts\n"


def test_a_draft_of_another_format_says_what_came(run: Run, path: Path) -> None:
    """And becomes a message of that format."""
    parts = [{"text": "because"}]
    with Store(path) as store:
        store.create_session("g")
        with suppress(KeyError), store.streaming("g", {"role": "model"}, format="gemini") as answer:
            answer.update({"parts": parts})
            raise KeyError
        (draft,) = store.drafts("g")
    assert "because" in run("--db", path, "drafts").out
    assert run("--db", path, "drafts", "--finish", draft.draft).status == 0
    with Store(path) as store:
        assert store.messages("g")[0].message == {"role": "model", "parts": parts}


def test_a_draft_is_finished_or_discarded(run: Run, path: Path, drafts: list[Draft]) -> None:
    """By the beginning of its id."""
    one, two, three = (each.draft for each in drafts)
    ran = run("--db", path, "drafts", "--finish", one)
    assert (ran.status, ran.out) == (0, "s: the draft is its message 2\n")
    ran = run("--db", path, "drafts", "s", "--finish", two[:-9], "--json")
    assert json.loads(ran.out) == {"session": "s", "position": 3}
    ran = run("--db", path, "drafts", "--discard", three, "--json")
    assert json.loads(ran.out)["draft"] == three
    assert run("--db", path, "drafts").out == "no drafts\n"
    with Store(path) as store:
        assert [each.message["content"] for each in store.messages("s", 2)] == ["be\ncause", "so"]


def test_a_live_draft_is_ended_by_force_only(run: Run, path: Path) -> None:
    """It is listed as live, and the refusal says who writes it and what to do."""
    with Store(path) as store:
        store.create_session("s")
        answer = store.streaming("s", {"role": "assistant"}, every_bytes=0)
        with pytest.raises(Conflict), answer:  # noqa: PT012
            answer.write("half")
            ran = run("--db", path, "drafts")
            assert "live" in ran.out
            assert "broken off" not in ran.out
            for option in ("--finish", "--discard"):
                ran = run("--db", path, "drafts", option, answer.draft)
                assert ran.status == 2
                assert "still writes" in ran.err
            assert run("--db", path, "drafts", "--finish", answer.draft, "--force").status == 0
        assert [each.message["content"] for each in store.messages("s")] == ["half"]


def test_what_the_command_refuses(run: Run, path: Path, drafts: list[Draft]) -> None:
    """No such draft, one of another session, more than one, both at once."""
    for arguments, word in (
        (["--finish", "x"], "there is no draft"),
        (["--discard", ""], "there is no draft"),
        (["t", "--finish", drafts[0].draft], "there is no draft"),
        (["--finish", drafts[0].draft[:16]], "2 drafts begin"),
        (["--finish", "a", "--discard", "b"], "not both"),
        (["none"], "no session"),
        (["--idle", "-1"], "--idle"),
    ):
        ran = run("--db", path, "drafts", *arguments)
        assert (ran.status, ran.out) == (2, ""), arguments
        assert word in ran.err
    with Store(path) as store:
        assert len(store.drafts()) == 3
