"""The values of the rules' queries: a line, the switches of a policy, and the borders.

A border is a position or a moment that tells results apart: results after it belong to the running
turn, results before it are old.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ..clock import shift_moment
from ..history import NO_LIMIT, find_last_answer, find_turn_start, load_message_time
from .rules import AGE_BORDERS, CLEARABLE_BORDER, bind_policy
from .visible_set import ViewContext

RuleValues = dict[str, Any]
"""The values that the rules' queries bind."""
POSITION_BORDERS = ("running_from", "judged_before", "protected_from", "clear_before")
"""The borders that are positions; those of ages, `AGE_BORDERS`, are moments."""
MOVING_VALUES = frozenset(
    (*POSITION_BORDERS, *AGE_BORDERS, "clearable", "cuttable", "cut_before", "last")
)
"""The values that change while a line grows and time passes."""


def build_rule_values(context: ViewContext, before: RuleValues | None = None) -> RuleValues:
    """Return all values of the rules' queries except the runs that they read.

    ``before`` are the values of a line that may be an earlier state of this one.
    """
    policy, last = context.policy, context.last
    is_frozen = policy.judge_at == "turn"
    running_from, now = NO_LIMIT, context.now
    if context.turn_over and (policy.protect_current_turn or policy.tool_output or is_frozen):
        running_from = last + 1
    elif policy.protect_current_turn or policy.tool_output or is_frozen:
        running_from = find_turn_start(context.raw, last)
        if is_frozen:
            # The moment when the turn began, or one before all if two clocks disagree.
            began = load_message_time(context.raw, running_from)
            now = -NO_LIMIT if began is None or began > now else began
    values = {
        **context.pointer.line,
        **bind_policy(policy),
        "start": context.visible.first_kept,
        "last": last,
        "running_from": running_from,
        "judged_before": running_from if is_frozen else NO_LIMIT,
        "protected_from": running_from if policy.protect_current_turn or is_frozen else NO_LIMIT,
        **{name: shift_moment(now, -getattr(policy, age)) for name, age in AGE_BORDERS.items()},
    }
    known = before if before and has_grown(values, before) else {}
    cut_keep = policy.clear_keep if policy.cut_keep is None else policy.cut_keep
    for newest, border, is_on, keep in (
        ("clearable", "clear_before", policy.any_tool, policy.clear_keep),
        ("cuttable", "cut_before", policy.cut_arguments, cut_keep),
    ):
        since = max(values["start"], known.get(newest, 0))  # none before is among the newest
        values |= {newest: 0, border: 0}
        if is_on:
            asked = {**values, "clear_keep": keep}
            found = _find_border(context, asked, since)
            values |= {newest: found[0], border: found[1]}
    return values


def _find_border(context: ViewContext, values: RuleValues, since: int) -> tuple[int, int]:
    """Return the newest result that is not among those to keep, and the border after it.

    The border lies before the last answer too: no request has sent the results after that yet.
    """
    memo, key = context.cache.memo, ("border", *values.values())
    if key not in memo:
        last = values["last"]
        runs = render_runs(context.shown(since, last))
        newest: int = CLEARABLE_BORDER.value(context.connection, **values, runs=runs) or 0
        answer = find_last_answer(context.raw, last) or 0
        memo[key] = (newest, min(newest + 1, answer) if newest else 0)
    found: tuple[int, int] = memo[key]
    return found


def has_grown(values: RuleValues, before: RuleValues) -> bool:
    """Tell whether a line was judged by the same values before, and has only grown since."""
    # Results before this position take part in the ranking.
    end, end_before = (min(each["judged_before"], each["last"] + 1) for each in (values, before))
    if values["last"] < before["last"] or end < end_before:
        return False
    return all(before[name] == value for name, value in values.items() if name not in MOVING_VALUES)


def render_runs(runs: Iterable[Sequence[int]]) -> str:
    """Return runs of branches as the queries take them."""
    return json.dumps([*runs], separators=(",", ":"))
