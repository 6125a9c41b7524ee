"""Advice: what may threaten a store is found, told in plain words, and changes nothing."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from conftest import ROOT, Run

from store import InvalidValue, NotAStore, Store, StoreError, inspection
from store.inspection import advice
from store.inspection.advice import Condition

FINE = [
    "sqlite",
    "file system",
    "links",
    "modes",
    "rights",
    "log",
    "room",
    "schema",
    "purge",
    "copies",
]


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """Give an open store."""
    with Store(path, timeout=60) as opened:
        opened.create_session("s")
        yield opened


def troubles(path: Path) -> dict[str, Condition]:
    """Return what is not fine, by what it is about."""
    return {each.about: each for each in inspection.doctor(path) if each.state != "fine"}


@pytest.mark.sqlite_only
def test_a_sound_store_needs_no_advice(store: Store, path: Path) -> None:
    """Everything is looked at, and is fine."""
    found = inspection.doctor(path)
    assert [each.about for each in found] == FINE
    assert {each.state for each in found} == {"fine"}


@pytest.mark.parametrize(
    ("version", "flawed"),
    [
        *(((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 44, 5), True)),
        *(((3, 44, 6), False), ((3, 45, 0), True), ((3, 50, 6), True), ((3, 50, 7), False)),
        *(((3, 51, 2), True), ((3, 51, 3), False), ((3, 54, 0), False)),
    ],
)
def test_versions_with_the_flaw_of_the_log(version: tuple[int, ...], flawed: bool) -> None:
    """From 3.7.0 to 3.51.2, but for the lines in which it was mended."""
    assert advice.has_log_flaw(version) is flawed


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local\\040disk xfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/a.db", "ext4"), ("/home/a.db", "nfs4"), ("/home/local disk/x/a.db", "xfs")],
)
def test_the_deepest_mount_counts(path: str, kind: str) -> None:
    """A local disk may be mounted inside of a network file system, and the other way round."""
    assert advice.find_file_system(Path(path), MOUNTS) == kind
    assert advice.find_file_system(Path(path), "") == ""


@pytest.mark.sqlite_only
def test_a_network_file_system(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Locks do not hold there."""
    (tmp_path / "mounts").write_text("server:/ / nfs4 rw 0 0\n")
    monkeypatch.setattr(advice, "MOUNTS_FILE", tmp_path / "mounts")
    assert troubles(path)["file system"].advice.startswith("move the store to a local disk")


@pytest.mark.sqlite_only
def test_a_file_with_two_names(store: Store, path: Path) -> None:
    """The store refuses it, and the doctor says why before it is asked."""
    store.close()
    os.link(path, path.with_name("other.db"))
    found = troubles(path)
    assert found["links"].state == "unusable"
    assert "2 names" in found["links"].found
    assert found["store"].state == "unusable"


@pytest.mark.sqlite_only
def test_files_that_others_may_read(store: Store, path: Path) -> None:
    """All of the four are looked at."""
    path.chmod(0o644)
    path.with_name("chat.db-wal").chmod(0o660)
    assert "use chat.db, chat.db-wal" in troubles(path)["modes"].found


@pytest.mark.sqlite_only
def test_a_long_log(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads and does not end."""
    monkeypatch.setattr(advice, "LARGE_LOG", 1000)
    assert "does not end" in troubles(path)["log"].found


@pytest.mark.sqlite_only
def test_a_disk_that_is_nearly_full(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge writes the file anew."""
    usage = (10**9, 10**9 - 1000, 1000)
    named = type(advice.shutil.disk_usage("/"))(*usage)
    monkeypatch.setattr(advice.shutil, "disk_usage", lambda _: named)
    assert troubles(path)["room"].found.startswith("1,000 bytes are free")


@pytest.mark.sqlite_only
def test_erasures_that_wait_for_their_purge(store: Store, path: Path) -> None:
    """They are counted until one purge did for all."""
    assert store.delete_session("s")[0].purged is False
    assert troubles(path)["purge"].found.startswith("1 erasures")
    store.create_session("t")
    assert store.delete_session("t", purge=True)[0].purged
    assert troubles(path) == {}


@pytest.mark.sqlite_only
def test_copies_that_hold_what_was_erased(store: Store, path: Path, tmp_path: Path) -> None:
    """They are named."""
    store.backup(tmp_path / "copy.db")
    assert troubles(path) == {}
    store.delete_session("s")
    assert str(tmp_path / "copy.db") in troubles(path)["copies"].found


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("content", "said"),
    [(b"Dear diary,\n" * 500, "no SQLite database"), (b"SQLite format 3\0" + b"\xff" * 9000, "")],
)
def test_what_is_no_store(tmp_path: Path, content: bytes, said: str) -> None:
    """A broken or foreign file is an answer, not an error, and is left as it is."""
    (tmp_path / "diary.db").write_bytes(content)
    file = tmp_path / "diary.db"
    found = troubles(file)["store"]
    with pytest.raises(NotAStore if said else StoreError, match=f"^{re.escape(str(file))} is "):
        Store(file)
    with pytest.raises(StoreError, match=f"^{re.escape(str(file))} is "):
        inspection.query(file, "SELECT 1 FROM sqlite_master")
    assert (found.state, said in found.found) == ("unusable", True)
    assert (tmp_path / "diary.db").read_bytes() == content


@pytest.mark.sqlite_only
def test_a_newer_store(store: Store, path: Path) -> None:
    """A newer release can use it, this one cannot."""
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    assert "install a newer" in troubles(path)["store"].found


@pytest.mark.sqlite_only
def test_statuses_of_the_command(store: Store, path: Path, run: Run) -> None:
    """0 where all is fine, 1 for advice, 2 for a store that cannot be used."""
    assert run("--db", path, "doctor").status == 0
    path.chmod(0o644)
    done = run("--db", path, "doctor", "--json")
    assert (done.status, '"about": "modes", "state": "advice"' in done.out) == (1, True)
    assert run("--db", "nothing.db", "doctor").status == 2
    assert not Path("nothing.db").exists()


@pytest.mark.sqlite_only
@pytest.mark.slow
def test_looking_changes_no_byte(store: Store, path: Path) -> None:
    """Not of the store, and nothing appears beside it."""
    store.close()
    before = {each: each.read_bytes() for each in path.parent.iterdir()}
    code = "import sys; from store import inspection; print(len(inspection.doctor(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(FINE)
    assert {each: each.read_bytes() for each in path.parent.iterdir()} == before


def test_a_server_is_looked_at(url: str) -> None:
    """Of a server: which one, and the schema."""
    if sqlalchemy.make_url(url).get_backend_name() == "sqlite":
        pytest.skip("no server: set CONVOSTORE_TEST_URL to the URL of one")
    Store(url).close()
    assert [each.about for each in inspection.doctor(url)] == ["schema", "server"]


def test_a_server_that_is_not_there() -> None:
    """Who cannot connect cannot use it; what is no URL is a mistake of the caller."""
    pytest.importorskip("psycopg")
    (found,) = inspection.doctor("postgresql://nobody@127.0.0.1:1/nothing")
    assert found.state == "unusable"
    with pytest.raises(InvalidValue):
        inspection.doctor("mysql://x/y")
