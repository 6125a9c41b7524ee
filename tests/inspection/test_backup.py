"""Copies of a store: whole, private, checked, remembered, and put back."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Run

from store import AsyncStore, Store, StoreError, inspection
from store.database import SCHEMA_HEAD, block_writers
from store.database.writer_queue import QueuePlace, WriterQueue
from store.errors import InvalidValue, NotAStore, SchemaTooNew, StoreBusy, StoreFull
from store.inspection import copies

Fork = Callable[..., Any]

pytestmark = pytest.mark.sqlite_only


def said(content: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content}


def contents(path: Path, session_id: str = "s") -> list[Any]:
    """Return what the messages of a session of a closed store say."""
    with Store(path) as opened:
        return [each.message["content"] for each in opened.messages(session_id)]


def names(folder: Path) -> set[str]:
    """Return the names of the files of a folder."""
    return {each.name for each in folder.iterdir()}


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """Give an open store with three messages in its session "s"."""
    with Store(path, timeout=60) as opened:
        opened.create_session("s")
        opened.append("s", [said(number) for number in range(3)])
        yield opened


# --- Making a copy --------------------------------------------------------------------------------


def test_a_copy_is_the_store(store: Store, tmp_path: Path) -> None:
    """What the store says, its copy says: and each knows that there is one."""
    made = store.backup(tmp_path / "copy.db", now=10**12 + 5)
    assert (made.path, made.kind, made.made_at) == (str(tmp_path / "copy.db"), "backup", 10**12 + 5)
    assert store.copies() == [made]
    store.append("s", said("later"))
    with Store(tmp_path / "copy.db") as copied:
        assert [each.message for each in copied.messages("s")] == [said(n) for n in range(3)]
        assert copied.view("s", now=10**12, at=3) == store.view("s", now=10**12, at=3)
        assert [each.path for each in copied.copies()] == [made.path]
        assert copied.verify() == []


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_copy_is_private(store: Store, tmp_path: Path, mask: int) -> None:
    """Its owner alone may read it, whatever the process allows others by default."""
    before = os.umask(mask)
    try:
        store.backup(tmp_path / "copy.db")
    finally:
        os.umask(before)
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == {"copy.db", *(f"chat.db{e}" for e in ("", "-wal", "-shm", "-lock"))}


@pytest.mark.slow
def test_copies_under_writers(path: Path, tmp_path: Path, fork: Fork) -> None:
    """Each copy is one state, with all that was acknowledged before it was asked for (C7)."""
    with Store(path) as opened:
        opened.create_session("s")
    told, tell = os.pipe()

    def write() -> None:
        with Store(path) as writing:
            for number in range(10_000):
                writing.append("s", said(number))
                os.write(tell, b"%010d" % number)

    writers = [fork(write) for _ in range(2)]
    with Store(path) as opened:
        for number in range(6):
            acknowledged = len(os.read(told, 1_000_000)) // 10
            before = opened.session("s").head
            assert before >= acknowledged
            opened.backup(tmp_path / f"{number}.db")
            found = contents(tmp_path / f"{number}.db")
            assert len(found) >= before
            counts = [found.count(each) for each in range(max(found) + 1)]
            assert counts == sorted(counts, reverse=True)
            assert {*counts} <= {1, 2}
    for each in writers:
        each.end()


def test_a_copy_holds_no_freed_bytes(store: Store, tmp_path: Path) -> None:
    """What was erased but not purged yet is not taken along."""
    store.create_session("secret")
    store.append("secret", [said("SECRET" * 900) for _ in range(20)])
    assert store.delete_session("secret")[0].purged is False
    store.backup(tmp_path / "copy.db")
    assert b"SECRETSECRET" not in (tmp_path / "copy.db").read_bytes()


@pytest.mark.parametrize("name", ["chat.db", "link.db", "chat.db-wal", "chat.db-lock"])
def test_a_copy_is_never_written_over_the_store(store: Store, tmp_path: Path, name: str) -> None:
    """Neither over its file, by whatever name, nor over what lies beside it."""
    (tmp_path / "link.db").symlink_to("chat.db")
    for replace in (False, True):
        with pytest.raises(InvalidValue, match=r"name another file|choose a name"):
            store.backup(tmp_path / name, replace=replace)
    store.append("s", said("still here"))
    assert store.copies() == []


def test_an_existing_file_is_replaced_only_when_told(store: Store, tmp_path: Path) -> None:
    """Another copy of the name takes the first one's place in the list too."""
    store.backup(tmp_path / "copy.db")
    store.append("s", said("later"))
    with pytest.raises(StoreError, match="exists already"):
        store.backup(tmp_path / "copy.db")
    assert len(contents(tmp_path / "copy.db")) == 3
    made = store.backup(tmp_path / "copy.db", replace=True)
    assert store.copies() == [made]
    assert len(contents(tmp_path / "copy.db")) == 4


