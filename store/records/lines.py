"""What there is: sessions, and what stands on their lines."""

from __future__ import annotations

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


class Usage(NamedTuple):
    """What a request really cost, as the provider said, and where and when (ms) it was made."""

    seq: int
    input: int
    output: int
    cached: int
    at: int
