"""Each guard is missed when it is gone.

Guards stand behind one another, so that a test of the whole passes with one of them taken away.
Here each is looked at alone, by what it does.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from store import AsyncStore, Policy, Store, importing
from store.database import write_ahead, writer_queue
from store.database.writer_queue import QueuePlace, WriterQueue
from store.errors import QueryRefused, StoreBusy, StoreFull, StoreMoved
from store.history import erasure
from store.inspection import console, sql_console

Fork = Callable[..., Any]

pytestmark = pytest.mark.sqlite_only

NOW = 1_800_000_000_000


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """Give an open store with a session "s"."""
    with Store(path, timeout=60) as opened:
        opened.create_session("s")
        yield opened


# --- The log --------------------------------------------------------------------------------------


def test_writers_keep_the_log_short(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader let grow is emptied by the next writers, though SQLite would leave it so long."""
    monkeypatch.setattr(write_ahead, "MAX_LOG_BYTES", 100_000)
    log = path.with_name("chat.db-wal")
    with Store(path) as opened:
        opened.create_session("s")
        with opened.database.reading() as reader:
            reader.exec_driver_sql("SELECT count(*) FROM messages").all()
            opened.append("s", [said("x" * 9000) for _ in range(40)])
        grown = log.stat().st_size
        for number in range(2 * write_ahead.LOG_CHECK_INTERVAL):
            opened.append("s", said(number))
        assert grown > 300_000
        assert log.stat().st_size < 250_000


