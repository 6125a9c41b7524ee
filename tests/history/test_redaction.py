"""A message whose words are taken out: gone wherever they were, and everything else stands."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st

from store import Policy, Store
from store.errors import (
    InvalidMessage,
    InvalidValue,
    PositionOutOfRange,
    SessionNotFound,
    StoreError,
)
from store.messages import REDACTED_TEXT

NOW = 1_800_000_000_000
SECRET = "hunter2-is-the-pass-phrase"


def said(text: object = SECRET, **keys: Any) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": text, **keys}


def asked(call_id: str, **arguments: Any) -> dict[str, Any]:
    """Return an assistant's message with a call that reads a file."""
    function = {"name": "read_file", "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": f"I use {SECRET}", "tool_calls": [call]}


def answered(call_id: str, text: str = SECRET) -> dict[str, Any]:
    """Return a tool's result."""
    return {"role": "tool", "tool_call_id": call_id, "name": "read_file", "content": text}


LINE = [
    said("Please read it.", id="m1"),
    said(SECRET, id="m2", name=SECRET, timestamp=NOW, mood=SECRET),
    asked("c1", path=f"{SECRET}.txt"),
    answered("c1"),
    {"role": "assistant", "content": "Done."},
    said("And more."),
]


@pytest.fixture
def chat(url: str) -> Any:
    """Return a store with a session `s` and a fork of it."""
    with Store(url) as store:
        store.create_session("s", now=NOW)
        store.append("s", LINE, now=NOW)
        store.fork("s", 5, "fork", now=NOW)
        store.append("fork", [said("Elsewhere.")], now=NOW)
        yield store


def everything(store: Store) -> str:
    """Return all that the tables hold, as one text."""
    with store.database.reading() as connection:
        names = sqlalchemy.inspect(connection).get_table_names()
        rows = [connection.exec_driver_sql(f"SELECT * FROM {name}").all() for name in names]
    return repr(rows)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seq", range(1, 7))
def test_what_stays_of_a_message(chat: Store, seq: int) -> None:
    """Its role, its ids and its time; the others are as they were, and all is in order."""
    before = chat.messages("s")
    chat.redact("s", seq, "asked for", by="ada", now=NOW + 1)
    after = chat.messages("s")
    assert [each for each in after if each.seq != seq] == [
        each for each in before if each.seq != seq
    ]
    left = after[seq - 1].message
    given = LINE[seq - 1]
    assert (left["content"], left["redacted"]) == (REDACTED_TEXT, True)
    for key in ("role", "id", "tool_call_id", "timestamp"):
        assert left.get(key) == given.get(key)
    assert after[seq - 1].stored_at == before[seq - 1].stored_at
    assert chat.verify() == []


def test_nothing_holds_the_words_any_more(chat: Store) -> None:
    """No row of any table, however it was derived."""
    assert SECRET in everything(chat)
    chat.count_tokens("s")
    for seq in (2, 3, 4):
        chat.redact("s", seq, "leaked")
    assert SECRET not in everything(chat)
    assert SECRET not in repr(chat.view("fork", now=NOW).messages)
    assert chat.verify() == []


def test_calls_and_results_still_find_each_other(chat: Store) -> None:
    """So what is sent stays valid."""
    for seq in (3, 4):
        chat.redact("s", seq, "leaked")
    (call,) = chat.messages("s")[2].message["tool_calls"]
    assert call == {
        "id": "c1",
        "type": "function",
        "function": {"name": "read_file", "arguments": "{}"},
    }
    sent = chat.view("s", policy=Policy.named("raw"), now=NOW).messages
    assert [each["role"] for each in sent] == [each["role"] for each in LINE]
    assert sent[3]["content"] == REDACTED_TEXT


@pytest.mark.parametrize("name", ["default", "turns", "agent", "raw"])
def test_views_show_what_is_left(chat: Store, name: str) -> None:
    """In every policy, with no key that a provider does not know."""
    chat.redact("s", 2, "leaked")
    sent = chat.view("s", policy=Policy.named(name), now=NOW).messages
    assert {"role": "user", "content": REDACTED_TEXT} in sent
    assert SECRET not in repr([each for each in sent if each["role"] == "user"])


