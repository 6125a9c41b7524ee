"""Files, folders and file systems that may be read and not written."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Child

from store import Store, StoreError
from store.inspection import doctor

Fork = Callable[..., Child]

pytestmark = [
    pytest.mark.sqlite_only,
    pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root"),
]

NOBODY = 65534
OWN_MOUNTS = 0x00020000
"""CLONE_NEWNS: what is mounted from now on is seen by this process alone."""
Outcome = dict[str, str]


@pytest.fixture
def place(made_file: Path) -> Iterator[Path]:
    """Give a file with a session, in a folder that every user can come to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        path = Path(name, "chat.db")
        path.write_bytes(made_file.read_bytes())
        with Store(path) as store:
            store.create_session("s")
            store.append("s", {"role": "user", "content": "hello"})
        yield path


def attempts(path: Path) -> Outcome:
    """Return what comes of reading and writing, and what `doctor` says of rights."""
    tried = {
        "read": lambda store: len(store.view("s").messages),
        "append": lambda store: store.append("s", {"role": "user", "content": "never"}),
        "delete": lambda store: store.delete_session("s"),
        "backup": lambda store: store.backup(path.with_name("copy.db")),
    }
    found = {name: attempt(path, work) for name, work in tried.items()}
    rights = next(each for each in doctor(path) if each.about == "rights")
    return found | {"rights": f"{rights.state}: {rights.found}"}


def attempt(path: Path, work: Callable[[Store], Any]) -> str:
    """Return what an operation says; an error is to be one of ours."""
    try:
        with Store(path, timeout=5) as store:
            return f"{work(store)}"
    except StoreError as error:
        return f"{type(error).__name__}: {error}"


def as_nobody(path: Path) -> Outcome:
    """Try it as a user without rights."""
    os.setgroups([])
    os.setuid(NOBODY)
    return attempts(path)


def refused(outcome: Outcome, *names: str) -> bool:
    """Tell whether operations were refused, each with a word about rights."""
    said = [outcome[name] for name in names]
    return all(each.startswith("ReadOnly: ") and "permissions" in each for each in said)


WRITING = ("append", "delete", "backup")


@pytest.mark.parametrize("folder", [0o555, 0o755])
def test_a_file_that_lies_still_cannot_be_read_where_nothing_can_be_written(
    place: Path, fork: Fork, folder: int
) -> None:
    """SQLite would have to make an index beside it; the error says so, and so does `doctor`."""
    place.chmod(0o444)
    place.parent.chmod(folder)
    found = fork(as_nobody, place).result()
    assert refused(found, "read", *WRITING), found
    assert found["rights"].startswith(f"advice: {place} and {place.parent} and {place}-lock cannot")


def test_one_that_is_in_use_can_be_read_by_others(place: Path, fork: Fork) -> None:
    """Its log and index are there; whoever may only read is refused to write, and changes nothing."""
    with Store(place) as store:
        store.append("s", {"role": "user", "content": "in the log"})
        for each in place.parent.iterdir():
            each.chmod(0o644)
        found = fork(as_nobody, place).result()
        assert found["read"] == "2"
        assert refused(found, *WRITING), found
        assert [each.message["content"] for each in store.messages("s")] == ["hello", "in the log"]
        assert store.verify() == []


def after_a_moment_of_reading(path: Path) -> Outcome:
    """Read a store while its file is read-only, then try it when the file may be written again."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    path.chmod(0o400)
    with Store(path) as store:
        store.sessions()
    path.chmod(0o600)
    return attempts(path)


def test_the_file_beside_a_store_that_stayed_read_only_is_named(place: Path, fork: Fork) -> None:
    """SQLite made it with the mode that the store had at that moment."""
    for each in (place.parent, *place.parent.iterdir()):
        os.chown(each, NOBODY, NOBODY)
    found = fork(after_a_moment_of_reading, place).result()
    index = f"{place}-shm"
    assert found["read"] == "1"
    assert refused(found, *WRITING), found
    assert all(index in found[name] and f"{place} " not in found[name] for name in WRITING), found
    assert found["rights"].startswith(f"advice: {index} ") or f" {index} " in found["rights"], found


def leave_a_log(path: Path) -> None:
    """Let a process write and die."""
    process = os.fork()
    if process == 0:
        store = Store(path)
        store.append("s", {"role": "user", "content": "in the log"})
        os._exit(0)
    os.waitpid(process, 0)


def mounted_for_reading(path: Path, killed: bool) -> Outcome:
    """Try it on a file system that is mounted for reading only."""
    if ctypes.CDLL(None).unshare(OWN_MOUNTS) != 0:
        return {}
    folder = path.with_name("mounted")
    folder.mkdir()
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", folder], check=True)
    there = folder / "chat.db"
    there.write_bytes(path.read_bytes())
    if killed:
        leave_a_log(there)
    subprocess.run(["mount", "-o", "remount,ro", folder], check=False)
    return attempts(there)


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_system_that_is_mounted_for_reading(place: Path, fork: Fork, killed: bool) -> None:
    """It can be read where a killed process left its log and index, never written."""
    found = fork(mounted_for_reading, place, killed).result()
    if not found or found["rights"].startswith("fine"):
        pytest.skip("nothing can be mounted here")
    assert refused(found, *WRITING), found
    assert found["read"] == "2" if killed else refused(found, "read")
