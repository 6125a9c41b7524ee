"""The messages that a compaction hides, and a transcript that shows all of them: what is too long is cut elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from .budget import Budget
from .history import read as stored
from .lines import Pointer
from .messages import Message
from .planning import Plan, plan
from .policy import Policy
from .records import StoredMessage
from .summaries import Fitted, fit

READ_AT_ONCE = 500
"""Messages that are read in one go: a transcript may have no room for more, and memory need not."""


def hidden(connection: Connection, policy: Policy, cost: Budget, todo: Plan) -> tuple[Plan, list[Message], str | None]:
    """Return a plan of which a transcript shows all messages, these, and the transcript: the cut moves back (A2.7).

    The transcript is None where none shows all.
    """
    pointer = cost.pointer
    read: list[StoredMessage] = []
    fitted = _fitted(connection, pointer, policy, todo, read)
    for boundary in (policy.boundary, "group"):
        if fitted.messages_shown == todo.messages:
            break
        reach = read[fitted.messages_shown].seq - todo.first if fitted.messages_shown else 0
        less = policy.model_copy(update={"boundary": boundary})
        smaller = plan(connection, pointer, less, cost.shown, tokens=cost.tokens, reach=reach)
        if not smaller.nothing:
            todo = smaller
            if todo.messages != fitted.messages_shown:  # else it is the transcript of just these already
                fitted = _fitted(connection, pointer, policy, todo, read)
    messages = [each.message for each in read if each.seq <= todo.last]
    return todo, messages, fitted.transcript if fitted.messages_shown == todo.messages else None


def _fitted(connection: Connection, pointer: Pointer, policy: Policy, todo: Plan, read: list[StoredMessage]) -> Fitted:
    hidden = _hidden(connection, pointer, todo, read)
    return fit((each.message for each in hidden), max_chars=policy.transcript_max_chars)


def _hidden(connection: Connection, pointer: Pointer, todo: Plan, read: list[StoredMessage]) -> Iterator[StoredMessage]:
    """Yield the messages that a plan hides; ``read`` are the first of them and get more as they are asked for."""
    yield from [each for each in read if each.seq <= todo.last]
    start = read[-1].seq + 1 if read else todo.first
    for first in range(start, todo.last + 1, READ_AT_ONCE):
        found = stored(connection, pointer.session_id, first, min(first + READ_AT_ONCE - 1, todo.last))
        fresh = [each for each in found if each.seq not in todo.pinned]
        read += fresh
        yield from fresh
