"""The queries that select documents from the index, by words and by names.

Candidates are the last stored first, and only as many as needed. The words of a document are in one
table, the parts of its names in another, so a query for several terms joins lists of numbers; the
documents with a rare term limit the lists of the others.

Hits are counted by the session that holds them. In a file the messages that were stored in one go
have numbers in a row, so matches among them are counted from the first to the last number, without
a look at each message. Where messages of several sessions alternate, or some were redacted, the
number of each match decides. Lists of numbers become one text in SQL, which takes a fraction of the
time of a row for each.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..database import Row, Statement
from ..history import NO_LIMIT
from ..messages import LONGEST_TERM, WORD_PATTERN, fold_text
from .documents import (
    MESSAGE_CONDITION,
    RECORD_CONDITION,
    Document,
    get_index_sql,
    list_message_columns,
    list_summary_columns,
)
from .index import has_index
from .index_ranges import (
    MESSAGES,
    MOST_SKIPPED,
    IndexRange,
    IndexRanges,
    NumberRange,
    has_few_documents,
)
from .query import MOST_PLACED, Query
from .scope import Scope, cache_statement
from .terms import Term


class UpperBound(NamedTuple):
    """The highest place and the highest number in the index of documents to select."""

    place: int = NO_LIMIT
    number: int = NO_LIMIT


UNBOUNDED = UpperBound()
NO_MESSAGES = UpperBound(number=0)
"""Summaries only."""
CandidateQuery = Callable[[Connection, Query, UpperBound], Iterator[Document]]
"""A function that selects documents of the index up to a bound."""


PART_TRIGRAMS = 60
"""Trigrams of a part of a name that are looked for."""
FIRST_ROWS = 2_000
"""Rows of the first select on a server; few pages need more."""
NUMBER_BATCH = 64
"""Listed numbers whose messages are read at once."""
JOINED_NUMBER = "number"
"""The number column of a query for joined lists."""
LISTED_NUMBERS = "SELECT value AS number FROM json_each(:numbers)"
"""A query for the numbers of a list in a file."""
WIDEST_GAP = 500
"""Numbers between two spans that are read with these: reading them is faster than a query."""
MOST_INDEX_WORDS = 200
"""Words that a prefix may begin for them to be searched in its place."""
RARE_TERM = 1_000
"""Documents with a term that is rare: those with others are searched among them."""
_INDEX_PREFIX = re.compile("[A-Za-z0-9]+")
_BEFORE_SIGNS = "\x01"
"""A sign that is before all signs of words."""
_LIKE_SIGN = re.compile(r"[\\%_]")
_ESCAPED_SIGN = r"\\\g<0>"


class NumberQuery(NamedTuple):
    """A query for numbers that ends in a condition, its number column, and its bound values."""

    sql: str
    column: str
    values: dict[str, Any]

    def bind(self, in_range: IndexRange) -> NumberQuery:
        """Return the query with the values of a range."""
        return self._replace(values=self.values | in_range.bound_values)


def _limit_numbers(connection: Connection, scope: Scope, column: str) -> str:
    """Return the condition that numbers belong to documents of a scope."""
    if scope.is_wide:
        in_scope = scope.tree_condition("+r")
        return f" AND EXISTS (SELECT 1 FROM search_rows r WHERE r.number = {column}{in_scope})"
    index_sql = get_index_sql(connection)
    if index_sql.in_trees:
        owned = index_sql.in_owned if scope.owner is not None else ""
        return owned if scope.trees is None else index_sql.in_trees
    if scope.trees is None:
        in_scope = scope.tree_condition("r")
    else:
        in_scope = f" AND r.tree_id IN {index_sql.trees}"
    sql = f" AND +{column} IN (SELECT r.number FROM search_rows r WHERE true{in_scope})"
    return sql if in_scope else ""


class TermQuery(NamedTuple):
    """The queries for documents with a term: as words, and in a name if a name can have it."""

    words: NumberQuery
    names: NumberQuery | None

    @property
    def values(self) -> dict[str, Any]:
        """The values that both bind."""
        return self.words.values | (self.names.values if self.names else {})

    def numbers(self, among: str | None = None) -> str:
        """Return a query for the numbers of both, only those among the ones of a table."""
        return " UNION ALL ".join(
            f"{each.sql} AND +{each.column} IN (SELECT number FROM {among})" if among else each.sql
            for each in filter(None, self)
        )


def _build_number_query(
    connection: Connection, query: Query, name: str, expression: str, *, in_names: bool = False
) -> NumberQuery:
    """Return the query for documents that match an expression, which is bound by a name."""
    sql = get_index_sql(connection)
    found = sql.match_names if in_names else sql.match_words
    column = sql.names_number if in_names else sql.words_number
    limited = found.format(name=name) + _limit_numbers(connection, query.scope, column)
    return NumberQuery(limited, column, {name: expression})


def _build_term_query(connection: Connection, query: Query, number: int = 0) -> TermQuery:
    """Return the queries for one term of a query."""
    dialect, term = connection.dialect.name, query.terms[number]
    expression = _build_word_expression(dialect, [term])
    words = _build_number_query(connection, query, f"word{number}", expression)
    if not term.name_part:
        return TermQuery(words, None)
    expression = _build_name_expression(dialect, term.name_part)
    names = _build_number_query(connection, query, f"part{number}", expression, in_names=True)
    return TermQuery(words, names)


def add_index_words(connection: Connection, terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return terms, prefixes among them with the words of the index that begin with them.

    The index of a file reads all documents with a prefix before it gives the newest ones, but
    finds those of words one by one.
    """
    has_words = get_index_sql(connection).has_words
    if not (has_words and has_index(connection) and cache_statement(has_words).row(connection)):
        return tuple(terms)
    return tuple(
        each._replace(index_words=_list_index_words(connection, fold_text(each.index_text)))
        if each.is_prefix and _INDEX_PREFIX.fullmatch(each.index_text)
        else each
        for each in terms
    )


