"""What guards the database.

Settings, the file and its companions, closing, forking, waiting for others.
"""

from __future__ import annotations

import _thread
import errno
import gc
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from sqlalchemy import text

from store import Store, StoreError, lazy_imports
from store.database import fork_safety
from store.database.engine import Database
from store.database.lease import Lease, get_lease
from store.database.statements import Statement
from store.errors import InvalidValue, NotAStore, StoreBusy, StoreClosed, StoreMoved

Fork = Callable[..., Any]

pytestmark = pytest.mark.sqlite_only


def said(content: object) -> dict[str, object]:
    """Return a user's message."""
    return {"role": "user", "content": content}


def contents(store: Store, session_id: str = "s") -> list[Any]:
    """Return what the messages of a session say."""
    return [each.message["content"] for each in store.messages(session_id)]


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
def store(path: Path) -> Iterator[Store]:
    """Give an open store with an empty session "s"; it waits for others but shortly."""
    with Store(path, timeout=60) as opened:
        yield opened


# --- Settings -------------------------------------------------------------------------------------

SETTINGS = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "recursive_triggers": 1,
    "trusted_schema": 0,
    "secure_delete": 1,
    "journal_size_limit": 64 * 1024 * 1024,
    "mmap_size": 0,
    "fullfsync": 1,
    "checkpoint_fullfsync": 1,
    "busy_timeout": 7000,
}


def settings(database: Database, among: int) -> list[dict[str, Any]]:
    """Return the settings of several connections that are open at once."""
    with ExitStack() as stack:
        connections = [stack.enter_context(database.reading()) for _ in range(among)]
        return [
            {name: each.scalar(text(f"PRAGMA {name}")) for name in SETTINGS} for each in connections
        ]


def test_every_connection_has_our_settings(path: Path) -> None:
    """Whichever connection of the pool is used, and also beyond the pool's size, it is set as it
    should be.
    """
    with Store(path, timeout=7) as store:
        assert settings(store.database, 20) == [SETTINGS] * 20
        with store.database.reading() as connection:
            driver: Any = connection.connection.driver_connection
            assert driver.isolation_level is None


def test_durability_chooses_how_commits_reach_the_disk(path: Path) -> None:
    """SQLite's FULL or, for "normal", its NORMAL; nothing less is on offer."""
    with Store(path, durability="normal", timeout=7) as store:
        assert settings(store.database, 2) == [{**SETTINGS, "synchronous": 1}] * 2
    with pytest.raises(InvalidValue, match="full, normal"):
        Store(path, durability="off")


def test_reads_and_writes_are_transactions(store: Store) -> None:
    """A read sees one state, however long it takes, and holds up no writer."""
    count = text("SELECT count(*) FROM messages")
    with store.database.reading() as connection:
        assert connection.scalar(count) == 0
        store.append("s", said("meanwhile"))
        assert connection.scalar(count) == 0
        unfetched = connection.execute(text("SELECT name FROM tool_kinds"))
        store.append("s", said("with a cursor open"))
        assert unfetched.fetchone()
    assert contents(store) == ["meanwhile", "with a cursor open"]


def test_a_failing_write_leaves_nothing(store: Store) -> None:
    """Whatever an operation raises, everything it did is undone, and the next one goes through."""

    def write(last: Callable[[], object]) -> None:
        with store.database.writing() as connection:
            connection.execute(text("UPDATE sessions SET title = 'half'"))
            connection.execute(text("CREATE TABLE half (x)"))
            last()

    with pytest.raises(ZeroDivisionError):
        write(lambda: 1 / 0)
    with pytest.raises(StoreError, match="refused"):
        write(lambda: sqlite3.connect(":memory:").execute("no sql"))
    assert store.session("s").title is None
    store.append("s", said("next"))
    assert contents(store) == ["next"]


# --- Where a store may be -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "plain.db",
        "with space.db",
        "per%20cent.db",
        "why?.db",
        "a#b.db",
        "聊天.db",
        "new\nline.db",
        "file:x.db",
        "'q\".db",
    ],
)
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    """A path is taken as it is, whatever it would mean in a URL, and gets just its three
    companions.
    """
    with Store(str(tmp_path / name)) as store:
        store.create_session("s")
        store.append("s", said("hello"))
        assert {each.name for each in tmp_path.iterdir()} == {
            name,
            f"{name}-wal",
            f"{name}-shm",
            f"{name}-lock",
        }
    assert {each.name for each in tmp_path.iterdir()} == {name, f"{name}-lock"}


def test_home_and_urls_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path may begin with ~, be relative, or be written as a URL: it is the same store."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with Store("~/chat.db") as store:
        store.create_session("s")
    for name in (
        "chat.db",
        Path("chat.db"),
        "sqlite:///chat.db",
        f"sqlite+pysqlite:///{tmp_path}/chat.db",
    ):
        with Store(name) as store:
            assert store.session("s").id == "s"


