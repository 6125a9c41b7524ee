"""Files that older releases made: copied before rows are rewritten, looked at as they are."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT, Run

from store import Store, inspection
from store.database import SCHEMA_HEAD, Database, file_copies, migrate
from store.database.files import find_folder
from store.errors import SchemaTooNew, StoreError, StoreFull

pytestmark = [pytest.mark.sqlite_only, pytest.mark.sampled(2)]  # of two releases

DATABASES = ROOT / "tests" / "databases"
NEXT = f"{int(SCHEMA_HEAD) + 1:04}"
REVISION = f'''
from alembic import op

revision, down_revision, branch_labels, depends_on = "{NEXT}", "{SCHEMA_HEAD}", None, None
rewrites_rows = {{rewrites}}

def upgrade():
    op.execute("UPDATE sessions SET title = 'rewritten'")
    {{last}}
'''
Install = Callable[..., None]


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Let this process be a release with one more revision, which may rewrite rows."""

    def install(*, rewrites: bool = True, last: str = "pass") -> None:
        scripts = tmp_path / "scripts" / "migrations"
        shutil.copytree(find_folder("migrations"), scripts, dirs_exist_ok=True)
        text = REVISION.format(rewrites=rewrites, last=last)
        (scripts / "versions" / f"{NEXT}_next.py").write_text(text)
        monkeypatch.setattr(migrate, "find_folder", lambda name: tmp_path / "scripts" / name)
        monkeypatch.setattr(migrate, "SCHEMA_HEAD", NEXT)

    return install


@pytest.fixture
def older(path: Path) -> Path:
    """Give a closed store that the next release will find older than itself."""
    with Store(path) as opened:
        opened.create_session("s", title="as it was")
    return path


def title(path: Path) -> str:
    """Return the title of the one session of a file."""
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("SELECT title FROM sessions").fetchone()
    return str(found)


def databases(path: Path) -> set[str]:
    """Return the names of the files beside a store."""
    return {each.name for each in path.parent.iterdir() if each.is_file()}


def test_a_file_is_copied_before_its_rows_are_rewritten(
    older: Path, next_release: Install, caplog: pytest.LogCaptureFixture
) -> None:
    """The copy lies beside it, private, and is listed; one line in the log tells of it."""
    next_release()
    with caplog.at_level(logging.INFO, "store"), Store(older) as opened:
        (copied,) = opened.copies()
        told = opened.upgraded.told
    place = older.with_name(f"chat.db.{SCHEMA_HEAD}")
    assert (copied.path, copied.kind) == (str(place), "upgrade")
    assert (title(older), title(place)) == ("rewritten", "as it was")
    assert place.stat().st_mode & 0o777 == 0o600
    assert (
        told
        == f"the store was brought from schema {SCHEMA_HEAD} to {NEXT}; a copy from before is {place}"
    )
    assert [each for each in caplog.messages if told in each]


def test_nothing_is_copied_where_no_row_is_rewritten(older: Path, next_release: Install) -> None:
    """New tables and columns harm nobody."""
    next_release(rewrites=False)
    with Store(older) as opened:
        assert opened.copies() == []
    assert databases(older) == {"chat.db", "chat.db-lock"}


def test_earlier_copies_stay(older: Path, next_release: Install) -> None:
    """Whatever has the name already, another one is taken."""
    taken = older.with_name(f"chat.db.{SCHEMA_HEAD}")
    taken.write_text("mine")
    next_release()
    with Store(older) as opened:
        assert [Path(each.path).name for each in opened.copies()] == [f"chat.db.{SCHEMA_HEAD}.2"]
    assert taken.read_text() == "mine"


def test_a_failing_upgrade_leaves_no_copy(older: Path, next_release: Install) -> None:
    """The store is as it was, so it needs none."""
    next_release(last="raise ArithmeticError('in the middle of it')")
    with pytest.raises(ArithmeticError):
        Store(older)
    assert title(older) == "as it was"
    assert databases(older) == {"chat.db", "chat.db-lock"}


class Usage(NamedTuple):
    """What a disk says of itself."""

    total: int
    used: int
    free: int


