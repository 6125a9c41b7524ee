"""What several test files share: where recorded conversations lie, and an empty database."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

ROOT = Path(__file__).resolve().parent.parent

#: Conversations recorded by other programs: no part of the repository; the tests that read them skip without them.
TRANSCRIPTS = Path(os.environ.get("CONVOSTORE_TRANSCRIPTS") or ROOT.parent / "shared" / "transcripts")

needs_transcripts = pytest.mark.skipif(
    not TRANSCRIPTS.is_dir(),
    reason=f"no recorded conversations at {TRANSCRIPTS}: set CONVOSTORE_TRANSCRIPTS to a folder of them",
)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Give the URL of a new, empty database: an SQLite file, or one on the server that CONVOSTORE_TEST_URL names."""
    server = os.environ.get("CONVOSTORE_TEST_URL")
    if not server:
        yield f"sqlite:///{tmp_path / 'chat.db'}"
        return
    name = f"convostore_test_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    yield engine.url.set(database=name).render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"DROP DATABASE {name} WITH (FORCE)"))
