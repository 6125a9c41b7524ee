"""The threads that do the work of an awaited face."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

from .calls import Method

P = ParamSpec("P")
R = TypeVar("R")
Work: TypeAlias = Callable[[], R]
"""A piece of work for a thread."""


class Threads(Protocol):
    """An object with threads, and a face whose methods they call."""

    async def _run(self, work: Work[R], *, waits: bool = False) -> R:
        """Run work in a thread and return its result."""

    def _call(self, method: Method[P, R], *args: P.args, **options: P.kwargs) -> R:
        """Call a method of the face."""