def test_without_room_for_the_copy_nothing_is_upgraded(
    older: Path, tmp_path: Path, next_release: Install, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """The error says how much is needed and what to do, and what it says works."""
    next_release()
    full = tmp_path

    def usage(place: Path) -> Usage:
        return Usage(0, 0, 1000 if place == full else 10**12)

    monkeypatch.setattr(file_copies.shutil, "disk_usage", usage)
    with pytest.raises(StoreFull, match=r"bytes are needed at .*1,000 are free; make room") as said:
        Store(older)
    assert title(older) == "as it was"
    assert "convostore migrate --copy PATH" in str(said.value)
    (tmp_path / "disk").mkdir()
    assert run("--db", older, "migrate", "--copy", "disk/copy.db").status == 0
    assert (title(older), title(tmp_path / "disk" / "copy.db")) == ("rewritten", "as it was")


def test_the_way_back_is_the_copy(older: Path, next_release: Install) -> None:
    """Restored, it is the store of the older release again (M3)."""
    next_release()
    with Store(older) as opened:
        (copied,) = opened.copies()
    inspection.restore(copied.path, older, replace=True)
    assert title(older) == "as it was"


# --- As they are ----------------------------------------------------------------------------------


@pytest.fixture(params=["0001", "0002"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give the file of an older release."""
    return Path(shutil.copy(DATABASES / f"{request.param}.db", tmp_path / "old.db"))


def revision(path: Path) -> str:
    """Return the schema of a file."""
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["verify"], 0),
        (["sql", "SELECT count(*) FROM messages"], 0),
        (["doctor"], 1),
        (["backup", "copy.db"], 0),
    ],
)
def test_commands_that_look_change_nothing(
    saved: Path, run: Run, words: list[str], status: int
) -> None:
    """Checking, asking, advising and copying leave an older store to the release that made it."""
    before = revision(saved)
    assert run("--db", saved, *words).status == status
    assert revision(saved) == before


def test_other_commands_upgrade_and_say_so(saved: Path, run: Run) -> None:
    """In one line, once, on standard error."""
    line = f"convostore: the store was brought from schema {revision(saved)} to {SCHEMA_HEAD}\n"
    assert run("--db", saved, "sessions").err == line
    assert revision(saved) == SCHEMA_HEAD
    assert run("--db", saved, "sessions").err == ""


@pytest.mark.slow
def test_an_older_file_is_checked_to_the_bottom(saved: Path) -> None:
    """Damage to a message or to a page shows without an upgrade; what was not held fast is told."""
    (older,) = inspection.check(saved)
    assert (older.check, older.where) == ("older", "the store")
    assert "digests of version 1" in older.problem
    saved.write_bytes(saved.read_bytes().replace(b"You are helpful.", b"You are harmful."))
    found = {(each.check, each.problem) for each in inspection.check(saved)}
    assert ("digest", "is not what was stored") in found
    assert {check for check, _ in found} == {"digest", "older"}


def test_damaged_structures_of_an_older_file_are_found(saved: Path) -> None:
    """They are looked for where they lie, before a copy could mend them."""
    with closing(sqlite3.connect(saved, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name ="
            " 'ix_sessions_updated_at_id') WHERE name = 'ix_messages_tree_id_message_id'"
        )
    assert {each.check for each in inspection.check(saved)} == {"integrity"}


def test_an_empty_file_is_no_store_yet(tmp_path: Path) -> None:
    """It is told, and stays empty."""
    (tmp_path / "empty.db").touch()
    (found,) = inspection.check(tmp_path / "empty.db")
    assert (found.check, found.problem.startswith("the schema is None")) == ("schema", True)
    assert (tmp_path / "empty.db").stat().st_size == 0


@pytest.mark.slow
def test_a_copy_of_an_older_file_is_not_listed(saved: Path, tmp_path: Path, run: Run) -> None:
    """There is no list in it, and the command says what follows from that."""
    assert "remove it yourself" in run("--db", saved, "backup", "copy.db").err
    with closing(Database(tmp_path / "copy.db")) as database:
        with pytest.raises(StoreError, match="exists already"):
            inspection.backup(database, saved)
        assert inspection.backup(database, tmp_path / "again.db").number is None


def test_a_copy_made_before_an_upgrade_is_the_way_back(
    older: Path, next_release: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """The older release refuses the upgraded file unharmed, and goes on with the copy."""
    before, back = tmp_path / "before.db", tmp_path / "back.db"
    assert run("--db", older, "backup", before).status == 0
    next_release()
    Store(older).close()
    assert title(older) == "rewritten"
    monkeypatch.setattr(migrate, "find_folder", find_folder)
    monkeypatch.setattr(migrate, "SCHEMA_HEAD", SCHEMA_HEAD)
    with pytest.raises(SchemaTooNew):
        Store(older)
    assert run("--db", back, "restore", before).status == 0
    with Store(back) as store:
        assert store.session("s").title == "as it was"
        assert store.verify() == []
