"""The sessions of one owner, as if there were no others.

Each operation names its sessions, and its transaction checks that all of them are the owner's:
before the operation, so that no error reveals another owner's session, and once more after it, when
the changed rows are locked, since on a server the session of an id may be erased and another one
made meanwhile. `session_parameters` says which parameters name sessions; an operation that it does
not list is taken to name one session first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, literal_column, or_, select

from .. import history
from .. import search as searching
from ..clock import Now
from ..database import Statement, Transactions, sessions
from ..errors import InvalidValue, SessionExists, SessionNotFound, StoreError, quote_value
from ..records import Erasure, Index, Redaction, Session
from .calls import Call, Face
from .operations import Operations
from .session_arguments import (
    Arguments,
    bind_arguments,
    get_signature,
    list_named_sessions,
    list_sessions_to_lock,
)
from .steps import atomically, check_work
from .workflows import Workflows

OwnedResultT = TypeVar("OwnedResultT")
OpenTransaction = Callable[[], AbstractContextManager[Connection]]


_is_others_session = or_(sessions.c.owner.is_(None), sessions.c.owner != bindparam("owner"))
OTHERS_SESSIONS = Statement(
    select(sessions.c.id)
    .where(sessions.c.tree_id == bindparam("tree_id"), _is_others_session)
    .limit(literal_column("1"))
)


def _list_redactions(connection: Connection, session_id: str) -> list[Redaction]:
    """Return the redactions of a session's line, oldest first, whichever session they name.

    Raises SessionNotFound.
    """
    found = history.redaction.list_redactions(connection, session_id)
    return [each._replace(session_id=session_id) for each in found]


class Owned(Operations):
    """The operations on an owner's sessions; the steps of a scoped `atomically`.

    A session of anybody else, or of nobody, raises SessionNotFound. New sessions are the owner's.
    """

    def __init__(self, face: Face, owner: str) -> None:
        self._face, self._owner = face, validate_owner(owner)

    @property
    def owner(self) -> str:
        """The owner of the sessions."""
        return self._owner

    def redactions(self, session_id: str) -> list[Redaction]:
        """Return the redactions of a session's line, oldest first, whichever session they name.

        Raises SessionNotFound.
        """
        return self._read(Call(_list_redactions, (session_id,), {}))

    def _moment(self, now: Now) -> int:
        return self._face._moment(now)

    def _read(self, work: Call[OwnedResultT]) -> OwnedResultT:
        return self._face._read(self._limit_call(work))

    def _write(self, work: Call[OwnedResultT]) -> OwnedResultT:
        return self._face._write(self._limit_call(work))

    def _limit_call(self, call: Call[OwnedResultT]) -> Call[OwnedResultT]:
        """Return an operation that is done within the owner's sessions."""
        asked = bind_arguments(call)
        _bind_owner(self._owner, call, asked.arguments)
        given = asked.arguments
        if "messages" in given:
            wire_format = given.get("format")
            given["messages"] = history.append.prepare_batch(
                given["messages"], given["now"], wire_format
            )
        sessions = list_sessions_to_lock(call, asked.arguments)
        return Call(_run_within_owner, (self._owner, call, asked), {}, sessions)


