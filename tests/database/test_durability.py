"""What was acknowledged survives killed processes, power cuts and full disks.

A repeated call stores nothing twice.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text

from store import Store
from store.errors import StoreFull

ROOT = Path(__file__).resolve().parents[2]
Fork = Callable[..., Any]

pytestmark = [
    pytest.mark.sqlite_only,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()"),
]


def said(number: object, size: int = 0) -> dict[str, Any]:
    """Return a message with an id that says the same as its content."""
    return {"role": "user", "content": f"{number} " + "x" * size, "id": f"m{number}"}


def called(number: int) -> list[dict[str, Any]]:
    """Return a batch that fills every table: a call, its result, and a text longer than a page."""
    function = {"name": "read_file", "arguments": json.dumps({"path": f"src/{number}.py"})}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c", "content": f"{number} " + "y" * 6000},
    ]


def numbers(store: Store) -> list[int]:
    """Return the numbers that the messages of the session begin with."""
    return [int(each.message["content"].split()[0]) for each in store.messages("s")]


def check_sound(path: Path) -> None:
    """Fail unless the file is whole, in SQLite's eyes and in ours."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        lines = (
            "SELECT s.id, s.head, count(m.seq), count(DISTINCT m.seq), max(m.seq) FROM sessions s "
        )
        lines += "LEFT JOIN session_messages m ON m.session_id = s.id GROUP BY s.id"
        for session_id, head, count, distinct, last in connection.execute(lines):
            assert (count, distinct, last or 0) == (head, head, head), session_id
    with Store(path) as store:
        assert store.verify() == []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a closed store with an empty session "s"."""
    with Store(tmp_path / "chat.db") as store:
        store.create_session("s")
    return tmp_path / "chat.db"


# --- Killed processes -----------------------------------------------------------------------------


def append_until_killed(path: Path, tell: int, name: int, first: int) -> None:
    """Append messages one after the other and say each number once it is acknowledged."""
    with Store(path) as store:
        for number in range(first, first + 10_000):
            store.append("s", said(number + 1_000_000 * name))
            os.write(tell, b"%010d" % (number + 1_000_000 * name))


def acknowledged(told: int) -> list[int]:
    """Return the numbers in a pipe that nobody writes to any more."""
    with os.fdopen(told, "rb") as pipe:
        text = pipe.read()
    return [int(text[at : at + 10]) for at in range(0, len(text) // 10 * 10, 10)]


@pytest.mark.slow
def test_a_killed_process_loses_nothing_acknowledged(path: Path, fork: Fork) -> None:
    """Killed at forty random moments.

    Every acknowledged message is there, and the line has no gap (D4).
    """
    chance = random.Random(1)
    with Store(path) as store:
        for _ in range(40):
            told, tell = os.pipe()
            child = fork(append_until_killed, path, tell, 0, store.session("s").head)
            os.close(tell)
            heard = int(os.read(told, 10))
            time.sleep(chance.random() * 0.002)
            child.end()
            last = max([heard, *acknowledged(told)])
            found = numbers(store)
            assert found == list(range(len(found)))
            assert len(found) in (
                last + 1,
                last + 2,
            )  # a commit may have been cut off before it was told
    check_sound(path)


@pytest.mark.slow
def test_killed_writers_among_others(path: Path, fork: Fork) -> None:
    """Four writers at once, killed at random.

    Nothing acknowledged is lost, and the line has no gap.
    """
    chance = random.Random(2)
    expected: set[int] = set()
    for kill in range(8):
        pipes = [os.pipe() for _ in range(4)]
        children = [
            fork(append_until_killed, path, tell, name, 1000 * kill)
            for name, (_, tell) in enumerate(pipes)
        ]
        for _, tell in pipes:
            os.close(tell)
        os.read(pipes[-1][0], 10)
        time.sleep(chance.random() * 0.02)
        for child in chance.sample(children, 4):
            child.end()
        for told, _ in pipes:
            expected |= {*acknowledged(told)}
        with Store(path, timeout=60) as store:
            assert expected <= {*numbers(store)}
    check_sound(path)


@pytest.mark.slow
def test_a_repeated_append_stores_nothing_twice(path: Path, fork: Fork) -> None:
    """Who does not know whether a call got through repeats it with the same ids.

    Each message is there once (D5).
    """
    chance = random.Random(3)

    def append(start: int, tell: int) -> None:
        store = Store(path)
        os.write(tell, b"x")
        for number in range(start, start + 5):
            store.append("s", [said(number), said(f"{number} also")])

    with Store(path) as store:
        for start in range(0, 100, 5):
            for _ in range(2):
                told, tell = os.pipe()
                child = fork(append, start, tell)
                os.read(told, 1)
                time.sleep(chance.random() * 0.003)
                child.end()
                os.close(told)
                os.close(tell)
            for number in range(start, start + 5):
                first, second = store.append("s", [said(number), said(f"{number} also")])
                assert second.seq == first.seq + 1
        assert numbers(store) == [number for number in range(100) for _ in range(2)]
    check_sound(path)


@pytest.mark.slow
def test_a_batch_is_whole_or_not_at_all(path: Path, fork: Fork) -> None:
    """A batch cut off by a kill is there with all its messages, calls, facts and paths, or not at
    all.
    """

    def append(tell: int) -> None:
        store = Store(path)
        os.write(tell, b"x")
        for number in range(10_000):
            store.append(
                "s", [message for part in range(20) for message in called(20 * number + part)]
            )

    chance = random.Random(4)
    for _ in range(15):
        told, tell = os.pipe()
        child = fork(append, tell)
        os.read(told, 1)
        time.sleep(chance.random() * 0.02)
        child.end()
        os.close(told)
        os.close(tell)
        with closing(sqlite3.connect(path)) as connection:
            counts = [
                connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("messages", "tool_calls", "tool_results", "tool_result_paths")
            ]
        assert counts == [counts[1] * 2, counts[1], counts[1], counts[1]]
        assert counts[0] % 40 == 0
    check_sound(path)


# --- Power cuts -----------------------------------------------------------------------------------

SECTOR = 512

RECORDED = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1]) / "tests" / "database"))
from test_durability import called, said
from store import Policy, Store
from store.importing import import_file

talk = Path(sys.argv[2]).with_suffix(".jsonl")
acknowledge = open(sys.argv[3], "wb", buffering=0)
with Store(sys.argv[2], durability=sys.argv[4]) as store:
    store.create_session("other")
    for number in range(40):
        store.append("s", said(number))
        acknowledge.write(b"%d\\n" % number)
        if number % 4 == 0:
            store.append("other", called(number))
        if number % 10 == 5:
            store.fork("s", number // 2)
            store.rewind("other", 1)
            store.undo_rewind("other")
        if number == 25:
            store.delete_session("other")
            store.create_session("other")
        if number % 10 == 7:
            store.rename_session("s", "renamed " * number)
            assert store.compact("s", Policy(), lambda _: "so far").outcome == "applied"
        if number == 15:
            import_file(store, talk, session_id="imported")
        if number == 20:
            store.delete_session("imported", purge=True)
"""