@pytest.mark.parametrize(
    "target",
    [
        *(
            None,
            5,
            b"chat.db",
            "",
            "nul\0.db",
            "://",
            "sqlite://",
            "sqlite:///:memory:",
            "mysql://h/d",
        ),
        *("sqlite+aiosqlite:///x.db", "postgresql+asyncpg://h/d", "sqlite://host/x.db"),
        *(
            "sqlite:///x.db?timeout=soon",
            "sqlite:///x.db?mode=ro&uri=true",
            "sqlite:///x.db?mode=ro",
        ),
    ],
)
def test_a_target_that_names_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Any
) -> None:
    """What is neither a path nor a URL that we know is refused, and makes no file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue):
        Store(target)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("timeout", [-1, "1", None, math.inf, math.nan, 1e10])
def test_a_timeout_is_a_number_of_seconds(tmp_path: Path, timeout: Any) -> None:
    """One that no lock can wait for is refused, and makes no file."""
    with pytest.raises(InvalidValue, match="timeout"):
        Store(tmp_path / "chat.db", timeout=timeout)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_no_store(tmp_path: Path) -> None:
    """Nor is a device; neither is opened, or replaced by a copy."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(NotAStore, match="is a pipe or a device"):
        Store(pipe)
    with (
        Store(":memory:") as store,
        pytest.raises(NotAStore, match="is a pipe or a device"),
    ):
        store.backup(pipe, replace=True)
    assert pipe.is_fifo()
    assert [*tmp_path.iterdir()] == [pipe]