def test_a_file_in_use_is_never_replaced(store: Store, tmp_path: Path) -> None:
    """Another store at work stays, whatever is said."""
    with Store(tmp_path / "other.db") as other:
        other.create_session("theirs")
        with pytest.raises(StoreBusy, match="in use"):
            store.backup(tmp_path / "other.db", replace=True)
        assert other.session("theirs").id == "theirs"
    assert store.copies() == []
    assert {"other.db.part", "other.db-wal"}.isdisjoint(names(tmp_path))


def test_a_full_disk_leaves_no_copy(store: Store, tmp_path: Path, fork: Fork) -> None:
    """A copy that finds no room is not there at all, nor in the list."""
    store.append("s", [said("x" * 10_000) for _ in range(50)])
    store.purge()

    def copy() -> list[str]:
        with Store(tmp_path / "chat.db") as opened:
            opened.session("s")
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
            with pytest.raises(StoreFull):
                opened.backup(tmp_path / "copy.db")
            return [each.path for each in opened.copies()]

    assert fork(copy).result() == []
    assert [each for each in names(tmp_path) if each.startswith("copy")] == []


def test_a_copy_is_made_though_nothing_can_be_removed_beside_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its name by then; what the disk keeps of its making is no error of the copy."""

    def failing(self: Path, **_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", failing)
        assert store.backup(tmp_path / "copy.db").number == 1
    assert contents(tmp_path / "copy.db") == [0, 1, 2]


def test_a_damaged_store_gives_no_copy(path: Path, tmp_path: Path) -> None:
    """A copy that does not pass its check is not kept, and the error says what is wrong."""
    with Store(path) as opened:
        opened.create_session("s")
        opened.append("s", said("the truth"))
    path.write_bytes(path.read_bytes().replace(b"the truth", b"not truth"))
    with Store(path) as opened:
        with pytest.raises(StoreError, match=r"1 findings.*is not what was stored"):
            opened.backup(tmp_path / "copy.db")
        assert opened.copies() == []
    assert names(tmp_path) == {"chat.db", "chat.db-lock"}


def test_a_killed_copy_is_told_from_a_whole_one(
    store: Store, tmp_path: Path, fork: Fork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under its name there is a whole copy or none; what is left of it is named, and removed."""
    monkeypatch.setattr(copies, "check", lambda _: os.kill(os.getpid(), 9))
    with pytest.raises(AssertionError, match="was killed"):
        fork(lambda: Store(tmp_path / "chat.db").backup(tmp_path / "copy.db")).result()
    assert "copy.db" not in names(tmp_path)
    assert [(each.path, each.size) for each in store.copies()] == [
        (str(tmp_path / "copy.db"), None)
    ]
    with pytest.raises(StoreError, match="was cut off; if so, remove"):
        store.backup(tmp_path / "copy.db")


