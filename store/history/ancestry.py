"""The ancestors of branches, as rows that a server reads without walking up a tree.

A statement that walks up the branches of many trees goes to no single machine, and a server plans
it without knowing how far it goes. So each branch on a server has rows of its ancestors
(``ancestors.sql``): they are written with it, and never change, since a branch hangs where it was
made. They follow from the branches alone: an export has none, and an import makes them anew. In a
file a walk is as fast, and its branches have no such rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection

from ..database import Queries
from ..records import Finding

ROWS_OF_A_LEVEL = 16
"""The rows of a level that become one row of the next: up to 64 rows at a depth of 8,000."""
LEVELS = 3
_fanout = str(ROWS_OF_A_LEVEL)
_PATH = Path(__file__).with_name("ancestors.sql")
_branch_queries = Queries(
    _PATH,
    fanout=_fanout,
    added_branches="WHERE b.tree_id = :tree_id AND b.branch = :branch",
    parents=" AND p.tree_id = :tree_id",
    rows=" AND a.tree_id = :tree_id",
)
_store_queries = Queries(_PATH, fanout=_fanout, added_branches="", parents="", rows="")
WRITE_ANCESTORS = _branch_queries.statement("write")
UNWRITTEN_BRANCHES = _branch_queries.statement("missing")
ANCESTOR_BREACHES = _store_queries.statement("breaches")


def write_ancestors(connection: Connection, tree_id: int, branch: int) -> None:
    """Write the ancestors of a new branch on a server, whose parent has its own."""
    if connection.dialect.name == "postgresql":
        WRITE_ANCESTORS.run(connection, tree_id=tree_id, branch=branch)


def write_missing_ancestors(connection: Connection, tree_id: int) -> None:
    """Write the ancestors of those branches of a tree that came from another store."""
    if connection.dialect.name == "postgresql":
        for branch in UNWRITTEN_BRANCHES.values(connection, tree_id=tree_id):
            write_ancestors(connection, tree_id, branch)


def check_ancestors(connection: Connection) -> Iterator[Finding]:
    """Yield the rows that do not follow from the branches of a server, or are missing."""
    if connection.dialect.name == "postgresql":
        for tree_id, branch, level, ancestor in ANCESTOR_BREACHES.rows(connection):
            place = f"tree {tree_id}, branch {branch}"
            problem = f"its ancestor {ancestor} of level {level} does not follow from the branches"
            yield Finding("heads", place, problem)
