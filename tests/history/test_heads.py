"""Fork, rewind, undo: where sessions point, what their lines are, and what a move costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import inspect

from store import Store
from store.database.schema import METADATA
from store.errors import InvalidValue, NothingToUndo, PositionOutOfRange, SessionExists


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store of its own."""
    with Store(url, durability="normal") as opened:
        yield opened


def say(store: Store, session: str, texts: str) -> None:
    """Append one message for each letter."""
    store.append(session, [{"role": "user", "content": text} for text in texts])


def line(store: Store, session: str, **options: Any) -> str:
    """The letters of a line; its head is their number."""
    read = "".join(each.message["content"] for each in store.messages(session, **options))
    if not options:
        assert store.session(session).head == len(read)
    return read


def begun(store: Store, texts: str, session_id: str = "s", **options: Any) -> str:
    """A session with this line."""
    store.create_session(session_id, **options)
    say(store, session_id, texts)
    return session_id


def rows(store: Store) -> dict[str, int]:
    """How many rows each table has; parts of a divided table are counted with it."""
    with store.database.reading() as connection:
        return {
            name: connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one()
            for name in inspect(connection).get_table_names()
            if name in METADATA.tables
        }


# --- fork -----------------------------------------------------------------------------------------


def test_a_fork_goes_its_own_way(store: Store) -> None:
    """Both lines share what was before and nothing of what comes after."""
    begun(store, "abc")
    fork = store.fork("s", at=2, session_id="f")
    assert (fork.id, fork.head, fork.forked_from, fork.forked_at) == ("f", 2, "s", 2)
    say(store, "f", "XY")
    say(store, "s", "de")
    assert (line(store, "s"), line(store, "f")) == ("abcde", "abXY")


@pytest.mark.parametrize(("at", "expected"), [(None, "abc"), (3, "abc"), (1, "a"), (0, "")])
def test_a_fork_begins_anywhere(store: Store, at: int | None, expected: str) -> None:
    """At the head, in the middle, and before the first message."""
    begun(store, "abc")
    fork = store.fork("s", at=at).id
    assert line(store, fork) == expected
    say(store, fork, "x")
    assert line(store, fork) == expected + "x"
    assert line(store, "s") == "abc"


def test_a_fork_takes_over_what_a_session_is(store: Store) -> None:
    """Its project, metadata and title, unless another title is given; its times are new."""
    begun(store, "ab", title="T", project_root="/p", metadata={"k": [1]}, now=10**12 + 1)
    fork = store.fork("s", now=10**12 + 5)
    assert (fork.title, fork.project_root, fork.metadata) == ("T", "/p", {"k": [1]})
    assert (fork.created_at, fork.updated_at) == (10**12 + 5, 10**12 + 5)
    assert store.fork("s", title="U").title == "U"
    assert store.fork("s", metadata={"l": 2}, project_root="/p").metadata == {"l": 2}
    assert store.fork("s", metadata={}).metadata == {}
    with pytest.raises(InvalidValue, match="project root of its source"):
        store.fork("s", project_root="/q")


def test_a_fork_that_is_handed_over_takes_nothing_along(store: Store) -> None:
    """Title, metadata and project root are private: another owner has what is given in the call."""
    begun(store, "ab", title="T", project_root="/p", metadata={"k": 1}, owner="ann")
    bare = store.fork("s", owner="bob")
    assert (bare.owner, bare.title, bare.project_root, bare.metadata) == ("bob", None, None, {})
    given = {"title": "U", "project_root": "/q", "metadata": {"l": 2}}
    made = store.fork("s", owner="bob", **given)  # type: ignore[arg-type]
    assert {name: getattr(made, name) for name in given} == given
    assert store.sessions(owner="bob", where={"k": 1}) == []
    again = store.fork(made.id, at=1)
    assert (again.owner, again.title, again.project_root) == ("bob", "U", "/q")
    back = store.fork(bare.id, owner="ann")
    assert (back.owner, back.title, back.project_root, back.metadata) == ("ann", None, None, {})
    same = store.fork("s", owner="ann")
    assert (same.title, same.project_root, same.metadata) == ("T", "/p", {"k": 1})
    assert store.verify() == []


