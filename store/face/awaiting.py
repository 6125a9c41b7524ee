"""How the methods of a face are awaited: bound, not written twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from anyio import sleep

from ..clock import Now
from ..errors import StoreError
from .async_streaming import AsyncStreaming
from .binding import Late, Method
from .streaming import EVERY_BYTES, EVERY_MS
from .threads import Threads
from .workflows import Workflows

if TYPE_CHECKING:
    from ..messages import GivenMessage
    from ..records import Erasure, Session

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def awaits(
    find: Callable[[], Method[P, R]], *, waits: bool = False
) -> Callable[Concatenate[Threads, P], Awaitable[R]]:
    """Bind a method of a face to the same awaited: one thread hop for the whole operation.

    What ``waits`` for other writers, or for a summary, has threads of its own, so that however many
    wait, those who only read find a thread.

    The operation of a cancelled task has not happened if it was still waiting, for its turn or for
    another's lock; the task ends at once. What had begun is brought to its end first, and the
    cancellation has a note that says so. Only a summary that is being written is not waited for:
    its compaction ends as failed.
    """
    made = Late(lambda: _awaiting(find(), waits=waits))
    return cast("Callable[Concatenate[Threads, P], Awaitable[R]]", made)


def iterates(
    find: Callable[[], Method[P, Iterator[R]]],
) -> Callable[Concatenate[Threads, P], AsyncIterator[R]]:
    """Bind a method of a face that yields: each step is an operation by itself."""
    made = Late(lambda: _iterating(find()))
    return cast("Callable[Concatenate[Threads, P], AsyncIterator[R]]", made)


def _awaiting(method: Method[P, R], *, waits: bool) -> Callable[..., Awaitable[R]]:
    @wraps(method)
    async def face(self: Threads, *args: P.args, **options: P.kwargs) -> R:
        work = partial(self._call, method, *args, **options)
        return await self._run(work, waits=waits)

    return face


def _iterating(
    method: Method[P, Iterator[R]],
) -> Callable[..., AsyncIterator[R]]:
    @wraps(method)
    def face(self: Threads, *args: P.args, **options: P.kwargs) -> AsyncIterator[R]:
        return AsyncPages(self, partial(self._call, method, *args, **options))

    return face


class AsyncPages(AsyncIterator[R]):
    """What a method of a face yields, each awaited; closed, it raises StoreError."""

    def __init__(self, threads: Threads, opened: Callable[[], Iterator[R]]) -> None:
        self._threads, self._opened = threads, opened
        self._items: Iterator[R] | None = None
        self._is_closed = False

    async def __anext__(self) -> R:
        if self._is_closed:
            raise StoreError("these pages were closed; ask for `pages` anew")
        if self._items is None:
            self._items = await self._threads._run(self._opened)
        item: R | None = await self._threads._run(partial(next, self._items, None))
        if item is None:
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Give nothing any more."""
        self._is_closed = True


def says_as(method: Callable[..., Any]) -> Callable[[F], F]:
    """Give what is written for itself the help of the method that it awaits; its types stay."""

    def explained(face: F) -> F:
        face.__doc__ = method.__doc__
        return face

    return explained


class Deletes(Protocol):
    """How sessions are deleted: one gives an erasure, several a list of them."""

    @overload
    def __call__(
        self,
        session_id: str,
        /,
        *,
        purge: bool = False,
        expected: str | None = None,
        now: Now = None,
    ) -> Awaitable[Erasure]: ...
    @overload
    def __call__(
        self, *session_ids: str, purge: bool = False, now: Now = None
    ) -> Awaitable[list[Erasure]]: ...


