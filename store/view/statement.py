"""A view as one SQL statement with its values in it, for a shell and for inspection.

It is the query that judges every view, joined with the messages of the line. If a result is
replaced by a text of the policy, or a message is sent as stored, the row has the content as sent.
If Python decides (a short form, a line of names, a clearing that waits), the row has the rule and
the reason. These are bound by position, and no value is taken from a message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, require_moment
from ..history import lines, session_branches
from ..policy import STANDARD_POLICY, Policy, check_policy
from .build import ComposedView, compose_view
from .explanation import FILES_LIMIT
from .rule_parameters import build_rule_values, render_runs
from .rules import RULE_QUERIES, list_placeholders, render_explanations
from .verdicts import Verdicts, rank_run_results
from .visible_set import load_view_context

LEFT_OUT_VERDICT = "left_out", "no request of this policy has it"
"""Rule and reason of a message that is visible and is not sent."""


class PythonDecision(NamedTuple):
    """Python's decision on the message at a position: the rule, if any, and the reason."""

    seq: int
    rule: str | None
    reason: str


def view_sql(
    connection: Connection,
    session_id: str,
    policy: Policy | None = None,
    *,
    at: int | None = None,
    now: Now = None,
) -> str:
    """Return a view as one SQL statement, without values to bind, in the database's dialect.

    It has a row for each message of the line up to position ``at``, in order: ``position``,
    ``role``, ``rule`` and ``reason`` as the view's entry has them, ``content`` as it is sent (as
    JSON if it is no text), and ``made_by``. That is ``sql`` if the rule is ``terminal``,
    ``file_read`` or none, else ``python`` with NULL as the content. Messages hidden by a compaction
    have the rule ``hidden``, messages left out of requests ``left_out``. Messages that a view makes
    up have no row. Raises SessionNotFound, PositionOutOfRange, InvalidPolicy.
    """
    pointer = session_branches.find_line_pointer(connection, session_id, None)
    last = lines.resolve_position(pointer, at)
    rules = STANDARD_POLICY if policy is None else check_policy(policy)
    context = load_view_context(connection, pointer, rules, last=last, now=require_moment(now))
    made, values = compose_view(context), build_rule_values(context)
    runs = context.shown(values["start"], context.last)
    said = rank_run_results(context, values, runs).found
    decided = [*_list_decisions(made, said)]
    texts = {f"{rule}_text": text for rule, text in list_placeholders(context.policy).items()}
    asked = {
        **values,
        **texts,
        "files_limit": FILES_LIMIT,
        "runs": render_runs(runs),
        "line": render_runs(context.runs(1, context.last)),
        "shown": render_runs(context.visible_runs()),
        "rules": _encode_bound_json({each.seq: each.rule or "" for each in decided}),
        "whys": _encode_bound_json({each.seq: each.reason for each in decided}),
        "written": _encode_bound_json(dict.fromkeys(_list_rewritten_positions(made), "")),
        "reasons": _encode_bound_json(render_explanations(context.policy)),
    }
    return RULE_QUERIES.written("sent", connection.dialect.name, asked)


def _list_decisions(made: ComposedView, said: Verdicts) -> Iterator[PythonDecision]:
    """Yield Python's decisions on messages, where the statement alone would decide otherwise."""
    for entry in made.explained.shared_entries:
        if entry.seq is None:
            continue
        verdict = made.explained.inputs.judged.get(entry.seq)
        if verdict is None or entry.rule != verdict.rule:
            if entry.rule is not None:
                yield PythonDecision(entry.seq, entry.rule, entry.reason.partition(":")[0])
        elif entry.seq not in said or said[entry.seq].why != verdict.why:
            yield PythonDecision(entry.seq, entry.rule, verdict.why)
    for seq in made.explained.stats.left_out:
        yield PythonDecision(seq, *LEFT_OUT_VERDICT)


def _list_rewritten_positions(made: ComposedView) -> Iterator[int]:
    """Yield the positions whose content is rewritten although no rule replaces it."""
    entries = {entry.seq: entry for entry in made.explained.shared_entries}
    for placed in made.placed:
        if placed.seq is not None:
            said = entries[placed.seq].message.get("content")
            if placed.message.get("content") != said:
                yield placed.seq


def _encode_bound_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