def _list_index_words(connection: Connection, prefix: str) -> tuple[str, ...]:
    """Return the words of the index that begin with a prefix; none if they are many."""
    query = cache_statement("SELECT term FROM search_index_words WHERE term >= :least LIMIT 1")
    words: list[str] = []
    least = prefix
    while len(words) <= MOST_INDEX_WORDS:
        word: str | None = query.value(connection, least=least)
        if word is None or not word.startswith(prefix):
            return tuple(words)
        words.append(word)
        least = f"{word}{_BEFORE_SIGNS}"
    return ()


def count_documents(connection: Connection, query: Query, most: int, *, with_names: bool) -> int:
    """Return how many documents of the index have the terms as words, at most so many.

    With ``with_names``, how many may have the first term as words or in a name.
    """
    if not has_index(connection):
        return 0
    if with_names:
        term = _build_term_query(connection, query)
        found, values = term.numbers(), term.values
    else:
        found, _, values = _build_said_query(connection, query)
    counted = f"SELECT COUNT(*) FROM (SELECT number FROM ({found}) AS found LIMIT {most}) AS found"
    values |= query.scope.index_parameters(-NO_LIMIT, NO_LIMIT)
    count: int = cache_statement(counted).value(connection, **values)
    return count


HeldRange = tuple[int, int, int, int, str]
"""A tree, a branch, its first and its last position, and the session that holds them."""

_IS_HELD = (
    "r.tree_id = held.tree_id AND r.branch = held.branch AND r.seq BETWEEN held.first AND held.last"
)
_COUNTED_ROWS = f"""SELECT held.holder, COUNT(*) FROM ({{held}}) AS held
    CROSS JOIN ({{found}}) AS r WHERE {_IS_HELD} GROUP BY held.holder"""
_NUMBERS_OF_RANGES = f"""SELECT held.*, (SELECT json_array(MIN(r.number), MAX(r.number), COUNT(*))
    FROM search_rows r WHERE {_IS_HELD} AND r.summary = 0) FROM ({{held}}) AS held"""
_NUMBERS_HELD = f"""SELECT r.number, held.holder FROM ({{held}}) AS held
    CROSS JOIN search_rows r WHERE {_IS_HELD} AND r.summary = 0"""


class HeldNumbers(NamedTuple):
    """The numbers of messages that sessions hold: in a row, and each of the others.

    ``spans`` have all the numbers to search, and others between them, the lowest first.
    """

    rows: list[tuple[int, int, str]]
    others: dict[int, str]
    spans: list[NumberRange]


