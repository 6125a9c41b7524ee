"""A server that is replaced by its standby: the store goes on with the other one by itself."""

from __future__ import annotations

import threading
import time

import pytest
from writers import Writers

from store import Store
from store.errors import NotAStore
from tests import wheel_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite_only,
    pytest.mark.skipif(bool(wheel_server.lacking()), reason="needs a server of its own"),
]


def open_replica(url: str) -> Store:
    """Return a store that is read on a standby, once that has replayed what made it."""
    patience = time.monotonic() + 30
    while True:
        try:
            return Store(url, read_only=True)
        except NotAStore:
            if time.monotonic() > patience:
                raise
            time.sleep(0.1)


def test_a_standby_takes_the_place_of_its_server() -> None:
    """With synchronous replication every acknowledged message is there, and appends go on."""
    with wheel_server.started() as first, wheel_server.following(first) as standby:
        hosts = "&".join(f"host={each.address}" for each in (first, standby))
        url = f"postgresql+psycopg://postgres@/postgres?{hosts}&target_session_attrs=read-write"
        with Store(url, timeout=5) as store, open_replica(standby.url) as replica:
            store.create_session("s")
            ended = threading.Event()
            writers = Writers(store, 4, ended.is_set)
            time.sleep(2)
            assert replica.session("s").head > 0
            first.stop()
            before = len(writers.acknowledged)
            standby.promote()
            patience = time.monotonic() + 60
            while len(writers.acknowledged) < before + 20 and time.monotonic() < patience:
                time.sleep(0.1)
            ended.set()
            writers.join()
            assert len(writers.acknowledged) >= before + 20
            there = {str(each.message["content"]) for each in store.messages("s")}
            assert there >= {*writers.acknowledged}
            assert writers.told
            assert {each.status for each in writers.told} <= {403, 423, 503}
            assert store.verify() == []
