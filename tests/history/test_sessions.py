"""Sessions: what one may be given, and how they are listed."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import InvalidValue, SessionExists, SessionNotFound
from store.history.sessions import METADATA_TEXT_LIMIT
from store.records import TEXT_LIMIT, Session

NOW = 1_800_000_000_000


def within(value: Any, times: int, made: Callable[[Any], Any]) -> Any:
    """Return a value put into another again and again."""
    for _ in range(times):
        value = made(value)
    return value


def longest(room: int) -> dict[str, str]:
    """Return metadata of so many characters as JSON text."""
    return {"a": "x" * (room - len('{"a":""}'))}


@pytest.mark.parametrize(
    "metadata",
    [{}, {"": [None, True, 1.5, {"a": "\ud800\0"}]}, {"\ud83d\ude00": 1, "😀": 2}, {"n": 10**1000}],
    ids=ascii,
)
def test_metadata_come_out_as_they_went_in(store: Store, metadata: dict[str, Any]) -> None:
    """Given at once or later, and known to a fork."""
    session = store.create_session(metadata=metadata)
    assert (
        session.metadata
        == store.session(session.id).metadata
        == store.fork(session.id).metadata
        == metadata
    )
    assert store.set_metadata(session.id, {"other": 1}).metadata == {"other": 1}
    assert store.set_metadata(session.id, metadata).metadata == metadata


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"metadata": metadata}
            for metadata in ([], "", 0, {1: 2, "1": 3}, {"a": (1,)}, {"a": math.nan}, {"a": b""})
        ),
        {"metadata": {"a": within(0, 200, lambda value: [value])}},
        {"metadata": {"a": within([0], 60, lambda value: [value, value])}},
        {"metadata": longest(METADATA_TEXT_LIMIT + 1)},
        *({"title": title} for title in (5, "\0", "\ud800", "x" * (TEXT_LIMIT + 1))),
        *({"project_root": root} for root in (5, b"/root", "/\udc80", "/x" * TEXT_LIMIT)),
    ],
    ids=lambda options: next(iter(options)),  # their text may have no end
)
def test_what_would_not_come_out_is_refused(store: Store, options: dict[str, Any]) -> None:
    """And makes no session."""
    with pytest.raises(InvalidValue):
        store.create_session("none", **options)
    with pytest.raises(SessionNotFound):
        store.session("none")


def test_titles_and_metadata_have_room(store: Store) -> None:
    """As much as the limits say, no more; what is there stays where more is refused."""
    metadata, title = longest(METADATA_TEXT_LIMIT), "文" * TEXT_LIMIT
    session = store.create_session(title=title, metadata=metadata)
    assert (session.title, session.metadata) == (title, metadata)
    for refused in (
        lambda: store.rename_session(session.id, title + "x"),
        lambda: store.set_metadata(session.id, {"b": 1}, merge=True),
        lambda: store.set_project_root(session.id, title + "x"),
    ):
        with pytest.raises(InvalidValue, match="the limit is"):
            refused()
    assert store.session(session.id) == session


def test_lists_go_on_where_they_ended(url: str) -> None:
    """The last active first, each once, also where many were active at one moment."""
    with Store(url, durability="normal") as store:
        ids = [store.create_session(f"{number}", now=NOW + number // 3).id for number in range(10)]
        store.append("4", {"role": "user", "content": "x"}, now=NOW + 9)
        expected = ["4", *(each for each in reversed(ids) if each != "4")]
        assert [each.id for each in store.sessions()] == expected
        listed: list[str] = []
        last: Session | None = None
        while page := store.sessions(limit=2, after=last):
            listed += [each.id for each in page]
            last = page[-1]
        assert listed == expected
        assert [each.id for each in store.sessions(after="4")] == expected[1:]
        with pytest.raises(SessionNotFound):
            store.sessions(after="nobody")


def test_a_project_root_may_be_a_path(store: Store) -> None:
    """It is kept as text."""
    assert store.create_session(project_root=Path("/root")).project_root == "/root"


def test_a_page_goes_on_behind_a_session_that_changed_or_went(url: str) -> None:
    """No session comes twice, and none is missed that did nothing meanwhile."""
    with Store(url, durability="normal") as store:
        for number in range(6):
            store.create_session(f"{number}", now=number + NOW)
        changed = store.sessions(limit=2)[-1]
        store.append(changed.id, {"role": "user", "content": "x"}, now=NOW + 9)
        page = store.sessions(limit=2, after=changed)
        assert [each.id for each in page] == ["3", "2"]
        store.delete_session("2")
        assert [each.id for each in store.sessions(after=page[-1])] == ["1", "0"]


def test_metadata_are_no_activity(url: str) -> None:
    """To tag a session leaves it in its place in the list."""
    with Store(url, durability="normal") as store:
        for number in range(3):
            store.create_session(f"{number}", now=NOW + number)
        before = store.session("0")
        tagged = store.set_metadata("0", {"tag": 1}, merge=True)
        assert tagged == before._replace(metadata={"tag": 1}, revision=tagged.revision)
        assert [each.id for each in store.sessions()] == ["2", "1", "0"]


def test_a_session_that_exists_may_be_asked_for(store: Store) -> None:
    """It is returned as it is; without the word it is refused, as ever."""
    made = store.create_session("chat", title="First", exist_ok=True)
    assert store.create_session("chat", title="Second", exist_ok=True) == made
    with pytest.raises(SessionExists):
        store.create_session("chat")
    with pytest.raises(InvalidValue):
        store.create_session("chat", metadata={"a": math.nan}, exist_ok=True)


#: The table of appendix A of RFC 7396, where the target is an object: before, patch, after.
MERGES: list[tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any]]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": 1}, {}, {"a": 1}),
    ({"a": "foo"}, None, {}),
]


@pytest.mark.parametrize(("before", "patch", "after"), MERGES, ids=str)
def test_metadata_are_merged_as_the_rfc_says(
    store: Store, before: dict[str, Any], patch: dict[str, Any] | None, after: dict[str, Any]
) -> None:
    """Its own examples."""
    session = store.create_session(metadata=before)
    assert store.set_metadata(session.id, patch, merge=True).metadata == after
    assert store.session(session.id).metadata == after


def test_what_is_no_patch_changes_nothing(store: Store) -> None:
    """It is refused as metadata are."""
    session = store.create_session(metadata={"a": 1})
    for patch in ([1], {"a": math.nan}, {"a": (1,)}):
        with pytest.raises(InvalidValue):
            store.set_metadata(session.id, patch, merge=True)  # type: ignore[arg-type]
    assert store.session(session.id).metadata == {"a": 1}


def test_tags_set_at_once_are_all_kept(url: str) -> None:
    """A merge reads and writes in one step."""
    with Store(url, durability="normal") as store, ThreadPoolExecutor(5) as threads:
        session = store.create_session().id
        tags = [{f"tag{number}": True} for number in range(5)]
        list(threads.map(lambda tag: store.set_metadata(session, tag, merge=True), tags))
        assert store.session(session).metadata == {key: True for tag in tags for key in tag}


def test_an_id_is_found_in_whatever_tree_it_is_now(url: str) -> None:
    """Also by a store that knew it in another tree, and where another store erased it."""
    with Store(url) as known, Store(url) as other:
        known.create_session("s", title="old")
        assert known.database.cache.trees.get("s")
        other.delete_session("s")
        with pytest.raises(SessionNotFound):
            known.session("s")
        other.create_session("s", title="new")
        assert known.session("s").title == "new"
        other.delete_session("s")
        other.create_session("s")
        known.append("s", {"role": "user", "content": "Hi"})
        assert other.session("s").head == 1


def test_the_trees_of_few_sessions_are_kept(url: str) -> None:
    """The first to come are the first to go; nothing is kept by a store without a cache."""
    with Store(url) as store, Store(url, cache_bytes=0) as without:
        trees = store.database.cache.trees
        for number in range(5_000):
            trees.put(str(number), number + 1, None)
        assert (trees.get("903"), trees.get("904")) == (None, 905)
        trees.forget([905])
        assert trees.get("904") is None
        without.create_session("s")
        assert without.session("s").id == "s"
        assert without.database.cache.trees.get("s") is None
