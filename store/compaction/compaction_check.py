"""The check before a request: whether the view should be compacted first, and why.

Though a trigger fires, nothing is tried if earlier attempts argue against it. A model that is down
is not asked again before some more messages or some time have passed, in whatever turn. Then it is
asked once: one more failure, and the wait begins again.
"""

from __future__ import annotations

from itertools import takewhile

from sqlalchemy import Connection

from ..clock import Now, require_moment
from ..errors import CompactionError, InvalidValue, MaxCompactionReachedError, quote_value
from ..history import NO_LIMIT, find_turn_start, lines
from ..policy import Policy, check_policy
from ..records import Check, Compaction
from ..view import ViewContext, estimate_shown_tokens, estimate_view_tokens
from .plan import Plan, add_view_tokens, choose_plan, find_shortfall
from .triggers import (
    NextRequest,
    ViewCost,
    allow_any_saving,
    load_view_cost,
    overflows_window,
    set_policy_window,
    still_triggers,
)

BELOW_TRIGGERS = "below every trigger of the policy"
"""The reason of a check where no trigger fires."""

LIMIT_ERROR_KIND = "CompactionError"
"""The error of a record that only kept a view to the hard limit: no summarizer was called."""


def check(
    connection: Connection,
    session_id: str,
    policy: Policy,
    max_tokens: int | None = None,
    last_usage: int | None = None,
    user_input: str = "",
    fixed_tokens: int = 0,
    *,
    now: Now = None,
) -> Check:
    """Tell whether a session's view should be compacted before the next request.

    ``max_tokens`` is the model's window (the policy's ``context_window``; 0: unknown, which never
    overflows); ``last_usage`` all tokens of the last request (as `record_usage` recorded it);
    ``user_input`` the input to be added: with it a new turn begins, so that the check counts the
    last turn in its short form; ``fixed_tokens`` the tokens sent beside the view: prompts, tools,
    rules (as given by a `Context`). Raises SessionNotFound, InvalidPolicy, InvalidValue.
    """
    pointer = lines.load_pointer(connection, session_id)
    policy = check_policy(policy)
    if not isinstance(user_input, str):
        raise InvalidValue(f"user_input must be a text, not {quote_value(user_input)}")
    next_request = parse_next_request(user_input, fixed_tokens)
    cost = load_view_cost(connection, pointer, policy, require_moment(now), next_request)
    return check_cost(cost, max_tokens, last_usage)


def check_cost(cost: ViewCost, max_tokens: int | None, last_usage: int | None) -> Check:
    """Tell whether a view of a known cost should be compacted, as `check` does."""
    policy = set_policy_window(cost.context.policy, _require_tokens("max_tokens", max_tokens))
    cost = cost._replace(context=cost.context._replace(policy=policy))
    tokens = _count_request_tokens(cost, _require_tokens("last_usage", last_usage))
    trigger = cost.trigger(tokens)
    overflow = overflows_window(policy, tokens)
    below = (
        f"{tokens} of {policy.context_window} tokens; {BELOW_TRIGGERS}"
        if overflow
        else BELOW_TRIGGERS
    )
    result = Check(
        overflow=overflow,
        should_compact=False,
        tokens=cost.request_tokens,
        estimated_savings=0,
        reason=below if trigger is None else trigger,
    )
    return result if trigger is None else _add_plan_savings(cost, result)


def parse_next_request(user_input: str, fixed_tokens: int) -> NextRequest:
    """Return the additions of the next request. Raises InvalidValue for an invalid number."""
    return NextRequest(user_input, _require_tokens("fixed_tokens", fixed_tokens) or 0)


def _require_tokens(name: str, tokens: int | None) -> int | None:
    """Return a number of tokens from a caller. Raises InvalidValue for any other value."""
    if tokens is not None and (type(tokens) is not int or tokens < 0):
        raise InvalidValue(f"{name} must be a number of tokens from 0, not {quote_value(tokens)}")
    return tokens


def _count_request_tokens(cost: ViewCost, last_usage: int | None) -> int:
    """Return the tokens of the next request, by the estimate and by the last request.

    The usage of the last request is that of the caller or else the recorded one. A recorded usage
    does not count if the view has changed since; on a line a later position is later, whatever the
    clocks of the writers were. Results that it showed in full, and that the view shows in short now
    that their turn is over, are counted as they are now.
    """
    context = cost.context
    position, tokens = context.last, last_usage
    if tokens is None:
        usage = context.load_last_request()
        applied = (record for record in context.records if record.outcome == "applied")
        changes = ((record.head, record.created_at) for record in applied)
        if usage is None or (usage.seq, usage.at) <= max(changes, default=(0, -NO_LIMIT)):
            return cost.request_tokens
        position, tokens = usage.seq, usage.input + usage.output
    tokens += cost.next_request.input_tokens
    if tokens <= cost.request_tokens:
        return cost.request_tokens
    if cost.trigger(cost.request_tokens) or not context.policy.tool_output:
        return tokens
    if context.turn_over or find_turn_start(context.raw, context.last) > position:
        in_full = estimate_view_tokens(context._replace(last=position, turn_over=False))
        in_full += estimate_shown_tokens(context, position + 1, context.last)
        tokens -= max(0, in_full - cost.tokens)
    return max(cost.request_tokens, tokens)


