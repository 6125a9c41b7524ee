"""A call of an operation, and the faces that carry calls out.

An operation is a function whose first argument is a connection. A method of a face names it in a
`Call`, which imports its room: so a program does not wait for operations that it does not use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection

from ..clock import Now
from ..database import Transactions
from ..errors import in_steps, lacks_files, unopened

P = ParamSpec("P")
R = TypeVar("R")
Work: TypeAlias = Callable[[Connection], R]
"""An operation with all of its arguments except the connection."""


@dataclass(slots=True)
class Call(Generic[R]):
    """An operation or a workflow with all of its arguments except the first.

    ``sessions`` are the ids that a step locks before it reads them (None: not known).
    """

    operation: Callable[..., R]
    args: tuple[Any, ...]
    options: dict[str, Any]
    sessions: list[str] | None = None

    def __call__(self, first: Any) -> R:
        """Do it, with a connection or what opens transactions; it may import what it needs."""
        try:
            return self.operation(first, *self.args, **self.options)
        except OSError as problem:
            if lacks_files(problem):
                raise unopened(problem) from problem
            raise


class Face(Protocol):
    """A face carries out operations, each in a transaction of its own or all of them in one."""

    def _moment(self, now: Now) -> int:
        """Return a moment in ms: the given one, or the present."""

    def _read(self, work: Call[R]) -> R:
        """Do work that sees one state of the store."""

    def _write(self, work: Call[R]) -> R:
        """Do work as a whole or not at all."""


class WorkflowFace(Face, Protocol):
    """A face that opens transactions."""

    def _transactions_for(self, call: Call[Any], /) -> Transactions:
        """Return the functions that open the transactions of a workflow."""

    def _run_workflow(self, call: Call[R]) -> R:
        """Do a workflow, which opens several transactions."""
        with in_steps():
            return call(self._transactions_for(call))


Method: TypeAlias = Callable[Concatenate[Any, P], R]
"""A method of a face, without its face."""
