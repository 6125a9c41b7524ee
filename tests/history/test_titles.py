"""What a session is called where nobody gave it a title."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Run

from store import Store
from store.cli.options import fill_titles
from store.errors import SessionNotFound


def said(content: object, role: str = "user") -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": content}


SYSTEM = said("Be brief.", "system")


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        ([], None),
        ([SYSTEM, said("Hi.", "assistant")], None),
        (
            [SYSTEM, said(" Why\n is it  so? "), said("Because.", "assistant"), said("Oh.")],
            "Why is it so?",
        ),
        ([said([{"type": "text", "text": "Look:"}])], "Look:"),
        ([said([{"type": "image_url", "image_url": {"url": "http://x/y.png"}}])], None),
        ([said("  \n ")], None),
    ],
)
def test_it_is_what_the_user_said_first(
    store: Store, messages: list[dict[str, Any]], title: str | None
) -> None:
    """As one line, and none where nothing was said; nothing is stored."""
    session = store.create_session()
    store.append(session.id, messages)
    before = store.session(session.id)
    assert store.title(session.id) == title
    assert store.session(session.id) == before
    assert before.title is None


def test_it_is_clipped(store: Store) -> None:
    """A long text gives its beginning."""
    session = store.create_session()
    store.append(session.id, said("word " * 100_000))
    title = store.title(session.id)
    assert title is not None
    assert len(title) <= 80
    assert title.startswith("word word")


def test_a_given_title_is_the_title(store: Store) -> None:
    """Until it is taken away; a fork is called as its line begins."""
    session = store.create_session(title="mine")
    store.append(session.id, [SYSTEM, said("one"), said("two", "assistant"), said("three")])
    assert store.title(session.id) == "mine"
    store.rename_session(session.id, None)
    fork = store.fork(store.fork(session.id, 3).id, 3).id
    store.append(fork, said("four"))
    assert (store.title(session.id), store.title(fork)) == ("one", "one")
    early = store.fork(session.id, 1).id
    assert store.title(early) is None
    store.append(early, said("five"))
    assert store.title(early) == "five"
    store.redact(early, 2, "private")
    assert store.title(early) == "[redacted]"


def test_the_command_shows_it(run: Run) -> None:
    """In a table; programs are told the title that was given."""
    with Store("chat.db") as store:
        store.create_session("a")
        store.append("a", said("Why is it so?"))
    assert "Why is it so?" in run("--db", "chat.db", "sessions").out
    (session,) = json.loads(run("--db", "chat.db", "sessions", "--json").out)
    assert session["title"] is None


def test_a_list_outlives_an_erasure(store: Store) -> None:
    """A session that is erased while it is listed has no title any more."""
    session = store.create_session()
    store.delete_session(session.id)
    assert fill_titles(store, [session]) == [session]


def test_who_is_not_there_has_none(store: Store) -> None:
    """As for every operation."""
    with pytest.raises(SessionNotFound):
        store.title("nobody")
