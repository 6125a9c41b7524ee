"""What a face needs to be awaited: threads that do what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

from .binding import Method

P = ParamSpec("P")
R = TypeVar("R")
Work: TypeAlias = Callable[[], R]
"""What a thread is given to do."""


class Threads(Protocol):
    """What has threads, and a face that they ask."""

    async def _run(self, work: Work[R], *, waits: bool = False) -> R:
        """Run work in a thread; return what it returns."""

    def _call(self, method: Method[P, R], *args: P.args, **options: P.kwargs) -> R:
        """Call a method of the face."""
