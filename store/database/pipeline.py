"""A connection to a server in pipeline mode: it waits for what is read, and for the commit.

Each message to a server and its answer cost the time of a round trip. So a statement is sent at
once, and its answer is waited for when its rows are read: BEGIN goes with the first statement,
writes go one after another, COMMIT goes with the last of them.

After an error the server skips all that follows in the pipeline, COMMIT too. So the error of a
write appears later, when the next rows are read or at the commit, and is that of the first
statement that failed. A transaction is committed when the server has answered so, never before. A
savepoint waits for its writes, because whoever made it may go on after their errors.

The end of a reader is sent, but not waited for: its answer is read with those of the next
transaction. SQLAlchemy reads each answer at once, so its own statements run outside of pipeline
mode. So do all behind a pooler: one that gives each transaction another connection may hang where
the next transaction is sent before the answer to the end of the last (PgBouncer 1.18 does).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from typing import Any

BEGIN_TEXTS = {False: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", True: "BEGIN"}
"""How a transaction begins that reads one state of the store, and one that writes."""

_UNCONFIRMED_COMMIT = "the server did not confirm the commit"


class PipelinedDriver:
    """Passes statements on to a driver's connection, which begins no transaction by itself."""

    def __init__(self, driver: Any) -> None:
        self._driver, self._writes = driver, False
        self.execute, self.cursor = driver.execute, driver.cursor
        self._mode: AbstractContextManager[Any] | None = None
        self._pipeline: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def begin(self, settings: str, *, writes: bool) -> None:
        """Begin a transaction; behind a pooler it has ``settings`` of its own."""
        import psycopg

        self._writes = writes
        if settings:
            self.execute(f"{BEGIN_TEXTS[writes]}; {settings}", prepare=False)
            return
        if self._mode is None and psycopg.Pipeline.is_supported():
            self._mode = self._driver.pipeline()
            self._pipeline = self._mode.__enter__()
        self.execute(BEGIN_TEXTS[writes], prepare=False)

    def commit(self) -> None:
        """Commit the transaction; raise the error of the first statement that failed."""
        if self._mode is None:
            self._driver.commit()
            return
        committed = self.execute("COMMIT", prepare=False)
        try:
            self._pipeline.sync()
        except self.Error:
            self.drain()
            raise
        if committed.statusmessage != "COMMIT":  # a lost connection may end the wait without a word
            raise self.OperationalError(_UNCONFIRMED_COMMIT)

    @property
    def has_failed(self) -> bool:
        """Whether a statement failed, so that the transaction can only be rolled back."""
        return bool(self.info.transaction_status.name == "INERROR")

    def rollback(self) -> None:
        """End a transaction without a commit; raise the error of a statement that nobody read."""
        if self._mode is None or self._writes:
            self._driver.rollback()
            return
        if self._pipeline.result_queue:
            self._pipeline.sync()
        self.execute("COMMIT", prepare=False)  # after a rollback statements are prepared anew
        self._pipeline.result_queue.append(None)  # what `Pipeline.sync` does, without the wait
        self._driver.pgconn.pipeline_sync()

    def wait(self) -> None:
        """Wait for all statements; raise the error of the first one that failed."""
        if self._mode is not None:
            self._pipeline.sync()

    def drain(self) -> None:
        """Wait for all answers whatever they are; after an error statements are taken again."""
        while self._mode is not None:
            with suppress(self.Error):
                self._pipeline.sync()
            if self.closed or not self._pipeline.result_queue:
                break

    def leave(self) -> None:
        """Wait for all answers, and leave pipeline mode."""
        self.drain()
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)
