"""What a search gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Hit(NamedTuple):
    """A message that has what was searched for, a summary (its last position), or a title (0).

    ``session_id`` is a session that has it on its line, or had it and left it: then ``on_line`` is
    False. With ``branch`` the message is read, and switched to. ``role`` is that of the message, or
    ``summary`` or ``title``; ``at`` is when it was said, as far as it tells, else stored; of a
    title when its session was created (ms). ``marks`` are the places of the words in the
    ``snippet``. The higher the ``score``, the better. ``compaction`` is that of a summary.
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
    """Hits in their order; ``behind`` is how many messages were not looked at (0: all were)."""

    def __init__(self, hits: Iterable[Hit] = (), *, behind: int = 0) -> None:
        super().__init__(hits)
        self.behind = behind


class Passage(NamedTuple):
    """What was called back: the messages from ``first`` to ``last``, as a text.

    ``why`` it was out of sight: ``hidden`` behind a summary, or the rule that replaced it. The
    higher the ``score``, the more of what was wanted is in it, and the rarer that is.
    """

    first: int
    last: int
    why: str
    score: float
    text: str
    tokens: int


class Index(NamedTuple):
    """The index of a store: whether it is on, and how many messages and summaries it has.

    ``waiting`` are those that it has not; ``size`` is what it takes in bytes, of an owner's part 0.
    """

    on: bool
    messages: int
    waiting: int
    size: int