def test_a_redaction_is_recorded_once(chat: Store) -> None:
    """Again, by whomever, it is the first that is told; forks tell of it, too."""
    done = chat.redact("s", 2, "asked for", by="ada", now=NOW + 5)
    assert done == chat.redact("fork", 2, "again", now=NOW + 9)
    assert (done.session_id, done.seq, done.reason, done.by, done.at) == (
        "s",
        2,
        "asked for",
        "ada",
        NOW + 5,
    )
    chat.redact("s", 6, "only here", now=NOW + 7)
    assert [each.seq for each in chat.redactions("s")] == [2, 6]
    assert chat.redactions("fork") == [done]
    assert [each.seq for each in chat.redactions()] == [2, 6]


def test_no_name_of_it_is_remembered(chat: Store) -> None:
    """A line that stood for a result named what its call was for; it is made anew."""
    step = [asked("c2", path=f"{SECRET}.txt"), answered("c2", "some words of the file\n" * 200)]
    chat.append("s", step, now=NOW)
    rest = [each for n in range(30) for each in (asked(f"d{n}", path="a"), answered(f"d{n}", "b"))]
    chat.append("s", [*rest, {"role": "assistant", "content": "Done."}], now=NOW)
    policy, later = Policy(any_tool=True, file_read=False), NOW + 10**9
    shown = chat.view("s", policy=policy, now=later).messages
    assert SECRET in next(each for each in shown if each.get("tool_call_id") == "c2")["content"]
    for seq in (2, 3, 4, 7, *range(9, 69, 2)):
        chat.redact("s", seq, "leaked")
    assert SECRET not in repr(chat.view("s", policy=policy, now=later).messages)


def test_tokens_of_what_follows_are_fewer(chat: Store) -> None:
    """On all branches, by as many as went; a branch that begins before keeps its own."""
    chat.fork("s", 1, "early")
    chat.append("early", [said("Apart.")])
    before = {name: chat.view(name, now=NOW).stats for name in ("s", "fork", "early")}
    chat.redact("s", 2, "leaked")
    after = {name: chat.view(name, now=NOW).stats for name in ("s", "fork", "early")}
    assert before["early"] == after["early"]
    gone = before["s"].raw_tokens - after["s"].raw_tokens
    assert gone > 0
    assert before["fork"].raw_tokens - after["fork"].raw_tokens == gone
    assert chat.verify() == []


def counted(store: Store, seq: int) -> int:
    """Return how many counts there are of the messages at a position."""
    count = sqlalchemy.text("SELECT count(*) FROM token_counts WHERE seq = :seq")
    with store.database.reading() as connection:
        return connection.scalar(count, {"seq": seq}) or 0


def test_what_was_counted_of_it_is_forgotten(chat: Store) -> None:
    """Tokens that were counted exactly are those of the words; they are counted anew."""
    chat.count_tokens("s")
    assert counted(chat, 2) == 1
    chat.redact("s", 2, "leaked")
    assert counted(chat, 2) == 0


def test_summaries_of_it_are_named(chat: Store) -> None:
    """Those whose line ran through it; the others are not."""
    chat.append("s", [said("Go on."), {"role": "assistant", "content": "Yes."}] * 30)
    chat.append("fork", [said("Go on."), {"role": "assistant", "content": "Yes."}] * 30)
    policy = Policy.named("message_count")
    first = chat.compact("s", policy)
    other = chat.compact("fork", policy)
    assert (first.outcome, other.outcome) == ("applied", "applied")
    assert chat.redact("s", 2, "leaked").compactions == (first.id, other.id)
    assert chat.redact("fork", 6, "leaked").compactions == (other.id,)
    assert chat.redact("s", chat.session("s").head, "leaked").compactions == ()


@pytest.mark.parametrize("seq", [0, 7, -1, "2", None, 2.0])
def test_a_position_is_on_the_line(chat: Store, seq: Any) -> None:
    """Others are refused, and so is no reason."""
    with pytest.raises(PositionOutOfRange):
        chat.redact("s", seq, "why")
    with pytest.raises(SessionNotFound):
        chat.redact("nobody", 1, "why")
    for reason in ("", " ", None, "x" * 10_001, "\ud800"):
        with pytest.raises(InvalidValue, match="reason"):
            chat.redact("s", 2, reason)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="by must be"):
        chat.redact("s", 2, "why", by=5)  # type: ignore[arg-type]
    assert chat.redactions() == []
    assert [each.message for each in chat.messages("s")] == LINE