@pytest.mark.slow
def test_after_a_long_reader_the_log_is_short_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While somebody reads, a warning tells that the log grows; soon after it is emptied."""
    monkeypatch.setattr(write_ahead, "MAX_LOG_BYTES", 100_000)
    monkeypatch.setattr(write_ahead, "LOG_WARNING_BYTES", 1_000_000)
    monkeypatch.setattr(write_ahead, "LOG_RETRY_SECONDS", 0.05)
    log = path.with_name("chat.db-wal")
    with Store(path) as opened:
        opened.create_session("s")
        for _ in range(2):
            let_the_log_grow(opened)
            assert log.stat().st_size > 1_500_000
            told = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
            assert 1 <= len(told) <= 2
            assert "chat.db-wal has grown to" in told[0]
            caplog.clear()
            time.sleep(0.06)
            opened.append("s", said("after"))
            assert log.stat().st_size < 100_000


def let_the_log_grow(store: Store) -> None:
    """Write much while somebody reads, then go on for some looks at the log."""
    with store.database.reading() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM messages").all()
        for _ in range(write_ahead.LOG_CHECK_INTERVAL * 2):
            store.append("s", said("x" * 30_000))
        for _ in range(4):
            time.sleep(0.06)
            store.append("s", said("x"))


def test_the_log_is_switched_on_in_line(tmp_path: Path) -> None:
    """A first opening waits for the writer in front before it changes how the file is written."""
    path = tmp_path / "new.db"
    place = QueuePlace(WriterQueue(f"{path}-lock", 60))
    place.take()
    try:
        with ThreadPoolExecutor(1) as threads:
            opening = threads.submit(Store, path, timeout=60)
            time.sleep(0.3)
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
            assert not opening.done()
            place.leave()
            opening.result().close()
    finally:
        place.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_in_use_is_switched_as_soon_as_it_is_free(tmp_path: Path) -> None:
    """SQLite refuses at once where somebody reads; the first opening asks again."""
    path = tmp_path / "new.db"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as driver,
        closing(sqlite3.connect(path, check_same_thread=False)) as reader,
    ):
        driver.execute("PRAGMA busy_timeout = 0")
        driver.execute("CREATE TABLE t (x)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        with ThreadPoolExecutor(1) as threads:
            threads.submit(lambda: (time.sleep(0.2), reader.rollback()))
            write_ahead.switch_to_log(driver, 60)
        assert driver.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_purge_that_readers_keep_from_its_end_is_not_begun(store: Store, path: Path) -> None:
    """The log grows by no copy of the whole file that nobody could fold in."""
    log = path.with_name("chat.db-wal")
    store.append("s", [said("x" * 9000) for _ in range(40)])
    with store.database.reading() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM messages").all()
        store.append("s", said("x"))
        before = log.stat().st_size
        assert not store.purge(idle=True).done
        assert log.stat().st_size < before + 100_000


def test_a_purge_leaves_the_patience_of_writers_as_it_was(store: Store) -> None:
    """It waits for readers for less long, and for nobody else."""
    assert store.purge().done
    with store.database.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 60_000


def test_readers_are_not_waited_for_as_writers_are(store: Store, path: Path) -> None:
    """What folds the log in gives up in time, however long writers may wait for each other."""
    store.append("s", said("x"))
    with (
        store.database.reading() as reader,
        closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as driver,
    ):
        reader.exec_driver_sql("SELECT count(*) FROM messages").all()
        driver.execute("UPDATE sessions SET title = 'later'")
        begun = time.monotonic()
        assert not write_ahead.checkpoint_log(driver, 100)
        assert time.monotonic() - begun < 20


# --- The queue ------------------------------------------------------------------------------------


only_linux_tells = pytest.mark.skipif(
    not Path("/proc/locks").exists(), reason="only Linux tells who waits"
)


def waiting(path: Path, kind: str = "->") -> int:
    """Return how many wait for a lock on a file, or have one of a kind, as the kernel says."""
    number = f":{path.stat().st_ino} "
    return sum(
        kind in line and number in line for line in Path("/proc/locks").read_text().splitlines()
    )


@only_linux_tells
@pytest.mark.slow
def test_writers_are_served_in_the_order_in_which_they_came(path: Path, fork: Fork) -> None:
    """Eight that wait get their turns one after the other; SQLite by itself would draw lots."""
    with Store(path) as opened:
        opened.create_session("s")
    told, tell = os.pipe()
    wait, go = os.pipe()

    def hold() -> None:
        with Store(path) as holding, holding.database.writing() as connection:
            connection.exec_driver_sql("UPDATE sessions SET title = 'held'")
            os.write(tell, b"x")
            os.read(wait, 1)

    def write(name: int) -> int:
        with Store(path, timeout=120) as writing:
            return writing.append("s", said(name))[0].seq

    holder = fork(hold)
    os.read(told, 1)
    children = []
    for name in range(8):
        children.append(fork(write, name))
        deadline = time.monotonic() + 60
        while waiting(path.with_name("chat.db-lock")) <= name and time.monotonic() < deadline:
            time.sleep(0.005)
    os.write(go, b"x")
    holder.result()
    assert [child.result() for child in children] == list(range(1, 9))


@pytest.fixture
def places(path: Path) -> Iterator[tuple[QueuePlace, QueuePlace]]:
    """Give two places in one line."""
    line = WriterQueue(f"{path}-lock", 60)
    given = QueuePlace(line), QueuePlace(line)
    yield given
    for place in given:
        place.close()


def take_and_let_the_line_move_up(place: QueuePlace) -> None:
    """Begin a turn, and come as far as the end of its first write."""
    place.take()
    assert place.file is not None
    writer_queue._apply_lock_operation(place.file, writer_queue._LEAVE_QUEUE)


def until_one_waits(path: Path, kind: str) -> None:
    """Return when somebody waits, or has a lock of a kind."""
    deadline = time.monotonic() + 60
    while not waiting(path.with_name("chat.db-lock"), kind) and time.monotonic() < deadline:
        time.sleep(0.002)


@only_linux_tells
def test_a_turn_goes_on_past_those_who_wait(
    path: Path, places: tuple[QueuePlace, QueuePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer takes the lock again; the first in line looks later."""
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 60)
    monkeypatch.setattr(writer_queue, "LOOK_SECONDS", 0.5)
    front, behind = places
    take_and_let_the_line_move_up(front)
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(behind.take)
        until_one_waits(path, "OFDLCK ADVISORY  WRITE")
        for _ in range(3):
            front.leave()
            front.take()
        assert not waits.done()
        front.leave()
        waits.result()


@only_linux_tells
def test_a_turn_that_is_over_goes_past_nobody(
    path: Path, places: tuple[QueuePlace, QueuePlace]
) -> None:
    """A writer that comes again at once stands behind the one that waits by then."""
    front, behind = places
    served: list[QueuePlace] = []

    def serve(place: QueuePlace) -> None:
        place.take()
        served.append(place)
        place.leave()

    take_and_let_the_line_move_up(front)
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(serve, behind)
        until_one_waits(path, "->")  # for the lock, after all looks
        front.leave()
        serve(front)
        waits.result()
    assert served == [behind, front]


def test_writers_that_never_pause_starve_nobody(path: Path, fork: Fork) -> None:
    """Each turn of theirs ends, though they ask again at once."""

    def write() -> None:
        place = QueuePlace(WriterQueue(f"{path}-lock", 60))
        while True:
            place.take()
            place.leave()

    writers = [fork(write) for _ in range(3)]
    line = WriterQueue(f"{path}-lock", 60)
    for _ in range(5):
        place = QueuePlace(line)
        place.take()
        place.close()
    for writer in writers:
        writer.end()