def _add_plan_savings(cost: ViewCost, result: Check) -> Check:
    """Return a check whose trigger fires, with the savings of a plan or the reason against one.

    If the window is exceeded, as the last usage shows, any saving will do.
    """
    hold = _find_back_off(cost.context) or _find_reached_limit(cost)
    if hold:
        return _add_problem(result, hold)
    plan, _ = choose_plan(cost)
    if plan.nothing:
        return _answer_nothing_to_do(result, plan.nothing)
    rejected = _find_rejected_attempt(cost.context, plan)
    if rejected:
        return _add_problem(result, rejected)
    plan = add_view_tokens(cost, plan)
    policy = cost.context.policy
    relaxed = allow_any_saving(policy) if result.overflow else policy
    shortfall = find_shortfall(cost._replace(context=cost.context._replace(policy=relaxed)), plan)
    if shortfall:
        return _answer_nothing_to_do(result, shortfall)
    return result._replace(
        should_compact=True, estimated_savings=plan.estimate_saved_tokens(policy)
    )


def _add_problem(result: Check, problem: CompactionError) -> Check:
    return result._replace(reason=f"{result.reason}; {problem}", problem=problem)


def _answer_nothing_to_do(result: Check, reason: str) -> Check:
    return result._replace(reason=f"{result.reason}; nothing to compact: {reason}")


def _find_back_off(context: ViewContext) -> CompactionError | None:
    """Return the error that too many attempts in a row failed for another one so soon, if so."""
    policy = context.policy
    attempts = [
        each for each in _list_ended_attempts(context) if each.error_kind != LIMIT_ERROR_KIND
    ]
    failures = [*takewhile(lambda record: _has_failed(record, policy), reversed(attempts))]
    if len(failures) < policy.back_off_after:
        return None
    last = failures[0]
    if context.pointer.head - last.head >= policy.back_off_messages:
        return None
    if context.now - last.created_at >= policy.back_off_time:
        return None
    seconds = policy.back_off_time // 1000
    problem = (
        f"{len(failures)} attempts failed, waiting for {policy.back_off_messages} more messages"
        f" or {seconds} seconds"
    )
    return CompactionError(problem, session_id=context.pointer.session_id, can_retry=True)


def _find_reached_limit(cost: ViewCost) -> CompactionError | None:
    """Return the error that the allowed number of compactions in a row did not help, if so.

    They are counted in the turn of the next request, or in the whole session. Of the applied ones
    the last in a row count that did not get below the trigger, with the additions of the next
    request; after one that did, counting begins again.
    """
    context, policy = cost.context, cost.context.policy
    attempts = _list_ended_attempts(context)
    if attempts and policy.scope != "session":
        start = _find_current_turn(context)
        attempts = [record for record in attempts if record.head >= start]
    applied = [record for record in attempts if not _has_failed(record, policy)]
    unhelpful = takewhile(
        lambda record: still_triggers(record, policy, cost.added_tokens), reversed(applied)
    )
    count = len([*unhelpful])
    if count < policy.max_iterations:
        return None
    problem = (
        f"compacted {count} times in this turn without getting below the trigger,"
        " which is the limit"
    )
    session_id = context.pointer.session_id
    return MaxCompactionReachedError(problem, session_id=session_id, can_retry=True)


def _find_rejected_attempt(context: ViewContext, plan: Plan) -> CompactionError | None:
    """Return the error that the same plan was rejected as too large in this turn, if it was.

    It is not retried in the turn until more can be hidden. Only records rejected for the size have
    a first kept position.
    """
    rejected = ("rejected", context.policy.name, plan.last + 1)
    for record in reversed(context.records):
        if (record.outcome, record.policy, record.first_kept) != rejected:
            continue
        if record.head < _find_current_turn(context):
            return None
        before = f"compaction {record.id}, which was rejected for its size"
        problem = (
            f"no more could be hidden than by {before}; waiting for more messages or the next turn"
        )
        return CompactionError(problem, session_id=context.pointer.session_id, can_retry=True)
    return None


def _find_current_turn(context: ViewContext) -> int:
    """Return the position from which on records belong to the turn of the next request."""
    if context.turn_over:
        return context.pointer.head
    return find_turn_start(context.raw, context.pointer.head)


def _list_ended_attempts(context: ViewContext) -> list[Compaction]:
    """Return the attempts that have ended, oldest first."""
    attempts = [record for record in context.records if record.kind == "summary"]
    return [record for record in attempts if record.outcome != "running"]


def _has_failed(record: Compaction, policy: Policy) -> bool:
    """Tell whether an attempt failed, even if the view was kept to the hard limit all the same."""
    if record.outcome != "applied":
        return True
    return policy.on_failure == "trim" and record.error is not None
