"""Sessions of OpenAI's Agents SDK: ``Runner.run(agent, text, session=Session("id", store))``.

The items of a run are stored as they are, as messages of the format ``responses``. Whatever the SDK
removes from a session is a rewind of its line, except what `Session.clear_session` erases.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count, dropwhile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agents.memory import SessionSettings

from .. import AsyncStore, Conflict, Policy, SessionNotFound, StoreClosed
from ..records import Session as StoredSession
from ..records import StoredMessage, Turn
from .openai_items import (
    ITEM_PREVIEW_LENGTH,
    UNSENT_KEY,
    TurnItem,
    count_tools,
    describe_turn,
    format_time,
    has_words,
    number_turns,
    restore_item,
    shape_items,
)
from .stores import StoreSource, StoreUser

if TYPE_CHECKING:
    from agents import RunResult
    from agents.items import TResponseInputItem

    ExpiryTest: TypeAlias = Callable[[TResponseInputItem], bool]
    TurnSearch: TypeAlias = Callable[[Any], int]

__all__ = ["BranchedSession", "Session", "SessionClosed"]

FORMAT = "responses"
MAIN = "main"
"""The branch that a session begins with."""
USAGE_KEY = "openai-agents usage of"
"""The beginning of the keys of notes with the usages of turns, before the name of the branch."""
LOGGER = logging.getLogger(__name__)


class SessionClosed(StoreClosed, RuntimeError):
    """Report that a session was closed before; it is a RuntimeError, as the SDK's own raise."""