GROUPED = """
import sys
import threading
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1]) / "tests" / "database"))
from test_durability import called, said
from store import Store

acknowledge = open(sys.argv[3], "wb", buffering=0)

def write(name):
    for number in range(1000 * name, 1000 * name + 25):
        store.append("s", said(number, 40 * (number % 90)))
        acknowledge.write(b"%d\\n" % number)
        if number % 5 == 0:
            store.append("other", called(number))

with Store(sys.argv[2], durability=sys.argv[4]) as store:
    store.create_session("other")
    threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


class Write(NamedTuple):
    """A change of a file.

    Bytes at a place, a new length (data None), or a synchronisation (place None).
    """

    file: str
    place: int | None
    data: bytes | None


CALL = re.compile(
    r'(?:\d+ +)?(\w+)\((?:AT_FDCWD, )?(?:"([^"]*)"|(\d+)(?:<[^>]*>)?)(.*)\) += (-?\d+)(?:<.*>)?$'
)
UNFINISHED = " <unfinished ...>"
RESUMED = re.compile(r"\s*<\.\.\. \w+ resumed>,? ?(.*)")
WRITTEN = re.compile(r', "((?:\\x[0-9a-f]{2})*)", (\d+)(?:, (\d+))?$')


def record(path: Path, durability: str, program: str = RECORDED) -> list[Write]:
    """Run appends in a child under strace; return what it wrote to the disk, in order."""
    log, told = path.with_suffix(".trace"), path.with_suffix(".told")
    lines = [json.dumps(message) for number in range(20) for message in called(number)]
    path.with_suffix(".jsonl").write_text("\n".join(lines))
    command = ["strace", "-f", "-xx", "-s", "100000", "-o", str(log)]
    command += ["-e", "trace=openat,close,pwrite64,write,fsync,fdatasync,ftruncate,unlink"]
    command += [sys.executable, "-c", program, str(ROOT), str(path), str(told), durability]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr.lower() or "not permitted" in done.stderr.lower():
        pytest.skip(f"strace may not trace here: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return list(writes(log, path.parent))


def whole(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of calls, put together where another thread's line came between."""
    begun: dict[str, str] = {}
    for line in lines:
        thread, _, said = line.partition(" ")
        resumed = RESUMED.match(said)
        if said.endswith(UNFINISHED):
            begun[thread] = line.removesuffix(UNFINISHED)
        elif resumed:
            yield begun.pop(thread) + resumed[1]
        else:
            yield line


