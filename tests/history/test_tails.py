"""The end of a line: replaced, or taken off message by message, also by several at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from store import Conflict, Store
from store.errors import InvalidMessage, NothingToUndo, PositionOutOfRange, SessionNotFound


def said(*texts: str) -> list[dict[str, Any]]:
    """Messages with these texts."""
    return [{"role": "user", "content": text} for text in texts]


def texts(store: Store, session: str) -> str:
    """The texts of a line."""
    return "".join(each.message["content"] for each in store.messages(session))


@pytest.fixture
def session(store: Store) -> str:
    """A session whose line is a, b, c."""
    session_id = store.create_session().id
    store.append(session_id, said("a", "b", "c"))
    return session_id


@pytest.mark.parametrize(("after", "line"), [(0, "xy"), (1, "axy"), (3, "abcxy")])
def test_other_messages_follow(store: Store, session: str, after: int, line: str) -> None:
    """From any position on; the revision is that of the whole change."""
    replaced = store.replace(session, after, said("x", "y"))
    assert replaced == store.session(session)
    assert (replaced.head, texts(store, session)) == (after + 2, line)
    store.append(session, said("z"), expected=replaced.revision)


def test_other_messages_may_be_of_any_format(store: Store, session: str) -> None:
    """As those that are appended."""
    blocks = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    store.replace(session, 1, [blocks], format="anthropic")
    parts = {"role": "user", "parts": [{"text": "x"}]}
    assert store.replace(session, 2, parts, format="gemini").head == 3
    assert [each.message for each in store.messages(session, start=2)] == [blocks, parts]
    with pytest.raises(InvalidMessage):
        store.replace(session, 2, parts, format="anthropic")
    assert store.session(session).head == 3


def test_what_was_replaced_comes_back(store: Store, session: str) -> None:
    """By one undo, however many messages there were."""
    store.replace(session, 1, said("x", "y"))
    store.undo_rewind(session)
    assert texts(store, session) == "abc"
    store.replace(session, 3, said("d"))
    with pytest.raises(NothingToUndo):
        store.undo_rewind(session)


def test_a_message_that_was_replaced_may_come_again(store: Store, session: str) -> None:
    """Its id is no longer on the line; one that is there is not stored twice."""
    store.append(session, [{**said("d")[0], "id": "m"}])
    store.replace(session, 3, [{**said("D")[0], "id": "m"}])
    assert texts(store, session) == "abcD"
    store.replace(session, 4, [{**said("D")[0], "id": "m"}, *said("e")])
    assert texts(store, session) == "abcDe"


def test_nothing_is_replaced_where_it_cannot_be_done(store: Store, session: str) -> None:
    """The head stays, and there is nothing to undo."""
    before = store.session(session)
    refused: list[tuple[type[Exception], Callable[[], object]]] = [
        (PositionOutOfRange, lambda: store.replace(session, 4, said("x"))),
        (PositionOutOfRange, lambda: store.replace(session, -1, said("x"))),
        (InvalidMessage, lambda: store.replace(session, 1, [*said("x"), {"role": 5}])),
        (Conflict, lambda: store.replace(session, 1, said("x"), expected="of another")),
        (Conflict, lambda: store.pop(session, expected="of another")),
        (SessionNotFound, lambda: store.replace("none", 0, said("x"))),
        (SessionNotFound, lambda: store.pop("none")),
    ]
    for error, attempt in refused:
        with pytest.raises(error):
            attempt()
    assert store.session(session) == before


def test_messages_are_taken_off_from_the_end(store: Store, session: str) -> None:
    """Each as it was stored, then none; the undoing goes the same way back."""
    stored = store.messages(session)
    known = store.session(session).revision
    assert store.pop(session, expected=known) == stored[2]
    assert [store.pop(session) for _ in range(3)] == [stored[1], stored[0], None]
    assert store.session(session).head == 0
    for expected in ("a", "ab", "abc"):
        store.undo_rewind(session)
        assert texts(store, session) == expected


def test_two_processes_never_take_the_same(url: str, fork: Callable[..., Any]) -> None:
    """Of 60 messages 60 are taken, each once, while others are put back."""
    count = 30
    with Store(url, durability="normal") as store:
        store.create_session("s")
        store.append("s", said(*map(str, range(count))))

    def take(name: str) -> list[str]:
        taken = []
        with Store(url, durability="normal") as store:
            for number in range(count // 2):
                store.append("s", said(f"{name}{number}"))
            while last := store.pop("s"):
                taken.append(last.message["content"])
        return taken

    children = [fork(take, name) for name in "ab"]
    taken = [text for child in children for text in child.result()]
    assert len(taken) == len({*taken}) == 2 * count
    assert {*map(str, range(count))} <= {*taken}
