"""Sessions, and the messages, branches, drafts and usages of their lines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..clock import format_moment
from ..errors import quote_value
from ..messages import Message

RESUME_COMMANDS = {
    "claude_code": "claude --resume {}",
    "codex": "codex resume {}",
    "copilot_cli": "copilot --resume {}",
    "droid": "droid --resume {}",
    "gemini_cli": "gemini --resume {}",
    "opencode": "opencode -s {}",
    "pi": "pi --session {}",
    "qwen_code": "qwen --resume {}",
}
"""The commands by which programs resume a session, by the kind of its transcript."""

TEXT_LIMIT = 10_000
"""Code points a title or a project's folder may have."""


class Session(NamedTuple):
    """A session: a named pointer to a head; ``head`` is also the number of messages on its line.

    ``branch`` is the branch of its head: with it a line can be read after the session has left it.
    ``revision`` is an opaque text that changes with each change of the session: an append, a move
    of its head, another title, other metadata. No revision occurs twice, even if a session with the
    same id is created anew. Data derived from a session (views, compactions, usages) does not
    change it. ``owner`` is the owner given when the session was created. ``source`` is the program
    that the session was imported from (None: it was made here), ``file`` the file.
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
    source: str | None = None
    file: str | None = None

    @property
    def resume(self) -> str | None:
        """The command by which the session's program resumes it; None if there is none."""
        command = RESUME_COMMANDS.get(self.source or "")
        is_own = self.forked_from is None and "parent_session" not in self.metadata
        return command.format(self.id) if command and is_own else None

    def __repr__(self) -> str:
        """Return the session in one line."""
        title = quote_value(self.title)
        return f"Session({quote_value(self.id)}, title={title}, head={self.head})"

    def _repr_html_(self) -> str:
        """Return the session for a notebook, in at most 20 KB."""
        from ..html import render_record

        shown = ("id", "head", "project_root", "owner", "source", "forked_from", "revision")
        values = ((name, getattr(self, name)) for name in shown)
        moments = (("created", self.created_at), ("last active", self.updated_at))
        facts = [(name, value) for name, value in values if value is not None]
        return render_record(
            self.title or "Session",
            [*facts, *((name, format_moment(moment)) for name, moment in moments)],
        )


class StoredMessage(NamedTuple):
    """A message on a line.

    ``message`` equals the message as it was given, ``stored_at`` is the time it was stored,
    ``digest`` is a SHA-256 of both.
    """

    seq: int
    message: Message
    stored_at: int
    digest: bytes

    def _repr_html_(self) -> str:
        """Return the message for a notebook, in at most 20 KB."""
        from ..html import ShownMessage, render_one_message

        return render_one_message(ShownMessage(self.seq, self.message, self.stored_at))


make_stored_message: Callable[[tuple[Any, ...]], StoredMessage] = partial(
    tuple.__new__, StoredMessage
)
"""Make a stored message from its fields; without a step of Python, as there may be thousands."""


class Found(NamedTuple):
    """The place of a message with a given id: the position ``seq`` of a session's branch."""

    session_id: str
    branch: int
    seq: int


class OpenCall(NamedTuple):
    """A tool call on a line that has no result yet.

    ``seq`` is the position of its message, ``position`` its place among the calls of the message,
    counted from 0. ``id`` is the id that its result names: its own, or the one that is sent for a
    call without one. ``arguments`` are an object, or the text of arguments that are no JSON.
    """

    seq: int
    position: int
    id: str
    name: str | None
    arguments: Any


class CallRecord(NamedTuple):
    """A tool call on a line, and how it ended.

    ``seq`` and ``position`` are its place, as in an `OpenCall`. ``kind`` is that of its tool by the
    table ``tool_kinds``, ``arguments`` are their JSON text. ``failed`` is the verdict of a view by
    ``Policy()``, ``seconds`` the time from the call's message to the result; both are None as long
    as there is no result, and the time is None if a message has none.
    """

    seq: int
    position: int
    name: str | None
    kind: str
    arguments: str | None
    failed: bool | None
    seconds: float | None


make_call_record: Callable[[tuple[Any, ...]], CallRecord] = partial(tuple.__new__, CallRecord)
"""Make a record from its fields; without a step of Python, as there may be thousands."""


class FileUse(NamedTuple):
    """A file that a tool call named: its path, relative to the project if it is in it.

    ``seq`` is the position of the call's result, ``call_seq`` that of the call's message (None: no
    call on the line). ``kind`` is that of the tool, such as ``file_read`` and ``file_edit``, ``at``
    the time of the result, in ms.
    """

    path: str
    seq: int
    call_seq: int | None
    kind: str
    at: int


class Turn(NamedTuple):
    """A turn of a line: its number, its first and last position, and the user's text.

    ``messages`` is the number of messages, ``started_at`` the time in the user's message (ms),
    otherwise the time it was stored.
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

    If there are several such branches, it is the one that was left last; if ``current``, the
    session's own.
    """

    branch: int
    seq: int
    message: Message
    current: bool


class Draft(NamedTuple):
    """The stored part of an answer that broke off, or that is being streamed now.

    ``draft`` is its id. ``head`` and ``branch`` name the message that it follows, ``at`` is the
    time of the last addition in ms. ``format`` is the intended format of the answer; None if it is
    found from the shape. ``live`` tells whether a process still writes it, however long no text
    came: false at most 5 s after the process was killed, or stopped.
    """

    draft: str
    session_id: str
    message: Message
    at: int
    branch: int
    head: int
    format: str | None
    live: bool = False


class HeadMove(NamedTuple):
    """One entry of a session's head-move log.

    ``kind`` is ``fork``, ``rewind``, ``switch``, ``undo`` or ``forget``, which erased all moves
    before it but a fork.
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

    They are counted by ``encoding``; this call counted ``counted`` of the ``messages`` newly.
    """

    encoding: str
    messages: int
    counted: int
    tokens: int


class Note(NamedTuple):
    """A note that an app stored under a key beside a message, in ``session_id``, and when (ms).

    The message is at the position ``seq`` of ``branch``; ``value`` is any JSON.
    """

    session_id: str
    branch: int
    seq: int
    key: str
    value: Any
    at: int


class Usage(NamedTuple):
    """The cost of a request as reported by the provider, and where and when (ms) it was made.

    It was made by ``session_id`` on its ``branch``, and ended with the position ``seq``. Some of
    the ``input`` tokens are ``cached``, some ``written`` to the provider's cache, all others plain.
    ``cost`` is in US dollars: the recorded cost, otherwise the cost by the prices; None if they do
    not have the ``model``. ``number`` distinguishes usages of the same position, from 1.
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
    """The total cost of requests by a key, such as the model; ``name`` is its value.

    By a list of keys it is a tuple of their values. ``cost`` is in US dollars, of the requests
    whose cost is known (None: of none); ``unpriced`` counts the others.
    """

    name: Any
    requests: int
    input: int
    output: int
    cached: int
    written: int
    cost: float | None
    unpriced: int
