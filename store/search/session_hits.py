"""Searches by session: all words anywhere in a session.

First come sessions with a title or a message that has all words, in the order of these hits; then
sessions that have the words in several messages, by the last stored message with the rarest word.
Sessions that have them only with system and developer messages are last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice
from typing import Protocol

from sqlalchemy import Connection

from ..history import sessions
from ..records import Hit, SessionHit
from .documents import TEXT_BATCH, Document, list_trees
from .query import MOST_PLACED, TITLE, Match, Query
from .scope import Holder, SearchedTrees, cache_statement
from .terms import Term

MOST_SPREAD = 5_000
"""Messages with the rarest word whose sessions are searched for the other words."""
FIRST_SPREAD = 24
"""Trees that are searched for them first, as these often suffice."""
MOST_LISTED_TREES = 500
"""Trees that a query of the index lists."""
COUNTED_DOCUMENTS = 2_000, 10_000, 50_000
"""Documents that are counted of each word, until one word has fewer: that is the rarest."""

SpreadWords = dict[Document, set[Term]]
"""The messages of a session that have words of a search, and which."""


class MessageSearch(Protocol):
    """A search by message, as far as a search by session uses it."""

    def title_hits(self) -> Iterator[Hit]:
        """Yield the titles that match."""

    def word_matches(self) -> Iterator[Match]:
        """Yield the documents that match by words, the best first."""

    def name_matches(self) -> Iterator[Match]:
        """Yield the documents that may match by names."""

    def matches(self) -> Iterator[Match]:
        """Yield the documents that match, the last stored first."""

    def count_by_session(self) -> Counter[str]:
        """Count the documents of some trees that match, by session."""

    def make_hits(self, matches: Iterable[Match], /) -> Iterator[Hit]:
        """Yield matches as hits."""

    def count(self, most: int, /, *, with_names: bool = False) -> int:
        """Return how many documents of the index match by words, at most so many."""

    def tree_ids(self) -> set[int] | None:
        """Return the trees that may have the first term, and others; None if they are many."""


class SessionSearch:
    """A search by session in one state of the store.

    ``_best`` has the best hit of each session, ``_own`` the messages with some of the words that
    sessions were found to have in several messages.
    """

    def __init__(
        self,
        connection: Connection,
        query: Query,
        trees: SearchedTrees,
        search: Callable[[Query], MessageSearch],
    ) -> None:
        self._connection = connection
        self._trees, self._search = trees, search
        self._passed: set[int] = set()
        self._tree_count: int | None = None
        self._query = query._replace(passed=self._passed, by="session")
        if query.scope.tree is not None:
            self._query = self._limit_to([query.scope.tree])
        self._best: dict[str, Hit] = {}
        self._late: list[Hit] = []
        self._own: dict[str, set[Document]] = defaultdict(set)

    def hits(self) -> list[SessionHit]:
        """Return the sessions that have the words, the best first."""
        for part in self._query.parts():
            self._take(self._part_hits(part))
            if len(self._query.terms) > 1 and not (part.prompts or part.partial):
                self._take(self._spread_hits())
        self._take(self._late)
        found = sessions.load_sessions(self._connection, self._best.keys())
        counts = self._count_hits({tree_id for tree_id, _ in found.values()})
        loaded = {session_id: session for session_id, (_, session) in found.items()}
        return [
            SessionHit(loaded[each], counts[each], best, loaded[each].resume)
            for each, best in self._best.items()
        ]

    def _take(self, hits: Iterable[Hit]) -> None:
        """Take the hits of new sessions, while there are some and there is room."""
        limit = self._query.limit
        is_done = len(self._best) >= limit or self._is_whole_scope_passed()
        for hit in () if is_done else hits:
            self._best.setdefault(hit.session_id, hit)
            if len(self._best) >= limit:
                return

    def _part_hits(self, part: Query) -> Iterator[Hit]:
        """Yield hits of new sessions: of titles, of messages by words, of messages by names."""
        search = self._search(part)
        yield from search.title_hits()
        if part.tools is None and not part.partial:
            room = self._query.limit - len(self._best)
            yield from search.make_hits(islice(self._first_matches(search), room))
        else:
            yield from self._read_hits(search, search.word_matches())
        yield from self._read_hits(search, search.name_matches())

    def _read_hits(self, search: MessageSearch, matches: Iterator[Match]) -> Iterator[Hit]:
        """Yield hits of new sessions among doubtful matches, with hardly more texts than needed."""
        new = (match for match in matches if match.holder.session_id not in self._best)
        most = 1
        while batch := [*islice(new, most)]:
            hits = [*search.make_hits(batch)]
            yield from hits
            for match in batch if hits else ():
                self._pass_tree(match, self._best)
            if hits and self._is_whole_scope_passed():
                return
            most = 1 if hits else min(2 * most, TEXT_BATCH)

    def _first_matches(self, search: MessageSearch) -> Iterator[Match]:
        """Yield the first match of each new session."""
        seen = {*self._best}
        for match in search.word_matches():
            if match.holder.session_id not in seen:
                seen.add(match.holder.session_id)
                self._pass_tree(match, seen)
                yield match
                if self._is_whole_scope_passed():
                    return

    def _pass_tree(self, match: Match, seen: Container[str]) -> None:
        """Ask nothing more of the tree of a match if all its sessions have been found."""
        tree_id = match.document.tree_id
        if all(each in seen for each in self._trees[tree_id].session_ids):
            self._passed.add(tree_id)

    def _is_whole_scope_passed(self) -> bool:
        """Tell whether all sessions of the scope have been found."""
        if self._tree_count is None:
            scope = self._query.scope
            trees = f"SELECT DISTINCT tree_id FROM sessions x WHERE true{scope.tree_condition('x')}"
            count = cache_statement(f"SELECT COUNT(*) FROM ({trees} LIMIT :most) AS trees")
            values = scope.parameters | {"most": self._query.limit + 1}
            self._tree_count = count.value(self._connection, **values)
        return len(self._passed) >= self._tree_count

    def _spread_hits(self) -> Iterator[Hit]:
        """Yield hits of sessions that have the words in several messages.

        Those that need words of system and developer messages are kept for the end.
        """
        for session_id, found in self._spread_words():
            said = {each: has for each, has in found.items() if not each.is_prompt}
            if self._has_all(said):
                yield from self._make_spread_hit(session_id, said)
            else:
                self._late += self._make_spread_hit(session_id, found)

    def _has_all(self, words: SpreadWords) -> bool:
        """Tell whether messages have all words together."""
        return len(set().union(*words.values())) == len(self._query.terms)

    def _make_spread_hit(self, session_id: str, words: SpreadWords) -> Iterator[Hit]:
        """Yield the message with most of the words; none if it has all, as another part has it."""
        query = self._query._replace(partial=True)
        best = max(words, key=lambda each: (len(words[each]), each.place, each.seq))
        holder = next(each for each in self._holders(best) if each.session_id == session_id)
        yield from self._search(query).make_hits([Match(best, holder, query.unranked_score)])

    def _holders(self, document: Document) -> Iterator[Holder]:
        return self._trees[document.tree_id].iterate_holders(document.branch, document.origin)

    def _spread_words(self) -> Iterator[tuple[str, SpreadWords]]:
        """Yield sessions that have all words, with the messages that have them.

        The last stored message with the rarest word decides the order.
        """
        counts = self._count_terms()
        terms = sorted(counts, key=counts.__getitem__)
        matches = islice(self._rarest_matches(terms[0], counts), MOST_SPREAD)
        seen: set[str] = set()
        loaded: set[int] = set()
        words: dict[str, SpreadWords] = {}
        for batch in self._batch_matches(matches):
            new = {match.document.tree_id for match in batch} - loaded
            loaded |= new
            words |= self._load_words(terms, new)
            for match in batch:
                for session_id in self._session_ids(match):
                    found = words.pop(session_id, {}) if session_id not in seen else {}
                    seen.add(session_id)
                    if self._own[session_id] and self._has_all(found):
                        yield session_id, found

    def _load_words(self, terms: list[Term], tree_ids: set[int]) -> dict[str, SpreadWords]:
        """Return the messages with words of sessions that have all of them, in some trees.

        A tree is read no further where none of its sessions has the words so far, the rarest first.
        """
        words: dict[str, SpreadWords] = {}
        for number, term in enumerate(terms, start=1):
            if tree_ids:
                self._add_words(words, term, tree_ids)
            left = {
                session_id: found
                for session_id, found in words.items()
                if len(set().union(*found.values())) == number
            }
            for session_id in words.keys() - left.keys():
                self._own.pop(session_id, None)
            words = left
            tree_ids = {each.tree_id for found in words.values() for each in found}
        return words

    def _batch_matches(self, matches: Iterable[Match]) -> Iterator[list[Match]]:
        """Yield matches in batches, the first of few trees, each later one of twice as many."""
        batch: list[Match] = []
        trees: set[int] = set()
        most = FIRST_SPREAD
        for match in matches:
            batch.append(match)
            trees.add(match.document.tree_id)
            if len(trees) == most:
                yield batch
                batch, most = [], 2 * most
        yield batch

    def _rarest_matches(self, rarest: Term, counts: dict[Term, int]) -> Iterator[Match]:
        """Yield the documents with the rarest word in trees that may have all placed words."""
        trees: set[int] | None = None
        for term in self._placed_terms(rarest, counts):
            with_term = self._search(self._query._replace(terms=(term,))).tree_ids()
            if with_term is not None:
                trees = (with_term if trees is None else trees & with_term) - self._passed
        if trees is None or len(trees) > MOST_LISTED_TREES:
            for match in self._term_matches(rarest):
                if trees is None or match.document.tree_id in trees:
                    yield match
        elif trees:
            yield from self._term_matches(rarest, trees)

    def _placed_terms(self, rarest: Term, counts: dict[Term, int]) -> list[Term]:
        """Return the terms by whose trees others are left out, the rarest first.

        All that are not too frequent have to be among them where the rarest has so many documents,
        with those that have it in a name, that not all are looked at.
        """
        if self._count_term(rarest, MOST_SPREAD + 1, with_names=True) > MOST_SPREAD:
            counts = {term: self._count_term(term, MOST_PLACED + 1) for term in counts}
            most = MOST_PLACED
        else:
            most = min(MOST_PLACED, COUNTED_DOCUMENTS[0] - 1)
        return [term for term in sorted(counts, key=counts.__getitem__) if counts[term] <= most]

    def _count_terms(self) -> dict[Term, int]:
        """Count documents of each word, as far as needed to know the rarest one."""
        counts: dict[Term, int] = {}
        for most in COUNTED_DOCUMENTS:
            counts = {term: self._count_term(term, most) for term in self._query.terms}
            if min(counts.values()) < most:
                break
        return counts

    def _count_term(self, term: Term, most: int, *, with_names: bool = False) -> int:
        search = self._search(self._query._replace(terms=(term,)))
        return search.count(most, with_names=with_names)

    def _add_words(
        self, words: dict[str, SpreadWords], term: Term, tree_ids: Iterable[int]
    ) -> None:
        """Add the messages of some trees with a term, and to those of one session its own."""
        for match in self._term_matches(term, tree_ids):
            self._own[match.holder.session_id].add(match.document)
            for session_id in self._session_ids(match):
                found = words.setdefault(session_id, {})
                found.setdefault(match.document, set()).add(term)

    def _session_ids(self, match: Match) -> Iterable[str]:
        """Return the sessions that have the document of a match; some may come twice."""
        if len(self._trees[match.document.tree_id].session_ids) == 1:
            return (match.holder.session_id,)
        return (holder.session_id for holder in self._holders(match.document))

    def _term_matches(self, term: Term, tree_ids: Iterable[int] | None = None) -> Iterator[Match]:
        """Return the messages with a term, the last stored first; only those of some trees."""
        query = self._query if tree_ids is None else self._limit_to(tree_ids)
        query = query._replace(terms=(term,), order="newest")
        return self._search(query).matches()

    def _limit_to(self, tree_ids: Iterable[int]) -> Query:
        """Return the query, limited to some trees."""
        trees = list_trees(self._connection, tree_ids)
        scope = self._query.scope._replace(trees=trees, is_wide=False)
        return self._query._replace(scope=scope, passed=frozenset())

    def _count_hits(self, tree_ids: Iterable[int]) -> dict[str, int]:
        """Count the hits of the sessions found, which are in some trees.

        Messages with some of the words count only if none has all.
        """
        counts = Counter(hit.session_id for hit in self._best.values() if hit.role == TITLE)
        query = self._limit_to(tree_ids)
        counts.update(self._search(query).count_by_session())
        own = {each: len(self._own[each]) for each in self._best if self._own[each]}
        if not self._best.keys() <= {*own, *counts}:
            own |= self._search(query._replace(partial=True)).count_by_session()
        return own | counts