def test_a_copy_is_on_the_disk_before_it_has_its_name(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a power cut leaves none that is not whole; its name is on the disk when it is told of."""
    flushed: list[tuple[os.stat_result, set[str]]] = []
    flush = os.fsync

    def noting(file: int) -> None:
        flushed.append((os.fstat(file), names(tmp_path)))
        flush(file)

    monkeypatch.setattr(os, "fsync", noting)
    store.backup(tmp_path / "copy.db")
    made = (tmp_path / "copy.db").stat()
    first, there = flushed[0]
    assert (first.st_ino, first.st_size) == (made.st_ino, made.st_size)
    assert "copy.db" not in there
    last, there = flushed[-1]
    assert last.st_ino == tmp_path.stat().st_ino
    assert "copy.db" in there


def test_a_name_that_is_taken_meanwhile_is_left_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may put a file there while the copy is written and checked."""
    taken = tmp_path / "copy.db"
    flush = os.fsync

    def taking(file: int) -> None:
        taken.write_text("another's")
        flush(file)

    monkeypatch.setattr(os, "fsync", taking)
    with pytest.raises(StoreError, match="exists already"):
        store.backup(taken)
    assert taken.read_text() == "another's"
    assert store.copies() == []


async def copied(path: Path, target: Path) -> str:
    """Copy a store by the awaited face."""
    async with AsyncStore(path) as opened:
        return (await opened.backup(target)).path


def test_awaited_copies(path: Path, tmp_path: Path) -> None:
    """Both faces copy."""
    assert asyncio.run(copied(path, tmp_path / "copy.db")) == str(tmp_path / "copy.db")


# --- Copies and erasures --------------------------------------------------------------------------


def test_an_erasure_names_the_copies_that_hold_its_bytes(store: Store, tmp_path: Path) -> None:
    """Those made before it, and no later ones; whatever the clock said meanwhile."""
    store.backup(tmp_path / "one.db", now=10**15)
    store.create_session("t")
    (erased,) = store.delete_session("s", now=10**12 + 5)
    assert erased.copies == (str(tmp_path / "one.db"),)
    store.backup(tmp_path / "two.db", now=10**12 + 1)
    assert [each.copies for each in store.erasures()] == [erased.copies]
    assert len(store.delete_session("t", now=10**12 + 2)[0].copies) == 2


def test_copies_that_hold_erased_bytes_can_be_removed(store: Store, tmp_path: Path) -> None:
    """They go with the list's line; later ones stay, and get no number that was used before."""
    store.backup(tmp_path / "old.db")
    store.delete_session("s")
    assert inspection.remove_copies(store.database) == ((str(tmp_path / "old.db"),), ())
    assert not (tmp_path / "old.db").exists()
    assert store.copies() == []
    store.backup(tmp_path / "new.db")
    assert [each.copies for each in store.erasures()] == [()]
    assert inspection.remove_copies(store.database) == ((), ())
    assert (tmp_path / "new.db").exists()


def test_a_copy_that_became_a_store_is_left(store: Store, tmp_path: Path) -> None:
    """A file that changed since is somebody's own; one in a folder out of reach may come back."""
    (tmp_path / "disk").mkdir()
    for name in ("mine.db", "gone.db", "disk/away.db"):
        store.backup(tmp_path / name)
    with Store(tmp_path / "mine.db") as mine:
        mine.append("s", said("mine"))
    (tmp_path / "gone.db").unlink()
    shutil.rmtree(tmp_path / "disk")
    store.delete_session("s")
    left = (str(tmp_path / "mine.db"), str(tmp_path / "disk/away.db"))
    assert inspection.remove_copies(store.database) == ((str(tmp_path / "gone.db"),), left)
    assert contents(tmp_path / "mine.db")[-1] == "mine"
    assert tuple(each.path for each in store.copies()) == left


# --- Putting a copy back --------------------------------------------------------------------------


@pytest.fixture
def saved(path: Path, tmp_path: Path) -> Path:
    """Give a copy of a closed store that went on since: "s" was erased, "later" is new."""
    with Store(path) as opened:
        opened.create_session("s")
        opened.append("s", said("then"))
        opened.backup(tmp_path / "copy.db")
        opened.delete_session("s")
        opened.create_session("later")
        opened.backup(tmp_path / "second.db")
    return tmp_path / "copy.db"


def test_a_restored_store_is_the_copy(saved: Path, path: Path, tmp_path: Path) -> None:
    """It says what the copy says, knows every copy there is, and what came back with it."""
    before = saved.read_bytes()
    done = inspection.restore(saved, path, replace=True)
    assert done == (str(path), SCHEMA_HEAD, ("s",), ())
    assert saved.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600
    with Store(path) as opened:
        assert [each.id for each in opened.sessions()] == ["s"]
        assert {each.path for each in opened.copies()} == {str(saved), str(tmp_path / "second.db")}
        assert len(opened.delete_session("s")[0].copies) == 2
        assert opened.verify() == []
    assert {each for each in names(tmp_path) if "part" in each} == set()


def mode(path: Path) -> str:
    """Return how a file is written to."""
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("PRAGMA journal_mode").fetchone()
    return str(found)


def test_a_restored_store_is_written_ahead(saved: Path, path: Path) -> None:
    """As any other: nobody who reads holds up who writes. To read a copy changes nothing of it."""
    before = saved.read_bytes()
    assert contents(saved) == ["then"]
    assert (saved.read_bytes(), mode(saved)) == (before, "delete")
    inspection.restore(saved, path, replace=True)
    with Store(path, timeout=0.5) as opened, opened.database.reading() as reader:
        opened.append("s", said("first"))
        reader.exec_driver_sql("SELECT count(*) FROM messages").all()
        opened.append("s", said("beside a reader"))
    assert mode(path) == "wal"


def test_a_reader_of_a_copy_is_waited_for_once(saved: Path) -> None:
    """Where the file cannot be switched now, it is with a later write."""
    with Store(saved, timeout=0.2) as opened:
        with opened.database.reading() as reader:
            reader.exec_driver_sql("SELECT count(*) FROM messages").all()
            with pytest.raises(StoreBusy):
                opened.append("s", said("never"))
        assert mode(saved) == "delete"
        opened.append("s", said("now"))
    assert (mode(saved), contents(saved)) == ("wal", ["then", "now"])


@pytest.mark.slow
def test_who_opens_what_is_being_replaced_waits(saved: Path, path: Path) -> None:
    """A writer of the old file would leave a log beside the new one."""
    with block_writers(path), Store(path, timeout=0.1) as opened, pytest.raises(StoreBusy):
        opened.create_session("between")
    with closing(QueuePlace(WriterQueue(f"{path}-lock", 1))) as place:
        place.take()
        with pytest.raises(StoreBusy, match="held"):
            inspection.restore(saved, path, replace=True)
    inspection.restore(saved, path, replace=True)


def test_a_copy_is_restored_where_nothing_is(saved: Path, tmp_path: Path) -> None:
    """A lost store comes back from its copy alone."""
    inspection.restore(saved, tmp_path / "new.db")
    assert contents(tmp_path / "new.db") == ["then"]


def test_restoring_replaces_nothing_unless_told(saved: Path, path: Path) -> None:
    """The store that is there stays."""
    with pytest.raises(StoreError, match="exists already"):
        inspection.restore(saved, path)
    with Store(path) as opened:
        assert [each.id for each in opened.sessions()] == ["later"]


@pytest.mark.slow
def test_a_store_in_use_is_never_replaced(saved: Path, path: Path, fork: Fork) -> None:
    """Neither one that this process has open, nor one that another has."""
    with Store(path), pytest.raises(StoreBusy, match="close the programs that have it open"):
        inspection.restore(saved, path, replace=True)
    told, tell = os.pipe()
    wait, go = os.pipe()

    def hold() -> None:
        with Store(path):
            os.write(tell, b"x")
            os.read(wait, 1)

    holder = fork(hold)
    os.read(told, 1)
    with pytest.raises(StoreBusy):
        inspection.restore(saved, path, replace=True)
    os.write(go, b"x")
    holder.result()
    inspection.restore(saved, path, replace=True)
    assert contents(path) == ["then"]


@pytest.mark.slow
def test_a_stale_log_brings_nothing_back(saved: Path, path: Path, fork: Fork) -> None:
    """What a killed writer left beside the store does not get into the restored one."""

    def die() -> None:
        store = Store(path)
        store.create_session("stale")
        os.kill(os.getpid(), 9)

    with pytest.raises(AssertionError, match="was killed"):
        fork(die).result()
    assert path.with_name("chat.db-wal").stat().st_size
    inspection.restore(saved, path, replace=True)
    with Store(path) as opened:
        assert [each.id for each in opened.sessions()] == ["s"]


@pytest.mark.parametrize("content", [b"\0", b"no database "], ids=["zeros", "text"])
def test_a_destroyed_store_is_replaced(saved: Path, path: Path, content: bytes) -> None:
    """A store that cannot be read any more gives way, with what lies beside it."""
    path.write_bytes(content * 5000)
    beside = [path.with_name(f"chat.db-{name}") for name in ("wal", "shm", "journal")]
    for each in beside:
        each.write_bytes(b"\1" * 5000)
    inspection.restore(saved, path, replace=True)
    assert not any(each.exists() for each in beside)
    assert contents(path) == ["then"]


def test_a_damaged_copy_is_not_restored(saved: Path, path: Path) -> None:
    """It is checked before anything is touched."""
    saved.write_bytes(saved.read_bytes().replace(b"then", b"thus"))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="does not pass its check"):
        inspection.restore(saved, path, replace=True)
    assert path.read_bytes() == before
    assert {each for each in names(path.parent) if "part" in each} == set()


