"""The rows of the log of requests, and the texts of requests that are no messages.

A request is kept as its origin: line and position, moment, policy, the compactions that
counted. A text that is in no other table (prompt, tools, rules of the project, input, recap) is
kept once a tree, under the digest of its bytes, whichever requests have it. A session's requests
are numbered from 1, and go with it alone, so no number is used twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, literal_column, select, update

from ..database import (
    BIG_INTEGER,
    IDENTIFIER,
    Insertion,
    JsonPairs,
    Statement,
    request_texts,
    requests,
)
from ..messages import decode_as
from ..text import clearable_cache
from . import lines
from .erasure_log import match_left_places
from .lines import Pointer

INPUT_TEXT = "user_input"
"""The name of an input that was not stored when its request was sent."""
MESSAGE_TEXTS = (INPUT_TEXT, "todo_recap", "reminders")
"""The texts of a request that may repeat words of messages."""

MIN_SHARED_LENGTH = 12
"""The least code points of a text that is looked for within another."""


class RequestRow(NamedTuple):
    """A request as it is stored; ``texts`` are the digests of its texts by name, as JSON."""

    request: int
    branch: int
    seq: int
    at: int
    newest_record: int
    tokens: int
    unchanged_tokens: int | None
    usage_branch: int | None
    usage_seq: int | None
    usage_number: int | None
    kind: str
    format: str
    policy_name: str
    release: str
    digest: bytes
    layers: str
    compactions: str
    texts: str

    @property
    def usage_place(self) -> tuple[int, int, int] | None:
        """The branch, position and number of its usage, None before one is recorded."""
        if self.usage_number is None:
            return None
        return self.usage_branch or 0, self.usage_seq or 0, self.usage_number


class RequestRange(NamedTuple):
    """The newest requests, at most a number of them, by their numbers and last positions."""

    start: int
    stop: int
    first_seq: int
    last_seq: int
    limit: int


_r, _t = requests.c, request_texts.c
_log_tree_id = bindparam("tree_id", type_=BIG_INTEGER)
_of_session = (_r.tree_id == _log_tree_id, _r.session_id == bindparam("session_id"))
_request_rows = select(*(_r[name] for name in RequestRow._fields)).where(*_of_session)
RANGE_BINDS = {name: bindparam(name, type_=BIG_INTEGER) for name in RequestRange._fields}
"""The parameters of a range of requests."""
LIST_REQUESTS = Statement(
    _request_rows.where(
        _r.request.between(RANGE_BINDS["start"], RANGE_BINDS["stop"]),
        _r.seq.between(RANGE_BINDS["first_seq"], RANGE_BINDS["last_seq"]),
    )
    .order_by(_r.request.desc())
    .limit(RANGE_BINDS["limit"]),
    row=RequestRow,
)
LAST_REQUEST = Statement(
    _request_rows.order_by(_r.request.desc()).limit(literal_column("1")), row=RequestRow
)
LAST_NUMBER = Statement(select(func.max(_r.request)).where(*_of_session))
INSERT_REQUEST = Insertion(
    requests,
    "tree_id",
    "session_id",
    *(name for name in RequestRow._fields if not name.startswith("usage_")),
)
INSERT_REQUEST_TEXT = Insertion(request_texts)
_named_texts = JsonPairs(bindparam("texts")).table_valued("key", "value", name="named")
REQUEST_TEXTS = Statement(
    select(_t.text_digest, _t.content).where(
        _t.tree_id == _log_tree_id, _t.text_digest.in_(select(_named_texts.c.value))
    )
)
KNOWN_TEXTS = Statement(
    select(_t.text_digest).where(
        _t.tree_id == _log_tree_id, _t.text_digest.in_(select(_named_texts.c.value))
    )
)
LINK_USAGE = Statement(
    update(requests)
    .where(
        _r.tree_id == bindparam("tree", type_=BIG_INTEGER),
        _r.session_id == bindparam("session", type_=IDENTIFIER),
        _r.request == bindparam("number", type_=BIG_INTEGER),
    )
    .values(
        usage_branch=bindparam("branch", type_=BIG_INTEGER),
        usage_seq=bindparam("seq", type_=BIG_INTEGER),
        usage_number=bindparam("usage", type_=BIG_INTEGER),
    )
)
REQUEST_NUMBERS = Statement(
    select(_r.session_id, _r.request).order_by(_r.tree_id, _r.session_id, _r.request)
)
DELETE_REQUESTS = Statement(delete(requests).where(*_of_session))
DELETE_LEFT_REQUESTS = Statement(
    delete(requests).where(*_of_session, match_left_places(_r.branch, _r.seq, is_open=True))
)
"""Also those to the last message that stays: their input may be one that goes."""
NAMED_TEXTS = Statement(
    select(_r.session_id, _r.seq, _r.texts)
    .where(_r.tree_id == _log_tree_id)
    .order_by(_r.session_id, _r.request)
)
STORED_TEXTS = Statement(
    select(_t.text_digest, _t.content).where(_t.tree_id == _log_tree_id).order_by(_t.text_digest)
)
DELETE_REQUEST_TEXT = Statement(
    delete(request_texts).where(
        _t.tree_id == _log_tree_id, _t.text_digest == bindparam("text_digest", type_=IDENTIFIER)
    )
)


@clearable_cache(64)
def digest_text(text: str) -> str:
    """Return the digest under which a text of a request is kept: SHA-256, in hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


