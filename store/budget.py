"""What a view costs before it is built, and whether it should be compacted; reads narrow rows only."""

from __future__ import annotations

from fractions import Fraction
from itertools import takewhile
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, literal_column, select

from . import lines, verdicts
from .clock import Now, given
from .compactions import NEVER, Record, Standing, Visible, active, line_cte, records, sent, shown
from .errors import CompactionError, InvalidValue, MaxCompactionReachedError
from .facts import measure, turn_start
from .lines import Pointer
from .planning import Plan, plan, tokens_at
from .policy import Policy, checked
from .records import Check, Compaction, Usage
from .schema import BIG, usages
from .statements import Statement
from .tokens import estimate, message_tokens, s4_tokens
from .turns import turn_of

_line = line_cte()
LAST_USAGE = Statement(
    select(usages.c.seq, usages.c.input, usages.c.output, usages.c.cached, usages.c.at)
    .select_from(_line)
    .join(
        usages,
        (usages.c.tree_id == bindparam("tree_id"))
        & (usages.c.branch == _line.c.branch)
        & (usages.c.seq <= _line.c.last),
    )
    .order_by(usages.c.seq.desc(), usages.c.usage.desc())
    .limit(literal_column("1"))
)
NEXT_USAGE = Statement(
    select(func.coalesce(func.max(usages.c.usage), literal_column("0")) + literal_column("1")).where(
        usages.c.tree_id == bindparam("tree_id", type_=BIG),
        usages.c.branch == bindparam("branch", type_=BIG),
        usages.c.seq == bindparam("seq", type_=BIG),
    )
)
INSERT_USAGE = Statement(insert(usages))

FOLDED_FROM = 0.25
"""The share of the window from which on summaries that stand beside each other are folded into the next one."""


class Budget(NamedTuple):
    """What a line's view is made of and costs at a moment (ms), and the input that the next request adds to it.

    ``turn_over``: a new turn begins with that, so that the results of the last one are shown short.
    """

    pointer: Pointer
    moment: int
    known: list[Record]
    shown: Visible
    messages: int
    tokens: int
    user_input: str
    turn_over: bool

    @property
    def added(self) -> int:
        """The tokens of the input; of one that is stored already none."""
        return s4_tokens(self.user_input) if self.turn_over else 0


def record_usage(
    connection: Connection,
    session_id: str,
    *,
    input: int,  # noqa: A002 - the public name
    output: int,
    cached: int = 0,
    now: Now = None,
) -> Usage:
    """Record what the request at the session's head really cost, as the provider said. Raises InvalidValue."""
    for name, tokens in (("input", input), ("output", output), ("cached", cached)):
        if type(tokens) is not int or not 0 <= tokens < 2**62:
            raise InvalidValue(f"{name} is a number of tokens from 0, not {tokens!r}")
    pointer = lines.lock(connection, session_id)
    place = {"tree_id": pointer.tree_id, "branch": pointer.branch, "seq": pointer.head}
    row = NEXT_USAGE.row(connection, **place)
    assert row is not None
    moment = given(now)
    INSERT_USAGE.run_many(connection, [(*place.values(), row[0], input, output, cached, moment)])
    return Usage(pointer.head, input, output, cached, moment)


def last_usage(connection: Connection, pointer: Pointer, last: int) -> Usage | None:
    """Return the usage recorded last on a line, up to a position."""
    row = LAST_USAGE.row(connection, tree_id=pointer.tree_id, branch=pointer.branch, last=last, newest=NEVER)
    return Usage._make(row) if row else None


