"""The view: the messages for the model, computed from a line by the rules of a policy.

First the rules judge the narrow tables. Then one scan of each run reads the messages, except the
contents that will be replaced. Last, calls and results are paired and the messages are written for
the API. No stored byte changes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, require_moment
from ..database import get_logger, pause_gc
from ..formats import (
    ANTHROPIC,
    CHAT,
    PlacedMessage,
    WrittenRequest,
    add_reasoning,
    copy_written_message,
    get_format,
    keep_own_markers,
    remove_extensions,
)
from ..history import lines, load_totals, raw_messages, session_branches
from ..messages import Message
from ..policy import STANDARD_POLICY, Policy, check_policy
from ..ready import Language
from ..records import View
from .context import ViewContext, load_view_context
from .explanation import Explanation, ExplanationInputs
from .following import FollowedLine, follow_line
from .interrupted import insert_drafts
from .log_messages import choose_text
from .pairing import merge_summaries
from .prompt_cache import build_view_sight, find_earlier_request
from .read_files import log_reads
from .rules import RULE_LOG_TEXTS
from .visible_set import ActiveSummary, HiddenRange

view_logger = get_logger(__name__)


def view(
    connection: Connection,
    session_id: str,
    policy: Policy | None = None,
    *,
    at: int | None = None,
    now: Now = None,
    format: str = "openai",  # noqa: A002 - the public name
    branch: int | None = None,
) -> View:
    """Return the messages for the model: a line up to position ``at``, by a policy at a moment.

    Defaults: ``at`` is the end of the line, ``policy`` is ``Policy()``, ``now`` is the present. For
    coding agents ``Policy.named("agent")`` is the better policy. The same line, policy and moment
    always give the same messages, unless a compaction is recorded later at that very position.
    ``branch`` names a line that the session can go back to, so that its requests can be replayed
    too. Raises SessionNotFound, PositionOutOfRange, and InvalidValue for a branch or an unknown
    format.
    """
    get_format(format)
    pointer = session_branches.find_line_pointer(connection, session_id, branch)
    last = lines.resolve_position(pointer, at)
    rules = STANDARD_POLICY if policy is None else check_policy(policy)
    context = load_view_context(connection, pointer, rules, last=last, now=require_moment(now))
    first = context.visible.first_kept
    runs = partial(context.told, first, context.last)
    with pause_gc(context.last - first), raw_messages.report_damage(connection, runs):
        return compose_view(context, format).written(format)


class ComposedView(NamedTuple):
    """A view that is not written for a provider yet.

    ``sent`` are its messages as cached for the format, None where they still have to be written.
    """

    placed: list[PlacedMessage]
    explained: Explanation
    sent: list[Message] | None
    session_id: str
    branch: int
    at: int
    language: Language

    def written(self, format: str) -> View:  # noqa: A002 - the public name
        """Return the view in a format; the caller may change its messages."""
        with pause_gc(len(self.placed)):
            messages, system = self._request(format)
        return View(
            messages,
            self.explained,
            self.session_id,
            self.branch,
            self.at,
            system,
        )

    def _request(self, format: str) -> WrittenRequest:  # noqa: A002 - the public name
        if self.sent is not None:
            return WrittenRequest([*map(copy_written_message, self.sent)])
        return get_format(format).request(self.placed, self.language)


def compose_view(context: ViewContext, format: str = CHAT.name) -> ComposedView:  # noqa: A002 - the public name
    """Return the view of a look, before it is written in a format."""
    with pause_gc(context.last - context.visible.first_kept):
        followed = follow_line(context, format)
        pointer, made = context.pointer, followed.rendered
        placed, sent = _order_messages(context, followed)
        inputs = ExplanationInputs(
            build_view_sight(context),
            get_format(format).names,
            placed,
            made.judged,
            followed.tokens,
            followed.files,
            made.pictured,
            load_totals(context.raw, context.last).tokens,
            find_earlier_request(context, placed),
            made.left_out,
            format,
        )
        explained = Explanation(inputs)
        log_reads(pointer.session_id, made.judged, followed.files)
        if view_logger.isEnabledFor(logging.INFO):
            for rule, text in {
                name: choose_text(texts) for name, texts in RULE_LOG_TEXTS.items()
            }.items():
                if times := explained.stats.replaced.get(rule):
                    view_logger.info(
                        text, times, extra={"session_id": pointer.session_id, "rule": rule}
                    )
        placed, sent = _apply_provider_changes(context.policy, placed, sent, format)
        language = context.policy.language
        line = (pointer.session_id, pointer.branch, context.last)
        return ComposedView(placed, explained, sent, *line, language)


OrderedMessages = tuple[list[PlacedMessage], list[Message] | None]
"""Messages in order, and the same messages as they are sent, if known."""


def _apply_provider_changes(
    policy: Policy,
    placed: list[PlacedMessage],
    sent: list[Message] | None,
    format: str,  # noqa: A002 - the public name
) -> OrderedMessages:
    """Return messages with the changes for a provider that a policy asks for."""
    if policy.foreign_reasoning == "text":
        told = add_reasoning(placed, format, extensions=policy.chat_extensions)
        placed, sent = [*told], None
    if not policy.chat_extensions and format == CHAT.name:
        placed, sent = [*map(remove_extensions, placed)], None
    if policy.cache_control and format == ANTHROPIC.name:
        placed = keep_own_markers(placed, format)
    return placed, sent


def _order_messages(context: ViewContext, followed: FollowedLine) -> OrderedMessages:
    """Return the messages in order: pinned ones, summaries, then the rest with its insertions.

    If more than summaries is inserted, the messages have to be written again.
    """
    placed, sent = followed.rendered.placed, followed.written
    visible, policy = context.visible, context.policy
    if visible.holes:
        placed, sent = [*_insert_range_summaries(placed, visible.holes, policy)], None
    end = 0
    if visible.pinned:
        pinned = [index for index, each in enumerate(placed) if each.seq in visible.pinned]
        end = max(pinned, default=-1) + 1
    while end and end < len(placed) and placed[end].call_id is not None:
        end += 1
    summaries = [_place_summary(each, context.policy) for each in context.visible.summaries]
    placed = [*placed[:end], *summaries, *placed[end:]]
    if sent is not None:
        sent = [*sent[:end], *CHAT.write(summaries), *sent[end:]]
    if policy.show_drafts:
        placed, sent = insert_drafts(context, placed), None
    if policy.summary_role == "merge" and context.visible.active_summaries:
        placed, sent = merge_summaries(placed), None
    return placed, sent


def _insert_range_summaries(
    placed: list[PlacedMessage],
    holes: tuple[HiddenRange, ...],
    policy: Policy,
) -> Iterator[PlacedMessage]:
    """Yield messages with the summaries of hidden ranges in their places, never within a group."""
    waiting = deque(holes)
    for index, each in enumerate(placed):
        if each.call_id is None:
            seq = (placed[index + 1] if each.is_made_up_call else each).seq or 0
            while waiting and waiting[0].last < seq:
                yield from _place_range_summary(waiting.popleft(), policy)
        yield each
    for hole in waiting:
        yield from _place_range_summary(hole, policy)


def _place_range_summary(hole: HiddenRange, policy: Policy) -> Iterator[PlacedMessage]:
    if hole.summary:
        yield _place_summary(hole.summary, policy)


def _place_summary(summary: ActiveSummary, policy: Policy) -> PlacedMessage:
    """Return the message in which a summary is sent."""
    message = summary.message(policy)
    compaction = summary.compaction
    return PlacedMessage(None, message, summary.reason, rule="summary", compaction=compaction)
