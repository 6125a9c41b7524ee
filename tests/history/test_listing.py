"""Lists of sessions: whose, in which order, page by page, and which of them are put away."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Conflict, Session, Store
from store.errors import InvalidValue, SessionNotFound
from store.history import append

NOW = 1_800_000_000_000


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store of its own."""
    with Store(url, durability="normal") as opened:
        yield opened


def ids(store: Store, **asked: Any) -> list[str]:
    """The ids of a list, which are as many as are counted."""
    found = [each.id for each in store.sessions(**asked)]
    asked.pop("order", None)
    assert store.count_sessions(**asked) == len(found)
    return found


def created(store: Store, *session_ids: str, **options: Any) -> None:
    """Sessions, one after the other."""
    for number, session_id in enumerate(session_ids):
        store.create_session(session_id, now=NOW + number, **options)


def test_an_owner_has_sessions(store: Store) -> None:
    """What is nobody's is in the list of all only."""
    created(store, "a", "b", owner="ann")
    created(store, "c", owner="bob")
    created(store, "d")
    assert store.session("a").owner == "ann"
    assert store.session("d").owner is None
    assert ids(store, owner="ann") == ["b", "a"]
    assert ids(store, owner="bob") == ["c"]
    assert ids(store, owner="nobody") == ids(store, owner="") == []
    assert sorted(ids(store)) == ["a", "b", "c", "d"]


def test_lists_by_creation_do_not_change(store: Store) -> None:
    """Where those by activity do."""
    created(store, "a", "b", "c", owner="ann")
    store.append("a", {"role": "user", "content": "x"}, now=NOW + 9)
    for owner in ("ann", None):
        assert ids(store, owner=owner) == ["a", "c", "b"]
        assert ids(store, owner=owner, order="created") == ["c", "b", "a"]


def test_what_is_archived_is_in_a_list_of_its_own(store: Store) -> None:
    """At its place there; nothing else of it has changed, and it can be put back."""
    created(store, "a", "b", "c", owner="ann")
    before = store.session("b")
    put_away = store.archive("b")
    assert put_away == before._replace(archived=True, revision=put_away.revision)
    assert put_away.revision != before.revision
    assert store.archive("b") == put_away
    for owner in ("ann", None):
        assert ids(store, owner=owner) == ["c", "a"]
        assert ids(store, owner=owner, archived=True) == ["b"]
    store.append("b", {"role": "user", "content": "x"}, now=NOW)
    assert ids(store, archived=True) == ["b"]
    assert store.fork("b", session_id="f", now=NOW - 1).archived is False
    with pytest.raises(Conflict):
        store.unarchive("b", expected=put_away.revision)
    assert store.unarchive("b").archived is False
    assert ids(store) == ["c", "b", "a", "f"]
    for attempt in (store.archive, store.unarchive):
        with pytest.raises(SessionNotFound):
            attempt("nobody")


def test_a_tree_is_a_session_and_its_forks(store: Store) -> None:
    """So a chat is found with its variants, whichever of them is named, and deleted with them."""
    created(store, "a", "z")
    store.fork("a", session_id="b", now=NOW + 1)
    store.fork("b", session_id="c", now=NOW + 2)
    for one in "abc":
        assert ids(store, tree=one) == ids(store, tree=one, order="created") == ["c", "b", "a"]
    store.delete_session(*ids(store, tree="b"))
    assert ids(store) == ["z"]
    with pytest.raises(SessionNotFound):
        store.sessions(tree="a")


def test_ids_with_a_beginning(store: Store) -> None:
    """Letter for letter, whatever its language; nothing stands for another thing."""
    created(store, "u1:a", "u1:b", "u10:a", "u1", "U1:c", "u_:a", "u%", "ü:1", "ü:é", "😀:1")
    assert sorted(ids(store, prefix="u1:")) == ["u1:a", "u1:b"]
    assert sorted(ids(store, prefix="u1")) == ["u1", "u10:a", "u1:a", "u1:b"]
    assert ids(store, prefix="u_") == ["u_:a"]
    assert ids(store, prefix="u%") == ["u%"]
    assert sorted(ids(store, prefix="ü:")) == ["ü:1", "ü:é"]
    assert ids(store, prefix="😀") == ["😀:1"]
    assert len(ids(store, prefix="")) == 10
    assert ids(store, prefix="u1:b", owner="ann") == []