class Session(StoreUser):
    """A session of a store, as the SDK's protocol ``Session`` has it.

    ``store`` is an open store, or the path or URL of one, which all sessions of the process share
    and `close` gives back. With a ``policy`` the history that a run reads is the view by that
    policy, compacted first if the policy says so; otherwise it is every item. ``settings`` are the
    SDK's ``SessionSettings``, such as a limit of items. ``on_clear`` says what `clear_session`
    does: ``"erase"`` deletes the session for good, ``"rewind"`` only moves its head back, which can
    be undone. After `close` every method raises SessionClosed.
    """

    session_id: str
    session_settings: SessionSettings | None
    _is_closed = False

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

    @property
    def awaited(self) -> AsyncStore:
        """The store, awaited. Raises SessionClosed."""
        if self._is_closed:
            raise SessionClosed(f"the {type(self).__name__} is closed; make another one")
        return super().awaited

    def close(self) -> None:
        """End the session's use, and give back a store opened from a path or URL."""
        self._is_closed = True
        super().close()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest ``limit`` items, the oldest first (None: as many as the settings say).

        A negative limit is none.
        """
        return await self._read_items(self.session_id, limit)

    async def _read_items(self, name: str, limit: int | None) -> list[TResponseInputItem]:
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit == 0:
            return []
        with suppress(SessionNotFound):
            if self._policy is not None:
                view = await self.load_view(name, self._policy, FORMAT)
                sent = [each for each in view.messages if UNSENT_KEY not in each]
                return sent[-limit if limit and limit > 0 else 0 :]
            newest = limit if limit and limit > 0 else None
            found = await self.awaited.messages(name, last=newest, format=FORMAT)
            return [*map(restore_item, found)]
        return []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items as one change; the session begins with the first."""
        store = self.awaited  # a closed session refuses an empty list, too
        if items:
            # The SDK gives the items of other providers one id for all: ids are no keys here.
            await store.append(
                self.session_id, shape_items(items), create=True, dedupe="off", format=FORMAT
            )

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it; None without one. No two callers get the same."""
        with suppress(SessionNotFound):
            popped = await self.awaited.pop(self.session_id)
            return popped and restore_item(popped)
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


class BranchedSession(Session):
    """A session with branches, as the SDK's ``AdvancedSQLiteSession`` has them.

    The branch ``main`` is the session itself; each other one is a fork of it with the key
    ``branch`` in its metadata, which copies nothing. An object works on one branch, `branch_id`, so
    several may be live at once. A name is used once: those of deleted branches stay taken, in the
    metadata of the session ``ID/branches``. The parameters are those of `Session`.
    """

    branch_id: str = MAIN
    _clears: int | None = None

    async def get_items(
        self, limit: int | None = None, branch_id: str | None = None
    ) -> list[TResponseInputItem]:
        """Return the newest items of a branch (None: the present one), as `Session.get_items`."""
        name = await self.awaited.reading(lambda reads: self._find_line(reads, branch_id))
        return await self._read_items(name, limit) if name else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items to the present branch as one change. Raises ValueError if it is deleted."""
        branch, store = self.branch_id, self.awaited
        if items:
            await store.atomically(
                lambda steps: steps.append(
                    self._require_line(steps, branch),
                    shape_items(items),
                    create=True,
                    dedupe="off",
                    format=FORMAT,
                )
            )

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item of the present branch and return it; None without one."""
        branch = self.branch_id
        with suppress(SessionNotFound):
            popped = await self.awaited.atomically(
                lambda steps: steps.pop(self._require_line(steps, branch))
            )
            return popped and restore_item(popped)
        return None

    async def clear_session(self) -> None:
        """Remove the items of all branches, as `Session.clear_session` does; begin anew on main."""

        def work(steps: Any) -> None:
            known = self._load_branches(steps)
            lines = [self.session_id, *filter(None, known["branches"].values())]
            if self._on_clear == "erase":
                steps.delete_session(lines, missing="ignore")
            else:
                for name in lines:
                    with suppress(SessionNotFound):
                        steps.rewind(name, 0)
            if known["branches"]:
                gone = dict.fromkeys(known["branches"], False)
                told = {"branches": gone, "clears": known["clears"] + 1}
                steps.set_metadata(self._branches_id, told, merge=True)
                self._clears = known["clears"] + 1
            self.branch_id = MAIN

        await self.awaited.atomically(work)

    async def create_branch_from_turn(
        self, turn_number: int, branch_name: str | None = None
    ) -> str:
        """Fork the present branch before the user's item of a turn, go there, and return its name.

        Raises ValueError if there is no such turn, or the name is empty or was used before.
        """
        return await self._begin_branch(lambda _: turn_number, branch_name)

    async def create_branch_from_content(
        self, search_term: str, branch_name: str | None = None
    ) -> str:
        """Fork the present branch before the first turn whose user's item has some words.

        Raises ValueError if there is none, or for the name.
        """

        def find_turn(steps: Any) -> int:
            line = self._find_line(steps, None)
            found = find_turns(self._load_turns(steps, line), search_term)
            if not found:
                raise ValueError(f"No user turns found containing '{search_term}'")
            return found[0].turn

        return await self._begin_branch(find_turn, branch_name)

    async def _begin_branch(self, find_turn: TurnSearch, branch_name: str | None) -> str:
        """Fork the present branch at a turn, as one change with the search for it, and go there."""
        if branch_name is not None and not branch_name.strip():
            raise ValueError("Branch name cannot be empty")

        def work(steps: Any) -> tuple[str, int]:
            turn, line = find_turn(steps), self._require_line(steps, self.branch_id)
            begun: list[Turn] = []
            with suppress(SessionNotFound):
                begun = steps.turns(line, turn, turn) if turn > 0 else []
            if not begun:
                raise ValueError(
                    f"Turn {turn} does not contain a user message in branch '{self.branch_id}'"
                )
            told = {"framework": "openai-agents", "session": self.session_id}
            known = self._load_branches(steps)
            if not known["branches"]:
                first = {**told, **known}
                steps.create_session(self._branches_id, metadata=first, exist_ok=True)
                known = self._load_branches(steps)
            name = choose_name(known["branches"], branch_name, turn)
            made = steps.fork(line, at=begun[0].first - 1, metadata={**told, "branch": name})
            taken = {"branches": {name: made.id}}
            steps.set_metadata(self._branches_id, taken, merge=True)
            return name, known["clears"]

        made, self._clears = await self.awaited.atomically(work)
        self.branch_id = made
        return made

    async def switch_to_branch(self, branch_id: str) -> None:
        """Go on with another branch that has items. Raises ValueError without one."""

        def work(reads: Any) -> int:
            self._require_items(reads, branch_id)
            return int(self._load_branches(reads)["clears"])

        self._clears = await self.awaited.reading(work)
        self.branch_id = branch_id

    async def delete_branch(self, branch_id: str, force: bool = False) -> None:
        """Erase a branch for good, but what others share; its name stays taken.

        With ``force`` also the present one, which goes back to main. Raises ValueError for main, an
        unknown one, and the present one.
        """
        if not branch_id or not branch_id.strip():
            raise ValueError("Branch ID cannot be empty")
        if branch_id == MAIN:
            raise ValueError("Cannot delete the 'main' branch")
        if branch_id == self.branch_id and not force:
            raise ValueError(
                f"Cannot delete current branch '{branch_id}'. "
                "Use force=True or switch branches first"
            )

        def work(steps: Any) -> None:
            line = self._require_items(steps, branch_id)
            steps.delete_session(line)
            gone = {"branches": {branch_id: False}}
            steps.set_metadata(self._branches_id, gone, merge=True)

        await self.awaited.atomically(work)
        if self.branch_id == branch_id:
            self.branch_id = MAIN

    async def list_branches(self) -> list[dict[str, Any]]:
        """Return the branches that have items, oldest first: their names, sizes and turns."""

        def work(reads: Any) -> list[dict[str, Any]]:
            self._find_line(reads, None)
            known = self._load_branches(reads)["branches"]
            found = []
            for name, line in {MAIN: self.session_id, **known}.items():
                items = self._load_turns(reads, line) if line else []
                if items:
                    found.append(
                        {
                            "branch_id": name,
                            "message_count": len(items),
                            "user_turns": sum(each.begins_turn for each in items),
                            "is_current": name == self.branch_id,
                            "created_at": format_time(reads.session(line).created_at),
                        }
                    )
            return sorted(found, key=lambda each: str(each["created_at"]))

        return await self.awaited.reading(work)

    async def get_conversation_turns(self, branch_id: str | None = None) -> list[dict[str, Any]]:
        """Return the users' turns of a branch (None: the present one), with short contents."""
        items = await self._read_turns(branch_id)
        return [describe_turn(each, ITEM_PREVIEW_LENGTH) for each in items if each.begins_turn]

    async def find_turns_by_content(
        self, search_term: str, branch_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the users' turns of a branch that say some words, in capitals or not."""
        found = find_turns(await self._read_turns(branch_id), search_term)
        return [*map(describe_turn, found)]

    async def get_conversation_by_turns(
        self, branch_id: str | None = None
    ) -> dict[int, list[dict[str, str | None]]]:
        """Return what kinds of items each turn of a branch has, and the names of their tools."""
        turns: dict[int, list[dict[str, str | None]]] = {}
        for each in await self._read_turns(branch_id):
            told = {"type": each.kind, "tool_name": each.tool_name}
            turns.setdefault(each.turn, []).append(told)
        return turns

    async def get_tool_usage(self, branch_id: str | None = None) -> list[tuple[str, int, int]]:
        """Return the tools that were called in each turn of a branch: name, how often, turn."""
        return count_tools(await self._read_turns(branch_id))

    async def store_run_usage(self, result: RunResult) -> None:
        """Record what a run cost for the present turn; a problem is logged, not raised."""
        branch = self.branch_id

        def work(steps: Any) -> None:
            used = result.context_wrapper.usage
            line = self._require_line(steps, branch)
            items = self._load_turns(steps, line)
            if used is not None and items:
                told = describe_usage(used)
                begun = next(each for each in items if each.turn == items[-1].turn)
                steps.annotate(line, begun.stored.seq, f"{USAGE_KEY} {branch}", told)
                tokens = {"input": told["input_tokens"], "output": told["output_tokens"]}
                details = told["input_tokens_details"] or {}
                cached = min(tokens["input"], details.get("cached_tokens") or 0)
                steps.record_usage(line, **tokens, cached=cached)

        try:
            await self.awaited.atomically(work)
        except Exception:
            LOGGER.exception(
                "the usage of a run of session %r is not recorded",
                self.session_id,
                extra={"session_id": self.session_id, "owner": None, "seconds": None},
            )

    async def get_session_usage(self, branch_id: str | None = None) -> dict[str, int] | None:
        """Return the sums of the usages of turns, of a branch or of all; None without any."""

        def work(reads: Any) -> list[dict[str, Any]]:
            names = [branch_id] if branch_id else [MAIN, *self._load_branches(reads)["branches"]]
            return [each for name in names for each in self._load_usages(reads, name)]

        found = await self.awaited.reading(work)
        names = ("requests", "input_tokens", "output_tokens", "total_tokens")
        sums = {name: sum(each[name] for each in found) for name in names}
        return {**sums, "total_turns": len(found)} if found else None

    async def get_turn_usage(
        self, user_turn_number: int | None = None, branch_id: str | None = None
    ) -> list[dict[str, Any]] | dict[str, Any]:
        """Return the usages of all turns of a branch, or that of one; an empty dict without it."""
        found = await self.awaited.reading(lambda reads: self._load_usages(reads, branch_id))
        if user_turn_number is None:
            return found
        told = {each.pop("user_turn_number"): each for each in found}
        return told.get(user_turn_number, {})

    @property
    def _branches_id(self) -> str:
        return f"{self.session_id}/branches"

    def _load_branches(self, reads: Any) -> Mapping[str, Any]:
        """Return the ids of branches by name, False for those deleted, and the number of clears."""
        with suppress(SessionNotFound):
            told: Mapping[str, Any] = reads.session(self._branches_id).metadata
            return told
        return {"branches": {}, "clears": 0}

    def _find_line(self, reads: Any, branch_id: str | None) -> str | None:
        """Return the session of a branch; after a clear by others the present one is main."""
        if (branch_id or self.branch_id) == MAIN:
            return self.session_id
        known = self._load_branches(reads)
        if self._clears not in (None, known["clears"]):
            self._clears = known["clears"]
            if branch_id in (None, self.branch_id):
                self.branch_id = branch_id = MAIN
        if (branch_id or self.branch_id) == MAIN:
            return self.session_id
        return known["branches"].get(branch_id or self.branch_id) or None

    def _require_line(self, steps: Any, branch: str) -> str:
        line = self._find_line(steps, branch)
        if line is None:
            raise ValueError(f"Branch '{branch}' does not exist")
        return line

    def _require_items(self, reads: Any, branch: str) -> str:
        with suppress(SessionNotFound):
            line = self._require_line(reads, branch)
            if reads.session(line).head:
                return line
        raise ValueError(f"Branch '{branch}' does not exist")

    def _load_turns(self, reads: Any, line: str | None) -> list[TurnItem]:
        with suppress(SessionNotFound):
            return number_turns(reads.messages(line, format=FORMAT)) if line else []
        return []

    async def _read_turns(self, branch_id: str | None) -> list[TurnItem]:
        return await self.awaited.reading(
            lambda reads: self._load_turns(reads, self._find_line(reads, branch_id))
        )

    def _load_usages(self, reads: Any, branch_id: str | None) -> list[dict[str, Any]]:
        """Return the usages of a branch's turns: notes beside the items that these begin with."""
        line = self._find_line(reads, branch_id)
        items = self._load_turns(reads, line)
        key = f"{USAGE_KEY} {branch_id or self.branch_id}"
        notes = reads.annotations(line, key=key) if items else []
        return [{"user_turn_number": items[each.seq - 1].turn, **each.value} for each in notes]


def find_turns(items: list[TurnItem], search_term: str) -> list[TurnItem]:
    """Return the items of users that say some words, in capitals or not."""
    words = re.compile(re.escape(search_term), re.IGNORECASE | re.ASCII)
    return [each for each in items if each.begins_turn and has_words(each, words)]


def choose_name(taken: Mapping[str, Any], name: str | None, turn: int) -> str:
    """Return the name of a new branch. Raises ValueError for one that was used before."""
    if name is not None:
        if name == MAIN or name in taken:
            raise ValueError(f"Branch ID '{name}' has already been used. Choose a new branch ID.")
        return name
    base = f"branch_from_turn_{turn}_{int(time.time())}"
    names = (base if number == 1 else f"{base}_{number}" for number in count(1))
    return next(each for each in names if each not in taken)


def describe_usage(used: Any) -> dict[str, Any]:
    """Return a usage as the SDK's session tells it."""
    names = ("requests", "input_tokens", "output_tokens", "total_tokens")
    told: dict[str, Any] = {name: getattr(used, name) or 0 for name in names}
    for name in ("input_tokens_details", "output_tokens_details"):
        details = getattr(used, name, None)
        told[name] = details.__dict__ if details else None
    return told


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
        self.items: list[TResponseInputItem] = [*map(restore_item, self._shown)]
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
                shape_items([*kept, *output]),
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
        items = [*map(restore_item, older)]
        kept = [*dropwhile(self._is_expired, items)]
        return (after, []) if len(kept) == len(items) else (0, kept)