def test_folders_are_told_apart(path: Path) -> None:
    """A folder is no store, and a store is made only in a folder that exists."""
    with pytest.raises(NotAStore, match="is a folder"):
        Store(path.parent)
    with pytest.raises(InvalidValue, match="does not exist"):
        Store(path.parent / "missing" / "chat.db")
    with pytest.raises(InvalidValue, match="does not exist"):
        Store(path / "chat.db")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_are_private(tmp_path: Path, umask: int) -> None:
    """The database and its companions are readable by their owner alone, whatever the umask."""
    before = os.umask(umask)
    try:
        with Store(tmp_path / "chat.db") as store:
            store.create_session("s")
            modes = {each.name: oct(each.stat().st_mode & 0o777) for each in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(
        ("chat.db", "chat.db-wal", "chat.db-shm", "chat.db-lock"), "0o600"
    )


UNPRIVILEGED = 65534


def attempts(folder: Path) -> dict[str, str]:
    """Return what becomes of operations in a folder for a user without rights."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setuid(UNPRIVILEGED)

    def tried(work: Callable[[], Any]) -> str:
        try:
            return str(work())
        except StoreError as error:
            return type(error).__name__

    with ExitStack() as stack:
        opened = [
            f"open {tried(lambda: stack.enter_context(Store(folder / 'chat.db', timeout=1)))[:12]}"
        ]
        if opened == ["open <store.face."]:
            opened = []
    return {
        "make": tried(lambda: Store(folder / "new.db").close()),
        "append": tried(lambda: Store(folder / "chat.db", timeout=1).append("s", said("x"))),
        "open": opened[0] if opened else "",
    }


@pytest.mark.parametrize(
    ("file", "folder"), [(0o444, 0o755), (0o000, 0o755), (0o444, 0o555), (0o666, 0o555)]
)
def test_missing_rights_are_told(template: Path, fork: Fork, file: int, folder: int) -> None:
    """Where a file or folder may not be written, making and appending are refused with an error of
    ours.
    """
    with tempfile.TemporaryDirectory() as name:
        path = Path(shutil.copy(template, name))
        path.chmod(file)
        Path(name).chmod(folder)
        before = path.read_bytes() if os.geteuid() == 0 else None
        outcome = fork(attempts, Path(name)).result()
        Path(name).chmod(0o755)
        assert outcome["append"] == "ReadOnly"
        assert outcome["open"] in ("", "open ReadOnly")
        if folder == 0o555 or os.geteuid() == 0:
            assert outcome["make"] == "ReadOnly"
        path.chmod(0o600)
        assert before is None or path.read_bytes() == before


# --- The file is the one that was opened ----------------------------------------------------------


def moved_away(path: Path) -> None:
    """Move the file to another name."""
    path.rename(path.with_suffix(".moved"))


def removed(path: Path) -> None:
    """Remove the file and its companions."""
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def replaced(path: Path) -> None:
    """Put another store in the file's place."""
    with Store(path.with_suffix(".other")) as other:
        other.create_session("other")
    path.with_suffix(".other").replace(path)


def hard_linked(path: Path) -> None:
    """Give the file a second name."""
    path.with_suffix(".link").hardlink_to(path)


def folder_renamed(path: Path) -> None:
    """Rename the folder the file is in."""
    path.parent.rename(path.parent.with_name("renamed"))


@pytest.mark.parametrize("change", [moved_away, removed, replaced, hard_linked, folder_renamed])
def test_a_write_to_a_lost_file_is_refused(
    store: Store, path: Path, change: Callable[[Path], None]
) -> None:
    """Nothing is acknowledged into a file that is no longer the store's, and no other file is
    touched (C8).
    """
    store.append("s", said("kept"))
    change(path)
    folder = path.parent if path.parent.exists() else path.parent.with_name("renamed")
    before = {each.name: each.stat().st_ino for each in folder.iterdir()}
    for _ in range(3):
        with pytest.raises(StoreMoved, match=r"chat\.db"):
            store.append("s", said("lost"))
    with pytest.raises(StoreMoved):
        store.create_session("t")
    assert {each.name: each.stat().st_ino for each in folder.iterdir()} == before


@pytest.mark.parametrize("change", [moved_away, removed, replaced])
def test_a_read_never_comes_from_another_file(
    store: Store, path: Path, change: Callable[[Path], None]
) -> None:
    """Connections made before still read what was opened; none is made to whatever is there now."""
    store.append("s", said("kept"))
    change(path)
    there = path.exists()
    with store.database.reading() as first:
        assert first.scalar(text("SELECT count(*) FROM messages")) == 1
        with pytest.raises(StoreMoved):  # this one would be new
            store.messages("s")
    assert contents(store) == ["kept"]
    assert path.exists() is there


def test_a_store_that_came_back_goes_on(store: Store, path: Path) -> None:
    """Moved away and back, or linked and unlinked, it is the same file."""
    moved_away(path)
    with pytest.raises(StoreMoved):
        store.append("s", said("lost"))
    path.with_suffix(".moved").rename(path)
    store.append("s", said("one"))
    hard_linked(path)
    with pytest.raises(StoreMoved):
        store.append("s", said("lost"))
    path.with_suffix(".link").unlink()
    store.append("s", said("two"))
    assert contents(store) == ["one", "two"]


def test_a_hard_linked_file_is_not_opened(path: Path) -> None:
    """By its second name a store would get a second log: neither name is opened."""
    hard_linked(path)
    for name in (path, path.with_suffix(".link")):
        with pytest.raises(StoreMoved, match="2 names"):
            Store(name)


def test_symbolic_links_lead_to_the_file(store: Store, path: Path, tmp_path: Path) -> None:
    """Through a link it is the same store with the same companions.

    Where the link leads later does not matter.
    """
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with Store(link) as linked:
        linked.append("s", said("through the link"))
        store.append("s", said("directly"))
        link.unlink()
        link.symlink_to(tmp_path / "nowhere.db")
        linked.append("s", said("still"))
    assert contents(store) == ["through the link", "directly", "still"]
    assert {each.name for each in link.parent.iterdir()} == {"link.db"}
    with Store(link) as new:
        assert new.sessions() == []
    assert (tmp_path / "nowhere.db").stat().st_mode & 0o777 == 0o600


def append_and_die(path: Path) -> None:
    """Append to a store and die before its log is folded in."""
    store = Store(path)
    store.append("other", said("acknowledged"))
    os.kill(os.getpid(), signal.SIGKILL)


def test_closing_a_lost_store_spares_its_successor(store: Store, path: Path, fork: Fork) -> None:
    """SQLite removes the log by name when the last connection closes.

    Not that of the file which took the name.
    """
    store.append("s", said("old"))
    replaced(path)
    for companion in ("-wal", "-shm"):
        Path(f"{path}{companion}").unlink()
    with suppress(AssertionError):
        fork(append_and_die, path).result()
    assert Path(f"{path}-wal").stat().st_size
    store.close()
    with Store(path) as new:
        assert contents(new, "other") == ["acknowledged"]


def test_a_lost_lock_file_loses_no_message(path: Path) -> None:
    """The lock file is about fairness; who removes it takes away no more than that."""
    with Store(path) as first, Store(path) as second:
        first.append("s", said(1))
        Path(f"{path}-lock").unlink()
        with ThreadPoolExecutor(2) as threads:
            list(
                threads.map(
                    lambda store: [store.append("s", said(2)) for _ in range(50)], (first, second)
                )
            )
        assert len(contents(first)) == 101


def test_a_lock_file_that_cannot_be_opened_is_told(path: Path) -> None:
    """What is in the way of the lock file is named."""
    Path(f"{path}-lock").mkdir()
    with Store(path) as store, pytest.raises(StoreError, match=r"chat\.db-lock"):
        store.append("s", said("x"))


def test_a_lock_file_that_cannot_be_read_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a disk that fails; once it does not, the same call works."""

    def failing(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Store(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pread", failing)
            with pytest.raises(StoreError, match="cannot open the lock file"):
                store.append("s", said("never"))
        store.append("s", said("after"))
        assert contents(store) == ["after"]


@pytest.mark.parametrize("content", [b"", b"4711\n       ", b"a diary", b"1" * 13, b"4711\nmore"])
def test_the_lock_is_written_into_a_lock_file_alone(path: Path, content: bytes) -> None:
    """An empty file and one with a process's number are taken; any other stays as it is."""
    lock = Path(f"{path}-lock")
    lock.write_bytes(content)
    with Store(path) as store:
        if content in (b"", b"4711\n       "):
            store.append("s", said("x"))
            assert lock.read_text().strip() == str(os.getpid())
        else:
            with pytest.raises(StoreError, match="not a lock file"):
                store.append("s", said("x"))
            assert lock.read_bytes() == content


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_lock_file_that_is_a_link_is_not_followed(
    path: Path, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    """A link beside the store leads no lock into another file, not into an empty one either."""
    other = tmp_path / "notes.txt"
    other.touch()
    link(other, Path(f"{path}-lock"))
    with Store(path) as store, pytest.raises(StoreError, match=r"chat\.db-lock"):
        store.append("s", said("x"))
    assert other.read_bytes() == b""


def test_a_lock_file_that_is_a_pipe_is_told(path: Path) -> None:
    """Nobody waits for the other end of a pipe."""
    os.mkfifo(f"{path}-lock")
    with Store(path) as store, pytest.raises(StoreError, match="not a lock file"):
        store.append("s", said("x"))


@pytest.mark.parametrize("ending", ["-lock", "-wal", "-shm", "-journal"])
def test_names_of_files_beside_a_store_are_refused(tmp_path: Path, ending: str) -> None:
    """Another store would write over such a file, so none is made, by a link neither."""
    path = tmp_path / f"chat.db{ending}"
    link = tmp_path / "innocent.db"
    link.symlink_to(path)
    for name in (path, link, f"sqlite:///{path}"):
        with pytest.raises(InvalidValue, match="choose a name that does not end in"):
            Store(name)
    assert not path.exists()


# --- A store of one's own -------------------------------------------------------------------------


def test_memory_is_private_and_goes_away() -> None:
    """``":memory:"`` is a new store each time, works in threads, and leaves no file behind."""
    with Store(":memory:") as one, Store(":memory:") as other:
        one.create_session("s")
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: one.append("s", said(number)), range(20)))
        assert len(contents(one)) == 20
        assert other.sessions() == []
        folders = [Path(str(each.database.path)).parent for each in (one, other)]
        assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in folders)
    assert not [folder for folder in folders if folder.exists()]


