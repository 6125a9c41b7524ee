"""How many messages a view has before it is built; reads narrow rows only.

A message is one of a chat, whatever the format in which it came and goes out: an answer is one
message, however many items it came in, and so is each result of a tool. What the view makes up
counts as what is stored: a result for a call that has none, a call for a result that has none, and
summaries. Pictures that a chat sends behind the results they came with are a part of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from sqlalchemy import ColumnElement, and_, bindparam, func, literal_column, select

from ..database import BIG, Statement, message_facts, messages, tool_calls, tool_results
from ..formats import ITEMS
from ..history import IS_CALL, lines, segments_cte
from .context import ViewContext

_walk = segments_cte()
_f, _m, _c, _r = message_facts, messages, tool_calls, tool_results
_ASSISTANT: ColumnElement[str] = literal_column("'assistant'")
_role_before = func.lag(_f.c.role).over(order_by=_f.c.seq).label("role_before")
_in_order = (
    select(_f.c.branch, _f.c.seq, _f.c.role, _role_before)
    .select_from(_walk)
    .join(_f, lines.in_segments(_f, _walk))
    .cte("in_order")
)
_stored = and_(
    _m.c.tree_id == bindparam("tree_id", type_=BIG),
    _m.c.branch == _in_order.c.branch,
    _m.c.seq == _in_order.c.seq,
)
CONTINUED = Statement(
    select(_in_order.c.seq)
    .join(_m, _stored)
    .where(_in_order.c.role == _ASSISTANT)
    .where(_in_order.c.role_before == _ASSISTANT)
    .where(_m.c.wire_format == literal_column(f"'{ITEMS}'"))
    .order_by(_in_order.c.seq)
)
"""The items from ``start`` to ``last`` that go on with an answer: another item stands before."""
_PLACE = ("tree_id", "branch", "seq")
_says_call = and_(*(_f.c[name] == _c.c[name] for name in _PLACE))
CALLED = Statement(
    select(func.count())
    .select_from(_c)
    .join(_f, _says_call)
    .where(lines.in_run(_c), _f.c.role == _ASSISTANT, IS_CALL)
)
ANSWERS = Statement(select(_r.c.call_seq, _r.c.call_position).where(lines.in_run(_r)))


def count_view_messages(context: ViewContext) -> int:
    """Return how many messages a line's view has, without building it.

    Where a policy leaves out calls without results, or keeps them open, it is how many there are
    at most.
    """
    seen = context.visible
    key = ("messages", context.last, seen.first_kept, seen.pinned, seen.ranges)
    if key not in context.made:
        context.made[key] = _stored_messages(context) + _made_up(context)
    return int(context.made[key]) + len(seen.active_summaries)


def find_continuations(context: ViewContext, first: int, last: int) -> list[int]:
    """Return the positions of a stretch that go on with the answer before them, in order."""
    key = ("continued", first, last)
    if key not in context.made:
        stretch = {**context.line, "start": first, "last": last}
        context.made[key] = CONTINUED.values(context.connection, **stretch)
    found: list[int] = context.made[key]
    return found


def _stored_messages(context: ViewContext) -> int:
    """Return how many messages the visible positions hold."""
    spans = [*context.visible.shown_ranges(context.visible.first_kept, context.last)]
    positions = sum(last - first + 1 for first, last in spans)
    items = sum(len(find_continuations(context, *span)) for span in spans)
    return positions - items + len(context.visible.pinned)


def _made_up(context: ViewContext) -> int:
    """Return how many messages a view makes up, less the results that it leaves out."""
    runs = [run.within(context.pointer.tree_id) for run in context.visible_runs()]
    calls = sum(CALLED.value(context.connection, **run) for run in runs)
    results = chain.from_iterable(ANSWERS.rows(context.connection, **run) for run in runs)
    return _unpaired(context, calls, [(seq, position) for seq, position in results])


def _unpaired(
    context: ViewContext,
    calls: int,
    results: Iterable[tuple[int | None, int | None]],
) -> int:
    """Return what calls and results without each other add to a view.

    Of two results of one call one is sent.
    """
    answered: set[tuple[int | None, int | None]] = set()
    orphans = doubles = 0
    for call in results:
        if call[0] is None or not _is_visible(context, call[0]):
            orphans += 1
        elif call in answered:
            doubles += 1
        else:
            answered.add(call)
    made_up = 0 if context.policy.unanswered == "drop" else calls - len(answered)
    return made_up - doubles + (orphans if context.policy.orphans == "adopt" else -orphans)


def _is_visible(context: ViewContext, position: int) -> bool:
    seen = context.visible
    return position in seen.pinned or (position >= seen.first_kept and seen.shows(position))
