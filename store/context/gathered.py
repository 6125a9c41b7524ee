"""What the store has of a request: the view, where its current turn begins, the todo list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select

from ..clock import Now, require_moment
from ..database import Statement, get_read_mark, tool_results
from ..formats import CHAT, Placed, format_named
from ..history import Line, find_request_turn, lines, load_chat_message
from ..messages import Message
from ..policy import Policy, checked
from ..ready import phrase
from ..records import View
from ..tools import is_all_done, recap
from ..view import ViewContext, compose_view, is_of_kind, load_view_context
from .at_files import Root, checked_root

LOOK_BACK = 2_000
"""Positions before the first visible one in which a todo list is looked for."""
LISTS = 4
"""Calls to todo tools, at most, that are asked for a recap."""

_segments = lines.segments_cte()
_r = tool_results
TODO_CALLS = Statement(
    select(_r.c.seq, _r.c.call_seq, _r.c.call_position)
    .select_from(_segments)
    .join(
        _r,
        (_r.c.tree_id == bindparam("tree_id"))
        & (_r.c.branch == _segments.c.branch)
        & _r.c.seq.between(_segments.c.first, _segments.c.last),
    )
    .where(is_of_kind("todo"), _r.c.call_seq.is_not(None))
    .order_by(_r.c.seq.desc())
    .limit(bindparam("limit"))
)


class Gathered(NamedTuple):
    """What the store has of a request."""

    view: View
    """The view in the format of the request."""
    placed: list[Placed]
    """The same before it is written in a format."""
    begins: int | None
    """Where the current turn begins; None: its input is not stored."""
    answered: bool
    """Whether the last stored turn has its answer."""
    recap: str | None
    """What is left to do, by the last todo list."""
    project_root: Root | None
    """Where the project's files are: as the caller says, else as the session does."""
    in_order: bool = False
    """Whether the view sends a message for each that is placed."""
    since: int | None = None
    """What is to be said of what was read, where it is kept (`get_read_mark`)."""

    @property
    def explained(self) -> Gathered:
        """The same without what is given to the caller, who may change it."""
        return self._replace(view=self.view._replace(messages=[]))


def gather(
    connection: Connection,
    session_id: str,
    policy: Policy,
    user_input: str | None = None,
    *,
    recap: bool = True,
    root: Root | None = None,
    at: int | None = None,
    now: Now = None,
    format: str = CHAT.name,  # noqa: A002 - the public name
) -> Gathered:
    """Return what the store has of a request: view, current turn, todo list.

    Raises SessionNotFound, PositionOutOfRange, and InvalidValue for an unknown format.
    """
    format_named(format)
    pointer, policy = lines.load_pointer(connection, session_id), checked(policy)
    last = lines.resolve_position(pointer, at)
    begins, answered, over = find_request_turn(Line(connection, pointer), last, user_input)
    view_context = load_view_context(
        connection,
        pointer,
        policy,
        last=last,
        now=require_moment(now),
        turn_over=over,
    )
    view = compose_view(view_context, format)
    return Gathered(
        view=view.written(format),
        placed=view.placed,
        begins=begins,
        answered=answered,
        recap=_recap(view_context, begins or last + 1) if recap else None,
        project_root=pointer.project_root if root is None else checked_root(root),
        in_order=view.sent is not None,
        since=get_read_mark(connection),
    )


def _recap(view_context: ViewContext, begins: int) -> str | None:
    """Return the recap of the last todo list that says any.

    Of one that was done before the turn that ``begins`` at a position there is none.
    """
    seq, found = next(_recaps(view_context), (0, ""))
    was_done = seq < begins and is_all_done(found)
    if not found or was_done:
        return None
    return phrase("todo_recap", view_context.policy.language, recap=found)


def _recaps(view_context: ViewContext) -> Iterator[tuple[int, str]]:
    """Yield what the last todo lists say, those that say nothing aside, by position."""
    for seq, arguments, result in _todo_lists(view_context):
        if found := recap(arguments, result, language=view_context.policy.language):
            yield seq, found


def _todo_lists(view_context: ViewContext) -> Iterator[tuple[int, object, object]]:
    """Yield the last calls to todo tools, the newest first.

    Each is the position of its result, its arguments, and what the result says.
    """
    rows = TODO_CALLS.rows(
        view_context.connection,
        **view_context.line,
        start=max(1, view_context.visible.first_kept - LOOK_BACK),
        last=view_context.last,
        kinds=json.dumps(dict(view_context.policy.tool_kinds)),
        limit=LISTS,
    )
    for seq, call_seq, call_position in rows:
        called = load_chat_message(view_context.raw, call_seq)
        result = load_chat_message(view_context.raw, seq)
        yield seq, _arguments(called["tool_calls"][call_position]), result.get("content")


def _arguments(call: Any) -> object:
    if not isinstance(call, dict):
        return None
    function: Message = call.get("function") or call
    return function.get("arguments")
