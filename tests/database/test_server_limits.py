"""The limits that a host sets on a server: its connections, and how long it waits."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from writers import Writers

from store import Store
from store.errors import InvalidValue, StoreBusy, StoreError, Unavailable
from tests import wheel_server

on_server = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)
NOWHERE = "postgresql+psycopg://nobody@127.0.0.1:1/none"
WRONG_LIMITS: list[dict[str, Any]] = [
    {"pool": 4},
    {"pool": (4, 2)},
    {"pool": (0, 0)},
    {"pool": (1.5, 2)},
    {"pool": ("1", "2")},
    {"pool_wait": 1},
    {"pool": (0, 1), "pool_wait": -1},
    {"connect_timeout": 0},
    {"connect_timeout": "1"},
    {"connect_timeout": True},
    {"statement_timeout": float("nan")},
    {"statement_timeout": 10**12},
    {"pooler": 3},
    {"read_only": "yes"},
    {"read_url": 5},
    {"read_url": "file.db"},
]


@pytest.mark.sqlite_only
@pytest.mark.parametrize("given", WRONG_LIMITS, ids=repr)
def test_a_wrong_limit_is_refused(given: dict[str, Any]) -> None:
    """Before any server is asked."""
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidValue, match=r"must be|give pool=|read_url is for a server"):
        Store(NOWHERE, **given)


@pytest.mark.sqlite_only
def test_a_file_has_no_such_limits(path: Path) -> None:
    """The error names the first of them."""
    with pytest.raises(InvalidValue, match="statement_timeout is for a server"):
        Store(path, statement_timeout=1)


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    "query",
    ["pooler=maybe", "connect_timeout=soon", "sslmode=bogus", "keepalives=a", "no=1", "pool=1"],
)
def test_a_wrong_value_in_a_url_is_an_error_of_the_store(query: str) -> None:
    """The text names it; nobody is told to try again."""
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidValue, match=query.partition("=")[0]):
        Store(f"{NOWHERE}?{query}")


def count_connections(url: str) -> int:
    """Return how many connections a database has, those that count them left out.

    A server lists a closed one for a moment.
    """
    name = {"application_name": "counting"}
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool, connect_args=name)
    asked = (
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND application_name <> 'counting'"
    )
    with engine.connect() as connection:
        return int(connection.execute(sqlalchemy.text(asked)).scalar() or 0)


@on_server
def test_a_pool_has_its_connections_and_no_more(url: str) -> None:
    """At least so many from the beginning, at most so many however many threads work."""
    with Store(url, pool=(2, 3)) as store:
        assert count_connections(url) == 2
        store.create_session("s")
        most = []

        def talk() -> None:
            for _ in range(10):
                store.append("s", {"role": "user", "content": "hello"})
                store.view("s")

        threads = [threading.Thread(target=talk) for _ in range(8)]
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            most.append(count_connections(url))
        assert max(most) <= 3
        assert store.session("s").head == 80


@on_server
def test_who_waits_too_long_for_a_connection_is_told(url: str) -> None:
    """The same call may be made again."""
    with Store(url, pool=(0, 1), pool_wait=0.2) as store:
        store.create_session("s")
        with store.database.reading() as connection:
            connection.execute(sqlalchemy.text("SELECT 1"))
            begun = time.monotonic()
            with pytest.raises(Unavailable, match="connections of the pool"):
                store.session("s")
            assert 0.1 < time.monotonic() - begun < 20
        assert store.session("s").head == 0


@on_server
def test_a_statement_that_takes_too_long_is_ended(url: str) -> None:
    """Nothing of its transaction is written, and the store goes on."""
    with Store(url, statement_timeout=0.3) as store:
        store.create_session("s")
        with (
            pytest.raises(StoreBusy, match="at its timeout"),
            store.database.writing() as connection,
        ):
            connection.execute(sqlalchemy.text("SELECT pg_sleep(30)"))
        assert store.session("s").head == 0


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.skipif(bool(wheel_server.lacking()), reason="needs a server of its own")
def test_a_server_that_pauses(tmp_path: Path) -> None:
    """For twenty seconds: what it has not answered is not acknowledged, and all goes on by itself."""
    with wheel_server.started() as server, Store(server.url, timeout=3) as store:
        store.create_session("s")
        stored = [store.append("s", {"role": "user", "content": "0", "id": "0"})[0].seq]
        told: list[StoreError] = []
        server.pause()
        threading.Timer(20, server.go_on).start()
        begun = time.monotonic()
        while len(stored) < 5 and time.monotonic() - begun < 90:
            number = len(stored)
            try:
                message = {"role": "user", "content": str(number), "id": str(number)}
                stored.append(store.append("s", message)[0].seq)
            except StoreError as error:
                told.append(error)
        assert time.monotonic() - begun > 19
        assert all(each.retry or each.status == 503 for each in told), told
        assert stored == [1, 2, 3, 4, 5]
        assert [each.message["content"] for each in store.messages("s")] == [*"01234"]


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.skipif(bool(wheel_server.lacking()), reason="needs a server of its own")
def test_a_server_that_is_killed_and_replaced_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Eight threads write while it dies and comes back; each store goes on by itself."""
    options = "-c fsync=on -c synchronous_commit=on"
    with wheel_server.started(options) as server, Store(server.url, timeout=5) as store:
        store.create_session("s")
        ends = time.monotonic() + 8
        writers = Writers(store, 8, lambda: time.monotonic() >= ends)
        time.sleep(2)
        server.stop()
        time.sleep(1)
        server.start()
        writers.join()
        there = {str(each.message["content"]) for each in store.messages("s")}
        assert there >= {*writers.acknowledged}
        assert len(there) <= len(writers.acknowledged) + 8
        assert writers.told
        assert {each.status for each in writers.told} <= {423, 503}
        assert store.verify() == []
