"""The values of the rules' queries: a line, the switches of a policy, and the borders.

A border is a position or a moment that tells results apart: results after it belong to the running
turn, results before it are old.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..clock import shift_moment
from ..history import NO_LIMIT, find_last_answer, find_turn_start, load_message_time
from ..policy import Policy
from .context import ViewContext
from .rules import AGE_BORDERS, CLEARABLE_BORDER, bind_policy

RuleValues = dict[str, Any]
"""The values that the rules' queries bind."""
POSITION_BORDERS = ("running_from", "judged_before", "protected_from", "clear_before")
"""The borders that are positions; those of ages, `AGE_BORDERS`, are moments."""
MOVING_VALUES = frozenset((*POSITION_BORDERS, *AGE_BORDERS, "clearable", "last"))
"""The values that change while a line grows and time passes."""


class _TurnMoments(NamedTuple):
    """The start of the running turn, and the moment from which ages are counted (`judge_at`)."""

    running_from: int
    now: int


def build_rule_values(context: ViewContext, before: RuleValues | None = None) -> RuleValues:
    """Return all values of the rules' queries except the runs that they read.

    ``before`` are the values of a line that may be an earlier state of this one.
    """
    values = {**context.line, **bind_policy(context.policy), **_find_borders(context)}
    if not (context.policy.any_tool or context.policy.cut_arguments):
        return values | {"clearable": 0, "clear_before": 0}
    since = values["start"]
    if before and has_grown(values, before):
        since = max(since, before["clearable"])
    return values | _find_clearing_border(context, values, since)


def has_grown(values: RuleValues, before: RuleValues) -> bool:
    """Tell whether a line was judged by the same values before, and has only grown since."""
    if values["last"] < before["last"] or _find_ranking_end(values) < _find_ranking_end(before):
        return False
    return all(before[name] == value for name, value in values.items() if name not in MOVING_VALUES)


def _find_ranking_end(values: RuleValues) -> int:
    """Return the position before which results take part in the ranking."""
    return min(int(values["judged_before"]), int(values["last"]) + 1)


def render_runs(runs: Iterable[Sequence[int]]) -> str:
    """Return runs of branches as the queries take them."""
    return json.dumps([*runs], separators=(",", ":"))


def _find_clearing_border(context: ViewContext, values: RuleValues, since: int) -> RuleValues:
    """Return the position before which results of any tool may be replaced.

    The results after it are the newest ones, and those after the last answer, which no request has
    sent yet. No result before the position ``since`` is among the newest.
    """
    runs = render_runs(context.shown(since, context.last))
    newest: int | None = CLEARABLE_BORDER.value(context.connection, **values, runs=runs)
    answer = find_last_answer(context.raw, context.last)
    if newest is None or answer is None:
        return {"clearable": newest or 0, "clear_before": 0}
    return {"clearable": newest, "clear_before": min(newest + 1, answer)}


def _find_borders(context: ViewContext) -> dict[str, int]:
    """Return the positions that limit the conditions, and the moments of the ages."""
    policy = context.policy
    if not (
        context.policy.protect_current_turn
        or context.policy.tool_output
        or _is_frozen(context.policy)
    ):
        running_from, now = _TurnMoments(NO_LIMIT, context.now)
    elif context.turn_over:
        running_from, now = _TurnMoments(context.last + 1, context.now)
    else:
        running_from = find_turn_start(context.raw, context.last)
        if _is_frozen(context.policy):
            running_from, now = _TurnMoments(
                running_from, _find_frozen_moment(context, running_from)
            )
        else:
            running_from, now = _TurnMoments(running_from, context.now)
    protected = policy.protect_current_turn or _is_frozen(policy)
    return {
        "start": context.visible.first_kept,
        "last": context.last,
        "running_from": running_from,
        "judged_before": running_from if _is_frozen(policy) else NO_LIMIT,
        "protected_from": running_from if protected else NO_LIMIT,
        **{name: shift_moment(now, -getattr(policy, age)) for name, age in AGE_BORDERS.items()},
    }


def _is_frozen(policy: Policy) -> bool:
    return policy.judge_at == "turn"


def _find_frozen_moment(context: ViewContext, running_from: int) -> int:
    """Return the moment when the running turn began, or one before all if two clocks disagree."""
    began = load_message_time(context.raw, running_from)
    if began is None or began > context.now:
        return -NO_LIMIT
    return began
