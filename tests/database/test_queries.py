"""Files of named queries: sections, what they name, what differs between engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.database import Queries

FILE = """
A word before the first section is nobody's.

-- part: sources
-- What this is for does not run.
FROM {pairs:it_is}  -- nor this

-- query: keys
SELECT key {sources} WHERE key <> {quoted:it} AND :least <= {made}

-- part: quoted
'{it}'
"""


@pytest.fixture
def queries(tmp_path: Path) -> Queries:
    """A file read."""
    path = tmp_path / "some.sql"
    path.write_text(FILE, encoding="utf-8")
    return Queries(path, texts=("it_is",), made="2")


def test_sections_are_listed_by_their_use(queries: Queries) -> None:
    """In their order."""
    assert queries.names == {"part": ["sources", "quoted"], "query": ["keys"]}


def test_a_query_is_filled_for_each_engine(queries: Queries) -> None:
    """Parts in the place of their names, words in the place of ``it``, and values with types."""
    statement = queries.statement("keys")
    assert statement.text("sqlite") == (
        "SELECT key FROM json_each(:it_is) WHERE key <> 'it' AND :least <= 2"
    )
    assert statement.text("postgresql") == (
        "SELECT key FROM json_each_text(CAST(%(it_is)s::VARCHAR AS json))"
        " WHERE key <> 'it' AND %(least)s::BIGINT <= 2"
    )


def test_a_query_that_does_not_exist_is_a_mistake_of_ours(queries: Queries) -> None:
    """Found when the module is imported, before anything runs."""
    with pytest.raises(KeyError, match="values"):
        queries.statement("values")