VALUES: list[Any] = [
    1, "1", True, None, "", "true", 1.5, -1, [1, {"a": 2}], {"b": [], "a": "é"}, "é", "\ud800", "\0", "\ud83d\ude00", "😀",
    "x" * 5_000, 10**400, {},
]  # fmt: skip


def test_sessions_with_a_key(store: Store) -> None:
    """Whose metadata have it with that very value, of the same type, however long it is."""
    for number, value in enumerate(VALUES):
        store.create_session(f"{number:02}", metadata={"key": value, "n": 1}, owner="ann")
    store.create_session("other", metadata={"n": 1, "ke": 1})
    for number, value in enumerate(VALUES):
        for more in ({}, {"n": 1}):
            assert ids(store, where={"key": value} | more) == [f"{number:02}"]
            assert ids(store, where={"key": value} | more, owner="ann", order="created") == [
                f"{number:02}"
            ]
            assert ids(store, where={"key": value} | more, prefix=f"{number:02}") == [
                f"{number:02}"
            ]
        assert ids(store, where={"key": value, "n": 2}) == []
        assert ids(store, where={"key": value}, owner="bob") == []
    assert len(ids(store, where={"n": 1})) == len(VALUES) + 1
    assert len(ids(store, where={})) == len(VALUES) + 1
    assert ids(store, where={"key": {"a": "é", "b": []}}) == ["09"]
    assert ids(store, where={"\ud800": 1}) == ids(store, where={"key": "x" * 4_999 + "y"}) == []


def test_keys_follow_the_metadata(store: Store) -> None:
    """However these are set, by a fork too; what is deleted is found no more."""
    store.create_session("a", metadata={"x": 1, "y": 1})
    store.fork("a", session_id="b")
    assert sorted(ids(store, where={"x": 1, "y": 1})) == ["a", "b"]
    store.set_metadata("a", {"y": 2, "x": None}, merge=True)
    assert (ids(store, where={"x": 1}), ids(store, where={"y": 2})) == (["b"], ["a"])
    store.append("a", {"role": "user", "content": "x"}, metadata={"x": 3})
    assert ids(store, where={"x": 3, "y": 2}) == ["a"]
    store.set_metadata("a", {})
    assert ids(store, where={"y": 2}) == []
    store.archive("b")
    assert (ids(store, where={"x": 1}), ids(store, where={"x": 1}, archived=True)) == ([], ["b"])
    assert store.verify() == []
    store.delete_session("b")
    assert ids(store, where={"x": 1}, archived=True) == []
    with store.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM session_keys").scalar_one() == 0


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM session_keys", "UPDATE session_keys SET value = '2'"],
)
def test_keys_that_do_not_follow_are_found(store: Store, change: str) -> None:
    """Whoever changed them."""
    store.create_session("a", metadata={"x": 1})
    with store.database.writing() as connection:
        connection.exec_driver_sql(change)
    (finding,) = store.verify()
    assert (finding.where, "do not follow" in finding.problem) == ("session 'a'", True)


def test_a_fork_is_its_sources_owners(store: Store) -> None:
    """Unless it is said to be another's: who then sees the line alone, not what was left."""
    created(store, "a", owner="ann")
    store.append("a", [{"role": "user", "content": each} for each in "xyz"])
    store.rewind("a", 1)
    assert store.fork("a", session_id="b").owner == "ann"
    other = store.fork("a", session_id="c", owner="bob")
    assert (other.owner, ids(store, owner="bob")) == ("bob", ["c"])
    assert [each.branch for each in store.branches("b")] == [1, 3]
    assert [each.branch for each in store.branches("c")] == [4]
    assert store.siblings("c", 2) == []
    further = store.fork("c", owner="ann").id
    assert len(store.branches(further)) == 1
    with pytest.raises(InvalidValue):
        store.switch("c", 1)


