"""The two faces: `Store`, and `AsyncStore` with the same names awaited. Bound to the operations, not written twice.

An operation is a plain function whose first argument is a connection. A face opens the transaction, reads the clock
once, calls, commits; what an operation does before its first statement holds up nobody.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from sqlalchemy import URL, Connection

from . import budget, clearing, compaction, erasure, heads, history, tokenizing, verifying
from . import compactions as line_records
from . import context as contexts
from . import sessions as known_sessions
from . import view as views
from .clock import Now, milliseconds
from .code_law import code_law
from .collector import paused
from .compacting import announce, reads_messages, summarised, warn
from .context import Context, Tools
from .engine import Database
from .errors import InvalidValue, StoreClosed
from .migrate import upgrade
from .policy import TURNS, Policy
from .records import Compaction, Erasure, StoredMessage, TokenTotal
from .summaries import Summarizer
from .summarizers import PATIENCE, Patience
from .tokens import ESTIMATE, counter, message_tokens

P = ParamSpec("P")
R = TypeVar("R")
Target = str | os.PathLike[str] | URL


def reads(operation: Callable[Concatenate[Connection, P], R]) -> Callable[Concatenate[Store, P], R]:
    """Bind an operation to the face so that it sees one state of the store."""
    clocked = _clocked(operation)

    @wraps(operation)
    def face(self: Store, *args: P.args, **options: P.kwargs) -> R:
        if clocked:
            options["now"] = milliseconds(options.get("now"))  # type: ignore[arg-type]
        with self.database.reading() as connection:
            return operation(connection, *args, **options)

    return cast("Callable[Concatenate[Store, P], R]", face)


def writes(operation: Callable[Concatenate[Connection, P], R]) -> Callable[Concatenate[Store, P], R]:
    """Bind an operation to the face so that it commits as a whole or changes nothing."""
    clocked = _clocked(operation)

    @wraps(operation)
    def face(self: Store, *args: P.args, **options: P.kwargs) -> R:
        if clocked:
            options["now"] = milliseconds(options.get("now"))  # type: ignore[arg-type]
        with self.database.writing() as connection:
            return operation(connection, *args, **options)

    return cast("Callable[Concatenate[Store, P], R]", face)


def awaits(method: Callable[Concatenate[Store, P], R]) -> Callable[Concatenate[AsyncStore, P], Awaitable[R]]:
    """Bind a method of `Store` to `AsyncStore`: one thread hop for the whole operation.

    A cancelled task leaves its operation to end by itself: it is committed whole or not at all, never half. Only a
    summary that is being written is not waited for: its compaction ends as failed.
    """

    @wraps(method)
    async def face(self: AsyncStore, *args: P.args, **options: P.kwargs) -> R:
        return await self._run(partial(self._call, method, *args, **options))

    return cast("Callable[Concatenate[AsyncStore, P], Awaitable[R]]", face)


def _clocked(operation: Callable[..., Any]) -> bool:
    return "now" in inspect.signature(operation).parameters


class Store:
    """A store in a file or on a server; made or brought to the newest schema on opening. Safe to share by threads.

    ``target`` is a path, ``":memory:"`` (a private temporary file) or an SQLAlchemy URL. ``durability="full"`` keeps
    every acknowledged write through a power cut; ``"normal"`` keeps it through a killed process, but a power cut may
    lose the last ones. Waits at most ``timeout`` seconds for other writers. Raises StoreError and its children.
    """

    def __init__(self, target: Target, *, durability: str = "full", timeout: float = 30.0) -> None:
        self.database = Database(target, durability=durability, timeout=timeout)
        self._requests = contexts.Requests()
        try:
            upgrade(self.database)
        except BaseException:
            self.database.close()
            raise

    create_session = writes(known_sessions.create_session)
    session = reads(known_sessions.session)
    sessions = reads(known_sessions.list_sessions)
    rename_session = writes(known_sessions.rename_session)
    set_metadata = writes(known_sessions.set_metadata)
    append = writes(history.append)
    messages = reads(history.read)
    fork = writes(heads.fork)
    rewind = writes(heads.rewind)
    undo_rewind = writes(heads.undo_rewind)
    head_moves = reads(heads.moves)
    view = reads(views.view)
    check = reads(budget.check)
    record_usage = writes(budget.record_usage)
    compactions = reads(compaction.compactions)
    hidden = reads(line_records.hidden)
    plan_compaction = reads(compaction.planned)
    undo_compaction = writes(compaction.undo_compaction)
    erasures = reads(erasure.erasures)
    verify = reads(verifying.verify)
    _stretch = reads(history.stretch)
    _erase = writes(erasure.erase)
    _uncounted = reads(tokenizing.uncounted)
    _keep_counts = writes(tokenizing.keep_counts)
    _token_total = reads(tokenizing.total)
    _estimated = reads(tokenizing.estimated)
    _prepare = reads(compaction.prepare)
    _begin = writes(compaction.begin)
    _finish = writes(compaction.finish)
    _abandon = writes(compaction.abandon)
    _keep_to_limit = writes(compaction.keep_to_limit)
    _clear = writes(clearing.clear)
    _gather = reads(contexts.gather)

    def pages(
        self, session_id: str, start: int = 1, stop: int | None = None, at: int | None = None, *, size: int = 500
    ) -> Iterator[list[StoredMessage]]:
        """Yield a line's raw messages in lists of at most ``size``, so that a line of any length fits in memory.

        The line is the one that the session has at the first page, wherever its head moves meanwhile. Raises what
        `messages` does.
        """
        if type(size) is not int or size < 1:
            raise InvalidValue(f"a page has at least 1 message, not {size!r}")
        branch, start, last = self._stretch(session_id, start, stop, at)
        for first in range(start, last + 1, size):
            yield self.messages(session_id, first, min(first + size - 1, last), branch=branch)

    def compact(
        self,
        session_id: str,
        policy: Policy,
        summarizer: Summarizer | None = None,
        reason: str = "manual",
        now: Now = None,
    ) -> Compaction:
        """Hide what a policy does not keep behind a summary; return the record, or the answer that nothing is to do.

        ``summarizer`` is any callable from a SummaryRequest to a text or Summary (the built-in extractive one); no
        transaction is open while it works, for at most the policy's ``summary_timeout``. Whatever it does, nothing is
        lost and nothing is raised: the outcome says so. Only KeyboardInterrupt and SystemExit pass, which end the
        compaction as failed. Raises SessionNotFound, InvalidPolicy for what is no policy, InvalidValue for an unknown
        reason and what is no summarizer.
        """
        return self._compact(session_id, policy, summarizer, reason, now=now)

    def _compact(
        self,
        session_id: str,
        policy: Policy,
        summarizer: Summarizer | None,
        reason: str,
        *,
        user_input: str = "",
        now: Now = None,
    ) -> Compaction:
        moment = milliseconds(now)
        compaction.check_asked(policy, summarizer, reason)
        whole = reads_messages(summarizer)
        job = self._prepare(session_id, policy, whole=whole, user_input=user_input, now=moment)
        if isinstance(job, Compaction):
            return job._replace(reason=reason)
        number = self._begin(session_id, policy, job, reason=reason, now=moment)
        if isinstance(number, Compaction):
            return number._replace(reason=reason)
        try:
            read = partial(self.messages, session_id, branch=job.cost.pointer.branch)
            result = summarised(job, policy, summarizer, read)
            ended = self._finish(session_id, policy, job, number, result, now=now)
        except BaseException as error:
            with suppress(Exception):  # what stopped it is told, whatever else goes wrong
                self._abandon(session_id, number, error)
            raise
        announce(session_id, ended)
        return ended

    def compact_if_needed(
        self,
        session_id: str,
        policy: Policy,
        summarizer: Summarizer | None = None,
        reason: str = "llm_call",
        *,
        max_tokens: int | None = None,
        last_usage: int | None = None,
        user_input: str = "",
        now: Now = None,
    ) -> Compaction | None:
        """Compact if a trigger of the policy fires; under batched clearing, clear if it is worth it (S3.27).

        While failures hold attempts back, a policy that trims is kept to its hard limit, without a summary (A2.8).
        Returns the record of what was done last, None where nothing was. Arguments as for `check` and `compact`.
        """
        moment = milliseconds(now)
        compaction.check_asked(policy, summarizer, reason)
        done = self._clear(session_id, policy, reason=reason, now=moment) if policy.clearing == "batched" else None
        found = self.check(session_id, policy, max_tokens, last_usage, user_input, now=moment)
        if found.should_compact:
            if max_tokens is not None:
                policy = policy.model_copy(update={"context_window": max_tokens})
            compacted = self._compact(session_id, policy, summarizer, reason, user_input=user_input, now=now)
            done = compacted if compacted.id is not None else done
        elif found.problem:
            warn(policy, found.problem)
            kept = self._keep_to_limit(session_id, policy, reason=reason, user_input=user_input, now=moment)
            if kept:
                announce(session_id, kept)
                done = kept
        return done

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
        """Return a whole request: prompts, the project's rules, the view, the input and what is left to do (S4.4).

        ``tools`` are a text, or definitions that are sent beside the messages; ``user_input`` what is not stored yet
        (None: the last user message is the current input); ``todo_recap`` what is left to do (None: what the last todo
        list says, "": nothing); ``root`` the project's folder (None: the session's), whose ``CODE_LAW.md`` is read
        anew; ``format`` one of a view's, or ``react`` for the whole as one text. Raises SessionNotFound,
        PositionOutOfRange, InvalidValue.
        """
        asked = contexts.asked(system, tools, user_input, todo_recap)
        gathered = self._gather(session_id, policy, user_input, recap=todo_recap is None, at=at, now=now, format=format)
        law = code_law(gathered.project_root if root is None else root)
        with paused(len(gathered.view.messages)):
            return self._requests.compared(session_id, contexts.assemble(asked, gathered, law, policy, format=format))

    def delete_session(self, session_id: str, *, now: Now = None) -> Erasure:
        """Erase a session for good: its messages and all that was derived from them, down to the freed bytes.

        Messages that other sessions' lines run through stay; the erasure itself is recorded. Raises SessionNotFound.
        """
        erased = self._erase(session_id, now=now)
        return erased._replace(purged=self.database.purge())

    def count_tokens(self, session_id: str, encoding: str | None = None) -> TokenTotal:
        """Count the tokens of a session's line and store the counts; counts what is new, outside of any transaction.

        Without the vocabulary of a tokenizer at hand the total is an estimate and nothing is stored; its ``encoding``
        says so. Raises SessionNotFound.
        """
        tokenizer = counter(encoding)
        if tokenizer.name == ESTIMATE:
            return self._estimated(session_id)
        counted = 0
        while batch := self._uncounted(session_id, tokenizer.name):
            counts = [message_tokens(each.message, tokenizer.count) for each in batch]
            self._keep_counts(session_id, tokenizer.name, batch, counts)
            counted += len(batch)
        return self._token_total(session_id, tokenizer.name)._replace(counted=counted)

    def close(self) -> None:
        """Give back all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncStore:
    """A `Store` whose operations are awaited; each runs whole in a thread of the store's own pool."""

    def __init__(self, target: Target, *, durability: str = "full", timeout: float = 30.0, threads: int = 8) -> None:
        self._threads = ThreadPoolExecutor(threads, "convostore")
        self._opened = self._threads.submit(Store, target, durability=durability, timeout=timeout)

    create_session = awaits(Store.create_session)
    session = awaits(Store.session)
    sessions = awaits(Store.sessions)
    rename_session = awaits(Store.rename_session)
    set_metadata = awaits(Store.set_metadata)
    append = awaits(Store.append)
    messages = awaits(Store.messages)
    fork = awaits(Store.fork)
    rewind = awaits(Store.rewind)
    undo_rewind = awaits(Store.undo_rewind)
    head_moves = awaits(Store.head_moves)
    view = awaits(Store.view)
    erasures = awaits(Store.erasures)
    verify = awaits(Store.verify)
    check = awaits(Store.check)
    record_usage = awaits(Store.record_usage)
    compactions = awaits(Store.compactions)
    hidden = awaits(Store.hidden)
    plan_compaction = awaits(Store.plan_compaction)
    undo_compaction = awaits(Store.undo_compaction)
    compact = awaits(Store.compact)
    compact_if_needed = awaits(Store.compact_if_needed)
    context = awaits(Store.context)
    delete_session = awaits(Store.delete_session)
    count_tokens = awaits(Store.count_tokens)

    async def pages(
        self, session_id: str, start: int = 1, stop: int | None = None, at: int | None = None, *, size: int = 500
    ) -> AsyncIterator[list[StoredMessage]]:
        """Yield a line's raw messages in lists of at most ``size``, so that a line of any length fits in memory.

        The line is the one that the session has at the first page, wherever its head moves meanwhile. Raises what
        `messages` does.
        """
        # An asynchronous generator cannot be bound: it is many operations.
        pages = await self._run(partial(self._call, Store.pages, session_id, start, stop, at, size=size))
        while page := await self._run(partial(next, pages, None)):
            yield page

    async def _run(self, work: Callable[[], R]) -> R:
        """Run work in a thread of the store's pool; a cancelled task ends when its work has, or will never begin.

        Only for a summary the work waits no longer then.
        """
        patience, context = Patience(), copy_context()
        context.run(PATIENCE.set, patience)
        try:
            submitted = self._threads.submit(context.run, work)
        except RuntimeError as error:
            raise StoreClosed("the store is closed; open it anew") from error
        future = asyncio.wrap_future(submitted)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            patience.end()
            future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody is left to be told
            if not submitted.cancel():
                await asyncio.wait([future])
            raise

    def _call(self, method: Callable[Concatenate[Store, P], R], *args: P.args, **options: P.kwargs) -> R:
        """Call a method of the store; opening it is the first thing that its threads did."""
        return method(self._opened.result(), *args, **options)

    async def close(self) -> None:
        """Wait for running operations and give back all connections; cancelled, it ends by itself."""
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._threads.shutdown()
        if self._opened.exception() is None:
            self._opened.result().close()

    async def __aenter__(self) -> Self:
        await asyncio.wrap_future(self._opened)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
