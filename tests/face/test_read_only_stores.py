"""Stores that are opened to be read only: each read answers as ever, and nothing is written."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Child, Run
from face.test_two_owners import NOW, READS, WRITES

from store import AsyncStore, NotAStore, ReadOnly, Store, StoreError
from store.inspection import sql_console

NOBODY = 65534
Fork = Callable[..., Child]


def fill(store: Any) -> None:
    """Make a session with calls, a compaction, a fork, a note, a usage and a draft."""
    store.create_session("s", now=NOW)
    for number in range(6):
        call = {"id": f"c{number}", "type": "function"}
        call["function"] = {"name": "Read", "arguments": '{"file_path": "/p/a.py"}'}  # type: ignore[assignment]
        said = [
            {"role": "user", "content": f"question {number}", "id": f"q{number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "line of a file\n" * 9},
            {"role": "assistant", "content": f"answer {number}"},
        ]
        store.append("s", said, now=NOW)
    store.hide("s", 1, 4, "A summary.", now=NOW)
    store.fork("s", at=9, session_id="f", now=NOW)
    store.annotate("s", 2, "rating", 5, now=NOW)
    store.record_usage("s", input=9, output=1, model="gpt-5", now=NOW)
    store.rewind("f", 5, now=NOW)
    try:
        with store.streaming("s", {"role": "assistant", "content": "half"}):
            raise KeyError
    except KeyError:
        pass
    store.index()


def read_all(store: Any) -> dict[str, list[str]]:
    """Return the answers of every reading operation, as texts; counters tell of one opening."""
    return {
        f"{name} {session}": [_ask(read, store, session) for read in reads]
        for name, reads in READS.items()
        if name != "metrics"
        for session in ("s", "f")
    }


def _ask(read: Any, store: Any, session: str) -> str:
    try:
        return repr(read(store, session))
    except StoreError as error:
        return f"{type(error).__name__}: {error}"


def read_folder(folder: Path) -> dict[str, object]:
    """Return all that a folder holds, with the moments of its files."""
    return {
        each.name: (hashlib.sha256(each.read_bytes()).hexdigest(), each.stat().st_mtime_ns)
        for each in sorted(folder.iterdir())
    } | {".": folder.stat().st_mtime_ns}


def test_every_read_answers_as_ever(url: str) -> None:
    """On a file and on a server; every write is refused, and changes nothing."""
    with Store(url) as store:
        fill(store)
        told = read_all(store)
    with Store(url, read_only=True) as store:
        assert read_all(store) == told
        for name, writes in WRITES.items():
            if name in ("index", "prune", "delete_owner"):
                continue
            for write in writes:
                assert _is_refused(write, store, name), name
        for refused in (store.purge, lambda: store.index(anew=True)):
            assert not _try_to(refused)
        assert store.count_tokens("s").messages == 24
        assert store.index().waiting == 0
        assert store.verify() == []
    for read_only in (True, False):
        with Store(url, read_only=read_only) as store:
            assert read_all(store) == told


def _is_refused(write: Any, store: Any, name: str) -> bool:
    try:
        write(store, "s")
    except ReadOnly as error:
        return "read only" in str(error)
    except StoreError:
        return name in ("switch", "undo_rewind")  # nothing to undo, or to go to
    return name in ("count_tokens", "create_session", "compact", "compact_if_needed", "switch")


def _try_to(work: Callable[[], object]) -> bool:
    try:
        return bool(work())
    except ReadOnly:
        return False


@pytest.fixture
def place(made_file: Path) -> Iterator[Path]:
    """Give a filled store in a folder that every user can come to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        path = Path(name, "chat.db")
        path.write_bytes(made_file.read_bytes())
        with Store(path) as store:
            fill(store)
        yield path


def read_as_nobody(path: Path) -> dict[str, list[str]]:
    """Read it all as a user who may not write."""
    os.setgroups([])
    os.setuid(NOBODY)
    with Store(path, read_only=True) as store:
        return read_all(store)


@pytest.mark.sqlite_only
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_a_file_that_may_only_be_read_is_read(place: Path, fork: Fork) -> None:
    """Of mode 0444, in a folder of 0555; not a byte of the folder changes."""
    with Store(place) as store:
        told = read_all(store)
    place.chmod(0o444)
    place.parent.chmod(0o555)
    before = read_folder(place.parent)
    assert fork(read_as_nobody, place).result() == told
    assert read_folder(place.parent) == before


@pytest.mark.sqlite_only
def test_nothing_is_written_beside_a_file(place: Path) -> None:
    """Even where it could be."""
    before = read_folder(place.parent)
    with Store(place, read_only=True) as store:
        read_all(store)
    assert read_folder(place.parent) == before


@pytest.mark.sqlite_only
def test_what_others_write_is_read(place: Path) -> None:
    """While they write, and after they have ended."""
    with Store(place, read_only=True) as reader:
        assert len(reader.messages("s")) == 24
        for number in range(3):
            with Store(place) as writer:
                writer.append("s", {"role": "user", "content": "news"}, now=NOW)
                assert len(reader.messages("s")) == 25 + 2 * number
                writer.append("s", {"role": "user", "content": "more"}, now=NOW)
                assert len(reader.messages("s")) == 26 + 2 * number
            assert len(reader.view("s").messages) == 26 + 2 * number - 3
            assert reader.verify() == []


@pytest.mark.sqlite_only
def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    """Nor is an empty one taken for a store."""
    missing = tmp_path / "missing.db"
    with pytest.raises(NotAStore, match="there is no file"):
        Store(missing, read_only=True)
    assert list(tmp_path.iterdir()) == []
    missing.touch()
    with pytest.raises(NotAStore, match="empty"):
        Store(missing, read_only=True)


async def append_to(path: Path) -> None:
    """Write, awaited."""
    async with AsyncStore(path, read_only=True) as store:
        assert (await store.session("s")).head == 24
        await store.append("s", {"role": "user", "content": "never"})


@pytest.mark.sqlite_only
def test_an_awaited_store_is_read_only_too(place: Path) -> None:
    """Its writes are refused alike."""
    with pytest.raises(ReadOnly, match="nothing was written"):
        asyncio.run(append_to(place))


ASKED = (["sessions", "--json"], ["show", "s"], ["search", "question"], ["verify"], ["stats"])


def ask_as_nobody(path: Path, run: Run) -> list[Any]:
    """Use the command as a user who may not write."""
    os.setgroups([])
    os.setuid(NOBODY)
    return [
        *(run("--db", path, *each)[:2] for each in ASKED),
        run("--db", path, "append", "s", "x"),
    ]


@pytest.mark.sqlite_only
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_the_command_reads_what_may_only_be_read(
    place: Path, fork: Fork, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It notices by itself; a write ends with status 2 and one line."""
    told = [run("--db", place, *each)[:2] for each in ASKED]
    place.chmod(0o444)
    place.parent.chmod(0o555)
    monkeypatch.chdir(place.parent)
    *reads, wrote = fork(ask_as_nobody, place, run).result()
    assert reads == told
    assert wrote.status == 2
    assert "read only" in wrote.err


@pytest.mark.sqlite_only
def test_sql_writes_nothing_beside_such_a_file(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its child process opens the file in the same way."""
    before = read_folder(place.parent)
    monkeypatch.setattr(sql_console, "is_write_protected", lambda _: True)
    assert sql_console.query(place, "SELECT COUNT(*) FROM messages").rows == [(24,)]
    assert read_folder(place.parent) == before