def test_what_was_said_does_not_come_back_by_its_id(chat: Store) -> None:
    """A client that says it again is given what is left; another id is another message."""
    chat.redact("s", 2, "leaked")
    (stored,) = chat.append("s", LINE[1])
    assert (stored.seq, stored.message["content"]) == (2, REDACTED_TEXT)
    assert chat.session("s").head == 6
    with pytest.raises(InvalidMessage):
        chat.append("s", said("another", id="m1"))


def test_an_import_does_not_bring_it_back(chat: Store, tmp_path: Path) -> None:
    """The file still says it, the store does not."""
    from store.importing import import_file

    file = tmp_path / "chat.json"
    file.write_text(json.dumps({"messages": LINE}))
    (first,) = import_file(chat, file).sessions
    chat.redact(first.id, 2, "leaked")
    (again,) = import_file(chat, file).sessions
    assert (again.appended, again.differs_at) == (0, None)
    assert chat.messages(first.id)[1].message["content"] == REDACTED_TEXT


def test_the_database_lets_nothing_else_change(chat: Store) -> None:
    """Before and after a redaction, of this message and of the others."""
    chat.redact("s", 2, "leaked")
    for change in (
        "UPDATE messages SET content = 'x' WHERE seq = 2",
        "UPDATE messages SET content = 'x' WHERE seq = 1",
        "UPDATE tool_calls SET arguments = 'x'",
    ):
        with (
            pytest.raises(StoreError, match="change"),
            chat.database.writing() as connection,
        ):
            connection.exec_driver_sql(change)


@pytest.mark.sqlite_only
def test_an_open_redaction_is_found(path: Path) -> None:
    """While it is open the row is not guarded, so that is no state to be left in."""
    with Store(path) as store:
        store.create_session("s")
        store.append("s", LINE)
        store.redact("s", 2, "leaked")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE redactions SET finished_at = NULL")
        connection.commit()
    with Store(path) as store:
        (found,) = store.verify()
    assert "redact" in found.problem


@pytest.mark.sqlite_only
def test_a_purge_leaves_no_byte(path: Path, tmp_path: Path) -> None:
    """Neither in the file nor beside it; copies are named until they are removed."""
    with Store(path) as store:
        store.create_session("s")
        store.append("s", LINE)
        kept = store.backup(tmp_path / "copy.db")
        for seq in (2, 3, 4):
            done = store.redact("s", seq, "leaked")
        assert (done.purged, done.copies) == (False, (kept.path,))
        assert store.purge(backups=True)
        assert {(each.purged, each.copies) for each in store.redactions()} == {(True, ())}
        files = [each.read_bytes() for each in tmp_path.iterdir() if each.is_file()]
        assert not any(SECRET.encode() in each for each in files)


@pytest.mark.sqlite_only
def test_a_restored_copy_says_what_is_back(path: Path, tmp_path: Path) -> None:
    """What was redacted since is to be redacted again."""
    from store.inspection import restore

    with Store(path) as store:
        store.create_session("s")
        store.append("s", LINE)
        store.redact("s", 4, "before")
        store.backup(tmp_path / "copy.db")
        store.redact("s", 2, "since")
    done = restore(tmp_path / "copy.db", path, replace=True)
    assert done.redacted == (("s", 2),)


def test_an_erasure_takes_its_redactions(chat: Store) -> None:
    """The reason may tell of somebody, too; what a fork still says stays redacted."""
    chat.redact("s", 2, f"because of {SECRET}")
    chat.redact("s", 6, f"because of {SECRET}")
    chat.delete_session("s")
    assert [each.seq for each in chat.redactions("fork")] == [2]
    chat.delete_session("fork")
    assert chat.redactions() == []
    assert SECRET not in everything(chat)
    assert chat.verify() == []


def test_it_is_done_whole_or_not_at_all(chat: Store) -> None:
    """What fails behind it takes it back."""
    before = everything(chat)
    with pytest.raises(ZeroDivisionError):
        chat.atomically(lambda t: (t.redact("s", 2, "leaked"), 1 / 0))
    assert everything(chat) == before


