"""A call of an operation, and the faces that carry calls out.

An operation is a function whose first argument is a connection. A method of a face names it in a
`Call`, which imports its room: so a program does not wait for operations that it does not use.

The first argument of an operation names a session, unless the table of `find_session_parameters`
says otherwise. So a new operation counts as one on a single session until it is added there.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection

from .. import context as contexts
from .. import history, inspection
from .. import search as searching
from ..clock import Now
from ..database import Database, OperationMark, Transactions, running_operation
from ..errors import build_open_error, correct_step_errors, is_file_limit_reached

if TYPE_CHECKING:
    from ..records import Finding, View

CallParams = ParamSpec("CallParams")
CallResultT = TypeVar("CallResultT")
OperationWork: TypeAlias = Callable[[Connection], CallResultT]
"""An operation with all of its arguments except the connection."""


@dataclass(slots=True)
class Call(Generic[CallResultT]):
    """An operation or a workflow with all of its arguments except the first.

    ``sessions`` are the ids that a step locks before it reads them (None: not known). If it
    ``is_grouped``, a store may do it in one transaction with others. ``name`` is that of the method
    (empty: the operation's), ``owner`` that of its face. A workflow reads the ``replica`` (None:
    the database of the store).
    """

    operation: Callable[..., CallResultT]
    args: tuple[Any, ...]
    options: dict[str, Any]
    sessions: list[str] | None = None
    is_grouped: bool = False
    name: str = ""
    owner: str | None = None
    replica: Database | None = None

    def __call__(self, first: Any) -> CallResultT:
        """Run the call with a connection, or with a source of transactions."""
        outer = running_operation.set(OperationMark(time.perf_counter(), self.owner))
        try:
            return self.operation(first, *self.args, **self.options)
        except OSError as problem:
            if is_file_limit_reached(problem):
                raise build_open_error(problem) from problem
            raise
        finally:
            running_operation.reset(outer)


class Face(Protocol):
    """A face carries out operations, each in a transaction of its own or all of them in one."""

    def _moment(self, now: Now) -> int:
        """Return a moment in ms: the given one, or the present."""

    def _read(self, work: Call[CallResultT]) -> CallResultT:
        """Do work that sees one state of the store."""

    def _write(self, work: Call[CallResultT]) -> CallResultT:
        """Do work as a whole or not at all."""

    def _check_store(self, work: Call[list[Finding]]) -> list[Finding]:
        """Check the whole store, and make a sample of its recorded requests again."""
        added = (("requests", contexts.check_requests),)
        checks = (work.options["progress"], added)
        return self._read(Call(inspection.integrity.verify_store, checks, {}, name=work.name))

    def _read_view(self, work: Call[View]) -> View:
        """Read a view, and then record it if that is asked for: others can write meanwhile."""
        made = self._read(work)
        if work.options["record"]:
            draft = contexts.draft_view(made)
            self._write(Call(contexts.record_request, (made.session_id, draft), {}))
        return made


class WorkflowFace(Face, Protocol):
    """A face that opens transactions."""

    def _transactions_for(self, call: Call[Any], /) -> Transactions:
        """Return the functions that open the transactions of a workflow."""

    def _run_workflow(self, call: Call[CallResultT]) -> CallResultT:
        """Do a workflow, which opens several transactions."""

    def _open_workflow(self, call: Call[CallResultT]) -> CallResultT:
        """Do a workflow with the transactions of the face."""
        with correct_step_errors():
            return call(self._transactions_for(call))


FaceMethod: TypeAlias = Callable[Concatenate[Any, CallParams], CallResultT]
"""A method of a face, without its face."""

Arguments = dict[str, Any]
"""The arguments of an operation by the names of its parameters."""


@cache
def find_session_parameters() -> dict[Any, tuple[str, ...]]:
    """Return the operations whose first argument names no session, and the parameters that may.

    A draft is looked up among the drafts of the owner's sessions.
    """
    return {
        history.sessions.create_session: (),
        history.imported_files.load_file_state: (),
        history.imported_files.set_file_state: (),
        history.listing.list_sessions: ("tree", "after"),
        history.listing.count_sessions: ("tree",),
        history.retention.plan_prune: (),
        history.erasure_batches.erase_sessions: (),
        history.message_lookup.find_messages_by_id: ("session",),
        history.usages.list_usages: ("session_id",),
        history.usages.compute_usage_totals: ("session_id",),
        history.heads.switch_branch: ("session_id", "of"),
        history.drafts.list_drafts: ("session_id",),
        history.drafts.finish_draft: (),
        history.drafts.discard_draft: (),
        history.drafts.load_draft_progress: (),
        history.message_notes.list_notes: ("session_id",),
        searching.hits.search: ("session",),
        searching.hits.index: (),
    }


@cache
def list_replica_operations() -> frozenset[Any]:
    """Return the operations that a replica may do: those that look at many sessions."""
    return frozenset(
        (
            history.listing.list_sessions,
            history.listing.count_sessions,
            history.usages.list_usages,
            history.usages.compute_usage_totals,
            history.erasure.list_erasures,
            inspection.storage_use.measure_size,
            searching.hits.search,
        )
    )


def get_inner_call(call: Call[Any]) -> Call[Any]:
    """Return the call that a call of an owner's face carries out, or the call itself."""
    return next((each for each in call.args if isinstance(each, Call)), call)


get_signature = cache(inspect.signature)


def bind_arguments(call: Call[Any]) -> inspect.BoundArguments:
    """Return the arguments of an operation; its connection is None."""
    return get_signature(call.operation).bind(None, *call.args, **call.options)


def list_named_sessions(call: Call[Any], given: Arguments) -> list[Any]:
    """Return the sessions that a call names; None for a required one that is missing."""
    names = find_session_parameters().get(call.operation)
    if names is None:
        parameters = [*get_signature(call.operation).parameters]
        return [given.get(first) for first in parameters[1:2]]
    return [given[name] for name in names if isinstance(given.get(name), str)]


def list_sessions_to_lock(call: Call[Any], given: Arguments) -> list[str]:
    """Return the sessions that a reading step locks, in order; a list of sessions locks none."""
    if call.operation in (history.listing.list_sessions, history.listing.count_sessions):
        return []
    return sorted({each for each in list_named_sessions(call, given) if isinstance(each, str)})
