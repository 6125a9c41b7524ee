"""What an awaited face has beside the operations: functions that take a store, waits, streams.

The operation of a cancelled task has not happened if it was still waiting, for its turn or for
another's lock; the task ends at once. What had begun is brought to its end first, and the
cancellation has a note that says so. Only a summary that is being written is not waited for: its
compaction ends as failed. What may wait for other writers, or for a summary, has threads of its
own, so that however many wait, those who only read find a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from anyio import sleep

from .async_operations import AsyncOperations
from .async_streaming import AsyncStreaming
from .streaming import EVERY_BYTES, EVERY_MS
from .workflows import Workflows

if TYPE_CHECKING:
    from ..messages import GivenMessage
    from ..records import Session

P = ParamSpec("P")
R = TypeVar("R")


class AsyncWorkflows(AsyncOperations):
    """What can be asked of sessions, awaited."""

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

    async def wait(
        self,
        session_id: str,
        revision: str | None,
        timeout: float = 30.0,  # noqa: ASYNC109 - nothing is raised at its end
    ) -> Session | None:
        """Wait until a session has another revision; return it as it is then, else None.

        At most ``timeout`` seconds. Looks some times a second, at a file only where anybody has
        written to it. Raises SessionNotFound, also when it is deleted meanwhile, and InvalidValue.
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
        every_bytes: int = EVERY_BYTES,
        every_ms: int = EVERY_MS,
        format: str | None = None,  # noqa: A002 - the public name
    ) -> AsyncStreaming:
        """Stream an answer: ``with store.streaming(id, message) as answer: answer.write(text)``.

        ``message`` is how it begins: its role, maybe more; ``format`` names that of the whole, as
        in `append`. What comes is kept beside the line, as a draft, whenever ``every_bytes`` of it
        have come (UTF-8), and at the latest with the first text that comes ``every_ms`` after the
        last time: so a killed process loses less than that.
        On leaving it is appended, and the draft deleted, as one change. Left by an exception, the
        draft stays with all that came. So it does where the head is not any more where it was at
        the beginning, or ``expected``, a revision, is not the session's: then Conflict is raised.
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
