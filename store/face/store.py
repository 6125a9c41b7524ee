"""`Store`: opens a transaction for each operation, and several for a workflow.

`Scoped` has the sessions of one owner, as if there were no others. Each operation names its
sessions, and its transaction checks that all of them are the owner's: before the operation, so that
no error reveals another owner's session, and once more after it, when the changed rows are locked,
since on a server the session of an id may be erased and another one made meanwhile.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import URL, Connection, bindparam, literal_column, or_, select

from .. import history, inspection
from .. import search as searching
from ..clock import Now, resolve_now
from ..context import Requests
from ..database import (
    DEFAULT_CACHE_BYTES,
    MAX_PURGE_SECONDS,
    Database,
    ServerLimits,
    Statement,
    Transactions,
    is_private_target,
    parse_url,
    resolve_path,
    sessions,
    upgrade_schema,
)
from ..errors import (
    InvalidValue,
    SessionExists,
    SessionNotFound,
    StoreClosed,
    StoreError,
    StoreForked,
    build_open_error,
    check_choice,
    check_progress,
    correct_step_errors,
    quote_value,
)
from ..history import list_open_trees
from ..records import (
    CacheInfo,
    Erasure,
    Health,
    Index,
    ProgressCallback,
    Purge,
    Redaction,
    Removal,
    Session,
)
from .atomic_steps import (
    ErasingSteps,
    Snapshot,
    Steps,
    atomically,
    check_plain_function,
    check_work,
    read_snapshot,
)
from .calls import (
    Arguments,
    Call,
    Face,
    bind_arguments,
    get_inner_call,
    get_signature,
    list_named_sessions,
    list_replica_operations,
    list_sessions_to_lock,
)
from .observers import Observers, observed
from .operations import StoreOperations
from .replicas import check_replica_url, open_replica
from .shared_stores import Shares
from .workflows import Workflows

if TYPE_CHECKING:
    from ..records import Copy

AtomicResultT = TypeVar("AtomicResultT")
Target = str | os.PathLike[str] | URL
OpenTransaction = Callable[[], AbstractContextManager[Connection]]


ERASURE_PATIENCE = 0.05
"""Seconds that work which can be done later waits for other writers."""
PURGE_STEPS = 3
MOST_SECONDS = 10**9
"""The largest finite limit of a purge, in seconds."""


READING_REASON = "because its transaction belongs to one thread"


class Store(StoreOperations, Workflows):
    """A store in a file or on a server; created, or brought to the newest schema, on opening.

    Threads may share it.

    ``target`` is a path, ``":memory:"`` (a private temporary file) or an SQLAlchemy URL.
    ``durability="full"`` keeps every acknowledged write through a power cut; ``"normal"`` keeps it
    through a killed process, but a power cut may lose the last ones. Waits at most ``timeout``
    seconds for other writers. Caches the work on the last views, and the newest messages that were
    read again, in at most ``cache_bytes`` of memory, so that the next view of a line costs only its
    new messages; 0 caches nothing. ``check_reads`` compares the rows read with the digests and
    seals of the rows stored; a difference raises Damaged. ``read_only`` opens an existing store of
    this release's schema and writes nothing, not even beside a file: for a file that may not be
    written, a replica or a role that may only read. What writes raises ReadOnly, and searches use
    the index as it is. ``pooler`` is for a server behind a pooler that gives each transaction
    another connection, such as PgBouncer (in a URL: ``?pooler=1``).

    On a server ``pool=(least, most)`` opens that many connections at once and never more than the
    second number; an operation waits at most ``pool_wait`` seconds (None: ``timeout``) for one,
    else it raises Unavailable. ``connect_timeout`` are the seconds for making a connection, 2 or
    more (None: ``timeout``); a statement that takes more than ``statement_timeout`` seconds (None:
    no limit) raises StoreBusy. ``read_url`` is a standby of the server, which lists sessions and
    usages, sums and searches as soon as it has all that this store has written. Raises StoreError
    and its children.
    """

    def __init__(
        self,
        target: Target,
        *,
        durability: str = "full",
        timeout: float = 30.0,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        check_reads: bool = False,
        read_only: bool = False,
        pooler: bool = False,
        pool: tuple[int, int] | None = None,
        pool_wait: float | None = None,
        connect_timeout: float | None = None,
        statement_timeout: float | None = None,
        read_url: str | URL | None = None,
    ) -> None:
        check_replica_url(target, read_url)
        self.database = Database(
            target,
            durability=durability,
            timeout=timeout,
            cache_bytes=cache_bytes,
            check=inspection.ReadCheck() if check_reads else None,
            read_only=read_only,
            pooler=pooler,
            limits=ServerLimits(pool, pool_wait, connect_timeout, statement_timeout),
        )
        self._database = self.database
        reading, writing = self.database.reading, self.database.writing
        soon = partial(writing, ERASURE_PATIENCE)
        self._transactions = Transactions(reading, writing, soon, resolve_now)
        self._requests = Requests()
        self._observers = Observers(self.database)
        from ..tools import TOOL_KINDS

        try:
            self.database.open_connections()
            seeds = [history.price_rows.load_release_seed()]
            self.upgraded = upgrade_schema(self.database, kinds=TOOL_KINDS, seeds=seeds)
            if read_url is not None:
                self._replica = open_replica(self.database, read_url, check_reads=check_reads)
        except BaseException as problem:
            self._close_databases()
            if isinstance(problem, OSError):
                raise build_open_error(problem) from problem
            raise
        with suppress(StoreError):
            if not read_only and self.database.read(list_open_trees):
                history.erasure_batches.continue_at_opening(self.database, resolve_now(None))

    @classmethod
    def shared(
        cls,
        target: Target,
        *,
        durability: str = "full",
        timeout: float = 30.0,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        check_reads: bool = False,
        read_only: bool = False,
        pooler: bool = False,
        pool: tuple[int, int] | None = None,
        pool_wait: float | None = None,
        connect_timeout: float | None = None,
        statement_timeout: float | None = None,
        read_url: str | URL | None = None,
    ) -> Store:
        """Return the one store that all parts of a process share, opened by the first of them.

        Each of them closes it (or leaves its ``with``) once; it stays open until the last one has.
        ``":memory:"`` is one store for all, too. Raises StoreError and its children.
        """
        opened = partial(
            Store,
            target,
            durability=durability,
            timeout=timeout,
            cache_bytes=cache_bytes,
            check_reads=check_reads,
            read_only=read_only,
            pooler=pooler,
            pool=pool,
            pool_wait=pool_wait,
            connect_timeout=connect_timeout,
            statement_timeout=statement_timeout,
            read_url=read_url,
        )
        if is_private_target(target):
            name = ":memory:"
        else:  # the one name of a store, however its target is spelled
            url = parse_url(target)
            is_file = url.get_backend_name() == "sqlite"
            name = resolve_path(url) if is_file else url.render_as_string(hide_password=False)
        replica = read_url and parse_url(read_url).render_as_string(hide_password=False)
        limits = (pool, pool_wait, connect_timeout, statement_timeout, replica)
        settings = repr(
            (durability, timeout, cache_bytes, check_reads, read_only, pooler, *limits)
        )  # a wrong one is no key
        return _SHARES.take((name, settings), opened)

    _moment = staticmethod(resolve_now)

    def _transactions_for(self, call: Call[Any], /) -> Transactions:
        if call.replica:
            return self._transactions._replace(reading=call.replica.reading)
        return self._transactions

    def _read(self, work: Call[AtomicResultT]) -> AtomicResultT:
        if self._replica and get_inner_call(work).operation in list_replica_operations():
            return self._observers.run(work, self._read_replica)
        return self._observers.run(work, self.database.read)

    def _read_replica(self, work: Call[AtomicResultT]) -> AtomicResultT:
        assert self._replica
        return self._replica.read(lambda database: database.read(work))

    def _write(self, work: Call[AtomicResultT]) -> AtomicResultT:
        return self._observers.run(work, self._do_write)

    def _do_write(self, work: Call[AtomicResultT]) -> AtomicResultT:
        if work.operation is history.append.append_messages:
            session_id, messages = work.args
            now, wire_format = work.options["now"], work.options["format"]
            batch = history.append.prepare_batch(messages, now, wire_format)
            work.args, work.is_grouped = (session_id, batch), True
        if work.is_grouped:
            return self.database.write_in_group(work)
        return self.database.write(work)

    def _erase(
        self,
        session_ids: tuple[str, ...],
        expected: str | None,
        moment: int,
        *,
        purge: bool,
        **options: Any,
    ) -> list[Erasure]:
        erased = history.erasure_batches.delete_sessions(
            self.database, session_ids, moment=moment, expected=expected, **options
        )
        if purge:
            with suppress(StoreError):  # what was erased stays so; the next purge does it
                self._purge(moment)
                erased = [each._replace(purged=True, finished=True) for each in erased]
        return erased

    @observed
    def delete_owner(self, owner: str, *, costs: str = "erase") -> list[Erasure]:
        """Erase everything of an owner: all their sessions, archived ones too, and their prices.

        Each session is erased as by `delete_session`; messages stay if sessions of others show
        them. The kept sums of their usages go too; with ``costs="anonymous"`` they stay, without
        the owner and the project. `purge` removes the last bytes from the file. Called again after
        an interruption, it goes on. Raises InvalidValue.
        """
        return self.scoped(owner).delete_owner(costs=costs)

    def scoped(self, owner: str) -> Scoped:
        """Return a face that sees and touches the sessions of an owner only.

        Any other session is a SessionNotFound, sessions that it creates are the owner's, and it has
        no operations on the whole store. Raises InvalidValue for an invalid owner.
        """
        return Scoped(self, owner)

    @observed
    def atomically(
        self, work: Callable[[Steps], AtomicResultT], *, now: Now = None
    ) -> AtomicResultT:
        """Do several steps as one: all of them are stored, or none; return the result of work.

        ``work`` gets an object with the operations as methods, on as many sessions as it likes, and
        sees the changes of its earlier steps. A step that fails leaves no changes; an exception
        that leaves ``work`` rolls back all of them. No other writer of a file goes on meanwhile, so
        ``work`` should not wait for anything else; on a server the first step that reads a session
        locks it, so the rows read stay the same. A server may ask for a retry from the beginning:
        ``work`` must change nothing except by its steps. On a database that is spread over machines
        by tree (Citus) all sessions must be in one tree. The steps end with ``work`` and belong to
        its thread: used later, or in another thread, they raise StoreError. Raises the exceptions
        of its steps, StoreBusy, StoreError if ``work`` writes to the store by other means,
        InvalidValue.
        """
        return atomically(self.database, work, resolve_now(now))

    @observed
    def reading(self, work: Callable[[Snapshot], AtomicResultT]) -> AtomicResultT:
        """Do several reads of one state of the store; return the result of work.

        ``work`` gets an object with the operations as methods; those that write raise InvalidValue.
        All of them see the state at the first one, whatever others write meanwhile, and nobody
        waits for ``work``; a file keeps what is written meanwhile in its log, so ``work`` should
        not wait for long. The object ends with ``work`` and belongs to its thread: used later, or
        in another thread, it raises StoreError. Raises the exceptions of its reads, InvalidValue.
        """
        check_plain_function(work, READING_REASON)
        return read_snapshot(self.database, work)

    @observed
    def purge(
        self,
        *,
        backups: bool = False,
        idle: bool = False,
        longest: float = MAX_PURGE_SECONDS,
        progress: ProgressCallback | None = None,
        now: Now = None,
    ) -> Purge:
        """Remove the last bytes of erased rows from the file: write it anew, once for all erasures.

        Writers wait meanwhile, a second per 100 MB or so; a purge that would take more than
        ``longest`` seconds is given up. With ``idle`` it is only done if nobody else reads or
        writes just now. A problem is returned, not raised; the file is whole either way.
        ``backups`` removes the copies that may still hold erased rows. ``progress`` gets the number
        of steps done, and of all: open erasures, the writing anew, the index. On a server it only
        finishes open erasures and writes nothing anew. Raises InvalidValue.
        """
        if not isinstance(longest, int | float) or not (longest <= MOST_SECONDS or longest == inf):
            raise InvalidValue(f"longest must be in seconds, not {quote_value(longest)}")
        check_progress(progress)
        problem, removal = None, Removal((), ())
        try:
            self._purge(resolve_now(now), longest, 0 if idle else None, progress)
        except (StoreClosed, StoreForked):
            raise
        except StoreError as error:
            problem = str(error)
        if backups:
            with correct_step_errors():
                removal = inspection.remove_copies(self.database)
        return Purge(problem is None, problem, *removal)

    def _purge(
        self,
        moment: int,
        longest: float = MAX_PURGE_SECONDS,
        patience: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        """Finish open erasures, then write the file anew, and record the purge."""
        note, tell = partial(_note_purged, now=moment), progress or (lambda *_: None)
        with correct_step_errors():
            history.erasure_batches.continue_erasures(self.database, moment, patience=patience)
        tell(1, PURGE_STEPS)
        forget = searching.index.clear_stale_index
        self.database.purge(note, before=forget, longest=longest, patience=patience)
        tell(2, PURGE_STEPS)
        with suppress(StoreError):  # a search goes on with it
            searching.index.refill_index(self._transactions)
        tell(PURGE_STEPS, PURGE_STEPS)

    @observed
    def index(
        self,
        *,
        on: bool | None = None,
        anew: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Index:
        """Add everything that is not indexed yet to the index; return the state of the index.

        Other writers take turns between its steps. ``on=False`` switches searching off, for all
        users of the store, and drops the index; ``on=True`` switches it on again. ``anew`` rebuilds
        the index from the messages. ``progress`` gets the number of messages and summaries in the
        index, and of all, after each step. Raises StoreError.
        """
        with correct_step_errors():
            return searching.index.update_index(
                self._transactions, on=on, anew=anew, progress=progress
            )

    @observed
    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        replace: bool = False,
        now: Now = None,
    ) -> Copy:
        """Copy the store to a new file, while others read and write; check the copy and list it.

        The copy is one state of the store, with everything that was acknowledged before the call.
        It is readable by its owner alone, and complete as soon as it has its name. ``replace``
        allows it to replace an earlier copy, never a file that is in use. Raises StoreError if it
        cannot be made or does not pass its check, StoreFull without room, StoreBusy if the file to
        replace is in use; then nothing is left of the copy.
        """
        return inspection.backup(self.database, path, replace=replace, now=now)

    def health(self) -> Health:
        """Return whether the store can be read and written now, and what to watch.

        It takes no lock and writes nothing; a store that cannot be reached is told, not raised.
        """
        from .health import check_health  # a program that opens a store needs no index

        return check_health(self.database)

    def cache_info(self) -> CacheInfo:
        """Return the size of the cache of views and messages, and how often it was used."""
        kept = self.database.cache
        return CacheInfo(*kept.figures(), kept.limit)

    def close(self) -> None:
        """Close all connections; a shared store closes them with its last user."""
        if _SHARES.give_back(self):
            self._close_databases()

    def _close_databases(self) -> None:
        self.database.close()
        if self._replica:
            self._replica.database.close()

    def __repr__(self) -> str:
        """Return the store by its file, or by its URL without a password."""
        url = self.database.url.render_as_string(hide_password=True)
        return f"Store({self.database.path or url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_SHARES: Shares[Store] = Shares()


def _note_purged(connection: Connection, *, now: int) -> None:
    """Record that no erased or redacted text is left in the file."""
    history.erasure.mark_erasures_purged(connection, now=now)
    history.redaction.mark_redactions_purged(connection, now=now)


_is_others_session = or_(sessions.c.owner.is_(None), sessions.c.owner != bindparam("owner"))
OTHERS_SESSIONS = Statement(
    select(sessions.c.id)
    .where(sessions.c.tree_id == bindparam("tree_id"), _is_others_session)
    .limit(literal_column("1"))
)


class Owned(ErasingSteps):
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
        found = self._read(Call(history.redaction.list_redactions, (session_id,), {}))
        return [each._replace(session_id=session_id) for each in found]

    def _moment(self, now: Now) -> int:
        return self._face._moment(now)

    def _read(self, work: Call[AtomicResultT]) -> AtomicResultT:
        return self._face._read(self._limit_call(work))

    def _write(self, work: Call[AtomicResultT]) -> AtomicResultT:
        return self._face._write(self._limit_call(work))

    def _limit_call(self, call: Call[AtomicResultT]) -> Call[AtomicResultT]:
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
        is_grouped = call.operation is history.append.append_messages
        arguments, name = (self._owner, call, asked), call.name or call.operation.__name__
        return Call(_run_within_owner, arguments, {}, sessions, is_grouped, name, self._owner)


class Scoped(Workflows, Owned):
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
        self._replica = store._replica
        self._observers, self._own = store._observers, owner

    def index(self, *, owner: str | None = None, progress: ProgressCallback | None = None) -> Index:
        """Add everything that is not indexed yet to the index; return the owner's part of it.

        Other writers take turns between its steps. ``progress`` gets the number of the owner's
        messages and summaries in the index, and of all of these, after each step. Raises
        StoreError, InvalidValue.
        """
        with correct_step_errors():
            options = {"owner": owner, "progress": progress}
            return self._run_workflow(Call(searching.hits.index, (), options))

    @observed
    def delete_owner(self, *, costs: str = "erase") -> list[Erasure]:
        """Erase everything of the owner, as `Store.delete_owner` does."""
        check_choice(("erase", "anonymous"), "costs", costs)
        erased: list[Erasure] = []
        moment = self._moment(None)
        kept = "erase" if costs == "erase" else "keep"
        while found := self._list_ids():
            erased += self._erase(found, None, moment, purge=False, costs=kept)
        options = {"anonymous": costs == "anonymous"}
        self._store._write(Call(history.delete_owned_rows, (self._owner,), options))
        return erased

    def _list_ids(self) -> tuple[str, ...]:
        """Return the ids of all sessions of the owner."""
        listed = (
            self.sessions(limit=history.NO_LIMIT, archived=archived) for archived in (False, True)
        )
        return tuple(each.id for page in listed for each in page)

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

    @observed
    def atomically(
        self, work: Callable[[Owned], AtomicResultT], *, now: Now = None
    ) -> AtomicResultT:
        """Do several steps on the owner's sessions as one; return the result of work.

        ``work`` gets an object with the operations as methods, as in `Store.atomically`. Raises the
        exceptions of its steps, StoreError if ``work`` writes by other means, InvalidValue.
        """
        check_work(work)
        owner = self._owner
        return atomically(self._database, lambda t: work(Owned(t, owner)), self._moment(now))

    @observed
    def reading(self, work: Callable[[Owned], AtomicResultT]) -> AtomicResultT:
        """Do several reads of one state of the owner's sessions; return the result of work.

        ``work`` gets an object with the operations as methods, as in `Store.reading`. Raises the
        exceptions of its reads, InvalidValue.
        """
        check_plain_function(work, READING_REASON)
        owner = self._owner
        return read_snapshot(self._database, lambda snapshot: work(Owned(snapshot, owner)))

    def _erase(
        self,
        session_ids: tuple[str, ...],
        expected: str | None,
        moment: int,
        *,
        purge: bool,
        **options: Any,
    ) -> list[Erasure]:
        if purge:
            raise InvalidValue("a purge rewrites the whole file; call it on the whole store")
        options |= {"expected": expected, "owner": self._owner}
        return history.erasure_batches.delete_sessions(
            self._database, session_ids, moment=moment, **options
        )


def validate_owner(owner: str) -> str:
    """Return an owner after checking it. Raises InvalidValue for an invalid one."""
    text = history.sessions.validate_text("owner", owner)
    if text is None:
        raise InvalidValue(
            "an owner must be a text; sessions without one belong to the whole store"
        )
    return text


def _bind_owner(owner: str, call: Call[Any], given: Arguments) -> None:
    """Set the ``owner`` of an operation that takes one. Raises InvalidValue for another owner."""
    if "owner" not in get_signature(call.operation).parameters:
        return
    if given.get("owner") not in (None, owner):
        raise InvalidValue(
            f"these are the sessions of {quote_value(owner)}; "
            "use the whole store for those of another owner"
        )
    given["owner"] = owner


def _run_within_owner(
    connection: Connection, owner: str, call: Call[AtomicResultT], asked: inspect.BoundArguments
) -> AtomicResultT:
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
                    "which this would change; nothing was written; call it on the whole store"
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