def test_a_wait_in_line_ends_at_its_deadline(path: Path) -> None:
    """Whoever is in front is named."""
    line = WriterQueue(f"{path}-lock", 60)
    front, late = QueuePlace(line), QueuePlace(line)
    front.take()
    begun = time.monotonic()
    with pytest.raises(StoreBusy, match=f"process {os.getpid()} held"):
        late.take(0.1)
    assert time.monotonic() - begun < 8
    front.close()
    late.close()


def test_a_forked_child_is_named_as_itself(store: Store, path: Path, fork: Fork) -> None:
    """What it inherited says its parent's number no more."""
    store.append("s", said("x"))

    def write() -> tuple[int, str]:
        with store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE sessions SET title = 'held'")
            return os.getpid(), path.with_name("chat.db-lock").read_text()

    child, named = fork(write).result()
    assert int(named) == child


@pytest.mark.no_cover
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no signals")
@pytest.mark.slow
def test_an_interrupted_wait_gives_its_turn_back(path: Path) -> None:
    """By itself, not only because nobody refers to it any more."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    line = WriterQueue(f"{path}-lock", 60)
    front, interrupted, next_ = (QueuePlace(line) for _ in range(3))
    front.take()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            interrupted.take()
    finally:
        signal.signal(signal.SIGALRM, before)
    interrupted.close()
    front.leave()
    time.sleep(0.3)  # its thread gets the turn that nobody waits for any more
    next_.take()
    for place in (front, next_):
        place.close()


@pytest.mark.slow
def test_a_file_that_was_moved_while_a_writer_waited_is_noticed(store: Store, path: Path) -> None:
    """What it was before the wait in line says nothing of what it is behind it."""
    front = QueuePlace(WriterQueue(f"{path}-lock", 60))
    front.take()
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(store.append, "s", said("never"))
        time.sleep(0.5)
        path.rename(path.with_name("moved.db"))
        front.close()
        with pytest.raises(StoreMoved):
            writing.result()


# --- Cancelled tasks ------------------------------------------------------------------------------


def head(path: Path) -> int:
    """Return how many messages were committed, as another program sees it."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT head FROM sessions").fetchone()[0])


@pytest.mark.slow
def test_a_cancelled_task_is_over_when_it_says_so(path: Path) -> None:
    """What a cancelled append did is done when the task ends, or will never be."""
    batch = [said("x" * 20_000) for _ in range(40)]

    async def heads() -> list[tuple[int, int]]:
        found = []
        async with AsyncStore(path) as opened:
            await opened.create_session("s")
            for number in count():
                task = asyncio.create_task(opened.append("s", batch))
                await asyncio.sleep(0.002 * number)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                before = head(path)
                await asyncio.sleep(0.1)
                found.append((before, head(path)))
                if number >= 15 and before:  # one at least was quicker than its end
                    return found
        raise AssertionError("never reached")

    found = asyncio.run(heads())
    assert [pair for pair in found if pair[0] != pair[1] or pair[0] % len(batch)] == []


# --- Erasing --------------------------------------------------------------------------------------


def test_freed_pages_are_overwritten_at_once(path: Path) -> None:
    """Before any purge, erased contents are gone from the file when its log is folded in."""
    with Store(path) as opened:
        opened.create_session("s")
        opened.append("s", [said("SECRET" * 4000) for _ in range(40)])
        opened.create_session("t")
        opened.delete_session("s")
    assert path.read_bytes().count(b"SECRET" * 100) == 0


