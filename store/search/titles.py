"""Titles that have what is asked for.

They may change at any time, so they are in no index: those of the newest sessions are read, as
they are now. When a session was created never changes, so whatever happens to sessions between two
pages, their order stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, literal_column, select

from ..database import Row, Statement, sessions
from ..records import Hit
from .query import TITLE, Asked
from .snippets import has, snippet
from .terms import first_word, folded

MOST = 5_000
"""Sessions whose titles are read: the newest, of those that are not archived."""
SCORE = 1e9


class Titled(NamedTuple):
    """A session's title, and what a hit tells of the session."""

    id: str
    owner: str | None
    branch: int
    at: int
    title: str | None


_titled = (
    select(*(sessions.c[name] for name in ("id", "owner", "head_branch", "created_at", "title")))
    .where(sessions.c.archived == literal_column("0"))
    .order_by(sessions.c.created_at.desc(), sessions.c.id.desc())
    .limit(literal_column(str(MOST)))
)
TITLES = Statement(_titled)
TITLES_OWNED = Statement(_titled.where(sessions.c.owner == bindparam("owner")))
TITLES_OF_TREE = Statement(_titled.where(sessions.c.tree_id == bindparam("tree")))


def titled(connection: Connection, asked: Asked) -> Iterator[Hit]:
    """Yield the titles that have all terms, those of the newest sessions first."""
    after = asked.after
    if not asked.has_role(TITLE) or (after is not None and after.role != TITLE):
        return
    first = first_word(asked.terms[0])
    rows = _titles(connection, asked)
    likely = (Titled(*row) for row in rows if first in folded(row[-1] or ""))
    found = (_hit(each, asked) for each in likely if _is_one(each, asked))
    for hit in found:
        if after is None or (hit.at, hit.session_id) < (after.at, after.session_id):
            yield hit


def _titles(connection: Connection, asked: Asked) -> list[Row]:
    of = asked.of
    if of.tree is not None:
        return TITLES_OF_TREE.rows(connection, tree=of.tree)
    if of.owner is not None:
        return TITLES_OWNED.rows(connection, owner=of.owner)
    return TITLES.rows(connection)


def _is_one(each: Titled, asked: Asked) -> bool:
    is_theirs = asked.of.has(each.id, each.owner)
    is_asked = is_theirs and each.title is not None and asked.has_moment(each.at)
    return is_asked and has(each.title or "", asked.terms)


def _hit(each: Titled, asked: Asked) -> Hit:
    line, marks = snippet(each.title or "", asked.terms)
    return Hit(each.id, each.branch, 0, True, TITLE, each.at, line, SCORE, marks)
