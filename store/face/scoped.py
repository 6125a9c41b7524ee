"""The sessions of one owner, as if there were no others.

Whatever is asked names the sessions that it is about. In the transaction that does it, each of them
has to be the owner's: before, so that no error tells of another's session, and once more after,
when what was changed is locked, since on a server the session of an id may be erased and another
one made meanwhile. `naming` says which sessions are meant; a new operation is closed until that is
known of it.
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
from ..errors import InvalidValue, SessionExists, SessionNotFound, StoreError, quoted
from ..records import Erasure, Index, Redaction, Session
from .binding import Call, Face
from .operations import Operations
from .session_arguments import (
    Arguments,
    bind_arguments,
    list_named_sessions,
    list_sessions_to_lock,
    signature,
)
from .steps import atomically, check_work
from .workflows import Workflows

R = TypeVar("R")
Open = Callable[[], AbstractContextManager[Connection]]


def changes_tree(operation: object) -> bool:
    """Tell what changes all sessions of a tree, which then have to be the owner's."""
    return operation in (history.redaction.redact, history.project_root.set_project_root)


_others = or_(sessions.c.owner.is_(None), sessions.c.owner != bindparam("owner"))
OTHERS = Statement(
    select(sessions.c.id)
    .where(sessions.c.tree_id == bindparam("tree_id"), _others)
    .limit(literal_column("1"))
)


def _redactions(connection: Connection, session_id: str) -> list[Redaction]:
    """Return the redactions of a session's line, oldest first, whichever session they name.

    Raises SessionNotFound.
    """
    found = history.redaction.list_redactions(connection, session_id)
    return [each._replace(session_id=session_id) for each in found]


class Owned(Operations):
    """The operations on an owner's sessions; the steps of a scoped `atomically`.

    A session of anybody else, or of nobody, raises SessionNotFound. What is created is the owner's.
    """

    def __init__(self, face: Face, owner: str) -> None:
        self._face, self._owner = face, checked_owner(owner)

    @property
    def owner(self) -> str:
        """Whose sessions they are."""
        return self._owner

    def redactions(self, session_id: str) -> list[Redaction]:
        """Return the redactions of a session's line, oldest first, whichever session they name.

        Raises SessionNotFound.
        """
        return self._read(Call(_redactions, (session_id,), {}))

    def _moment(self, now: Now) -> int:
        return self._face._moment(now)

    def _read(self, work: Call[R]) -> R:
        return self._face._read(self._limited(work))

    def _write(self, work: Call[R]) -> R:
        return self._face._write(self._limited(work))

    def _limited(self, call: Call[R]) -> Call[R]:
        """Return an operation that is done within the owner's sessions."""
        asked = bind_arguments(call)
        _keep_to(self._owner, call, asked.arguments)
        _prepare(asked.arguments)
        sessions = list_sessions_to_lock(call, asked.arguments)
        return Call(_within, (self._owner, call, asked), {}, sessions)


class Scoped(Owned, Workflows):
    """The sessions of one owner, as `Store.scoped` gives them: they are all that it knows.

    A session of anybody else, or of nobody, raises SessionNotFound. What is created is the owner's.
    Parameters are those of `Store`; an ``owner`` among them is this one. What changes all sessions
    of a tree (`redact`, `set_project_root`) raises StoreError where some of them are others'. Ids
    are those of the whole store: one that is taken raises SessionExists, whoever took it.
    """

    def __init__(self, store: Workflows, owner: str) -> None:
        super().__init__(store, owner)
        self._store = store
        self._database, self._requests = store._database, store._requests

    def index(self, *, owner: str | None = None) -> Index:
        """Take all that is not searched yet into the index; return what there is of the owner.

        Other writers have their turn between its steps. Raises StoreError, InvalidValue.
        """
        return self._run_workflow(Call(searching.backlog.index, (), {"owner": owner}))

    def _opened(self, call: Call[Any], /) -> Transactions:
        whole, given = self._store._opened(call), bind_arguments(call).arguments
        _keep_to(self._owner, call, given)
        if "owner" in given:
            call.options["owner"] = self._owner
        within = partial(_opened_within, self._owner, list_named_sessions(call, given))
        return whole._replace(
            reading=partial(within, whole.reading),
            writing=partial(within, whole.writing),
            soon=partial(within, whole.soon),
        )

    def atomically(self, work: Callable[[Owned], R], *, now: Now = None) -> R:
        """Do several steps as one, on the owner's sessions; return what work returns.

        ``work`` is given the operations as methods, as `Store.atomically` does it. Raises what its
        steps raise, StoreError where ``work`` writes by other means, InvalidValue.
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


def checked_owner(owner: str) -> str:
    """Return an owner. Raises InvalidValue for what is none."""
    text = history.sessions.validate_text("owner", owner)
    if text is None:
        raise InvalidValue("an owner is a text; sessions without one are those of the whole store")
    return text


def _keep_to(owner: str, call: Call[Any], given: Arguments) -> None:
    """Give an owner to what takes one. Raises InvalidValue for another one."""
    if "owner" not in signature(call.operation).parameters:
        return
    if given.get("owner") not in (None, owner):
        raise InvalidValue(
            f"these are the sessions of {quoted(owner)}; ask the whole store for those of another"
        )
    given["owner"] = owner


def _prepare(given: Arguments) -> None:
    """Take messages apart before a transaction holds up others."""
    if "messages" in given:
        wire_format = given.get("format")
        given["messages"] = history.append.prepare_batch(
            given["messages"], given["now"], wire_format
        )


def _within(connection: Connection, owner: str, call: Call[R], asked: inspect.BoundArguments) -> R:
    """Do an operation within an owner's sessions."""
    given = asked.arguments
    if given.get("create"):
        _create(connection, owner, given["session_id"], given["now"])
    with _kept(connection, owner, list_named_sessions(call, given)):
        result = call.operation(connection, *asked.args[1:], **asked.kwargs)
        if changes_tree(call.operation):
            _check_tree(connection, owner, given["session_id"])
    if isinstance(result, Session) and result.owner != owner:
        raise SessionExists(result.id)
    return result


def _create(connection: Connection, owner: str, session_id: str, now: int) -> None:
    """Make the session that an append may make; it is the owner's. Raises SessionExists."""
    with suppress(SessionNotFound):
        history.sessions.check_owner(connection, session_id, owner)
        return
    history.sessions.create_session(connection, session_id, owner=owner, exist_ok=True, now=now)
    try:
        history.sessions.check_owner(connection, session_id, owner)
    except SessionNotFound:
        raise SessionExists(session_id) from None


@contextmanager
def _kept(connection: Connection, owner: str, session_ids: Iterable[Any]) -> Iterator[None]:
    """Let sessions be the owner's before and after something is done. Raises SessionNotFound."""
    for session_id in session_ids:
        history.sessions.check_owner(connection, session_id, owner)
    yield
    for session_id in session_ids:
        history.sessions.check_owner(connection, session_id, owner)


@contextmanager
def _opened_within(owner: str, session_ids: Iterable[Any], opened: Open) -> Iterator[Connection]:
    """Give a connection in a transaction that is about an owner's sessions."""
    with opened() as connection, _kept(connection, owner, session_ids):
        yield connection


def _check_tree(connection: Connection, owner: str, session_id: str) -> None:
    """Refuse to change what sessions of others have, too; what was done is taken back."""
    tree_id = history.lines.load_pointer(connection, session_id).tree_id
    if OTHERS.row(connection, tree_id=tree_id, owner=owner):
        raise StoreError(
            f"session {session_id!r} shares its tree with sessions of others, which this would "
            "change; nothing was written; do it on the whole store"
        )
