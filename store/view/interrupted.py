"""Answers that broke off, shown as drafts if the policy asks for it.

A draft is placed after the message that it answers, on every line with this message, until the line
continues with another answer instead. So the model understands a user who says "go on".
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import history
from ..formats import PlacedMessage, render_draft_text
from ..records import Draft
from .context import ViewContext

DRAFT_RULE = "draft"
DRAFT_REASON = "an answer that broke off, which is no message: draft {}"


def insert_drafts(context: ViewContext, placed: list[PlacedMessage]) -> list[PlacedMessage]:
    """Return the messages of a view with the answers that broke off in their places."""
    shown = placed
    for draft in _list_view_drafts(context):
        text = render_draft_text(draft.message, draft.format)
        behind = (
            index
            for index, each in enumerate(shown)
            if each.seq is not None and each.seq > draft.head and each.call_id is None
        )
        place = next(behind, len(shown))
        if text and not _has_open_calls(shown[:place]) and not _is_answer_next(shown[place:]):
            message = {"role": "assistant", "content": f"{text}\n\n{context.policy.draft_notice}"}
            made = PlacedMessage(None, message, DRAFT_REASON.format(draft.draft), rule=DRAFT_RULE)
            shown = [*shown[:place], made, *shown[place:]]
    return shown


def _list_view_drafts(context: ViewContext) -> Iterator[Draft]:
    """Yield the drafts of the session that follow a message of the view."""
    known = history.drafts.list_drafts(context.connection, context.pointer.session_id)
    seen = (draft for draft in known if _is_in_sight(context, draft))
    yield from (draft for draft in seen if history.drafts.has_answered_message(context.raw, draft))


def _is_in_sight(context: ViewContext, draft: Draft) -> bool:
    """Tell whether both the message that a draft answers and the position after it are shown."""
    visible = context.visible
    if not max(1, visible.first_kept - 1) <= draft.head <= context.last:
        return False
    return visible.shows(draft.head) and visible.shows(draft.head + 1)


def _has_open_calls(before: list[PlacedMessage]) -> bool:
    """Tell whether the last message has calls, which have no results yet."""
    return bool(before) and bool(before[-1].calls)


def _is_answer_next(behind: list[PlacedMessage]) -> bool:
    """Tell whether the line continues with an answer."""
    return bool(behind) and behind[0].message.get("role") == "assistant"
