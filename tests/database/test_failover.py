"""A server that is replaced by its standby: the store goes on with the other one by itself."""

from __future__ import annotations

import threading
import time

import pytest

from store import Store
from store.errors import StoreError
from tests import wheel_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite_only,
    pytest.mark.skipif(bool(wheel_server.lacking()), reason="needs a server of its own"),
]


def test_a_standby_takes_the_place_of_its_server() -> None:
    """With synchronous replication every acknowledged message is there, and appends go on."""
    with wheel_server.started() as first, wheel_server.following(first) as standby:
        hosts = "&".join(f"host={each.address}" for each in (first, standby))
        url = f"postgresql+psycopg://postgres@/postgres?{hosts}&target_session_attrs=read-write"
        with Store(url, timeout=5) as store, Store(standby.url, read_only=True) as replica:
            store.create_session("s")
            acknowledged: list[str] = []
            told: list[StoreError] = []
            ended = threading.Event()

            def write(thread: int) -> None:
                number = 0
                while not ended.is_set():
                    name = f"{thread} {number}"
                    try:
                        store.append("s", {"role": "user", "content": name, "id": name})
                        acknowledged.append(name)
                        number += 1
                    except StoreError as error:
                        told.append(error)
                        time.sleep(0.05)

            threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
            for each in threads:
                each.start()
            time.sleep(2)
            assert replica.session("s").head > 0
            first.stop()
            before = len(acknowledged)
            standby.promote()
            patience = time.monotonic() + 60
            while len(acknowledged) < before + 20 and time.monotonic() < patience:
                time.sleep(0.1)
            ended.set()
            for each in threads:
                each.join()
            assert len(acknowledged) >= before + 20
            there = {str(each.message["content"]) for each in store.messages("s")}
            assert there >= {*acknowledged}
            assert told
            assert {each.status for each in told} <= {403, 423, 503}
            assert store.verify() == []
