"""A server behind a pooler, which gives each transaction another connection."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

from store import Store, StoreBusy, StoreError

NOBODY = 65534
SERVER = os.environ.get("CONVOSTORE_TEST_URL")
POOLER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SERVER, reason="CONVOSTORE_TEST_URL names no server"),
    pytest.mark.skipif(not POOLER, reason="needs Debian's package pgbouncer"),
]


@pytest.fixture
def pooled(url: str) -> Iterator[str]:
    """Give the URL of a store behind PgBouncer in transaction mode, with three connections."""
    server = sqlalchemy.make_url(url)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "users").write_text(f'"{server.username}" ""\n')
        (folder / "ini").write_text(
            "[databases]\n"
            f"* = host={server.host} port={server.port} user={server.username}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n"
            f"auth_file = {folder / 'users'}\npool_mode = transaction\ndefault_pool_size = 3\n"
            f"unix_socket_dir =\nlogfile = {folder / 'log'}\npidfile = {folder / 'pid'}\n"
        )
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        command = [*(as_nobody if os.getuid() == 0 else []), str(POOLER), str(folder / "ini")]
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await_port(port)
            yield server.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        finally:
            program.terminate()
            program.wait(30)


def _await_port(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the pooler does not answer")


def test_many_threads_share_few_connections(pooled: str) -> None:
    """Each append is there once, each view is whole, and a search finds them."""
    with Store(pooled, pooler=True) as store:
        store.create_session("s")
        problems: list[BaseException] = []

        def talk(number: int) -> None:
            try:
                for turn in range(25):
                    store.append("s", {"role": "user", "content": f"{number} {turn} word"})
                    assert store.view("s").messages
            except BaseException as problem:  # noqa: BLE001 - told below
                problems.append(problem)

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert problems == []
        said = [each.message["content"] for each in store.messages("s")]
        assert len({*said}) == len(said) == 200
        assert store.search("word", limit=5)
        assert store.verify() == []


def test_settings_come_with_each_transaction(pooled: str) -> None:
    """A lock is waited for until the deadline, and a commit is flushed as was asked."""
    with Store(f"{pooled}?pooler=1", timeout=1) as store, Store(pooled, pooler=True) as other:
        store.create_session("s")
        with store.database.reading() as connection:
            level = connection.execute(sqlalchemy.text("SHOW synchronous_commit")).scalar()
        assert level == "on"
        with other.database.writing() as connection:
            connection.execute(sqlalchemy.text("SELECT * FROM sessions FOR UPDATE"))
            begun = time.monotonic()
            with pytest.raises(StoreBusy):
                store.append("s", {"role": "user", "content": "never"})
            assert 0.5 < time.monotonic() - begun < 30
        store.append("s", {"role": "user", "content": "then"})


def test_whoever_does_not_know_of_it_is_told(pooled: str) -> None:
    """The error names the option."""
    with pytest.raises(StoreError, match="pooler=True"):
        Store(pooled)
