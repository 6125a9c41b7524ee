"""The databases of a cluster: one of the same name on each node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple

import psycopg
import sqlalchemy
from sqlalchemy import URL

from store import Store
from store.inspection import Database, divide_tables

PARTITIONS = 4
"""The partitions of a table where there is no Citus."""
RECOVERY_SECONDS = 60.0
SETTINGS = {"citus.enable_unsafe_triggers": "on", "citus.shard_count": "4"}


class Cluster(NamedTuple):
    """The URLs of the nodes, first that of the coordinator; without Citus they may be the same."""

    nodes: list[str]
    is_citus: bool

    @property
    def servers(self) -> list[str]:
        """The URLs of the nodes, each once."""
        return [*dict.fromkeys(self.nodes)]

    def name_urls(self, database: str) -> list[str]:
        """Return the URLs of a database on each node."""
        named = (sqlalchemy.make_url(each).set(database=database) for each in self.nodes)
        return [each.render_as_string(hide_password=False) for each in named]

    def create(self, database: str, like: str | None = None) -> None:
        """Create a database on each node, empty or a copy of another one."""
        copied = f" TEMPLATE {like}" if like else ""
        for each in self.servers:
            ask(each, f"CREATE DATABASE {database}{copied}")

    def drop(self, database: str) -> None:
        """Drop a database on each node."""
        for each in self.servers:
            ask(each, f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def distribute(self, database: str) -> None:
        """Make a store in an empty database, and distribute its tables."""
        urls = self.name_urls(database)
        if self.is_citus:
            self._join_nodes(database, urls)
        Store(urls[0]).close()
        with closing(Database(urls[0])) as opened:
            divide_tables(opened, None if self.is_citus else PARTITIONS)

    def _join_nodes(self, database: str, urls: list[str]) -> None:
        """Create the extension on each node, and tell the coordinator of the workers."""
        for url in urls:
            ask(url, "CREATE EXTENSION IF NOT EXISTS citus")
            for name, value in SETTINGS.items():
                ask(url, f"ALTER DATABASE {database} SET {name} = '{value}'")
        first, *workers = map(sqlalchemy.make_url, urls)
        ask(urls[0], f"SELECT citus_set_coordinator_host('{first.host}', {first.port})")
        for each in workers:
            ask(urls[0], f"SELECT citus_add_node('{each.host}', {each.port})")


def build_cluster(places: list[str]) -> Cluster:
    """Return a cluster of Citus of nodes that are given as HOST:PORT."""
    nodes = []
    for place in places:
        host, _, port = place.rpartition(":")
        made = URL.create("postgresql+psycopg", "postgres", None, host, int(port), "postgres")
        nodes.append(made.render_as_string(hide_password=False))
    return Cluster(nodes, is_citus=True)


@contextmanager
def connect(url: str) -> Iterator[Any]:
    """Give a connection of the driver, outside of transactions."""
    plain = sqlalchemy.make_url(url).set(drivername="postgresql")
    text = plain.render_as_string(hide_password=False)
    with psycopg.connect(text, autocommit=True) as connection:
        yield connection


def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, [] of one that has none."""
    with connect(url) as connection:
        cursor = connection.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def kill_server(url: str) -> None:
    """Have a process of a server killed: all its connections end. Wait until it has recovered."""
    (pid,) = ask(url, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")[0]
    with suppress(psycopg.OperationalError):  # it ends with the others
        ask(url, f"COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; kill -9 {pid}'")
    ends = time.monotonic() + RECOVERY_SECONDS
    while True:
        try:
            ask(url, "SELECT 1")
        except psycopg.OperationalError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.1)
        else:
            return
