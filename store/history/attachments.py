"""The rows of pictures and files that messages hold: once a tree, by the SHA-256 of their bytes.

A message has a row for each place in its texts, and the bytes have one for all messages of the
tree, forks included; trees share nothing. Rows that are read get their whole texts back before
anything else sees them, so that digests, facts, views and exports are those of a message whose
pictures are in its text, as they are in the messages of earlier releases. Readers of words alone
take the content and the rest as they are stored: no word is apart from these.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from sqlalchemy import (
    Connection,
    LargeBinary,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    select,
)

from ..database import (
    BIG_INTEGER,
    Insertion,
    Row,
    Statement,
    attachments,
    json_sql,
    message_attachments,
)
from ..messages import (
    ATTACHED_FORM,
    ATTACHED_MARK,
    CONTENT_NUMBER,
    FIRST_CALL_NUMBER,
    REST_NUMBER,
    TEXT_SPAN,
    WHOLE_FORMS,
    AttachedBytes,
    PreparedMessage,
    attach_bytes,
)
from . import lines
from .lines import Pointer

MOST_DELETED = 8
"""Attachments that are deleted at once."""


LAST_POSITION = 2**63 - 1
RunValues = Mapping[str, int]
"""A run of positions of a branch, or one of them, by the names of its columns."""
RowList = list[Row]


class AttachmentPlace(NamedTuple):
    """A place in a text of the message at a position of a branch, and its bytes."""

    seq: int
    position: int
    encoding: str
    digest: bytes
    data: bytes


_a, _places = attachments.c, message_attachments.c
_attachment_tree_id = bindparam("tree_id", type_=BIG_INTEGER)
INSERT_ATTACHMENT = Insertion(attachments)
INSERT_ATTACHMENT_PLACES = Insertion(message_attachments)
KNOWN_ATTACHMENT = Statement(
    select(literal_column("1")).where(
        _a.tree_id == _attachment_tree_id, _a.digest == bindparam("digest", type_=LargeBinary)
    )
)
ATTACHMENT_PLACES = Statement(
    select(_places.seq, _places.position, _places.encoding, _places.digest, _a.data)
    .join_from(
        message_attachments,
        attachments,
        _a.digest == _places.digest,
    )
    .where(
        _a.tree_id == _attachment_tree_id,
        _places.tree_id == _attachment_tree_id,
        _places.branch == bindparam("branch", type_=BIG_INTEGER),
        _places.seq.in_(json_sql.select_positions("wanted")),
        _places.position.between(
            bindparam("least_position", type_=BIG_INTEGER),
            bindparam("most_position", type_=BIG_INTEGER),
        ),
    )
    .order_by(_places.seq, _places.position),
    row=AttachmentPlace,
)
ATTACHED_CALLS = Statement(
    select(_places.seq)
    .where(
        lines.match_run(message_attachments),
        _places.position >= literal_column(str(FIRST_CALL_NUMBER * TEXT_SPAN)),
    )
    .distinct()
)
"""The messages of a run with calls whose arguments have attachments."""
_unused_digests = (
    select(_a.digest)
    .where(
        _a.tree_id == _attachment_tree_id,
        ~exists().where(_places.tree_id == _attachment_tree_id, _places.digest == _a.digest),
    )
    .limit(literal_column(str(MOST_DELETED)))
)
DELETE_UNUSED_ATTACHMENTS = Statement(
    delete(attachments).where(_a.tree_id == _attachment_tree_id, _a.digest.in_(_unused_digests)),
    on_server=select(
        func.erase_attachments(_attachment_tree_id, literal_column(str(MOST_DELETED)))
    ),
)
"""Deletes a few attachments of a tree that no message has any more."""
DELETE_ATTACHMENT_PLACES = Statement(
    delete(message_attachments).where(lines.match_place(message_attachments)),
    on_server=select(
        func.redact_attachments(
            *(bindparam(name, type_=BIG_INTEGER) for name in ("tree_id", "branch", "seq"))
        )
    ),
)


def insert_attachments(
    connection: Connection, pointer: Pointer, start: int, messages: Iterable[PreparedMessage]
) -> None:
    """Write the attachments of new messages from a position on.

    Those that the tree has already are only named. On a server the tree is locked.
    """
    for seq, message in enumerate(messages, start):
        if message.detached is None:
            continue
        place = (pointer.tree_id, pointer.branch, seq)
        attached = message.detached.attached
        for *_, digest, data in attached:
            key = {"tree_id": pointer.tree_id, "digest": digest}
            if not KNOWN_ATTACHMENT.row(connection, **key):
                INSERT_ATTACHMENT.run(connection, **key, data=data)
        rows = [(*place, *each[:-1]) for each in attached]
        INSERT_ATTACHMENT_PLACES.insert_many(connection, rows)


def restore_contents(connection: Connection, run: RunValues, rows: RowList) -> RowList:
    """Return rows of messages of a branch with their whole contents.

    The first value of a row is its position, the last two are the form and the text of its content;
    no text (None) stays none. Raises Damaged.
    """
    # An index from the front is twice as fast as one from the end, and most rows have no picture.
    get_form = itemgetter(len(rows[0]) - 2 if rows else 0)
    if ATTACHED_FORM not in map(get_form, rows):
        return rows
    wanted = [seq for seq, *_, form, text in rows if form == ATTACHED_FORM and text]
    held = _load_attached_bytes(connection, run, wanted, CONTENT_NUMBER)
    restored = []
    for row in rows:
        seq, *others, form, text = row
        if form == ATTACHED_FORM:
            whole = attach_bytes(text, held.get(seq, ())) if text else None
            restored.append((seq, *others, "json", whole))
        else:
            restored.append(row)
    return restored


def restore_messages(connection: Connection, run: RunValues, rows: RowList) -> RowList:
    """Return rows of messages of a branch with their whole contents and rests.

    A row is one of `restore_contents`, with the rest of its message before the content. Raises
    Damaged.
    """
    rows = restore_contents(connection, run, rows)
    # Most rests are one of a few orders of keys.
    get_rest = itemgetter(len(rows[0]) - 3 if rows else 0)
    rests = {*map(get_rest, rows)}
    marked = {rest for rest in rests if rest and rest[1:2] == ATTACHED_MARK}
    if not marked:
        return rows
    wanted = [row[0] for row in rows if row[-3] in marked]
    held = _load_attached_bytes(connection, run, wanted, REST_NUMBER)
    restored = []
    for row in rows:
        seq, *others, rest, form, text = row
        if rest in marked:
            unmarked = rest.replace(ATTACHED_MARK, "", 1)
            rest = attach_bytes(unmarked, held.get(seq, ()))
        restored.append((seq, *others, rest, form, text))
    return restored


_get_arguments_form = itemgetter(3)


def restore_calls(connection: Connection, run: RunValues, rows: RowList) -> RowList:
    """Return rows of calls of a branch with their whole arguments.

    A row has the position of its message and the values of a `StoredCall`; the calls of a message
    are all there, in order. Raises Damaged.
    """
    if WHOLE_FORMS.keys().isdisjoint(map(_get_arguments_form, rows)):
        return rows
    wanted = {row[0] for row in rows if row[3] in WHOLE_FORMS}
    held = load_attached_arguments(connection, run, wanted)
    numbers: Counter[int] = Counter()
    restored = []
    for row in rows:
        seq, call_id, name, form, arguments, extra = row
        if form in WHOLE_FORMS:
            theirs = held.get((seq, numbers[seq]), ())
            arguments = attach_bytes(arguments or "", theirs)
            restored.append((seq, call_id, name, WHOLE_FORMS[form], arguments, extra))
        else:
            restored.append(row)
        numbers[seq] += 1
    return restored


def restore_call(
    connection: Connection,
    place: RunValues,
    number: int,
    form: str | None,
    arguments: str | None,
) -> tuple[str | None, str | None]:
    """Return the form and the whole arguments of a call, by the place of its message.

    Raises Damaged.
    """
    if form not in WHOLE_FORMS:
        return form, arguments
    seq = place["seq"]
    by_call = load_attached_arguments(connection, place, [seq])
    held = by_call.get((seq, number), ())
    return WHOLE_FORMS[form], attach_bytes(arguments or "", held)


def load_attached_arguments(
    connection: Connection, run: RunValues, wanted: Collection[int]
) -> dict[tuple[int, int], list[AttachedBytes]]:
    """Return what arguments hold, by the position of their message and the number of the call."""
    first = FIRST_CALL_NUMBER
    found = _load_attached_bytes(connection, run, wanted, first, LAST_POSITION)
    by_call: dict[tuple[int, int], list[AttachedBytes]] = {}
    for seq, attached in found.items():
        for each in attached:
            number = each.position // TEXT_SPAN - first
            by_call.setdefault((seq, number), []).append(each)
    return by_call


def _load_attached_bytes(
    connection: Connection,
    run: RunValues,
    wanted: Iterable[int],
    number: int,
    last: int | None = None,
) -> dict[int, list[AttachedBytes]]:
    """Return what the texts of a number hold in the messages at some positions of a branch.

    They are in the order of their places; ``last`` is the last position of another text.
    """
    found = ATTACHMENT_PLACES.rows(
        connection,
        **{name: run[name] for name in ("tree_id", "branch")},
        wanted=json.dumps([*wanted]),
        least_position=number * TEXT_SPAN,
        most_position=(number + 1) * TEXT_SPAN - 1 if last is None else last,
    )
    return {
        seq: [AttachedBytes(*each[1:]) for each in places]
        for seq, places in groupby(found, attrgetter("seq"))
    }


def delete_unused_attachments(connection: Connection, tree_id: int) -> None:
    """Delete all attachments of a tree that no message has any more."""
    while DELETE_UNUSED_ATTACHMENTS.count_changed(connection, tree_id=tree_id):
        pass


def delete_message_attachments(connection: Connection, place: RunValues) -> None:
    """Delete the attachments of a message that is being redacted, unless others have them."""
    DELETE_ATTACHMENT_PLACES.run(connection, **place)
    delete_unused_attachments(connection, place["tree_id"])
