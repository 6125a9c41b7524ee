"""Streaming an answer, awaited."""

from __future__ import annotations

from contextlib import suppress
from typing import Self

from anyio import CancelScope

from ..messages import Message
from .streaming import Streaming, StreamState
from .threads import Threads, ThreadWork


class AsyncStreaming(StreamState):
    """A `Streaming` whose methods are awaited, as `AsyncStore.streaming` returns it.

    Tasks must not share it. A thread is used only to save text.
    """

    def __init__(self, threads: Threads, opened: ThreadWork[Streaming]) -> None:
        super().__init__()
        self._threads, self._opened = threads, opened

    async def write(self, text: str, key: str = "content") -> None:
        """Add a text to the message's content, or to the value of another key."""
        self._answer.add(text, key)
        await self._keep_if_due()

    async def take(self, chunk: object) -> str:
        """Add a chunk of a provider's stream; return the text of the answer in it."""
        text = self._answer.take(chunk)
        await self._keep_if_due()
        return text

    async def update(self, message: Message) -> None:
        """Replace other keys of the message, such as ``tool_calls``, by the given ones."""
        self._answer.replace(message)
        await self._keep_if_due()

    async def keep(self) -> None:
        """Save the received text at once."""
        await self._run(self._answer.keep)

    async def __aenter__(self) -> Self:
        try:
            await self._run(self._begin)
        except BaseException:
            if self._begun is not None:  # a draft that had begun before the task was cancelled
                self._begun.close()
            raise
        return self

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        try:
            await self._end(error)
        finally:
            self._answer.close()

    async def _end(self, error: BaseException | None) -> None:
        if error is not None:
            await self._keep_last()
            return
        try:
            await self._run(self._answer.end)
        except BaseException:
            await self._keep_last()
            raise

    async def _keep_if_due(self) -> None:
        if self._answer.is_due:
            await self.keep()

    def _begin(self) -> None:
        if self._begun is None:
            self._begun = self._opened()._answer
        self._answer.begin()

    async def _keep_last(self) -> None:
        """Save the last text, also in a cancelled task, but not after the loop has ended."""
        with suppress(RuntimeError), CancelScope(shield=True):
            await self._run(self._answer.keep_last)

    async def _run(self, work: ThreadWork[None]) -> None:
        await self._threads._run(work, waits=True)
