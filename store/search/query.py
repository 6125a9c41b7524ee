"""The checked query of a search, and the score of a document.

The score follows from the text alone, with the formula and the constants of BM25: the frequency of
each word, in which each further occurrence counts less, and the length of the text. The figures of
BM25 about all texts (the rarity of a word, the average length of texts) are left out: they would
change with the messages of others, so one owner's hits would reveal another's messages, and with
each new message, so pages would overlap. Since a hit has all words, their rarity hardly changes
the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, literal_column, select

from ..clock import Now, require_moment
from ..database import Statement, message_facts
from ..errors import InvalidValue, check_choice, quote_value
from ..messages import extract_name_lines, fold_text
from ..records import Hit
from ..text import is_text
from ..tools import parse_question_words
from .documents import Document
from .scope import Holder, Origin, Scope, SearchedTrees, cache_statement
from .terms import Term, count_term, has_terms, make_snippet, parse_terms

HIT_ORDERS = ("best", "newest", "rarest")
MOST_HITS = 1_000
MOST_PLACED = 20_000
"""Documents with a term whose trees are listed; a more frequent term is in most trees."""
TITLE, SUMMARY = "title", "summary"
"""The roles of hits that are no messages."""
HIT_ROLES = ("user", "assistant", "tool", "system", "developer", "function", TITLE, SUMMARY)
"""The usual roles of hits; a message may have any other role."""

SATURATION = 1.2
"""Occurrences of a word that give about half of the score in a text of the usual length."""
LENGTH_SHARE = 0.75
"""The share of it that depends on the length."""
USUAL_LENGTH = 1_000
"""Code points of a text of the usual length."""
NAME_SCORE = 0.0
"""The score of a document that has a term in a name only."""
LEAST_SCORE = 1e-6
"""The score of a document with the words by the index, but with none found in its text."""
UNRANKED_SCORE = 1.0
"""The score of documents with the words if they are not ranked: above all others."""
PARTIAL_SCORE = -2.0
"""The addition to the scores of documents that lack a term: they are below all others."""

SortKey = tuple[float, int, int, str, int, int]
"""The sort key of hits: their score or place, then the fields that distinguish them."""


class Query(NamedTuple):
    """The terms of a search, its scope and filters, the order and number of its hits.

    With ``any``, documents are found too that lack some of the terms. A search has parts, one after
    the other: one with ``prompts`` has only what apps and programs wrote (False: none of it), one
    that is ``partial`` only documents that lack a term. ``passed`` are trees whose further
    documents need not be found, which may become more during the search.
    """

    terms: tuple[Term, ...]
    scope: Scope
    roles: frozenset[str] | None
    tools: frozenset[str] | None
    since: int | None
    until: int | None
    order: str
    limit: int
    after: Hit | None
    any: bool = False
    prompts: bool | None = None
    partial: bool = False
    passed: AbstractSet[int] = frozenset()
    by: str = "message"

    @property
    def base_score(self) -> float:
        """The addition to the score of each document."""
        return PARTIAL_SCORE if self.partial else 0.0

    @property
    def name_score(self) -> float:
        """The score of a document that has a term in a name only."""
        return self.base_score + NAME_SCORE

    @property
    def unranked_score(self) -> float:
        """The score of documents with the words that are not ranked."""
        return self.base_score + UNRANKED_SCORE

    @property
    def is_filtered(self) -> bool:
        """Whether roles, tools or moments filter the hits."""
        return any(
            each is not None
            for each in (self.roles, self.tools, self.since, self.until, self.prompts)
        )

    def parts(self, *, is_after_prompt: bool = False) -> Iterator[Query]:
        """Yield the parts of the search from the last hit already seen on."""
        lacking = (False, True) if self.any and len(self.terms) > 1 else (False,)
        places = (False, True) if self.order == "best" else (None,)
        after = self.after
        for prompts in places:
            for partial in lacking:
                if after is not None:
                    is_prompt = prompts if prompts is None else is_after_prompt
                    is_partial = after.score <= PARTIAL_SCORE + UNRANKED_SCORE
                    if (is_prompt, is_partial) != (prompts, partial):
                        continue
                yield self._replace(prompts=prompts, partial=partial, after=after)
                after = None

    def has_text(self, text: str) -> bool:
        """Tell whether a text has all terms, or, in a partial search, some of them."""
        if not self.partial:
            return has_terms(text, self.terms)
        return 0 < sum(self.find_terms(text)) < len(self.terms)

    def find_terms(self, text: str) -> list[bool]:
        """Tell of each term whether the index finds a text by it: as words, or in a name."""
        folded, names = fold_text(text), fold_text(extract_name_lines(text))
        return [
            count_term(folded, term) > 0
            or (term.name_part is not None and fold_text(term.name_part) in names)
            for term in self.terms
        ]

    def score(self, folded: str) -> float:
        """Return the score of a folded text."""
        return self.base_score + max(
            LEAST_SCORE, score_text(folded, self.terms, partial=self.partial)
        )

    def has_role(self, role: str) -> bool:
        """Tell whether hits of a role pass the filters."""
        if self.tools is not None and role in (TITLE, SUMMARY):
            return False
        return self.roles is None or role in self.roles

    def has_document(self, document: Document) -> bool:
        """Tell whether a document's author, role and time pass the filters."""
        if self.prompts is not None and self.prompts != document.is_prompt:
            return False
        if not (self.roles is self.tools is None or self.has_role(document.role)):
            return False
        return self.since is self.until is None or self.has_moment(document.at)

    def has_moment(self, at: int) -> bool:
        """Tell whether messages of a time pass the filters."""
        is_early = self.since is not None and at < self.since
        is_late = self.until is not None and at > self.until
        return not (is_early or is_late)


