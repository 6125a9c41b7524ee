"""Sessions: what one may be given, and how they are listed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import InvalidValue, SessionNotFound


@pytest.mark.parametrize(
    "metadata",
    [{}, {"": [None, True, 1.5, {"a": "\ud800\0"}]}, {"\ud83d\ude00": 1, "😀": 2}, {"n": 10**1000}],
    ids=ascii,
)
def test_metadata_come_out_as_they_went_in(store: Store, metadata: dict[str, Any]) -> None:
    """Given at once or later, and known to a fork."""
    session = store.create_session(metadata=metadata)
    assert session.metadata == store.session(session.id).metadata == store.fork(session.id).metadata == metadata
    assert store.set_metadata(session.id, {"other": 1}).metadata == {"other": 1}
    assert store.set_metadata(session.id, metadata).metadata == metadata


@pytest.mark.parametrize(
    "options",
    [
        *({"metadata": metadata} for metadata in ([], "", 0, {1: 2, "1": 3}, {"a": (1,)}, {"a": math.nan}, {"a": b""})),
        *({"title": title} for title in (5, "\0", "\ud800")),
        *({"project_root": root} for root in (5, b"/root", "/\udc80")),
    ],
    ids=ascii,
)
def test_what_would_not_come_out_is_refused(store: Store, options: dict[str, Any]) -> None:
    """And makes no session."""
    with pytest.raises(InvalidValue):
        store.create_session("none", **options)
    with pytest.raises(SessionNotFound):
        store.session("none")


def test_lists_go_on_where_they_ended(url: str) -> None:
    """The last active first, each once, also where many were active at one moment."""
    with Store(url, durability="normal") as store:
        ids = [store.create_session(f"{number}", now=number // 3).id for number in range(10)]
        store.append("4", {"role": "user", "content": "x"}, now=9)
        expected = ["4", *(each for each in reversed(ids) if each != "4")]
        assert [each.id for each in store.sessions()] == expected
        listed: list[str] = []
        while page := store.sessions(limit=2, after=listed[-1] if listed else None):
            listed += [each.id for each in page]
        assert listed == expected
        with pytest.raises(SessionNotFound):
            store.sessions(after="nobody")


def test_a_project_root_may_be_a_path(store: Store) -> None:
    """It is kept as text."""
    assert store.create_session(project_root=Path("/root")).project_root == "/root"
