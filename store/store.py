"""The face of a store: what a host calls, bound to the operations, not written twice.

An operation is a plain function whose first argument is a connection. A face opens the transaction,
reads the clock once, calls, commits; what an operation does before its first statement holds up
nobody.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar, cast, overload

from sqlalchemy import URL, Connection

from . import compaction, inspection
from .clock import Now, milliseconds
from .context import Context, Tools, code_law
from .context import request as contexts
from .database import LONGEST_PURGE, Database, Transactions, Upgrade, paused, upgrade
from .errors import InvalidValue, StoreClosed, StoreError, StoreForked, in_steps
from .history import append as appending
from .history import erasure, heads, lookup, roots, slices, tails, token_counts, usages
from .history import raw as history
from .history import sessions as known_sessions
from .inspection import integrity as verifying
from .policy import TURNS, Policy
from .records import Copy, Erasure, Purge, Removal
from .view import build as views
from .view import hiding as line_records

P = ParamSpec("P")
R = TypeVar("R")
Target = str | os.PathLike[str] | URL
Operation: TypeAlias = Callable[Concatenate[Connection, P], R]
"""What is done in a transaction."""
Workflow: TypeAlias = Callable[Concatenate[Transactions, P], R]
"""What opens transactions as it needs them."""
Method: TypeAlias = "Callable[Concatenate[Store, P], R]"
"""What a store is asked for."""


def reads(operation: Operation[P, R]) -> Method[P, R]:
    """Bind an operation to the face so that it sees one state of the store.

    Where the connection to a server breaks, it is done once more.
    """
    clocked = _clocked(operation)

    @wraps(operation)
    def face(self: Store, *args: P.args, **options: P.kwargs) -> R:
        if clocked:
            _tell_now(options)
        return self.database.read(lambda connection: operation(connection, *args, **options))

    return cast("Method[P, R]", face)


def writes(operation: Operation[P, R]) -> Method[P, R]:
    """Bind an operation to the face so that it commits as a whole or changes nothing."""
    clocked = _clocked(operation)

    @wraps(operation)
    def face(self: Store, *args: P.args, **options: P.kwargs) -> R:
        if clocked:
            _tell_now(options)
        with self.database.writing() as connection:
            return operation(connection, *args, **options)

    return cast("Method[P, R]", face)


def runs(workflow: Workflow[P, R]) -> Method[P, R]:
    """Bind a workflow to the face: an operation of several transactions, which it opens itself."""

    @wraps(workflow)
    def face(self: Store, *args: P.args, **options: P.kwargs) -> R:
        with in_steps():
            return workflow(self._transactions, *args, **options)

    return cast("Method[P, R]", face)


def _clocked(operation: Callable[..., Any]) -> bool:
    return "now" in inspect.signature(operation).parameters


def _tell_now(options: dict[str, Any]) -> None:
    """Read the clock, once for the whole operation, where no moment was given."""
    options["now"] = milliseconds(options.get("now"))


def _upgraded(database: Database) -> Upgrade:
    """Bring a database to the newest schema, or give it back."""
    try:
        return upgrade(database)
    except BaseException:
        database.close()
        raise


class Store:
    """A store in a file or on a server; made or brought to the newest schema on opening.

    Safe to share by threads.

    ``target`` is a path, ``":memory:"`` (a private temporary file) or an SQLAlchemy URL.
    ``durability="full"`` keeps every acknowledged write through a power cut; ``"normal"`` keeps it
    through a killed process, but a power cut may lose the last ones. Waits at most ``timeout``
    seconds for other writers. Raises StoreError and its children.
    """

    def __init__(
        self,
        target: Target,
        *,
        durability: str = "full",
        timeout: float = 30.0,
    ) -> None:
        self.database = Database(target, durability=durability, timeout=timeout)
        reading, writing = self.database.reading, self.database.writing
        self._transactions = Transactions(reading, writing, milliseconds)
        self._requests = contexts.Requests()
        self.upgraded = _upgraded(self.database)
        slices.go_on_at_opening(self.database, milliseconds(None))

    create_session = writes(known_sessions.create_session)
    session = reads(known_sessions.session)
    sessions = reads(known_sessions.list_sessions)
    rename_session = writes(known_sessions.rename_session)
    set_metadata = writes(known_sessions.set_metadata)
    set_project_root = writes(roots.set_project_root)
    append = writes(appending.append)
    messages = reads(history.read)
    pages = runs(history.pages)
    message = reads(lookup.message)
    find = reads(lookup.find)
    turns = reads(lookup.turns)
    fork = writes(heads.fork)
    rewind = writes(heads.rewind)
    replace = writes(tails.replace)
    pop = writes(tails.pop)
    undo_rewind = writes(heads.undo_rewind)
    head_moves = reads(heads.moves)
    view = reads(views.view)
    check = reads(compaction.check)
    compact = runs(compaction.compact)
    compact_if_needed = runs(compaction.compact_if_needed)
    record_usage = writes(usages.record_usage)
    compactions = reads(compaction.compactions)
    hidden = reads(line_records.hidden)
    replaced = reads(inspection.replaced)
    plan_compaction = reads(compaction.plan_compaction)
    undo_compaction = writes(compaction.undo_compaction)
    erasures = reads(erasure.erasures)
    copies = reads(inspection.listed)
    verify = reads(verifying.verify)
    count_tokens = runs(token_counts.count_tokens)

    def context(
        self,
        session_id: str,
        system: str | None = None,
        tools: Tools | None = None,
        user_input: str | None = None,
        todo_recap: str | None = None,
        root: str | os.PathLike[str] | None = None,
        policy: Policy = TURNS,
        format: str = "openai",  # noqa: A002 - the public name
        now: Now = None,
        *,
        at: int | None = None,
    ) -> Context:
        """Return a whole request.

        Prompts, the project's rules, the view, the input and what is left to do.

        ``tools`` are a text, or definitions that are sent beside the messages; ``user_input`` what
        is not stored yet (None: the last user message is the current input); ``todo_recap`` what is
        left to do (None: what the last todo list says, "": nothing); ``root`` the project's folder
        (None: the session's), whose ``CODE_LAW.md`` is read anew; ``format`` one of a view's, or
        ``react`` for the whole as one text. Raises SessionNotFound, PositionOutOfRange,
        InvalidValue.
        """
        asked = contexts.asked(system, tools, user_input, todo_recap)
        with self.database.reading() as connection:
            gathered = contexts.gather(
                connection,
                session_id,
                policy,
                user_input,
                recap=todo_recap is None,
                root=root,
                at=at,
                now=milliseconds(now),
                format=format,
            )
        law = code_law(gathered.project_root)
        with paused(len(gathered.view.messages)):
            request = contexts.assemble(asked, gathered, law, policy, format=format)
            return self._requests.compared(session_id, request)

    @overload
    def delete_session(
        self,
        session_id: str,
        /,
        *,
        purge: bool = False,
        expected: str | None = None,
        now: Now = None,
    ) -> Erasure: ...
    @overload
    def delete_session(
        self, *session_ids: str, purge: bool = False, now: Now = None
    ) -> list[Erasure]: ...
    def delete_session(
        self,
        *session_ids: str,
        purge: bool = False,
        expected: str | None = None,
        now: Now = None,
    ) -> Erasure | list[Erasure]:
        """Erase a session for good: its messages and all that was derived from them.

        It is gone for every reader at once; its rows are erased between other writers, in slices of
        some milliseconds. Messages that other sessions' lines run through stay; the erasure itself
        is recorded. What may be found in the file until a purge, and how `purge` does it at once,
        is told by the `Erasure`. Several ids, each in a transaction of its own, give a list of
        erasures. ``expected`` is the revision that a single one is to have (None: any). Raises
        SessionNotFound where an id is unknown, Conflict, and then nothing was erased; nor where
        anything else is raised. If one of several fails later, those that are erased are returned.
        """
        moment = milliseconds(now)
        _check_single(session_ids, expected)
        erased = slices.delete_sessions(
            self.database, session_ids, moment=moment, expected=expected
        )
        if purge:
            with suppress(StoreError):  # what was erased stays so; the next purge does it
                self._purge(moment)
                erased = [each._replace(purged=True, finished=True) for each in erased]
        return erased[0] if len(session_ids) == 1 else erased

    def purge(
        self,
        *,
        backups: bool = False,
        idle: bool = False,
        longest: float = LONGEST_PURGE,
        now: Now = None,
    ) -> Purge:
        """Leave no byte in the file of what was erased: write it anew, once for all erasures.

        Writers wait meanwhile, a second per 100 MB or so: what would take more than ``longest``
        seconds is given up. With ``idle`` it is only done where nobody else reads or writes just
        now. What keeps it from being done is told, not raised; the file is whole either way.
        ``backups`` removes the copies that may still hold what was erased. On a server only what is
        left of erasures is done: it writes nothing anew. Raises InvalidValue.
        """
        _check_longest(longest)
        problem, removal = None, Removal((), ())
        try:
            self._purge(milliseconds(now), longest, patience=0 if idle else None)
        except (StoreClosed, StoreForked):
            raise
        except StoreError as error:
            problem = str(error)
        if backups:
            with in_steps():
                removal = inspection.remove_copies(self.database)
        return Purge(problem is None, problem, *removal)

    def _purge(
        self,
        moment: int,
        longest: float = LONGEST_PURGE,
        patience: float | None = None,
    ) -> None:
        """Do what is left of erasures, then write the file anew, and note it."""
        note = partial(erasure.note_purged, now=moment)
        with in_steps():
            slices.go_on(self.database, moment, patience=patience)
        self.database.purge(note, longest=longest, patience=patience)

    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        replace: bool = False,
        now: Now = None,
    ) -> Copy:
        """Copy the store to a new file, while others read and write; check the copy and list it.

        The copy is one state of the store, with everything that was acknowledged before the call.
        It is readable by its owner alone, and whole as soon as it has its name. ``replace`` allows
        to put it in the place of an earlier copy, never of a file that is in use. Raises StoreError
        where it cannot be made or does not pass its check, StoreFull without room, StoreBusy where
        the file to replace is in use; then nothing is left of it.
        """
        return inspection.backup(self.database, path, replace=replace, now=now)

    def close(self) -> None:
        """Give back all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_single(session_ids: tuple[str, ...], expected: str | None) -> None:
    if expected is not None and len(session_ids) != 1:
        raise InvalidValue("a revision is that of one session; delete sessions one by one with it")


def _check_longest(longest: float) -> None:
    if not isinstance(longest, int | float):
        raise InvalidValue(f"longest is in seconds, not {longest!r}")
