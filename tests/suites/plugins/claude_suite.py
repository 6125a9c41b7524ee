"""Puts `store.adapters.claude.Sessions` in the place of the SDK's store in memory."""

from __future__ import annotations

from typing import Any

import claude_agent_sdk
from claude_agent_sdk._internal import session_store

from store import Store
from store.adapters.claude import Sessions


class InMemorySessionStore(Sessions):
    """Our sessions, each with a store of its own, and what tests ask of theirs beside."""

    def __init__(self) -> None:
        super().__init__(Store(":memory:", durability="normal"))

    def get_entries(self, key: Any) -> list[Any]:
        """Return the entries of a transcript, none if there is none."""
        from store.adapters.claude import name_session, restore_entry

        try:
            found = self.store.messages(name_session(key))
        except LookupError:
            return []
        return [restore_entry(each.message) for each in found]

    @property
    def size(self) -> int:
        """Return the number of sessions."""
        return self.store.count_sessions(where={"part": "main"})


for place in (session_store, claude_agent_sdk):
    place.InMemorySessionStore = InMemorySessionStore  # type: ignore[misc, attr-defined]
