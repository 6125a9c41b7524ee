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
from ..errors import build_open_error, correct_step_errors, is_file_limit_reached

CallParams = ParamSpec("CallParams")
CallResultT = TypeVar("CallResultT")
OperationWork: TypeAlias = Callable[[Connection], CallResultT]
"""An operation with all of its arguments except the connection."""


@dataclass(slots=True)
class Call(Generic[CallResultT]):
    """An operation or a workflow with all of its arguments except the first.

    ``sessions`` are the ids that a step locks before it reads them (None: not known).
    """

    operation: Callable[..., CallResultT]
    args: tuple[Any, ...]
    options: dict[str, Any]
    sessions: list[str] | None = None

    def __call__(self, first: Any) -> CallResultT:
        """Do it, with a connection or what opens transactions; it may import what it needs."""
        try:
            return self.operation(first, *self.args, **self.options)
        except OSError as problem:
            if is_file_limit_reached(problem):
                raise build_open_error(problem) from problem
            raise


class Face(Protocol):
    """A face carries out operations, each in a transaction of its own or all of them in one."""

    def _moment(self, now: Now) -> int:
        """Return a moment in ms: the given one, or the present."""

    def _read(self, work: Call[CallResultT]) -> CallResultT:
        """Do work that sees one state of the store."""

    def _write(self, work: Call[CallResultT]) -> CallResultT:
        """Do work as a whole or not at all."""


class WorkflowFace(Face, Protocol):
    """A face that opens transactions."""

    def _transactions_for(self, call: Call[Any], /) -> Transactions:
        """Return the functions that open the transactions of a workflow."""

    def _run_workflow(self, call: Call[CallResultT]) -> CallResultT:
        """Do a workflow, which opens several transactions."""
        with correct_step_errors():
            return call(self._transactions_for(call))


FaceMethod: TypeAlias = Callable[Concatenate[Any, CallParams], CallResultT]
"""A method of a face, without its face."""
