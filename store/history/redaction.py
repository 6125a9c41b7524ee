"""Redaction: remove the words of one message for good, and record that it was done.

A redaction opens in the transaction that does it: while its row is open, the database lets the
message's rows be overwritten, and at no other time. Only values of a list stay
(`store.messages.redacted_messages`), among them those that others refer to: the role, the time, the
ids by which calls and results find each other. The digest of the rows is computed again, and so is
everything that was derived from the words: the tokens of the message, and with them the sums of all
messages after it on any branch, its facts, and the facts of the results that answer its calls. So
`verify` finds nothing, and no trace of the message's words is left, except in summaries that were
made of it before: those are named.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    delete,
    func,
    select,
    update,
)

from ..clock import Now, require_moment
from ..database import (
    BIG_INTEGER,
    COPIES,
    CopyRow,
    Insertion,
    Row,
    Statement,
    branches,
    compaction_records,
    invalidate_at_end,
    message_facts,
    messages,
    redactions,
    search_rows,
    sessions,
    summaries,
    token_counts,
    tool_calls,
    tool_result_paths,
    tool_results,
)
from ..errors import InvalidValue, quote_value
from ..formats import build_redacted_wire
from ..messages import (
    REDACTED_TEXT,
    Columns,
    Message,
    PreparedMessage,
    StoredCall,
    decode_as,
    digest_row,
    extract_content_text,
    prepare_message,
    redact_message,
)
from ..records import Redaction
from ..text import ELLIPSIS, is_text
from ..tokens import estimate_message_tokens
from ..tools import DECIDING_ARGUMENTS, find_answered_call_id
from . import lines
from .attachments import delete_message_attachments, restore_calls
from .erasure import NEWEST_COPY
from .facts import derive_results, load_tool_kinds, write_results
from .imported_files import forget_file_states
from .lines import PLACE, Line, Pointer
from .raw_messages import load_chat_messages, load_message_at
from .request_rows import delete_repeating_texts
from .search_entries import write_message_entries

MAX_REASON_LENGTH = 10_000
"""Code points."""
MIN_REPEATED_LENGTH = 12
"""The least code points of a title that repeats a message's middle; its beginning needs no minimum.
"""

MessagePlace: TypeAlias = tuple[int, int, int]
"""The place of a message: tree, branch and position."""
SessionPosition: TypeAlias = tuple[str, int]
"""A session, and a position on its line."""
PlaceValues: TypeAlias = dict[str, int]
"""The place of a message by the names of `PLACE`."""


class RedactionRow(NamedTuple):
    """A redaction as its row holds it."""

    tree_id: int
    branch: int
    seq: int
    session_id: str
    reason: str
    redacted_by: str | None
    redacted_at: int
    summaries: str
    newest_copy: int
    purged_at: int | None


class RedactionRequest(NamedTuple):
    """What a redaction records of itself, and the text that it leaves."""

    reason: str
    by: str | None
    moment: int
    replacement: str | None

    def check(self) -> None:
        """Raise InvalidValue for what cannot be recorded or said."""
        reason, by, _, replacement = self
        if not is_text(reason) or not reason.strip() or len(reason) > MAX_REASON_LENGTH:
            raise InvalidValue(f"a redaction needs a reason, in a text, not {quote_value(reason)}")
        if by is not None and not is_text(by):
            raise InvalidValue(
                f"by must be the name of the person who redacts, a text, not {quote_value(by)}"
            )
        if replacement is not None and not is_text(replacement):
            raise InvalidValue(f"replacement must be a text, not {quote_value(replacement)}")


class SummaryEnd(NamedTuple):
    """A summary: the branch that it was made on, the last position it covers, its record."""

    branch: int
    last: int
    compaction: int


class StoredAttributes(NamedTuple):
    """The values of a message's row that are not part of the message."""

    stored_at: int
    wire_format: str | None


class BranchParent(NamedTuple):
    """A branch, and the position of the branch that it continues."""

    branch: int
    parent_branch: int | None
    parent_position: int


