"""The end of a line replaced, or its last message taken off: a rewind, and what comes with it.

Nothing is deleted: undoing the rewind brings the old end back.
"""

from __future__ import annotations

from sqlalchemy import Connection

from ..clock import Now, require_moment
from ..records import Session, StoredMessage
from . import lines
from .append import MessageInput, append_batch, prepare_batch
from .heads import rewind
from .lines import Line
from .raw_messages import load_message_at
from .sessions import session


def replace(
    connection: Connection,
    session_id: str,
    after: int,
    messages: MessageInput,
    *,
    expected: str | None = None,
    now: Now = None,
    format: str | None = None,  # noqa: A002 - the public name
) -> Session:
    """Let other messages, or none, follow the position ``after``: rewind there and append, as one.

    Positions 1 to ``after`` stay. Whatever followed is kept on the branch that the head leaves;
    `undo_rewind` brings it back. ``expected`` is the revision that the session is to have (None:
    any), ``format`` names that of the messages as in `append`. Raises SessionNotFound, Conflict,
    PositionOutOfRange, InvalidMessage.
    """
    batch = prepare_batch(messages, require_moment(now), format)
    rewind(connection, session_id, after, expected=expected, now=batch.moment)
    append_batch(Line(connection, lines.lock_session(connection, session_id)), batch)
    return session(connection, session_id)


def pop(
    connection: Connection,
    session_id: str,
    *,
    expected: str | None = None,
    now: Now = None,
) -> StoredMessage | None:
    """Take the last message off a line, and return it; None where the line is empty.

    It is a rewind to before it: the message stays stored, and `undo_rewind` brings it back. Nobody
    else gets the same message. ``expected`` is the revision that the session is to have (None:
    any). Raises SessionNotFound, Conflict.
    """
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    if not pointer.head:
        return None
    last = load_message_at(Line(connection, pointer), pointer.head)
    rewind(connection, session_id, last.before, now=moment)
    return last.message
