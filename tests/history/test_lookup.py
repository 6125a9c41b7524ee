"""Messages by id, by position, and by turn: on a line, beside it, and over the whole store."""

from __future__ import annotations

from typing import Any

import pytest

from store import Store
from store.errors import InvalidValue, MessageNotFound, PositionOutOfRange, SessionNotFound
from store.records import Found

NOW = 1_800_000_000_000


def said(*texts: str, role: str = "user") -> list[dict[str, Any]]:
    """Messages with these texts, which are their ids, too."""
    return [{"role": role, "content": text, "id": text} for text in texts]


@pytest.fixture
def session(store: Store) -> str:
    """A session whose line is a, b, c; it left d."""
    session_id = store.create_session().id
    store.append(session_id, said("a", "b", "d"))
    store.replace(session_id, 2, said("c"))
    return session_id


def found_in(store: Store, message_id: str, session: str) -> list[str]:
    """What is read where a message was found: whatever is told of the place is right."""
    found = store.find(message_id, session)
    assert {each.session_id for each in found} <= {session}
    assert [each for each in store.find(message_id) if each.session_id == session] == found
    return [
        store.messages(session, each.seq, each.seq, branch=each.branch)[0].message["content"]
        for each in found
    ]


def test_a_message_is_found_on_the_line_and_beside_it(store: Store, session: str) -> None:
    """What the session left is on the branch that it left."""
    head = store.session(session).branch
    for text in "abcd":
        assert found_in(store, text, session) == [text]
        branch = store.find(text, session)[0].branch
        assert (branch == head) is (text != "d")
    assert store.find("e", session) == store.find("\0") == []


def test_forks_have_what_they_continue(url: str) -> None:
    """The last active first; after the source was erased the fork has what it kept."""
    with Store(url, durability="normal") as store:
        store.create_session("s", now=NOW)
        store.append("s", said("a", "b"), now=NOW)
        store.fork("s", 1, "f", now=NOW + 1)
        store.fork("f", 1, "g", now=NOW + 2)
        store.append("g", said("c"), now=NOW + 3)
        store.create_session("other", now=NOW + 4)
        store.append("other", said("a"), now=NOW + 4)
        assert [each.session_id for each in store.find("a")] == ["other", "g", "f", "s"]
        assert store.find("b") == [Found("s", 1, 2)]
        for each in "sfg":
            assert found_in(store, "a", each) == ["a"]
        store.delete_session("s")
        assert [each.session_id for each in store.find("a")] == ["other", "g", "f"]
        assert (store.find("b"), found_in(store, "c", "g")) == ([], ["c"])


def test_messages_by_the_beginning_of_their_ids(store: Store) -> None:
    """In the order of the ids by code points, of the whole store, an owner, or a session."""
    wanted = ["a", "a/", "a/1", "a/10", "a/2", "a/B", "a/_", "a/b", "a/ä", "a/😀", "a0", "b"]
    store.create_session("s", owner="ann", now=NOW)
    store.append("s", said(*sorted(wanted, reverse=True)), now=NOW)
    store.fork("s", session_id="f", now=NOW + 1)
    store.append("f", said("a/3"), now=NOW + 2)

    def read(prefix: str, session: str | None = None, **options: Any) -> list[Any]:
        found = store.find(session=session, prefix=prefix, **options)
        return [store.message(each.session_id, each.seq).message["id"] for each in found]

    assert read("", "s") == wanted
    assert read("a/", "s") == wanted[1:-2]
    assert read("a/", owner="bob") == []
    assert [*dict.fromkeys(read("a/", owner="ann"))] == read("a/", "f")
    assert [each.session_id for each in store.find(prefix="a/1")] == ["f", "s"] * 2
    assert read("a/3") == ["a/3"]
    assert read("a/3", "s") == read("a/c") == []
    with pytest.raises(SessionNotFound):
        store.find(prefix="a", session="none")
    for wrong in ({}, {"message_id": "a", "prefix": "a"}, {"prefix": 1}, {"prefix": "\ud800"}):
        with pytest.raises(InvalidValue):
            store.find(**wrong)  # type: ignore[arg-type]


def test_an_id_may_be_there_often(store: Store, session: str) -> None:
    """Each place is told, and the newest on the line is the message."""
    store.append(session, said("a", "a"), dedupe="off")
    assert [each.seq for each in store.find("a", session)] == [5, 4, 1]
    assert store.message(session, "a").seq == 5
    store.rewind(session, 3)
    assert store.message(session, "a").seq == 1


def test_a_message_by_position_or_id(store: Store, session: str) -> None:
    """On the line alone; what is not there is an error that says so."""
    line = store.messages(session)
    assert [store.message(session, seq) for seq in (1, 2, 3)] == line
    assert [store.message(session, text) for text in "abc"] == line
    for wrong in (0, 4, -1, True, None, 1.0):
        with pytest.raises(PositionOutOfRange):
            store.message(session, wrong)  # type: ignore[arg-type]
    for text in ("d", "", "a\0", "\ud800"):
        with pytest.raises(MessageNotFound):
            store.message(session, text)
    for attempt in (store.message, store.turns):
        with pytest.raises(SessionNotFound):
            attempt(*("none", 1)[: 2 if attempt == store.message else 1])
    with pytest.raises(SessionNotFound):
        store.find("a", "none")


def test_turns_of_a_line(store: Store) -> None:
    """Across forks, too; what comes before the first user message is in no turn."""
    session = store.create_session().id
    parts = [{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}]
    store.append(session, {"role": "system", "content": "rules"})
    assert store.turns(session) == []
    store.append(session, {"role": "user", "content": "hello", "timestamp": NOW}, now=NOW + 9)
    store.append(session, {"role": "assistant", "content": "yes"}, now=NOW)
    fork = store.fork(session).id
    store.append(fork, {"role": "assistant", "content": "and"}, now=NOW)
    store.append(fork, {"role": "user", "content": parts}, now=NOW + 1)
    assert [tuple(each) for each in store.turns(session)] == [(1, 2, 3, "hello", 2, NOW)]
    assert [tuple(each) for each in store.turns(fork)] == [
        (1, 2, 4, "hello", 3, NOW),
        (2, 5, 5, "two parts", 1, NOW + 1),
    ]
    first, last = store.turns(fork)
    assert store.turns(fork, 1, 1) == store.turns(fork, stop=1) == [first]
    assert store.turns(fork, 2) == store.turns(fork, -1) == store.turns(fork, 2, 9) == [last]
    assert store.turns(fork, 3) == store.turns(fork, 2, 1) == store.turns(fork, 10**30) == []
    with pytest.raises(InvalidValue):
        store.turns(fork, "2")  # type: ignore[arg-type]


def test_a_session_is_named_by_its_id(store: Store, session: str) -> None:
    """Who gives the session itself is told so."""
    with pytest.raises(SessionNotFound, match="in this store; give its id, a text"):
        store.messages(store.session(session))  # type: ignore[arg-type]
