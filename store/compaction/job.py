"""What a summarizer is to be given: prepared in one reading transaction."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..database import paused
from ..history import lines, load_tool_kinds
from ..messages import Message
from ..policy import Policy
from ..records import Compaction, Outcome, Reason
from ..summaries import Summarizer, extractive, load
from ..view import ViewContext, list_range_summaries
from .budget import NOTHING_ADDED, Added, Budget, budget
from .facts import ledger_of
from .naming import named
from .plan import Plan, Previous, Wish, plan_with_fewer_turns, summaries_to_fold
from .record_rows import Hiding, not_recorded
from .sources import first_moment, sources
from .transcript import Kinds, Transcript, transcript_of_all
from .triggers import with_still_over

Times = tuple[int, int]


class Asked(NamedTuple):
    """What a caller asks for: which session to compact, by which policy, and who summarises."""

    session_id: str
    policy: Policy
    summarizer: Summarizer | None = None
    reason: Reason = "manual"
    coming: Added = NOTHING_ADDED


class Job(NamedTuple):
    """What a summarizer is to be given, and where it belongs.

    ``cost`` is what the view cost before, by a look whose transaction is over. ``hiding`` is what
    goes; ``holder`` the branch that holds its last position, ``sought`` the last position that the
    policy would hide if a transcript had room for everything. ``messages`` are None for a
    summarizer that reads them itself, as it comes to them. ``times`` are the first and last moment
    (ms) of what the summary will stand for, ``tool_kinds`` what the store knows of tools.
    """

    cost: Budget
    hiding: Hiding
    holder: int
    sought: int
    messages: list[Message] | None
    transcript: str
    times: Times | None
    tool_kinds: Kinds


def prepare(connection: Connection, asked: Asked, moment: int) -> Job | Compaction:
    """Return what a summarizer is to be given, or the answer that there is nothing to compact.

    Everything that will be hidden is in the transcript: where it is too long, the cut moves back.
    Raises SessionNotFound, InvalidValue for an unknown prompt.
    """
    load(asked.policy.prompt)
    pointer = lines.load_pointer(connection, asked.session_id)
    cost = budget(connection, pointer, asked.policy, moment, asked.coming)
    planned, wish = plan_with_fewer_turns(cost)
    if planned.nothing:
        return left_as_it_is(cost, asked, planned.nothing)
    with paused(planned.messages):
        kinds = load_tool_kinds(connection)
        transcript = _transcript(cost, planned, wish, asked.summarizer, kinds)
        if transcript is None:
            return left_as_it_is(
                cost, asked, "its first messages are longer than a transcript may be"
            )
        return _job(cost, transcript, planned.last, kinds)


def holder_of(context: ViewContext, position: int) -> int:
    """Return the branch that holds a position of a line."""
    return context.raw.place(position)["branch"]


def hiding_of(context: ViewContext, planned: Plan, previous: Previous) -> Hiding:
    """Return what goes by a plan, with the facts and the names of it.

    What a summary tells that goes on standing beside the new one is left out of them. Summaries of
    ranges that the plan covers are replaced with the previous ones.
    """
    replaced = (*previous, *list_range_summaries(planned.covered))
    facts = ledger_of(context, _told_until(context, previous) + 1, planned.last)
    names = named(context, planned, replaced, facts)
    source = sources(context, planned.first, planned.last, planned.pinned)
    told = "\n".join(filter(None, (facts, names.told)))
    return Hiding(planned, replaced, told, source, names.kept)


def _told_until(context: ViewContext, previous: Previous) -> int:
    """Return the last position of the summaries that go on standing; 0 where there are none."""
    beside = (each.last for each in context.visible.summaries if each not in previous)
    return max(beside, default=0)


def _transcript(
    cost: Budget, planned: Plan, wish: Wish, summarizer: Summarizer | None, kinds: Kinds
) -> Transcript | None:
    """Return the transcript for a summarizer; one that reads the messages themselves needs none."""
    if summarizer is None or summarizer is extractive:
        return Transcript(planned, None, "")
    return transcript_of_all(cost, planned, wish, kinds)


def _job(cost: Budget, transcript: Transcript, sought: int, kinds: Kinds) -> Job:
    context = cost.context
    hiding = hiding_of(context, transcript.plan, summaries_to_fold(context))
    return Job(
        cost=cost,
        hiding=hiding,
        holder=holder_of(context, hiding.plan.last),
        sought=sought,
        messages=transcript.messages,
        transcript=transcript.text,
        times=_times(hiding.source.times, _began(context, hiding.previous)),
        tool_kinds=kinds,
    )


def _began(context: ViewContext, previous: Previous) -> int | None:
    """Return the first moment (ms) of what summaries stand for, if any."""
    if not previous:
        return None
    return first_moment(context, previous[0].first, previous[-1].last)


def _times(times: Times | None, began: int | None) -> Times | None:
    """Return the first and last moment of messages, and of the summaries before them."""
    if times is None or began is None:
        return times
    first, last = times
    return min(began, first), last


def left_as_it_is(
    cost: Budget,
    asked: Asked,
    why: str,
    outcome: Outcome = "nothing",
) -> Compaction:
    """Return that nothing is hidden, with what the view has, which stays as it is."""
    left = not_recorded(
        cost.context.pointer,
        asked.policy,
        outcome=outcome,
        reason=asked.reason,
        error=why,
        moment=cost.context.now,
    )
    as_it_is = left._replace(messages_before=cost.messages, tokens_before=cost.tokens)
    return with_still_over(as_it_is, asked.policy, cost.added)
