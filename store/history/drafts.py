"""Answers that are being streamed, kept beside the line until they are messages.

A model may take a minute for an answer. Raw rows cannot be extended, so the received part of an
answer is kept apart, as a *draft*: the beginning of the message, and the pieces of text that follow
it. Saving a piece inserts one row, however long the answer is by now. Reads of a line do not look
for drafts, so drafts cost readers nothing.

A finished answer is appended like any other message, and its draft is deleted in the same
transaction. Until then the draft stays, whatever happens: it is listed, and can be finished or
discarded.

A draft's id consists of its tree and a random number in it, so it is found without a look-up of its
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    update,
)

from ..clock import Now, require_moment
from ..database import (
    RENEWAL_PATIENCE,
    Database,
    Insertion,
    Statement,
    draft_pieces,
    drafts,
    get_session_trees,
    sessions,
)
from ..errors import (
    VERIFY_HINT,
    Conflict,
    Damaged,
    DraftEnded,
    DraftNotFound,
    InvalidValue,
    SessionNotFound,
    quote_value,
)
from ..formats import get_format
from ..messages import (
    LEAST_ATTACHED_LENGTH,
    GivenMessage,
    Message,
    decode_as,
    dump_to_object,
    encode,
    prepare_message,
)
from ..records import Draft, StoredMessage
from . import append, lines, usages
from .append import Batch
from .draft_leases import (
    END_LEASE,
    LEASE_LEFT,
    RENEW_LEASE,
    DraftLease,
    is_lease_valid,
    match_draft,
    refuse_live_draft,
    refuse_live_drafts,
    render_draft_id,
)
from .lines import Line, Pointer, match_visible_drafts
from .sessions import check_owner, validate_text

DRAFT_ID_PATTERN = re.compile("([0-7][0-9a-f]{15})([0-7][0-9a-f]{15})")
"""The form of a draft's id: a tree and a number of 63 bits."""


class TextPiece(NamedTuple):
    """A run of text received for one key of a message."""

    key: str
    text: str


class ToldUsage(NamedTuple):
    """What a stream has told of the usage of its request.

    ``response`` has the model and the usage as a whole response would (None: no usage is known),
    ``whole`` tells whether the stream came to its end.
    """

    response: Message | None
    model: str | None
    provider: str | None
    whole: bool


class DraftRow(NamedTuple):
    """A draft as it is stored."""

    tree_id: int
    draft: int
    session_id: str
    branch: int
    head: int
    at: int
    message: str
    wire_format: str | None
    writer: str | None
    usage: str | None = None
    left: int | None = None

    @property
    def place(self) -> dict[str, int]:
        """The parameters of the draft in statements."""
        return {"tree_id": self.tree_id, "draft": self.draft}

    @property
    def id(self) -> str:
        """The id of the draft for callers."""
        return render_draft_id(self.tree_id, self.draft)

    @property
    def lease(self) -> DraftLease:
        """The sign of life of the draft."""
        return DraftLease(self.draft, self.writer, self.left)


