"""Search: titles, then what has the words, then what has them in names.

Candidates come from the index, what was stored last first, as many as are taken, and from what the
index has not taken in yet. Each is a live row, so what was erased or redacted is none whatever the
index still holds; and one that a session has on its line, which is what an owner, or a session, is
limited by. All that counts candidates counts these, so nobody's search depends on others.

The next page begins after a hit that the caller has seen. Hits that are ranked are found again by
what they say of themselves, since neither score nor moment ever changes; those in the order of
storing by their place.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, dropwhile, groupby, islice
from operator import attrgetter

from sqlalchemy import Connection

from ..clock import Now
from ..database import Transactions
from ..history import lines
from ..history import sessions as known_sessions
from ..records import Hit, Hits
from . import index
from .backlog import look_through
from .candidates import NOWHERE, Bound, bound_of, in_names, in_words
from .documents import CHUNK, Row, texts
from .query import TITLE, Asked, asked, check_roles
from .scope import Of, Trees
from .scores import IN_NAMES, LEAST, UNRANKED, Found, order_of, rank_of, score
from .snippets import has, snippet
from .terms import folded
from .titles import titled

RANKED = 1_000
"""Messages that are ranked at most; where more have the words, what was stored last comes first."""
Query = Callable[[Connection, Asked, Bound], Iterator[Row]]
"""What yields rows of the index up to a place."""


def search(
    transactions: Transactions,
    text: str,
    *,
    owner: str | None = None,
    session: str | None = None,
    roles: Iterable[str] | None = None,
    tools: Iterable[str] | None = None,
    since: Now = None,
    until: Now = None,
    order: str = "best",
    limit: int = 20,
    after: Hit | None = None,
    left: bool = False,
) -> Hits:
    """Return the messages that have all words of a text: in what was said, in calls and results.

    Titles that have them come first, and summaries are found, too, as hits of the roles ``title``
    and ``summary``. Words in double quotes stand one after the other. Case and accents do not
    count; a part of a word is found in names: identifiers and paths. A message that several
    sessions share is one hit. ``owner``, ``session``, ``roles``, ``tools`` (calls of them, and
    results) and the moments ``since`` and ``until`` choose among them. With ``left`` messages are
    found, too, that no line of those sessions runs through any more.

    ``order`` is ``best``, or ``newest``: what was stored last comes first. So it is also where more
    than 1,000 messages have the words. ``after`` is the last hit already seen. A search takes at
    most 256 new messages into the index before, and looks through those that are not in it yet,
    what was stored last first, for 0.3 seconds at most; ``behind`` of what it returns is how many
    it did not look at, of the sessions that are asked for. Raises SessionNotFound, StoreError where
    searching is switched off, and InvalidValue, also for an empty text and for a role that no
    message has.
    """
    of = Of(session, known_sessions.validate_text("owner", owner), left)
    wanted = asked(text, of, roles, tools, since, until, order, limit, after)
    with transactions.reading() as connection:
        index.check_on(connection)
        is_behind = index.is_behind(connection, _of_tree(connection, of))
    if is_behind:
        index.take_step(transactions)
    with transactions.reading() as connection:
        check_roles(connection, wanted)
        found = Search(connection, wanted._replace(of=_of_tree(connection, of)))
        if not wanted.terms:
            return Hits()
        unread = found.look_through()
        return Hits(islice(found.hits(), limit), behind=unread)


def _of_tree(connection: Connection, of: Of) -> Of:
    """Return what is asked for, with the tree of the session. Raises SessionNotFound."""
    if of.session is None:
        return of
    return of._replace(tree=lines.load_pointer(connection, of.session).tree_id)


class Search:
    """A search in one state of the store."""

    def __init__(self, connection: Connection, wanted: Asked) -> None:
        self._connection, self._asked = connection, wanted
        self._trees = Trees(connection, wanted.of)
        after = wanted.after
        self._after = None if after is None or after.role == TITLE else after
        self._new: list[Found] = []

    def look_through(self) -> int:
        """Find what is not in the index, too; return how many messages were not looked at."""
        self._new, unread = look_through(self._connection, self._asked, self._trees)
        return unread

    def hits(self) -> Iterator[Hit]:
        """Yield what is found after the last hit already seen."""
        yield from titled(self._connection, self._asked)
        for found, text in self._read(self._in_words()):
            yield self._hit(found, text)
        for found, text in self._read(self._in_names()):
            yield self._hit(found, text)

    def rows(self) -> Iterator[Row]:
        """Yield the rows that have what is asked for, in no order that means anything."""
        yield from (found.row for found in self._stored(in_words))
        yield from (found.row for found, _ in self._read(self._in_names()))

    def _in_words(self) -> Iterator[Found]:
        """Yield what has all the words: ranked, where that is asked for and they are not too many.

        A later page goes on as the first one began, however many there are by then.
        """
        after = self._after
        if after is not None and after.score <= IN_NAMES:
            return
        found = self._stored(in_words)
        if self._asked.order == "best" and (after is None or after.score < UNRANKED):
            some = [*islice(found, RANKED + 1)]
            if after is not None or len(some) <= RANKED:
                ranked = sorted(self._scored([*some, *found]), key=lambda each: each.rank)
                seen = rank_of(after) if after is not None else None
                yield from (each for each in ranked if seen is None or each.rank > seen)
                return
        for each in self._stored_after(in_words):
            yield each._replace(score=UNRANKED)

    def _in_names(self) -> Iterator[Found]:
        """Yield what may have every term as words or in a name, and has not all as words."""
        after = self._after
        if after is not None and after.score <= IN_NAMES:
            yield from self._stored_after(in_names)
        else:
            yield from self._stored(in_names)

    def _stored_after(self, query: Query) -> Iterator[Found]:
        """Yield what was stored before the last hit already seen, or all.

        Where its message is no more, what was said before it.
        """
        after = self._after
        if after is None:
            return self._stored(query)
        place = (after.session_id, after.branch, after.seq, after.compaction or 0)
        bound = bound_of(self._connection, *place)
        if bound is None:
            return dropwhile(lambda each: each.row.at >= after.at, self._stored(query))
        seen = order_of(after, bound.place)
        return (each for each in self._stored(query, bound) if each.order > seen)

    def _stored(self, query: Query, bound: Bound = NOWHERE) -> Iterator[Found]:
        """Yield what the index has and what it has not, the last stored first."""
        is_named = query is in_names
        new = [each for each in self._new if (each.score == IN_NAMES) is is_named]
        new.sort(key=attrgetter("order"))
        stored = groupby(self._indexed(query, bound), key=lambda each: each.row.place)
        ordered = chain.from_iterable(sorted(group, key=attrgetter("order")) for _, group in stored)
        return heapq.merge(new, ordered, key=attrgetter("order"))

    def _indexed(self, query: Query, bound: Bound) -> Iterator[Found]:
        """Yield what the index has, of sessions, roles and moments that are asked for."""
        if not index.is_made(self._connection):
            return
        worth = IN_NAMES if query is in_names else UNRANKED
        rows = filter(self._asked.has_row, query(self._connection, self._asked, bound))
        while chunk := [*islice(rows, CHUNK)]:
            self._trees.read(row.tree_id for row in chunk)
            for row in chunk:
                if holder := self._trees[row.tree_id].holder(row.branch, row.counted):
                    yield Found(row, holder, worth)

    def _scored(self, found: list[Found]) -> Iterator[Found]:
        """Yield what has the words with its score."""
        for each, text in self._read(found):
            if each.score == UNRANKED:
                worth = score(folded(text), self._asked.terms)
                yield each._replace(score=max(LEAST, worth))
            else:
                yield each

    def _read(self, found: Iterable[Found]) -> Iterator[tuple[Found, str]]:
        """Yield what is found with what it says, of the tools that are asked for."""
        waiting = iter(found)
        while chunk := [*islice(waiting, CHUNK)]:
            said = texts(self._connection, [each.row for each in chunk], self._asked.tools)
            for each in chunk:
                text = said.get(each.row)
                if text is None or (each.score == IN_NAMES and not has(text, self._asked.terms)):
                    continue
                yield each, text

    def _hit(self, found: Found, text: str) -> Hit:
        row, holder, worth = found
        line, marks = snippet(text, self._asked.terms)
        place = (holder.session_id, row.branch, row.seq, holder.on_line)
        return Hit(*place, row.role, row.at, line, worth, marks, row.record or None)
