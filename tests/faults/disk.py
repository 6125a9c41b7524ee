"""Faults of the disk at every single read, write, flush and change of files of every operation.

``python -m tests.faults.disk OPERATION`` does it for one, in a process that ``fault.c`` was loaded
into, and prints how many faults there were and what went wrong. Each fault happens in a forked
process with a store of its own. Afterwards the store must be sound and say what it said before or
after the operation, never anything between; what was acknowledged must be there; an error must be
one of ours and have changed nothing; and the same call repeated must end as if nothing had been.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from store import Policy, Store, StoreError
from store.database import group_commit
from store.database.writer_queue import QueuePlace, WriterQueue
from store.errors import DraftNotFound, NothingToUndo, SessionExists, SessionNotFound

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("fault.c")

READ, WRITE, FLUSH, CHANGE = range(4)
EIO, ENOSPC, SHORT, KILL_BEFORE, KILL_AFTER, TORN = range(1, 7)
FAULTS = {
    READ: (EIO,),
    WRITE: (EIO, ENOSPC, SHORT, KILL_BEFORE, KILL_AFTER, TORN),
    FLUSH: (EIO, KILL_BEFORE, KILL_AFTER),
    CHANGE: (EIO, ENOSPC, KILL_BEFORE, KILL_AFTER),
}
STAYING = (EIO, ENOSPC)
"""Faults that are also tried as a disk that fails from then on."""
ALREADY = (SessionExists, SessionNotFound, NothingToUndo, DraftNotFound)
"""What a repeated call may say where the first one was done after all."""
MOST = int(os.environ.get("CONVOSTORE_FAULT_PLACES", "8"))
"""Places of a fault that are tried for an operation, spread over all of them, at most."""

Operation = Callable[[Store], object]


def said(content: str) -> dict[str, Any]:
    """Return a message with an id, so that repeating it is safe."""
    return {"role": "user", "content": content, "id": content[:20]}


def opened_anew(store: Store) -> None:
    """Make a store beside the other."""
    with Store(Path(str(store.database.path)).with_name("new.db")) as new:
        new.sessions()


def copied(store: Store) -> None:
    """Copy the store; what a killed copy left behind goes first."""
    path = Path(str(store.database.path)).with_name("copy.db")
    with suppress(OSError):
        path.with_name("copy.db.part").unlink()
    store.backup(path, replace=True)


def finished(store: Store) -> None:
    """Let the draft be a message."""
    found = [each.draft for each in store.drafts("streamed")]
    store.finish_draft(*found or ["gone"])


MEMBERS = 6
TURN = 60.0
"""Seconds that a group takes members for, so that all are in one transaction on a busy machine."""


def grouped(store: Store) -> None:
    """Append in threads that share a transaction; who got an error tries it once more."""

    def append(number: int) -> None:
        message = said(f"member {number} " + "x" * 3000)
        with suppress(StoreError):
            store.append(f"member {number}", message, create=True)
            return
        store.append(f"member {number}", message, create=True)

    group_commit.TURN_SECONDS = TURN
    holder = QueuePlace(WriterQueue(f"{store.database.path}-lock", TURN))
    with ThreadPoolExecutor(MEMBERS) as threads:
        try:
            holder.take()
            appends = []
            for number in range(MEMBERS):
                appends.append(threads.submit(append, number))
                await_line(store, number + 1)
        finally:
            holder.close()
    for each in appends:
        each.result()


def await_line(store: Store, count: int) -> None:
    """Wait until so many appends are in line; not for long, where a fault keeps them from it."""
    end = time.monotonic() + 1
    while len(store.database._group._line) < count and time.monotonic() < end:  # type: ignore[union-attr]
        time.sleep(0.001)


def later() -> int:
    """Return a moment (ms) long after the last one, when no lease of a killed process counts."""
    return time.monotonic_ns()


OPERATIONS: dict[str, Operation] = {
    "append": lambda store: store.append("s", [said(f"new {n} " + "x" * 3000) for n in range(3)]),
    "group": grouped,
    "create": lambda store: store.create_session("new", title="new"),
    "fork": lambda store: store.fork("s", 5, "new"),
    "rewind": lambda store: store.rewind("s", 4),
    "undo": lambda store: store.undo_rewind("rewound"),
    "rename": lambda store: store.rename_session("s", "renamed " * 900),
    "compact": lambda store: store.compact("s", Policy(), lambda _: "all of it", now=later()),
    "replace": lambda store: store.replace("s", 5, [said("another " + "x" * 3000)]),
    "hide": lambda store: store.hide("s", 2, 7, "what they said"),
    "redact": lambda store: store.redact("s", 3, "a secret"),
    "annotate": lambda store: store.annotate("s", 3, "rating", {"stars": 5}),
    "finish": finished,
    "delete": lambda store: store.delete_session("gone"),
    "purge": lambda store: store.delete_session("gone", purge=True),
    "backup": copied,
    "open": opened_anew,
}


def prepared(path: Path) -> None:
    """Make the store that every fault begins with."""
    with Store(path) as store:
        for name in ("s", "gone", "rewound"):
            store.create_session(name)
            store.append(name, [said(f"{name} {n} " + "word " * 300) for n in range(12)])
        store.rewind("rewound", 3)
        streamed(store)


def streamed(store: Store) -> None:
    """Leave a draft of an answer."""
    store.create_session("streamed")
    with suppress(ZeroDivisionError), store.streaming("streamed", {"role": "assistant"}) as answer:
        answer.write("word " * 900)
        raise ZeroDivisionError


Picture = dict[str, tuple[Any, ...]]


def picture(path: Path) -> Picture:
    """Return what a store says: titles, raw messages, what is hidden."""
    with Store(path, timeout=60) as store:
        return _picture(store)


def _picture(store: Store) -> Picture:
    return {each.id: (each.title, *_lines(store, each.id)) for each in store.sessions()}


def examined(path: Path) -> tuple[Picture, list[str]]:
    """Return what a store says, and what is wrong with it."""
    with Store(path, timeout=60) as store:
        return _picture(store), [f"{each}" for each in store.verify()]


def _lines(store: Store, session_id: str) -> Iterator[list[Any]]:
    yield [stored.message for stored in store.messages(session_id)]
    yield sorted(store.hidden(session_id))
    yield [note.value for note in store.annotations(session_id)]
    yield [draft.message for draft in store.drafts(session_id)]


class Fault(NamedTuple):
    """What goes wrong at which of the writes or flushes."""

    kind: int
    at: int
    mode: int
    stays: bool

    @property
    def kills(self) -> bool:
        """Whether the process ends of it."""
        return self.mode in (KILL_BEFORE, KILL_AFTER, TORN)


class Outcome(NamedTuple):
    """What a process said of its operation: calls that were seen, the error, that of the retry."""

    seen: int
    error: str | None
    ours: bool
    retried: str | None


def shim() -> Any:
    """Return the functions of ``fault.c`` in this process."""
    loaded = ctypes.CDLL(None)
    loaded.fault_disarm.restype = ctypes.c_long
    return loaded


def attempt(path: Path, work: Operation, fault: Fault, *, again: bool = True) -> Outcome | None:
    """Do an operation with a fault in a process of its own; None where the fault ended it."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        with suppress(BaseException):
            os.write(tell, json.dumps(_worked(path, work, fault, again=again)).encode())
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return Outcome(*json.loads(text)) if text else None