@pytest.mark.slow
def test_memory_goes_away_unclosed() -> None:
    """A private store that nobody closed goes with the process."""
    code = "from store import Store; store = Store(':memory:'); print(store.database.path)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("chat.db")
    assert not Path(done.stdout.strip()).parent.exists()


@pytest.mark.slow
def test_a_store_that_nobody_uses_any_more_is_closed(path: Path) -> None:
    """Its connections and files go with it, so a host may open one for each request."""
    before = set(Path("/proc/self/fd").iterdir())
    for number in range(40):
        assert Store(path).append("s", said(number))[0].seq == number + 1
    gc.collect()
    assert len(set(Path("/proc/self/fd").iterdir()) - before) < 3
    assert {each.name for each in path.parent.iterdir()} == {"chat.db", "chat.db-lock"}


def test_a_store_is_freed_with_its_last_name(path: Path) -> None:
    """Without the collector of cycles, which may come late: its memory and files are needed now."""
    gc.collect()
    gc.disable()
    try:
        store = Store(path)
        store.append("s", said(1))
        assert store.view("s").messages
        database = weakref.ref(store.database)
        del store
        assert database() is None
    finally:
        gc.enable()


OUT_OF_FILES = """
import os, resource, sys
from contextlib import suppress
from store import Store, StoreError
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
files = []
with suppress(OSError):
    while True:
        files.append(os.open(os.devnull, os.O_RDONLY))
with suppress(StopIteration):
    for number in files:
        os.close(number)
        try:
            with Store(sys.argv[1]) as store:
                store.append("s", {"role": "user", "content": "x"}, create=True)
                store.view("s")
                store.fork("s")
                store.record_usage("s", input=1, output=1)
                store.context("s")
                store.search("x")
            raise StopIteration
        except StoreError as error:
            print(error)
"""


