"""The usages of erased sessions: what they cost outlives them, added up by day and model.

An erasure adds up the usages that were counted for its session, in the transaction in which the
session is deleted; so totals are the same before and after. No session, place or text is kept. The
days are those of UTC; in another zone a kept day has the name that it has there at noon in UTC.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    null,
    select,
    update,
)

from ..database import (
    BIG_INTEGER,
    Insertion,
    Row,
    Statement,
    branches,
    kept_usages,
    sessions,
    usages,
)
from .erasure_log import match_left_places
from .model_prices import DAY_MS

QUARTERS_PER_DAY = "96"
NOON_QUARTER = "48"

_used = usages.c
_written = func.coalesce(_used.written, literal_column("0"))
USED_PARTS = (_used.input - _used.cached - _written, _used.cached, _written, _used.output)
"""The parts of a usage that have prices of their own."""
_zero: ColumnElement[int] = literal_column("0")
PART_MASK: ColumnElement[int] = sum(
    (
        case((part > _zero, literal_column(str(2**number))), else_=_zero)
        for number, part in enumerate(USED_PARTS)
    ),
    _zero,
)
"""A number that tells which parts a usage has."""

_DAY = _used.at // literal_column(str(DAY_MS), BIG_INTEGER)
_session = sessions.alias("erased")
_GROUP_COLUMNS = {
    "day": _DAY,
    "parts": PART_MASK,
    "model": _used.model,
    "base_model": _used.base_model,
    "source": _session.c.source,
    "owner": _session.c.owner,
    "project_root": _session.c.project_root,
}
_SUM_COLUMNS = {
    "requests": func.count(),
    **{
        name: func.sum(column).cast(BIG_INTEGER)
        for name, column in (
            ("input", _used.input),
            ("output", _used.output),
            ("cached", _used.cached),
            ("written", _written),
        )
    },
    "cost": func.sum(_used.cost),
}
INSERT_KEPT = Insertion(kept_usages)
_summed = {**_GROUP_COLUMNS, **_SUM_COLUMNS}
_session_sums = (
    select(*(_summed[name].label(name) for name in INSERT_KEPT.columns[3:]))
    .select_from(usages)
    .join(
        branches,
        and_(branches.c.tree_id == _used.tree_id, branches.c.branch == _used.branch),
    )
    .join(
        _session,
        and_(
            _session.c.tree_id == branches.c.tree_id,
            _session.c.id == branches.c.session_id,
        ),
    )
    .where(
        _used.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        branches.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        branches.c.session_id == bindparam("session_id", type_=branches.c.session_id.type),
        _session.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
    )
    .group_by(*_GROUP_COLUMNS.values(), _used.cost.is_(null()))
    .order_by(_DAY, _used.model, PART_MASK)
)
SESSION_SUMS = Statement(_session_sums)
"""The usages of a session by day, model and parts; those without a recorded cost apart."""
LEFT_SUMS = Statement(_session_sums.where(match_left_places(_used.branch, _used.seq)))
"""The same of what an erasure takes from a session that goes on."""
_owned = kept_usages.c.owner == bindparam("kept_owner", type_=kept_usages.c.owner.type)
DELETE_OWNED_USAGES = Statement(delete(kept_usages).where(_owned))
EMPTY_OWNED_USAGES = Statement(
    update(kept_usages).where(_owned).values(owner=null(), project_root=null())
)

KEPT_COLUMNS: dict[str, ColumnElement[Any]] = {
    "model": kept_usages.c.model,
    "owner": kept_usages.c.owner,
    "project": kept_usages.c.project_root,
    "source": kept_usages.c.source,
    "day": kept_usages.c.day,
    "quarter": kept_usages.c.day * literal_column(QUARTERS_PER_DAY) + literal_column(NOON_QUARTER),
    "parts": kept_usages.c.parts,
}
"""The columns by which kept usages are added up; they have no session."""
_day_start = kept_usages.c.day * literal_column(str(DAY_MS), BIG_INTEGER)
KEPT_CONDITIONS = {
    "owner": kept_usages.c.owner == bindparam("owner", type_=kept_usages.c.owner.type),
    "since": _day_start >= bindparam("since", type_=BIG_INTEGER),
    "until": _day_start < bindparam("until", type_=BIG_INTEGER),
}
"""The conditions by which kept usages are selected: a day counts by its beginning."""
_KEPT_SUMS = ("requests", "input", "output", "cached", "written", "cost")


def keep_usages(
    connection: Connection, tree_id: int, erasure: int, session_id: str, left: str | None = None
) -> None:
    """Add up the usages of a session that is about to be deleted, and keep the sums.

    With an array of branches that it has ``left`` only of what the erasure takes from it.
    """
    of = {"tree_id": tree_id, "session_id": session_id}
    if left is None:
        sums = SESSION_SUMS.rows(connection, **of)
    else:
        sums = LEFT_SUMS.rows(connection, **of, erasure=erasure, left=left)
    rows = [(tree_id, erasure, number, *row) for number, row in enumerate(sums, start=1)]
    INSERT_KEPT.insert_many(connection, rows)


def delete_kept_usages(connection: Connection, owner: str, *, anonymous: bool = False) -> None:
    """Delete an owner's kept usages, or only their owner and project."""
    statement = EMPTY_OWNED_USAGES if anonymous else DELETE_OWNED_USAGES
    statement.run(connection, kept_owner=owner)


@cache
def build_kept_sums(by: tuple[str, ...], names: tuple[str, ...]) -> Statement[Row]:
    """Build the sums of kept usages by columns and by the names of their conditions.

    Their columns are those of `UsageSum`.
    """
    fields = ("model", "session", "owner", "project", "source", "day", "quarter", "parts")
    chosen = [
        KEPT_COLUMNS[name] if name in by and name in KEPT_COLUMNS else null() for name in fields
    ]
    sums = (func.sum(kept_usages.c[name]).cast(kept_usages.c[name].type) for name in _KEPT_SUMS)
    query = select(*chosen, *sums).where(*(KEPT_CONDITIONS[name] for name in names))
    keys = (KEPT_COLUMNS[name] for name in by if name in KEPT_COLUMNS)
    return Statement(query.group_by(*keys, kept_usages.c.cost.is_(null())))


SUM_KEPT = build_kept_sums(("model", "day"), ("since", "until"))
SUM_OWNED_KEPT = build_kept_sums(("model",), ("owner",))
