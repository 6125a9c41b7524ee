"""The operations of a store, each of one transaction; every face has them under these names.

Those of `Operations` name the sessions that they are about, so that a face may let through what is
about an owner's sessions only. What is about the whole store stands in `Whole`. Each is found in
its room where it is first asked for; reading, which hardly any program does without, at once.
"""

from __future__ import annotations

from .. import compaction, history, inspection, search
from .. import view as views
from ..history import raw_messages
from .binding import reads, writes


class Operations:
    """What can be asked of sessions in one transaction."""

    create_session = writes(lambda: history.sessions.create_session)
    session = reads(lambda: history.sessions.session)
    title = reads(lambda: history.titles.title)
    sessions = reads(lambda: history.listing.list_sessions)
    count_sessions = reads(lambda: history.listing.count_sessions)
    archive = writes(lambda: history.sessions.archive)
    unarchive = writes(lambda: history.sessions.unarchive)
    rename_session = writes(lambda: history.sessions.rename_session)
    set_metadata = writes(lambda: history.sessions.set_metadata)
    set_project_root = writes(lambda: history.project_root.set_project_root)
    append = writes(lambda: history.append.append)
    messages = reads(lambda: raw_messages.read_messages)
    message = reads(lambda: history.lookup.message)
    find = reads(lambda: history.lookup.find)
    turns = reads(lambda: history.lookup.turns)
    fork = writes(lambda: history.heads.fork)
    rewind = writes(lambda: history.heads.rewind)
    switch = writes(lambda: history.heads.switch)
    branches = reads(lambda: history.session_branches.branches_of)
    siblings = reads(lambda: history.siblings.siblings)
    replace = writes(lambda: history.tails.replace)
    pop = writes(lambda: history.tails.pop)
    drafts = reads(lambda: history.drafts.list_drafts)
    finish_draft = writes(lambda: history.drafts.finish_draft)
    discard_draft = writes(lambda: history.drafts.discard_draft)
    undo_rewind = writes(lambda: history.heads.undo_rewind)
    head_moves = reads(lambda: history.moves.moves_of)
    view = reads(lambda: views.build.view)
    view_sql = reads(lambda: views.statement.view_sql)
    check = reads(lambda: compaction.check)
    record_usage = writes(lambda: history.usages.record_usage)
    usages = reads(lambda: history.usage_reports.list_usages)
    usage_totals = reads(lambda: history.usage_reports.usage_totals)
    annotate = writes(lambda: history.message_notes.annotate)
    annotations = reads(lambda: history.message_notes.list_notes)
    compactions = reads(lambda: compaction.compactions)
    hidden = reads(lambda: views.visible_set.hidden)
    recall = reads(lambda: search.passages.recall)
    replaced = reads(lambda: inspection.replaced)
    hide = writes(lambda: compaction.hide)
    plan_clearing = reads(lambda: compaction.plan_clearing)
    plan_compaction = reads(lambda: compaction.plan_compaction)
    undo_compaction = writes(lambda: compaction.undo_compaction)
    redact = writes(lambda: history.redaction.redact)


class Whole(Operations):
    """What can be asked of a whole store in one transaction."""

    redactions = reads(lambda: history.redaction.redactions_of)
    erasures = reads(lambda: history.erasure.erasures)
    copies = reads(lambda: inspection.listed)
    verify = reads(lambda: inspection.integrity.verify)