_stored_fields = DraftRow._fields[:-1]
_draft_columns = [*(drafts.c[name] for name in _stored_fields), LEASE_LEFT]
_draft_owner_join = and_(
    sessions.c.tree_id == drafts.c.tree_id,
    sessions.c.id == drafts.c.session_id,
    sessions.c.owner == bindparam("owner"),
)
DRAFT = Statement(select(*_draft_columns).where(match_draft(drafts)), row=DraftRow)
SESSION_DRAFTS = Statement(select(*_draft_columns).where(match_visible_drafts()), row=DraftRow)
OWNER_DRAFTS = Statement(select(*_draft_columns).join(sessions, _draft_owner_join), row=DraftRow)
ALL_DRAFTS = Statement(select(*_draft_columns), row=DraftRow)
DRAFT_PIECES = Statement(
    select(draft_pieces.c.at, draft_pieces.c.key, draft_pieces.c.text)
    .where(match_draft(draft_pieces))
    .order_by(draft_pieces.c.piece)
)
PIECES_AFTER = Statement(
    select(draft_pieces.c.piece, draft_pieces.c.key, draft_pieces.c.text)
    .where(match_draft(draft_pieces), draft_pieces.c.piece > bindparam("after"))
    .order_by(draft_pieces.c.piece)
)
_last_piece = (
    select(func.coalesce(func.max(draft_pieces.c.piece), literal_column("0")))
    .where(
        draft_pieces.c.tree_id == bindparam("tree_id"),
        draft_pieces.c.draft == drafts.c.draft,
    )
    .scalar_subquery()
)
DRAFT_STATES = Statement(
    select(drafts.c.draft, drafts.c.writer, LEASE_LEFT, drafts.c.at, _last_piece)
    .where(match_visible_drafts())
    .order_by(drafts.c.draft)
)
INSERT_DRAFT = Insertion(drafts, *_stored_fields)
INSERT_PIECES = Insertion(draft_pieces)
SET_DRAFT_MESSAGE = Statement(
    update(drafts)
    .where(drafts.c.tree_id == bindparam("tree"), drafts.c.draft == bindparam("of"))
    .values(message=bindparam("given"), at=bindparam("now"))
)
SET_DRAFT_USAGE = Statement(
    update(drafts).where(match_draft(drafts)).values(usage=bindparam("told"))
)
DELETE_PIECES_FROM = Statement(
    delete(draft_pieces).where(
        match_draft(draft_pieces), draft_pieces.c.piece >= bindparam("first")
    )
)
DELETE_DRAFT = (
    Statement(delete(draft_pieces).where(match_draft(draft_pieces))),
    Statement(delete(drafts).where(match_draft(drafts))),
)


def begin_draft(
    connection: Connection,
    session_id: str,
    message: GivenMessage,
    *,
    expected: str | None = None,
    now: Now = None,
    format: str | None = None,  # noqa: A002 - the public name
    number: int,
    writer: str,
    leased: bool,
    alone: bool = False,
) -> Draft:
    """Begin a draft after a session's head, with the beginning of the message.

    ``number`` is a random one of 63 bits, ``writer`` names the process, which keeps a lock, or a
    lease in the row (``leased``). ``alone`` refuses a session that has a live draft. Raises
    InvalidMessage, SessionNotFound, Conflict, DraftBusy.
    """
    moment, text = require_moment(now), encode(decode_beginning(message, format))
    pointer = lines.lock_session(connection, session_id, expected)
    if alone:
        refuse_live_drafts(connection, pointer)
    place = (pointer.session_id, pointer.branch, pointer.head)
    kept = DraftRow(pointer.tree_id, number, *place, moment, text, format, writer)
    INSERT_DRAFT.run(connection, **kept._asdict())
    if leased:
        RENEW_LEASE.run(connection, **kept.place)
    return load_draft(connection, kept)


def renew_lease(database: Database, draft: str) -> None:
    """Show that a draft is still written, in a transaction of its own. Raises StoreError."""
    with database.writing(RENEWAL_PATIENCE) as connection:
        RENEW_LEASE.run(connection, **_parse_draft_id(draft))


def decode_beginning(
    message: GivenMessage,
    format: str | None,  # noqa: A002 - the public name
) -> Message:
    """Return the beginning of a message as an object.

    Whether it fits a named format is checked at the end. Raises InvalidMessage, InvalidValue.
    """
    begun = dump_to_object(message, 0)
    prepare_message(begun if format is None else {"role": get_format(format).name, **begun})
    return begun


def save_pieces(
    connection: Connection,
    session_id: str,
    draft: str,
    first: int,
    texts: Sequence[TextPiece],
    message: Message | None,
    *,
    now: Now = None,
    leased: bool = False,
    last: bool = False,
    usage: ToldUsage | None = None,
) -> None:
    """Save the text of an answer received since, and the message without it if that has changed.

    The texts become the pieces from the number ``first`` on, and replace any that exist: a save
    whose outcome is unknown can be repeated. It renews the lease of a draft that has one
    (``leased``); after the ``last`` save nobody writes the draft any more. ``usage`` is what is
    known of the request's usage; the last save records it. Raises SessionNotFound, DraftEnded.
    """
    moment = require_moment(now)
    text = None if message is None else encode(message)
    written = [(each.key, encode(each.text)) for each in texts]
    kept = _load_own_draft(connection, lines.lock_session(connection, session_id), draft)
    if last or leased:
        (END_LEASE if last else RENEW_LEASE).run(connection, **kept.place)
    DELETE_PIECES_FROM.run(connection, **kept.place, first=first)
    INSERT_PIECES.insert_many(
        connection,
        [
            (kept.tree_id, kept.draft, number, moment, *each)
            for number, each in enumerate(written, first)
        ],
    )
    if text is not None:
        SET_DRAFT_MESSAGE.run(connection, tree=kept.tree_id, of=kept.draft, given=text, now=moment)
    if usage is not None:
        told = None if last else encode(usage._asdict())
        SET_DRAFT_USAGE.run(connection, **kept.place, told=told)
        if last:
            _record_draft_usage(
                connection, kept, usage, load_draft(connection, kept).message, moment
            )


