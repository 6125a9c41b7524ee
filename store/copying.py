"""Copy a store to another one, such as a file to a server, while it is in use.

    with Store("chat.db") as source, Store("postgresql://…") as target:
        copy(source, target)

Each tree, a session with its forks, is copied in a transaction of its own. What the target has is
not copied again, so a copy that was stopped goes on, and a second one brings what is new. The first
one reads all pages of a file to find damage; later ones compare the trees that they copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from . import Store
from .errors import Damaged, InvalidValue
from .inspection import dump, transfer
from .records import ProgressCallback

__all__ = ["Copied", "LeftTree", "copy"]


class LeftTree(NamedTuple):
    """A tree that was not copied: the sessions that it has in the source, and the reason."""

    session_ids: tuple[str, ...]
    reason: str


class Copied(NamedTuple):
    """What became of the trees of a store: each is a session with its forks.

    Of all ``trees``, ``new`` were not in the target, ``grown`` had changed since, and ``same`` were
    there already; ``left`` are those that the target keeps as it has them, or not at all.
    ``deleted`` are the sessions that were deleted from the source and are still in the target.
    """

    trees: int
    new: int
    grown: int
    same: int
    left: tuple[LeftTree, ...] = ()
    deleted: tuple[str, ...] = ()


def copy(
    source: Store,
    target: Store,
    progress: ProgressCallback | None = None,
    *,
    check: bool = False,
) -> Copied:
    """Copy all sessions of a store to another store, with everything that belongs to them.

    The source may be used meanwhile. What was copied before is not copied again; a tree that has
    grown gets only its new rows. The target keeps what was deleted from the source: see
    ``deleted`` of the result. A tree is left if it is damaged, if its sessions or messages were
    deleted or redacted in the source since it was copied, or if the target has changed it.
    ``progress`` gets the number of trees done, and of all. All pages of a file are checked for
    damage before its first copy, later only the trees that are copied. ``check`` compares all rows
    of both stores and writes nothing. Raises StoreError, InvalidValue.
    """
    if _get_place(source) == _get_place(target):
        raise InvalidValue("source and target are the same store; name another target")
    known = {} if check else target.database.read(transfer.mark_trees)
    trees = dump.list_trees(source.database, checks_file=not known)
    same: set[int] = set()
    if known:
        marks = source.database.read(transfer.mark_trees)
        same = {tree for tree, mark in marks.items() if known.get(tree) == mark}
        del known, marks  # a large store has many
    counts = {"new": 0, "grown": 0, "same": 0}
    left = []
    for done, tree_id in enumerate(trees, start=1):
        if tree_id in same:
            counts["same"] += 1
        else:
            state = _copy_tree(source, target, tree_id, check=check)
            if isinstance(state, LeftTree):
                left.append(state)
            else:
                counts[state] += 1
        if progress is not None:
            progress(done, len(trees))
    deleted = tuple(_list_deleted_sessions(source, target))
    return Copied(len(trees), **counts, left=tuple(left), deleted=deleted)


def _get_place(store: Store) -> str:
    return str(store.database.path or store.database.url)


def _copy_tree(
    source: Store, target: Store, tree_id: int, *, check: bool
) -> transfer.Transfer | LeftTree:
    """Copy a tree in one transaction, or only compare it."""
    opened = target.database.reading() if check else target.database.writing()
    try:
        with source.database.reading() as reading, opened as connection:
            rows = dump.dump_tree(reading, tree_id)
            return transfer.transfer_tree(connection, tree_id, rows, writes=not check)
    except (InvalidValue, Damaged) as error:
        with source.database.reading() as reading:
            return LeftTree(tuple(transfer.list_tree_sessions(reading, tree_id)), str(error))


def _list_deleted_sessions(source: Store, target: Store) -> Iterator[str]:
    with source.database.reading() as reading, target.database.reading() as connection:
        for _, session_id in transfer.find_erased_sessions(reading, connection):
            yield session_id