_redacted_tree_id: BindParameter[int] = bindparam("tree", type_=BIG_INTEGER)
_redacted_branch: BindParameter[int] = bindparam("of", type_=BIG_INTEGER)
_redacted_position: BindParameter[int] = bindparam("position", type_=BIG_INTEGER)
_changed_place = _redacted_tree_id, _redacted_branch, _redacted_position
_message_seq: BindParameter[int] = bindparam("seq", type_=BIG_INTEGER)


def _match_changed_place(table: Table) -> ColumnElement[bool]:
    """Build the condition for the row to change: ``tree``, ``of`` (its branch), ``position``."""
    return and_(
        table.c.tree_id == _redacted_tree_id,
        table.c.branch == _redacted_branch,
        table.c.seq == _redacted_position,
    )


def _bind_new_values(names: tuple[str, ...]) -> dict[str, BindParameter[Any]]:
    return {name: bindparam(f"new_{name}") for name in names}


def _build_place_deletion(table: Table) -> Statement[Row]:
    return Statement(delete(table).where(_match_changed_place(table)))


OPEN_REDACTION = Insertion(redactions, *RedactionRow._fields[:-1])
CLOSE_REDACTION = Statement(
    update(redactions).where(_match_changed_place(redactions)).values(finished_at=bindparam("now"))
)
_redaction_rows = select(*(redactions.c[name] for name in RedactionRow._fields))
_redaction_order = (redactions.c.redacted_at, redactions.c.branch, redactions.c.seq)
REDACTION = Statement(_redaction_rows.where(lines.match_place(redactions)), row=RedactionRow)
REDACTIONS = Statement(_redaction_rows.order_by(*_redaction_order), row=RedactionRow)
REDACTIONS_OF_TREE = Statement(
    _redaction_rows.where(redactions.c.tree_id == bindparam("tree_id")).order_by(*_redaction_order),
    row=RedactionRow,
)
_summary_record_join = and_(
    compaction_records.c.tree_id == summaries.c.tree_id,
    compaction_records.c.summary == summaries.c.summary,
)
COVERING_SUMMARIES = Statement(
    select(summaries.c.branch, summaries.c.last, compaction_records.c.compaction)
    .join(compaction_records, _summary_record_join)
    .where(
        summaries.c.tree_id == bindparam("tree_id"),
        summaries.c.first <= bindparam("seq"),
        summaries.c.last >= bindparam("seq"),
    ),
    row=SummaryEnd,
)
TREE_TITLES = Statement(
    select(sessions.c.id, sessions.c.title)
    .where(sessions.c.tree_id == bindparam("tree_id"), sessions.c.title.is_not(None))
    .order_by(sessions.c.id)
)
SET_REDACTED_TITLE = Statement(lines.update_session(title=bindparam("title")))
_unpurged_redactions = update(redactions).where(redactions.c.purged_at.is_(None))
MARK_REDACTIONS_PURGED = Statement(_unpurged_redactions.values(purged_at=bindparam("now")))
"""One purge is enough for all redactions of a file, whatever their trees."""

