"""The verdict of the rules on each tool result, and about how many tokens it saves.

Results are judged by one statement over narrow rows (``rules.sql``), so the results to replace are
known before any content is read. They are ranked by moment, and by position if moments are equal;
the later one is newer. Only visible results are ranked: a result that a compaction hides takes no
place, nor does a redacted one, so no result gives way to one that is not shown.

**Frozen verdicts (`judge_at`).** Judged ``"now"``, a result may be replaced between two requests of
one turn, because it grew old or newer ones took its slot. Each time a prompt cache loses the
messages after it. Judged at the ``"turn"``, three values of the statement are constant while the
turn runs, and so is every verdict: the clock (``terminal_before``) is that of the message that
began the turn; no result of the turn takes a slot or counts as a newer read (``judged_before``);
and none is replaced (``protected_from``). So within a turn each request only adds to the one
before. When a new turn begins after the line (``ViewContext.turn_over``), that turn is frozen
already: it begins after the last position, and its clock is the moment of the view. If the message
has a later moment than the view, two clocks disagree and no result is old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, cast, get_args

from ..database import Row
from ..errors import VERIFY_HINT, Damaged
from ..policy import Policy, PolicyToolKind
from ..tokens import estimate, estimate_size
from .borders import RuleValues, render_runs
from .context import ViewContext
from .covering import KeptReads, parse_file_read
from .made_once import NarrowResult
from .placeholders import (
    CallAnswer,
    estimate_cut_savings,
    estimate_short_savings,
    load_shorter_lines,
)
from .rules import (
    COVERED_READS,
    NAMING_RULES,
    RESULT_VERDICTS,
    RULES,
    ClearingEffect,
    VerdictReason,
    list_placeholders,
)


class Verdict(NamedTuple):
    """The verdict on a tool result; with ``rule`` None the result stays.

    ``call`` is the place of the call that it answers: position of the message, and index in it.
    ``length`` is in code points, ``size`` in bytes.
    """

    seq: int
    call: tuple[int, int] | None
    rule: ClearingEffect | None
    why: VerdictReason
    length: int
    size: int
    tool_name: str | None
    kind: PolicyToolKind | None
    branch: int
    failed: bool

    @property
    def tokens(self) -> int:
        """The estimated tokens of the result as it is stored."""
        return estimate_size(self.length, self.size)

    def result(self, tree_id: int) -> NarrowResult:
        """Return the result of the verdict."""
        return NarrowResult(
            tree_id,
            self.branch,
            self.seq,
            self.tool_name,
            self.kind,
            self.length,
            self.size,
            self.failed,
        )

    def answer(self, tree_id: int) -> CallAnswer:
        """Return the result of the verdict, with its call."""
        return CallAnswer(self.result(tree_id), self.call)


_build_verdict: Callable[[tuple[Any, ...]], Verdict] = partial(tuple.__new__, Verdict)
"""Builds a verdict from its fields, in C because there may be thousands."""
VERDICT_KINDS = {*get_args(PolicyToolKind), None}
"""The kinds of tools; None is for a tool without a kind."""
Verdicts = dict[int, Verdict]
"""Verdicts on tool results, by position."""
ResultMoment = tuple[int, int]
"""The moment of a result, and its position."""


class RankedVerdicts(NamedTuple):
    """Verdicts of some results, and those that may change.

    Later results may take the places of the ``newest`` results, and of the ``reads`` that are among
    the newest of any of their files. The ``young`` results grow old; they are kept with their
    moments.
    """

    found: Verdicts
    newest: frozenset[int]
    reads: frozenset[int]
    young: frozenset[ResultMoment]


def settle_verdicts(context: ViewContext, found: Verdicts) -> Verdicts:
    """Return the final verdicts, from the verdicts of the rules at this moment.

    Each final verdict follows from the verdict on the same result alone.
    """
    found = apply_recorded_clearings(context, found)
    names = any(getattr(context.policy, rule) for rule in NAMING_RULES)
    if context.policy.clearing == "always" and not names:
        return found
    answers = _list_results_to_name(context, found)
    lines = load_shorter_lines(context, answers)
    places = (each.result.seq for each in answers if each.result.seq not in lines)
    return found | {seq: found[seq]._replace(rule=None, why="small") for seq in places}


def apply_recorded_clearings(context: ViewContext, found: Verdicts) -> Verdicts:
    """Return verdicts after the policy's ``clearing``: rules may act only at recorded moments.

    Results that are too short to be replaced by a line are not told apart yet.
    """
    if context.policy.clearing == "always":
        return found
    told = (_apply_recorded_clearing(context, verdict) for verdict in found.values())
    return {verdict.seq: verdict for verdict in told}


def judge_all_results(context: ViewContext, values: RuleValues) -> RankedVerdicts:
    """Return the verdicts at this moment on all results of a look, without recorded clearings."""
    runs = context.shown(values["start"], values["last"])
    ranked = rank_run_results(context, values, runs)
    found = ranked.found
    if context.policy.range_aware:
        found |= _spare_uncovered_reads(
            found, COVERED_READS.rows(context.connection, **values, runs=render_runs(runs))
        )
    if context.policy.cut_arguments:
        saved = estimate_cut_savings(context, min(values["clear_before"], values["protected_from"]))
        branch = context.pointer.branch
        found |= {
            seq: Verdict(
                seq, None, "arguments", "arguments", 0, 0, None, None, branch, failed=False
            )
            for seq in saved
        }
    return ranked


def rank_run_results(
    context: ViewContext, values: RuleValues, runs: Iterable[Sequence[int]]
) -> RankedVerdicts:
    """Return the verdicts on the results in some runs, ranked among themselves."""
    rows = RESULT_VERDICTS.rows(context.connection, **values, runs=render_runs(runs))
    return RankedVerdicts(
        {row[0]: parse_verdict(row) for row in rows},
        frozenset([row[0] for row in rows if row[-3]]),
        frozenset([row[0] for row in rows if row[-2]]),
        frozenset([(young_at, seq) for seq, *_, young_at in rows if young_at is not None]),
    )


def _list_results_to_name(context: ViewContext, found: Verdicts) -> list[CallAnswer]:
    """Return the results that are replaced by a line with names from their contents."""
    tree_id = context.pointer.tree_id
    return [each.answer(tree_id) for each in found.values() if each.rule in NAMING_RULES]


def estimate_savings(context: ViewContext, found: Verdicts) -> dict[int, int]:
    """Return about how many tokens each replacement saves, by position.

    Results without a shorter form are not replaced.
    """
    tree_id = context.pointer.tree_id
    shortened = (each for each in found.values() if each.rule == "tool_output")
    results = [each.result(tree_id) for each in shortened]
    short = estimate_short_savings(context, results)
    lines = load_shorter_lines(context, _list_results_to_name(context, found))
    named_savings = {seq: line.saved for seq, line in lines.items()}
    texts = list_placeholders(context.policy)
    costs = {rule: estimate(text) for rule, text in texts.items()}
    replaced = (each for each in found.values() if each.rule in costs)
    places = [each.seq for each in found.values() if each.rule == "arguments"]
    saved = estimate_cut_savings(context, max(places, default=0) + 1)
    return (
        {each.seq: each.tokens - costs[each.rule] for each in replaced}
        | short
        | named_savings
        | {seq: saved[seq] for seq in places}
    )


def _apply_recorded_clearing(context: ViewContext, verdict: Verdict) -> Verdict:
    """Return a verdict that replaces a result only if a recorded clearing does.

    A read is shown again once it is among the newest again, because later ones were hidden or
    redacted, or once older ones point to it; else no read of its file would be visible. If results
    of any tool are cleared, the newest reads may be cleared too, since nothing points to them.
    """
    rule = context.visible.cleared.get(verdict.seq)
    if (
        rule is None
        or verdict.why == "redacted"
        or _is_read_shown_again(verdict, rule, context.policy)
    ):
        is_due = verdict.rule is not None
        return verdict._replace(rule=None, why="waiting") if is_due else verdict
    if rule == "file_read" and context.policy.any_tool:
        rule = "any_tool"
    return verdict._replace(rule=cast("ClearingEffect", rule), why="cleared")


def _is_read_shown_again(verdict: Verdict, rule: str, policy: Policy) -> bool:
    """Tell whether a read that was replaced by a rule is shown again."""
    if not policy.file_read:
        return False
    if rule == "file_read":
        return verdict.rule not in ("file_read", "any_tool")
    return rule == "tool_output" and verdict.why == "newest_reads"


def parse_verdict(row: Row) -> Verdict:
    """Return the verdict in a row of the query ``verdicts``."""
    seq, call_seq, call_position, why, length, size, tool_name, kind, branch, failed, *_ = row
    call = None if call_seq is None else (call_seq, call_position)
    rule = why if why in RULES else None
    if kind not in VERDICT_KINDS:
        raise Damaged(
            f"the tool {tool_name!r:.80} is said to be of the kind {kind!r:.40}; {VERIFY_HINT}"
        )
    return _build_verdict(
        (seq, call, rule, why, length, size, tool_name, kind, branch, failed == 1)
    )


def _spare_uncovered_reads(found: Verdicts, rows: list[Row]) -> Verdicts:
    """Return the reads that stay because newer kept reads do not cover their lines.

    Each kept read may cover older ones. ``rows`` are ordered newest first. Lines that were not read
    in one piece cover nothing, nor does a read of a finished turn that the tool-output rule may
    shorten.
    """
    kept = KeptReads()
    stays: Verdicts = {}
    for seq, group in groupby(rows, key=itemgetter(0)):
        reads = [parse_file_read(row) for row in group]
        verdict = found[seq]
        if verdict.rule == "file_read" and not kept.cover(reads):
            verdict = stays[seq] = verdict._replace(rule=None, why="uncovered")
        if verdict.rule is None:
            kept.add(reads)
    return stays
