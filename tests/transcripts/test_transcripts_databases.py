"""Databases of other programs: read without changing them, or refused in plain words."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from test_transcripts_cursor import BUBBLES, chat, messages

from store import Store
from store.errors import StoreError, UnknownTranscript
from store.importing import import_file
from store.transcripts import sniff


def state(folder: Path) -> dict[str, bytes]:
    """Return what lies in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("left", [("", "-wal", "-shm"), ("", "-wal"), ("",)])
def test_nothing_is_written_beside_a_database(tmp_path: Path, left: tuple[str, ...]) -> None:
    """Also where its program runs, or left a log of writes when it was killed."""
    (tmp_path / "of").mkdir()
    (tmp_path / "copy").mkdir()
    path = tmp_path / "of" / "state.vscdb"
    chat(path, BUBBLES)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("DELETE FROM cursorDiskKV WHERE key = 'bubbleId:s:a1'")
        database.commit()
        for ending in left:
            shutil.copy(f"{path}{ending}", tmp_path / "copy")
    before = state(tmp_path / "copy")
    assert len(messages(tmp_path / "copy" / path.name)) == (3 if "-wal" in left else 4)
    after = state(tmp_path / "copy")
    assert before.keys() == after.keys()
    assert before[path.name] == after[path.name]


def test_its_program_can_write_while_it_is_read(tmp_path: Path) -> None:
    """No lock is held, whatever the database keeps beside itself."""
    path = chat(tmp_path / "f", BUBBLES)
    with Store(tmp_path / "chat.db") as store:
        import_file(store, path)
        with closing(sqlite3.connect(path, timeout=0)) as database, database:
            database.execute("DELETE FROM ItemTable")


def test_a_database_that_is_none_of_these(tmp_path: Path) -> None:
    """It is refused with its tables, a broken one with what is wrong."""
    path = tmp_path / "f.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE birds (name)")
    with pytest.raises(UnknownTranscript, match="of a program that is not read; its tables: birds"):
        sniff(path)
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 9000)
    with pytest.raises(StoreError, match=r"is an SQLite database that cannot .*not a data"):
        sniff(path)


def test_a_store_of_our_own_is_told_as_such(tmp_path: Path) -> None:
    """Another one than that which is imported into."""
    with Store(tmp_path / "other.db") as other:
        other.create_session("s")
    with pytest.raises(UnknownTranscript, match="is a store of convostore's own: export its sess"):
        sniff(tmp_path / "other.db")