ODD: list[Callable[[], dict[str, Any]]] = [
    lambda: {"role": "user", "content": [{"type": "text", "text": SECRET}]},
    lambda: {"role": "assistant", "content": None, "tool_calls": [SECRET, {"id": "x"}]},
    lambda: {"role": "assistant", "tool_calls": [{"function": {"name": "bash"}}]},
    lambda: {"role": "tool", "content": [{"type": "text", "text": SECRET}]},
    lambda: {
        "role": "tool",
        "tool_call_ids": ["c1"],
        "content": f'{{"exit_code": 1, "x": "{SECRET}"}}',
    },
    lambda: {"role": "developer", "content": {"odd": SECRET}, "id": 7},
    lambda: {
        "role": "assistant",
        "content": SECRET,
        "reasoning": SECRET,
        "createdAt": "2026-01-01T00:00:00Z",
    },
    lambda: asked("c1", path="a.txt"),
    lambda: answered("c1"),
    lambda: said(),
]


@pytest.mark.no_cover
@given(
    st.lists(st.sampled_from(ODD), min_size=1, max_size=12),
    st.data(),
)
@pytest.mark.slow
def test_any_messages_can_be_redacted(odd: list[Callable[[], dict[str, Any]]], data: Any) -> None:
    """Of whatever shape, on whichever branch, in any order: all stays in order."""
    with Store(":memory:") as store:
        store.create_session("s")
        store.append("s", [each() for each in odd])
        at = data.draw(st.integers(0, store.session("s").head))
        store.fork("s", at, "f")
        store.append("f", [answered("c1"), said(), asked("c2", path="b.txt"), answered("c2")])
        names = st.sampled_from(["s", "f"])
        for name in data.draw(st.lists(names, min_size=1, max_size=6)):
            seq = data.draw(st.integers(1, store.session(name).head))
            store.redact(name, seq, "why")
            assert store.messages(name)[seq - 1].message["content"] == REDACTED_TEXT
        assert store.verify() == []
        store.view("f", now=NOW)


RESULTS = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": SECRET},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": SECRET, "is_error": True},
        {"type": "text", "text": SECRET},
    ],
}
USES = [
    {"type": "tool_use", "id": f"toolu_{n}", "name": "read_file", "input": {"path": "a"}}
    for n in (1, 2)
]


@pytest.mark.parametrize("seq", [3, 4, 5])
def test_another_text_in_place_of_a_whole_message(url: str, seq: int) -> None:
    """Given by any of its positions it is one message as before, paired and marked."""
    with Store(url) as store:
        store.create_session("s", now=NOW)
        store.append("s", [said("Hi", id="m1"), {"role": "assistant", "content": USES}, RESULTS])
        done = store.redact("s", seq, "a guard", replacement="I cannot say.", now=NOW)
        (message,) = (each.message for each in store.messages("s") if each.seq == 5)
        first, second, text = message["content"]
        assert (done.seq, message["role"]) == (5, "user")
        assert text == {"type": "text", "text": "I cannot say."}
        assert first["content"] == second["content"] == REDACTED_TEXT
        assert second["is_error"] is True
        assert [each.seq for each in store.redactions("s")] == [3, 4, 5]
        assert SECRET not in everything(store)
        assert store.view("s", format="anthropic").messages[-1]["content"][-1] == text
        assert store.verify() == []
        assert store.redact("s", seq, "again", replacement="Else.").reason == "a guard"
        assert store.messages("s", 5)[0].message == message


def test_another_text_in_place_of_a_chat_message(chat: Store) -> None:
    """Its role and ids stay; the text counts, and later messages of its id find it."""
    fewer = chat.view("s").stats.tokens
    chat.redact("s", 2, "a guard", replacement="I cannot say. " * 50)
    message = chat.message("s", "m2").message
    assert message == {
        "role": "user",
        "content": "I cannot say. " * 50,
        "redacted": "replaced",
        "id": "m2",
        "timestamp": NOW,
    }
    assert chat.view("s").stats.tokens > fewer
    chat.append("s", said("Other words.", id="m2"))
    assert (chat.session("s").head, chat.verify()) == (6, [])
    for wrong in (1, "\ud800", b""):
        with pytest.raises(InvalidValue):
            chat.redact("s", 1, "a guard", replacement=wrong)  # type: ignore[arg-type]
