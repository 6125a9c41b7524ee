"""Append to a line and read it.

Whole batches, ids, expected heads, ranges, and what results are linked to.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from store import Policy, Store, StoreError
from store.errors import (
    HeadMoved,
    InvalidMessage,
    InvalidValue,
    PositionOutOfRange,
    SessionNotFound,
)
from store.formats.call_names import WORD_ALPHABET

Message = dict[str, Any]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store of its own."""
    with Store(url, durability="normal") as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> str:
    """An empty session."""
    return store.create_session("s").id


def said(*texts: str, **more: Any) -> list[Message]:
    """User messages."""
    return [{"role": "user", "content": text, **more} for text in texts]


def called(*call_ids: Any, name: Any = "Read", **more: Any) -> Message:
    """An assistant message with calls of these ids."""
    calls = [
        {"id": i, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for i in call_ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def answered(call_id: Any, content: str = "x") -> Message:
    """A tool result."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def texts(store: Store, session: str, *args: Any, **options: Any) -> list[str]:
    """The contents of a line."""
    return [each.message["content"] for each in store.messages(session, *args, **options)]


def select(store: Store, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """Ask the database itself."""
    with store.database.reading() as connection:
        return [tuple(row) for row in connection.execute(text(statement), values)]


def links(store: Store, session: str) -> dict[int, tuple[int, int] | None]:
    """Which call each tool result of a line answers, by positions."""
    statement = (
        "SELECT seq, call_seq, call_position FROM tool_log WHERE session_id = :session ORDER BY seq"
    )
    rows = select(store, statement, session=session)
    return {seq: (call, place) if call is not None else None for seq, call, place in rows}


# --- append ---------------------------------------------------------------------------------------


def test_one_message_or_many(store: Store, session: str) -> None:
    """An object, a list and any other iterable; positions are dense and from 1."""
    assert [each.seq for each in store.append(session, said("a")[0])] == [1]
    assert [each.seq for each in store.append(session, said("b", "c"))] == [2, 3]
    assert [each.seq for each in store.append(session, iter(said("d")))] == [4]
    assert [each.seq for each in store.append(session, (m for m in said("e")))] == [5]
    assert texts(store, session) == ["a", "b", "c", "d", "e"]
    assert store.session(session).head == 5


def test_appending_nothing_is_nothing(store: Store, session: str) -> None:
    """An empty batch returns an empty list, if only the session is there."""
    assert store.append(session, []) == []
    assert store.session(session).head == 0
    with pytest.raises(SessionNotFound):
        store.append("nobody", [])


@pytest.mark.parametrize(
    "given", [None, 5, "text", b"bytes", [None], [["role", "user"]], {"content": "no role"}]
)
def test_what_is_no_message_is_refused(store: Store, session: str, given: Any) -> None:
    """With the store's own error, and nothing stored."""
    with pytest.raises(InvalidMessage):
        store.append(session, given)
    assert store.session(session).head == 0


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_batch_is_stored_whole_or_not_at_all(store: Store, session: str, place: int) -> None:
    """The error names the message; no row of the others is there, in any table."""
    batch: list[Any] = [called("c1"), answered("c1")]
    batch.insert(place, {"role": "user", "content": {1, 2}})
    with pytest.raises(InvalidMessage) as caught:
        store.append(session, batch)
    assert (caught.value.index, caught.value.key) == (place, "content")
    for table in ("messages", "tool_calls", "tool_results", "tool_result_paths"):
        assert select(store, f"SELECT count(*) FROM {table}") == [(0,)]
    assert store.session(session).head == 0


def test_an_iterable_that_fails_leaves_nothing(store: Store, session: str) -> None:
    """Its own error comes through, and the session can be written to."""

    def failing() -> Iterator[Message]:
        yield from said("a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.append(session, failing())
    assert store.append(session, said("b"))[0].seq == 1


def test_stored_at_is_the_moment_given(store: Store, session: str) -> None:
    """Ms since the epoch or an aware datetime.

    A naive one or nonsense is refused and stores nothing.
    """
    assert store.append(session, said("a"), now=10**12 + 17)[0].stored_at == 10**12 + 17
    assert (
        store.append(session, said("b"), now=datetime(2026, 1, 31, 1, tzinfo=UTC))[0].stored_at
        == 1_769_821_200_000
    )
    assert store.messages(session)[0].stored_at == 10**12 + 17
    for wrong in (datetime(2026, 1, 31), "yesterday", True, float("nan"), float("inf"), 10**30):  # noqa: DTZ001
        with pytest.raises(StoreError):
            store.append(session, said("c"), now=wrong)  # type: ignore[arg-type]
    assert texts(store, session) == ["a", "b"]


def test_what_is_returned_is_what_is_read(store: Store, session: str) -> None:
    """Position, message, moment and digest are the same."""
    batch = [
        *said("a"),
        called("c1", timestamp=5),
        answered("c1"),
        {"role": "user", "content": ["\ud83d\ude00", None]},
    ]
    assert store.append(session, batch) == store.messages(session)


def test_later_changes_of_the_callers_object_change_nothing(store: Store, session: str) -> None:
    """What is stored is what was given at the time."""
    message = {"role": "user", "content": ["a"]}
    store.append(session, message)
    message["content"].append("b")  # type: ignore[attr-defined]
    assert store.messages(session)[0].message == {"role": "user", "content": ["a"]}


# --- expected head --------------------------------------------------------------------------------


def test_an_expected_head_is_checked(store: Store, session: str) -> None:
    """Anything but the head is refused, and the error says where the head is."""
    store.append(session, said("a"), expected_head=0)
    with pytest.raises(HeadMoved) as caught:
        store.append(session, said("b"), expected_head=0)
    assert (caught.value.expected, caught.value.head) == (0, 1)
    for wrong in (2, -1):
        with pytest.raises(HeadMoved):
            store.append(session, said("b"), expected_head=wrong)
    assert texts(store, session) == ["a"]
    store.append(session, said("b"), expected_head=1)


def test_an_expected_head_that_is_no_position_is_refused(store: Store, session: str) -> None:
    """With the store's own error, and nothing stored."""
    for wrong in ("0", "x", 0.5, [0]):
        with pytest.raises(StoreError):
            store.append(session, said("a"), expected_head=wrong)  # type: ignore[arg-type]
    assert store.session(session).head == 0


def test_repeating_what_is_stored_needs_no_head(store: Store, session: str) -> None:
    """Who does not know whether a call came through can repeat it as it was."""
    batch = [*said("a", id="m1"), *said("b", id="m2")]
    stored = store.append(session, batch, expected_head=0)
    assert store.append(session, batch, expected_head=0) == stored
    with pytest.raises(HeadMoved):
        store.append(session, [*batch, *said("c")], expected_head=0)


# --- ids ------------------------------------------------------------------------------------------


def test_a_batch_half_of_which_is_known(store: Store, session: str) -> None:
    """Only the rest is stored; what is returned is in the order given."""
    store.append(session, [*said("a", id="m1"), *said("x")])
    returned = store.append(
        session, [*said("b", id="m2"), *said("a", id="m1"), *said("c"), *said("b", id="m2")]
    )
    assert [each.seq for each in returned] == [3, 1, 4, 3]
    assert texts(store, session) == ["a", "x", "b", "c"]


@pytest.mark.parametrize(
    "other", [{"content": "b"}, {"role": "system"}, {"timestamp": 5}, {"more": None}, {"name": ""}]
)
def test_one_id_is_one_message(store: Store, session: str, other: Message) -> None:
    """The same id with anything else in it is refused, within a batch and between batches."""
    first = said("a", id="m1")
    with pytest.raises(InvalidMessage) as caught:
        store.append(session, [*first, {**first[0], **other}])
    assert (caught.value.index, caught.value.key) == (1, "id")
    store.append(session, first)
    with pytest.raises(InvalidMessage) as caught:
        store.append(session, [*said("new"), {**first[0], **other}])
    assert (caught.value.index, caught.value.key) == (1, "id")
    assert texts(store, session) == ["a"]


def test_equal_messages_with_one_id_are_one_message(store: Store, session: str) -> None:
    """The order of an object's keys is no difference.

    A client that rebuilds its message repeats it all the same.
    """
    message = {"role": "user", "content": {"a": 1, "b": 2}, "x": 1, "y": 2, "id": "m1"}
    (stored,) = store.append(session, message)
    assert store.append(session, dict(reversed(message.items()))) == [stored]
    assert store.append(session, {**message, "content": {"b": 2, "a": 1}}) == [stored]


def test_ids_are_of_one_line(store: Store, session: str) -> None:
    """A fork knows what it shares, two forks and two trees know nothing of each other."""
    store.append(session, said("a", id="m1"))
    fork = store.fork(session).id
    assert store.append(fork, said("a", id="m1"))[0].seq == 1
    assert store.append(session, said("b", id="m2"))[0].seq == 2
    assert store.append(fork, said("other", id="m2"))[0].seq == 2
    assert texts(store, session) == ["a", "b"]
    assert texts(store, fork) == ["a", "other"]
    early = store.fork(session, at=0).id
    assert store.append(early, said("z", id="m1"))[0].seq == 1
    other = store.create_session().id
    assert store.append(other, said("y", id="m1"))[0].seq == 1


def test_ids_beyond_a_rewind_are_free(store: Store, session: str) -> None:
    """What is no longer on the line is stored again; undone, the line has the old one."""
    store.append(session, [*said("a", id="m1"), *said("b", id="m2")])
    store.rewind(session, to=1)
    assert [
        each.seq for each in store.append(session, [*said("a", id="m1"), *said("B", id="m2")])
    ] == [1, 2]
    assert texts(store, session) == ["a", "B"]
    store.undo_rewind(session)
    assert store.append(session, said("b", id="m2"))[0].seq == 2
    assert texts(store, session) == ["a", "b"]


def test_a_message_without_an_id_is_always_new(store: Store, session: str) -> None:
    """Nothing, null and the empty text are no ids."""
    for given in ({}, {"id": None}, {"id": ""}):
        store.append(session, said("a", **given) * 2)
    assert store.session(session).head == 6


class Word(str):
    """A text of a class of its own, as members of a ``str`` enumeration are.

    ``str()`` says something else.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "Word.A"

    def __conform__(self, _: object) -> str:  # what `sqlite3` asks for
        return "another"


def test_a_text_of_another_class_is_the_text_that_it_holds(store: Store, session: str) -> None:
    """So it is stored, counted, and known again."""
    store.append(
        session, [*said(Word("a"), id="m1"), {**called(Word("c1")), "content": Word("a b")}]
    )
    store.append(session, answered(Word("c1"), Word('{"stdout": "x"}')))
    roles = [{"role": Word("user"), "content": "x", "id": Word("m2"), "name": Word("n")}]
    assert store.append(session, roles)[0].message == store.message(session, "m2").message
    named = store.create_session(Word("word"), title=Word("title"), project_root=Word("/root"))
    assert named == store.session("word")
    assert store.append(session, said("a", id="m1"))[0].digest == store.messages(session)[0].digest
    assert store.verify() == []


# --- read -----------------------------------------------------------------------------------------


def test_ranges_are_inclusive_and_clipped(store: Store, session: str) -> None:
    """Beyond the line there is nothing; no range is an error."""
    store.append(session, said(*"abcde"))
    assert texts(store, session, 2, 4) == ["b", "c", "d"]
    assert texts(store, session, 4) == ["d", "e"]
    assert texts(store, session, 5, 5) == ["e"]
    assert texts(store, session, 4, 3) == []
    assert texts(store, session, 6) == []
    assert texts(store, session, 0, 99) == list("abcde")
    assert texts(store, session, at=2) == ["a", "b"]
    assert texts(store, session, 2, 5, at=3) == ["b", "c"]
    assert texts(store, session, at=0) == []


def test_a_negative_start_counts_from_the_end(store: Store, session: str) -> None:
    """The newest so many, or all where there are fewer.

    Of the line as it was at a position, and of a branch left.
    """
    assert store.messages(session, -3) == []
    store.append(session, said(*"abcde"))
    assert texts(store, session, -2) == ["d", "e"]
    assert texts(store, session, -5) == texts(store, session, -99) == list("abcde")
    assert texts(store, session, -4, 3) == ["b", "c"]
    assert texts(store, session, -2, 3) == []
    assert texts(store, session, -2, at=3) == ["b", "c"]
    assert texts(store, session, -1, at=0) == []
    left = store.rewind(session, to=2)
    assert texts(store, session, -1) == ["b"]
    assert texts(store, session, -1, branch=left.branch - 1) == ["e"]
    assert [each.seq for page in store.pages(session, -2, size=1) for each in page] == [1, 2]
    assert [each.seq for page in store.pages(session, -1, at=1) for each in page] == [1]


def test_positions_that_are_not_on_the_line_are_refused(store: Store, session: str) -> None:
    """As a state of the line, that is; the error says what there is."""
    store.append(session, said("a", "b"))
    for wrong in (3, -1, True, "1", 1.0):
        with pytest.raises(PositionOutOfRange, match="0 to 2"):
            store.messages(session, at=wrong)  # type: ignore[arg-type]
        with pytest.raises(PositionOutOfRange, match="0 to 2"):
            list(store.pages(session, at=wrong))  # type: ignore[arg-type]
    for start, stop in (
        ("1", None),
        (1, "2"),
        (1.5, None),
        (True, None),
        (-1.0, None),
        (1, -1),
        (-2, -1),
    ):
        with pytest.raises(InvalidValue):
            store.messages(session, start, stop)  # type: ignore[arg-type]
        with pytest.raises(InvalidValue):
            list(store.pages(session, start, stop))  # type: ignore[arg-type]


def test_pages_are_the_line(store: Store, session: str) -> None:
    """Whatever their size, and in part."""
    store.append(session, said(*"abcdefg"))
    for size in (1, 3, 7, 50):
        pages = list(store.pages(session, size=size))
        assert [each.message["content"] for page in pages for each in page] == list("abcdefg")
        assert max(map(len, pages)) <= size
    assert [each.seq for page in store.pages(session, 2, 6, at=5, size=2) for each in page] == [
        2,
        3,
        4,
        5,
    ]


def test_a_page_is_the_caller_s_alone(store: Store, session: str) -> None:
    """Nothing else refers to it, so that it is gone when the next one is read."""
    store.append(session, said("a", "b"))
    for page in store.pages(session, size=1):
        assert sys.getrefcount(page) == 2  # the name here, and the question
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(InvalidValue):
            list(store.pages(session, size=wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["nobody", "", None, 5, ["s"]])
def test_an_unknown_session_is_not_found(store: Store, session: str, wrong: Any) -> None:
    """Whatever is asked of it."""
    for ask in (
        store.messages,
        store.session,
        store.view,
        store.fork,
        store.undo_rewind,
        store.head_moves,
    ):
        with pytest.raises(SessionNotFound):
            ask(wrong)
    with pytest.raises(SessionNotFound):
        store.append(wrong, said("a"))
    with pytest.raises(SessionNotFound):
        store.rewind(wrong, to=0)


# --- raw rows never change ------------------------------------------------------------------------


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE messages SET content = 'changed'",
        "UPDATE messages SET extra = NULL",
        "UPDATE tool_calls SET arguments = ''",
        "DELETE FROM messages",
        "DELETE FROM tool_calls",
        "REPLACE INTO messages SELECT * FROM messages",
        "REPLACE INTO tool_calls SELECT * FROM tool_calls",
        "INSERT INTO messages SELECT * FROM messages WHERE true ON CONFLICT DO UPDATE SET content = 'changed'",
    ],
)
def test_the_database_itself_refuses_changes(
    store: Store, session: str, tmp_path: Path, statement: str
) -> None:
    """Also for those who come by another way, with no settings of ours (promise 1)."""
    store.append(session, [called("c1"), answered("c1")])
    before = store.messages(session)
    connection = sqlite3.connect(tmp_path / "chat.db")
    with pytest.raises(sqlite3.DatabaseError, match="raw rows"):
        connection.execute(statement)
    connection.close()
    assert store.messages(session) == before


# --- calls and results ----------------------------------------------------------------------------


def test_a_result_answers_the_nearest_open_call_of_its_id(store: Store, session: str) -> None:
    """Ids repeat in real life (A1.11)."""
    store.append(
        session, [called("c1"), answered("c1"), called("c1"), answered("c1"), answered("c1")]
    )
    assert links(store, session) == {2: (1, 0), 4: (3, 0), 5: None}


def test_an_open_call_waits_behind_a_newer_one(store: Store, session: str) -> None:
    """The nearest first, then the one before."""
    store.append(
        session, [called("c1"), called("c1"), answered("c1"), answered("c1"), answered("c1")]
    )
    assert links(store, session) == {3: (2, 0), 4: (1, 0), 5: None}


def test_of_two_calls_with_one_id_in_a_message_the_first_is_answered_first(
    store: Store, session: str
) -> None:
    """In a batch and across batches."""
    batch = [called("c1", "c2", "c1"), answered("c1"), answered("c1"), answered("c2")]
    store.append(session, batch)
    other = store.create_session().id
    for message in batch:
        store.append(other, message)
    assert links(store, session) == links(store, other) == {2: (1, 0), 3: (1, 2), 4: (1, 1)}


def test_a_result_before_its_call_answers_none(store: Store, session: str) -> None:
    """A call comes first."""
    store.append(session, [answered("c1"), called("c1")])
    assert links(store, session) == {1: None}


@pytest.mark.parametrize("missing", [None, "", 7, "\ud800"])
def test_calls_and_results_without_ids_find_each_other(
    store: Store, session: str, missing: Any
) -> None:
    """Whatever is no id that can be stored counts as none."""
    store.append(session, [called("c1", missing), answered(missing), answered("c1")])
    assert links(store, session) == {2: (1, 1), 3: (1, 0)}


LONG = "x" * 90
"""An id that no provider takes."""


def sent_ids(store: Store, session: str, name: str) -> list[str]:
    """The ids of the calls of the last answer, as a request in a format has them."""
    *_, before, last = store.view(session, Policy(unanswered="keep"), format=name).messages
    if "call_id" in last:
        return [before["call_id"], last["call_id"]]
    calls = last.get("content") or last.get("tool_calls") or last["parts"]
    return [call["functionCall"]["id"] if "functionCall" in call else call["id"] for call in calls]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", ["openai", "responses", "anthropic", "gemini"])
@pytest.mark.parametrize("own", ["functions.Read:0", LONG, "a b", None])
def test_a_result_may_come_under_the_id_that_was_sent(
    store: Store, session: str, name: str, own: str | None
) -> None:
    """Which is another than the call's own: it stays as it came, and is the call's."""
    results: list[Message] = []
    for number in range(3):
        store.append(session, [*said("go"), called(own, "other")])
        sent = sent_ids(store, session, name)[0]
        assert sent != own or number == 0
        results.append(answered(sent))
        store.append(session, [results[-1], answered("other")])
    calls = {seq: call for seq, call in links(store, session).items() if seq % 4 == 3}
    assert calls == {seq: (seq - 1, 0) for seq in (3, 7, 11)}
    assert [each.message for each in store.messages(session)][2::4] == results
    other = store.create_session().id
    store.append(other, [each.message for each in store.messages(session)])
    assert links(store, other) == links(store, session)
    assert not any(entry.rule for entry in store.view(session, format=name).entries)
    assert store.verify() == []


def test_results_of_several_open_calls_without_ids(store: Store, session: str) -> None:
    """Each by the id that its call was sent under, in one batch as in many."""
    asked = [*said("go"), called(None), called(None)]
    for message in asked:
        store.append(session, message)
    results = [answered(each.id) for each in store.open_calls(session)]
    for result in results:
        store.append(session, result)
    assert links(store, session) == {4: (2, 0), 5: (3, 0)}
    other = store.create_session().id
    store.append(other, [*asked, *results])
    assert links(store, other) == links(store, session)
    assert store.verify() == []


def test_an_id_that_was_sent_is_looked_for_near_its_result(store: Store, session: str) -> None:
    """Further back it may be anything; and no name of another call is taken for it."""
    sent = WORD_ALPHABET.fitted("a b")
    store.append(session, called("a b"))
    store.append(session, said(*"x" * 200))
    store.append(session, answered(sent))
    store.append(session, called("a b"))
    store.append(session, [answered("a b-1"), answered("call_1"), answered(f"{sent}-x")])
    assert links(store, session) == dict.fromkeys((202, 204, 205, 206))
    store.append(session, [answered(f"{sent}-2-3"), answered(f"{sent}-2-3")])
    assert links(store, session)[207] == (203, 0)
    assert links(store, session)[208] is None
    assert store.verify() == []


def test_a_call_is_found_however_far_back(store: Store, session: str) -> None:
    """Across batches and forks, behind hundreds of other calls."""
    store.append(session, [called("old", name="Bash")])
    for i in range(30):
        store.append(
            session, [m for j in range(20) for m in (called(f"c{i}.{j}"), answered(f"c{i}.{j}"))]
        )
    fork = store.fork(session).id
    for line in (session, fork):
        store.append(line, answered("old"))
        assert links(store, line)[1202] == (1, 0)
    assert select(store, "SELECT DISTINCT tool_name FROM tool_results WHERE seq = 1202") == [
        ("Bash",)
    ]


def test_forks_answer_a_shared_call_each_for_itself(store: Store, session: str) -> None:
    """An answer on one line leaves the call open on another; a rewind opens it again."""
    store.append(session, called("c1"))
    fork = store.fork(session).id
    for line in (session, fork):
        store.append(line, answered("c1"))
        assert links(store, line) == {2: (1, 0)}
    store.append(fork, answered("c1"))
    assert links(store, fork) == {2: (1, 0), 3: None}
    store.rewind(fork, to=1)
    store.append(fork, answered("c1"))
    assert links(store, fork) == {2: (1, 0)}


def test_the_nearest_open_call_is_nearest_across_forks(store: Store, session: str) -> None:
    """What a line shares with others is further back than what is its own."""
    store.append(session, called("c1"))
    for _ in range(3):
        session = store.fork(session).id
        store.append(session, called("c1"))
    for position in (4, 3, 2, 1):
        store.append(session, answered("c1"))
        assert links(store, session)[store.session(session).head] == (position, 0)


def test_only_what_can_be_sent_as_a_call_is_answered(store: Store, session: str) -> None:
    """An entry that is no object, or a call of anyone but an assistant, takes no result from a
    call.
    """
    nothing: list[Any] = [None, "call", [], 5]
    store.append(
        session, [called(None), {"role": "assistant", "tool_calls": nothing}, answered(None)]
    )
    assert links(store, session) == {3: (1, 0)}
    other = store.create_session().id
    store.append(other, [called("c1"), {**called("c1"), "role": "user"}, answered("c1")])
    assert links(store, other) == {3: (1, 0)}


def test_the_tool_is_named_by_the_call_else_by_the_result(store: Store, session: str) -> None:
    """An empty name is none."""
    store.append(
        session,
        [
            called("c1", name="Read"),
            {**answered("c1"), "name": "Bash"},
            called("c2", name=""),
            {**answered("c2"), "name": "Bash"},
            {**answered("c3"), "name": "Bash"},
            called("c4", name=""),
            answered("c4"),
        ],
    )
    assert select(store, "SELECT tool_name FROM tool_results ORDER BY seq") == [
        ("Read",),
        ("Bash",),
        ("Bash",),
        (None,),
    ]


@pytest.mark.parametrize("kind", ["tool_use", "tool_result", "input_text", "toolCall"])
def test_parts_of_another_shape_are_noted_once(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """At WARNING; they are stored as they are."""
    monkeypatch.setattr("store.history.append._GIVEN_WARNINGS", set())
    made = store.create_session().id
    message = {"role": "assistant", "content": [{"type": kind, "text": "x"}, {"type": kind}]}
    store.append(made, [message, message])
    assert [each.message for each in store.messages(made)] == [message, message]
    (record,) = [each for each in caplog.records if each.name == "store.history.append"]
    assert record.levelname == "WARNING"
    assert repr(kind) in record.getMessage()


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("Read", '{"path": "a', 1),
        ("Read", "a.py", 1),
        ("Read", '{"path": "a.py"}', 0),
        ("Read", {"path": "a.py"}, 0),
        ("Read", None, 0),
        ("apply_patch", "*** Begin Patch", 0),
    ],
)
def test_arguments_that_name_no_file_are_noted_once(
    store: Store,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    arguments: Any,
    told: int,
) -> None:
    """A1.10: of a tool that reads files; other tools may take what they like."""
    monkeypatch.setattr("store.history.append._GIVEN_WARNINGS", set())
    function = {"name": name, "arguments": arguments}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": function}],
    }
    store.append(store.create_session().id, [message, message])
    noted = [each for each in caplog.records if each.name == "store.history.append"]
    assert len(noted) == told


def test_parts_of_the_chat_shape_are_not_noted(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts and pictures are what a content is made of."""
    monkeypatch.setattr("store.history.append._GIVEN_WARNINGS", set())
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}, "b"]
    store.append(store.create_session().id, {"role": "user", "content": parts})
    assert not [each for each in caplog.records if each.name == "store.history.append"]
