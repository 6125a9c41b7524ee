"""Token counts kept beside the messages.

They are filled in batches, outside of transactions, never by an append or a view. The messages of
another owner's session, from before a fork was handed over, are counted each time and their counts
are not stored: otherwise an owner's views would show that another one has counted
(`match_visible_counts`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, cast, func, literal_column, select

from ..database import BIG_INTEGER, Insertion, Statement, Transactions, messages, token_counts
from ..errors import ReadOnly
from ..messages import Message
from ..records import TokenTotal
from ..tokens import ESTIMATE_NAME, Counter, count_message_tokens, counter, estimate
from . import lines
from .lines import PLACE, build_segments, match_visible_counts
from .raw_messages import load_session_chat_messages

COUNT_BATCH_SIZE = 500
"""Messages counted between two transactions."""

_counted_segments = build_segments()
_encoding_condition = token_counts.c.encoding == bindparam("encoding")
_token_count_join = and_(
    token_counts.c.tree_id == bindparam("tree_id"),
    token_counts.c.branch == messages.c.branch,
    token_counts.c.seq == messages.c.seq,
    _encoding_condition,
)
UNCOUNTED_MESSAGES = Statement(
    select(messages.c.branch, messages.c.seq)
    .select_from(_counted_segments)
    .join(messages, lines.match_segments(messages, _counted_segments))
    .outerjoin(token_counts, _token_count_join)
    .where(token_counts.c.tokens.is_(None), match_visible_counts(_counted_segments))
    .order_by(messages.c.seq)
    .limit(bindparam("limit"))
)
_counted_token_sum = func.coalesce(func.sum(token_counts.c.tokens), literal_column("0"))
COUNTED_TOTAL = Statement(
    select(func.count(), cast(_counted_token_sum, BIG_INTEGER))
    .select_from(_counted_segments)
    .join(
        token_counts,
        lines.match_segments(token_counts, _counted_segments) & _encoding_condition,
    )
    .where(match_visible_counts(_counted_segments))
)
OTHER_OWNERS_RUNS = Statement(
    select(_counted_segments.c.first, _counted_segments.c.last)
    .where(~match_visible_counts(_counted_segments))
    .order_by(_counted_segments.c.first)
)
UNCOUNTED_POSITION = Statement(
    select(messages.c.seq)
    .outerjoin(token_counts, _token_count_join)
    .where(lines.match_place(messages), token_counts.c.tokens.is_(None))
)
INSERT_COUNTS = Insertion(token_counts, *PLACE, "encoding", "tokens")


class UncountedMessage(NamedTuple):
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
    if tokenizer.name == ESTIMATE_NAME:
        with transactions.reading() as connection:
            head = lines.load_pointer(connection, session_id).head
            tokens = _count_run_tokens(connection, session_id, 1, head, estimate)
            return TokenTotal(ESTIMATE_NAME, head, 0, tokens)
    try:
        counted = _count_new_messages(transactions, session_id, tokenizer)
    except ReadOnly:
        return _count_unstored(transactions, session_id, tokenizer)
    with transactions.reading() as connection:
        pointer = lines.load_pointer(connection, session_id)
        asked = {**pointer.whole, "owner": pointer.owner}
        messages, tokens = COUNTED_TOTAL.one(connection, **asked, encoding=tokenizer.name)
        for first, last in OTHER_OWNERS_RUNS.rows(connection, **asked):
            messages += last - first + 1
            tokens += _count_run_tokens(connection, session_id, first, last, tokenizer.count)
        return TokenTotal(tokenizer.name, messages, 0, tokens)._replace(counted=counted)


def _count_unstored(transactions: Transactions, session_id: str, tokenizer: Counter) -> TokenTotal:
    """Return the total of a line in a store that is only read, with all messages counted anew."""
    with transactions.reading() as connection:
        head = lines.load_pointer(connection, session_id).head
        tokens = _count_run_tokens(connection, session_id, 1, head, tokenizer.count)
        return TokenTotal(tokenizer.name, head, 0, tokens)._replace(counted=head)


def _count_new_messages(transactions: Transactions, session_id: str, tokenizer: Counter) -> int:
    """Count messages without a count, batch by batch; return the number of messages counted."""
    counted = 0
    while batch := _load_next_batch(transactions, session_id, tokenizer.name):
        counts = [count_message_tokens(each.message, tokenizer.count) for each in batch]
        with transactions.writing() as connection:
            # Other sessions of the tree may count the same messages.
            lines.lock_tree(connection, session_id)
            rows = [
                (*each.place.values(), tokenizer.name, tokens)
                for each, tokens in zip(batch, counts, strict=True)
                if UNCOUNTED_POSITION.row(connection, **each.place, encoding=tokenizer.name)
            ]
            INSERT_COUNTS.insert_many(connection, rows)
        counted += len(batch)
    return counted


def _load_next_batch(
    transactions: Transactions, session_id: str, encoding: str
) -> list[UncountedMessage]:
    with transactions.reading() as connection:
        pointer = lines.load_pointer(connection, session_id)
        asked = {**pointer.whole, "owner": pointer.owner, "encoding": encoding}
        places = UNCOUNTED_MESSAGES.rows(connection, **asked, limit=COUNT_BATCH_SIZE)
        if not places:
            return []
        (_, first), (_, last) = places[0], places[-1]
        stored = load_session_chat_messages(connection, session_id, first, last)
        by_seq = {each.seq: each.message for each in stored}
        return [
            UncountedMessage(pointer.tree_id, branch, seq, by_seq[seq]) for branch, seq in places
        ]


def _count_run_tokens(
    connection: Connection, session_id: str, first: int, last: int, count: Callable[[str], int]
) -> int:
    """Return the tokens of the messages at a line's positions, read in batches."""
    return sum(
        count_message_tokens(stored.message, count)
        for start in range(first, last + 1, COUNT_BATCH_SIZE)
        for stored in load_session_chat_messages(
            connection, session_id, start, min(start + COUNT_BATCH_SIZE - 1, last)
        )
    )