def test_what_is_no_such_list_is_refused(store: Store) -> None:
    """With an error of ours that says what it is not."""
    for wrong in ({"owner": 5}, {"owner": "a\0"}, {"prefix": 5}, {"prefix": "\ud800"}):
        for attempt in (store.sessions, store.count_sessions):
            with pytest.raises(InvalidValue):
                attempt(**wrong)  # type: ignore[operator]
    too_many = {f"{number}": 1 for number in range(17)}
    for wrong in ([], {1: 1}, {"a": (1,)}, {"a": float("nan")}, too_many):
        with pytest.raises(InvalidValue):
            store.sessions(where=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="active, created"):
        store.sessions(order="newest")
    for owner in (5, "a\0", "\ud800", "x" * 10_001):
        with pytest.raises(InvalidValue, match="owner"):
            store.create_session(owner=owner)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.sampled_from(["active", "created"]), st.booleans())
def test_pages_while_sessions_change(store: Store, chance: Random, order: str, owned: bool) -> None:
    """No session comes twice; by creation none is missed, by activity none that did nothing."""
    owner = f"{chance.random()}"
    made = [store.create_session(owner=owner, now=NOW + chance.randrange(4)).id for _ in range(9)]
    store.create_session(owner="another", now=NOW)
    touched, seen, last = set(), list[str](), None
    while page := store.sessions(limit=2, after=last, order=order, owner=owner if owned else None):
        seen += [each.id for each in page]
        last = page[-1]
        active = chance.choice(made)
        store.append(active, {"role": "user", "content": "x"}, now=NOW + 9)
        touched.add(active)
    assert len(seen) == len({*seen})
    assert {*made} - {*seen} <= (touched if order == "active" else set())


def test_a_page_begins_behind_any_session(store: Store) -> None:
    """One as it was returned, though it is in another list by now, or its id alone."""
    created(store, "a", "b", "c")
    last: Session = store.sessions(limit=1)[0]
    store.archive(last.id)
    assert ids_after(store, last) == ids_after(store, "c") == ["b", "a"]


def ids_after(store: Store, after: Session | str) -> list[str]:
    """The ids of what is listed behind a session."""
    return [each.id for each in store.sessions(after=after, order="created")]


def test_the_order_within_a_second_is_exact(store: Store) -> None:
    """The index holds seconds; pages still follow the moments, then the ids."""
    moments = {"a": NOW, "b": NOW + 2, "c": NOW + 1, "d": NOW + 2, "e": NOW + 999, "f": NOW + 1_000}
    for session_id, moment in moments.items():
        store.create_session(session_id, now=NOW - 5_000)
        for at in (NOW - 4_000, moment):
            store.append(session_id, {"role": "user", "content": "x"}, now=at)
    listed = []
    after = None
    while page := store.sessions(limit=2, after=after):
        listed += [each.id for each in page]
        after = page[-1]
    assert listed == ["f", "e", "d", "b", "c", "a"]


@pytest.mark.parametrize("spread", [1, 400, 1_500])
def test_pages_of_any_size_follow_each_other(store: Store, spread: int) -> None:
    """Whether a page ends within a second, where the database sorts, or between two."""
    rng = Random(spread)
    for number in range(24):
        store.create_session(f"{number:02}", now=NOW + rng.randrange(8) * spread)
    by_activity = sorted(store.sessions(), key=lambda each: (each.updated_at, each.id))
    whole = [each.id for each in reversed(by_activity)]
    assert ids(store) == whole
    for size in (1, 2, 3, 7, 23, 24, 25):
        listed: list[str] = []
        after = None
        while page := store.sessions(limit=size, after=after):
            assert len(page) == min(size, 24 - len(listed))
            listed += [each.id for each in page]
            after = page[-1]
        assert listed == whole
    assert store.sessions(limit=0) == []
    assert len(store.sessions(limit=2**63 - 1)) == 24


