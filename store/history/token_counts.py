"""Token counts kept beside the messages.

They are filled in batches, outside of transactions, never by an append or a view. The messages of
another owner's session, from before a fork was handed over, are counted each time and their counts
are not stored: otherwise an owner's views would show that another one has counted (`visibility`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, cast, func, literal_column, select

from ..database import BIG, Insertion, Statement, Transactions, messages, token_counts
from ..messages import Message
from ..records import StoredMessage, TokenTotal
from ..tokens import ESTIMATE, Counter, counter, estimate, message_tokens
from . import lines
from .lines import PLACE, segments_cte
from .raw_messages import read_chat_messages
from .visibility import visible_counts

BATCH = 500
"""Messages counted between two transactions."""

_segments = segments_cte()
_of_encoding = token_counts.c.encoding == bindparam("encoding")
_counted = and_(
    token_counts.c.tree_id == bindparam("tree_id"),
    token_counts.c.branch == messages.c.branch,
    token_counts.c.seq == messages.c.seq,
    _of_encoding,
)
UNCOUNTED = Statement(
    select(messages.c.branch, messages.c.seq)
    .select_from(_segments)
    .join(messages, lines.in_segments(messages, _segments))
    .outerjoin(token_counts, _counted)
    .where(token_counts.c.tokens.is_(None), visible_counts(_segments))
    .order_by(messages.c.seq)
    .limit(bindparam("limit"))
)
_sum = func.coalesce(func.sum(token_counts.c.tokens), literal_column("0"))
TOTAL = Statement(
    select(func.count(), cast(_sum, BIG))
    .select_from(_segments)
    .join(
        token_counts,
        lines.in_segments(token_counts, _segments) & _of_encoding,
    )
    .where(visible_counts(_segments))
)
SAID_BY_OTHERS = Statement(
    select(_segments.c.first, _segments.c.last)
    .where(~visible_counts(_segments))
    .order_by(_segments.c.first)
)
STILL_UNCOUNTED = Statement(
    select(messages.c.seq)
    .outerjoin(token_counts, _counted)
    .where(lines.at_place(messages), token_counts.c.tokens.is_(None))
)
KEEP_COUNTS = Insertion(token_counts, *PLACE, "encoding", "tokens")


class Uncounted(NamedTuple):
    """A message without a count: its place, and the text to count."""

    tree_id: int
    branch: int
    seq: int
    message: Message

    @property
    def place(self) -> dict[str, int]:
        """Its place, by the names of `PLACE`."""
        return dict(zip(PLACE, self[:3], strict=True))


def count_tokens(
    transactions: Transactions, session_id: str, encoding: str | None = None
) -> TokenTotal:
    """Count the tokens of a session's line and store the counts.

    Only new messages are counted, outside of any transaction. Without the vocabulary of a tokenizer
    the total is an estimate, as its ``encoding`` says, and nothing is stored. Raises
    SessionNotFound.
    """
    tokenizer = counter(encoding)
    if tokenizer.name == ESTIMATE:
        with transactions.reading() as connection:
            return estimated(connection, session_id)
    counted = _count(transactions, session_id, tokenizer)
    with transactions.reading() as connection:
        pointer = lines.load_pointer(connection, session_id)
        asked = {**pointer.whole, "owner": pointer.owner}
        messages, tokens = TOTAL.one(connection, **asked, encoding=tokenizer.name)
        for first, last in SAID_BY_OTHERS.rows(connection, **asked):
            messages += last - first + 1
            tokens += _tokens_between(connection, session_id, first, last, tokenizer.count)
        return TokenTotal(tokenizer.name, messages, 0, tokens)._replace(counted=counted)


def _count(transactions: Transactions, session_id: str, tokenizer: Counter) -> int:
    """Count messages without a count, batch by batch; return the number of messages counted."""
    counted = 0
    while batch := _next_batch(transactions, session_id, tokenizer.name):
        counts = [message_tokens(each.message, tokenizer.count) for each in batch]
        with transactions.writing() as connection:
            # Raises SessionNotFound.
            lines.lock_tree(
                connection, session_id
            )  # other sessions of it may count the same messages
            rows = [
                (*each.place.values(), tokenizer.name, tokens)
                for each, tokens in zip(batch, counts, strict=True)
                if _is_uncounted(connection, each, tokenizer.name)
            ]
            KEEP_COUNTS.insert_many(connection, rows)
        counted += len(batch)
    return counted


def _next_batch(transactions: Transactions, session_id: str, encoding: str) -> list[Uncounted]:
    with transactions.reading() as connection:
        pointer = lines.load_pointer(connection, session_id)
        asked = {**pointer.whole, "owner": pointer.owner, "encoding": encoding}
        places = UNCOUNTED.rows(connection, **asked, limit=BATCH)
        if not places:
            return []
        (_, first), (_, last) = places[0], places[-1]
        stored = _by_position(read_chat_messages(connection, session_id, first, last))
        return [Uncounted(pointer.tree_id, branch, seq, stored[seq]) for branch, seq in places]


def _by_position(stored: list[StoredMessage]) -> dict[int, Message]:
    return {each.seq: each.message for each in stored}


def _is_uncounted(connection: Connection, message: Uncounted, encoding: str) -> bool:
    return STILL_UNCOUNTED.row(connection, **message.place, encoding=encoding) is not None


def estimated(connection: Connection, session_id: str) -> TokenTotal:
    """Return the total of a line without any tokenizer."""
    head = lines.load_pointer(connection, session_id).head
    tokens = _tokens_between(connection, session_id, 1, head, estimate)
    return TokenTotal(ESTIMATE, head, 0, tokens)


def _tokens_between(
    connection: Connection, session_id: str, first: int, last: int, count: Callable[[str], int]
) -> int:
    """Return the tokens of the messages at a line's positions, read in batches."""
    return sum(
        message_tokens(stored.message, count)
        for start in range(first, last + 1, BATCH)
        for stored in read_chat_messages(
            connection, session_id, start, min(start + BATCH - 1, last)
        )
    )