def _worked(path: Path, work: Operation, fault: Fault, *, again: bool) -> Outcome:
    loaded, error, ours, retried = shim(), None, True, None
    with Store(path, timeout=60) as store:
        store.sessions()
        where = str(path.parent).encode()
        loaded.fault_arm(where, fault.kind, ctypes.c_long(fault.at), fault.mode, int(fault.stays))
        try:
            work(store)
        except Exception as raised:  # noqa: BLE001 - that it is one of ours is what is asked
            error, ours = repr(raised), isinstance(raised, StoreError)
        seen = loaded.fault_disarm()
        if error and again:
            try:
                work(store)
            except ALREADY:
                pass
            except Exception as raised:  # noqa: BLE001 - the retry must go through
                retried = repr(raised)
    return Outcome(seen, error, ours, retried)


class Ground(NamedTuple):
    """What faults of an operation are tried on: a store, and what it says before and after."""

    name: str
    template: Path
    before: Picture
    after: Picture

    @contextmanager
    def fresh(self) -> Iterator[Path]:
        """Give a copy of the store, in a folder of its own."""
        with tempfile.TemporaryDirectory(dir=self.template.parents[1]) as folder:
            yield Path(shutil.copytree(self.template.parent, Path(folder, "store")), "chat.db")

    def problems(self, fault: Fault) -> list[str]:
        """Do the operation with a fault; return what is wrong afterwards."""
        with self.fresh() as path:
            outcome = attempt(path, OPERATIONS[self.name], fault)
            found = [*self._ended_otherwise(fault, outcome), *self._left_behind(path, outcome)]
        if outcome and outcome.error:
            found += self._changed(fault)
        return [f"{fault}: {problem}" for problem in found]

    def _ended_otherwise(self, fault: Fault, outcome: Outcome | None) -> Iterator[str]:
        if outcome is None and not fault.kills:
            yield "the process ended"
        if outcome and not outcome.ours:
            yield f"not an error of the store: {outcome.error}"
        if outcome and outcome.retried:
            yield f"the retry failed too: {outcome.retried}"

    def _left_behind(self, path: Path, outcome: Outcome | None) -> Iterator[str]:
        """Look at the store; where the process was killed, also when the call is repeated."""
        if outcome is None:
            if picture(path) not in (self.before, self.after):
                yield "something between before and after"
            with Store(path, timeout=60) as store, suppress(*ALREADY):
                OPERATIONS[self.name](store)
        found, unsound = examined(path)
        if found != self.after:
            yield f"acknowledged or repeated, and not there ({outcome and outcome.error})"
        yield from unsound

    def _changed(self, fault: Fault) -> Iterator[str]:
        """Do the operation anew, without a retry: an error must have changed nothing."""
        with self.fresh() as path:
            outcome = attempt(path, OPERATIONS[self.name], fault, again=False)
            if outcome and outcome.error and picture(path) != self.before:
                yield f"{outcome.error}, and something was changed"


