"""A pointer that is locked as it is read, while another writer moves the head."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest
from sqlalchemy import Connection

from store import Store
from store.history import heads, lines
from store.history.append import append_messages

pytestmark = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)
SAID = [{"role": "user", "content": "Hi"}] * 4
MOVES: dict[str, Callable[[Connection], object]] = {
    "append": lambda connection: append_messages(connection, "s", SAID, now=1),
    "rewind": lambda connection: heads.rewind_session(connection, "s", 2, now=1),
    "switch": lambda connection: heads.switch_branch(connection, "s", 1, now=1),
}
"""The last of them leaves the branch."""


@pytest.mark.parametrize("move", MOVES)
def test_who_waited_has_the_newest_pointer(url: str, move: str) -> None:
    """Whatever the head moved to, on this branch or another one."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", SAID)
        if move == "switch":
            store.rewind("s", 2)
            store.append("s", SAID)
        found: list[lines.Pointer] = []

        def lock() -> None:
            with store.database.writing() as connection:
                found.append(lines.lock_session(connection, "s"))

        waiting = threading.Thread(target=lock)
        with store.database.writing() as connection:
            MOVES[move](connection)
            waiting.start()
            time.sleep(0.1)
        waiting.join()
        with store.database.reading() as connection:
            newest = lines.load_pointer(connection, "s")
        assert found[0]._replace(head_turn=None, head_tokens=None, is_heard=0) == newest._replace(
            head_turn=None, head_tokens=None
        )
        assert found[0].head_tokens in (None, newest.head_tokens)
        stored = store.append("s", SAID[0])
        assert stored[0].seq == newest.head + 1
        assert store.verify() == []
