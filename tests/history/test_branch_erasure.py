"""What a session's line has left is erased, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from store import InvalidValue, Store
from store.database.schema import METADATA
from store.errors import Conflict, NothingToUndo

TABLES = METADATA.tables


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store of its own to each test."""
    with Store(url, durability="normal") as opened:
        yield opened


def said(*contents: str) -> list[dict[str, Any]]:
    """Return a user's messages."""
    return [{"role": "user", "content": each} for each in contents]


def contents(store: Store, session_id: str) -> list[Any]:
    """Return what the messages of a session say."""
    return [each.message["content"] for each in store.messages(session_id)]


def count(store: Store, name: str) -> int:
    """Return how many rows a table has."""
    with store.database.reading() as connection:
        return int(connection.scalar(select(func.count()).select_from(TABLES[name])) or 0)


def leave(store: Store) -> int:
    """Let a line leave the rest of a branch, a whole one, and all that hangs on these."""
    store.create_session("s")
    store.append("s", said("one", "two", "left three", "left four"))
    store.context("s", record=True)
    store.record_usage("s", input=7, output=1)
    store.annotate("s", 4, "rating", 5)
    store.redact("s", 3, "asked for")
    with suppress(KeyError), store.streaming("s", {"role": "assistant"}) as answer:
        answer.write("left half")
        raise KeyError
    store.replace("s", 2, said("left five", "left six"))
    left = store.branches("s")[-1].branch
    store.context("s", user_input="left input", record=True)
    store.replace("s", 2, said("three"))
    store.record_usage("s", input=5, output=1)
    store.context("s", record=True)
    return left


def test_all_that_was_left_goes_with_its_rows(store: Store) -> None:
    """The line, its view, usages and requests are as they were; there is no way back."""
    left = leave(store)
    view, totals, revision = store.view("s"), store.usage_totals(), store.session("s").revision
    erased = store.forget("s")
    assert erased[:3] == ("s", 4, 0)
    assert [each[:3] for each in store.erasures()] == [("s", 4, 0)]
    after = store.view("s")
    assert (after.messages, after.entries) == (view.messages, view.entries)
    assert store.usage_totals() == totals
    assert [each.input for each in store.usages("s")] == [5]
    assert [each.seq for each in store.requests("s")] == [3]
    for name, rows in {"messages": 3, "redactions": 0, "notes": 0, "drafts": 0}.items():
        assert count(store, name) == rows, name
    assert store.verify() == []
    with pytest.raises(NothingToUndo):
        store.undo_rewind("s")
    for branch in (1, left):
        with pytest.raises(InvalidValue, match="no branch"):
            store.switch("s", branch)
    assert [each.kind for each in store.head_moves("s")] == ["forget"]
    store.pop("s")
    store.undo_rewind("s")
    assert contents(store, "s") == ["one", "two", "three"]
    assert store.session("s").revision != revision


@pytest.mark.sqlite_only
def test_the_bytes_of_what_was_left_are_gone_after_a_purge(tmp_path: Path) -> None:
    """In the file and in its log; the costs are gone too, if that is asked for."""
    path = tmp_path / "chat.db"
    with Store(path) as store:
        leave(store)
        store.forget("s", costs="erase")
        assert store.purge().done
        assert [each.input for each in store.usage_totals()] == [5]
        assert store.erasures()[0].purged
    assert b"left" not in b"".join(each.read_bytes() for each in tmp_path.glob("chat.db*"))


def test_what_others_run_through_stays(store: Store) -> None:
    """A fork keeps its line; the branches that it could go back to in its source are gone."""
    store.create_session("s")
    store.append("s", said("one", "two", "three", "four"))
    store.rewind("s", 1)
    store.append("s", said("other"))
    store.fork("s", session_id="later")
    store.fork("s", at=3, branch=1, session_id="fork")
    assert len(store.branches("later")) == 2
    assert store.forget("s")[:3] == ("s", 1, 2)
    assert contents(store, "fork") == ["one", "two", "three"]
    assert contents(store, "later") == contents(store, "s") == ["one", "other"]
    assert len(store.branches("later")) == 1
    with pytest.raises(InvalidValue, match="no branch"):
        store.switch("later", 1)
    store.switch("s", None, of="fork")
    store.append("s", said("joined"))
    store.delete_session("fork", "later")
    assert store.forget("s").messages == 1
    assert contents(store, "s") == ["one", "two", "three", "joined"]
    assert store.verify() == []


def test_a_step_that_forgets_is_taken_back_with_the_others(store: Store) -> None:
    """It is refused for another revision, and done with the steps before it."""
    leave(store)

    def work(steps: Any) -> Any:
        steps.pop("s")
        return steps.forget("s")

    with pytest.raises(Conflict):
        store.forget("s", expected="another")
    with pytest.raises(ZeroDivisionError):
        store.atomically(lambda steps: (work(steps), 1 / 0))
    assert (len(store.branches("s")), store.erasures()) == (3, [])
    assert store.atomically(work).messages == 5
    assert store.erasures()[0].finished
    assert contents(store, "s") == ["one", "two"]
    assert [each.current for each in store.branches("s")] == [True]