def test_a_purge_is_done_when_it_says_so(store: Store, path: Path) -> None:
    """The file is small and has nothing left, nor has its log, while the store is still open."""
    store.append("s", [said("SECRET" * 4000) for _ in range(40)])
    assert store.delete_session("s", purge=True)[0].purged
    files = [str(path), f"{path}-wal"]
    command = "import sys; print(sum(open(f, 'rb').read().count(b'SECRET') for f in sys.argv[1:]))"
    # in a process of its own: to close the file here would drop the locks on it
    done = subprocess.run(
        [sys.executable, "-c", command, *files], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
    assert path.stat().st_size < 500_000


def test_what_is_still_being_erased_is_not_purged(store: Store) -> None:
    """A purge beside it leaves nothing of the others, and is noted of them alone."""
    for name in ("s", "t"):
        store.create_session(name, exist_ok=True)
        store.append(name, said("x"))
    store.delete_session("t")
    with store.database.writing() as connection:
        erasure.begin_erasure(connection, "s", now=NOW)
    with store.database.writing() as connection:
        erasure.mark_erasures_purged(connection, now=NOW)
    found = {each.session_id: (each.finished, each.purged) for each in store.erasures()}
    assert found == {"t": (True, True), "s": (False, False)}


def test_an_erasure_that_has_not_ended_names_the_copies(store: Store, tmp_path: Path) -> None:
    """Those that were made before it began hold what it erases."""
    store.append("s", said("x"))
    store.backup(tmp_path / "copy.db")
    with store.database.writing() as connection:
        erasure.begin_erasure(connection, "s", now=NOW)
    (found,) = store.erasures()
    assert (found.finished, found.copies) == (False, (str(tmp_path / "copy.db"),))


def test_an_erasure_without_room_to_purge_is_done(path: Path, fork: Fork) -> None:
    """When the file cannot be written anew, the purge says so and the erasure raises nothing."""
    with Store(path) as opened:
        opened.create_session("t")
        opened.append("t", [said("x" * 9000) for _ in range(200)])
        opened.create_session("s")
        opened.append("s", said("short"))

    def erase() -> tuple[bool, list[str]]:
        with Store(path, timeout=60) as opened:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
            purged = opened.delete_session("s", purge=True)[0].purged
            return purged, [each.id for each in opened.sessions()]

    assert fork(erase).result() == (False, ["t"])


# --- What errors say ------------------------------------------------------------------------------


def test_an_append_that_was_committed_is_no_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever becomes of the log behind it: it is no part of what was written."""
    for error in (sqlite3.OperationalError("disk I/O error"), FileNotFoundError("the log")):

        def failing(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(write_ahead.WriteAheadLog, "keep_short", failing)
        before = store.session("s").head
        assert store.append("s", said("x"))[0].seq == before + 1
        assert store.session("s").head == before + 1


def fails_after(monkeypatch: pytest.MonkeyPatch, store: Store, good: int) -> None:
    """Let the disk be full when so many transactions were committed."""
    writing, left = store.database.writing, iter(range(good))

    def full(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise StoreFull("the disk is full; nothing was written, make room and try again")
        return writing(*arguments)

    monkeypatch.setattr(store.database, "writing", full)
    transactions = store._transactions._replace(writing=full)
    monkeypatch.setattr(store, "_transactions", transactions)


def test_a_compaction_that_began_says_nothing_more_was_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record stays, so "nothing was written" would be untrue; repeating it is right."""
    store.append("s", [said(f"word {number} " * 40) for number in range(9)])
    with monkeypatch.context() as patch:
        fails_after(patch, store, 1)
        with pytest.raises(StoreFull, match="nothing more was written"):
            store.compact("s", Policy(), lambda _: "all of it")
    assert [each.outcome for each in store.compactions("s")] == ["running"]


def test_an_import_in_parts_says_nothing_more_was_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was imported before stays; the same call adds the rest."""
    monkeypatch.setattr(importing.session, "BATCH_MESSAGES", 2)
    lines = [json.dumps(said(f"m{number}")) for number in range(7)]
    (tmp_path / "talk.jsonl").write_text("\n".join(lines))
    with monkeypatch.context() as patch:
        fails_after(patch, store, 3)
        with pytest.raises(StoreFull, match="nothing more was written"):
            importing.import_file(store, tmp_path / "talk.jsonl", session_id="t")
    assert 0 < store.session("t").head < 7
    importing.import_file(store, tmp_path / "talk.jsonl", session_id="t")
    assert store.session("t").head == 7


def test_a_copy_that_cannot_be_noted_is_made(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is whole and has its name, so that is no error; its line names it all the same."""
    with monkeypatch.context() as patch:
        fails_after(patch, store, 1)
        made = store.backup(tmp_path / "copy.db")
    assert made.number is None
    with Store(tmp_path / "copy.db") as copy:
        assert copy.sessions() == store.sessions()
    assert store.delete_session("s")[0].copies == (str(tmp_path / "copy.db"),)


# --- Verifying ------------------------------------------------------------------------------------


def test_a_row_that_its_index_lacks_is_found(store: Store, path: Path) -> None:
    """SQLite's quick check does not compare indexes with their tables; the whole one does."""
    store.close()
    index = "FROM sqlite_schema WHERE name = 'ix_sessions_archived_updated_second'"
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute(f"SELECT * {index}").fetchone()
    for statement, values in (
        (f"DELETE {index}", ()),
        ("UPDATE sessions SET updated_second = updated_second + 1", ()),
        ("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row),
    ):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(statement, values)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    with Store(path) as opened:
        assert "integrity" in {each.check for each in opened.verify()}


# --- The console, layer by layer ------------------------------------------------------------------


LAYERS = """
import json, resource, sqlite3, sys, time
sys.path.insert(0, sys.argv[1])
import console

console.confine_process(1)
limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
          for name in ("AS", "CPU", "FSIZE", "CORE")}
connection = console.open_file(sys.argv[2], console.Guard(time.monotonic()), 1)
connection.set_authorizer(None)
found = {"limits": limits, "lengths": {str(kind): connection.getlimit(kind) for kind in console.LIMITS}}

def tried(sql):
    try:
        return connection.execute(sql).fetchall()
    except sqlite3.Error as error:
        return str(error)

endless = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT count(*) FROM x"
found["endless"] = tried(endless)
connection.set_progress_handler(None, 0)
found["write"] = tried("UPDATE sessions SET title = 'x'")
found["attach"] = tried("ATTACH ':memory:' AS e")
for name in ("trusted_schema", "hard_heap_limit", "temp_store", "mmap_size", "cell_size_check"):
    found[name] = tried(f"PRAGMA {name}")[0][0]
print(json.dumps(found))
"""


def allow_core_dumps() -> None:
    """Take the limit away that most systems set by themselves."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


@pytest.fixture(scope="module")
def layers(made_file: Path) -> dict[str, Any]:
    """Say what each layer of the console does when the authorizer, the first one, is gone."""
    folder = str(sql_console.CONSOLE_FILE.parent)
    command = [sys.executable, "-I", "-S", "-c", LAYERS, folder, made_file.as_uri()]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, preexec_fn=allow_core_dumps
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("layer", "does"),
    [
        ("endless", "interrupted"),
        ("write", "attempt to write a readonly database"),
        ("attach", "too many attached databases - max 0"),
        ("trusted_schema", 0),
        ("hard_heap_limit", console.HEAP),
        ("temp_store", 2),
        ("mmap_size", 0),
        ("cell_size_check", 1),
    ],
)
def test_a_layer_of_the_console_holds_alone(
    layers: dict[str, Any], layer: str, does: object
) -> None:
    """The file is open for writing here and nothing is forbidden, but this layer is in the way."""
    assert layers[layer] == does


def test_the_console_limits_its_process(layers: dict[str, Any]) -> None:
    """Memory, time, files and core dumps, by the system."""
    most = {"AS": console.ADDRESS_SPACE, "CPU": 2, "FSIZE": console.WRITTEN_FILE, "CORE": 0}
    assert layers["limits"] == most


def test_the_console_limits_sqlite(layers: dict[str, Any]) -> None:
    """Each limit is set."""
    assert layers["lengths"] == {str(kind): most for kind, most in console.LIMITS.items()}


def test_the_console_makes_no_longer_value_than_a_message(path: Path) -> None:
    """One of 100 million signs would fit into its memory, and is refused."""
    grown = "SELECT length(replace(replace(:many, 'a', :many), 'a', :more))"
    texts = {"many": "a" * 1000, "more": "a" * 100}
    with pytest.raises(QueryRefused, match="a value beyond 68 MiB"):
        sql_console.query(path, grown, parameters=texts, timeout=30)
    shorter = {**texts, "more": "a" * 50}
    found = sql_console.query(path, grown, parameters=shorter, timeout=30)
    assert found.rows == [(50_000_000,)]


def test_the_console_opens_the_file_for_reading(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is asked, it could not write."""
    asked: list[dict[str, Any]] = []

    def child(request: bytes, _: float) -> list[bytes]:
        asked.append(json.loads(request))
        return [b'{"columns": []}', b'{"end": false}']

    monkeypatch.setattr(sql_console, "_run_console", child)
    sql_console.query(path, "SELECT 1")
    with (
        closing(sqlite3.connect(asked[0]["uri"], uri=True)) as connection,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        connection.execute("UPDATE sessions SET title = 'x'")


@pytest.mark.slow
def test_a_console_that_never_answers_is_killed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent keeps its own clock, and leaves nobody behind."""
    (tmp_path / "deaf.py").write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    monkeypatch.setattr(sql_console, "CONSOLE_FILE", tmp_path / "deaf.py")
    monkeypatch.setattr(sql_console, "CHILD_GRACE", 2.0)
    with pytest.raises(QueryRefused, match="stopped: longer than"):
        sql_console.query(path, "SELECT 1", timeout=0.1)
    with suppress(FileNotFoundError), pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
