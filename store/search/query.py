"""What a search is asked for, checked."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, literal_column, select

from ..clock import Now, given
from ..database import Statement, message_facts
from ..errors import InvalidValue, one_of, quoted
from ..records import Hit
from ..text import is_text
from .dialects import statement
from .documents import Row
from .scope import Counted, Of, Trees
from .terms import Term, terms

ORDERS = ("best", "newest")
MOST_HITS = 1_000
TITLE, SUMMARY = "title", "summary"
"""The roles of hits that are no messages."""
ROLES = ("user", "assistant", "tool", "system", "developer", "function", TITLE, SUMMARY)
"""The roles that hits mostly have; a message may have any other."""


class Asked(NamedTuple):
    """What is searched for, in what, in which order, and how much of it."""

    terms: tuple[Term, ...]
    of: Of
    roles: frozenset[str] | None
    tools: frozenset[str] | None
    since: int | None
    until: int | None
    order: str
    limit: int
    after: Hit | None

    def has_role(self, role: str) -> bool:
        """Tell whether hits of a role are asked for."""
        if self.tools is not None and role in (TITLE, SUMMARY):
            return False
        return self.roles is None or role in self.roles

    def has_row(self, row: Row) -> bool:
        """Tell whether rows of a role and a moment are asked for."""
        return self.has_role(row.role) and self.has_moment(row.at)

    def has_moment(self, at: int) -> bool:
        """Tell whether messages of a moment are asked for."""
        is_early = self.since is not None and at < self.since
        is_late = self.until is not None and at > self.until
        return not (is_early or is_late)


def asked(
    text: str,
    of: Of,
    roles: Iterable[str] | None,
    tools: Iterable[str] | None,
    since: Now,
    until: Now,
    order: str,
    limit: int,
    after: Hit | None,
) -> Asked:
    """Return what is asked for. Raises InvalidValue."""
    _check(text, order, limit, after)
    return Asked(
        tuple(terms(text)),
        of,
        _names("roles", roles),
        _names("tools", tools),
        _moment(since),
        _moment(until),
        order,
        limit,
        after,
    )


def _check(text: str, order: str, limit: int, after: Hit | None) -> None:
    if not isinstance(text, str):
        raise InvalidValue(f"what is searched for is a text, not {quoted(text)}")
    if not text.strip():
        raise InvalidValue("nothing is searched for: the text is empty; give a word at least")
    one_of(ORDERS, "order", order)
    if type(limit) is not int or not 0 <= limit <= MOST_HITS:
        raise InvalidValue(f"limit is a whole number from 0 to {MOST_HITS:,}, not {quoted(limit)}")
    if after is not None and not isinstance(after, Hit):
        raise InvalidValue(f"after is the last hit that was seen, not {quoted(after)}")


def _names(what: str, given: Iterable[str] | None) -> frozenset[str] | None:
    if given is None:
        return None
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    if not all(map(is_text, names)):
        raise InvalidValue(f"{what} are names, not {quoted(given)}")
    return frozenset(names)


HAS_ROLE = Statement(
    select(message_facts.c.role)
    .where(message_facts.c.role == bindparam("role"))
    .limit(literal_column("1"))
)


_ROLE_OF_OWNER = (
    "SELECT f.tree_id, f.branch, MIN(f.seq) FROM message_facts f WHERE f.role = :role{}"
    " GROUP BY f.tree_id, f.branch"
)


def check_roles(connection: Connection, wanted: Asked) -> None:
    """Raise InvalidValue for a role that no hit can have, since no message has it.

    For an owner it is one that none of the owner's messages has.
    """
    for role in sorted(wanted.roles or ()):
        if role not in ROLES and not _is_role(connection, role, wanted.of.owner):
            raise InvalidValue(f"no message has the role {quoted(role)}{_meant(role)}")


def _is_role(connection: Connection, role: str, owner: str | None) -> bool:
    if owner is None:
        return HAS_ROLE.value(connection, role=role) is not None
    of = Of(owner=owner, left=True)
    trees = Trees(connection, of)
    sql = _ROLE_OF_OWNER.format(of.within("f"))
    found = statement(sql).rows(connection, role=role, **of.limits)
    places = ((trees[tree], branch, seq) for tree, branch, seq in found)
    return any(tree.holder(branch, Counted(branch, seq, 0)) for tree, branch, seq in places)


def _meant(role: str) -> str:
    like = get_close_matches(role, ROLES, n=1)
    return f", did you mean {like[0]!r}?" if like else f"; roles are {', '.join(ROLES)}"


def _moment(moment: Now) -> int | None:
    return None if moment is None else given(moment)