def _record_draft_usage(
    connection: Connection, kept: DraftRow, usage: ToldUsage, answer: Message, now: Now
) -> None:
    """Record the usage of an answer; if not all of it was told, the received text is counted."""
    is_told = usage.response is not None
    usages.record_usage(
        connection,
        kept.session_id,
        usage.response,
        model=usage.model,
        provider=None if is_told else usage.provider,
        received=None if is_told and usage.whole else answer,
        now=now,
    )


def append_draft(
    connection: Connection,
    session_id: str,
    draft: str,
    messages: Message | list[Message],
    *,
    expected: str | None = None,
    now: Now = None,
    format: str | None = None,  # noqa: A002 - the public name
    usage: ToldUsage | None = None,
    received: Message | None = None,
) -> StoredMessage:
    """Append a complete answer, and delete its draft; record its ``usage`` if that is given.

    An answer may consist of several messages; the last one is returned. ``received`` is all of it
    as one message, whose tokens are counted if the usage does not tell them.

    Raises SessionNotFound, DraftEnded, InvalidMessage, and Conflict if the head is not where the
    draft began, or the session's revision is not the expected one.
    """
    batch = append.prepare_batch(messages, require_moment(now), format)
    pointer = append.lock_for_batch(connection, session_id, batch, expected)
    kept = _load_own_draft(connection, pointer, draft)
    began, found = (kept.branch, kept.head), (pointer.branch, pointer.head)
    if began != found:
        raise Conflict(pointer.session_id, began, found, "head (branch, position)")
    if usage is not None:
        _record_draft_usage(connection, kept, usage, received or {}, now)
    return _append_and_delete(Line(connection, pointer), kept, batch)


def _append_and_delete(line: Line, kept: DraftRow, batch: Batch) -> StoredMessage:
    *_, stored = append.append_batch(line, batch)
    _delete_draft(line.connection, kept)
    return stored


def _delete_draft(connection: Connection, kept: DraftRow) -> None:
    for statement in DELETE_DRAFT:
        statement.run(connection, **kept.place)


def list_drafts(
    connection: Connection,
    session_id: str | None = None,
    *,
    owner: str | None = None,
    before: Now = None,
) -> list[Draft]:
    """Return the drafts of a session, of an owner's sessions or of all, the oldest first.

    They are answers that broke off, and those that are being streamed, which are ``live``.
    ``before`` is a moment: only drafts to which nothing was added since are returned. Raises
    SessionNotFound, InvalidValue.
    """
    if session_id is not None:
        if owner is not None:
            check_owner(connection, session_id, owner)
        pointer = lines.load_pointer(connection, session_id)
        rows = SESSION_DRAFTS.rows(connection, **pointer.session)
    elif owner is not None:
        rows = OWNER_DRAFTS.rows(connection, owner=validate_text("owner", owner))
    else:
        rows = ALL_DRAFTS.rows(connection)
    found = [load_draft(connection, each) for each in rows]
    if before is not None:
        found = [each for each in found if each.at < require_moment(before)]
    return sorted(found, key=lambda each: (each.at, each.draft))