def test_a_fork_that_cannot_be_made_leaves_nothing(store: Store) -> None:
    """A taken id, a position that is not there, an impossible id or title."""
    begun(store, "ab")
    store.create_session("taken")
    before = rows(store)
    with pytest.raises(SessionExists):
        store.fork("s", session_id="taken")
    with pytest.raises(SessionExists):
        store.fork("s", session_id="s")
    for wrong in (3, -1, True, "1", 0.5):
        with pytest.raises(PositionOutOfRange):
            store.fork("s", at=wrong)  # type: ignore[arg-type]
    for options in (
        {"session_id": ""},
        {"session_id": "a\0"},
        {"session_id": 5},
        {"title": "\ud800"},
    ):
        with pytest.raises(InvalidValue):
            store.fork("s", **options)  # type: ignore[arg-type]
    assert rows(store) == before


def test_a_fork_of_a_rewound_session_is_of_its_present_line(store: Store) -> None:
    """What the rewind took off is not there; the fork has no rewind to undo."""
    begun(store, "abc")
    store.rewind("s", to=1)
    say(store, "s", "x")
    fork = store.fork("s").id
    assert line(store, fork) == "ax"
    with pytest.raises(NothingToUndo):
        store.undo_rewind(fork)
    store.undo_rewind("s")
    assert (line(store, "s"), line(store, fork)) == ("abc", "ax")


def test_forks_of_forks(store: Store) -> None:
    """Thirty deep, each from another position of the one before.

    Every line is right, whole and in part.
    """
    begun(store, "0123456789", "f0")
    expected = {"f0": "0123456789"}
    for depth in range(1, 31):
        parent = expected[f"f{depth - 1}"]
        at = len(parent) - depth % 4
        store.fork(f"f{depth - 1}", at=at, session_id=f"f{depth}")
        letters = chr(ord("a") + depth % 26) * (depth % 3 + (depth % 4 > 1) * 2)
        say(store, f"f{depth}", letters)
        expected[f"f{depth}"] = parent[:at] + letters
    for session, text in expected.items():
        assert line(store, session) == text
        for start in range(1, len(text) + 1, 3):
            assert line(store, session, start=start, stop=start + 5) == text[start - 1 : start + 5]
            assert line(store, session, at=start) == text[:start]


def test_a_chain_of_forks_that_add_nothing_costs_nothing_to_read(store: Store) -> None:
    """A branch hangs on the ancestor that really holds its position, so empty ones between are
    skipped.
    """
    begun(store, "abc", "f0")
    for depth in range(1, 20):
        store.fork(f"f{depth - 1}", session_id=f"f{depth}")
    with store.database.reading() as connection:
        parents = connection.exec_driver_sql(
            "SELECT DISTINCT parent_branch FROM branches WHERE branch > 1"
        ).scalars()
        assert list(parents) == [1]
    assert line(store, "f19") == "abc"


# --- rewind and undo ------------------------------------------------------------------------------


def test_a_rewind_takes_off_and_undoing_brings_back(store: Store) -> None:
    """What was said in between stays stored, off the line."""
    begun(store, "abcde")
    assert store.rewind("s", to=2).head == 2
    assert line(store, "s") == "ab"
    say(store, "s", "XY")
    assert line(store, "s") == "abXY"
    assert store.undo_rewind("s").head == 5
    assert line(store, "s") == "abcde"
    say(store, "s", "f")
    assert line(store, "s") == "abcdef"


def test_rewinding_to_before_the_first_message(store: Store) -> None:
    """An empty line, that can be written and gone back from."""
    begun(store, "ab")
    store.rewind("s", to=0)
    assert line(store, "s") == ""
    say(store, "s", "x")
    assert line(store, "s") == "x"
    store.undo_rewind("s")
    assert line(store, "s") == "ab"


def test_rewinds_are_undone_in_turn(store: Store) -> None:
    """The last first, each to the line that it was taken from, until there is none."""
    begun(store, "abcde")
    store.rewind("s", to=4)
    say(store, "s", "X")
    store.rewind("s", to=5 - 2)
    store.rewind("s", to=1)
    say(store, "s", "Y")
    assert line(store, "s") == "aY"
    found = []
    for _ in range(3):
        store.undo_rewind("s")
        found.append(line(store, "s"))
    assert found == ["abc", "abcdX", "abcde"]
    with pytest.raises(NothingToUndo, match="'s'"):
        store.undo_rewind("s")
    assert line(store, "s") == "abcde"


