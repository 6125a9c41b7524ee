"""The branches of a store, each with where it has to end, for whoever checks them in order."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import text

from ..database import Statement
from ..history import Pointer


class Branch(NamedTuple):
    """A branch and where it ends: at a head, where a move left it, or where an erasure cut it off.

    What an erasure has still to do beyond is not looked at (``is_open``).
    The project root is that of the branch's session. Nobody knows which one an erased session had,
    but mostly it is that of any session of the tree, as the case rule always is: a fork takes over
    both, unless it is handed over to another owner, who may have another root.
    """

    tree_id: int
    branch: int
    parent_position: int
    session_id: str | None
    tip: int | None
    is_open: bool
    project_root: str | None
    fold_case: int | None

    def place(self, position: int | None = None) -> str:
        """Return the place of a finding."""
        owner = f"session {self.session_id!r}" if self.session_id else f"tree {self.tree_id}"
        where = f"{owner}, branch {self.branch}"
        return where if position is None else f"{where}, position {position}"

    def pointer(self) -> Pointer:
        """Return the branch as its session would see it from its end."""
        return Pointer(
            tree_id=self.tree_id,
            session_id=self.session_id or "",
            branch=self.branch,
            head=self.tip or 0,
            parent_position=self.parent_position,
            last_rewind=None,
            project_root=self.project_root,
            fold_case=self.fold_case or 0,
            head_turn=None,
            head_tokens=None,
            revision="",
        )


_BRANCHES = """
SELECT b.tree_id, b.branch, b.parent_position, b.session_id,
    CASE
        WHEN b.session_id IS NULL THEN (
            SELECT kept FROM erasures e
            WHERE e.tree_id = b.tree_id AND e.branch = b.branch
            ORDER BY erasure DESC LIMIT 1
        )
        WHEN s.head_branch = b.branch THEN s.head
        ELSE (
            SELECT MAX(m.from_position) FROM head_moves m
            WHERE m.tree_id = b.tree_id AND m.session_id = b.session_id
                AND m.from_branch = b.branch AND m.kind <> 'fork'
        )
    END,
    EXISTS (
        SELECT 1 FROM erasures e
        WHERE e.tree_id = b.tree_id AND e.branch = b.branch AND e.finished_at IS NULL
    ),
    CASE WHEN s.id IS NULL THEN o.project_root ELSE s.project_root END, o.fold_case
FROM branches b
LEFT JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id
LEFT JOIN sessions o ON o.tree_id = b.tree_id
    AND o.id = (SELECT MIN(id) FROM sessions WHERE tree_id = b.tree_id)
"""
BRANCHES = f"""{_BRANCHES}
WHERE (b.tree_id, b.branch) > (:tree_id, :branch)
ORDER BY b.tree_id, b.branch
"""
"""The branches behind one, in the order of their keys."""
BRANCH = Statement(
    text(
        f"""{_BRANCHES.replace("= b.tree_id", "= :tree_id")}
WHERE b.tree_id = :tree_id AND b.branch = :branch"""
    ),
    row=Branch,
)
"""One branch of a tree."""
