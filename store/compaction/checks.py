"""The check before a request: whether the view should be compacted first, and why."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, given
from ..errors import CompactionError, InvalidValue, quoted
from ..history import NO_LIMIT, LastRequest, find_last_usage, find_turn_start, lines
from ..policy import Policy, checked
from ..records import Check
from ..view import ViewContext, estimate_shown_tokens, estimate_view_tokens
from .back_off import holds_back, tried_in_vain
from .budget import Added, Budget, budget
from .plan import (
    Plan,
    estimate_savings,
    frees_too_little,
    plan_with_fewer_turns,
    with_view_tokens,
)
from .triggers import any_saving, overflows, with_window

BELOW = "below every trigger of the policy"
"""The reason of a check where no trigger fires."""


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
    overflows); ``last_usage`` all tokens of the last request (what `record_usage` recorded);
    ``user_input`` what will be added: with it a new turn begins, so that the check counts the last
    turn in its short form; ``fixed_tokens`` what goes out beside the view: prompts, tools, rules
    (what a `Context` says). Raises SessionNotFound, InvalidPolicy, InvalidValue.
    """
    pointer = lines.load_pointer(connection, session_id)
    policy = with_window(checked(policy), _tokens("max_tokens", max_tokens))
    if not isinstance(user_input, str):
        raise InvalidValue(f"user_input is a text, not {quoted(user_input)}")
    cost = budget(connection, pointer, policy, given(now), added(user_input, fixed_tokens))
    used = _used(cost, _tokens("last_usage", last_usage))
    fires = cost.trigger(used)
    found = _found(cost, used)
    if fires is None:
        return found
    return _with_what_to_do(cost, found._replace(reason=fires))


def added(user_input: str, fixed_tokens: int) -> Added:
    """Return what a caller says of the next request. Raises InvalidValue for no such number."""
    return Added(user_input, _tokens("fixed_tokens", fixed_tokens) or 0)


def _found(cost: Budget, used: int) -> Check:
    """Return what there is to say where no trigger fires, of so many tokens in the next request."""
    policy = cost.context.policy
    over = overflows(policy, used)
    return Check(
        overflow=over,
        should_compact=False,
        tokens=cost.to_send,
        estimated_savings=0,
        reason=f"{used} of {policy.context_window} tokens; {BELOW}" if over else BELOW,
    )


def _with_what_to_do(cost: Budget, found: Check) -> Check:
    """Return a check whose trigger fires, with what can be done about it."""
    held = holds_back(cost)
    if held:
        return _held(found, held)
    planned, _ = plan_with_fewer_turns(cost)
    return _with_plan(cost, found, planned)


def _with_plan(cost: Budget, found: Check, planned: Plan) -> Check:
    """Return a check with a plan that nothing holds back, unless it is not worth a try."""
    if planned.nothing:
        return _nothing(found, planned.nothing)
    vain = tried_in_vain(cost.context, planned)
    if vain:
        return _held(found, vain)
    return _with_savings(cost, found, with_view_tokens(cost, planned))


def _with_savings(cost: Budget, found: Check, planned: Plan) -> Check:
    """Return a check with what a plan saves, if that is enough."""
    little = frees_too_little(_relaxed(cost, found), planned)
    if little:
        return _nothing(found, little)
    saved = estimate_savings(cost.context.policy, planned)
    return found._replace(should_compact=True, estimated_savings=saved)


def _relaxed(cost: Budget, found: Check) -> Budget:
    """Return what a view costs, by a policy that takes any saving where the window is exceeded.

    The last recorded usage tells.
    """
    if not found.overflow:
        return cost
    policy = any_saving(cost.context.policy)
    return cost._replace(context=cost.context._replace(policy=policy))


def _held(found: Check, problem: CompactionError) -> Check:
    return found._replace(reason=f"{found.reason}; {problem}", problem=problem)


def _nothing(found: Check, why: str) -> Check:
    return found._replace(reason=f"{found.reason}; nothing to compact: {why}")


def _used(cost: Budget, given: int | None) -> int:
    """Return the tokens that the next request will have, as far as anything tells."""
    last = _last_request(cost.context, given)
    if last is None:
        return cost.to_send
    return max(cost.to_send, _used_by(last, cost))


class _Request(NamedTuple):
    """The last request: the position that it was made at, and all its tokens."""

    seq: int
    tokens: int


def _used_by(last: _Request, cost: Budget) -> int:
    """Return the tokens of the last request, with the input of the next one.

    Of a request of the turn before only what the short forms leave of it, where that is asked for.
    """
    used = last.tokens + cost.coming.input_tokens
    if used <= cost.to_send or cost.trigger(cost.to_send):
        return used
    return used - _shortened(cost, last)


def _shortened(cost: Budget, request: _Request) -> int:
    """Return by how much the view of a request is shorter by now."""
    context = cost.context
    if not _is_in_short_form(context, request.seq):
        return 0
    return max(0, _tokens_in_full(context, request.seq) - cost.tokens)


def _is_in_short_form(context: ViewContext, position: int) -> bool:
    """Tell whether results that were shown in full at a position are not any more.

    The turn that it is in is finished, and the policy shows the results of such in short.
    """
    if not context.policy.tool_output:
        return False
    if context.turn_over:
        return True
    return find_turn_start(context.raw, context.last) > position


def _tokens_in_full(context: ViewContext, position: int) -> int:
    """Return the tokens of the view at a position in a running turn, and of what came since."""
    then = estimate_view_tokens(context._replace(last=position, turn_over=False))
    return then + estimate_shown_tokens(context, position + 1, context.last)


def _last_request(context: ViewContext, given: int | None) -> _Request | None:
    """Return the last request, by what a caller says of it or by its recorded usage."""
    if given is not None:
        return _Request(context.last, given)
    usage = _usage(context)
    if usage is None:
        return None
    return _Request(usage.seq, usage.input + usage.output)


def _usage(context: ViewContext) -> LastRequest | None:
    """Return the usage of the last request, None where it was made before the view last changed.

    On a line a later position is later, whatever the clocks of those who wrote it said.
    """
    usage = find_last_usage(context.raw, context.last)
    if usage and _last_change(context) < (usage.seq, usage.at):
        return usage
    return None


def _last_change(context: ViewContext) -> tuple[int, int]:
    """Return the position and the moment (ms) at which a compaction last changed the view."""
    applied = (record for record in context.records if record.outcome == "applied")
    changes = ((record.head, record.created_at) for record in applied)
    return max(changes, default=(0, -NO_LIMIT))


def _tokens(name: str, tokens: int | None) -> int | None:
    """Return a number of tokens that a caller gave. Raises InvalidValue for any other value."""
    if tokens is not None and (type(tokens) is not int or tokens < 0):
        raise InvalidValue(f"{name} is a number of tokens from 0, not {quoted(tokens)}")
    return tokens