@pytest.mark.slow
def test_a_process_that_runs_out_of_files_is_told_so(path: Path) -> None:
    """The advice is about files that are open, not about permissions."""
    command = [sys.executable, "-c", OUT_OF_FILES, path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert len(told) >= 3
    assert [each for each in told if "as many files open as it may" not in each] == []


# --- Closing --------------------------------------------------------------------------------------


def test_a_closed_store_refuses(store: Store) -> None:
    """Every operation says that the store is closed; closing again is harmless."""
    store.close()
    store.close()
    operations: list[Callable[[], Any]] = [
        lambda: store.append("s", said("x")),
        lambda: store.messages("s"),
        lambda: store.view("s"),
        lambda: store.create_session(),
        lambda: store.sessions(),
        lambda: store.fork("s"),
        lambda: store.rewind("s", 0),
        lambda: store.delete_session("s"),
    ]
    for operation in operations:
        with pytest.raises(StoreClosed):
            operation()


def test_closing_folds_the_log_in(path: Path) -> None:
    """After closing, everything is in the one file, so it can be copied."""
    with Store(path) as store:
        store.append("s", said("x" * 100_000))
    assert {each.name for each in path.parent.iterdir()} == {"chat.db", "chat.db-lock"}


@pytest.mark.slow
def test_closing_under_way_loses_nothing(path: Path) -> None:
    """A store closed while threads write.

    What was acknowledged is there, the rest was refused as closed.
    """
    store = Store(path)
    started = threading.Barrier(5)

    def write(name: int) -> int:
        started.wait()
        for number in range(1000):
            try:
                store.append("s", said([name, number]))
            except StoreClosed:
                return number
        return 1000

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(write, name) for name in range(4)]
        started.wait()
        while store.session("s").head < 40:
            pass
        store.close()
        acknowledged = {name: future.result() for name, future in enumerate(writing)}
    assert {each.name for each in path.parent.iterdir()} == {
        "chat.db",
        "chat.db-lock",
    }  # no connection is left over
    with Store(path) as store:
        found = contents(store)
    assert sorted(found) == [
        [name, number] for name in range(4) for number in range(acknowledged[name])
    ]


def test_what_ends_after_closing_leaves_nothing_open(path: Path) -> None:
    """Neither a connection, be it of an operation that failed, nor the lock file that a late writer
    opens again.
    """
    store = Store(path)
    with (
        suppress(ZeroDivisionError),
        store.database.reading() as connection,
        store.database.writing() as late,
    ):
        connection.execute(text("SELECT * FROM sessions"))
        store.close()
        late.execute(text("UPDATE sessions SET title = 'late'"))
        raise ZeroDivisionError
    assert {each.name for each in path.parent.iterdir()} == {"chat.db", "chat.db-lock"}
    assert store.database._queue is not None
    assert [each for each in store.database._queue._files if not each.closed] == []


class TakenAtOnce(list[Lease]):
    """Idle connections of which each is taken by the next writer the moment it is idle."""

    def append(self, lease: Lease) -> None:
        """Let another write begin on the connection before the operation has quite ended."""
        lease.writes = lease.is_lent = True
        lease.begin()


def test_an_operation_that_has_ended_leaves_nobody_elses_place_in_the_queue(path: Path) -> None:
    """A connection that is idle may be another writer's at once: what it holds is not let go."""
    with Store(path) as store:
        database = store.database
        taken = TakenAtOnce()
        database._idle = dict.fromkeys(database._idle, taken)
        with database.writing() as connection:
            lease = get_lease(connection)
            lease.begin()
        with Store(path, timeout=0) as other, pytest.raises(StoreBusy):
            other.append("s", said("too early"))
        lease.drop()
        with Store(path, timeout=0) as other:
            other.append("s", said("after"))


def test_closing_leaves_a_write_its_place_in_the_queue(path: Path) -> None:
    """A write under way when another thread closes the store is still the one that others wait for,
    and ends as it would have.
    """
    store, written, go_on = Store(path), threading.Event(), threading.Event()

    def write() -> None:
        with store.database.writing() as connection:
            connection.execute(text("UPDATE sessions SET title = 'last'"))
            written.set()
            go_on.wait()

    with ThreadPoolExecutor(1) as threads, Store(path, timeout=0.2) as other:
        writing = threads.submit(write)
        written.wait()
        store.close()
        with pytest.raises(StoreBusy, match=f"process {os.getpid()} held"):
            other.append("s", said("too early"))
        go_on.set()
        writing.result()
        assert other.session("s").title == "last"


# --- Threads --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_share_a_store(store: Store) -> None:
    """Eight threads on one store, on sessions of their own and on one together.

    Nothing lost, doubled or in error.
    """

    def work(name: int) -> None:
        store.create_session(f"own {name}")
        for number in range(25):
            store.append("s", said([name, number]))
            store.append(f"own {name}", said(number))
            assert len(store.messages(f"own {name}")) == number + 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    together = contents(store)
    assert sorted(together) == [[name, number] for name in range(8) for number in range(25)]
    for name in range(8):
        assert contents(store, f"own {name}") == list(range(25))
        assert [number for who, number in together if who == name] == list(range(25))


