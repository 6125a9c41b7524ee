"""A connection to a server in pipeline mode: it waits for what is read, and for the commit.

Each message to a server and its answer cost the time of a round trip, and a message alone costs the
client about as much work as its statement. So statements are collected, and sent together when the
rows of one are read, or when there are many: BEGIN goes with the first statement, writes go one
after another, COMMIT goes with the last of them.

After an error the server skips all that follows in the pipeline, COMMIT too. So the error of a
write appears later, when the next rows are read or at the commit, and is that of the first
statement that failed. A transaction is committed when the server has answered so, never before. A
savepoint waits for its writes, because whoever made it may go on after their errors.

A query whose values are known before it is asked is sent ahead (`PipelinedDriver.send`): its answer
comes in the same round trip as the answers before it. Whoever asks the same later gets that answer,
so code reads as if each query was asked at its place. In a reader all answers are of one state of
the store; in a writer an answer is dropped as soon as its table is written, or a lock is taken. If
a query that was sent ahead fails, the next statement of its transaction that is waited for raises
the error.

The end of a reader is sent, but not waited for: its answer is read with those of the next
transaction. Of psycopg this takes two things that its documentation does not name. Without a Sync a
server would show the connection as active until it is used again, and the documented `sync` waits
for the answer; so the queue of results is told of a Sync for which nobody waits. And a pipeline
sends each statement at once; `_collect` replaces the function that does.

SQLAlchemy reads each answer at once, so its own statements run outside of pipeline mode. So do all
behind a pooler: one that gives each transaction another connection may hang where the next
transaction is sent before the answer to the end of the last (PgBouncer 1.18 does).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from typing import Any

from .notifications import build_notification

BEGIN_TEXTS = {False: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", True: "BEGIN"}
"""How a transaction begins that reads one state of the store, and one that writes."""

_WRITTEN_TABLE = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")
_NEW_STATE = re.compile(
    r"ROLLBACK|SELECT (?:erase|redact)_|.* FOR (?:NO KEY )?(?:UPDATE|SHARE)", re.DOTALL
)
"""A statement after which a writer may see other rows than before, whatever their table."""
_UNCONFIRMED_COMMIT = "the server did not confirm the commit"


_PARAMETER = re.compile(r"%(?:\((\w+)\)s|s|%)")


@lru_cache(maxsize=2048)
def _number_parameters(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with the numbers of its parameters, and their names in this order.

    The driver would look for the parameters of long statements anew each time.
    """
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        name = found[1] or str(len(names))
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PARAMETER.sub(number, text), tuple(names)


class PipelinedDriver:
    """Passes statements on to a driver's connection, which begins no transaction by itself."""

    def __init__(self, driver: Any) -> None:
        self._driver, self._writes = driver, False
        self._sent: list[tuple[str, Any, Any]] = []
        self._newest: Any = None
        self._mode: AbstractContextManager[Any] | None = None
        self._pipeline: Any = None
        from psycopg import RawCursor
        from psycopg.generators import send

        self._make_cursor, self._flush = RawCursor, send

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def execute(self, text: str, values: Any = None, **options: Any) -> Any:
        """Run a statement, unless it was sent ahead; return the cursor, which waits for rows."""
        if self._sent:
            for sent, bound, cursor in self._sent:
                if sent == text and bound == values:
                    if cursor.rowcount > 0:  # it was asked before, too
                        cursor.scroll(0, mode="absolute")
                    return cursor
            if self._writes:
                self._drop_outdated(text)
        return self._send(text, values, **options)

    def _send(self, text: str, values: Any = None, **options: Any) -> Any:
        """Hand a statement over to be sent; return its cursor."""
        if values is not None:
            text, names = _number_parameters(text)
            values = [values[name] for name in names] if isinstance(values, dict) else values
        self._newest = self._make_cursor(self._driver).execute(text, values, **options)
        return self._newest

    def send(self, text: str, values: dict[str, Any]) -> None:
        """Send a query ahead, without a wait; outside of pipeline mode nothing is sent."""
        if self._mode is not None:
            self._sent.append((text, values, self._send(text, values)))

    def cursor(self) -> Any:
        """Return a cursor of the driver, for writes."""
        self._sent = []
        return self._driver.cursor()

    def _drop_outdated(self, text: str) -> None:
        """Drop the answers that a statement of a writer may change."""
        if _NEW_STATE.match(text):
            self._sent = []
        elif written := _WRITTEN_TABLE.findall(text):
            self._sent = [
                each for each in self._sent if not any(table in each[0] for table in written)
            ]

    def begin(self, settings: str, *, writes: bool) -> None:
        """Begin a transaction; behind a pooler it has ``settings`` of its own."""
        import psycopg

        self._writes, self._sent = writes, []
        if settings:
            self.execute(f"{BEGIN_TEXTS[writes]}; {settings}", prepare=False)
            return
        if self._mode is None and psycopg.Pipeline.is_supported():
            self._mode = self._driver.pipeline()
            self._pipeline = self._mode.__enter__()
            self._pipeline._communicate_gen = self._collect
        self.execute(BEGIN_TEXTS[writes], prepare=False)

    def _collect(self) -> Iterator[Any]:
        """Pass statements on to libpq, which sends them together; a Sync is sent whole."""
        commands, results = self._pipeline.command_queue, self._pipeline.result_queue
        while commands:
            commands.popleft()()
        if results and results[-1] is None:
            yield from self._flush(self._driver.pgconn)

    def commit(self, heard: Iterable[int] = ()) -> None:
        """Commit the transaction, and tell those who wait for the trees that are ``heard``.

        Raises the error of the first statement that failed; a notification is only a hint.
        """
        if self._mode is None:
            self._driver.commit()
            self.notify(heard)
            return
        committed = self.execute("COMMIT", prepare=False)
        try:
            if heard:
                self._end_message()
                self.notify(heard)
            self._pipeline.sync()
        except self.Error:
            self.drain()
            if self.closed or committed.statusmessage != "COMMIT":
                raise
        if committed.statusmessage != "COMMIT":  # a lost connection may end the wait without a word
            raise self.OperationalError(_UNCONFIRMED_COMMIT)

    def notify(self, heard: Iterable[int]) -> None:
        """Tell those who wait for trees, in a transaction for each."""
        with suppress(self.Error):
            for tree_id in heard:
                self.execute(build_notification(tree_id), prepare=False)

    def _end_message(self) -> None:
        """Do what `Pipeline.sync` does, without the wait."""
        self._pipeline.result_queue.append(None)
        self._driver.pgconn.pipeline_sync()

    @property
    def has_failed(self) -> bool:
        """Whether a statement failed, so that the transaction can only be rolled back."""
        return bool(self.info.transaction_status.name == "INERROR")

    def rollback(self) -> None:
        """End a transaction without a commit; raise the error of a statement that nobody read."""
        if self._mode is None or self._writes:
            self._driver.rollback()
            return
        self._sent = []
        if self._newest.pgresult is None:
            self._pipeline.sync()
        self.execute("COMMIT", prepare=False)  # after a rollback statements are prepared anew
        self._end_message()

    def wait(self) -> None:
        """Wait for all statements; raise the error of the first one that failed."""
        if self._mode is not None:
            self._pipeline.sync()

    def drain(self) -> None:
        """Wait for all answers whatever they are; after an error statements are taken again."""
        self._sent = []
        while self._mode is not None and not self.closed:
            try:
                self._pipeline.sync()
            except self.Error:
                continue
            break

    def leave(self) -> None:
        """Wait for all answers, and leave pipeline mode."""
        self.drain()
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)