def writes(log: Path, folder: Path) -> Iterator[Write]:
    """Yield the changes of the files of a folder in a log of strace."""
    opened: dict[str, str] = {}
    for line in whole(log.read_text(errors="replace").splitlines()):
        found = CALL.match(line)
        if not found or int(found[5]) < 0:
            continue
        call, name, number, rest, result = found.groups()
        if name is not None:
            name = bytes.fromhex(name.replace("\\x", "")).decode()
        if call == "openat":
            opened[result] = name
        elif call == "unlink" and Path(name).parent == folder:
            yield Write(Path(name).name, 0, None)
        elif call == "close":
            opened.pop(number, None)
        elif Path(opened.get(number, "/")).parent == folder:
            file = Path(opened[number]).name
            if call in ("fsync", "fdatasync"):
                yield Write(file, None, None)
            elif call == "ftruncate":
                yield Write(file, int(rest.lstrip(", ")), None)
            else:
                written = WRITTEN.match(rest)
                assert written, line[:200]
                yield Write(
                    file, int(written[3] or -1), bytes.fromhex(written[1].replace("\\x", ""))
                )


def cut(
    recorded: list[Write], before: dict[str, bytes], end: int, chance: random.Random
) -> dict[str, bytes]:
    """Return the files after a power cut.

    Synchronised bytes stay, each later sector is kept or lost at random.
    """
    files = {name: bytearray(content) for name, content in before.items()}
    waiting: dict[str, list[Write]] = {}
    for write in recorded[:end]:
        if write.place is None:
            for each in waiting.pop(write.file, []):
                apply(files.setdefault(write.file, bytearray()), each)
        else:
            waiting.setdefault(write.file, []).append(write)
    keep = chance.choice((0.0, 0.1, 0.5, 0.9))
    for name, pending in waiting.items():
        for write in pending:
            for sector in sectors(write):
                if chance.random() < keep:
                    apply(files.setdefault(name, bytearray()), sector)
    return {name: bytes(content) for name, content in files.items()}


def sectors(write: Write) -> Iterator[Write]:
    """Yield a write in the pieces that a disk keeps or loses."""
    if write.data is None:
        yield write
        return
    at, place = 0, write.place or 0
    while at < len(write.data):
        size = SECTOR - (place + at) % SECTOR
        yield Write(write.file, place + at, write.data[at : at + size])
        at += size