class Scoped(Owned, Workflows):
    """The sessions of one owner, as `Store.scoped` returns them; it knows no others.

    A session of anybody else, or of nobody, raises SessionNotFound. New sessions are the owner's.
    The parameters are those of `Store`; an ``owner`` among them is this one. Operations that change
    all sessions of a tree (`redact`, `set_project_root`) raise StoreError if the tree has sessions
    of others. Ids are unique in the whole store: a used one raises SessionExists, whoever owns it.
    """

    def __init__(self, store: Workflows, owner: str) -> None:
        super().__init__(store, owner)
        self._store = store
        self._database, self._requests = store._database, store._requests

    def index(self, *, owner: str | None = None) -> Index:
        """Add everything that is not indexed yet to the index; return the owner's part of it.

        Other writers take turns between its steps. Raises StoreError, InvalidValue.
        """
        return self._run_workflow(Call(searching.backlog.index, (), {"owner": owner}))

    def _transactions_for(self, call: Call[Any], /) -> Transactions:
        whole, given = self._store._transactions_for(call), bind_arguments(call).arguments
        _bind_owner(self._owner, call, given)
        if "owner" in given:
            call.options["owner"] = self._owner
        within = partial(_open_within_owner, self._owner, list_named_sessions(call, given))
        return whole._replace(
            reading=partial(within, whole.reading),
            writing=partial(within, whole.writing),
            soon=partial(within, whole.soon),
        )

    def atomically(self, work: Callable[[Owned], OwnedResultT], *, now: Now = None) -> OwnedResultT:
        """Do several steps on the owner's sessions as one; return the result of work.

        ``work`` gets an object with the operations as methods, as in `Store.atomically`. Raises the
        exceptions of its steps, StoreError if ``work`` writes by other means, InvalidValue.
        """
        check_work(work)
        owner = self._owner
        return atomically(self._database, lambda t: work(Owned(t, owner)), self._moment(now))

    def _erase(
        self,
        session_ids: tuple[str, ...],
        expected: str | None,
        moment: int,
        *,
        purge: bool,
    ) -> list[Erasure]:
        if purge:
            raise InvalidValue("a purge is of the whole file; purge on the whole store")
        return history.erasure_batches.delete_sessions(
            self._database, session_ids, moment=moment, expected=expected, owner=self._owner
        )


def validate_owner(owner: str) -> str:
    """Return an owner after checking it. Raises InvalidValue for an invalid one."""
    text = history.sessions.validate_text("owner", owner)
    if text is None:
        raise InvalidValue("an owner is a text; sessions without one are those of the whole store")
    return text


def _bind_owner(owner: str, call: Call[Any], given: Arguments) -> None:
    """Set the ``owner`` of an operation that takes one. Raises InvalidValue for another owner."""
    if "owner" not in get_signature(call.operation).parameters:
        return
    if given.get("owner") not in (None, owner):
        raise InvalidValue(
            f"these are the sessions of {quote_value(owner)}; "
            "ask the whole store for those of another"
        )
    given["owner"] = owner


def _run_within_owner(
    connection: Connection, owner: str, call: Call[OwnedResultT], asked: inspect.BoundArguments
) -> OwnedResultT:
    """Do an operation on an owner's sessions only."""
    given = asked.arguments
    if given.get("create"):
        _create_owned_session(connection, owner, given["session_id"], given["now"])
    with _check_ownership(connection, owner, list_named_sessions(call, given)):
        result = call.operation(connection, *asked.args[1:], **asked.kwargs)
        if call.operation in (
            history.redaction.redact_message_at,
            history.facts.set_project_root,
        ):
            session_id = given["session_id"]
            tree_id = history.lines.load_pointer(connection, session_id).tree_id
            if OTHERS_SESSIONS.row(connection, tree_id=tree_id, owner=owner):
                raise StoreError(
                    f"session {session_id!r} shares its tree with sessions of others, "
                    "which this would change; nothing was written; do it on the whole store"
                )
    if isinstance(result, Session) and result.owner != owner:
        raise SessionExists(result.id)
    return result


def _create_owned_session(connection: Connection, owner: str, session_id: str, now: int) -> None:
    """Create the session of an append, if it is missing, for the owner. Raises SessionExists."""
    with suppress(SessionNotFound):
        history.sessions.check_owner(connection, session_id, owner)
        return
    history.sessions.create_session(connection, session_id, owner=owner, exist_ok=True, now=now)
    try:
        history.sessions.check_owner(connection, session_id, owner)
    except SessionNotFound:
        raise SessionExists(session_id) from None


@contextmanager
def _check_ownership(
    connection: Connection, owner: str, session_ids: Iterable[Any]
) -> Iterator[None]:
    """Check before and after a block that sessions are the owner's. Raises SessionNotFound."""
    for session_id in session_ids:
        history.sessions.check_owner(connection, session_id, owner)
    yield
    for session_id in session_ids:
        history.sessions.check_owner(connection, session_id, owner)


@contextmanager
def _open_within_owner(
    owner: str, session_ids: Iterable[Any], opened: OpenTransaction
) -> Iterator[Connection]:
    """Open a transaction on an owner's sessions and yield its connection."""
    with opened() as connection, _check_ownership(connection, owner, session_ids):
        yield connection