class HeldCounts:
    """Counts of the messages of the index that match, in ranges that sessions hold."""

    def __init__(self, connection: Connection, query: Query, held: Iterable[HeldRange]) -> None:
        self._connection, self._query = connection, query
        self._listed = json.dumps([*held]) if has_index(connection) else ""
        self._numbers = None
        if self._listed and connection.dialect.name == "sqlite":
            self._numbers = _load_held_numbers(connection, self._listed)
            self._query = query._replace(scope=Scope())  # the spans limit the numbers to the scope

    def count(self, *, by_names: bool) -> Counter[str]:
        """Return how many messages match by words, or by names, by the session that holds them."""
        connection, query, numbers = self._connection, self._query, self._numbers
        if not self._listed:
            return Counter()
        if numbers is not None:
            list_matches = _list_named if by_names else _list_said
            return _count_numbers(numbers, list_matches(connection, query, numbers.spans))
        build = _build_named_query if by_names else _build_said_query
        found, _, values = build(connection, query)
        values |= query.scope.index_parameters(*MESSAGES) | {"held": self._listed}
        counted = _COUNTED_ROWS.format(held=get_index_sql(connection).held_ranges, found=found)
        return Counter(dict(cache_statement(counted).rows(connection, **values)))


def _load_held_numbers(connection: Connection, listed: str) -> HeldNumbers:
    """Return the numbers of ranges, which are listed as JSON."""
    ranges = get_index_sql(connection).held_ranges
    numbers = HeldNumbers([], {}, [])
    spans: list[NumberRange] = []
    mixed: list[tuple[object, ...]] = []
    found = cache_statement(_NUMBERS_OF_RANGES.format(held=ranges))
    for *held, of_range in found.rows(connection, held=listed):
        first, last, count = json.loads(of_range)
        if count:
            spans.append((first, last))
        if count and last - first + 1 == count:
            numbers.rows.append((first, last, held[-1]))
        elif count:
            mixed.append(tuple(held))
    if mixed:
        each_number = cache_statement(_NUMBERS_HELD.format(held=ranges))
        numbers.others.update(each_number.rows(connection, held=json.dumps(mixed)))
    for span in sorted(spans):
        joined = span
        if numbers.spans and span[0] <= numbers.spans[-1][1] + WIDEST_GAP:
            begun, known = numbers.spans.pop()
            joined = begun, max(known, span[1])
        numbers.spans.append(joined)
    return numbers


def _count_numbers(held: HeldNumbers, matches: list[int]) -> Counter[str]:
    """Return how many matches, the lowest number first, each session holds."""
    counts: Counter[str] = Counter()
    for first, last, holder in held.rows:
        if count := bisect_right(matches, last) - bisect_left(matches, first):
            counts[holder] += count
    if held.others:
        counts.update(held.others[each] for each in matches if each in held.others)
    return counts


def _list_said(connection: Connection, query: Query, spans: list[NumberRange]) -> list[int]:
    """Return the numbers in spans of documents that have all words, or some of them."""
    return _list_numbers(connection, _build_said_query(connection, query), spans)


def _list_named(connection: Connection, query: Query, spans: list[NumberRange]) -> list[int]:
    """Return the numbers in spans that match by names: see `_build_named_query`."""
    terms = _build_term_queries(connection, query)
    named = [{*_list_numbers(connection, each.names, spans)} for each in terms]
    if not any(named):
        return []
    said = [{*_list_numbers(connection, each.words, spans)} for each in terms]
    if query.partial:
        return sorted(named[0].union(*named).difference(*said))
    either = [names | words for names, words in zip(named, said, strict=True)]
    return sorted(either[0].intersection(*either) - said[0].intersection(*said))


def _list_numbers(
    connection: Connection, numbers: NumberQuery | None, spans: list[NumberRange]
) -> list[int]:
    """Return the numbers of a query in spans, the lowest first; none without a query."""
    if numbers is None:
        return []
    listed = cache_statement(f"SELECT json_group_array(number) FROM ({numbers.sql}) AS found")
    found: list[int] = []
    for first, last in spans:
        values = numbers.values | {"first": first, "last": last}
        found += json.loads(listed.value(connection, **values))
    return found