class Match(NamedTuple):
    """A document that matches a query, a session that has it, and its score."""

    document: Document
    holder: Holder
    score: float

    def make_hit(self, text: str, terms: Iterable[Term], folded: str | None = None) -> Hit:
        """Return the match as a hit, with a line of its text around the terms."""
        document, holder, score = self
        line, marks = make_snippet(text, terms, folded)
        place = (holder.session_id, document.branch, document.seq, holder.on_line)
        record = document.record or None
        return Hit(*place, document.role, document.at, line, score, marks, record)

    @property
    def rank_key(self) -> SortKey:
        """The sort key where hits are ranked."""
        document, score = self.document, -self.score
        session_id, branch = self.holder.session_id, -document.branch
        return score, -document.at, -document.seq, session_id, branch, document.record

    @property
    def place_key(self) -> SortKey:
        """The sort key in the order of storing, the last first."""
        document, session_id = self.document, self.holder.session_id
        return -document.place, 0, -document.seq, session_id, -document.branch, document.record


def build_query(
    text: str,
    scope: Scope,
    roles: Iterable[str] | None,
    tools: Iterable[str] | None,
    since: Now,
    until: Now,
    order: str,
    limit: int,
    after: Hit | None,
    any: bool = False,  # noqa: A002 - the public name
) -> Query:
    """Return a query. Raises InvalidValue."""
    if not isinstance(text, str):
        raise InvalidValue(f"the query must be a text, not {quote_value(text)}")
    if not text.strip():
        raise InvalidValue("the query is empty; give at least one word")
    check_choice(HIT_ORDERS, "order", order)
    if type(limit) is not int or not 0 <= limit <= MOST_HITS:
        raise InvalidValue(
            f"limit must be a whole number from 0 to {MOST_HITS:,}, not {quote_value(limit)}"
        )
    if after is not None and not isinstance(after, Hit):
        raise InvalidValue(f"after must be the last hit already seen, not {quote_value(after)}")
    if order == "rarest":  # a question in words of a person
        text = " ".join(word.text for word in parse_question_words(text))
    return Query(
        tuple(parse_terms(text)),
        scope,
        _check_names("roles", roles),
        _check_names("tools", tools),
        None if since is None else require_moment(since),
        None if until is None else require_moment(until),
        order,
        limit,
        after,
        bool(any),
    )


def _check_names(option: str, value: Iterable[str] | None) -> frozenset[str] | None:
    if value is None:
        return None
    names = [value] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
    if not all(map(is_text, names)):
        raise InvalidValue(f"{option} are names, not {quote_value(value)}")
    return frozenset(names)


HAS_ROLE = Statement(
    select(message_facts.c.role)
    .where(message_facts.c.role == bindparam("role"))
    .limit(literal_column("1"))
)
_OWNED_ROLE = (
    "SELECT f.tree_id, f.branch, MIN(f.seq) FROM message_facts f WHERE f.role = :role{}"
    " GROUP BY f.tree_id, f.branch"
)


def check_roles(connection: Connection, query: Query) -> None:
    """Raise InvalidValue for a role that no hit can have, since no message has it.

    With an owner, only the owner's messages count.
    """
    for role in sorted(query.roles or ()):
        if role not in HIT_ROLES and not _has_role(connection, role, query.scope.owner):
            similar = get_close_matches(role, HIT_ROLES, n=1)
            roles = f"; roles are {', '.join(HIT_ROLES)}"
            advice = f", did you mean {similar[0]!r}?" if similar else roles
            raise InvalidValue(f"no message has the role {quote_value(role)}{advice}")


def _has_role(connection: Connection, role: str, owner: str | None) -> bool:
    """Tell whether a message has a role; with an owner, a message of theirs."""
    if owner is None:
        return HAS_ROLE.value(connection, role=role) is not None
    scope = Scope(owner=owner, left=True)
    trees = SearchedTrees(connection, scope)
    first_of_branches = cache_statement(_OWNED_ROLE.format(scope.tree_condition("f")))
    return any(
        trees[tree].find_holder(branch, Origin(branch, seq, 0))
        for tree, branch, seq in first_of_branches.rows(connection, role=role, **scope.parameters)
    )


def score_text(folded: str, terms: Sequence[Term], *, partial: bool = False) -> float:
    """Return the score of a folded text for terms as words: below 1.

    It is 0 if the text lacks a term, with ``partial`` if it lacks all.
    """
    length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(folded) / USUAL_LENGTH
    counts = [count_term(folded, term) for term in terms]
    if not (partial or all(counts)):
        return 0.0
    return sum(count / (count + SATURATION * length) for count in counts) / len(counts)