STORED_ATTRIBUTES = Statement(
    select(messages.c.stored_at, messages.c.wire_format).where(lines.match_place(messages)),
    row=StoredAttributes,
)
MESSAGE_CALLS = Statement(
    select(tool_calls.c.seq, *(tool_calls.c[name] for name in StoredCall._fields))
    .where(lines.match_place(tool_calls))
    .order_by(tool_calls.c.position)
)
BLANK_MESSAGE = Statement(
    update(messages)
    .where(_match_changed_place(messages))
    .values(_bind_new_values((*Columns._fields, "digest"))),
    on_server=select(
        func.redact_messages(
            *_changed_place, *_bind_new_values((*Columns._fields, "digest")).values()
        )
    ),
)
BLANK_CALL = Statement(
    update(tool_calls)
    .where(_match_changed_place(tool_calls), tool_calls.c.position == bindparam("number"))
    .values(_bind_new_values(StoredCall._fields)),
    on_server=select(
        func.redact_tool_calls(
            *_changed_place,
            bindparam("number", type_=BIG_INTEGER),
            *_bind_new_values(StoredCall._fields).values(),
        )
    ),
)
TOKEN_WEIGHT = Statement(select(message_facts.c.tokens).where(lines.match_place(message_facts)))
SET_TOKEN_WEIGHT = Statement(
    update(message_facts)
    .where(_match_changed_place(message_facts))
    .values(tokens=bindparam("weight"), role=bindparam("new_role"))
)
_tokens_through = message_facts.c.tokens_through
SHIFT_TOKEN_SUMS = Statement(
    update(message_facts)
    .where(
        message_facts.c.tree_id == _redacted_tree_id,
        message_facts.c.branch == _redacted_branch,
        message_facts.c.seq >= _redacted_position,
    )
    .values(tokens_through=_tokens_through + bindparam("difference", type_=BIG_INTEGER))
)
"""Changes the sums of a branch from a position on."""
DELETE_TOKEN_COUNTS = _build_place_deletion(token_counts)
DELETE_SEARCH_ROWS = _build_place_deletion(search_rows)
DELETE_RESULT_PATHS = _build_place_deletion(tool_result_paths)
DELETE_RESULT = _build_place_deletion(tool_results)
ANSWERING_POSITIONS = Statement(
    select(tool_results.c.seq)
    .where(
        tool_results.c.tree_id == bindparam("tree_id"),
        tool_results.c.branch == bindparam("branch"),
        tool_results.c.seq > _message_seq,
        tool_results.c.call_seq == _message_seq,
    )
    .order_by(tool_results.c.seq)
)
"""The results on a branch that answer the calls of a message."""
BRANCH_PARENTS = Statement(
    select(*(branches.c[name] for name in BranchParent._fields))
    .where(branches.c.tree_id == bindparam("tree_id"))
    .order_by(branches.c.branch),
    row=BranchParent,
)


def redact_message_at(
    connection: Connection,
    session_id: str,
    seq: int,
    reason: str,
    *,
    replacement: str | None = None,
    by: str | None = None,
    now: Now = None,
) -> Redaction:
    """Overwrite the content of a message, on every line that has it, and record the reason.

    Its content, the arguments of its calls and all other keys are removed. Its time stays; its
    role, status, names of tools and ids stay where they are known words or generated, others are
    replaced by neutral values, by which calls and results still find each other. A title that
    repeats the message becomes ``[redacted]``. The message then says ``[redacted]`` and has a key
    ``redacted``. Returns the record: that of the first time, if it was redacted before. Summaries
    that cover the message are named, not changed: undo those compactions and compact again. `purge`
    leaves no byte of it in the file; copies are named.

    With a ``replacement``, the whole message at that position, which may take several, is redacted
    and says this text: in place of what it said, or of the last of its results; ``redacted`` is
    ``"replaced"``. What was redacted before stays as it is. Where no words have to go, use
    `replace` instead, which can be undone.
    Raises SessionNotFound, PositionOutOfRange, InvalidValue.
    """
    asked = RedactionRequest(reason, by, require_moment(now), replacement)
    asked.check()
    line = Line(connection, lines.lock_tree(connection, session_id))
    line.pointer.check_message(seq)
    first = last = seq
    if replacement is not None:
        whole = load_message_at(line, seq)
        first, last = whole.before + 1, whole.message.seq
    for each in range(first, last + 1):
        _redact_position(line, each, asked, replacement if each == last else None)
    return _decode_redaction(REDACTION.one(connection, **line.place(last)), COPIES.rows(connection))


def _redact_position(line: Line, seq: int, asked: RedactionRequest, text: str | None) -> None:
    """Redact the row at a position, unless it was redacted before."""
    connection, place = line.connection, line.place(seq)
    if REDACTION.row(connection, **place) is not None:
        return
    _redact_titles(line, seq)
    forget_file_states(connection, place["tree_id"])
    row = RedactionRow(
        **place,
        session_id=line.pointer.session_id,
        reason=asked.reason,
        redacted_by=asked.by,
        redacted_at=asked.moment,
        summaries=json.dumps(_find_covering_compactions(line, place)),
        newest_copy=NEWEST_COPY.value(connection),
        purged_at=None,
    )
    OPEN_REDACTION.insert_many(connection, [row[:-1]])
    overwrite_message(line, place, text)
    delete_message_attachments(connection, place)
    invalidate_at_end(connection, place["tree_id"])
    CLOSE_REDACTION.run(connection, **_name_changed_place(place), now=asked.moment)