def load_draft_states(connection: Connection, session_id: str) -> list[tuple[Any, ...]]:
    """Return a value that is equal as long as the drafts of a session stay as they are.

    Raises SessionNotFound.
    """
    tree_id = get_session_trees(connection).get(session_id)
    if tree_id is not None:
        DRAFT_STATES.send(connection, tree_id=tree_id, session_id=session_id)
    pointer = lines.load_pointer(connection, session_id)
    return [
        (draft, is_lease_valid(connection, DraftLease(draft, writer, left)), *grown)
        for draft, writer, left, *grown in DRAFT_STATES.rows(connection, **pointer.session)
    ]


class DraftProgress(NamedTuple):
    """The texts of a draft after one of its pieces, and whether more of them may come.

    ``begun`` is the message as it was begun, without them. ``last`` is the number of the newest
    piece.
    """

    tree_id: int
    session_id: str
    branch: int
    head: int
    begun: Message
    texts: list[TextPiece]
    last: int
    live: bool


def load_draft_progress(
    connection: Connection, draft: str | Draft, after: int, *, owner: str | None = None
) -> DraftProgress:
    """Return the texts that a draft got after the piece with a number. Raises DraftNotFound."""
    kept = _load_named_draft(connection, draft, owner)
    found = PIECES_AFTER.rows(connection, **kept.place, after=after)
    return DraftProgress(
        kept.tree_id,
        kept.session_id,
        kept.branch,
        kept.head,
        decode_as(dict, kept.message),
        [TextPiece(key, decode_as(str, text)) for _, key, text in found],
        found[-1][0] if found else after,
        is_lease_valid(connection, kept.lease),
    )


def finish_draft(
    connection: Connection,
    draft: str | Draft,
    *,
    update: Message | None = None,
    expected: str | None = None,
    owner: str | None = None,
    now: Now = None,
    format: str | None = None,  # noqa: A002 - the public name
    force: bool = False,
) -> StoredMessage:
    """Append the saved message of a draft at its session's head, and delete the draft.

    ``draft`` is its id, or a draft that `drafts` returned. ``update`` are values for keys of the
    message, such as one that marks it as incomplete; without them it is stored as received.
    ``expected`` is the revision that the session must have (None: any), ``owner`` its owner (None:
    any), ``format`` names that of the message as in `append` (None: the one in which it began).
    A live draft is only finished with ``force``: its stream then raises DraftEnded. Raises
    DraftNotFound, DraftBusy for a live one, Conflict, InvalidMessage, InvalidValue.
    """
    moment = require_moment(now)
    pointer, kept = _lock_named_draft(connection, draft, owner, force=force, update=update)
    if expected is not None:
        lines.check_revision(pointer, expected)
    began = load_draft(connection, kept)
    name = began.format if format is None else format
    batch = append.prepare_batch(update_message(began.message, update), moment, name)
    _record_left_usage(connection, kept, began, moment)
    return _append_and_delete(Line(connection, pointer), kept, batch)


def discard_draft(
    connection: Connection,
    draft: str | Draft,
    *,
    owner: str | None = None,
    force: bool = False,
) -> Draft:
    """Delete a draft and return its saved message, which is stored nowhere else.

    ``draft`` is its id, or a draft that `drafts` returned; ``owner`` is the owner of its session
    (None: any). A live draft is only discarded with ``force``: its stream then raises DraftEnded.
    Raises DraftNotFound, and DraftBusy for a live one.
    """
    _, kept = _lock_named_draft(connection, draft, owner, force=force)
    discarded = load_draft(connection, kept)
    _record_left_usage(connection, kept, discarded, discarded.at)
    _delete_draft(connection, kept)
    return discarded


def _record_left_usage(connection: Connection, kept: DraftRow, draft: Draft, moment: int) -> None:
    """Record the usage of an answer whose process was killed before it could."""
    if kept.usage is not None:
        told = ToldUsage(**decode_as(dict, kept.usage))
        _record_draft_usage(connection, kept, told, draft.message, moment)


def load_draft(connection: Connection, kept: DraftRow) -> Draft:
    """Return a draft with all of its saved text."""
    at, texts = kept.at, []
    for moment, key, text in DRAFT_PIECES.rows(connection, **kept.place):
        at = max(at, moment)
        texts.append(TextPiece(key, decode_as(str, text)))
    message = decode_as(dict, kept.message)
    if any(not isinstance(message.get(each.key) or "", str) for each in texts):
        raise Damaged(f"the draft {kept.id!r:.80} has no text where texts came; {VERIFY_HINT}")
    message = extend_message(message, texts)
    place = (kept.branch, kept.head)
    live = is_lease_valid(connection, kept.lease)
    return Draft(kept.id, kept.session_id, message, at, *place, kept.wire_format, live)


