"""The queue of writers, place by place: who has its turn when, and what ends a wait."""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.database import writer_queue
from store.database.writer_queue import QueuePlace, WriterQueue
from store.errors import StoreBusy, StoreError

Fork = Callable[..., Any]

pytestmark = [
    pytest.mark.sqlite_only,
    pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells who waits"),
]


@pytest.fixture
def line(tmp_path: Path) -> WriterQueue:
    """Give a line before a lock file of its own."""
    return WriterQueue(str(tmp_path / "lock"), 60)


@pytest.fixture
def place(line: WriterQueue) -> Iterator[Callable[[], QueuePlace]]:
    """Give places in one line."""
    given: list[QueuePlace] = []

    def make() -> QueuePlace:
        given.append(QueuePlace(line))
        return given[-1]

    yield make
    for each in given:
        each.close()


def wait_until(line: WriterQueue, kind: str, *, there: bool = True) -> None:
    """Return when the kernel knows of a lock of a kind on the lock file, "->" for one waited for.

    Or when it knows of none any more.
    """
    number = f":{Path(line.path).stat().st_ino} "
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        locks = Path("/proc/locks").read_text().splitlines()
        if there == any(number in lock and kind in lock for lock in locks):
            return
        time.sleep(0.002)
    raise AssertionError(f"locks of the kind {kind}: {there} is not so")


def stop(child: Any, line: WriterQueue) -> None:
    """Stop a process that waits in line; return when the kernel has it waiting no more."""
    child.send(signal.SIGSTOP)
    wait_until(line, "->", there=False)


def waiter(fork: Fork, line: WriterQueue) -> Any:
    """Start a process that waits in line, and returns when it had its turn."""

    def wait() -> float:
        own = QueuePlace(WriterQueue(line.path, 60))
        own.take()
        had = time.monotonic()
        own.close()
        return had

    child = fork(wait)
    wait_until(line, "->")
    return child


def test_who_comes_lets_those_who_wait_move_up(
    line: WriterQueue, place: Callable[[], QueuePlace], fork: Fork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer whose turn was long does not take the next one while the first in line is woken."""
    front = place()
    front.take()
    behind = waiter(fork, line)
    stop(behind, line)  # as one that is woken, and does not run yet
    front.leave()
    monkeypatch.setattr(front, "_ends", 0.0)
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 30)

    def come_again() -> float:
        front.take()
        had = time.monotonic()
        front.leave()
        return had

    with ThreadPoolExecutor(1) as threads:
        again = threads.submit(come_again)
        time.sleep(0.1)
        behind.send(signal.SIGCONT)
        assert behind.result() < again.result()


def test_a_stopped_writer_that_waits_holds_up_nobody(
    line: WriterQueue, place: Callable[[], QueuePlace], fork: Fork
) -> None:
    """It is given the time to be woken, no more."""
    front = place()
    front.take()
    behind = waiter(fork, line)
    stop(behind, line)
    front.leave()
    for _ in range(2):
        late = place()
        late.take(0)
        late.close()


def let_the_line_move_up(place: QueuePlace) -> None:
    """Do with the line what the end of the first write does."""
    assert place.file
    writer_queue._apply_lock_operation(place.file, writer_queue._LEAVE_QUEUE)


def test_a_stopped_first_in_line_keeps_nobody_from_writing(
    line: WriterQueue, place: Callable[[], QueuePlace], fork: Fork
) -> None:
    """At its deadline a writer takes the lock that nobody has; the first has its turn later."""
    front, late = place(), place()
    front.take()
    let_the_line_move_up(front)
    first = waiter(fork, line)  # for the lock, after all looks
    stop(first, line)
    front.leave()
    late.take(0.1)
    with pytest.raises(StoreBusy, match=f"process {os.getpid()} held"):
        place().take(0.1)
    first.send(signal.SIGCONT)
    late.leave()
    first.result()


@pytest.mark.slow
def test_a_first_in_line_that_runs_is_not_passed(
    line: WriterQueue, place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that is free until it looks again is not taken from it at a deadline."""
    monkeypatch.setattr(writer_queue, "LOOK_SECONDS", 0.3)
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 0.6)
    front, first, late = place(), place(), place()
    front.take()
    let_the_line_move_up(front)
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(first.take)
        wait_until(line, "OFDLCK ADVISORY  WRITE")
        front.leave()
        with pytest.raises(StoreBusy):
            late.take(0.05)
        waits.result()


