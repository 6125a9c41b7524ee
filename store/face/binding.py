"""How operations become methods: bound to a face, not written twice.

An operation is found in its room where it is first asked for, so that nobody waits for what is not
used. What it does before its first statement holds up nobody.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from sqlalchemy import Connection

from ..clock import Now
from ..database import Transactions
from ..errors import in_steps, lacks_files, unopened

P = ParamSpec("P")
R = TypeVar("R")
Operation: TypeAlias = Callable[Concatenate[Connection, P], R]
"""What is done in a transaction."""
Work: TypeAlias = Callable[[Connection], R]
"""An operation with all that it was given but the connection."""
Workflow: TypeAlias = Callable[Concatenate[Transactions, P], R]
"""What opens transactions as it needs them."""
Find: TypeAlias = Callable[[], Operation[P, R]]
"""Returns an operation, out of a room that is not imported before."""


@dataclass(slots=True)
class Call(Generic[R]):
    """An operation or a workflow with all that it was given but its first argument.

    ``sessions`` are those that a step holds which reads them, where they are known (None).
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
    """What carries out operations: each in a transaction of its own, or all of them in one."""

    def _moment(self, now: Now) -> int:
        """Return a moment in ms: the one that was given, or the one it is."""

    def _read(self, work: Call[R]) -> R:
        """Do work that sees one state of the store."""

    def _write(self, work: Call[R]) -> R:
        """Do work as a whole or not at all."""


class Opening(Face, Protocol):
    """A face that opens transactions."""

    def _opened(self, call: Call[Any], /) -> Transactions:
        """Return what opens the transactions of a workflow."""


Method: TypeAlias = Callable[Concatenate[Any, P], R]
"""What a face is asked for."""


class Late:
    """A method that is made where it is first asked for: only then is its operation imported.

    In a class it makes room for the method itself, so whoever looks sees a plain function. Where
    several threads ask first, each makes the same.
    """

    def __init__(self, make: Callable[[], Callable[..., Any]]) -> None:
        self._made = cache(make)

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, face: object, owner: type | None = None) -> Any:
        method = self._made()
        setattr(self._owner, self._name, method)
        return method.__get__(face, owner)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call it where it stands in no class."""
        return self._made()(*args, **options)


def reads(find: Find[P, R]) -> Method[P, R]:
    """Bind an operation to the faces so that it sees one state of the store."""
    return cast("Method[P, R]", Late(lambda: _reading(find())))


def writes(find: Find[P, R]) -> Method[P, R]:
    """Bind an operation to the faces so that it is done as a whole or changes nothing."""
    return cast("Method[P, R]", Late(lambda: _writing(find())))


def runs(find: Callable[[], Workflow[P, R]]) -> Method[P, R]:
    """Bind a workflow to a face: an operation of several transactions, which it opens itself."""
    return cast("Method[P, R]", Late(lambda: _running(find())))


def _reading(operation: Operation[P, R]) -> Callable[..., R]:
    clocked = _clocked(operation)

    @wraps(operation)
    def face(self: Face, *args: P.args, **options: P.kwargs) -> R:
        if clocked:
            _tell_now(self, options)
        return self._read(Call(operation, args, options))

    return face


def _writing(operation: Operation[P, R]) -> Callable[..., R]:
    clocked = _clocked(operation)

    @wraps(operation)
    def face(self: Face, *args: P.args, **options: P.kwargs) -> R:
        if clocked:
            _tell_now(self, options)
        return self._write(Call(operation, args, options))

    return face


def _running(workflow: Workflow[P, R]) -> Callable[..., R]:
    @wraps(workflow)
    def face(self: Opening, *args: P.args, **options: P.kwargs) -> R:
        call = Call(workflow, args, options)
        with in_steps():
            return call(self._opened(call))

    return face


def _clocked(operation: Callable[..., Any]) -> bool:
    return "now" in inspect.signature(operation).parameters


def _tell_now(face: Face, options: dict[str, Any]) -> None:
    """Read the clock, once for the whole operation, where no moment was given."""
    options["now"] = face._moment(options.get("now"))