def budget(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    now: int,
    user_input: str = "",
    *,
    before: Budget | None = None,
) -> Budget:
    """Return what a line's view costs, by the estimate; what it did ``before``, if the line has not changed since.

    With an input it is what the view will cost in a request for that.
    """
    known = records(connection, pointer, pointer.head)
    visible = shown(connection, pointer, active(known))
    if before and (before.pointer, before.shown) == (pointer, visible):
        return before
    messages = pointer.head - visible.first_kept + 1 + len(visible.pinned) + len(visible.summaries)
    over = bool(user_input) and turn_of(connection, pointer, pointer.head, user_input).over
    tokens = view_tokens(connection, pointer, policy, visible, now, turn_over=over)
    return Budget(pointer, now, known, visible, messages, tokens, user_input, over)


def as_viewed(connection: Connection, policy: Policy, cost: Budget, planned: Plan) -> Plan:
    """Return a plan whose hidden tokens are those of the view: what the rules save already is not saved again."""
    if planned.nothing:
        return planned
    left = cost.shown.without(planned.last + 1, planned.pinned)
    tokens = view_tokens(connection, cost.pointer, policy, left, cost.moment, turn_over=cost.turn_over)
    return planned._replace(tokens_hidden=cost.tokens - tokens)


def laddered(connection: Connection, policy: Policy, cost: Budget) -> tuple[Policy, Plan]:
    """Return a plan, and the policy that it is by: with fewer turns where what stays would be too much (A4.6)."""
    while True:
        planned = plan(connection, cost.pointer, policy, cost.shown, tokens=cost.tokens)
        fewer = max(policy.keep_turns // 2, policy.least_turns or policy.keep_turns)
        if fewer >= policy.keep_turns:
            return policy, planned
        left = cost.tokens - as_viewed(connection, policy, cost, planned).tokens_hidden
        messages = cost.messages - (0 if planned.nothing else planned.messages)
        if triggered(policy, messages=messages, tokens=left, window=policy.context_window or 0) is None:
            return policy, planned
        policy = policy.model_copy(update={"keep_turns": fewer})


def view_tokens(
    connection: Connection, pointer: Pointer, policy: Policy, visible: Visible, now: int, *, turn_over: bool = False
) -> int:
    """Return the estimated tokens of a line's view, without building it; repairs aside."""
    before = measure(connection, pointer, visible.first_kept - 1).tokens
    tokens = measure(connection, pointer, pointer.head).tokens - before
    tokens += tokens_at(connection, pointer, visible.pinned) + _sent_tokens(policy, visible.summaries)
    return tokens - verdicts.saved(connection, pointer, policy, visible, now=now, turn_over=turn_over)


def folded(policy: Policy, standing: tuple[Standing, ...]) -> tuple[Standing, ...]:
    """Return the summaries that the next one is given to be carried in it, and takes the place of (S4.21, A4.6)."""
    if policy.previous_summary == "fold":
        return standing[-1:]
    return standing if reaches(_sent_tokens(policy, standing), FOLDED_FROM, policy.context_window or 0) else ()


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
    """Tell whether a session's view should be compacted before the next request (S3.20, S3.25, S3.26, S4.36).

    ``max_tokens`` is the model's window (the policy's ``context_window``; 0: unknown, which never overflows);
    ``last_usage`` all tokens of the last request (what `record_usage` recorded); ``user_input`` what will be added:
    with it a new turn begins, so that the last one costs what it does when it is finished (A4.2).
    Raises SessionNotFound, InvalidValue.
    """
    pointer, policy = lines.find(connection, session_id), checked(policy)
    window = _checked("max_tokens", policy.context_window if max_tokens is None else max_tokens) or 0
    policy = policy.model_copy(update={"context_window": window})
    cost = budget(connection, pointer, policy, given(now), user_input)
    usage = _usage(connection, cost) if last_usage is None else _checked("last_usage", last_usage)
    total = cost.tokens + cost.added
    used = max(total, 0 if usage is None else usage + s4_tokens(user_input))
    overflow = reaches(used, policy.overflow_ratio or 1.0, window)
    why = triggered(policy, messages=cost.messages, tokens=used, window=window)
    if why is None:
        return Check(overflow, False, total, 0, "below every trigger of the policy")
    held = holds_back(connection, policy, cost, window)
    if held:
        return Check(overflow, False, total, 0, f"{why}; {held}", held)
    policy, planned = laddered(connection, policy, cost)
    if planned.nothing:
        return Check(overflow, False, total, 0, f"{why}; nothing to compact: {planned.nothing}")
    vain = tried_in_vain(connection, policy, cost, planned)
    if vain:
        return Check(overflow, False, total, 0, f"{why}; {vain}", vain)
    viewed = as_viewed(connection, policy, cost, planned)
    if viewed.tokens_hidden <= message_tokens(sent("", None, policy), estimate):
        few = f"{viewed.tokens_hidden} tokens do not pay for a summary"
        return Check(overflow, False, total, 0, f"{why}; nothing to compact: {few}")
    return Check(overflow, True, total, savings(policy, viewed), why)


def triggered(policy: Policy, *, messages: int, tokens: int, window: int) -> str | None:
    """Return which trigger of a policy fires, in words; None where none does.

    ``tokens`` are what the next request will have: as the last one really had or as its view has by the estimate,
    whichever is more, since a usage knows nothing of what came after it (A4.8).
    """
    if messages < policy.min_messages:
        return None
    limit = policy.trigger_tokens
    for fires, why in (
        (policy.trigger_messages is not None and messages >= policy.trigger_messages, f"{messages} messages"),
        (limit is not None and tokens >= limit, f"{tokens} tokens, the limit is {limit}"),
        (reaches(tokens, policy.trigger_ratio, window), f"{tokens} of {window} tokens"),
        (reaches(tokens, policy.trigger_usage, window), f"{tokens} of {window} tokens"),
    ):
        if fires:
            return why
    return None


def reaches(tokens: int, ratio: float | None, window: int) -> bool:
    """Tell whether tokens reach a share of a window, in whole numbers (A4.21); an unknown window is never reached."""
    return ratio is not None and window > 0 and tokens >= Fraction(str(ratio)) * window


def holds_back(connection: Connection, policy: Policy, cost: Budget, window: int) -> CompactionError | None:
    """Return why nothing is tried now though a trigger fires: too many failures or too little success in this turn.

    Of those applied the last ones in a row count that did not get below the trigger, with what is to come added
    (A3.4); one that did begins anew.
    """
    failed = backs_off(connection, policy, cost)
    if failed:
        return failed
    applied = [record for record in _tried(connection, cost) if record.outcome == "applied"]
    vain = len(list(takewhile(lambda record: _stayed_above(record, policy, window, cost.added), reversed(applied))))
    if vain >= policy.max_iterations:
        problem = f"compacted {vain} times in this turn without getting below the trigger, which is the limit"
        return MaxCompactionReachedError(problem, session_id=cost.pointer.session_id, can_retry=True)
    return None


def backs_off(connection: Connection, policy: Policy, cost: Budget) -> CompactionError | None:
    """Return that too many attempts failed in this turn for another one; None where they did not."""
    tried = _tried(connection, cost)
    failures = len(list(takewhile(lambda record: _failed(record, policy), reversed(tried))))
    if failures < policy.back_off_after:
        return None
    problem = f"{policy.back_off_after} attempts failed in this turn, waiting for the next one"
    return CompactionError(problem, session_id=cost.pointer.session_id, can_retry=True)


def tried_in_vain(connection: Connection, policy: Policy, cost: Budget, planned: Plan) -> CompactionError | None:
    """Return why a plan is not tried: in this turn what came of it by this policy was rejected for its size."""
    same = [record for record in cost.known if _was_rejected(record, policy, planned)]
    if not same or same[-1].head < _turn_began(connection, cost):
        return None
    what = f"compaction {same[-1].compaction}, which was rejected for its size"
    problem = f"no more could be hidden than by {what}; waiting for more messages or the next turn"
    return CompactionError(problem, session_id=cost.pointer.session_id, can_retry=True)


def told(made: Compaction, policy: Policy, added: int = 0) -> Compaction:
    """Return a compaction that says whether the view it left is still at the trigger of its policy and window."""
    messages, tokens = made.messages_before, made.tokens_before
    if made.outcome == "applied":
        messages, tokens = made.messages_after, made.tokens_after
    if messages is None or tokens is None:
        return made
    window = policy.context_window or 0
    above = triggered(policy, messages=messages, tokens=tokens + added, window=window)
    return made._replace(still_over=above is not None)


def too_much(policy: Policy, cost: Budget, *, messages: int, after: int, bare: int, given: bool) -> str | None:
    """Say why a view of ``after`` tokens is not small enough; ``bare`` are those without the summary's text.

    It must be smaller than it was, and below the policy's trigger where an empty summary would bring it there; what
    is ``given``, in the place of a summary that failed, cannot be shorter than it is.
    """
    if after >= cost.tokens:
        return f"the view would not get smaller: it has {cost.tokens} tokens, it would have {after}"
    window = policy.context_window or 0
    above = triggered(policy, messages=messages, tokens=after + cost.added, window=window)
    least = triggered(policy, messages=messages, tokens=bare + cost.added, window=window)
    if given or not above or least:
        return None
    return f"the summary is too long: the view would still trigger ({above}), without its text it would have {bare}"


def savings(policy: Policy, planned: Plan) -> int:
    """Return about how many tokens a compaction would save (A3.14)."""
    longest = policy.summary_max_chars + policy.facts_chars
    return max(0, planned.tokens_hidden - min(planned.tokens_hidden // 4, estimate("x" * min(longest, 100_000))))


def _turn_began(connection: Connection, cost: Budget) -> int:
    """Return from where on a line's records are of the turn of the next request."""
    return cost.pointer.head if cost.turn_over else turn_start(connection, cost.pointer, cost.pointer.head)


def _tried(connection: Connection, cost: Budget) -> list[Record]:
    """Return the attempts of the turn of the next request that have ended."""
    tries = [record for record in cost.known if record.kind == "summary" and record.outcome != "running"]
    began = _turn_began(connection, cost) if tries else 0
    return [record for record in tries if record.head >= began]


def _failed(record: Record, policy: Policy) -> bool:
    """Tell an attempt that failed: one that kept to the hard limit all the same is no better for it."""
    return record.outcome != "applied" or (policy.on_failure == "trim" and record.error is not None)


def _was_rejected(record: Record, policy: Policy, planned: Plan) -> bool:
    """Tell a compaction of the same positions rejected for its size: no other rejected one has a first kept."""
    at = (record.outcome, record.policy, record.first_kept)
    return at == ("rejected", policy.name, planned.last + 1)


def _sent_tokens(policy: Policy, standing: tuple[Standing, ...]) -> int:
    return sum(message_tokens(sent(each.body, each.facts, policy), estimate) for each in standing)


def _stayed_above(record: Record, policy: Policy, window: int, added: int) -> bool:
    messages, tokens = record.messages_after or 0, record.tokens_after or 0
    return triggered(policy, messages=messages, tokens=tokens + added, window=window) is not None


def _checked(name: str, tokens: int | None) -> int | None:
    if tokens is not None and (type(tokens) is not int or tokens < 0):
        raise InvalidValue(f"{name} is a number of tokens from 0, not {tokens!r}")
    return tokens


def _usage(connection: Connection, cost: Budget) -> int | None:
    """Return the tokens of the last request, None where it was made before the view last changed (A4.8).

    On a line a later position is later, whatever the clocks of those who wrote it said.
    """
    usage = last_usage(connection, cost.pointer, cost.pointer.head)
    changes = [(record.head, record.created_at) for record in cost.known if record.outcome == "applied"]
    if usage is None or max(changes, default=(0, -NEVER)) >= (usage.seq, usage.at):
        return None
    return usage.input + usage.output
