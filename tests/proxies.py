"""What passes on the messages between a store and its server: counted, or later."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from queue import SimpleQueue

import sqlalchemy

from store import Store


class CountingProxy:
    """Passes on what a client and a server send, and counts how often the client goes on.

    It does so after the server has answered: that is one round trip. The end of a reader is
    not counted, since nobody waits for its answer.
    """

    def __init__(self, host: str, port: int) -> None:
        self.count, self._server_spoke, self._is_reader = 0, True, False
        self._target, self._listener = (host, port), socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for each in (client, server):  # pass on at once what a driver sends at once
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for pair in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, from_server: bool) -> None:
        with suppress(OSError), closing(source), closing(target):
            while data := source.recv(65536):
                if b"BEGIN" in data and not from_server:
                    self._is_reader = b"READ ONLY" in data
                if from_server or not (self._is_reader and b"COMMIT" in data):
                    self.count += self._server_spoke and not from_server
                    self._server_spoke = from_server
                target.sendall(data)

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()


WAY_SECONDS = 0.01
"""How long what is sent is under way, in either direction."""


class DelayingProxy(CountingProxy):
    """Passes on what is sent as a far network does: all of it later, in order."""

    def _pass_on(self, source: socket.socket, target: socket.socket, from_server: bool) -> None:
        under_way: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        threading.Thread(target=self._deliver, args=(under_way, target), daemon=True).start()
        with suppress(OSError), closing(source):
            while data := source.recv(65536):
                under_way.put((time.monotonic() + WAY_SECONDS, data))
        under_way.put((time.monotonic(), b""))

    def _deliver(self, under_way: SimpleQueue[tuple[float, bytes]], target: socket.socket) -> None:
        with suppress(OSError), closing(target):
            while data := (sent := under_way.get())[1]:
                time.sleep(max(0, sent[0] - time.monotonic()))
                target.sendall(data)


@contextmanager
def open_behind(proxy: type[CountingProxy], url: str) -> Iterator[tuple[CountingProxy, Store]]:
    """Give a store whose connections go through a proxy."""
    at = sqlalchemy.make_url(url)
    with closing(proxy(at.host or "", at.port or 5432)) as opened:
        behind = at.set(host="127.0.0.1", port=opened.port)
        with Store(behind.update_query_dict({"sslmode": "disable"})) as store:
            yield opened, store
