"""Searches by session: all words anywhere in a session.

First come sessions with a title or a message that has all words, in the order of these hits; then
sessions that have the words in several messages, by the last stored message with the rarest word.
Sessions that have them only with system and developer messages are last.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from ..history import lines, sessions
from ..records import Hit, Session, SessionHit
from .documents import Document
from .query import PROMPT_ROLES, TITLE, Match, Query
from .scope import Holder, SearchedTrees
from .terms import Term

if TYPE_CHECKING:
    from .hits import Search

MOST_SPREAD = 5_000
"""Messages with the rarest word whose sessions are searched for the other words."""
SPREAD_BATCH = 64
"""Trees of sessions that are searched at once."""

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

SpreadWords = dict[Document, set[Term]]
"""The messages of a session that have words of a search, and which."""


def find_resume_command(session: Session) -> str | None:
    """Return the command by which a session's program resumes it; None if there is none."""
    command = RESUME_COMMANDS.get(session.source or "")
    is_own = session.forked_from is None and "parent_session" not in session.metadata
    return command.format(session.id) if command and is_own else None


class SessionSearch:
    """A search by session in one state of the store; ``_best`` has the best hit of each session."""

    def __init__(
        self,
        connection: Connection,
        query: Query,
        trees: SearchedTrees,
        search: Callable[[Query], Search],
    ) -> None:
        self._connection, self._query = connection, query
        self._trees, self._search = trees, search
        self._best: dict[str, Hit] = {}
        self._late: dict[str, Hit] = {}

    def hits(self) -> list[SessionHit]:
        """Return the sessions that have the words, the best first."""
        for part in self._query.parts():
            self._take(self._part_hits(part))
            if len(self._query.terms) > 1 and not (part.prompts or part.partial):
                self._take(self._spread_hits())
        self._take(self._late.values())
        counts = self._count_hits()
        found = []
        for session_id, best in self._best.items():
            session = sessions.load_session(self._connection, session_id)
            found.append(
                SessionHit(session, counts[session_id], best, find_resume_command(session))
            )
        return found

    def _take(self, hits: Iterable[Hit]) -> None:
        """Take the hits of new sessions, while there is room."""
        limit = self._query.limit
        for hit in hits if len(self._best) < limit else ():
            self._best.setdefault(hit.session_id, hit)
            if len(self._best) >= limit:
                return

    def _part_hits(self, part: Query) -> Iterator[Hit]:
        """Yield hits of new sessions: of titles, of messages by words, of messages by names."""
        search = self._search(part)
        yield from search.title_hits()
        room = self._query.limit - len(self._best)
        yield from search.make_hits(islice(self._first_matches(search), room))
        yield from search.make_hits(
            match for match in search.name_matches() if match.holder.session_id not in self._best
        )

    def _first_matches(self, search: Search) -> Iterator[Match]:
        """Yield the first match of each new session."""
        seen = {*self._best}
        for match in search.word_matches():
            if match.holder.session_id not in seen:
                seen.add(match.holder.session_id)
                yield match

    def _spread_hits(self) -> Iterator[Hit]:
        """Yield hits of sessions that have the words in several messages.

        Those that need words of system and developer messages are kept for the end.
        """
        query = self._query._replace(partial=True)
        search = self._search(query)
        for words in self._spread_words():
            for session_id, found in words.items():
                said = {each: has for each, has in found.items() if each.role not in PROMPT_ROLES}
                is_said = len(set().union(*said.values())) == len(query.terms)
                texts = said if is_said else found
                best = max(texts, key=lambda each: (len(texts[each]), each.place))
                match = Match(best, self._get_holder(best, session_id), query.unranked_score)
                for hit in search.make_hits([match]):
                    if is_said:
                        yield hit
                    else:
                        self._late[session_id] = hit

    def _get_holder(self, document: Document, session_id: str) -> Holder:
        """Return how a session has a document: on its line, or on a branch that it left."""
        holders = self._iterate_holders(document)
        return next(each for each in holders if each.session_id == session_id)

    def _iterate_holders(self, document: Document) -> Iterator[Holder]:
        return self._trees[document.tree_id].iterate_holders(document.branch, document.origin)

    def _spread_words(self) -> Iterator[dict[str, SpreadWords]]:
        """Yield sessions that have all words, some at a time, with the messages that have them."""
        terms = self._query.terms
        rarest, *others = sorted(
            terms, key=lambda term: self._search(self._query._replace(terms=(term,))).count()
        )
        tree_ids = self._iterate_trees(islice(self._term_matches(rarest), MOST_SPREAD))
        while batch := [*islice(tree_ids, SPREAD_BATCH)]:
            words: dict[str, SpreadWords] = {}
            owners = set()
            for term in (rarest, *others):
                for match in self._term_matches(term, batch):
                    owners.add(match.holder.session_id)
                    for holder in self._iterate_holders(match.document):
                        found = words.setdefault(holder.session_id, {})
                        found.setdefault(match.document, set()).add(term)
            yield {
                session_id: found
                for session_id, found in words.items()
                if session_id in owners and len(set().union(*found.values())) == len(terms)
            }

    def _iterate_trees(self, matches: Iterable[Match]) -> Iterator[int]:
        """Yield the trees of matches, each once."""
        seen = set()
        for match in matches:
            if match.document.tree_id not in seen:
                seen.add(match.document.tree_id)
                yield match.document.tree_id

    def _term_matches(self, term: Term, tree_ids: list[int] | None = None) -> Iterator[Match]:
        """Return the messages with a term, the last stored first; only those of some trees."""
        trees = None if tree_ids is None else json.dumps(tree_ids)
        scope = self._query.scope._replace(trees=trees)
        query = self._query._replace(terms=(term,), scope=scope, order="newest")
        return self._search(query).matches()

    def _count_hits(self) -> Counter[str]:
        """Count the hits of the sessions found; messages with some words only if none has all."""
        counts = Counter(hit.session_id for hit in self._best.values() if hit.role == TITLE)
        tree_ids = {lines.load_pointer(self._connection, each).tree_id for each in self._best}
        scope = self._query.scope._replace(trees=json.dumps([*tree_ids]))
        for partial in (False, True):
            missing = {each for each in self._best if partial <= (not counts[each])}
            matches = self._search(self._query._replace(scope=scope, partial=partial)).matches()
            if missing:
                ids = (match.holder.session_id for match in matches)
                counts.update(each for each in ids if each in missing)
        return counts
