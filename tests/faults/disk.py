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
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from store import Policy, Store, StoreError
from store.errors import NothingToUndo, SessionExists, SessionNotFound

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
ALREADY = (SessionExists, SessionNotFound, NothingToUndo)
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


def later() -> int:
    """Return a moment (ms) long after the last one, when no lease of a killed process counts."""
    return time.monotonic_ns()


OPERATIONS: dict[str, Operation] = {
    "append": lambda store: store.append("s", [said(f"new {n} " + "x" * 3000) for n in range(3)]),
    "create": lambda store: store.create_session("new", title="new"),
    "fork": lambda store: store.fork("s", 5, "new"),
    "rewind": lambda store: store.rewind("s", 4),
    "undo": lambda store: store.undo_rewind("rewound"),
    "rename": lambda store: store.rename_session("s", "renamed " * 900),
    "compact": lambda store: store.compact("s", Policy(), lambda _: "all of it", now=later()),
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


Picture = dict[str, tuple[Any, ...]]


def picture(path: Path) -> Picture:
    """Return what a store says: titles, raw messages, what is hidden."""
    with Store(path, timeout=60) as store:
        return {each.id: (each.title, *_lines(store, each.id)) for each in store.sessions()}


def unsound(path: Path) -> list[str]:
    """Return what is wrong with a store."""
    with Store(path, timeout=60) as store:
        return [f"{each}" for each in store.verify()]


def _lines(store: Store, session_id: str) -> Iterator[list[Any]]:
    yield [stored.message for stored in store.messages(session_id)]
    yield sorted(store.hidden(session_id))


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


def judged(name: str, path: Path, fault: Fault, before: Picture, after: Picture) -> Iterator[str]:
    """Do an operation with a fault; yield what is wrong afterwards."""
    outcome = attempt(path, OPERATIONS[name], fault)
    if outcome is None and not fault.kills:
        yield "the process ended"
    if outcome and not outcome.ours:
        yield f"not an error of the store: {outcome.error}"
    if outcome and outcome.retried:
        yield f"the retry failed too: {outcome.retried}"
    found = picture(path)
    if outcome and found != after:
        yield f"acknowledged or repeated, and not there ({outcome.error})"
    if outcome is None and found not in (before, after):
        yield "something between before and after"
    if outcome is None:
        with Store(path, timeout=60) as store, suppress(*ALREADY):
            OPERATIONS[name](store)
        if picture(path) != after:
            yield "repeated after the kill, and not there"
    yield from unsound(path)


def errors_changed_nothing(name: str, path: Path, fault: Fault, before: Picture) -> Iterator[str]:
    """Do an operation with a fault and without a retry: an error must have changed nothing."""
    outcome = attempt(path, OPERATIONS[name], fault, again=False)
    if outcome and outcome.error and picture(path) != before:
        yield f"{outcome.error}, and something was changed"


def faults(name: str, fresh: Callable[[], Path]) -> Iterator[Fault]:
    """Yield the faults of an operation: each kind at each place, as counted on fresh stores."""
    for kind, modes in FAULTS.items():
        outcome = attempt(fresh(), OPERATIONS[name], Fault(kind, 0, EIO, stays=False))
        assert outcome, name
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
    """Try every fault of an operation."""
    wrong, total = [], 0
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder, "template", "chat.db")
        template.parent.mkdir()
        prepared(template)
        numbers = count()

        def fresh() -> Path:
            target = Path(folder, str(next(numbers)))
            return Path(shutil.copytree(template.parent, target), "chat.db")

        before, done = picture(template), fresh()
        planned = list(faults(name, fresh))
        assert attempt(done, OPERATIONS[name], Fault(WRITE, 0, EIO, stays=False))
        after = picture(done)
        for fault in planned:
            path = fresh()
            problems = list(judged(name, path, fault, before, after))
            if not fault.kills:
                problems += errors_changed_nothing(name, fresh(), fault, before)
            wrong += [f"{fault}: {problem}" for problem in problems]
            total += 1
            for made in Path(folder).iterdir():
                if made != template.parent:
                    shutil.rmtree(made)
    return Result(total, wrong)


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
