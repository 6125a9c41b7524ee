"""The order of passages for a question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from store import Store
from store.mcp import History

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def past(path: Path) -> Iterator[Store]:
    """Give a store of one test."""
    with Store(path, durability="normal") as store:
        yield store


def say(store: Store, session: str, *texts: str) -> None:
    """Make a session of some messages."""
    store.create_session(session)
    store.append(session, [{"role": "assistant", "content": text} for text in texts])


def find_sessions(store: Store, text: str, **arguments: str) -> list[str]:
    """Return the sessions of the passages found, or of the hits in one session."""
    if arguments:
        return [hit["session"] for hit in History(store).search(text, **arguments)["hits"]]
    return [each["session"] for each in History(store).remember(text)["passages"]]


def test_a_session_with_many_passages_hides_no_other(past: Store) -> None:
    """Another session with the words is among the first, and can be asked alone."""
    say(past, "once", "The parser keeps its grammar in a table.")
    say(past, "often", *(f"parser grammar {'parser ' * number}" for number in range(30)))
    assert "once" in find_sessions(past, "parser grammar")[:4]
    assert {*find_sessions(past, "parser grammar", session="once")} == {"once"}


def test_words_that_stand_close_together_come_first(past: Store) -> None:
    """Before a newer message that has each word as often, far apart."""
    gap = "nothing of interest stands here " * 20
    say(past, "close", f"{gap} the parser drops its grammar {gap}")
    say(past, "apart", f"the parser {gap} {gap} its grammar")
    assert find_sessions(past, "parser grammar") == ["close", "apart"]


def test_a_long_quotation_is_found_by_its_words(past: Store) -> None:
    """Also if no message has one of them, and newer messages have the common ones."""
    say(past, "told", "error: the parser cannot read its grammar from here")
    say(past, "other", *("parser error" for _ in range(110)))
    question = 'who saw "error: the parser cannot read its grammar from 7f3a9c"?'
    assert find_sessions(past, question)[0] == "told"
