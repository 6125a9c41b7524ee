"""What is done to a cluster: everything once, writers through all nodes, and killed nodes."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from store import Store
from store.errors import ConnectionLost, StoreBusy, StoreError, Unavailable

from .calls import make_calls
from .clusters import Cluster, connect, kill_server

MESSAGES = 40
"""The messages of each writer that is not disturbed."""
WRITERS = 4
KILLS = 2
PAUSE_SECONDS = 3.0
"""Seconds between two kills."""
LIMIT_SECONDS = 2.0
"""Seconds in which a writer with a timeout of one second is told that it waited in vain."""
EXPECTED_ERRORS = (ConnectionLost, StoreBusy, Unavailable)
"""What a writer may be told while a node is away; it sends the same message again."""


class Outcome(NamedTuple):
    """How often something went as it has to, of how many times; and what went otherwise."""

    held: int
    tried: int
    wrong: list[str]


@contextmanager
def open_database(cluster: Cluster) -> Iterator[list[str]]:
    """Give the URLs of a new distributed database on each node."""
    name = f"convostore_citus_{uuid.uuid4().hex[:12]}"
    cluster.create(name)
    try:
        cluster.distribute(name)
        yield cluster.name_urls(name)
    finally:
        cluster.drop(name)


def compare_calls(cluster: Cluster, expected: Store) -> Outcome:
    """Make every call through the coordinator and on a file; tell where the answers differ."""
    ours = make_calls(expected)
    with open_database(cluster) as urls, Store(urls[0]) as store:
        theirs = make_calls(store)
    wrong = [f"{each}: {theirs[each]}" for each in ours if ours[each] != theirs[each]]
    return Outcome(len(ours) - len(wrong), len(ours), wrong)


class NodeWriter(threading.Thread):
    """Appends messages to the session ``s``, each with an id and until it is acknowledged."""

    def __init__(self, url: str, number: int, is_over: Callable[[int], bool]) -> None:
        super().__init__()
        self._url, self._number, self._is_over = url, number, is_over
        self.acknowledged: list[str] = []
        self.told: list[StoreError] = []

    def run(self) -> None:
        """Append until it is over."""
        with Store(self._url) as store:
            while not self._is_over(len(self.acknowledged)):
                name = f"{self._number} {len(self.acknowledged)}"
                try:
                    store.append("s", {"role": "user", "content": name, "id": name})
                except StoreError as error:
                    self.told.append(error)
                    time.sleep(0.05)
                else:
                    self.acknowledged.append(name)


def race_writers(cluster: Cluster) -> Outcome:
    """Append to one session through all nodes at once."""
    with open_database(cluster) as urls:
        return _write(urls, lambda done: done == MESSAGES)


def kill_workers(cluster: Cluster) -> Outcome:
    """Append to one session through all nodes while the last one is killed, again and again."""
    with open_database(cluster) as urls:
        ended = threading.Event()

        def kill() -> None:
            try:
                for _ in range(KILLS):
                    time.sleep(PAUSE_SECONDS)
                    kill_server(urls[-1])
                time.sleep(PAUSE_SECONDS)
            finally:
                ended.set()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            return _write(urls, lambda _: ended.is_set())
        finally:
            killer.join()


def _write(urls: list[str], is_over: Callable[[int], bool]) -> Outcome:
    """Count the acknowledged messages that are there once, and say what else there is."""
    with Store(urls[0]) as store:
        store.create_session("s")
    writers = [NodeWriter(urls[each % len(urls)], each, is_over) for each in range(WRITERS)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    with Store(urls[0]) as store:
        there = Counter(str(each.message["content"]) for each in store.messages("s"))
        wrong = [str(each) for each in store.verify()]
    acknowledged = [name for each in writers for name in each.acknowledged]
    wrong += [f"{name!r} is there {there[name]} times" for name in there if there[name] > 1]
    wrong += [f"{name!r} is lost" for name in acknowledged if not there[name]]
    told = [error for each in writers for error in each.told]
    wrong += [repr(error) for error in told if not isinstance(error, EXPECTED_ERRORS)]
    held = sum(there[name] == 1 for name in acknowledged)
    return Outcome(held, len(acknowledged), wrong)


def wait_in_vain(cluster: Cluster) -> Outcome:
    """Append through each node while another client holds the session's row."""
    wrong = []
    with open_database(cluster) as urls, ExitStack() as stack:
        with Store(urls[0]) as store:
            store.create_session("s")
        holder = stack.enter_context(connect(urls[0]))
        (tree_id,) = holder.execute("SELECT tree_id FROM session_ids WHERE id = 's'").fetchone()
        stack.enter_context(holder.transaction())
        holder.execute(f"SELECT 1 FROM sessions WHERE tree_id = {tree_id} AND id = 's' FOR UPDATE")
        release = threading.Timer(4 * LIMIT_SECONDS, holder.cancel)
        for url in urls:
            with Store(url, timeout=1) as store:
                begun = time.monotonic()
                try:
                    store.append("s", {"role": "user", "content": "never"})
                    wrong.append("it was stored in spite of the held row")
                except StoreBusy:
                    if (seconds := time.monotonic() - begun) > LIMIT_SECONDS:
                        wrong.append(f"it waited {seconds:.1f} seconds")
                except StoreError as error:
                    wrong.append(repr(error))
        release.cancel()
    return Outcome(len(urls) - len(wrong), len(urls), wrong)


CAMPAIGNS: dict[str, Callable[[Cluster], Outcome]] = {
    "appends of four writers through all nodes to one session, each there once": race_writers,
    "the same while a worker was killed twice": kill_workers,
    "writers with a timeout of 1 s behind a held row, told in 2 s": wait_in_vain,
}
"""What a run tries besides the calls and the tests, in the words of its table."""