@pytest.mark.slow
def test_reads_let_the_log_be_emptied(path: Path) -> None:
    """Reads of every kind between thousands of appends leave a log of a few megabytes.

    None of them stays open.
    """
    with Store(path, durability="normal") as store, Store(path) as other:
        for number in range(800):
            store.append("s", said(f"{number} " + "x" * 3000))
            store.messages("s", number, number)
            if number % 10 == 0:
                other.view("s", at=min(number, 20))
                next(other.pages("s", size=5))
                other.sessions(limit=1)
        assert Path(f"{path}-wal").stat().st_size < 8_000_000


# --- Forking --------------------------------------------------------------------------------------


def test_a_forked_child_has_connections_of_its_own(store: Store, path: Path, fork: Fork) -> None:
    """Parent and children write through the store that was open before.

    All of it is there, in both.
    """
    store.append("s", said("before"))

    def write(name: int) -> int:
        for number in range(20):
            store.append("s", said([name, number]))
        return len(store.messages("s"))

    children = [fork(write, name) for name in range(3)]
    write(3)
    assert all(child.result() >= 21 for child in children)
    found = contents(store)
    assert found[0] == "before"
    assert sorted(found[1:]) == [[name, number] for name in range(4) for number in range(20)]


def test_a_child_outlives_its_parents_store(path: Path, fork: Fork) -> None:
    """A store opened before the fork and closed in the parent first.

    What the child acknowledges afterwards stays.
    """
    told, tell = os.pipe()
    store = Store(path)
    store.append("s", said("parent"))

    def child() -> None:
        store.append("s", said("early"))
        os.read(told, 1)
        for number in range(5):
            store.append("s", said(number))
        os.kill(os.getpid(), signal.SIGKILL)

    started = fork(child)
    while store.session("s").head < 2:
        pass
    store.close()
    os.write(tell, b"x")
    with pytest.raises(AssertionError, match="was killed"):
        started.result()
    with Store(path) as store:
        assert contents(store) == ["parent", "early", *range(5)]


@pytest.mark.slow
def test_forking_while_threads_write(store: Store, fork: Fork) -> None:
    """Children forked in the midst of other threads' writes neither hang nor disturb them."""
    over = threading.Event()

    def write(name: int) -> int:
        number = 0
        while not over.is_set():
            store.append("s", said([name, number]))
            number += 1
        return number

    def child(name: int) -> int:
        store.append("s", said(["child", name]))
        return store.session("s").head

    with ThreadPoolExecutor(3) as threads:
        writing = [threads.submit(write, name) for name in range(3)]
        for name in range(12):
            assert fork(child, name).result() > name
        over.set()
        acknowledged = [future.result() for future in writing]
    found = contents(store)
    assert [name for who, name in found if who == "child"] == list(range(12))
    for name, count in enumerate(acknowledged):
        assert [number for who, number in found if who == name] == list(range(count))


def test_a_fork_waits_for_what_another_thread_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork: Fork
) -> None:
    """Who asks for an operation first imports it; the child would wait for that for ever."""
    (tmp_path / "slow_to_enter.py").write_text("import time; time.sleep(0.3)")
    monkeypatch.syspath_prepend(tmp_path)

    def enter() -> str:
        return import_module("slow_to_enter").__name__

    with ThreadPoolExecutor(1) as threads:
        threads.submit(lazy_imports._import_module, "slow_to_enter")
        while "slow_to_enter" not in sys.modules:
            time.sleep(0.001)
        assert fork(enter).result(20) == "slow_to_enter"


FORKING = """
import os, sys
from store import Store
from store.errors import StoreForked

store = Store(sys.argv[1], timeout=60)
child = None
told, tell = os.pipe()
tried, go_on = os.pipe()

def work(steps):
    global child
    steps.session("s")
    child = os.fork()
    if child:
        os.read(tried, 1)
    steps.append("s", {"role": "user", "content": "child" if child == 0 else "parent"})

def refused(work):
    try:
        work()
    except StoreForked:
        return True

in_the_midst = refused(lambda: store.atomically(work))
if child == 0:
    os.write(go_on, b"x")
    assert in_the_midst and refused(lambda: store.messages("s")) and refused(lambda: Store(sys.argv[1]))
    store.close()
    with Store(":memory:") as other:
        other.create_session("s")
    assert os.read(told, 1)  # the parent is done: this process did not hold it up
    sys.exit(7)
os.write(tell, b"x")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
store.append("s", {"role": "user", "content": "parent, after"})
"""


