"""Puts `store.adapters.langgraph.Saver` in the place of LangGraph's savers on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import langgraph.checkpoint.sqlite as sqlite_savers
import langgraph.checkpoint.sqlite.aio as awaited_savers

from store import Store
from store.adapters.langgraph import Saver


@contextmanager
def open_saver(kind: type[Saver], target: str) -> Iterator[Any]:
    """Give a saver of a file, or, with no file, of a store of its own."""
    if target == ":memory:":
        with Store(target, durability="normal") as store:
            yield kind(store)
    else:
        saver = kind(Path(target))
        yield saver
        saver.close()


class SqliteSaver(Saver):
    """Our saver, made as theirs is."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str) -> Iterator[Any]:
        """Give a saver."""
        with open_saver(cls, conn_string) as saver:
            yield saver


class AsyncSqliteSaver(Saver):
    """Our saver, made as their awaited one is."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str) -> AsyncIterator[Any]:
        """Give a saver."""
        with open_saver(cls, conn_string) as saver:
            yield saver


sqlite_savers.SqliteSaver = SqliteSaver  # type: ignore[misc, assignment]
awaited_savers.AsyncSqliteSaver = AsyncSqliteSaver  # type: ignore[misc, assignment]