class Awaited(Threads):
    """What can be asked of sessions, awaited."""

    create_session = awaits(lambda: Workflows.create_session, waits=True)
    session = awaits(lambda: Workflows.session)
    title = awaits(lambda: Workflows.title)
    sessions = awaits(lambda: Workflows.sessions)
    count_sessions = awaits(lambda: Workflows.count_sessions)
    archive = awaits(lambda: Workflows.archive, waits=True)
    unarchive = awaits(lambda: Workflows.unarchive, waits=True)
    rename_session = awaits(lambda: Workflows.rename_session, waits=True)
    set_project_root = awaits(lambda: Workflows.set_project_root, waits=True)
    set_metadata = awaits(lambda: Workflows.set_metadata, waits=True)
    append = awaits(lambda: Workflows.append, waits=True)
    messages = awaits(lambda: Workflows.messages)
    pages = iterates(lambda: Workflows.pages)
    message = awaits(lambda: Workflows.message)
    find = awaits(lambda: Workflows.find)
    turns = awaits(lambda: Workflows.turns)
    fork = awaits(lambda: Workflows.fork, waits=True)
    rewind = awaits(lambda: Workflows.rewind, waits=True)
    switch = awaits(lambda: Workflows.switch, waits=True)
    branches = awaits(lambda: Workflows.branches)
    siblings = awaits(lambda: Workflows.siblings)
    replace = awaits(lambda: Workflows.replace, waits=True)
    pop = awaits(lambda: Workflows.pop, waits=True)
    drafts = awaits(lambda: Workflows.drafts)
    finish_draft = awaits(lambda: Workflows.finish_draft, waits=True)
    discard_draft = awaits(lambda: Workflows.discard_draft, waits=True)
    undo_rewind = awaits(lambda: Workflows.undo_rewind, waits=True)
    head_moves = awaits(lambda: Workflows.head_moves)
    view = awaits(lambda: Workflows.view)
    view_sql = awaits(lambda: Workflows.view_sql)
    redact = awaits(lambda: Workflows.redact, waits=True)
    check = awaits(lambda: Workflows.check)
    record_usage = awaits(lambda: Workflows.record_usage, waits=True)
    usages = awaits(lambda: Workflows.usages)
    usage_totals = awaits(lambda: Workflows.usage_totals)
    annotate = awaits(lambda: Workflows.annotate, waits=True)
    annotations = awaits(lambda: Workflows.annotations)
    compactions = awaits(lambda: Workflows.compactions)
    hidden = awaits(lambda: Workflows.hidden)
    replaced = awaits(lambda: Workflows.replaced)
    plan_clearing = awaits(lambda: Workflows.plan_clearing)
    plan_compaction = awaits(lambda: Workflows.plan_compaction)
    hide = awaits(lambda: Workflows.hide, waits=True)
    undo_compaction = awaits(lambda: Workflows.undo_compaction, waits=True)
    compact = awaits(lambda: Workflows.compact, waits=True)
    compact_if_needed = awaits(lambda: Workflows.compact_if_needed, waits=True)
    context = awaits(lambda: Workflows.context)
    recall = awaits(lambda: Workflows.recall)
    search = awaits(lambda: Workflows.search)
    count_tokens = awaits(lambda: Workflows.count_tokens, waits=True)

    async def call(
        self,
        work: Callable[Concatenate[Any, P], R],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        """Do what takes a store, such as `export_session` or `import_file`, with this one.

        It runs in a thread and is given the store first. Returns and raises what it does.
        """
        return await self._run(partial(self._call, work, *args, **options), waits=True)

    @says_as(Workflows.wait)
    async def wait(
        self,
        session_id: str,
        revision: str | None,
        timeout: float = 30.0,  # noqa: ASYNC109 - nothing is raised at its end
    ) -> Session | None:
        """Wait until a session has another revision; no thread waits for it."""
        asked = partial(self._call, Workflows._watch, session_id, revision, timeout)
        watch = await self._run(asked)
        look = partial(self._run, watch.look)
        while (changed := await look()) is None and watch.has_time():  # noqa: ASYNC110 - of others
            await sleep(watch.pause)
        return changed

    @says_as(Workflows.streaming)
    def streaming(
        self,
        session_id: str,
        message: GivenMessage,
        *,
        expected: str | None = None,
        every_bytes: int = EVERY_BYTES,
        every_ms: int = EVERY_MS,
        format: str | None = None,  # noqa: A002 - the public name
    ) -> AsyncStreaming:
        """Return a stream; it begins where it is entered."""
        opened = partial(
            self._call,
            Workflows.streaming,
            session_id,
            message,
            expected=expected,
            every_bytes=every_bytes,
            every_ms=every_ms,
            format=format,
        )
        return AsyncStreaming(self, opened)
