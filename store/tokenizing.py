"""Token counts kept beside the messages: filled in batches, outside of transactions, never by an append or a view."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, cast, func, insert, literal_column, select

from . import lines
from .history import read
from .lines import segments_cte
from .messages import Message
from .records import TokenTotal
from .schema import BIG, messages, token_counts
from .statements import Statement
from .tokens import ESTIMATE, estimate, message_tokens

BATCH = 500
"""Messages counted between two transactions."""

_segments = segments_cte()
_on_line = and_(
    messages.c.tree_id == bindparam("tree_id"),
    messages.c.branch == _segments.c.branch,
    messages.c.seq.between(_segments.c.first, _segments.c.last),
)
_counted = and_(
    token_counts.c.tree_id == bindparam("tree_id"),
    token_counts.c.branch == messages.c.branch,
    token_counts.c.seq == messages.c.seq,
    token_counts.c.encoding == bindparam("encoding"),
)
UNCOUNTED = Statement(
    select(messages.c.branch, messages.c.seq)
    .select_from(_segments)
    .join(messages, _on_line)
    .outerjoin(token_counts, _counted)
    .where(token_counts.c.tokens.is_(None))
    .order_by(messages.c.seq)
    .limit(bindparam("limit"))
)
TOTAL = Statement(
    select(func.count(), cast(func.coalesce(func.sum(token_counts.c.tokens), literal_column("0")), BIG))
    .select_from(_segments)
    .join(
        token_counts,
        and_(
            token_counts.c.tree_id == bindparam("tree_id"),
            token_counts.c.branch == _segments.c.branch,
            token_counts.c.seq.between(_segments.c.first, _segments.c.last),
            token_counts.c.encoding == bindparam("encoding"),
        ),
    )
)
STILL_UNCOUNTED = Statement(
    select(messages.c.seq)
    .outerjoin(token_counts, _counted)
    .where(
        messages.c.tree_id == bindparam("tree_id"),
        messages.c.branch == bindparam("branch"),
        messages.c.seq == bindparam("seq"),
        token_counts.c.tokens.is_(None),
    )
)
KEEP_COUNTS = Statement(insert(token_counts))


class Uncounted(NamedTuple):
    """A message without a count: where it is stored, and what to count."""

    tree_id: int
    branch: int
    seq: int
    message: Message


def uncounted(connection: Connection, session_id: str, encoding: str) -> list[Uncounted]:
    """Return the first messages of a line that have no count by an encoding, a batch at most."""
    pointer = lines.find(connection, session_id)
    places = UNCOUNTED.rows(
        connection,
        tree_id=pointer.tree_id,
        branch=pointer.branch,
        start=1,
        last=pointer.head,
        encoding=encoding,
        limit=BATCH,
    )
    if not places:
        return []
    stored = {each.seq: each.message for each in read(connection, session_id, places[0][1], places[-1][1])}
    return [Uncounted(pointer.tree_id, branch, seq, stored[seq]) for branch, seq in places]


def keep_counts(
    connection: Connection, session_id: str, encoding: str, batch: list[Uncounted], counts: list[int]
) -> None:
    """Store the counts of a batch; what was erased or counted meanwhile is left alone. Raises SessionNotFound."""
    lines.lock_tree(connection, session_id)  # whose other sessions may be counting the same messages
    KEEP_COUNTS.run_many(
        connection,
        [
            (tree_id, branch, seq, encoding, tokens)
            for (tree_id, branch, seq, _), tokens in zip(batch, counts, strict=True)
            if STILL_UNCOUNTED.row(connection, tree_id=tree_id, branch=branch, seq=seq, encoding=encoding)
        ],
    )


def total(connection: Connection, session_id: str, encoding: str) -> TokenTotal:
    """Return the tokens of a line by the stored counts of an encoding."""
    pointer = lines.find(connection, session_id)
    row = TOTAL.row(
        connection, tree_id=pointer.tree_id, branch=pointer.branch, start=1, last=pointer.head, encoding=encoding
    )
    assert row is not None
    return TokenTotal(encoding, row[0], 0, row[1])


def estimated(connection: Connection, session_id: str) -> TokenTotal:
    """Return the total of a line without any tokenizer."""
    tokens = messages = 0
    pointer = lines.find(connection, session_id)
    for start in range(1, pointer.head + 1, BATCH):
        for stored in read(connection, session_id, start, start + BATCH - 1):
            tokens += message_tokens(stored.message, estimate)
            messages += 1
    return TokenTotal(ESTIMATE, messages, 0, tokens)