def test_appends_within_a_second_change_no_index(store: Store) -> None:
    """Only an append in another second writes the second of the last activity."""
    store.create_session("s", now=NOW)
    with patch.object(append.MOVE_HEAD, "run", wraps=append.MOVE_HEAD.run) as moved:
        counts = []
        for moment in (NOW, NOW + 999, NOW + 1_000, NOW + 1_500):
            store.append("s", {"role": "user", "content": "x"}, now=moment)
            counts.append(moved.call_count)
    assert counts == [0, 0, 1, 1]
    assert store.verify() == []


def test_sessions_are_found_by_what_people_know(store: Store) -> None:
    """A project is a folder and what is below it; a part of a title, in any case."""
    for name, root, title in (
        ("shop", "/home/ann/shop", "Mend the Parser 100%"),
        ("shop/web", "/home/ann/shop/web", "Draw a page"),
        ("shop2", "/home/ann/shop2", "mend_parsers"),
        ("windows", "C:\\shop\\web", None),
        ("none", None, None),
    ):
        store.create_session(name, project_root=root, title=title, now=NOW)
    assert ids(store, project="/home/ann/shop") == ["shop/web", "shop"]
    assert ids(store, project="/home/ann/shop/") == ["shop/web", "shop"]
    assert ids(store, project="/home/ann") == ["shop2", "shop/web", "shop"]
    assert ids(store, project="/") == ["shop2", "shop/web", "shop"]
    assert ids(store, project="C:\\shop") == ["windows"]
    assert ids(store, title="mend") == ["shop2", "shop"]
    assert ids(store, title="d_p") == ["shop2"]
    assert ids(store, title="0%", project="/home/ann/shop") == ["shop"]
    assert ids(store, source="") == ids(store, source=None)
    assert ids(store, source="codex") == []


def test_times_are_of_the_last_activity(store: Store) -> None:
    """From a moment on, and before another one, to the millisecond."""
    created(store, "a", "b", "c", owner="ann")
    assert ids(store, since=NOW + 1) == ["c", "b"]
    assert ids(store, until=NOW + 1, owner="ann") == ["a"]
    assert ids(store, since=NOW + 1, until=NOW + 2) == ["b"]
    assert ids(store.scoped("ann"), since=NOW, until=NOW + 2, order="created") == ["b", "a"]
    store.append("a", {"role": "user", "content": "x"}, now=NOW + 1_500)
    assert ids(store, since=NOW + 1_500) == ["a"]
    for options in ({"since": "now"}, {"until": -1.5}, {"project": 3}, {"title": 1}, {"source": 2}):
        with pytest.raises(InvalidValue):
            store.sessions(**options)


def test_pages_of_a_filtered_list_do_not_drift(store: Store) -> None:
    """Each session comes once, though the last one seen was active again, or others were."""
    for number in range(12):
        root = "/a" if number % 2 else "/b"
        store.create_session(f"s{number:02}", project_root=root, now=NOW + number)
    first = store.sessions(project="/a", limit=2)
    for name in ("s11", "s09", "s08"):
        store.append(name, {"role": "user", "content": "x"}, now=NOW + 50)
    rest = store.sessions(project="/a", after=first[-1])
    assert [each.id for each in (*first, *rest)] == ["s11", "s09", "s07", "s05", "s03", "s01"]


def test_subagents_are_left_out(store: Store) -> None:
    """Their metadata name the session that called them; a fork that does is none."""
    store.create_session("home", now=NOW)
    store.append("home", {"role": "user", "content": "x"}, now=NOW)
    store.create_session("home/agent-1", metadata={"parent_session": "home"}, now=NOW)
    store.fork("home", 1, "branch", metadata={"parent_session": "home"}, now=NOW)
    assert ids(store, parents=True) == ["home", "branch"]
    assert len(ids(store)) == 3
