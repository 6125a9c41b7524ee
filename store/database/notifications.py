"""Notifications by which a server tells processes that somebody has written to a tree.

A server tells each listening connection what others notify (LISTEN, NOTIFY). A notification is a
hint: whoever waits looks at the store when one comes, and now and then without one.

Notifications are not free. A transaction that sends one takes a lock of the whole server until its
commit has been flushed, so writers would commit one after the other. Hence a writer notifies in a
transaction of its own, sent with its COMMIT, which flushes nothing. And it does so only where
somebody waits: whoever waits for a tree holds an advisory lock that the writers of the tree try to
get while they hold the row of their session. A writer that gets it keeps it until its commit, and
whoever begins to wait meanwhile tries again. So no change falls between the two, and nobody waits
for such a lock. Trees share some locks, which bounds their number on the server; the writers of
two such trees may notify for nothing.

Nothing is heard on a standby, through a pooler, and between the nodes of Citus.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Integer, cast, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

CHANNEL = "convostore"
"""The name of the notifications; what each says is the number of a tree."""
LOCK_SPACE = 1936024947
"""The first of the two numbers of each advisory lock; the second follows from the tree."""
LOCKS = 256
"""The locks that all trees share."""


class IsHeard(FunctionElement[int]):
    """Whether somebody may wait for changes of a tree, asked by a writer of it; 0 on a file."""

    inherit_cache = True
    type = Integer()

    def __init__(self, tree_id: ColumnElement[int]) -> None:
        lock = tree_id % literal_column(str(LOCKS), tree_id.type)
        super().__init__(cast(lock, Integer))


@compiles(IsHeard)
def _compile_heard_sqlite(*_: object, **__: object) -> str:
    return "0"


@compiles(IsHeard, "postgresql")
def _compile_heard_postgresql(element: IsHeard, compiler: SQLCompiler, **options: Any) -> str:
    lock = compiler.process(element.clauses, **options)
    return f"NOT pg_try_advisory_xact_lock({LOCK_SPACE}, {lock})"


def build_notification(tree_id: int) -> str:
    """Return the statement that tells of a change of a tree."""
    return f"NOTIFY {CHANNEL}, '{tree_id}'"