def list_trees_of_term(connection: Connection, query: Query) -> set[int] | None:
    """Return the trees whose indexed documents may have the first term; None if they are many.

    A term that more than `MOST_PLACED` documents have as a word takes as long as all of them.
    """
    if not has_index(connection):
        return set()
    in_scope = ""
    if query.scope.is_wide:  # each document is looked at anyway
        in_scope = query.scope.tree_condition("+r")
        term = _build_term_query(connection, query._replace(scope=Scope()))
    else:
        term = _build_term_query(connection, query)
    placed = f"""SELECT tree_id, COUNT(*) FROM (
    SELECT r.tree_id FROM ({term.numbers()}) AS found CROSS JOIN search_rows r
    WHERE r.number = found.number{in_scope} LIMIT {MOST_PLACED + 1}) AS counted GROUP BY tree_id"""
    values = term.values | query.scope.index_parameters(-NO_LIMIT, NO_LIMIT)
    rows = cache_statement(placed).rows(connection, **values)
    is_frequent = sum(count for _, count in rows) > MOST_PLACED
    return None if is_frequent else {tree_id for tree_id, _ in rows}


def select_by_words(connection: Connection, query: Query, bound: UpperBound) -> Iterator[Document]:
    """Yield the documents of the index with all words, or with some of them."""
    query, ranges = _list_ranges(connection, query, bound)
    numbers = _build_said_query(connection, query)
    yield from _select_documents(connection, ranges, numbers, query.passed, bound)


def _list_ranges(
    connection: Connection, query: Query, bound: UpperBound
) -> tuple[Query, IndexRanges]:
    """Return the ranges of a query, and the query for these."""
    passed = query.passed if query.by == "session" else None
    ranges = IndexRanges(connection, query.scope, bound.number, passed)
    return query._replace(scope=ranges.scope), ranges


def _build_said_query(connection: Connection, query: Query) -> NumberQuery:
    """Return the query for documents with all words, or with some of them."""
    build = _build_partial_expression if query.partial else _build_word_expression
    expression = build(connection.dialect.name, [*query.terms])
    return _build_number_query(connection, query, "asked", expression)


def select_by_names(connection: Connection, query: Query, bound: UpperBound) -> Iterator[Document]:
    """Yield documents with every term as words or in a name, without those of `select_by_words`.

    Of a partial search: documents with some term in a name, and none as words.
    """
    query, ranges = _list_ranges(connection, query, bound)
    if _has_name(connection, query, ranges.everywhere):
        has_name = partial(_has_name, connection, query)
        in_scope = ""
        if query.scope.is_wide and len(query.terms) > 1:  # it has most of what the terms have
            in_scope = _limit_numbers(connection, query.scope, JOINED_NUMBER)
            query = query._replace(scope=Scope())
        numbers = _build_named_query(connection, query)
        numbers = numbers._replace(sql=f"{numbers.sql}{in_scope}")
        yield from _select_documents(connection, ranges, numbers, query.passed, bound, has_name)


def _has_name(connection: Connection, query: Query, found_in: IndexRange) -> bool:
    """Tell whether a document in a range may have a term in a name."""
    terms = _build_term_queries(connection, query)
    with_names = [
        f"SELECT number FROM ({each.names.sql} LIMIT 1) AS of{number}"
        for number, each in enumerate(terms)
        if each.names
    ]
    values = {name: value for each in terms for name, value in each.values.items()}
    parameters = found_in.bound_values
    any_name = cache_statement(" UNION ALL ".join(with_names))
    return bool(with_names and any_name.row(connection, **values, **parameters))


def _build_term_queries(connection: Connection, query: Query) -> list[TermQuery]:
    """Return the queries for each term of a query."""
    return [_build_term_query(connection, query, number) for number in range(len(query.terms))]