def test_after_undoing_a_new_rewind_can_be_undone(store: Store) -> None:
    """The one that was undone is over."""
    begun(store, "abc")
    store.rewind("s", to=1)
    store.undo_rewind("s")
    store.rewind("s", to=2)
    store.undo_rewind("s")
    assert line(store, "s") == "abc"
    with pytest.raises(NothingToUndo):
        store.undo_rewind("s")


def test_rewinding_to_the_head_is_nothing(store: Store) -> None:
    """No move, no row, nothing to undo."""
    begun(store, "abc")
    before = rows(store)
    assert store.rewind("s", to=3).head == 3
    assert rows(store) == before
    with pytest.raises(NothingToUndo):
        store.undo_rewind("s")


def test_a_position_that_is_not_there_is_refused(store: Store) -> None:
    """With where the line ends."""
    begun(store, "abc")
    for wrong in (4, -1, True, "1", 1.0):
        with pytest.raises(PositionOutOfRange):
            store.rewind("s", to=wrong)  # type: ignore[arg-type]
    assert line(store, "s") == "abc"


def test_a_rewind_without_a_position_is_refused(store: Store) -> None:
    """None is no position to rewind to: it must not pass for the head without a word."""
    begun(store, "abc")
    with pytest.raises(PositionOutOfRange):
        store.rewind("s", to=None)  # type: ignore[arg-type]


def test_a_rewind_of_one_line_leaves_the_others(store: Store) -> None:
    """Forks from beyond the position keep their lines."""
    begun(store, "abcd")
    fork = store.fork("s", at=4).id
    store.rewind("s", to=1)
    say(store, "s", "x")
    say(store, fork, "e")
    assert (line(store, "s"), line(store, fork)) == ("ax", "abcde")
    store.rewind(fork, to=2)
    say(store, fork, "y")
    assert (line(store, "s"), line(store, fork)) == ("ax", "aby")
    store.undo_rewind(fork)
    store.undo_rewind("s")
    assert (line(store, "s"), line(store, fork)) == ("abcd", "abcde")


# --- what a move costs, and its log ---------------------------------------------------------------


@pytest.mark.parametrize("length", [4, 400])
def test_moves_touch_no_message(store: Store, length: int) -> None:
    """A fork is a branch, a session and two more rows; a rewind a branch and a log entry.

    An undo a log entry.
    """
    begun(store, "x" * length)
    counts = [rows(store)]
    for move in (
        lambda: store.fork("s", at=2),
        lambda: store.rewind("s", to=2),
        lambda: store.undo_rewind("s"),
    ):
        move()
        counts.append(rows(store))
    added = [
        {name: after[name] - before[name] for name in after if after[name] != before[name]}
        for before, after in pairwise(counts)
    ]
    of_branch = {"branches": 1} if store.database.path else {"branches": 1, "ancestors": 1}
    assert added == [
        {**of_branch, "sessions": 1, "session_ids": 1, "head_moves": 1},
        {**of_branch, "head_moves": 1},
        {"head_moves": 1},
    ]


def test_every_move_is_logged(store: Store) -> None:
    """From where, to where and when, oldest first, each session its own."""
    begun(store, "abcde")
    store.rewind("s", to=3, now=10**12 + 10)
    say(store, "s", "x")
    store.rewind("s", to=1, now=10**12 + 11)
    store.undo_rewind("s", now=10**12 + 12)
    fork = store.fork("s", at=2, now=10**12 + 13).id
    store.undo_rewind("s", now=10**12 + 14)
    assert [move[:5] for move in store.head_moves("s")] == [
        (1, "rewind", 5, 3, 10**12 + 10),
        (2, "rewind", 4, 1, 10**12 + 11),
        (3, "undo", 1, 4, 10**12 + 12),
        (4, "undo", 4, 5, 10**12 + 14),
    ]
    assert [move[:5] for move in store.head_moves(fork)] == [(1, "fork", 4, 2, 10**12 + 13)]
    moved = [store.session(name).updated_at - 10**12 for name in ("s", fork)]
    assert moved == [14, 13]
