"""The sessions of one owner, awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from .awaiting import Awaited, Deletes, Work, awaits, iterates
from .binding import Method
from .scoped import Scoped, checked_owner

P = ParamSpec("P")
R = TypeVar("R")


class AsyncScoped(Awaited):
    """A `Scoped` whose operations are awaited, as `AsyncStore.scoped` gives it."""

    def __init__(self, store: Awaited, scoped: Callable[[], Scoped], owner: str) -> None:
        self._store, self._scoped, self._owner = store, scoped, checked_owner(owner)

    @property
    def owner(self) -> str:
        """Whose sessions they are."""
        return self._owner

    create_session = awaits(Scoped.create_session, waits=True)
    session = awaits(Scoped.session)
    title = awaits(Scoped.title)
    sessions = awaits(Scoped.sessions)
    count_sessions = awaits(Scoped.count_sessions)
    archive = awaits(Scoped.archive, waits=True)
    unarchive = awaits(Scoped.unarchive, waits=True)
    rename_session = awaits(Scoped.rename_session, waits=True)
    set_project_root = awaits(Scoped.set_project_root, waits=True)
    set_metadata = awaits(Scoped.set_metadata, waits=True)
    append = awaits(Scoped.append, waits=True)
    messages = awaits(Scoped.messages)
    pages = iterates(Scoped.pages)
    message = awaits(Scoped.message)
    find = awaits(Scoped.find)
    turns = awaits(Scoped.turns)
    fork = awaits(Scoped.fork, waits=True)
    rewind = awaits(Scoped.rewind, waits=True)
    switch = awaits(Scoped.switch, waits=True)
    branches = awaits(Scoped.branches)
    siblings = awaits(Scoped.siblings)
    replace = awaits(Scoped.replace, waits=True)
    pop = awaits(Scoped.pop, waits=True)
    undo_rewind = awaits(Scoped.undo_rewind, waits=True)
    head_moves = awaits(Scoped.head_moves)
    view = awaits(Scoped.view)
    redact = awaits(Scoped.redact, waits=True)
    redactions = awaits(Scoped.redactions)
    check = awaits(Scoped.check)
    record_usage = awaits(Scoped.record_usage, waits=True)
    compactions = awaits(Scoped.compactions)
    hidden = awaits(Scoped.hidden)
    replaced = awaits(Scoped.replaced)
    plan_compaction = awaits(Scoped.plan_compaction)
    undo_compaction = awaits(Scoped.undo_compaction, waits=True)
    compact = awaits(Scoped.compact, waits=True)
    compact_if_needed = awaits(Scoped.compact_if_needed, waits=True)
    context = awaits(Scoped.context)
    delete_session = cast("Deletes", awaits(Scoped.delete_session, waits=True))
    count_tokens = awaits(Scoped.count_tokens, waits=True)
    atomically = awaits(Scoped.atomically, waits=True)

    async def _run(self, work: Work[R], *, waits: bool = False) -> R:
        """Run work in a thread of the whole store."""
        return await self._store._run(work, waits=waits)

    def _call(self, method: Method[P, R], *args: P.args, **options: P.kwargs) -> R:
        """Call a method of the owner's face."""
        return method(self._scoped(), *args, **options)
