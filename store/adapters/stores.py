"""The store that an adapter works on."""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakValueDictionary

from .. import AsyncStore, Policy, Store
from ..records import Session, View

StoreSource = Store | str | os.PathLike[str]
"""An open store, or the path or URL of one."""

PAGE_SIZE = 500
_AWAITED: WeakValueDictionary[int, AsyncStore] = WeakValueDictionary()


class StoreUser:
    """An object that works on an open store, or on one that it opens and shares with others."""

    def __init__(self, store: StoreSource) -> None:
        self._is_shared = not isinstance(store, Store)
        self._store = store if isinstance(store, Store) else Store.shared(store)
        self._awaited: AsyncStore | None = None

    @property
    def store(self) -> Store:
        """The store, for everything that the framework has no word for."""
        return self._store

    @property
    def awaited(self) -> AsyncStore:
        """The store, awaited; all that work on it share its threads."""
        if self._awaited is None:
            name = id(self._store)
            self._awaited = _AWAITED[name] = _AWAITED.get(name) or AsyncStore(self._store)
        return self._awaited

    async def load_view(self, session_id: str, policy: Policy, name: str) -> View:
        """Return the view for the next request, after what the policy compacts before one.

        Results without a time of their own are as old as their storage.
        """
        dated = date_results(policy)
        await self.awaited.compact_if_needed(session_id, dated)
        return await self.awaited.view(session_id, dated, format=name)

    def read_view(self, session_id: str, policy: Policy) -> View:
        """Return the view for the next request as a chat, as `load_view` does."""
        dated = date_results(policy)
        self.store.compact_if_needed(session_id, dated)
        return self.store.view(session_id, dated)

    async def list_sessions_where(self, where: dict[str, Any]) -> list[Session]:
        """Return all sessions whose metadata have these keys and values, the newest first."""
        return await self.awaited.reading(lambda reads: read_sessions(reads, where))

    def close(self) -> None:
        """Give back a store that was opened from a path or URL; a given one stays open."""
        if self._is_shared:
            self._is_shared = False
            self._store.close()


def date_results(policy: Policy) -> Policy:
    """Return a policy by which results without a time are as old as their storage."""
    return policy.model_copy(update={"undated": "stored_at"})


def read_sessions(reads: Any, where: dict[str, Any]) -> list[Session]:
    """Return all sessions whose metadata have these keys and values, the newest first."""
    found: list[Session] = []
    after: Session | None = None
    while True:
        page = reads.sessions(where=where, limit=PAGE_SIZE, after=after)
        found += page
        if len(page) < PAGE_SIZE:
            return found
        after = page[-1]
