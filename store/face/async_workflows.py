"""Awaited workflows of a face, beside its operations: calls with the store, waits and streams.

If the operation of a cancelled task was still waiting, for its turn or for a lock, it has not
happened, and the task ends at once. An operation that had begun is finished first, and the
cancellation gets a note that says so. A summary that is being written is the exception: nothing
waits for it, and its compaction ends as failed. Operations that may wait for other writers, or for
a summary, have threads of their own, so that readers find a thread however many of them wait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from anyio import sleep

from .async_operations import AsyncOperations
from .async_streaming import AsyncStreaming
from .streaming import SAVE_EVERY_BYTES, SAVE_EVERY_MS
from .workflows import Workflows

if TYPE_CHECKING:
    from ..messages import GivenMessage
    from ..records import Session

WorkflowParams = ParamSpec("WorkflowParams")
WorkflowResultT = TypeVar("WorkflowResultT")


class AsyncWorkflows(AsyncOperations):
    """The workflows on sessions, awaited."""

    async def call(
        self,
        work: Callable[Concatenate[Any, WorkflowParams], WorkflowResultT],
        *args: WorkflowParams.args,
        **options: WorkflowParams.kwargs,
    ) -> WorkflowResultT:
        """Call a function that takes a store, such as `export_session` or `import_file`.

        It runs in a thread, with this store as its first argument. Returns its result, and raises
        its exceptions.
        """
        return await self._run(partial(self._call, work, *args, **options), waits=True)

    async def wait(
        self,
        session_id: str,
        revision: str | None,
        timeout: float = 30.0,  # noqa: ASYNC109 - nothing is raised at its end
    ) -> Session | None:
        """Wait until a session has another revision and return it; None after ``timeout`` seconds.

        Looks several times a second, and reads from a file only after somebody has written to it.
        Raises SessionNotFound, also if the session is deleted meanwhile, and InvalidValue.
        """
        asked = partial(self._call, Workflows._watch, session_id, revision, timeout)
        watch = await self._run(asked)
        look = partial(self._run, watch.look)
        while (changed := await look()) is None and watch.has_time():  # noqa: ASYNC110 - of others
            await sleep(watch.pause)
        return changed

    def streaming(
        self,
        session_id: str,
        message: GivenMessage,
        *,
        expected: str | None = None,
        every_bytes: int = SAVE_EVERY_BYTES,
        every_ms: int = SAVE_EVERY_MS,
        format: str | None = None,  # noqa: A002 - the public name
    ) -> AsyncStreaming:
        """Stream an answer: ``with store.streaming(id, message) as answer: answer.write(text)``.

        ``message`` is the beginning of the answer: its role, maybe more; ``format`` names the
        format of the whole, as in `append`. The text is saved beside the line, as a draft, after
        every ``every_bytes`` bytes of it (UTF-8), and at the latest with the first text that comes
        ``every_ms`` ms after the last save: a killed process loses less than that.

        Leaving the ``with`` appends the message and deletes the draft, in one change. After an
        exception the draft stays, with all of the text. It also stays, and Conflict is raised, if
        the head has moved since the beginning, or the revision ``expected`` is not the session's.
        Entering raises SessionNotFound, Conflict, InvalidMessage, InvalidValue; leaving
        DraftNotFound, too.
        """
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
