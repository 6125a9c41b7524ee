"""Sessions of OpenAI's Agents SDK: ``Runner.run(agent, text, session=Session("id", store))``.

The items of a run are stored as they are, as messages of the format ``responses``. Whatever the SDK
removes from a session is a rewind of its line, except what `Session.clear_session` erases.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agents.memory import SessionSettings

from .. import AsyncStore, Conflict, Policy, SessionNotFound
from ..records import Session as StoredSession
from ..records import StoredMessage
from .stores import StoreSource, StoreUser

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

    ExpiryTest: TypeAlias = Callable[[TResponseInputItem], bool]

__all__ = ["Session"]

FORMAT = "responses"


class Session(StoreUser):
    """A session of a store, as the SDK's protocol ``Session`` has it.

    ``store`` is an open store, or the path or URL of one, which all sessions of the process share
    and `close` gives back. With a ``policy`` the history that a run reads is the view by that
    policy, compacted first if the policy says so; otherwise it is every item. ``settings`` are the
    SDK's ``SessionSettings``, such as a limit of items. ``on_clear`` says what `clear_session`
    does: ``"erase"`` deletes the session for good, ``"rewind"`` only moves its head back, which can
    be undone.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        store: StoreSource,
        *,
        policy: Policy | None = None,
        settings: SessionSettings | dict[str, Any] | None = None,
        on_clear: Literal["erase", "rewind"] = "erase",
    ) -> None:
        super().__init__(store)
        self.session_id = session_id
        self.session_settings = SessionSettings().resolve(settings)
        self._policy = policy
        self._on_clear = on_clear

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest ``limit`` items, the oldest first (None: as many as the settings say).

        A negative limit is none.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit == 0:
            return []
        with suppress(SessionNotFound):
            if self._policy is not None:
                view = await self.load_view(self.session_id, self._policy, FORMAT)
                return view.messages[-limit if limit and limit > 0 else 0 :]
            newest = limit if limit and limit > 0 else None
            found = await self.awaited.messages(self.session_id, last=newest, format=FORMAT)
            return [each.message for each in found]
        return []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items as one change; the session begins with the first."""
        if items:
            # The SDK gives the items of other providers one id for all: ids are no keys here.
            await self.awaited.append(
                self.session_id, items, create=True, dedupe="off", format=FORMAT
            )

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it; None without one. No two callers get the same."""
        with suppress(SessionNotFound):
            popped = await self.awaited.pop(self.session_id)
            return popped and popped.message
        return None

    async def clear_session(self) -> None:
        """Remove all items: for good, or with ``on_clear="rewind"`` until a rewind is undone."""
        with suppress(SessionNotFound):
            if self._on_clear == "erase":
                await self.awaited.delete_session(self.session_id)
            else:
                await self.awaited.rewind(self.session_id, 0)

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: ExpiryTest | None = None
    ) -> CompactionSnapshot:
        """Return the newest items, and how to replace the last of them if nothing changed since.

        The SDK's sessions that compact by the Responses API ask for it by this name; of a session
        without it they compact only a history that they see whole.
        """
        try:
            return await self.awaited.reading(
                lambda reads: CompactionSnapshot(
                    self.awaited,
                    reads.session(self.session_id),
                    reads.messages(self.session_id, last=limit + 1, format=FORMAT),
                    limit,
                    prune_prefix,
                )
            )
        except SessionNotFound:
            return CompactionSnapshot(self.awaited, None, [], limit, None)


class CompactionSnapshot:
    """The newest items of a session, as the SDK reads them before it compacts.

    ``complete`` tells whether these are all. ``is_expired`` tells which of the oldest items, before
    those that are shown, may go.
    """

    def __init__(
        self,
        store: AsyncStore,
        session: StoredSession | None,
        found: list[StoredMessage],
        limit: int,
        is_expired: ExpiryTest | None,
    ) -> None:
        self._store, self._session, self._is_expired = store, session, is_expired
        self._shown = found[-limit:]
        self.items: list[TResponseInputItem] = [each.message for each in self._shown]
        self.complete = len(found) <= limit
        self._before = found[0].seq if not self.complete else 0

    async def replace_suffix(self, start: int, output: list[TResponseInputItem]) -> bool:
        """Replace the items from a place on; False if the session changed since they were read."""
        if self._session is None or start >= len(self._shown):
            return False
        after = self._shown[start - 1].seq if start else self._before
        after, kept = await self._prune(after)
        try:
            await self._store.replace(
                self._session.id,
                after,
                [*kept, *output],
                expected=self._session.revision,
                format=FORMAT,
            )
        except (Conflict, SessionNotFound):
            return False
        return True

    async def _prune(self, after: int) -> tuple[int, list[TResponseInputItem]]:
        """Return where the new items go, and the older items that have to be stored again there.

        None have, unless some before them expired: then the line begins anew without these.
        """
        if self._session is None or self._is_expired is None or self.complete:
            return after, []
        older = await self._store.messages(self._session.id, 1, after, format=FORMAT)
        items = [each.message for each in older]
        kept = [*dropwhile(self._is_expired, items)]
        return (after, []) if len(kept) == len(items) else (0, kept)