def extend_message(message: Message, texts: Iterable[TextPiece]) -> Message:
    """Return a message with the received texts added to the values of their keys."""
    came: dict[str, list[str]] = {}
    for each in texts:
        came.setdefault(each.key, [message.get(each.key) or ""]).append(each.text)
    return {**message, **{key: "".join(parts) for key, parts in came.items()}}


def update_message(message: Message, changes: Message | None) -> Message:
    """Return a message with other values for some keys. Raises InvalidValue for no mapping."""
    if changes is not None and not isinstance(changes, Mapping):
        raise InvalidValue(
            f"changes of a message must be keys and values, not {quote_value(changes)}"
        )
    return {**message, **(changes or {})}


def has_answered_message(line: Line, draft: Draft) -> bool:
    """Tell whether a line still has the message that a draft answers, at the draft's position."""
    line_then = line.pointer._replace(branch=draft.branch, parent_position=draft.head)
    then = Line(line.connection, line_then).place(draft.head)
    return then == line.place(draft.head)


def _lock_named_draft(
    connection: Connection,
    draft: str | Draft,
    owner: str | None,
    *,
    force: bool,
    update: Message | None = None,
) -> tuple[Pointer, DraftRow]:
    """Lock the session of a draft; return its pointer and the draft.

    Its tree is locked, too, where the message or its ``update`` is long enough for an attachment,
    as an append locks it. Raises DraftNotFound, and DraftBusy for a live one without ``force``.
    """
    named = _load_named_draft(connection, draft, owner)
    is_long = len(named.message) + len(str(update)) > LEAST_ATTACHED_LENGTH
    lock = lines.lock_tree if is_long else lines.lock_session
    try:
        pointer = lock(connection, named.session_id)
    except SessionNotFound as error:
        raise DraftNotFound(named.id) from error
    kept = _load_session_draft(connection, pointer, named.id)
    if not force:
        refuse_live_draft(connection, kept.session_id, kept.tree_id, kept.lease)
    return pointer, kept


def _load_named_draft(connection: Connection, draft: str | Draft, owner: str | None) -> DraftRow:
    """Return a draft of an owner's session (None: of any). Raises DraftNotFound."""
    kept = _load_draft_row(connection, draft.draft if isinstance(draft, Draft) else draft)
    if owner is not None:
        try:
            check_owner(connection, kept.session_id, owner)
        except SessionNotFound as error:
            raise DraftNotFound(kept.id) from error
    return kept


def _load_own_draft(connection: Connection, pointer: Pointer, draft: str) -> DraftRow:
    """Return the draft of a stream, whose session is locked. Raises DraftEnded."""
    try:
        return _load_session_draft(connection, pointer, draft)
    except DraftNotFound as error:
        raise DraftEnded(pointer.session_id, draft) from error


def _load_session_draft(connection: Connection, pointer: Pointer, draft: str) -> DraftRow:
    """Return a draft of a session that is locked. Raises DraftNotFound."""
    kept = _load_draft_row(connection, draft)
    if (kept.tree_id, kept.session_id) != (pointer.tree_id, pointer.session_id):
        raise DraftNotFound(draft)
    return kept


def _load_draft_row(connection: Connection, draft: str) -> DraftRow:
    """Return a draft by its id. Raises DraftNotFound."""
    kept = DRAFT.row(connection, **_parse_draft_id(draft))
    if kept is None:
        raise DraftNotFound(draft)
    return kept


def _parse_draft_id(draft: str) -> dict[str, int]:
    """Return the parameters of a draft in statements. Raises DraftNotFound."""
    named = DRAFT_ID_PATTERN.fullmatch(draft) if isinstance(draft, str) else None
    if named is None:
        raise DraftNotFound(draft)
    tree_id, number = (int(each, 16) for each in named.groups())
    return {"tree_id": tree_id, "draft": number}