def list_redactions(connection: Connection, session_id: str | None = None) -> list[Redaction]:
    """Return the redactions of a session's line, or of the whole store, oldest first.

    Raises SessionNotFound.
    """
    copies = COPIES.rows(connection)
    if session_id is None:
        return [_decode_redaction(row, copies) for row in REDACTIONS.rows(connection)]
    line = Line(connection, lines.load_pointer(connection, session_id))
    rows = REDACTIONS_OF_TREE.rows(connection, tree_id=line.pointer.tree_id)
    return [
        _decode_redaction(row, copies)
        for row in rows
        if row.seq <= line.pointer.head and line.place(row.seq)["branch"] == row.branch
    ]


def mark_redactions_purged(connection: Connection, *, now: Now = None) -> None:
    """Record that the files hold no byte of the messages that were redacted until now."""
    MARK_REDACTIONS_PURGED.run(connection, now=require_moment(now))


def load_redacted_places(connection: Connection) -> dict[MessagePlace, SessionPosition]:
    """Return the session and position that each redaction names, by the message's place."""
    rows = REDACTIONS.rows(connection)
    return {(row.tree_id, row.branch, row.seq): (row.session_id, row.seq) for row in rows}


def has_message(connection: Connection, place: MessagePlace) -> bool:
    """Tell whether there is a message at a place."""
    return STORED_ATTRIBUTES.row(connection, **dict(zip(PLACE, place, strict=True))) is not None


def overwrite_message(line: Line, place: PlaceValues, text: str | None = None) -> None:
    """Overwrite the message that a line has at a place, and derive its dependent values again.

    It says ``text`` from now on, None: that it is redacted.
    Its tokens are counted again, and the sums of all messages after it change by the difference.
    """
    connection, seq = line.connection, place["seq"]
    calls = _load_stored_calls(connection, place)
    (said,) = load_chat_messages(line, seq, seq)
    words = extract_content_text(said.message.get("content"))
    delete_repeating_texts(connection, place["tree_id"], seq, words)
    stored = STORED_ATTRIBUTES.one(connection, **place)
    prepared = _redact_stored_message(line, seq, calls, stored.wire_format, text)
    continuing = _list_branches_through(connection, place)
    names = _name_changed_place(place)
    values = {**prepared.columns._asdict(), "digest": digest_row(prepared.digest, *stored)}
    BLANK_MESSAGE.run(connection, **names, **_name_new_values(values))
    for number, call in enumerate(prepared.calls):
        BLANK_CALL.run(connection, **names, number=number, **_name_new_values(call._asdict()))
    tokens = estimate_message_tokens(prepared.message)
    difference = tokens - TOKEN_WEIGHT.value(connection, **place)
    SET_TOKEN_WEIGHT.run(connection, **names, weight=tokens, new_role=prepared.columns.role)
    for branch in continuing:
        SHIFT_TOKEN_SUMS.run(connection, **{**names, "of": branch}, difference=difference)
    _replace_counts_and_entry(connection, place, prepared.message)
    if prepared.columns.role == "tool":
        _rederive_results(line, place, [seq])
    if calls:
        for branch in continuing:
            there = {**place, "branch": branch}
            answers = ANSWERING_POSITIONS.rows(connection, **there)
            _rederive_results(line, there, [answer for (answer,) in answers])


def _load_stored_calls(connection: Connection, place: PlaceValues) -> list[StoredCall]:
    """Return the calls of a message, with their whole arguments."""
    rows = MESSAGE_CALLS.rows(connection, **place)
    return [StoredCall(*call) for _, *call in restore_calls(connection, place, rows)]


def _replace_counts_and_entry(connection: Connection, place: PlaceValues, message: Message) -> None:
    """Delete the counts and index entries of a message; on a server index it anew."""
    names = _name_changed_place(place)
    DELETE_TOKEN_COUNTS.run(connection, **names)
    DELETE_SEARCH_ROWS.run(connection, **names)
    write_message_entries(
        connection, (place["tree_id"], place["branch"]), [(place["seq"], message)]
    )


