"""The erasure of branches that a session's line has left by rewinds, pops and switches.

The line stays as it is, and so does what the lines of other sessions run through. A branch of the
session that its line has left is disowned, and its rows go afterwards as those of an erased session
do. Where the line goes on from the middle of a branch, the rest of that branch goes at once, since
the branch remains the session's. The log of moves begins anew: it names no branch that is gone.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, bindparam, delete, literal_column, null, update

from ..clock import Now, require_moment
from ..database import (
    BIG_INTEGER,
    IDENTIFIER,
    Statement,
    branches,
    draft_pieces,
    drafts,
    head_moves,
    running_bills,
    select_positions,
)
from ..errors import check_choice
from ..records import Erasure
from . import lines
from .erasure import (
    BRANCH_OWNERS,
    COSTS,
    OpenErasure,
    delete_erased_records,
    load_erasures,
    lock_for_erasure,
    plan_erasures,
    record_erasure,
)
from .erasure_batches import erase_branch_ends
from .erasure_log import match_left_places
from .heads import INSERT_MOVE, load_move_state
from .kept_usages import keep_usages
from .lines import Pointer
from .request_rows import delete_session_requests

_tree_id = bindparam("tree_id", type_=BIG_INTEGER)
_session_id = bindparam("session_id", type_=IDENTIFIER)
DISOWN_LEFT_BRANCHES = Statement(
    update(branches)
    .where(
        branches.c.tree_id == bindparam("tree"),
        branches.c.session_id == bindparam("owner"),
        branches.c.branch.in_(select_positions("left")),
    )
    .values(session_id=None)
)
_is_left_draft = (
    drafts.c.tree_id == _tree_id,
    drafts.c.session_id == _session_id,
    match_left_places(drafts.c.branch, drafts.c.head),
)
DELETE_LEFT_ROWS = (
    Statement(
        delete(draft_pieces).where(
            draft_pieces.c.tree_id == _tree_id,
            draft_pieces.c.draft.in_(
                drafts.select().with_only_columns(drafts.c.draft).where(*_is_left_draft)
            ),
        )
    ),
    Statement(delete(drafts).where(*_is_left_draft)),
    Statement(
        delete(running_bills).where(
            running_bills.c.tree_id == _tree_id,
            running_bills.c.session_id == _session_id,
            match_left_places(running_bills.c.branch, running_bills.c.seq),
        )
    ),
)
"""What a session keeps beside a place that goes."""
DELETE_MOVES = Statement(
    delete(head_moves).where(
        head_moves.c.tree_id == _tree_id,
        head_moves.c.session_id == _session_id,
        head_moves.c.kind != literal_column("'fork'"),
    )
)
SET_NO_UNDO = Statement(lines.update_session(last_rewind=null()))


def begin_branch_erasure(
    connection: Connection,
    session_id: str,
    *,
    expected: str | None = None,
    owner: str | None = None,
    costs: str = "keep",
    now: Now = None,
) -> OpenErasure:
    """Take from a session the branches that its line has left, and record what will be erased.

    Returns the erasure as begun. The parameters and exceptions are those of `begin_erasure`.
    """
    moment = require_moment(now)
    pointer = lock_for_erasure(connection, session_id, expected, owner)
    line = find_own_ends(connection, pointer)
    planned = plan_erasures(connection, pointer.tree_id, [session_id], line)
    opened = record_erasure(connection, pointer, planned, moment)
    left = json.dumps([each.branch for each in opened.plan if each.branch not in line])
    of: dict[str, Any] = {**pointer.session, "erasure": opened.number, "left": left}
    if costs == "keep":
        keep_usages(connection, pointer.tree_id, opened.number, session_id, left)
    for statement in DELETE_LEFT_ROWS:
        statement.run(connection, **of)
    delete_session_requests(connection, **of)
    DISOWN_LEFT_BRANCHES.run(connection, tree=pointer.tree_id, owner=session_id, left=left)
    restart_moves(connection, pointer, moment)
    delete_erased_records(connection, opened)
    erase_branch_ends(connection, opened, line, now=moment)
    return opened


def find_own_ends(connection: Connection, pointer: Pointer) -> dict[int, int]:
    """Return the last position on each of the session's own branches that its line goes through."""
    ends, own = {pointer.branch: pointer.head}, {}
    for branch, parent, position, owner in BRANCH_OWNERS.rows(connection, tree_id=pointer.tree_id):
        if branch in ends:
            ends[parent] = position
            if owner == pointer.session_id:
                own[branch] = ends[branch]
    return own


def restart_moves(connection: Connection, pointer: Pointer, moment: int) -> None:
    """Let a session's log of moves begin at its head; earlier moves are no longer there."""
    number = load_move_state(connection, pointer).move
    DELETE_MOVES.run(connection, **pointer.session)
    move = (pointer.tree_id, pointer.session_id, number, "forget")
    places = (None, None, pointer.branch, pointer.head)
    INSERT_MOVE.insert(connection, (*move, *places, moment, None, None, None))
    SET_NO_UNDO.run(connection, **pointer.changed())


def forget_branches(
    connection: Connection,
    session_id: str,
    *,
    expected: str | None = None,
    owner: str | None = None,
    costs: str = "keep",
    now: Now = None,
) -> Erasure:
    """Erase what a session's line has left within a transaction, as `begin_branch_erasure` begins.

    Rows of whole branches are left to the erasing after its commit. Raises SessionNotFound,
    Conflict, InvalidValue.
    """
    check_choice(COSTS, "costs", costs)
    begun = begin_branch_erasure(
        connection, session_id, expected=expected, owner=owner, costs=costs, now=now
    )
    (erased,) = load_erasures(connection, [begun])
    return erased
