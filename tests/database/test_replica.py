"""A store with a replica: which reads go there, and when."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from store import Store
from store.database import Database
from store.errors import InvalidValue
from store.face.replicas import REPLICA_RETRY_SECONDS
from tests import wheel_server

on_server = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)
NOWHERE = "postgresql+psycopg://nobody@127.0.0.1:1/none"
FOR_REPLICA: dict[str, Callable[[Any], object]] = {
    "sessions": lambda face: face.sessions(),
    "count_sessions": lambda face: face.count_sessions(),
    "usages": lambda face: face.usages(),
    "usage_totals": lambda face: face.usage_totals(),
    "search": lambda face: face.search("word"),
}
STAYING: dict[str, Callable[[Any], object]] = {
    "session": lambda face: face.session("s"),
    "view": lambda face: face.view("s"),
    "messages": lambda face: face.messages("s"),
}


@pytest.mark.sqlite_only
def test_a_file_has_no_replica(path: Path) -> None:
    """Neither is a file one; the store is not left open."""
    pytest.importorskip("psycopg")
    for url in (NOWHERE, str(path)):
        with pytest.raises(InvalidValue, match="read_url is for a server"):
            Store(path, read_url=url)


def count_uses(database: Database, read: Callable[[], object]) -> int:
    """Return how often a call of the store takes a connection of a database."""
    uses: list[object] = []
    lend = database._lent

    def note(*args: Any, **options: Any) -> Any:
        uses.append(args)
        return lend(*args, **options)

    database._lent = note  # type: ignore[method-assign]
    try:
        read()
    finally:
        database._lent = lend  # type: ignore[method-assign]
    return len(uses)


@on_server
def test_lists_and_searches_go_to_the_replica(url: str) -> None:
    """Those of an owner's face too; views stay. Here the server is its own replica."""
    with Store(url) as store:
        store.create_session("s", owner="ann")
        store.append("s", {"role": "user", "content": "a word"})
        store.index()
    with Store(url, read_url=url) as store:
        for face in (store, store.scoped("ann")):
            asked = {
                name: not count_uses(store.database, partial(read, face))
                for name, read in (FOR_REPLICA | STAYING).items()
            }
            assert asked == dict.fromkeys(FOR_REPLICA, True) | dict.fromkeys(STAYING, False)
        assert [each.session_id for each in store.search("word")] == ["s"]
        store.rename_session("s", "titled")  # a server that replays no log has nothing of it
        assert count_uses(store.database, store.usages)
        assert [each.title for each in store.sessions()] == ["titled"]


@on_server
def test_a_database_of_another_store_is_no_replica(url: str) -> None:
    """It would answer for sessions that the store does not have; one that is away may come back."""
    other = sqlalchemy.make_url(url).set(database="postgres")
    with Store(url, read_url=NOWHERE, connect_timeout=2) as store:
        store.create_session("s")
        assert [each.id for each in store.sessions()] == ["s"]
    if other != sqlalchemy.make_url(url):
        with pytest.raises(InvalidValue, match="no replica of the store's server"):
            Store(url, read_url=other)


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.skipif(bool(wheel_server.lacking()), reason="needs a server of its own")
def test_what_follows_a_write_is_never_behind_it() -> None:
    """A standby that stands still is waited for by nobody; when it has caught up, it is asked."""
    import psycopg

    with wheel_server.started() as first, wheel_server.following(first) as standby:
        with psycopg.connect(first.url.replace("+psycopg", ""), autocommit=True) as asked:
            asked.execute("ALTER SYSTEM RESET synchronous_standby_names")
            asked.execute("SELECT pg_reload_conf()")
        with Store(first.url, read_url=standby.url, durability="normal") as store:
            for number in range(20):
                store.create_session(f"s{number}")
                assert store.count_sessions() == number + 1
            with psycopg.connect(standby.url.replace("+psycopg", ""), autocommit=True) as asked:
                asked.execute("SELECT pg_wal_replay_pause()")
                store.create_session("late")
                assert store.count_sessions() == 21
                assert count_uses(store.database, store.sessions)
                asked.execute("SELECT pg_wal_replay_resume()")
            patience = time.monotonic() + REPLICA_RETRY_SECONDS + 30
            while count_uses(store.database, store.sessions):
                assert time.monotonic() < patience
                time.sleep(0.05)
            standby.stop()
            assert store.count_sessions() == 21
