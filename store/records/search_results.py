"""Results of a search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .sessions import Session


class Hit(NamedTuple):
    """A message that matches a search, a summary (its last position), or a title (0).

    ``session_id`` is a session that has it on its line, or had it and left it: then ``on_line`` is
    False. Use ``branch`` to read the message and to switch to it. ``role`` is the role of the
    message, or ``summary`` or ``title``; ``at`` is the time in the message, otherwise the time it
    was stored; for a title the time its session was created (ms). ``marks`` are the places of the
    words in the ``snippet``. A higher ``score`` is better. ``compaction`` is the compaction of a
    summary.
    """

    session_id: str
    branch: int
    seq: int
    on_line: bool
    role: str
    at: int
    snippet: str
    score: float
    marks: tuple[tuple[int, int], ...]
    compaction: int | None = None


class Hits(list[Hit]):
    """Hits in their order; ``behind`` is the number of messages not yet searched (0: none)."""

    def __init__(self, hits: Iterable[Hit] = (), *, behind: int = 0) -> None:
        super().__init__(hits)
        self.behind = behind


class SessionHit(NamedTuple):
    """A session that matches a search.

    ``hits`` is the number of its hits, as a search by message has them; where no message has all
    words, of its messages with some of them. Where over 200 messages of the sessions found have a
    word only in a name, all that have its runs of three letters in their names are counted.
    ``best`` is the best one, ``resume`` the command by which the program that the session comes
    from resumes it (None: there is none).
    """

    session: Session
    hits: int
    best: Hit
    resume: str | None


class Passage(NamedTuple):
    """A recalled passage: the messages from ``first`` to ``last``, as a text.

    ``why`` it was out of sight: ``hidden`` by a summary, or the rule that replaced it. A higher
    ``score`` means more of the wanted words, and rarer ones.
    """

    first: int
    last: int
    why: str
    score: float
    text: str
    tokens: int


class Index(NamedTuple):
    """The index of a store: whether it is on, and how many messages and summaries it has.

    ``waiting`` counts those not yet indexed; ``size`` is its size in bytes, 0 for an owner's part.
    """

    on: bool
    messages: int
    waiting: int
    size: int
