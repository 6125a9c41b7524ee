"""Signals that raise.

Wherever one strikes, the next writer gets its turn, and an append is whole or not there.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from store import Store
from store.database.writer_queue import QueuePlace, WriterQueue

Fork = Callable[..., Any]
TraceFunction = Callable[[FrameType, str, Any], Any]

pytestmark = [
    pytest.mark.sqlite_only,
    pytest.mark.no_cover,
    pytest.mark.timeout(300, method="thread"),  # the alarm is what strikes
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers"),
    # a signal may strike between the opening of a file and the note of who closes it
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Struck(BaseException):
    """What the signal raises."""


def strike(*_: object) -> None:
    """Raise, wherever the program is."""
    raise Struck


def said(content: object) -> dict[str, object]:
    """Return a user's message."""
    return {"role": "user", "content": content}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a closed store with an empty session, for copying: quicker than making one."""
    path = tmp_path_factory.mktemp("template") / "chat.db"
    with Store(path) as store:
        store.create_session("s")
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    """Give the path of a closed store with an empty session "s"."""
    return Path(shutil.copy(template, tmp_path / "chat.db"))


@pytest.fixture
def alarmed() -> Iterator[None]:
    """Let an alarm raise."""
    before = signal.signal(signal.SIGALRM, strike)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted(work: Callable[[], object], seconds: float) -> bool:
    """Do work with an alarm set; tell whether it was cut off."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Struck:
        return True
    return False


FIRST = 10
"""Appends without an alarm, which tell how long one takes here and now."""


def struck_appends(
    path: Path, name: int, rounds: int, opened: Callable[..., Store] = Store
) -> list[int]:
    """Append under alarms, most of which strike before the end; return which were acknowledged."""
    signal.signal(signal.SIGALRM, strike)
    chance = random.Random(name)
    acknowledged: list[int] = []

    def append(number: int) -> None:
        store.append("s", said([name, number]))
        acknowledged.append(number)

    with opened(path, timeout=60) as store:
        began = time.monotonic()
        for number in range(FIRST):
            append(number)
        longest = 4 * (time.monotonic() - began) / FIRST
        for number in range(FIRST, rounds):
            interrupted(lambda number=number: append(number), chance.uniform(1e-5, longest))  # type: ignore[misc]
    return acknowledged


def check_whole(path: Path, acknowledged: dict[int, list[int]]) -> None:
    """Make sure that all that was acknowledged is there, nothing twice, and the next one can write."""
    with Store(path, timeout=60) as store:
        store.append("s", said("after"))
        *found, last = [each.message["content"] for each in store.messages("s")]
        assert last == "after"
        assert store.verify() == []
    assert len(found) == len({tuple(each) for each in found})
    for name, numbers in acknowledged.items():
        assert {*numbers} <= {number for who, number in found if who == name}


def test_a_writer_interrupted_in_line_keeps_nobody_waiting(path: Path, fork: Fork) -> None:
    """Who is interrupted while it waits for another process has no turn when that one has ended."""
    told, tell = os.pipe()
    holds, let_go = os.pipe()
    waits, end = os.pipe()

    def hold() -> None:
        place = QueuePlace(WriterQueue(f"{path}-lock", 60))
        place.take()
        os.write(tell, b"x")
        os.read(holds, 1)
        place.close()

    def wait() -> int:
        signal.signal(signal.SIGALRM, strike)
        with Store(path, timeout=60) as store:
            assert interrupted(lambda: store.append("s", said("never")), 0.2)
            os.write(let_go, b"x")
            assert store.append("s", said("here"))[0].seq == 1
            os.write(tell, b"y")
            os.read(waits, 1)
        return 1

    holder = fork(hold)
    os.read(told, 1)
    waiter = fork(wait)
    assert os.read(told, 1) == b"y"
    with Store(path, timeout=30) as store:
        assert store.append("s", said("elsewhere"))[0].seq == 2
    os.write(end, b"x")
    assert waiter.result() == 1
    holder.result()


STEPS = tuple(f"database{os.sep}{name}.py" for name in ("lease", "queue", "group_commit"))
"""Modules to strike at every line.

A signal never strikes between a block of `with` and its end, as a trace can: so in no module that
holds a lock in such a block.
"""


