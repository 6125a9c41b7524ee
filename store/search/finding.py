"""Search: titles, then what has the words, then what has them in names.

Candidates come from the index as numbers, best first, as many as are taken; each is then looked up
among the live rows, so what was erased or redacted is none whatever the index still holds. A word
that very many messages have ranks nothing, and ranking all of them takes long: then the newest come
first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, func, literal_column, select

from ..clock import Now
from ..database import (
    Statement,
    Transactions,
    messages,
    positions,
    search_rows,
    summaries,
    tool_results,
)
from ..history import lines, raw
from ..history import sessions as known_sessions
from ..records import Hit, Hits
from . import index
from .asked import SUMMARY, Asked, asked, check_roles
from .candidates import Candidate, in_names, in_words
from .holders import Of, Trees
from .said import in_summary, said, tools_in
from .snippets import has, snippet
from .titles import titled

CHUNK = 64
"""Candidates that are looked up at once."""


class Row(NamedTuple):
    """A message or a summary that may be a hit."""

    number: int
    tree_id: int
    branch: int
    seq: int
    summary: int
    role: str
    at: int
    tool: str | None


_rows = search_rows.c
_at_row = and_(
    messages.c.tree_id == _rows.tree_id,
    messages.c.branch == _rows.branch,
    messages.c.seq == _rows.seq,
)
_result = and_(
    tool_results.c.tree_id == _rows.tree_id,
    tool_results.c.branch == _rows.branch,
    tool_results.c.seq == _rows.seq,
)
_listed = _rows.number.in_(positions("numbers"))
_no_summary = _rows.summary == literal_column("0")
FOUND = Statement(
    select(
        _rows.number,
        _rows.tree_id,
        _rows.branch,
        _rows.seq,
        _rows.summary,
        messages.c.role,
        func.coalesce(messages.c.created_at, messages.c.stored_at),
        tool_results.c.tool_name,
    )
    .select_from(search_rows)
    .join(messages, _at_row)
    .outerjoin(tool_results, _result)
    .where(_listed, _no_summary),
    row=Row,
)
_of_row = and_(summaries.c.tree_id == _rows.tree_id, summaries.c.summary == _rows.summary)
FOUND_SUMMARIES = Statement(
    select(
        _rows.number,
        _rows.tree_id,
        _rows.branch,
        _rows.seq,
        _rows.summary,
        literal_column(f"'{SUMMARY}'").label("role"),
        summaries.c.created_at,
        summaries.c.model.label("tool"),
    )
    .join(summaries, _of_row)
    .where(_listed),
    row=Row,
)
SUMMARY_TEXT = Statement(
    select(summaries.c.title, summaries.c.body).where(
        summaries.c.tree_id == bindparam("tree_id"),
        summaries.c.summary == bindparam("summary"),
    )
)


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
    than 5,000 messages have the words. ``after`` is the last hit already seen. A search takes at
    most 256 new messages into the index before; ``behind`` of what it returns tells that there are
    more, which `index` does. Raises SessionNotFound, StoreError where searching is switched off,
    and InvalidValue, also for an empty text and for a role that no message has.
    """
    of = Of(session, known_sessions.checked_text("owner", owner), left)
    wanted = asked(text, of, roles, tools, since, until, order, limit, after)
    behind = index.go_on(transactions)
    with transactions.reading() as connection:
        check_roles(connection, wanted)
        if session is not None:
            tree = lines.find(connection, session).tree_id
            wanted = wanted._replace(of=of._replace(tree=tree))
        found = Search(connection, wanted).hits() if wanted.terms else ()
        return Hits(islice(found, limit), behind=behind)


class Search:
    """A search in one state of the store."""

    def __init__(self, connection: Connection, wanted: Asked) -> None:
        self._connection, self._asked = connection, wanted
        self._trees = Trees(connection, wanted.of)

    def hits(self) -> Iterator[Hit]:
        """Yield what is found behind the last hit already seen."""
        yield from titled(self._connection, self._asked)
        yield from self.messages()

    def messages(self) -> Iterator[Hit]:
        """Yield them without titles."""
        if index.is_made(self._connection):
            yield from self._looked_up(in_words(self._connection, self._asked))
            yield from self._looked_up(in_names(self._connection, self._asked))

    def _looked_up(self, candidates: Iterable[Candidate]) -> Iterator[Hit]:
        """Yield the hits among candidates, in their order."""
        waiting = iter(candidates)
        while chunk := dict(islice(waiting, CHUNK)):
            rows = {row.number: row for row in self._rows([*chunk])}
            for number, score in chunk.items():
                hit = self._hit(rows[number], score) if number in rows else None
                if hit:
                    yield hit

    def _rows(self, numbers: list[int]) -> Iterator[Row]:
        """Yield the live rows of numbers that are of a role and a moment that is asked for."""
        listed = json.dumps(numbers)
        found = FOUND.rows(self._connection, numbers=listed)
        if min(numbers) < 0:
            found += FOUND_SUMMARIES.rows(self._connection, numbers=listed)
        for row in found:
            if self._asked.has_role(row.role) and self._asked.has_moment(row.at):
                yield row

    def _hit(self, row: Row, score: float) -> Hit | None:
        """Return a row as a hit, where a session that is asked for has it."""
        holder = self._trees[row.tree_id].holder(row.branch, row.seq)
        text = self._text(row) if holder else None
        if holder is None or text is None or (score == 0 and not has(text, self._asked.terms)):
            return None
        line, marks = snippet(text, self._asked.terms)
        place = (*holder[:1], row.branch, row.seq, holder.on_line)
        return Hit(*place, row.role, row.at, line, score, marks, row.number)

    def _text(self, row: Row) -> str | None:
        """Return what a row says; None where it is about other tools than those asked for."""
        if row.summary:
            title, body = SUMMARY_TEXT.one(
                self._connection, tree_id=row.tree_id, summary=row.summary
            )
            return in_summary(title, body)
        place = {"tree_id": row.tree_id, "branch": row.branch, "first": row.seq, "last": row.seq}
        (stored,), _ = raw.read_run(self._connection, place)
        if not self._asked.has_tool((row.tool, *tools_in(stored.message))):
            return None
        return said(stored.message)
