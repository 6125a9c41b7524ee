"""The script that makes a new file is what the revisions make of an empty one.

After a change of the schema: CONVOSTORE_WRITE_SCHEMA=1 pytest tests/database/test_schema_script.py
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from store import Store
from store.database import SCHEMA_HEAD, migrate
from store.database.engine import Database
from store.database.files import find_folder

pytestmark = pytest.mark.sqlite_only

WRITE = "CONVOSTORE_WRITE_SCHEMA"
PATH = find_folder("migrations") / migrate.SCRIPT_NAME


def made_by_revisions(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store without the script."""
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "SCRIPT_HEADING", "-- no such script {}\n")
        Store(path).close()
    return path


def described(path: Path) -> Iterator[str]:
    """Return the statements that make what a file has: tables, what hangs on them, the revision."""
    with closing(sqlite3.connect(path)) as connection:
        for (statement,) in connection.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
            " ORDER BY type <> 'table', rowid"
        ):
            yield "\n".join(line.rstrip() for line in statement.strip().splitlines())
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        yield f"INSERT INTO alembic_version VALUES\n('{revision}')"


def test_the_script_makes_what_the_revisions_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Word for word; see above for how to write it anew."""
    made = [*described(made_by_revisions(tmp_path / "revisions.db", monkeypatch))]
    current = migrate.SCRIPT_HEADING.format(SCHEMA_HEAD) + "".join(f"\n{each};\n" for each in made)
    if os.environ.get(WRITE):
        PATH.write_text(current, encoding="utf-8")
    assert PATH.read_text(encoding="utf-8") == current, f"run with {WRITE}=1"
    Store(tmp_path / "script.db").close()
    assert [*described(tmp_path / "script.db")] == made


def test_a_script_of_another_revision_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The revisions make the store then."""
    assert len(migrate.read_statements(SCHEMA_HEAD)) > 40
    assert migrate.read_statements("0002") == []


@pytest.mark.slow
def test_a_new_store_needs_no_migration_tool(tmp_path: Path) -> None:
    """Making one imports neither Alembic nor what it needs."""
    program = (
        "import sys; from store import Store; Store(sys.argv[1]).close();"
        "print([name for name in ('alembic', 'mako') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "new.db"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "[]\n"


def test_a_failing_script_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one transaction, as revisions are."""
    path = tmp_path / "new.db"
    whole = migrate.read_statements(SCHEMA_HEAD)
    monkeypatch.setattr(migrate, "read_statements", lambda _: [*whole[:20], "SELECT nothing"])
    with pytest.raises(Exception, match="nothing"):
        Store(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone() == (0,)
    monkeypatch.undo()
    with Store(path) as store:
        assert store.sessions() == []
    database = Database(path)
    with database.reading() as connection:
        assert migrate.read_version(connection) == SCHEMA_HEAD
    database.close()