def _redact_stored_message(
    line: Line, seq: int, calls: list[StoredCall], wire_format: str | None, text: str | None
) -> PreparedMessage:
    """Return the message at a position without its words."""
    (stored,) = load_chat_messages(line, seq, seq)
    message, tools = (
        stored.message,
        DECIDING_ARGUMENTS.keys() | load_tool_kinds(line.connection).keys(),
    )
    redacted = redact_message(message, calls, find_answered_call_id(message), tools, text)
    return prepare_message(redacted | build_redacted_wire(wire_format, message, redacted))


def build_end_pointer(pointer: Pointer, branch: int, last: int) -> Pointer:
    """Return a pointer to a position of any branch of a tree."""
    return pointer._replace(
        branch=branch, head=last, parent_position=last, head_turn=None, head_tokens=None
    )


def _name_changed_place(place: PlaceValues) -> dict[str, int]:
    """Return a place by the names that `_match_changed_place` binds."""
    return {"tree": place["tree_id"], "of": place["branch"], "position": place["seq"]}


def _name_new_values(values: dict[str, Any]) -> dict[str, Any]:
    """Return values by the names that `_bind_new_values` binds."""
    return {f"new_{name}": value for name, value in values.items()}


def _redact_titles(line: Line, seq: int) -> None:
    """Overwrite the titles of a tree's sessions that repeat the text of a message.

    Titles that an import made of it do; a later import follows no title that the store gave.
    """
    (stored,) = load_chat_messages(line, seq, seq)
    text = " ".join(extract_content_text(stored.message.get("content")).split())
    for session_id, title in TREE_TITLES.rows(line.connection, tree_id=line.pointer.tree_id):
        repeated = " ".join(title.split()).rstrip(f"{ELLIPSIS}.")
        is_within = len(repeated) >= MIN_REPEATED_LENGTH and repeated in text
        if repeated and (is_within or text.startswith(repeated)):
            titled = line.pointer._replace(session_id=session_id)
            SET_REDACTED_TITLE.run(line.connection, **titled.changed(), title=REDACTED_TEXT)


def _find_covering_compactions(line: Line, place: PlaceValues) -> list[int]:
    """Return the compactions whose summaries cover a message.

    A summary covers it if the line that the summary was made on runs through the message's place.
    """
    compactions = set()
    for each in COVERING_SUMMARIES.rows(
        line.connection, tree_id=place["tree_id"], seq=place["seq"]
    ):
        pointer = build_end_pointer(line.pointer, each.branch, each.last)
        if Line(line.connection, pointer).place(place["seq"]) == place:
            compactions.add(each.compaction)
    return sorted(compactions)


def _list_branches_through(connection: Connection, place: PlaceValues) -> list[int]:
    """Return the branches whose lines run through a place: its own, and those that continue it."""
    through = {place["branch"]: True}
    for branch, parent, position in BRANCH_PARENTS.rows(connection, tree_id=place["tree_id"]):
        is_after = parent != place["branch"] or position >= place["seq"]
        if parent in through and is_after:
            through[branch] = True
    return [*through]


def _rederive_results(line: Line, place: PlaceValues, positions: list[int]) -> None:
    """Derive the facts of results on the branch of a place again, and which calls they answer.

    All are deleted first, since a call that one result has answered is open to no other.
    """
    connection, pointer = line.connection, line.pointer
    for seq in positions:
        DELETE_RESULT_PATHS.run(connection, **_name_changed_place({**place, "seq": seq}))
        DELETE_RESULT.run(connection, **_name_changed_place({**place, "seq": seq}))
    for seq in positions:
        before = Line(connection, build_end_pointer(pointer, place["branch"], seq - 1))
        through = Line(connection, build_end_pointer(pointer, place["branch"], seq))
        (stored,) = load_chat_messages(through, seq, seq)
        write_results(connection, derive_results(before, seq, [prepare_message(stored.message)]))


def _decode_redaction(row: RedactionRow, copies: list[CopyRow]) -> Redaction:
    """Return a redaction as its record, with the copies that were begun before it had ended."""
    return Redaction(
        row.session_id,
        row.seq,
        row.reason,
        row.redacted_by,
        row.redacted_at,
        tuple(decode_as(list, row.summaries)),
        row.purged_at is not None,
        tuple(copy.path for copy in copies if copy.copy <= row.newest_copy),
    )