@pytest.mark.slow
def test_an_operation_forked_in_its_midst_is_the_parents(path: Path) -> None:
    """In a child forked inside an operation the file is refused, other files are not.

    The parent goes on.
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING, path], cwd=ROOT, check=True)
    with Store(path) as store:
        assert contents(store) == ["parent", "parent, after"]


FORKED_IN_A_TRANSACTION = """
import os, sys
from sqlalchemy import text
from store import Store
from store.errors import StoreForked

store = Store(sys.argv[1], timeout=60)
try:
    with store.database.writing() as connection:
        connection.execute(text("UPDATE sessions SET title = 'parent'"))
        child = os.fork()
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
except StoreForked:
    assert child == 0
    assert not connection.closed
    sys.exit(7)
"""


@pytest.mark.slow
def test_a_child_leaves_the_parents_transaction_alone(path: Path) -> None:
    """A child forked in a transaction does not commit it, nor undo it by ending, nor close it.

    The parent commits it.
    """
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED_IN_A_TRANSACTION, path], cwd=ROOT, check=True
    )
    with Store(path) as store:
        assert store.session("s").title == "parent"


LATE_CHILD = """
import os, sys
from store import Store

store, private = Store(sys.argv[1]), Store(":memory:")
private.create_session("p")
store.append("s", {"role": "user", "content": "parent"})
told, tell = os.pipe()
if os.fork() == 0:
    os.read(told, 1)  # ends when the test has let the parent end
    sys.exit()
"""


@pytest.mark.slow
def test_a_childs_end_spares_what_came_after(path: Path, fork: Fork) -> None:
    """The connections that a child inherited stay unclosed for ever.

    Closing them would remove a later log by name.
    """
    going_on, go_on = os.pipe()
    code = LATE_CHILD.replace("told, tell = os.pipe()", f"told = {going_on}")
    command = [sys.executable, "-W", "ignore", "-c", f"{code}\nstore.close(), private.close()"]
    parent = subprocess.Popen(
        [*command, path], cwd=ROOT, pass_fds=[going_on], stdout=subprocess.PIPE
    )
    assert parent.wait() == 0

    def append_elsewhere() -> None:
        store = Store(path)
        store.append("s", said("acknowledged"))
        os.kill(os.getpid(), signal.SIGKILL)

    with suppress(AssertionError):
        fork(append_elsewhere).result()
    os.close(go_on)
    os.close(going_on)
    with closing(parent.stdout) as ended:
        assert ended is not None
        ended.read()  # the child has the pipe too
    with Store(path) as store:
        assert contents(store) == ["parent", "acknowledged"]


MEMORY_CHILD = """
import os, sys
from store import Store
store = Store(":memory:")
store.create_session("s")
if os.fork() == 0:
    store.append("s", {"role": "user", "content": "child"})
    store.close()
    sys.exit()
os.wait()
store.append("s", {"role": "user", "content": "parent"})
assert [each.message["content"] for each in store.messages("s")] == ["child", "parent"]
"""


@pytest.mark.slow
def test_a_childs_end_spares_the_parents_private_store() -> None:
    """A child may use, close and leave its parent's private store.

    The folder stays the parent's.
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", MEMORY_CHILD], cwd=ROOT, check=True)


# --- Waiting for others ---------------------------------------------------------------------------


def hold(path: Path, ready: int, *, stop: bool) -> None:
    """Write to a store, and stop (or wait) with the transaction open; commit when sent on."""
    with Store(path).database.writing() as connection:
        connection.execute(text("UPDATE sessions SET title = 'slow'"))
        os.write(ready, b"x")
        os.kill(os.getpid(), signal.SIGSTOP) if stop else signal.pause()


def held(fork: Fork, path: Path, *, stop: bool = True) -> Any:
    """Return a child that holds the store in a transaction."""
    ready, tell = os.pipe()
    child = fork(lambda: hold(path, tell, stop=stop))
    assert os.read(ready, 1)
    if stop:
        while not os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1]):
            pass
    os.close(ready)
    os.close(tell)
    return child


@pytest.mark.slow
def test_a_suspended_writer_is_named(path: Path, fork: Fork) -> None:
    """Others get StoreBusy with the holder's process at their deadline, can read, and go on when it
    does (C9).
    """
    child = held(fork, path)
    with Store(path, timeout=0.1) as store:
        for _ in range(3):
            with pytest.raises(StoreBusy, match=f"process {child.pid} held the store until"):
                store.append("s", said("too early"))
        assert contents(store) == []
        assert store.session("s").title is None
        child.send(signal.SIGCONT)
        child.result()
        store.append("s", said("after"))
        assert contents(store) == ["after"]
        assert store.session("s").title == "slow"


