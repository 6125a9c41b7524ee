"""The operations of a store, each of one transaction; every face has them under these names.

Those of `Operations` name the sessions that they are about, so that a face may let through what is
about an owner's sessions only. What is about the whole store stands in `Whole`.
"""

from __future__ import annotations

from .. import compaction, inspection
from ..history import append as appending
from ..history import (
    beside,
    erasure,
    heads,
    left,
    listing,
    lookup,
    redaction,
    roots,
    spending,
    tails,
    titles,
)
from ..history import drafts as unfinished
from ..history import raw as history
from ..history import sessions as known_sessions
from ..history import siblings as alike
from ..history import usages as recorded
from ..inspection import integrity as verifying
from ..search import recalling
from ..view import build as views
from ..view import hiding as line_records
from .binding import reads, writes


class Operations:
    """What can be asked of sessions in one transaction."""

    create_session = writes(known_sessions.create_session)
    session = reads(known_sessions.session)
    title = reads(titles.title)
    sessions = reads(listing.list_sessions)
    count_sessions = reads(listing.count_sessions)
    archive = writes(known_sessions.archive)
    unarchive = writes(known_sessions.unarchive)
    rename_session = writes(known_sessions.rename_session)
    set_metadata = writes(known_sessions.set_metadata)
    set_project_root = writes(roots.set_project_root)
    append = writes(appending.append)
    messages = reads(history.read)
    message = reads(lookup.message)
    find = reads(lookup.find)
    turns = reads(lookup.turns)
    fork = writes(heads.fork)
    rewind = writes(heads.rewind)
    switch = writes(heads.switch)
    branches = reads(left.branches_of)
    siblings = reads(alike.siblings)
    replace = writes(tails.replace)
    pop = writes(tails.pop)
    drafts = reads(unfinished.list_drafts)
    finish_draft = writes(unfinished.finish_draft)
    discard_draft = writes(unfinished.discard_draft)
    undo_rewind = writes(heads.undo_rewind)
    head_moves = reads(heads.moves)
    view = reads(views.view)
    check = reads(compaction.check)
    record_usage = writes(recorded.record_usage)
    usages = reads(spending.list_usages)
    usage_totals = reads(spending.usage_totals)
    annotate = writes(beside.annotate)
    annotations = reads(beside.list_notes)
    compactions = reads(compaction.compactions)
    hidden = reads(line_records.hidden)
    recall = reads(recalling.recall)
    replaced = reads(inspection.replaced)
    hide = writes(compaction.hide)
    plan_clearing = reads(compaction.plan_clearing)
    plan_compaction = reads(compaction.plan_compaction)
    undo_compaction = writes(compaction.undo_compaction)
    redact = writes(redaction.redact)


class Whole(Operations):
    """What can be asked of a whole store in one transaction."""

    redactions = reads(redaction.redactions_of)
    erasures = reads(erasure.erasures)
    copies = reads(inspection.listed)
    verify = reads(verifying.verify)