def reserve_request(
    connection: Connection, session_id: str, texts: Mapping[str, str]
) -> tuple[Pointer, int]:
    """Keep the texts of a new request; return the pointer of its session, and its number.

    The session stays locked, and with new texts its tree. Raises SessionNotFound.
    """
    pointer = lines.load_pointer(connection, session_id)
    if _list_missing_texts(connection, pointer, texts):
        pointer = lines.lock_tree(connection, session_id)
        rows = _list_missing_texts(connection, pointer, texts)
        INSERT_REQUEST_TEXT.insert_many(connection, rows)
    elif connection.dialect.name != "sqlite":
        pointer = lines.lock_session(connection, session_id)
    return pointer, (LAST_NUMBER.value(connection, **pointer.session) or 0) + 1


def _list_missing_texts(
    connection: Connection, pointer: Pointer, texts: Mapping[str, str]
) -> list[tuple[int, str, str]]:
    """Return the rows of the texts that the tree does not have yet."""
    contents = {digest_text(text): text for text in texts.values()}
    known = KNOWN_TEXTS.values(connection, tree_id=pointer.tree_id, texts=_name_digests(texts))
    return [(pointer.tree_id, each, contents[each]) for each in contents if each not in known]


def _name_digests(texts: Mapping[str, str]) -> str:
    return json.dumps({name: digest_text(text) for name, text in texts.items()})


def insert_request(
    connection: Connection,
    pointer: Pointer,
    number: int,
    columns: Mapping[str, Any],
    texts: Mapping[str, str],
    unchanged: int | None,
) -> None:
    """Write a request of a session under its number."""
    INSERT_REQUEST.run(
        connection,
        **pointer.session,
        **columns,
        request=number,
        unchanged_tokens=unchanged,
        texts=_name_digests(texts),
    )


def list_request_numbers(connection: Connection) -> list[tuple[str, int]]:
    """Return all recorded requests, each as its session and its number."""
    return [(session_id, number) for session_id, number in REQUEST_NUMBERS.rows(connection)]


def load_session_requests(
    connection: Connection, pointer: Pointer, asked: RequestRange
) -> list[RequestRow] | None:
    """Return the recorded requests of a range, oldest first; None if the session has none."""
    rows = LIST_REQUESTS.rows(connection, **pointer.session, **asked._asdict())
    if not rows and LAST_NUMBER.value(connection, **pointer.session) is None:
        return None
    return rows[::-1]


def load_request_texts(connection: Connection, pointer: Pointer, row: RequestRow) -> dict[str, str]:
    """Return the texts of a request by name, without those that are no longer there."""
    digests: dict[str, str] = decode_as(dict, row.texts)
    rows = REQUEST_TEXTS.rows(connection, tree_id=pointer.tree_id, texts=row.texts)
    contents: dict[str, str] = dict(rows)
    return {name: contents[each] for name, each in digests.items() if each in contents}


def link_usage(connection: Connection, pointer: Pointer, seq: int, number: int) -> None:
    """Link a new usage to the newest request of its session, if that has none and ended there.

    An input that was not stored when the request was sent is a message by then.
    """
    last = LAST_REQUEST.row(connection, **pointer.session)
    if last is None or last.usage_seq is not None:
        return
    had_input = INPUT_TEXT in decode_as(dict, last.texts)
    if seq == last.seq or (had_input and seq == last.seq + 1):
        named = {"tree": pointer.tree_id, "session": pointer.session_id, "number": last.request}
        LINK_USAGE.run(connection, **named, branch=pointer.branch, seq=seq, usage=number)


def delete_session_requests(
    connection: Connection, tree_id: int, session_id: str, **left: Any
) -> None:
    """Delete the requests of a session, and the texts that no other request of the tree has.

    With the values of `match_left_places` only the requests that an erasure takes from it.
    """
    statement = DELETE_LEFT_REQUESTS if left else DELETE_REQUESTS
    if statement.count_changed(connection, tree_id=tree_id, session_id=session_id, **left):
        used: set[str] = set()
        for _, _, texts in NAMED_TEXTS.rows(connection, tree_id=tree_id):
            used.update(decode_as(dict, texts).values())
        for digest, _ in STORED_TEXTS.rows(connection, tree_id=tree_id):
            if digest not in used:
                DELETE_REQUEST_TEXT.run(connection, tree_id=tree_id, text_digest=digest)


def delete_repeating_texts(connection: Connection, tree_id: int, seq: int, words: str) -> None:
    """Delete the texts of a tree's requests that may repeat the words of a message at a position.

    These are recaps and reminders of requests that had the message, and inputs that are the message
    or share a longer text with it. Prompts, tools and rules of a project are the host's own.
    """
    plain = words.strip()
    suspected: set[str] = set()
    inputs: set[str] = set()
    for _, last, texts in NAMED_TEXTS.rows(connection, tree_id=tree_id):
        named = decode_as(dict, texts)
        inputs.update(named[name] for name in MESSAGE_TEXTS if name in named)
        if last >= seq - 1:
            suspected.update(named[name] for name in MESSAGE_TEXTS[1:] if name in named)
    for digest, content in STORED_TEXTS.rows(connection, tree_id=tree_id):
        if digest in suspected or (digest in inputs and _is_repeated(plain, content.strip())):
            DELETE_REQUEST_TEXT.run(connection, tree_id=tree_id, text_digest=digest)


def _is_repeated(words: str, text: str) -> bool:
    """Tell whether a text is some words, or one of them holds the other, unless it is short."""
    is_long = min(len(words), len(text)) >= MIN_SHARED_LENGTH
    return words == text or (is_long and (words in text or text in words))
