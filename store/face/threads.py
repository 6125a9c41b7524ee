"""The threads that do the work of an awaited face."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

from .calls import FaceMethod

ThreadParams = ParamSpec("ThreadParams")
ThreadResultT = TypeVar("ThreadResultT")
ThreadWork: TypeAlias = Callable[[], ThreadResultT]
"""A piece of work for a thread."""


class Threads(Protocol):
    """An object with threads, and a face whose methods they call."""

    async def _run(self, work: ThreadWork[ThreadResultT], *, waits: bool = False) -> ThreadResultT:
        """Run work in a thread and return its result."""

    def _call(
        self,
        method: FaceMethod[ThreadParams, ThreadResultT],
        *args: ThreadParams.args,
        **options: ThreadParams.kwargs,
    ) -> ThreadResultT:
        """Call a method of the face."""
