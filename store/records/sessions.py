"""What there is: sessions, and what stands on their lines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..messages import Message


class Session(NamedTuple):
    """A session: a named pointer to a head; ``head`` is also how many messages its line has.

    ``branch`` is the branch that its head is on: with it a line can be read after the session has
    left it. ``revision`` is an opaque text that is another one after each change of the session: an
    append, a move of its head, another title, other metadata. None comes again, not where a session
    of the same id is made anew either. What is made of a session (views, compactions, usages) does
    not change it. ``owner`` is whose it is, as whoever created it said.
    """

    id: str
    title: str | None
    head: int
    project_root: str | None
    metadata: dict[str, Any]
    created_at: int
    updated_at: int
    forked_from: str | None
    forked_at: int | None
    branch: int
    revision: str
    owner: str | None
    archived: bool


class StoredMessage(NamedTuple):
    """A message on a line.

    ``message`` equals what went in, ``stored_at`` is when, ``digest`` a SHA-256 of both.
    """

    seq: int
    message: Message
    stored_at: int
    digest: bytes


make_stored_message: Callable[[tuple[Any, ...]], StoredMessage] = partial(
    tuple.__new__, StoredMessage
)
"""Makes one of its fields; without a step of Python, for there may be thousands."""


class Found(NamedTuple):
    """Where a message of some id is: at the position ``seq`` of a session's branch."""

    session_id: str
    branch: int
    seq: int


class Turn(NamedTuple):
    """A turn of a line: its number, its first and last position, and what the user said.

    ``messages`` is how many there are, ``started_at`` when it was said (ms), else when stored.
    """

    turn: int
    first: int
    last: int
    text: str
    messages: int
    started_at: int


class Branch(NamedTuple):
    """A branch that a session can go back to, or the present one (``current``).

    It continues the branch ``parent`` (None: nothing) from the position ``forked_at``, and its line
    ends at ``head``. ``left_at`` is when it was last left (ms), None for the present one.
    """

    branch: int
    parent: int | None
    forked_at: int
    head: int
    left_at: int | None
    current: bool


class Sibling(NamedTuple):
    """A message that follows the same message as others do, and a branch that leads through it.

    Of several it is the one that was left last; the session's own where it is ``current``.
    """

    branch: int
    seq: int
    message: Message
    current: bool


class Draft(NamedTuple):
    """An answer that broke off, or is being streamed just now: what was kept of it.

    ``draft`` is its id. ``head`` and ``branch`` say behind which message it stands, ``at`` is when
    something was kept last, in ms: one to which nothing is added any more has lost its process.
    ``format`` is the one that it is to be of; None where its shape is to tell.
    """

    draft: str
    session_id: str
    message: Message
    at: int
    branch: int
    head: int
    format: str | None


class HeadMove(NamedTuple):
    """One entry of a session's head-move log.

    ``kind`` is ``fork``, ``rewind``, ``switch`` or ``undo``.
    """

    move: int
    kind: str
    from_position: int | None
    to_position: int
    moved_at: int
    from_branch: int | None
    to_branch: int


class TokenTotal(NamedTuple):
    """Tokens of a session's line.

    Counted by ``encoding``, ``counted`` of ``messages`` newly in this call.
    """

    encoding: str
    messages: int
    counted: int
    tokens: int


class Note(NamedTuple):
    """What an app noted under a key beside a message, in ``session_id``, and when (ms).

    The message is at the position ``seq`` of ``branch``; ``value`` is any JSON.
    """

    session_id: str
    branch: int
    seq: int
    key: str
    value: Any
    at: int


class Usage(NamedTuple):
    """What a request really cost, as the provider said, and where and when (ms) it was made.

    It was made by ``session_id`` on its ``branch``, and ended with the position ``seq``. Of the
    ``input`` some tokens are ``cached``, some ``written`` to the provider's cache, all others
    plain. ``cost`` is in US dollars: what was recorded, else what the price list says; None where
    that does not know the ``model``. ``number`` tells those of one place apart, from 1.
    """

    session_id: str
    branch: int
    seq: int
    model: str | None
    provider: str | None
    input: int
    output: int
    cached: int
    written: int
    cost: float | None
    details: dict[str, Any]
    at: int
    number: int = 1


class UsageTotal(NamedTuple):
    """What requests cost together, by the model, session, owner or day that ``name`` is.

    ``cost`` is in US dollars, of those whose cost is known (None: of none); of ``unpriced`` it is
    not.
    """

    name: str | None
    requests: int
    input: int
    output: int
    cached: int
    written: int
    cost: float | None
    unpriced: int