class Strikes:
    """Counts lines that are run of these modules, and raises at one of them."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def __call__(self, frame: FrameType, _event: str, _: object) -> TraceFunction | None:
        """Follow what these modules call of themselves."""
        return self.count if frame.f_code.co_filename.endswith(STEPS) else None

    def count(self, _frame: FrameType, event: str, _: object) -> TraceFunction:
        """Raise where enough lines were run."""
        self.left -= event in ("line", "return")
        if self.left == 0:
            self.left = -1
            raise Struck
        return self.count


def struck_after(steps: int, work: Callable[[], object]) -> Struck | None:
    """Do work that is struck after so many steps; None if it ended before."""
    traced = sys.gettrace()
    sys.settrace(Strikes(steps))
    try:
        work()
    except Struck as error:
        return error
    finally:
        sys.settrace(traced)
    return None


def test_a_writer_struck_at_any_step_keeps_nobody_waiting(path: Path) -> None:
    """Its locks are free when its error arrives, though that still refers to all it was doing."""
    steps = 1
    with Store(path, timeout=0) as store, Store(path, timeout=0) as other:
        append = partial(store.append, "s", said("struck"))
        while struck := struck_after(steps, append):
            other.append("s", said("next"))
            assert struck.__traceback__
            steps += 1
        assert steps > 50
        with ThreadPoolExecutor(1) as threads:
            threads.submit(other.append, "s", said("last")).result()
        assert store.verify() == []


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_a_waiting_writer_struck_at_any_step_keeps_nobody_waiting(path: Path, stride: int) -> None:
    """Wherever it is when it gets its turn, or does not get it any more."""
    line = WriterQueue(f"{path}-lock", 30)
    steps, struck = 1, True
    with Store(path, timeout=30) as store, ThreadPoolExecutor(1) as threads:
        append = partial(store.append, "s", said("struck"))
        while struck:
            holder, behind = QueuePlace(line), QueuePlace(line)
            holder.take()
            leaving = threads.submit(leave_soon, holder)
            struck = struck_after(steps, append) is not None
            leaving.result()
            behind.take()
            behind.close()
            steps += stride
    assert steps > 50


def leave_soon(place: QueuePlace, seconds: float = 0.005) -> None:
    """Let a writer wait a little."""
    time.sleep(seconds)
    place.close()


@pytest.mark.parametrize("delays", [(0.0, 0.004), (0.004, 0.0)], ids=["leads", "follows"])
@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_a_writer_of_a_group_struck_at_any_step(
    path: Path, stride: int, delays: tuple[float, float]
) -> None:
    """The others of its group are done once each, whether it leads them or not."""
    line = WriterQueue(f"{path}-lock", 30)
    struck, steps, rounds = True, 1, 0
    with Store(path, timeout=30) as store, ThreadPoolExecutor(4) as threads:

        def append(content: str, delay: float) -> None:
            time.sleep(delay)
            store.append("s", said(content))

        while struck:
            holder = QueuePlace(line)
            holder.take()
            leaving = threads.submit(leave_soon, holder, 0.01)
            others = [threads.submit(append, f"other {rounds} {n}", delays[1]) for n in range(3)]
            struck = struck_after(steps, partial(append, f"{rounds}", delays[0])) is not None
            for each in (leaving, *others):
                each.result(60)
            steps, rounds = steps + stride, rounds + 1
        found = [str(each.message["content"]) for each in store.messages("s")]
        assert store.verify() == []
    wanted = {f"other {number} {n}" for number in range(rounds) for n in range(3)}
    assert wanted == {each for each in found if each.startswith("other")}
    assert len(found) == len({*found})
    assert str(rounds - 1) in found
    assert steps > 25


@pytest.mark.usefixtures("alarmed")
@pytest.mark.parametrize("rounds", [300, pytest.param(6000, marks=pytest.mark.slow)])
def test_writers_interrupted_at_work(path: Path, rounds: int) -> None:
    """Wherever an append is cut off, the same process and the next can write at once."""
    told = struck_appends(path, 1, rounds)
    assert FIRST < len(told) < rounds
    check_whole(path, {1: told})


@pytest.mark.usefixtures("alarmed")
@pytest.mark.parametrize("is_one", [True, False], ids=["one store", "two stores"])
@pytest.mark.parametrize("rounds", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_writers_interrupted_beside_threads(path: Path, rounds: int, is_one: bool) -> None:
    """Threads that write meanwhile, in a group with it or not, never wait for who was interrupted."""
    stopped = threading.Event()
    numbers: list[list[int]] = [[], []]

    def write(name: int) -> None:
        with (Store.shared if is_one else Store)(path, timeout=60) as own:
            while not stopped.is_set():
                own.append("s", said([name, len(numbers[name])]))
                numbers[name].append(len(numbers[name]))

    threads = [threading.Thread(target=write, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    try:
        told = struck_appends(path, 2, rounds, Store.shared if is_one else Store)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    check_whole(path, {0: numbers[0], 1: numbers[1], 2: told})


@pytest.mark.parametrize("rounds", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_writers_interrupted_in_several_processes(path: Path, fork: Fork, rounds: int) -> None:
    """Four processes that wait for each other, each cut off again and again, go on to the end."""
    children = [fork(struck_appends, path, name, rounds) for name in range(4)]
    check_whole(path, {name: child.result() for name, child in enumerate(children)})


@pytest.mark.usefixtures("alarmed")
@pytest.mark.slow
def test_an_interrupted_purge_leaves_the_queue(path: Path) -> None:
    """What works on the file outside of a transaction stands in line too."""
    with Store(path, timeout=30) as store, Store(path, timeout=30) as other:
        for number in range(1, 40):
            interrupted(store.purge, 0.0001 * number)
            with suppress(Struck):
                other.append("s", said(number))
        assert other.session("s").head == 39
