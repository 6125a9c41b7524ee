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
from ..policy import DEFAULT, Policy, checked
from .borders import runs_text, values_of
from .build import ComposedView, compose_view
from .context import load_view_context
from .explanation import FILES_LIMIT
from .following import follow
from .judging import Verdict, Verdicts, ranked_in
from .rules import QUERIES, explanations, placeholders

LEFT_OUT = "left_out", "no request of this policy has it"
"""Rule and reason of a message that is visible and is not sent."""


class Decided(NamedTuple):
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
    pointer = session_branches.find(connection, session_id, None)
    last = lines.resolve_position(pointer, at)
    rules = DEFAULT if policy is None else checked(policy)
    context = load_view_context(connection, pointer, rules, last=last, now=require_moment(now))
    made, values = compose_view(context), values_of(context)
    runs = context.shown(values["start"], context.last)
    said = ranked_in(context, values, runs).found
    decided = [*_decided(made, said, follow(context, "openai").rendered.judged)]
    texts = {f"{rule}_text": text for rule, text in placeholders(context.policy).items()}
    asked = {
        **values,
        **texts,
        "files_limit": FILES_LIMIT,
        "runs": runs_text(runs),
        "line": runs_text(context.runs(1, context.last)),
        "shown": runs_text(context.visible_runs()),
        "rules": _as_json({each.seq: each.rule or "" for each in decided}),
        "whys": _as_json({each.seq: each.reason for each in decided}),
        "written": _as_json(dict.fromkeys(_written(made), "")),
        "reasons": _as_json(explanations(context.policy)),
    }
    return QUERIES.written("sent", connection.dialect.name, asked)


def _decided(made: ComposedView, said: Verdicts, judged: Verdicts) -> Iterator[Decided]:
    """Yield Python's decisions on messages, where the statement alone would decide otherwise."""
    for entry in made.explained.entries_without_names:
        if entry.seq is None:
            continue
        verdict = judged.get(entry.seq)
        if verdict is None or entry.rule != verdict.rule:
            if entry.rule is not None:
                yield Decided(entry.seq, entry.rule, entry.reason.partition(":")[0])
        elif _why(said.get(entry.seq)) != verdict.why:
            yield Decided(entry.seq, entry.rule, verdict.why)
    for seq in made.explained.stats.left_out:
        yield Decided(seq, *LEFT_OUT)


def _why(verdict: Verdict | None) -> str | None:
    return None if verdict is None else verdict.why


def _written(made: ComposedView) -> Iterator[int]:
    """Yield the positions whose content is rewritten although no rule replaces it."""
    entries = {entry.seq: entry for entry in made.explained.shared_entries}
    for placed in made.placed:
        if placed.seq is not None:
            said = entries[placed.seq].message.get("content")
            if placed.message.get("content") != said:
                yield placed.seq


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
