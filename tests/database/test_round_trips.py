"""How often a call waits for the server: counted on the wire, between a store and its server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from proxies import WAY_SECONDS, CountingProxy, DelayingProxy, open_behind
from sqlalchemy import Connection, text

from store import Policy, Store
from store.database import Database, Statement, lease
from store.errors import StoreError
from store.history.append import MOVE_HEAD
from store.history.lines import (
    POINTER,
    TREE_OF_SESSION,
    load_pointer,
    lock_session,
    lock_tree,
)

on_server = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)

MOST_ROUND_TRIPS = {
    "append": 2,
    "append, with an id": 3,
    "append, 10 with ids": 3,
    "atomically, two appends": 5,
    "context": 4,
    "context, after a usage": 6,
    "create_session": 2,
    "fork": 4,
    "messages": 2,
    "record_usage": 3,
    "rename_session": 3,
    "rewind": 3,
    "session": 1,
    "sessions": 1,
    "view": 1,
    "view, compacted": 3,
    "view, with news": 3,
    "view, with a new read": 3,
    "delete_session": 12,
}
"""The most round trips of each call, on a connection that is there; they only become fewer."""


@pytest.fixture
def counting(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[CountingProxy, Store]]:
    """Give a store behind a proxy that counts."""
    # A slow machine tells the server more often how long a lock may still be waited for.
    monkeypatch.setattr(lease, "DEADLINE_STEP", 3600.0)
    with open_behind(CountingProxy, url) as opened:
        yield opened


SAID = [{"role": role, "content": "It is said."} for role in ("user", "assistant") * 10]
Call = Callable[[Store, str], Any]
CALLS: dict[str, Call] = {
    "append": lambda store, new: store.append("s", SAID[0]),
    "append, with an id": lambda store, new: store.append("s", {**SAID[0], "id": new}),
    "append, 10 with ids": lambda store, new: store.append(
        "s", [{**SAID[0], "id": f"{new} {number}"} for number in range(10)]
    ),
    "atomically, two appends": lambda store, new: store.atomically(
        lambda steps: [steps.append("s", SAID[0]), steps.append("s", SAID[0])]
    ),
    "context": lambda store, new: store.context("s", "Be brief.", None, "Hi"),
    "context, after a usage": lambda store, new: store.context("s", "Be brief.", None, "Hi"),
    "create_session": lambda store, new: store.create_session(new),
    "fork": lambda store, new: store.fork("s", 5),
    "messages": lambda store, new: store.messages("s", -20),
    "record_usage": lambda store, new: store.record_usage("s", input=1, output=1),
    "rename_session": lambda store, new: store.rename_session("s", new),
    "rewind": lambda store, new: store.rewind("s", 10),
    "session": lambda store, new: store.session("s"),
    "sessions": lambda store, new: store.sessions(limit=5),
    "view": lambda store, new: store.view("s"),
    "view, compacted": lambda store, new: store.view("s"),
    "view, with news": lambda store, new: store.view("s"),
    "view, with a new read": lambda store, new: store.view("s"),
    "delete_session": lambda store, new: store.delete_session(new),
}


def say_news(store: Store, _: str) -> None:
    """Append what a view has not seen."""
    store.append("s", SAID[0])


def make_small_session(store: Store, new: str) -> None:
    """Create a session with a few messages."""
    store.create_session(new)
    store.append(new, SAID[:4])


def read_file(store: Store, new: str) -> None:
    """Append a call that reads a file which was read before, and its result."""
    function = {"name": "read_file", "arguments": '{"path": "a.py"}'}
    calls = [{"id": new, "type": "function", "function": function}]
    store.append("s", {"role": "assistant", "content": None, "tool_calls": calls})
    store.append("s", {"role": "tool", "tool_call_id": new, "content": f"{new} " * 100})


def compact_once(store: Store, _: str) -> None:
    """Hide all but the last messages, if nothing is hidden yet."""
    if not store.hidden("s"):
        store.compact("s", Policy(keep_messages=4), lambda *_: "All of it.")


BEFORE: dict[str, Call] = {
    "context, after a usage": lambda store, _: store.record_usage("s", input=1, output=1),
    "view, compacted": compact_once,
    "view, with news": say_news,
    "view, with a new read": read_file,
    "delete_session": make_small_session,
}
"""What happens before a call, and is not counted."""
REPEATS = 8
"""How often a call is made: at its sixth time a statement is prepared, once, in a round trip."""
MOST_REPEATS = 40
"""How often it is made where a busy machine hands out the parts of an answer one by one."""


@on_server
@pytest.mark.parametrize("name", CALLS)
def test_a_call_waits_for_the_server_so_often(
    counting: tuple[CountingProxy, Store], name: str
) -> None:
    """And no more often: whoever saves a round trip writes the smaller number down."""
    proxy, store = counting
    store.create_session("s")
    store.append("s", SAID)
    counts: list[int] = []
    while not counts or (min(counts) > MOST_ROUND_TRIPS[name] and len(counts) < MOST_REPEATS):
        number = len(counts)
        if name in BEFORE:
            BEFORE[name](store, f"{name} {number}")
        begun = proxy.count
        CALLS[name](store, f"{name} {number}")
        counts.append(proxy.count - begun)
    assert min(counts) <= MOST_ROUND_TRIPS[name], counts


@on_server
@pytest.mark.slow
@pytest.mark.parametrize("name", ["append", "messages", "view"])
def test_a_call_takes_the_time_of_its_round_trips(url: str, name: str) -> None:
    """To a server that is 20 ms away, and no other one."""
    round_trip = 2 * WAY_SECONDS
    with open_behind(DelayingProxy, url) as (_, store):
        store.create_session("s")
        store.append("s", SAID)
        seconds = []
        for number in range(REPEATS):
            begun = time.monotonic()
            CALLS[name](store, f"{name} {number}")
            seconds.append(time.monotonic() - begun)
    assert round_trip <= min(seconds) < (MOST_ROUND_TRIPS[name] + 1) * round_trip, seconds


@pytest.mark.sqlite_only
def test_every_call_has_its_limit() -> None:
    """And nothing else has one."""
    assert MOST_ROUND_TRIPS.keys() == CALLS.keys()


@pytest.fixture
def opened(url: str) -> Iterator[Database]:
    """Give the database of a store with a session that has messages."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", SAID)
        yield store.database


