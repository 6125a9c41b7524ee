"""The rows of pictures and files that messages hold: once a tree, by the SHA-256 of their bytes.

A message has a row for each place in its content, and the bytes have one for all messages of the
tree, forks included; trees share nothing. Rows that are read get their whole content back before
anything else sees them, so that digests, views and exports are those of a message whose pictures
are in its text, as they are in the messages of earlier releases. Readers of words alone take the
content as it is stored: no word is apart from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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
from ..messages import ATTACHED_FORM, AttachedBytes, PreparedMessage, attach_bytes
from . import lines
from .lines import Pointer

MOST_DELETED = 8
"""Attachments that are deleted at once."""


class AttachmentPlace(NamedTuple):
    """A place in the content of the message at a position of a branch, and its bytes."""

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
    )
    .order_by(_places.seq, _places.position),
    row=AttachmentPlace,
)
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


def restore_contents(
    connection: Connection,
    run: Mapping[str, int],
    rows: list[Row],
) -> list[Row]:
    """Return rows of messages of a branch with their whole contents.

    The first value of a row is its position, the last two are the form and the text of its content;
    no text (None) stays none. Raises Damaged.
    """
    # An index from the front is twice as fast as one from the end, and most rows have no picture.
    get_form = itemgetter(len(rows[0]) - 2 if rows else 0)
    if ATTACHED_FORM not in map(get_form, rows):
        return rows
    wanted = [seq for seq, *_, form, text in rows if form == ATTACHED_FORM and text]
    held = _load_attached_bytes(connection, run, wanted)
    restored = []
    for row in rows:
        seq, *others, form, text = row
        if form == ATTACHED_FORM:
            whole = attach_bytes(text, held.get(seq, ())) if text else None
            restored.append((seq, *others, "json", whole))
        else:
            restored.append(row)
    return restored


def _load_attached_bytes(
    connection: Connection, run: Mapping[str, int], wanted: list[int]
) -> dict[int, list[AttachedBytes]]:
    """Return what the messages at some positions of a branch hold, in the order of its places."""
    of = {name: run[name] for name in ("tree_id", "branch")}
    found = ATTACHMENT_PLACES.rows(connection, **of, wanted=json.dumps(wanted))
    return {
        seq: [AttachedBytes(*each[1:]) for each in places]
        for seq, places in groupby(found, attrgetter("seq"))
    }


def delete_unused_attachments(connection: Connection, tree_id: int) -> None:
    """Delete all attachments of a tree that no message has any more."""
    while DELETE_UNUSED_ATTACHMENTS.count_changed(connection, tree_id=tree_id):
        pass


def delete_message_attachments(connection: Connection, place: Mapping[str, int]) -> None:
    """Delete the attachments of a message that is being redacted, unless others have them."""
    DELETE_ATTACHMENT_PLACES.run(connection, **place)
    delete_unused_attachments(connection, place["tree_id"])
