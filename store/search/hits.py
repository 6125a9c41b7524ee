"""Search: titles, then documents with all the words, then documents with the words in names.

Candidates come from the index, the last stored first and only as many as needed, and from the
backlog of messages that are not indexed yet. Each candidate is a live row, so an erased or redacted
message is never found, whatever the index still holds. Each is on the line of a session in the
scope, which limits a search to an owner or a session. All limits count only such candidates, so
the search of one owner does not depend on others.

The next page begins after the last hit that the caller has seen. A ranked hit is found again by its
own fields, since neither score nor time ever changes; a hit in the order of storing by its place.

Titles may change at any time, so they are not indexed: the current titles of the newest sessions
are read. The creation time of a session never changes, so the order of sessions is the same on
every page.

A lazily written index lags when it matters most: right after an import, and while many processes
write. So its missing messages are read, the last stored first, only those of the searched
sessions, and within the time limit of a search. They match by the same rules as in the index: by
the words of a text, or by parts of the names in it.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, dropwhile, groupby, islice, tee
from operator import attrgetter
from typing import Literal, NamedTuple, overload

from sqlalchemy import ColumnElement, Connection, bindparam, func, literal_column, select

from ..clock import Now
from ..database import Row, Statement, Transactions
from ..database import sessions as sessions_table
from ..errors import InvalidValue, StoreError, check_choice, check_progress
from ..history import NO_LIMIT, lines, sessions
from ..messages import fold_text
from ..records import Hit, Hits, Index, ProgressCallback, SessionHit
from ..summaries import SYSTEM_ROLES
from .documents import (
    AFTER_MESSAGES,
    MESSAGE_CONDITION,
    RECORD_CONDITION,
    TEXT_BATCH,
    Document,
    get_index_sql,
    list_message_columns,
    list_summary_columns,
    list_trees,
    load_texts,
    mark_programs,
    plan_by_values,
)
from .index import (
    SEARCH_IS_OFF,
    has_index,
    index_all,
    try_index_step,
)
from .index_queries import (
    NO_MESSAGES,
    UNBOUNDED,
    CandidateQuery,
    HeldCounts,
    UpperBound,
    add_index_words,
    count_documents,
    list_trees_of_term,
    select_by_names,
    select_by_words,
)
from .index_ranges import is_wide_scope
from .index_state import build_unindexed_sql, is_index_behind, is_search_on
from .query import (
    TITLE,
    Match,
    Query,
    build_query,
    check_roles,
    score_text,
)
from .rarity import find_rarest
from .scope import Holder, Scope, SearchedTrees, cache_statement
from .session_hits import SessionSearch
from .terms import get_first_word, has_term, make_snippet

RESULT_UNITS = ("message", "session")
"""What the hits of a search are."""
BACKLOG_SECONDS = 0.3
"""The seconds of a search that the backlog may take."""
BACKLOG_BATCH = 32
"""Messages that are read at once."""
LEAST_READ = 32
"""Messages that are read regardless of the time, which may pass without progress when busy."""
MOST_LISTED = 20_000
"""Messages that are listed: more than can be read in that time."""

MOST_RANKED = 1_000
"""Messages that are ranked at most; if more have the words, the last stored comes first."""
MOST_READ_NAMES = 200
"""Messages found by names that are read; if there are more, the index alone decides."""
MOST_TITLES = 5_000
"""Sessions whose titles are read: the newest, of those that are not archived."""
TITLE_SCORE = 1e9

_titled_sessions = (
    select(
        *(sessions_table.c[name] for name in ("id", "owner", "head_branch", "created_at", "title"))
    )
    .where(sessions_table.c.archived == literal_column("0"))
    .order_by(sessions_table.c.created_at.desc(), sessions_table.c.id.desc())
    .limit(literal_column(str(MOST_TITLES)))
)


def _build_title_list(*conditions: ColumnElement[bool]) -> Statement[Row]:
    """Build the list of titles; a server leaves out those that lack the first word.

    It compares only titles of ASCII, whose case and accents are the same everywhere.
    """
    newest = _titled_sessions.where(*conditions)
    rows = newest.subquery("newest")
    is_other = func.octet_length(rows.c.title) != func.char_length(rows.c.title)
    has_word = func.strpos(func.lower(rows.c.title), bindparam("first")) > literal_column("0")
    on_server = select(*rows.c).where(is_other | has_word)
    return Statement(
        newest, on_server=on_server.order_by(rows.c.created_at.desc(), rows.c.id.desc())
    )


LIST_TITLES = _build_title_list()
LIST_TITLES_OWNED = _build_title_list(sessions_table.c.owner == bindparam("owner"))
LIST_TITLES_OF_TREE = _build_title_list(sessions_table.c.tree_id == bindparam("tree"))


SelectedDocuments = dict[object, Iterator[Document]]
"""The documents that were selected from the index, from the first on, by what they have."""


class UnindexedText(NamedTuple):
    """A document of the backlog that has a term of a query, a session that has it, and its text."""

    document: Document
    holder: Holder
    text: str


class Backlog(NamedTuple):
    """The documents of the backlog with a term, and how many messages of it were not read."""

    texts: list[UnindexedText]
    unread: int


def read_backlog(connection: Connection, query: Query, trees: SearchedTrees) -> Backlog:
    """Read the documents without an entry in the index, as long as there is time."""
    texts: list[UnindexedText] = []
    if not is_index_behind(connection, query.scope):
        return Backlog(texts, 0)
    deadline = time.monotonic() + BACKLOG_SECONDS
    count, documents = 0, _list_unindexed(connection, query.scope, trees)
    while batch := mark_programs(connection, [*islice(documents, BACKLOG_BATCH)]):
        wanted = [document for document in batch if query.has_document(document)]
        loaded = load_texts(connection, wanted, query.tools)
        for document in batch:
            if count >= LEAST_READ and time.monotonic() > deadline:
                unread = _count_unindexed(connection, query.scope, trees) - count
                return Backlog(texts, unread)
            count += 1
            folded = fold_text(text := loaded.get(document, ""))
            holder = trees[document.tree_id].find_holder(document.branch, document.origin)
            if holder and any(has_term(folded, term) for term in query.terms):
                texts.append(UnindexedText(document, holder, text))
    is_complete = count < MOST_LISTED
    unread = 0 if is_complete else _count_unindexed(connection, query.scope, trees) - count
    return Backlog(texts, unread)


def _score_unindexed(text: str, query: Query) -> float | None:
    """Return the score of a text; None if the index would not find it."""
    folded, terms = fold_text(text), query.terms
    if not query.has_text(text):
        return None
    if score := score_text(folded, terms, partial=query.partial):
        return query.base_score + score
    is_found = query.partial or all(query.find_terms(text))
    return query.name_score if is_found else None


def _list_unindexed(
    connection: Connection, scope: Scope, trees: SearchedTrees
) -> Iterator[Document]:
    """Yield the documents of a scope without an entry: messages, then summaries."""
    new = build_unindexed_sql(connection, scope)
    query = f"""SELECT {list_message_columns(connection)} FROM {new.messages}
    WHERE {new.messages_where}
    ORDER BY m.{new.order} DESC, m.seq DESC, m.branch DESC, m.tree_id DESC LIMIT {MOST_LISTED}"""
    rows = cache_statement(query).scan(connection, **scope.parameters)
    messages = map(Document._make, rows)
    for document in chain(messages, _list_unindexed_summaries(connection, scope)):
        if trees[document.tree_id].find_holder(document.branch, document.origin):
            yield document


def _list_unindexed_summaries(connection: Connection, scope: Scope) -> Iterator[Document]:
    """Return the summaries without an entry, the newest first."""
    new = build_unindexed_sql(connection, scope)
    query = f"""SELECT {list_summary_columns(connection)} FROM {new.summaries}
    JOIN compaction_records c ON {RECORD_CONDITION}
    WHERE {new.summaries_where} ORDER BY place DESC"""
    rows = cache_statement(query).rows(connection, **scope.parameters)
    return map(Document._make, rows)


def _count_unindexed(connection: Connection, scope: Scope, trees: SearchedTrees) -> int:
    """Return how many documents `_list_unindexed` would yield if it yielded all."""
    new = build_unindexed_sql(connection, scope)
    count = 0
    for document in _list_unindexed_summaries(connection, scope):
        if trees[document.tree_id].find_holder(document.branch, document.origin):
            count += 1
    query = f"""SELECT m.tree_id, m.branch, MAX(m.seq), COUNT(*) FROM {new.messages}
    WHERE {new.messages_where} GROUP BY m.tree_id, m.branch"""
    for tree_id, branch, last, messages in cache_statement(query).rows(
        connection, **scope.parameters
    ):
        beyond = max(0, last - trees[tree_id].last_position(branch))
        count += max(0, messages - beyond)
    return count


def index(
    transactions: Transactions,
    *,
    owner: str | None = None,
    progress: ProgressCallback | None = None,
) -> Index:
    """Index all documents that are not indexed yet; return the state of an owner's index.

    The documents of other owners are indexed too, since the index follows the order of storing.
    Other writers can write between the steps. Raises StoreError.
    """
    check_progress(progress)
    scope = Scope(owner=owner, left=True)
    if progress is None:
        index_all(transactions)
    else:
        with transactions.reading() as connection:
            total = sum(_count_index(connection, scope))
        told = partial(_tell_own_progress, transactions, scope, progress, total)
        index_all(transactions, lambda *_: told())
    with transactions.reading() as connection:
        entries, unindexed = _count_index(connection, scope)
        return Index(is_search_on(connection), entries, unindexed, 0)


def _tell_own_progress(
    transactions: Transactions, scope: Scope, progress: ProgressCallback, total: int
) -> None:
    """Tell how many documents of a scope are in the index: those of others are not counted."""
    with transactions.reading() as connection:
        waiting = _count_unindexed(connection, scope, SearchedTrees(connection, scope))
    progress(max(0, total - waiting), total)


def _count_index(connection: Connection, scope: Scope) -> tuple[int, int]:
    """Return how many documents of a scope are in the index, and how many are not."""
    trees = SearchedTrees(connection, scope)
    messages = f"""SELECT {list_message_columns(connection)} FROM search_rows r
    JOIN messages m ON {MESSAGE_CONDITION} WHERE r.summary = 0{scope.tree_condition("r")}"""
    summaries = f"""SELECT {list_summary_columns(connection)} FROM search_rows r
    JOIN summaries s ON s.tree_id = r.tree_id AND s.summary = r.summary
    JOIN compaction_records c ON {RECORD_CONDITION}
    WHERE r.summary > 0{scope.tree_condition("r")}"""
    entries = 0
    for query in (messages, summaries):
        for row in cache_statement(query).scan(connection, **scope.parameters):
            document = Document._make(row)
            if trees[document.tree_id].find_holder(document.branch, document.origin):
                entries += 1
    return entries, _count_unindexed(connection, scope, trees)


@overload
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
    any: bool = False,
    by: Literal["message"] = "message",
) -> Hits: ...


@overload
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
    any: bool = False,
    by: Literal["session"],
) -> list[SessionHit]: ...


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
    any: bool = False,  # noqa: A002 - the public name
    by: str = "message",
) -> Hits | list[SessionHit]:
    """Return the messages with all words of a text, or the sessions that have them.

    The words are in the texts, calls and results of a message, or anywhere in a session
    (``by="session"``). With ``any``, those that lack some of the words follow those that have all.
    Titles with the words come first, and summaries are found too, as hits of the roles ``title``
    and ``summary``. Words in double quotes must be adjacent. Case and accents do not count; parts
    of words are found in names, that is in identifiers and paths. A message that several sessions
    share is one hit. ``owner``, ``session``, ``roles``, ``tools`` (their calls and results) and the
    moments ``since`` and ``until`` filter the hits. With ``left``, messages are found too that the
    lines of these sessions have left.

    ``order`` is ``best``, with what apps and programs wrote last (system and developer messages,
    reminders in the role of the user), or ``newest``: the last stored first. The latter is used too
    if more than 1,000 messages have the words. ``rarest``, for questions, gives messages with some
    of the words, those with the rarest ones first, without a next page and titles; words that say
    nothing and the endings of words do not count. ``after`` is the last hit already seen; sessions
    have no pages. A search first indexes at most 256 new messages, and reads those that are not
    indexed yet, the last stored first, for 0.3 seconds at most; the field ``behind`` of messages
    found is the number of messages of the searched sessions that it did not read. Raises
    SessionNotFound, StoreError if searching is switched off, and InvalidValue, also for an empty
    text and for a role that no message has.
    """
    scope = Scope(session, sessions.validate_text("owner", owner), left)
    query = build_query(text, scope, roles, tools, since, until, order, limit, after, any)
    check_choice(RESULT_UNITS, "by", by)
    if by == "session" and after is not None:
        raise InvalidValue("sessions found by a search have no next page; give a higher limit")
    if order == "rarest" and (by == "session" or after is not None):
        raise InvalidValue("hits by the rarest words are messages without a next page")
    with transactions.reading() as connection:
        if not is_search_on(connection):
            raise StoreError(SEARCH_IS_OFF)
        if not is_index_behind(connection, _add_scope_tree(connection, scope)):
            return _find_hits(connection, query, by, is_behind=False)
    try_index_step(transactions)
    with transactions.reading() as connection:
        return _find_hits(connection, query, by, is_behind=True)


def _find_hits(
    connection: Connection, query: Query, by: str, *, is_behind: bool
) -> Hits | list[SessionHit]:
    """Return the hits of a query in one state of the store."""
    plan_by_values(connection)
    check_roles(connection, query)
    scope = _add_scope_tree(connection, query.scope)
    if has_index(connection):
        scope = scope._replace(is_wide=is_wide_scope(connection, scope))
    query = query._replace(scope=scope, terms=add_index_words(connection, query.terms))
    if not query.terms:
        return Hits() if by == "message" else []
    trees = SearchedTrees(connection, query.scope)
    texts, unread = read_backlog(connection, query, trees) if is_behind else Backlog([], 0)
    search = partial(Search, connection, trees=trees, backlog=texts, selected={})
    if query.order == "rarest":
        return Hits(find_rarest(query, search), behind=unread)
    if by == "session":
        return SessionSearch(connection, query, trees, search).hits()
    is_prompt = query.after is not None and _is_prompt(connection, query.after)
    parts = query.parts(is_after_prompt=is_prompt)
    hits = chain.from_iterable(search(part).hits() for part in parts)
    return Hits(islice(hits, query.limit), behind=unread)


def _add_scope_tree(connection: Connection, scope: Scope) -> Scope:
    """Return a scope with the tree of its session. Raises SessionNotFound."""
    if scope.session is None:
        return scope
    tree_id = lines.load_pointer(connection, scope.session).tree_id
    return scope._replace(tree=tree_id, trees=list_trees(connection, [tree_id]))


class Search:
    """A part of a search in one state of the store."""

    def __init__(
        self,
        connection: Connection,
        query: Query,
        trees: SearchedTrees | None = None,
        backlog: Iterable[UnindexedText] = (),
        selected: SelectedDocuments | None = None,
    ) -> None:
        self._connection, self._query = connection, query
        self._selected = {} if selected is None else selected
        self._trees = SearchedTrees(connection, query.scope) if trees is None else trees
        after = query.after
        self._after = None if after is None or after.role == TITLE else after
        self._new = [
            Match(each.document, each.holder, score)
            for each in backlog
            if query.has_document(each.document)
            and (score := _score_unindexed(each.text, query)) is not None
        ]

    def hits(self) -> Iterator[Hit]:
        """Yield the hits after the last one already seen."""
        yield from self.title_hits()
        for matches in (self.word_matches(), self.name_matches()):
            yield from self.make_hits(matches)

    def make_hits(self, matches: Iterable[Match]) -> Iterator[Hit]:
        """Yield matches as hits, with their texts."""
        for match, text in self.load_texts(matches):
            yield match.make_hit(text, self._query.terms)

    def matches(self) -> Iterator[Match]:
        """Yield the documents that match, by words and then by names, the last stored first.

        Of many documents that match by names, the index alone decides whether they do.
        """
        yield from self._said_matches()
        matches = self.name_matches()
        named = [*islice(matches, MOST_READ_NAMES + 1)]
        if self._query.tools is None and len(named) > MOST_READ_NAMES:
            yield from chain(named, matches)
        else:
            yield from (match for match, _ in self.load_texts(chain(named, matches)))

    def count_by_session(self) -> Counter[str]:
        """Count the documents of some trees that match, by session.

        Of many documents that match by names, the index alone decides whether they do.
        """
        if self._query.is_filtered:
            return Counter(match.holder.session_id for match in self.matches())
        trees = self._query.scope.tree_ids
        held = ((each, *span) for each in trees for span in self._trees[each].held_ranges())
        in_ranges = HeldCounts(self._connection, self._query, held)
        counts = self._count_others(select_by_names) + in_ranges.count(by_names=True)
        if 0 < counts.total() <= MOST_READ_NAMES:
            read = self.load_texts(self.name_matches())
            counts = Counter(match.holder.session_id for match, _ in read)
        return counts + self._count_others(select_by_words) + in_ranges.count(by_names=False)

    def _count_others(self, candidates: CandidateQuery) -> Counter[str]:
        """Count summaries and messages of the backlog that match, by session."""
        others = self._stored_matches(candidates, NO_MESSAGES)
        return Counter(match.holder.session_id for match in others)

    def _said_matches(self) -> Iterator[Match]:
        """Return the documents that match by words, the last stored first."""
        matches = self._stored_matches(select_by_words)
        if self._query.tools is None:
            return matches
        return (match for match, _ in self.load_texts(matches))

    def count(self, most: int, *, with_names: bool = False) -> int:
        """Return how many documents of the index have the terms as words, at most so many.

        With ``with_names``, how many may have the first term as words or in a name.
        """
        return count_documents(self._connection, self._query, most, with_names=with_names)

    def tree_ids(self) -> set[int] | None:
        """Return the trees that may have the first term, and others; None if they are many."""
        found = list_trees_of_term(self._connection, self._query)
        unindexed = {match.document.tree_id for match in self._new}
        return None if found is None else found | unindexed

    def title_hits(self) -> Iterator[Hit]:
        """Yield the titles that have all terms, those of the newest sessions first."""
        query, after, scope = self._query, self._query.after, self._query.scope
        if (
            query.prompts
            or not query.has_role(TITLE)
            or (after is not None and after.role != TITLE)
        ):
            return
        first = "" if query.partial else get_first_word(query.terms[0].text)
        if scope.tree is not None:
            rows = LIST_TITLES_OF_TREE.rows(self._connection, tree=scope.tree, first=first)
        elif scope.owner is not None:
            rows = LIST_TITLES_OWNED.rows(self._connection, owner=scope.owner, first=first)
        else:
            rows = LIST_TITLES.rows(self._connection, first=first)
        for session_id, owner, branch, created_at, title in rows:
            if first not in fold_text(title or "") or title is None:
                continue
            if not (scope.has_session(session_id, owner) and query.has_moment(created_at)):
                continue
            if query.has_text(title) and (
                after is None or (created_at, session_id) < (after.at, after.session_id)
            ):
                line, marks = make_snippet(title, query.terms)
                place = (session_id, branch, 0, True)
                score = query.unranked_score if query.partial else TITLE_SCORE
                yield Hit(*place, TITLE, created_at, line, score, marks)

    def word_matches(self) -> Iterator[Match]:
        """Yield the documents with all words, ranked if requested and if they are not too many.

        Later pages keep the order of the first, however many documents exist by then.
        """
        after = self._after
        if after is not None and after.score <= self._query.name_score:
            return
        matches = self._stored_matches(select_by_words)
        if self._query.order == "best" and (
            after is None or after.score < self._query.unranked_score
        ):
            some = [*islice(matches, MOST_RANKED + 1)]
            if after is not None or len(some) <= MOST_RANKED:
                scored = self._with_scores([*some, *matches])
                last_key = None
                if after is not None:
                    place = (after.session_id, -after.branch, after.compaction or 0)
                    last_key = (-after.score, -after.at, -after.seq, *place)
                for match in sorted(scored, key=attrgetter("rank_key")):
                    if last_key is None or match.rank_key > last_key:
                        yield match
                return
        score = self._query.unranked_score
        for match in self._stored_matches_after(select_by_words):
            yield match if match.score == score else match._replace(score=score)

    def name_matches(self) -> Iterator[Match]:
        """Yield documents that may have every term as words or in a name, and not all as words."""
        after = self._after
        if after is not None and after.score <= self._query.name_score:
            yield from self._stored_matches_after(select_by_names)
        else:
            yield from self._stored_matches(select_by_names)

    def _stored_matches_after(self, candidates: CandidateQuery) -> Iterator[Match]:
        """Yield the matches that were stored before the last hit already seen, or all.

        If the message of that hit is gone, yield the messages before its time.
        """
        after = self._after
        if after is None:
            return self._stored_matches(candidates)
        bound = _find_hit_bound(self._connection, after)
        if bound is None:
            matches = self._stored_matches(candidates)
            return dropwhile(lambda match: match.document.at >= after.at, matches)
        place = (after.session_id, -after.branch, after.compaction or 0)
        last_key = (-bound.place, 0, -after.seq, *place)
        matches = self._stored_matches(candidates, bound)
        return (match for match in matches if match.place_key > last_key)

    def _stored_matches(
        self, candidates: CandidateQuery, bound: UpperBound = UNBOUNDED
    ) -> Iterator[Match]:
        """Yield the matches of the index and of the backlog, the last stored first."""
        is_by_name = candidates is select_by_names
        name_score = self._query.name_score
        new = [match for match in self._new if (match.score == name_score) is is_by_name]
        new.sort(key=attrgetter("place_key"))
        matches = self._indexed_matches(candidates, bound)
        if self._connection.dialect.name != "sqlite":  # several may have the same place there
            by_place = groupby(matches, key=lambda match: match.document.place)
            groups = (sorted(group, key=attrgetter("place_key")) for _, group in by_place)
            matches = chain.from_iterable(groups)
        return heapq.merge(new, matches, key=attrgetter("place_key")) if new else matches

    def _indexed_matches(self, candidates: CandidateQuery, bound: UpperBound) -> Iterator[Match]:
        """Yield the documents of the index in the scope that pass the filters."""
        if not has_index(self._connection):
            return
        query = self._query
        score = query.name_score if candidates is select_by_names else query.unranked_score
        documents = filter(query.has_document, self._select_documents(candidates, bound))
        while batch := [*islice(documents, TEXT_BATCH)]:
            self._trees.load(document.tree_id for document in batch)
            for document in batch:
                tree = self._trees[document.tree_id]
                if holder := tree.find_holder(document.branch, document.origin):
                    yield Match(document, holder, score)

    def _select_documents(
        self, candidates: CandidateQuery, bound: UpperBound
    ) -> Iterator[Document]:
        """Return the documents of the index, which all parts of a search select only once."""
        query = self._query
        key = candidates, query.terms, query.partial, query.scope.trees, bound
        selected = self._selected.pop(key, None) or self._mark_batches(
            candidates(self._connection, query, bound)
        )
        self._selected[key], selected = tee(selected)
        return selected

    def _mark_batches(self, documents: Iterator[Document]) -> Iterator[Document]:
        if self._query.order == "rarest":  # of so many documents those that are read are marked
            yield from documents
        while batch := [*islice(documents, TEXT_BATCH)]:
            yield from mark_programs(self._connection, batch)

    def _with_scores(self, matches: list[Match]) -> Iterator[Match]:
        for match, text in self.load_texts(matches):
            if match.score == self._query.unranked_score:
                yield match._replace(score=self._query.score(fold_text(text)))
            else:
                yield match

    def mark(self, matches: list[Match]) -> list[Match]:
        """Return matches whose documents are marked as those of programs where they are."""
        documents = mark_programs(self._connection, [match.document for match in matches])
        paired = zip(matches, documents, strict=True)
        return [match._replace(document=document) for match, document in paired]

    def load_texts(self, matches: Iterable[Match]) -> Iterator[tuple[Match, str]]:
        """Yield matches with their texts, only those of the requested tools."""
        waiting = iter(matches)
        while batch := [*islice(waiting, TEXT_BATCH)]:
            documents = [match.document for match in batch]
            texts = load_texts(self._connection, documents, self._query.tools)
            for match in batch:
                text = texts.get(match.document)
                is_doubtful = self._query.partial or match.score == self._query.name_score
                if text is None or (is_doubtful and not self._query.has_text(text)):
                    continue
                yield match, text


def _is_prompt(connection: Connection, hit: Hit) -> bool:
    """Tell whether an app or a program wrote the message of a hit."""
    message = f"""SELECT {list_message_columns(connection)} FROM sessions x
    JOIN messages m ON m.tree_id = x.tree_id AND m.branch = :branch AND m.seq = :seq
    WHERE x.id = :session"""
    place = {"session": hit.session_id, "branch": hit.branch, "seq": hit.seq}
    rows = cache_statement(message).rows(connection, **place) if hit.role == "user" else []
    found = mark_programs(connection, [Document(*row) for row in rows])
    return hit.role in SYSTEM_ROLES or any(each.is_prompt for each in found)


def _find_hit_bound(connection: Connection, hit: Hit) -> UpperBound | None:
    """Return the place of a hit's document and its number; None if the document is gone.

    Numbers follow the order of storing only in a file, where they limit the rows to read.
    """
    sql = get_index_sql(connection)
    message = f"""SELECT {sql.message_place}, r.number FROM sessions x
    JOIN messages m ON m.tree_id = x.tree_id AND m.branch = :branch AND m.seq = :seq
    LEFT JOIN search_rows r ON {MESSAGE_CONDITION} AND r.summary = 0 WHERE x.id = :session"""
    summary = f"""SELECT {AFTER_MESSAGES} + {sql.summary_place}, 0 FROM sessions x
    JOIN compaction_records c ON c.tree_id = x.tree_id AND c.compaction = :record
    JOIN summaries s ON {RECORD_CONDITION} WHERE x.id = :session"""
    row = cache_statement(summary if hit.compaction else message).row(
        connection,
        session=hit.session_id,
        branch=hit.branch,
        seq=hit.seq,
        record=hit.compaction or 0,
    )
    if row is None:
        return None
    place, number = row
    is_file = sql.message_place == "m.rowid"
    return UpperBound(place, number if is_file and number is not None else NO_LIMIT)