NAMED = {"session_id": "s"}


@on_server
def test_what_is_sent_ahead_is_asked_once(opened: Database) -> None:
    """Each that asks the same in the transaction gets the answer, from its first row."""
    with opened.reading() as connection:
        TREE_OF_SESSION.send(connection, **NAMED)
        first = TREE_OF_SESSION.value(connection, **NAMED)
        with opened.writing() as other:
            lock_tree(other, "s")
            other.exec_driver_sql("DELETE FROM session_ids")
        assert [TREE_OF_SESSION.value(connection, **NAMED) for _ in "12"] == [first, first]
        assert TREE_OF_SESSION.value(connection, session_id="t") is None
    with opened.reading() as connection:
        assert TREE_OF_SESSION.value(connection, **NAMED) is None


@on_server
def test_a_writer_reads_what_it_wrote(opened: Database) -> None:
    """An answer that was sent ahead is dropped when its table is written, or a row is locked."""
    with opened.writing() as connection:
        pointer = lock_session(connection, "s")
        place = {"tree_id": pointer.tree_id, "session_id": "s"}
        for statement in (TREE_OF_SESSION, POINTER):
            statement.send(connection, **(NAMED if statement is TREE_OF_SESSION else place))
        MOVE_HEAD.run(connection, **pointer.changed(), to=7, now=1)
        moved = POINTER.one(connection, **place)
        assert moved.head == 7
        POINTER.send(connection, **place)
        assert lock_session(connection, "s") == moved


@on_server
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_query_sent_ahead_that_fails_ends_its_own_transaction(
    opened: Database, is_asked: bool
) -> None:
    """Its error is that of what is waited for next, nobody's who comes later; nothing is kept."""
    divided = Statement(text("SELECT 1 / CAST(:by AS BIGINT)"))

    def send_wrong(connection: Connection) -> None:
        divided.send(connection, by=0)
        if is_asked:
            TREE_OF_SESSION.value(connection, **NAMED)

    def write_wrong(connection: Connection) -> None:
        MOVE_HEAD.run(connection, **lock_session(connection, "s").changed(), to=7, now=1)
        send_wrong(connection)

    with pytest.raises(StoreError, match="division by zero"):
        opened.read(send_wrong)
    with pytest.raises(StoreError, match="division by zero"):
        opened.write(write_wrong)
    assert opened.read(partial(load_pointer, session_id="s")).head == len(SAID)
