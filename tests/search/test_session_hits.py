"""Searches by session: all words anywhere in a session, and searches for any of the words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from store import SessionHit, Store
from store.errors import InvalidValue
from store.search import index, session_hits

NOW = 1_767_225_600_000


def said(content: str, role: str = "user") -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": content}


def found(hits: list[SessionHit]) -> list[tuple[str, int, int]]:
    """Return the sessions found, the number of their hits, and the position of the best."""
    return [(hit.session.id, hit.hits, hit.best.seq) for hit in hits]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store of its own to each test: what is in the index is part of it."""
    with Store(url, durability="normal") as opened:
        yield opened


@pytest.fixture
def chats(store: Store) -> Store:
    """Return a store with sessions that have the words in one message, in several, in prompts."""
    for name, messages in {
        "one": [said("red apples"), said("a red apple, a red pear"), said("red is an apple")],
        "spread": [said("a red car"), said("nothing"), said("an apple", "assistant")],
        "prompt": [said("You sell red fruit, an apple each.", "system"), said("hello")],
        "half": [said("only red")],
        "late": [said("Be red.", "developer"), said("the apple")],
    }.items():
        store.create_session(name, owner="bob" if name == "half" else "ann", now=NOW)
        store.append(name, messages, now=NOW)
    return store


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_session_has_the_words_anywhere(
    chats: Store, is_indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message before several, what people said before prompts; indexed or not."""
    if is_indexed:
        chats.index()
    else:
        monkeypatch.setattr(index, "STEP_MESSAGES", 0)
    expected = [("one", 2, 2), ("spread", 2, 3), ("prompt", 1, 1), ("late", 2, 2)]
    assert found(chats.search("red apple", by="session")) == expected
    assert found(chats.search("apple red", by="session", limit=2)) == expected[:2]
    assert found(chats.scoped("bob").search("red apple", by="session")) == []
    assert found(chats.scoped("bob").search("red", by="session")) == [("half", 1, 1)]


def test_any_of_the_words(chats: Store) -> None:
    """Those that have all come first; each is found once, page by page as at once."""
    whole = chats.search("red apple", any=True, limit=50)
    assert [(hit.session_id, hit.seq) for hit in whole[:2]] == [("one", 2), ("one", 3)]
    prompts = [hit.role in ("system", "developer") for hit in whole]
    assert prompts == sorted(prompts)
    assert len({(hit.session_id, hit.seq) for hit in whole}) == len(whole) == 9
    paged, after = [], None
    while page := chats.search("red apple", any=True, limit=2, after=after):
        paged += page
        after = page[-1]
    assert paged == whole
    sessions = [hit.session.id for hit in chats.search("red apple", any=True, by="session")]
    assert sessions == ["one", "spread", "half", "late", "prompt"]
    assert chats.search("apple nowhere") == []
    assert len(chats.search("pear nowhere", any=True)) == 1


@pytest.mark.parametrize("ranked", [1_000, 3])
def test_prompts_are_last_on_every_page(
    store: Store, ranked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether hits are ranked or not; in the order of storing they keep their place."""
    monkeypatch.setattr("store.search.hits.MOST_RANKED", ranked)
    store.create_session("s")
    roles = ("user", "system", "developer", "assistant", "system", "user", "user")
    store.append("s", [said(f"word {number}", role) for number, role in enumerate(roles)])
    whole = store.search("word", limit=50)
    assert sorted(hit.seq for hit in whole[:4]) == [1, 4, 6, 7]
    pages = [store.search("word", limit=2, after=whole[end - 1]) for end in range(1, 8)]
    assert pages == [whole[end : end + 2] for end in range(1, 8)]
    assert [hit.seq for hit in store.search("word", order="newest")] == [7, 6, 5, 4, 3, 2, 1]


def test_a_title_finds_a_session(chats: Store) -> None:
    """It is the best hit, and one of its hits."""
    chats.rename_session("half", "Apple of the red tree")
    (first, *_) = chats.search("red apple", by="session")
    assert (first.session.id, first.hits, first.best.role) == ("half", 1, "title")
    assert first.session == chats.session("half")


def test_a_fork_has_the_words_of_its_past(store: Store) -> None:
    """It is found by what it said itself and the past it continues; not by the past alone."""
    store.create_session("first")
    store.append("first", [said("a red car"), said("a pear")])
    store.fork("first", 1, "second")
    store.append("second", said("an apple"))
    store.index()
    assert [hit.session.id for hit in store.search("red apple", by="session")] == ["second"]
    assert [hit.session.id for hit in store.search("red", by="session")] == ["first"]
    store.rewind("second", to=1)
    assert store.search("red apple", by="session") == []
    (left,) = store.search("red apple", by="session", left=True)
    assert (left.session.id, left.best.on_line) == ("second", False)


def test_only_messages_that_pass_the_filters_count(chats: Store) -> None:
    """Roles, times and one session; a search by session has no pages."""
    assert found(chats.search("red apple", by="session", session="spread")) == [("spread", 2, 3)]
    assert found(chats.search("apple", by="session", roles=["assistant"])) == [("spread", 1, 3)]
    assert chats.search("red apple", by="session", until=NOW - 1) == []
    (hit,) = chats.search("pear", by="session")
    with pytest.raises(InvalidValue, match="limit"):
        chats.search("red", by="session", after=hit.best)
    with pytest.raises(InvalidValue, match="session"):
        chats.search("red", by="sessions")  # type: ignore[call-overload]


def test_many_sessions_are_searched_some_at_a_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few trees are searched at once, each session is found once."""
    monkeypatch.setattr(session_hits, "SPREAD_BATCH", 2)
    for number in range(7):
        store.create_session(f"s{number}")
        store.append(f"s{number}", [said("red"), said("apple" if number % 2 else "pear")])
    store.index()
    ids = [hit.session.id for hit in store.search("red apple", by="session")]
    assert ids == ["s5", "s3", "s1"]
