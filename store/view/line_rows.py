"""The rows of a line as a view reads them."""

from __future__ import annotations

import json
from collections.abc import Collection, Container
from typing import NamedTuple

from sqlalchemy import case, null, select

from ..database import Row, Statement, json_sql, messages, tool_results
from ..history import CALLS_IN_RUN, Segment, lines, restore_calls, restore_messages
from .visible_set import ViewContext

_m = messages
_is_replaced = _m.c.seq.in_(json_sql.select_positions("replaced"))
VISIBLE_MESSAGES = Statement(
    select(
        _m.c.seq,
        _m.c.role,
        _m.c.name,
        _m.c.status,
        _m.c.tool_call_id,
        _m.c.created_at,
        _m.c.message_id,
        _m.c.extra,
        _m.c.content_form,
        case((_is_replaced, null()), else_=_m.c.content),
    )
    .where(lines.match_run(_m))
    .order_by(_m.c.seq)
)

_answering_results = tool_results
ANSWERED_CALL = Statement(
    select(
        _answering_results.c.call_seq,
        _answering_results.c.call_position,
        _answering_results.c.tool_name,
    ).where(lines.match_place(_answering_results))
)


class AnsweredCall(NamedTuple):
    """The place of the call that a result answers (None: of no call), and the name of its tool."""

    place: tuple[int, int] | None
    tool_name: str | None


class LineRows(NamedTuple):
    """The rows of visible messages and of their calls, in order, each with its position first.

    ``replaced`` has the texts that are sent in place of whole contents; these are not read.
    ``answered`` has the calls of results without a verdict: no rule judges a pinned one.
    """

    messages: list[Row]
    calls: list[Row]
    replaced: dict[int, str]
    answered: dict[int, AnsweredCall]

    def extend(self, new: LineRows, changed: Collection[int]) -> LineRows | None:
        """Return these rows followed by new ones, with the texts for ``changed`` results.

        None if the content of such a result is needed, which was not read.
        """
        if any(seq in self.replaced and seq not in new.replaced for seq in changed):
            return None
        rows = self.messages + new.messages
        for seq in new.replaced:
            place = seq - rows[0][0]  # a plain line has every position
            rows[place] = (*rows[place][:-1], None)
        replaced = self.replaced | new.replaced
        return LineRows(rows, self.calls + new.calls, replaced, self.answered | new.answered)


class LineUse:
    """The options of a line's view: a later one is rendered if its messages are explained."""

    __slots__ = ("is_explained",)

    def __init__(self) -> None:
        self.is_explained = False


def load_plain_rows(
    context: ViewContext, judged: Container[int], replaced: dict[int, str], runs: list[Segment]
) -> LineRows:
    """Return the rows of runs of a line, whose ``judged`` results have verdicts.

    Content that is replaced as a whole is not read. A result has to be read to find that its short
    form would not be shorter.
    """
    connection, tree_id = context.connection, context.pointer.tree_id
    rows, places = LineRows([], [], replaced, {}), sorted(replaced)
    asked = [(run.within(tree_id), json.dumps(run.of(places))) for run in runs]
    for values, unread in asked:
        CALLS_IN_RUN.send(connection, **values)
        VISIBLE_MESSAGES.send(connection, **values, replaced=unread)
    for values, unread in asked:
        calls = CALLS_IN_RUN.rows(connection, **values)
        found = VISIBLE_MESSAGES.rows(connection, **values, replaced=unread)
        rows.calls.extend(restore_calls(connection, values, calls))
        rows.messages.extend(restore_messages(connection, values, found))
    for seq in [row[0] for row in rows.messages if row[1] == "tool" and row[0] not in judged]:
        place = context.raw.place(seq)
        call_seq, position, tool_name = ANSWERED_CALL.one(connection, **place)
        call = None if call_seq is None else (call_seq, position)
        rows.answered[seq] = AnsweredCall(call, tool_name)
    return rows
