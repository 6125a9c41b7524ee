"""The order in which several trees are locked, which has to be the same for everybody."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from sqlalchemy import Connection

from ..errors import SessionNotFound
from .lines import load_pointer, lock_tree


def lock_trees(connection: Connection, session_ids: Iterable[str]) -> None:
    """Lock the trees of those sessions that are there, in the order of their numbers."""
    trees = {}
    for session_id in session_ids:
        with suppress(SessionNotFound):
            trees[session_id] = load_pointer(connection, session_id).tree_id
    for session_id in sorted(trees, key=lambda each: (trees[each], each)):
        with suppress(SessionNotFound):
            lock_tree(connection, session_id)
