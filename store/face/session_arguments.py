"""The parameters that name the sessions of an operation.

The first argument names a session, unless the table here says otherwise. So a new operation counts
as one on a single session until it is added to the table.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from .. import history
from .. import search as searching
from .calls import Call

Arguments = dict[str, Any]
"""The arguments of an operation by the names of its parameters."""


@cache
def find_session_parameters() -> dict[Any, tuple[str, ...]]:
    """Return the operations whose first argument names no session, and the parameters that may.

    A draft is looked up among the drafts of the owner's sessions.
    """
    return {
        history.sessions.create_session: (),
        history.listing.list_sessions: ("tree", "after"),
        history.listing.count_sessions: ("tree",),
        history.lookup.find_messages_by_id: ("session",),
        history.usages.list_usages: ("session_id",),
        history.usages.compute_usage_totals: ("session_id",),
        history.heads.switch_branch: ("session_id", "of"),
        history.drafts.list_drafts: ("session_id",),
        history.drafts.finish_draft: (),
        history.drafts.discard_draft: (),
        history.message_notes.list_notes: ("session_id",),
        searching.hits.search: ("session",),
        searching.backlog.index: (),
    }


get_signature = cache(inspect.signature)


def bind_arguments(call: Call[Any]) -> inspect.BoundArguments:
    """Return the arguments of an operation; its connection is None."""
    return get_signature(call.operation).bind(None, *call.args, **call.options)


def list_named_sessions(call: Call[Any], given: Arguments) -> list[Any]:
    """Return the sessions that a call names; None for a required one that is missing."""
    names = find_session_parameters().get(call.operation)
    if names is None:
        parameters = [*get_signature(call.operation).parameters]
        return [given.get(first) for first in parameters[1:2]]
    return [given[name] for name in names if isinstance(given.get(name), str)]


def list_sessions_to_lock(call: Call[Any], given: Arguments) -> list[str]:
    """Return the sessions that a reading step locks, in order; a list of sessions locks none."""
    if call.operation in (history.listing.list_sessions, history.listing.count_sessions):
        return []
    return sorted({each for each in list_named_sessions(call, given) if isinstance(each, str)})