def test_turns_that_were_given_up_hold_up_nobody(
    line: WriterQueue, place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, they look for no lock that nobody wants."""
    front = place()
    front.take()
    for _ in range(5):
        with pytest.raises(StoreBusy):
            place().take(0.01)
    monkeypatch.setattr(writer_queue, "LOOK_SECONDS", 60)
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 60)
    front.leave()
    wait_until(line, "OFDLCK", there=False)
    place().take(0)


def test_a_turn_has_come_before_somebody_is_told(
    place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is woken looks at once, and would give up what it has."""
    told: list[bool] = []
    give_up = writer_queue._WriterTurn.give_up

    def tell(turn: writer_queue._WriterTurn) -> None:
        told.append(turn.has_come)
        give_up(turn)

    monkeypatch.setattr(writer_queue._WriterTurn, "give_up", tell)
    front, behind = place(), place()
    front.take()
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(behind.take)
        time.sleep(0.02)
        front.leave()
        waits.result()
    assert told == [True]


def test_a_file_that_a_thread_waits_with_is_left_to_it(
    line: WriterQueue, place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks for the lock once more, and closes the file when it has it."""
    monkeypatch.setattr(writer_queue, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 30)
    front = place()
    front.take()
    let_the_line_move_up(front)
    with pytest.raises(StoreBusy):
        place().take(0.02)
    time.sleep(0.1)
    front.leave()
    wait_until(line, "OFDLCK", there=False)


def test_a_turn_that_comes_at_the_deadline_is_given_back(
    line: WriterQueue, place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread took it for wanted, and leaves the file to the writer, which has given up."""
    files: list[FileIO] = []
    wait = writer_queue._WriterTurn.wait
    monkeypatch.setattr(writer_queue._WriterTurn, "wait", lambda turn, _: wait(turn, 30) and False)
    front, behind = place(), place()
    front.take()
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(behind.take, 0.1)
        wait_until(line, "->")
        files.extend(file for file in (front.file, behind.file) if file)
        front.leave()
        waits.result()
    assert [file.closed for file in files] == [False, True]
    with pytest.raises(StoreBusy):
        place().take(0)


def test_who_has_its_turn_can_be_told_to_give_up(place: Callable[[], QueuePlace]) -> None:
    """A cancellation may come late, and more than once."""
    front, behind = place(), place()
    front.take()
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(behind.take)
        while behind._turn is None:
            time.sleep(0.002)
        front.leave()
        waits.result()
    for _ in range(2):
        behind.give_up()
    with pytest.raises(StoreBusy):
        place().take(0)


def test_nobody_is_named_where_nobody_can_be(
    line: WriterQueue, place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk takes no number; a file may be closed by then; what stands there may be none."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", failing)
        place().take()
    with pytest.raises(StoreBusy, match="another writer held"):
        place().take(0)
    file = line.open_file()
    os.pwrite(file.fileno(), b"\xff", 0)
    assert line.holder(file) == "another writer"
    file.close()
    assert line.holder(file) == "another writer"


def failing(*_: object) -> None:
    """Fail as a file system without locks."""
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def test_a_file_system_without_locks_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the writers cannot agree upon, nobody writes."""
    monkeypatch.setattr(fcntl, "flock", failing)
    with (
        Store(path) as store,
        pytest.raises(StoreError, match=r"cannot lock .*chat\.db-lock: .*not sup"),
    ):
        store.create_session("s")


def test_a_process_without_a_thread_to_wait_is_told(
    place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes as long as nobody else does."""

    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", no_thread)
    front, late = place(), place()
    front.take()
    with pytest.raises(StoreError, match="can't start new thread"):
        late.take()
    front.leave()
    place().take()


def test_without_a_line_writers_take_turns_as_well(
    line: WriterQueue, place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no byte can be locked, the lock of the file is all there is."""
    monkeypatch.setattr(fcntl, "fcntl", failing)
    front, behind = place(), place()
    front.take()
    with pytest.raises(StoreBusy):
        place().take(0.05)
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(behind.take)
        wait_until(line, "->")
        assert not waits.done()
        front.leave()
        waits.result()


def busy_timeout(connection: Any) -> int:
    """Return how many ms SQLite waits for other programs."""
    return int(connection.exec_driver_sql("PRAGMA busy_timeout").scalar())


def test_a_wait_in_line_leaves_less_for_other_programs(path: Path) -> None:
    """There is one deadline for both; the next operation has a new one."""
    front = QueuePlace(WriterQueue(f"{path}-lock", 60))
    front.take()
    with Store(path, timeout=60) as store, ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: (time.sleep(0.3), front.close()))
        with store.database.writing() as connection:
            connection.exec_driver_sql("SELECT 1 FROM sessions")
            left = busy_timeout(connection)
        assert left <= 59_800
        for given in (store.database.reading, store.database.writing):
            with given() as connection:
                again = busy_timeout(connection)
            assert again > 59_800


def test_what_can_be_done_later_waits_for_no_other_program(path: Path) -> None:
    """A search beside a program that writes does not wait to take in what is new."""
    with Store(path, timeout=40) as store, closing(sqlite3.connect(path)) as other:
        store.create_session("s")
        store.append("s", {"role": "user", "content": "word"})
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        store.search("word")
        with pytest.raises(StoreBusy), store.database.writing(patience=0) as connection:
            connection.exec_driver_sql("SELECT 1 FROM sessions")
        assert time.monotonic() - begun < 20
        with store.database.reading() as connection:
            again = busy_timeout(connection)
        assert again == 40_000


def test_a_later_write_of_a_turn_takes_one_step(
    place: Callable[[], QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the lock and gives it back; the line was left by the first write of the turn."""
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 60)
    own, steps = place(), []
    own.take()
    own.leave()
    flock, fcntl = writer_queue.fcntl.flock, writer_queue.fcntl.fcntl
    monkeypatch.setattr(
        writer_queue.fcntl, "flock", lambda *given: (steps.append("flock"), flock(*given))
    )
    monkeypatch.setattr(
        writer_queue.fcntl, "fcntl", lambda *given: (steps.append("line"), fcntl(*given))
    )
    own.take()
    assert steps == ["flock"]
    own.leave()
    assert steps == ["flock", "flock"]
