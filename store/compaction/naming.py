"""The names of what a compaction hides: read once, from the newest message on, and carried on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import bindparam, select

from ..database import Statement, summaries
from ..history import read_chat_messages
from ..records import StoredMessage
from ..summaries import names_index
from ..view import ActiveSummary, ViewContext, list_range_summaries
from .plan import Plan, Previous

SCANNED = 1_000_000
"""Code points of messages that are looked through for names, from the newest one on."""

AT_ONCE = 100
"""Messages that are read in one go."""

Known = names_index.NameIndex

NAMES = Statement(
    select(summaries.c.names).where(
        summaries.c.tree_id == bindparam("tree_id"),
        summaries.c.summary == bindparam("number"),
    )
)


class Named(NamedTuple):
    """The names that are sent with a summary, and those that the next index begins with."""

    told: str
    kept: str | None


def named(context: ViewContext, planned: Plan, previous: Previous, facts: str) -> Named:
    """Return the names of what a plan hides, for a policy that has room for them.

    Those that ``facts``, a summary beside it or a message in sight tells have no place in the
    index, but are kept: they may be out of sight when the next summary is written.
    """
    room = context.policy.index_chars
    if not room:
        return Named("", None)
    known = names_index.select_names(_known(context, planned, previous), room)
    seen = {*_in_sight(context, planned), *_beside(context, previous, facts)}
    unseen = (name for name in known if name not in seen)
    text = names_index.render_index(unseen, room, context.policy.language)
    return Named(text, names_index.dump_index(known))


def _known(context: ViewContext, planned: Plan, previous: Previous) -> Known:
    """Return the names of all that a summary stands for.

    Of what the earlier ones stand for that had no index, the messages are read as well; of ranges
    that were hidden by name, what stands for them.
    """
    known: Known = {}
    first = planned.first
    for each in previous:
        kept = _kept(context, each)
        if kept is None:
            first = min(first, each.first)
        known = names_index.merge_indexes(known, names_index.load_index(kept))
    for each in list_range_summaries(planned.covered):
        names_index.add_message(
            known, each.last, each.message(context.policy), context.pointer.project_root
        )
    return names_index.merge_indexes(known, _read(context, first, planned.last))


def _kept(context: ViewContext, standing: ActiveSummary) -> str | None:
    """Return the names that are kept with a summary; None where it had no index."""
    place = {"tree_id": context.pointer.tree_id, "number": standing.number}
    kept: str | None = NAMES.value(context.connection, **place)
    return kept


def _read(context: ViewContext, first: int, last: int) -> Known:
    """Return the names in the messages of a range of a line, but for those hidden by name."""
    known: Known = {}
    root = context.pointer.project_root
    room = SCANNED
    for each in _backwards(context, first, last):
        room -= names_index.add_message(known, each.seq, each.message, root)
        if room < 0:
            break
    return known


def _backwards(context: ViewContext, first: int, last: int) -> Iterator[StoredMessage]:
    """Yield the messages of a range of a line, the newest first."""
    session = context.pointer.session_id
    for start in range(last - AT_ONCE + 1, first - AT_ONCE, -AT_ONCE):
        found = read_chat_messages(
            context.connection, session, max(start, first), start + AT_ONCE - 1
        )
        yield from (each for each in reversed(found) if context.visible.shows(each.seq))


def _in_sight(context: ViewContext, planned: Plan) -> Known:
    """Return the names in the messages that stay."""
    left = planned.left_of(context.visible)
    seen = _read(context, left.first_kept, context.last)
    for place in left.pinned:
        seen |= _read(context, place, place)
    return seen


def _beside(context: ViewContext, previous: Previous, facts: str) -> set[str]:
    """Return the names in the facts, and in the summaries that go on standing."""
    texts = [facts]
    for each in context.visible.active_summaries:
        if each not in previous:
            texts += [each.body, each.facts or ""]
    return names_index.extract_names(texts, context.pointer.project_root)