@pytest.mark.parametrize(
    ("content", "error"), [(b"", NotAStore), (b"Dear diary", NotAStore), (None, StoreError)]
)
def test_what_is_no_copy_is_not_restored(
    path: Path, tmp_path: Path, content: bytes | None, error: type[StoreError]
) -> None:
    """An empty file, a text and nothing at all are refused."""
    if content is not None:
        (tmp_path / "copy.db").write_bytes(content)
    with pytest.raises(error):
        inspection.restore(tmp_path / "copy.db", path, replace=True)
    assert contents_of_sessions(path) == []


def contents_of_sessions(path: Path) -> list[str]:
    """Return the ids of a closed store's sessions."""
    with Store(path) as opened:
        return [each.id for each in opened.sessions()]


def test_a_newer_copy_is_not_restored(saved: Path, path: Path) -> None:
    """What a newer release made is for that release."""
    with closing(sqlite3.connect(saved)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaTooNew):
        inspection.restore(saved, path, replace=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("revision", ["0001", "0002"])
@pytest.mark.slow
def test_an_older_copy_is_restored_as_it_is(path: Path, tmp_path: Path, revision: str) -> None:
    """So is the way back to an older release: its schema stays until it is opened (M3)."""
    saved = Path(shutil.copy(ROOT / "tests" / "databases" / f"{revision}.db", tmp_path / "old.db"))
    assert inspection.restore(saved, path, replace=True).schema == revision
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM alembic_version").fetchall() == [(revision,)]
    assert "saved" in contents_of_sessions(path)


# --- On the command line --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_commands(store: Store, tmp_path: Path, run: Run) -> None:
    """Copy, copy again, restore elsewhere."""
    made = run("--db", "chat.db", "backup", "copy.db")
    assert (made.status, made.err) == (0, "")
    assert made.out.endswith("bytes, checked\n")
    assert run("--db", "chat.db", "backup", "copy.db").status == 2
    assert '"number": 2' in run("--db", "chat.db", "backup", "copy.db", "--force", "--json").out
    assert run("--db", "chat.db", "restore", "copy.db").status == 2
    assert "in use" in run("--db", "chat.db", "restore", "copy.db", "--force").err
    done = run("--db", "new.db", "restore", "copy.db")
    assert (done.status, contents(tmp_path / "new.db")) == (0, [0, 1, 2])
    assert run("--db", "nothing.db", "backup", "x.db").status == 2


def test_a_server_has_its_own_program_for_copies(run: Run) -> None:
    """The command names it."""
    pytest.importorskip("psycopg", reason="needs the driver of PostgreSQL: convostore[postgres]")
    assert "pg_dump" in run("--db", "postgresql://nowhere/x", "backup", "x.db").err


def test_a_session_that_comes_back_is_told(saved: Path, tmp_path: Path, run: Run) -> None:
    """Who erased it wants it erased again."""
    done = run("--db", "chat.db", "restore", "copy.db", "--force")
    assert "session s was erased since, and is back" in done.out