def faults(ground: Ground) -> Iterator[Fault]:
    """Yield the faults of an operation: each kind at each place, as counted on fresh stores."""
    for kind, modes in FAULTS.items():
        with ground.fresh() as path:
            outcome = attempt(path, OPERATIONS[ground.name], Fault(kind, 0, EIO, stays=False))
        assert outcome, ground.name
        assert outcome.error is None, outcome
        step = max(1, -(-outcome.seen // MOST))
        for at in range(1, outcome.seen + 1, step):
            for mode in modes:
                yield Fault(kind, at, mode, stays=False)
                if mode in STAYING:
                    yield Fault(kind, at, mode, stays=True)


class Result(NamedTuple):
    """How many faults there were, and what went wrong at which."""

    total: int
    wrong: list[str]


def campaign(name: str) -> Result:
    """Try every fault of an operation, as many at once as there are processors."""
    with tempfile.TemporaryDirectory() as folder:
        ground = prepared_for(name, Path(folder, "template", "chat.db"))
        planned = list(faults(ground))
        with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
            wrong = pool.map(ground.problems, planned, chunksize=4)
    return Result(len(planned), [*chain.from_iterable(wrong)])


def prepared_for(name: str, template: Path) -> Ground:
    """Make the store that faults of an operation begin with; see what it says after it."""
    template.parent.mkdir()
    prepared(template)
    ground = Ground(name, template, picture(template), {})
    with ground.fresh() as path:
        assert attempt(path, OPERATIONS[name], Fault(WRITE, 0, EIO, stays=False))
        return ground._replace(after=picture(path))


def compiler() -> str | None:
    """Return the C compiler of this system, if there is one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compiled(folder: Path) -> Path:
    """Compile ``fault.c`` into a folder."""
    target = folder / "fault.so"
    command = [str(compiler()), "-shared", "-fPIC", "-O1", "-o", str(target), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return target


def run(name: str, folder: Path) -> Result:
    """Try every fault of an operation, in a process that the shim was loaded into."""
    environment = {**os.environ, "LD_PRELOAD": str(compiled(folder))}
    command = [sys.executable, "-m", "tests.faults.disk", name]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Result(*json.loads(done.stdout))


if __name__ == "__main__":
    print(json.dumps(campaign(sys.argv[1])))