def _build_named_query(connection: Connection, query: Query) -> NumberQuery:
    """Return the query for documents with some term in a name, without those with all words."""
    build = partial(_build_word_expression, connection.dialect.name, [*query.terms])
    terms = _build_term_queries(connection, query)
    with_words, _, asked = _build_number_query(connection, query, "asked", build(any=query.partial))
    if get_index_sql(connection).entries:
        sql, column = _build_named_entries(connection, query, terms), JOINED_NUMBER
    elif len(terms) == 1 and terms[0].names:  # a single term is searched only as far as needed
        sql, column, _ = terms[0].names
        sql += f" AND +{column} NOT IN (SELECT number FROM ({with_words}) AS said)"
    else:
        joined = _join_terms(connection, query, terms)
        both = f"SELECT number FROM ({joined}) AS joined EXCEPT {with_words}"
        sql, column = f"SELECT number FROM ({both}) AS named WHERE true", JOINED_NUMBER
    values = {name: value for each in terms for name, value in each.values.items()}
    return NumberQuery(sql, column, asked | values)


def _build_named_entries(connection: Connection, query: Query, terms: list[TermQuery]) -> str:
    """Return the query of a server for documents with some term in a name, in one condition."""
    sql = get_index_sql(connection)
    either = []
    for number, each in enumerate(terms):
        has_name = f" OR {sql.with_names.format(name=f'part{number}')}" if each.names else ""
        either.append(f"({sql.with_words.format(name=f'word{number}')}{has_name})")
    joined = (" OR " if query.partial else " AND ").join(either)
    condition = f"({joined}) AND NOT {sql.with_words.format(name='asked')}"
    in_scope = _limit_numbers(connection, query.scope, sql.words_number)
    return f"{sql.entries.format(condition=condition)}{in_scope}"


def _join_terms(connection: Connection, query: Query, terms: list[TermQuery]) -> str:
    """Return the query for documents with all terms, or with some of them.

    Those with a rare term are listed first, so that no list of all with a frequent one is made.
    """
    found = [f"SELECT number FROM ({each.numbers()}) AS found" for each in terms]
    if query.partial or has_few_documents(connection, query.scope):
        return (" UNION " if query.partial else " INTERSECT ").join(found)
    everywhere = query.scope.index_parameters(*MESSAGES)
    counts = [
        cache_statement(f"SELECT COUNT(*) FROM ({each} LIMIT {RARE_TERM}) AS counted").value(
            connection, **terms[number].values, **everywhere
        )
        for number, each in enumerate(found)
    ]
    rarest = counts.index(min(counts))
    if counts[rarest] >= RARE_TERM:
        return " INTERSECT ".join(found)
    among = [
        f"SELECT number FROM ({each.numbers(among='rare')}) AS found"
        for number, each in enumerate(terms)
        if number != rarest
    ]
    return f"""SELECT number FROM (WITH rare (number) AS MATERIALIZED ({found[rarest]})
    {" INTERSECT ".join(among)}) AS all_terms"""


def _select_documents(
    connection: Connection,
    ranges: IndexRanges,
    numbers: NumberQuery,
    passed: AbstractSet[int],
    bound: UpperBound,
    is_possible: Callable[[IndexRange], object] = bool,
) -> Iterator[Document]:
    """Yield the documents of numbers: messages, then summaries, each the last stored first.

    Those of passed trees are left out, and a range is left where many of these follow.
    """
    for each in ranges:
        if not (each.is_short or is_possible(each)):
            continue
        if each.last < 0:
            yield from _select_summaries(connection, numbers, each)
            continue
        scan = _scan_file if connection.dialect.name == "sqlite" else _scan_server
        skipped = 0
        for number, *row in scan(connection, numbers, each, bound.place):
            message = Document(*row)
            if message.tree_id not in passed:
                skipped = 0
                yield message
            elif (skipped := skipped + 1) >= MOST_SKIPPED and scan is _scan_file:
                ranges.leave(number)
                break


def _build_messages_query(connection: Connection, numbers: str, order: str) -> Statement[Row]:
    """Return the query for the numbers of an index and the columns of their messages."""
    sql = get_index_sql(connection)
    entries = f"({numbers}) AS r"
    if not sql.entries:
        listed = f"({numbers} ORDER BY number DESC) AS found"
        entries = f"{listed} JOIN search_rows r ON r.number = found.number"
    return cache_statement(
        f"""SELECT r.number, {list_message_columns(connection)} FROM {entries} CROSS JOIN messages m
    WHERE r.summary = 0 AND {MESSAGE_CONDITION} AND {sql.message_place} <= :place
    ORDER BY {order}"""
    )


