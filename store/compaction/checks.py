"""The check before a request: whether the view should be compacted first, and why."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, given
from ..errors import CompactionError, InvalidValue
from ..history import NEVER, lines, measure, turn_start
from ..history import last_usage as last_usage_of
from ..policy import Policy, checked
from ..records import Check, Usage
from ..tokens import third_of_length
from ..view import Look, view_tokens
from .back_off import holds_back, tried_in_vain
from .budget import Budget, budget
from .planning import frees_too_little, plan_with_fewer_turns, savings, with_view_tokens
from .triggers import any_saving, overflows, triggered, with_window

BELOW = "below every trigger of the policy"
"""The reason of a check where no trigger fires."""


def check(
    connection: Connection,
    session_id: str,
    policy: Policy,
    max_tokens: int | None = None,
    last_usage: int | None = None,
    user_input: str = "",
    *,
    now: Now = None,
) -> Check:
    """Tell whether a session's view should be compacted before the next request.

    ``max_tokens`` is the model's window (the policy's ``context_window``; 0: unknown, which never
    overflows); ``last_usage`` all tokens of the last request (what `record_usage` recorded);
    ``user_input`` what will be added: with it a new turn begins, so that the check counts the last
    turn in its short form. Raises SessionNotFound, InvalidPolicy, InvalidValue.
    """
    pointer = lines.find(connection, session_id)
    policy = with_window(checked(policy), _tokens("max_tokens", max_tokens))
    cost = budget(connection, pointer, policy, given(now), user_input)
    used = _used(cost, _tokens("last_usage", last_usage))
    found = Check(overflows(policy, used), False, cost.tokens + cost.added, 0, BELOW)
    why = triggered(policy, messages=cost.messages, tokens=used)
    if why is None:
        return found
    return _with_plan(cost, found._replace(reason=why))


def _with_plan(cost: Budget, found: Check) -> Check:
    """Return a check whose trigger fires, with what can be done about it."""
    held = holds_back(cost)
    if held:
        return _held(found, held)
    planned, _ = plan_with_fewer_turns(cost)
    if planned.nothing:
        return _nothing(found, planned.nothing)
    vain = tried_in_vain(cost.look, planned)
    if vain:
        return _held(found, vain)
    planned = with_view_tokens(cost, planned)
    little = frees_too_little(_relaxed(cost, found), planned)
    if little:
        return _nothing(found, little)
    saved = savings(cost.look.policy, planned)
    return found._replace(should_compact=True, estimated_savings=saved)


def _relaxed(cost: Budget, found: Check) -> Budget:
    """Return what a view costs, by a policy that takes any saving where the window is exceeded.

    The last recorded usage tells.
    """
    if not found.overflow:
        return cost
    return cost._replace(look=cost.look._replace(policy=any_saving(cost.look.policy)))


def _held(found: Check, problem: CompactionError) -> Check:
    return found._replace(reason=f"{found.reason}; {problem}", problem=problem)


def _nothing(found: Check, why: str) -> Check:
    return found._replace(reason=f"{found.reason}; nothing to compact: {why}")


def _used(cost: Budget, given: int | None) -> int:
    """Return the tokens that the next request will have, as far as anything tells.

    A usage of the turn before is asked only for what the short forms leave of it.
    """
    total = cost.tokens + cost.added
    last = _last_request(cost, given)
    if last is None:
        return total
    used = last.tokens + third_of_length(cost.user_input)
    if used <= total or triggered(cost.look.policy, messages=cost.messages, tokens=total):
        return max(total, used)
    return max(total, used - _shortened(cost, last.seq))


def _shortened(cost: Budget, last: int) -> int:
    """Return by how much the view of a request at a position is shorter by now.

    It is that much where its turn is finished, and the policy shows the results of such in their
    short form.
    """
    look = cost.look
    if not look.policy.tool_output or not _is_of_earlier_turn(look, last):
        return 0
    then = view_tokens(look._replace(last=last, turn_over=False))
    since = measure(look.raw, look.last).tokens
    since -= measure(look.raw, last).tokens
    return max(0, then + since - cost.tokens)


def _is_of_earlier_turn(look: Look, last: int) -> bool:
    """Tell whether the turn that a position is in is not that of the next request."""
    if look.turn_over:
        return True
    return turn_start(look.raw, look.last) > last


class _Request(NamedTuple):
    """The last request: the position that it was made at, and all its tokens."""

    seq: int
    tokens: int


def _last_request(cost: Budget, given: int | None) -> _Request | None:
    """Return the last request, by what a caller says of it or by its recorded usage."""
    if given is not None:
        return _Request(cost.look.last, given)
    usage = _usage(cost)
    return usage and _Request(usage.seq, usage.input + usage.output)


def _usage(cost: Budget) -> Usage | None:
    """Return the usage of the last request, None where it was made before the view last changed.

    On a line a later position is later, whatever the clocks of those who wrote it said.
    """
    look = cost.look
    usage = last_usage_of(look.raw, look.pointer.head)
    applied = [record for record in look.known if record.outcome == "applied"]
    changes = [(record.head, record.created_at) for record in applied]
    changed = max(changes, default=(0, -NEVER))
    if usage is None or changed >= (usage.seq, usage.at):
        return None
    return usage


def _tokens(name: str, tokens: int | None) -> int | None:
    """Return a number of tokens that a caller gave. Raises InvalidValue for any other value."""
    if tokens is not None and (type(tokens) is not int or tokens < 0):
        raise InvalidValue(f"{name} is a number of tokens from 0, not {tokens!r}")
    return tokens