def apply(content: bytearray, write: Write) -> None:
    """Change a file's bytes as a write does."""
    place = write.place or 0
    if len(content) < place:
        content.extend(bytes(place - len(content)))
    if write.data is None:
        del content[place:]
    else:
        content[place : place + len(write.data)] = write.data


def after_cut(folder: Path, files: dict[str, bytes]) -> tuple[set[int], bool]:
    """Return the numbers that a cut left in the session, and whether everything is sound.

    The next opening goes on with what was being erased.
    """
    for each in folder.iterdir():
        each.unlink()
    for name in ("chat.db", "chat.db-wal"):
        (folder / name).write_bytes(files.get(name, b""))
    with closing(sqlite3.connect(folder / "chat.db")) as connection:
        sound = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        sound = sound and connection.execute("PRAGMA foreign_key_check").fetchall() == []
        found = connection.execute(
            "SELECT seq, content FROM session_messages WHERE session_id = 's' ORDER BY seq"
        )
        line = [(seq, int(content.split()[0])) for seq, content in found]
        head = connection.execute("SELECT head FROM sessions WHERE id = 's'").fetchone()[0]
    with Store(folder / "chat.db") as store:
        sound = sound and store.verify() == []
    there = [number for _, number in line]
    gapless = [seq for seq, _ in line] == [*range(1, head + 1)]
    by_writer = sorted(there, key=lambda number: number // 1000)  # which keeps their order
    in_order = by_writer == sorted({*there})
    return {*there}, sound and gapless and in_order


def cuts(
    path: Path, durability: str, rounds: int, program: str = RECORDED
) -> Iterator[tuple[set[int], set[int], bool]]:
    """Yield for each cut: what was acknowledged, what is there, whether the rest is sound."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed, which this test looks at system calls with")
    before = {path.name: path.read_bytes()}
    recorded = record(path, durability, program)
    chance = random.Random(5)
    folder = path.parent / "cut"
    folder.mkdir()
    for _ in range(rounds):
        end = chance.randint(1, len(recorded))
        told = b"".join(each.data or b"" for each in recorded[:end] if each.file == "chat.told")
        yield (
            {int(number) for number in told.split()},
            *after_cut(folder, cut(recorded, before, end, chance)),
        )


def test_calls_that_another_thread_interrupts_are_whole(tmp_path: Path) -> None:
    """A thread that ends in the midst of a write takes nothing of it out of the record."""
    log = tmp_path / "chat.trace"
    name = "".join(f"\\x{byte:02x}" for byte in bytes(tmp_path / "chat.db"))
    log.write_text(
        f'7 openat(AT_FDCWD, "{name}", O_RDWR|O_CREAT, 0600 <unfinished ...>\n'
        "8 +++ exited with 0 +++\n"
        "7 <... openat resumed>)             = 5\n"
        '7 pwrite64(5, "\\x61\\x62", 2, 40 <unfinished ...>\n'
        "9 fdatasync(6)                      = 0\n"
        "7 <... pwrite64 resumed>)           = 2\n"
        "7 fdatasync(5 <unfinished ...>\n"
        "8 +++ exited with 0 +++\n"
        "7 <... fdatasync resumed>)          = 0\n"
    )
    assert [*writes(log, tmp_path)] == [Write("chat.db", 40, b"ab"), Write("chat.db", None, None)]


@pytest.mark.slow
def test_a_power_cut_loses_nothing_acknowledged(path: Path) -> None:
    """The writes of a real run, cut off at random moments with unsynchronised sectors lost at
    random (D1).
    """
    outcomes = list(cuts(path, "full", 300))
    assert [there for _, there, sound in outcomes if not sound] == []
    assert [told - there for told, there, _ in outcomes if not told <= there] == []
    assert [there for _, there, _ in outcomes if there != {*range(len(there))}] == []
    assert len({len(told) for told, _, _ in outcomes}) > 20


@pytest.mark.slow
def test_a_power_cut_loses_nothing_acknowledged_of_a_group(path: Path) -> None:
    """The same with eight threads, whose appends share their commits."""
    outcomes = list(cuts(path, "full", 200, GROUPED))
    assert [there for _, there, sound in outcomes if not sound] == []
    assert [told - there for told, there, _ in outcomes if not told <= there] == []
    assert len({len(told) for told, _, _ in outcomes}) > 20
    appends = 8 * 25 * 6 // 5
    trace = path.with_suffix(".trace").read_text(errors="replace")
    assert trace.count("fdatasync(") < appends / 2


@pytest.mark.slow
def test_normal_durability_loses_only_the_last_commits(path: Path) -> None:
    """A power cut under "normal" never breaks the store, and does lose commits.

    So the cuts above are real (D2).
    """
    outcomes = list(cuts(path, "normal", 150))
    assert [there for _, there, sound in outcomes if not sound] == []
    assert [there for _, there, _ in outcomes if there != {*range(len(there))}] == []
    assert [told - there for told, there, _ in outcomes if not told <= there] != []


# --- Full disks -----------------------------------------------------------------------------------


def batch(number: int) -> list[dict[str, Any]]:
    """Return a batch of three messages."""
    return [said(3 * number + part, 3000) for part in range(3)]


def append_until_full(store: Store) -> int:
    """Append batches after the head until there is no room; return how many were acknowledged."""
    first = store.session("s").head // 3
    for number in range(first, 10_000):
        try:
            store.append("s", batch(number))
        except StoreFull:
            return number - first
    raise AssertionError("there was always room")


def fill(path: Path, limit: int) -> tuple[int, list[int]]:
    """Append batches until files may not grow any more, go on when they may.

    Return acknowledged and final numbers.
    """
    with Store(path, timeout=60) as store:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        stored = append_until_full(store)
        for _ in range(3):
            assert append_until_full(store) == 0
            assert numbers(store) == list(range(3 * stored))
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store.append("s", batch(stored))
        return 3 * stored + 3, numbers(store)


@pytest.mark.parametrize("limit", [500_000, 600_001, 1_000_000])
@pytest.mark.sampled(3)
def test_a_full_disk_keeps_what_was_acknowledged(path: Path, fork: Fork, limit: int) -> None:
    """When files cannot grow, the append says so, nothing of it is stored, and after making room it
    goes on (D6).
    """
    expected, found = fork(fill, path, limit).result()
    assert expected > 30
    assert found == list(range(expected))
    check_sound(path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("limit", [0, 100, 5000, 40_000, 100_000])
def test_no_room_for_a_new_store(tmp_path: Path, fork: Fork, limit: int) -> None:
    """A store that there is no room for is not half made: with room, opening it makes it."""

    def make() -> None:
        resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        )
        with pytest.raises(StoreFull):
            Store(tmp_path / "chat.db")

    fork(make).result()
    with Store(tmp_path / "chat.db") as store:
        store.create_session("s")
    check_sound(tmp_path / "chat.db")


def test_a_full_database_keeps_what_was_acknowledged(path: Path) -> None:
    """The same where SQLite itself finds no page.

    After the error the connection is in no transaction.
    """
    with Store(path, timeout=5) as store:

        def allow(pages: int) -> None:
            with store.database.reading() as connection:
                connection.execute(text(f"PRAGMA max_page_count = {pages}"))

        allow(150)
        batches = append_until_full(store)
        assert 5 < batches < 100
        assert numbers(store) == list(range(3 * batches))
        with suppress(StoreFull):
            store.create_session("t")
        allow(100_000)
        store.append("s", batch(batches))
        assert numbers(store) == list(range(3 * batches + 3))
    check_sound(path)


def test_an_unacknowledged_write_may_be_there(path: Path, fork: Fork) -> None:
    """Killed after the commit but before the answer.

    The message is there, and repeating the call finds it.
    """

    def append() -> None:
        store = Store(path)
        store.append("s", said(0))
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(AssertionError, match="was killed"):
        fork(append).result()
    with Store(path) as store:
        (stored,) = store.append("s", said(0))
        assert (stored.seq, numbers(store)) == (1, [0])
