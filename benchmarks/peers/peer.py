"""What every side has to do: the same few jobs of a chat app, each with its own library.

Messages go in and come out in the library's own shape; `Peer.native` and `Peer.plain` change one
into the other. Making the library's objects for an append is not timed, and neither is it to
change what was loaded; a view is what an API takes, so that there the change is part of the job.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..rivals import view
from ..workload import ROOT, Message

SUMMARY = "What was said before."


class Peer:
    """A side; what a library has no answer for stays as it is here, and `lacks` names it."""

    lacks: frozenset[str] = frozenset()
    """Operations that the library does not have in any form."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def native(self, messages: list[Message]) -> list[Any]:
        """Return messages as the library wants them."""
        return messages

    def plain(self, stored: list[Any]) -> list[Message]:
        """Return what the library gave as the messages that went in."""
        return stored

    async def create(self, session: str, at: int = 0) -> None:
        """Create a session, last active at a moment."""
        raise NotImplementedError

    async def fill(self, session: str, messages: list[Any]) -> None:
        """Append many messages before anything is timed, by whatever way is quick."""
        await self.append(session, messages)

    async def append(self, session: str, messages: list[Any]) -> None:
        """Append messages, and wait until they are written."""
        raise NotImplementedError

    async def load(self, session: str) -> list[Any]:
        """Return all messages."""
        raise NotImplementedError

    async def newest(self, session: str, count: int) -> list[Any]:
        """Return the newest messages, the oldest of them first."""
        return (await self.load(session))[-count:]

    async def unseen(self, session: str) -> str:
        """Return a session that holds the same, of which no view was taken."""
        return session

    async def view(self, session: str, now: int) -> list[Message]:
        """Return what the API is sent: old outputs replaced, each call with its result."""
        return view(self.plain(await self.load(session)), now, ROOT)

    async def hide(self, session: str, now: int) -> str:  # noqa: ARG002
        """Put a summary before the newest messages; return the session that has it."""
        return session

    async def behind(self, session: str, kept: int, now: int) -> list[Message]:
        """Return what the API is sent of a session whose older messages a summary stands for."""
        newest = self.plain(await self.newest(session, kept))
        return [{"role": "system", "content": SUMMARY}, *view(newest, now, ROOT)]

    async def rewind(self, session: str, count: int) -> None:
        """Let the newest messages not count any more."""
        raise NotImplementedError

    async def sessions(self, limit: int) -> list[str]:
        """Return the ids of the sessions that were active last, the last one first."""
        raise NotImplementedError