def test_another_programs_transaction_is_waited_for(path: Path) -> None:
    """A program that knows nothing of our queue is waited for by SQLite's own lock, to the same
    deadline.
    """
    other = sqlite3.connect(path, isolation_level=None)
    with closing(other), Store(path, timeout=0.2) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="another program"):
            store.append("s", said("too early"))
        other.execute("ROLLBACK")
        store.append("s", said("after"))
        assert contents(store) == ["after"]


def test_a_killed_writer_holds_nothing_up(path: Path, fork: Fork) -> None:
    """A kill in a transaction frees the queue at once and leaves nothing of the transaction."""
    held(fork, path, stop=False).end()
    with Store(path, timeout=60) as store:
        store.append("s", said("after"))
        assert store.session("s").title is None


def wait_for_ever() -> None:
    """Do nothing until killed."""
    while True:
        signal.pause()


@pytest.fixture
def in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork while a thread waits in line.

    A fork that waited for it longer would come after its end.
    """
    monkeypatch.setattr(fork_safety, "FORK_PATIENCE", 0.05)


@pytest.mark.usefixtures("in_line")
@pytest.mark.slow
def test_a_forked_bystander_keeps_no_place_in_the_queue(path: Path, fork: Fork) -> None:
    """A child forked while its parent waits in line does not hold the lock when the parent has
    given up.
    """
    holder = held(fork, path)
    with Store(path, timeout=0.3) as store:
        before = _thread._count()
        waiting = threading.Thread(target=suppressed, args=[store])
        waiting.start()
        while (
            waiting.is_alive() and _thread._count() < before + 2
        ):  # and the one that waits in line for it
            pass
        bystander = fork(wait_for_ever)
        waiting.join()
        holder.send(signal.SIGCONT)
        holder.result()
        with Store(path, timeout=60) as other:
            other.append("s", said("after"))
            assert contents(other) == ["after"]
    bystander.end()


def suppressed(store: Store) -> None:
    """Append in vain."""
    with suppress(StoreBusy):
        store.append("s", said("too early"))


def parent_of_a_bystander(path: Path, ready: int) -> None:
    """Wait in line in a thread, fork a child that lives on, and write until killed."""
    store = Store(path)

    def write() -> None:
        with store.database.writing() as connection:
            connection.execute(text("UPDATE sessions SET title = 'never'"))
            os.write(ready, b"x")
            threading.Event().wait()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    while _thread._count() < 2:  # the one that waits in line for it
        pass
    bystander = os.fork()
    if bystander == 0:
        wait_for_ever()
    os.write(ready, b"%07d" % bystander)
    writer.join()


@pytest.mark.usefixtures("in_line")
def test_a_bystander_does_not_inherit_the_lock(path: Path, fork: Fork) -> None:
    """A writer that was killed frees the queue even where a child forked while it waited in line
    lives on.
    """
    ready, tell = os.pipe()
    holder = held(fork, path)
    parent = fork(parent_of_a_bystander, path, tell)
    bystander = int(os.read(ready, 7))
    holder.send(signal.SIGCONT)
    holder.result()
    assert os.read(ready, 1) == b"x"
    try:
        parent.end()
        with Store(path, timeout=60) as store:
            store.append("s", said("after"))
            assert contents(store) == ["after"]
            assert store.session("s").title == "slow"
    finally:
        os.kill(bystander, signal.SIGKILL)
        os.close(ready)
        os.close(tell)


@pytest.mark.slow
def test_a_purge_waits_for_nobody_long(path: Path) -> None:
    """Emptying the log is done if it can be at once.

    Else it is told, not waited for, and no error.
    """
    with Store(path, timeout=0.2) as store, Store(path) as other:
        store.append("s", said("x"))
        with other.database.writing() as connection:
            connection.execute(text("UPDATE sessions SET title = 'busy'"))
            assert not store.purge()
        with other.database.reading() as connection:
            connection.execute(text("SELECT * FROM messages")).fetchone()
            store.append("s", said("y"))
            assert not store.purge()
        assert store.purge()
        assert Path(f"{path}-wal").stat().st_size == 0


def test_what_a_server_refuses_is_no_lost_connection(url: str) -> None:
    """Though its connection is closed at once, since enough others are kept."""
    asked, refused = (Statement(text(sql)) for sql in ("SELECT 1", "SELECT nothing"))

    def ask() -> None:
        with store.database.reading() as connection:
            assert asked.value(connection) == 1
            with suppress(StoreError), ExitStack() as stack:
                others = [stack.enter_context(store.database.reading()) for _ in range(16)]
                assert [asked.value(each) for each in others] == [1] * 16
                raise StoreError("all of them are given back")
            refused.value(connection)

    with Store(url) as store:
        if store.database.path:
            pytest.skip("a file keeps no connections beside those that are lent")
        with pytest.raises(StoreError, match="nothing") as told:
            ask()
        assert type(told.value) is StoreError
