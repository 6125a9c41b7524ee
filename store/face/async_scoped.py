"""The sessions of one owner, awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .async_operations import AsyncScopedOperations
from .async_workflows import AsyncWorkflows
from .calls import FaceMethod
from .scoped import Scoped, validate_owner
from .threads import ThreadWork

ScopedParams = ParamSpec("ScopedParams")
ScopedResultT = TypeVar("ScopedResultT")


class AsyncScoped(AsyncWorkflows, AsyncScopedOperations):
    """A `Scoped` whose operations are awaited, as `AsyncStore.scoped` returns it."""

    def __init__(self, store: AsyncWorkflows, scoped: Callable[[], Scoped], owner: str) -> None:
        self._store, self._scoped, self._owner = store, scoped, validate_owner(owner)

    @property
    def owner(self) -> str:
        """The owner of the sessions."""
        return self._owner

    async def _run(self, work: ThreadWork[ScopedResultT], *, waits: bool = False) -> ScopedResultT:
        """Run work in a thread of the whole store."""
        return await self._store._run(work, waits=waits)

    def _call(
        self,
        method: FaceMethod[ScopedParams, ScopedResultT],
        *args: ScopedParams.args,
        **options: ScopedParams.kwargs,
    ) -> ScopedResultT:
        """Call a method of the owner's face."""
        return method(self._scoped(), *args, **options)