def _scan_file(
    connection: Connection, numbers: NumberQuery, in_range: IndexRange, place: int
) -> Iterable[Row]:
    """Return numbers and messages of a file, the highest number first, read as far as needed.

    Numbers follow the order of storing there. Those of joined lists and of short ranges are
    listed first.
    """
    is_listed = in_range.is_short or numbers.column == JOINED_NUMBER
    numbers_sql = LISTED_NUMBERS if is_listed else numbers.sql
    numbers = numbers.bind(in_range)
    messages = _build_messages_query(connection, numbers_sql, "found.number DESC")
    if not is_listed:
        return messages.scan(connection, **numbers.values, place=place)
    listed = _list_numbers(connection, numbers, [(in_range.first, in_range.last)])
    found = iter(sorted(listed, reverse=True))
    batches = iter(lambda: [*islice(found, NUMBER_BATCH)], [])
    return chain.from_iterable(
        messages.rows(connection, numbers=json.dumps(each), place=place) for each in batches
    )


def _scan_server(
    connection: Connection, numbers: NumberQuery, in_range: IndexRange, place: int
) -> Iterator[Row]:
    """Yield numbers and messages of a server, the last stored first; few pages need all."""
    order = "place DESC, seq DESC, branch DESC, tree_id DESC LIMIT :most"
    messages = _build_messages_query(connection, numbers.sql, order)
    values = numbers.bind(in_range).values
    seen = 0
    for most in (FIRST_ROWS, NO_LIMIT):
        rows = messages.scan(connection, **values, place=place, most=most)
        for row in islice(rows, seen, None):
            seen += 1
            yield row
        if seen < FIRST_ROWS:
            break


def _select_summaries(
    connection: Connection, numbers: NumberQuery, in_range: IndexRange
) -> Iterator[Document]:
    """Yield the summaries of numbers, the last stored first."""
    summaries = f"""SELECT {list_summary_columns(connection)} FROM (
    {numbers.sql}) AS found
    CROSS JOIN search_rows r CROSS JOIN summaries s CROSS JOIN compaction_records c
    WHERE r.number = found.number AND r.summary > 0
    AND s.tree_id = r.tree_id AND s.summary = r.summary AND {RECORD_CONDITION}
    ORDER BY place DESC"""
    values = numbers.bind(in_range).values
    yield from map(Document._make, cache_statement(summaries).rows(connection, **values))


def _build_partial_expression(dialect: str, terms: list[Term]) -> str:
    """Return the full-text expression of texts that have some terms as words, and not all."""
    some = _build_word_expression(dialect, terms, any=True)
    without = "NOT" if dialect == "sqlite" else "& !"
    return f"({some}) {without} ({_build_word_expression(dialect, terms)})"


def _build_word_expression(dialect: str, terms: list[Term], *, any: bool = False) -> str:  # noqa: A002
    """Return the full-text expression of texts that have all terms, or ``any``, as words."""
    if dialect == "sqlite":
        return (" OR " if any else " AND ").join(map(_quote_term, terms))
    phrases = []
    for term in terms:
        words = WORD_PATTERN.findall(fold_text(term.index_text))
        phrase = " <-> ".join(f"'{word[:LONGEST_TERM]}'" for word in words)
        phrases.append(f"({phrase}{':*' * term.is_prefix})")
    return (" | " if any else " & ").join(phrases)


def _quote_term(term: Term) -> str:
    """Return a term as an expression of FTS5."""
    if term.index_words:
        words = '" OR "'.join(term.index_words)
        return f'("{words}")'
    text = term.index_text.replace('"', " ")
    return f'"{text}"{" *" * term.is_prefix}'


def _build_name_expression(dialect: str, part: str) -> str:
    """Return the expression of names that have a part: its trigrams, or a pattern of LIKE."""
    if dialect == "sqlite":
        text = part.replace('"', " ")
        trigrams = islice((text[at : at + 3] for at in range(len(text) - 2)), PART_TRIGRAMS)
        return " AND ".join(f'"{trigram}"' for trigram in trigrams)
    return f"%{_LIKE_SIGN.sub(_ESCAPED_SIGN, part.lower())}%"
