"""What the rules say of each tool result, and about how many tokens that saves.

The judging is one statement over narrow rows (``rules.sql``): what will be replaced is known before
any content is touched. Results are ranked by their moment, and by their position where moments are
equal, the later one being newer. Only what can be seen is ranked: what a compaction hides takes no
place, nor does a result whose words were taken out; so nothing gives way to what is not there.

**What `judge_at` freezes.** Judged ``"now"``, a result may be replaced between two requests of one
turn: it grew old, or newer ones took its slot. Each time a prompt cache loses what stands behind
it. Judged at the ``"turn"``, three values that the statement is given stand still while the turn
runs, and with them every verdict: the clock (``old_before``) is that of the message that began the
turn; nothing in the turn takes a slot or counts as a newer read (``judged_before``); and nothing in
it is replaced (``protected_from``). So within a turn a request is the one before and more. When a
new turn begins after the line (``ViewContext.turn_over``), the turn is frozen as it will be then:
its beginning is after the last position, and its clock is the moment of the view. Where the message
has a later moment than the view, two clocks disagree and nothing is old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, cast, get_args

from ..database import Row
from ..errors import VERIFY, Damaged
from ..policy import Kind, Policy
from ..tokens import estimate, estimate_size
from .borders import Values, runs_text
from .context import ViewContext
from .covering import Kept, read_of
from .made_once import Result
from .placeholders import (
    AnsweredCall,
    estimate_cut_savings,
    estimate_short_savings,
    load_shorter_lines,
)
from .rules import COVERED, NAMING, RULES, VERDICTS, Cleared, Why, placeholders


class Verdict(NamedTuple):
    """What the rules say of a tool result; ``rule`` None means that it stays.

    ``call`` is the position of the call that it answers: of its message, and in that message.
    ``length`` is in code points, ``size`` in bytes.
    """

    seq: int
    call: tuple[int, int] | None
    rule: Cleared | None
    why: Why
    length: int
    size: int
    tool_name: str | None
    kind: Kind | None
    branch: int
    failed: bool

    @property
    def tokens(self) -> int:
        """The estimated tokens of the result as it is stored."""
        return estimate_size(self.length, self.size)

    def result(self, tree_id: int) -> Result:
        """Return the result that it is about."""
        return Result(
            tree_id,
            self.branch,
            self.seq,
            self.tool_name,
            self.kind,
            self.length,
            self.size,
            self.failed,
        )

    def answer(self, tree_id: int) -> AnsweredCall:
        """Return the result that it is about, with its call."""
        return AnsweredCall(self.result(tree_id), self.call)


_verdict: Callable[[tuple[Any, ...]], Verdict] = partial(tuple.__new__, Verdict)
"""Makes one of its fields; without a step of Python, for there may be thousands."""
KINDS = {*get_args(Kind), None}
"""The kinds of tools; None is that of a tool without one."""
Verdicts = dict[int, Verdict]
"""What the rules say of the tool results at some positions."""
Moment = tuple[int, int]
"""When a result was said, and its position."""


class Ranked(NamedTuple):
    """Verdicts of some results, and those that may change.

    Later results take the places of the ``newest`` results, and of the ``reads`` that are among the
    newest of any of their files; time makes ``young`` ones old, which are known by their moments.
    """

    found: Verdicts
    newest: frozenset[int]
    reads: frozenset[int]
    young: frozenset[Moment]


def settled(context: ViewContext, found: Verdicts) -> Verdicts:
    """Return verdicts as they are in the end, given what the rules say at this moment.

    Each follows from what is said of that result alone.
    """
    found = recorded(context, found)
    if context.policy.clearing == "always" and not context.policy.any_tool:
        return found
    return found | _short_already(context, found)


def recorded(context: ViewContext, found: Verdicts) -> Verdicts:
    """Return verdicts where rules may act only at recorded moments.

    They are those before it is known which results are too short to be replaced by a line.
    """
    if context.policy.clearing == "always":
        return found
    told = (_as_recorded(context, verdict) for verdict in found.values())
    return {verdict.seq: verdict for verdict in told}


def judged(context: ViewContext, values: Values) -> Ranked:
    """Return what the rules say at this moment of all that a look sees, whatever was recorded."""
    runs = context.shown(values["start"], values["last"])
    ranked = ranked_in(context, values, runs)
    found = ranked.found
    if context.policy.range_aware:
        found |= _uncovered(found, COVERED.rows(context.connection, **values, runs=runs_text(runs)))
    if context.policy.cut_arguments:
        found |= _old_calls(context, values)
    return ranked


def ranked_in(context: ViewContext, values: Values, runs: Iterable[Sequence[int]]) -> Ranked:
    """Return what the rules say of the results in some runs, which are ranked among themselves."""
    rows = VERDICTS.rows(context.connection, **values, runs=runs_text(runs))
    return Ranked(
        {row[0]: verdict_of(row) for row in rows},
        frozenset([row[0] for row in rows if row[-3]]),
        frozenset([row[0] for row in rows if row[-2]]),
        frozenset([(young_at, seq) for seq, *_, young_at in rows if young_at is not None]),
    )


def _old_calls(context: ViewContext, values: Values) -> Verdicts:
    """Return what is said of messages whose calls are to be cut."""
    saved = estimate_cut_savings(context, min(values["clear_before"], values["protected_from"]))
    branch = context.pointer.branch
    return {
        seq: Verdict(seq, None, "arguments", "arguments", 0, 0, None, None, branch, failed=False)
        for seq in saved
    }


def _short_already(context: ViewContext, found: Verdicts) -> Verdicts:
    """Return the results that stay since a line that names what is in them is no shorter."""
    answers = _to_be_named(context, found)
    lines = load_shorter_lines(context, answers)
    places = (each.result.seq for each in answers if each.result.seq not in lines)
    return {seq: found[seq]._replace(rule=None, why="small") for seq in places}


def _to_be_named(context: ViewContext, found: Verdicts) -> list[AnsweredCall]:
    """Return the results that give way to a line that names what was in them."""
    tree_id = context.pointer.tree_id
    return [each.answer(tree_id) for each in found.values() if each.rule in NAMING]


def _unknown_kind(tool_name: str | None, kind: object) -> Damaged:
    return Damaged(f"the tool {tool_name!r:.80} is said to be of the kind {kind!r:.40}; {VERIFY}")


def estimate_savings(context: ViewContext, found: Verdicts) -> dict[int, int]:
    """Return about how many tokens each replacement saves, by position.

    What has no shorter form is not replaced.
    """
    tree_id = context.pointer.tree_id
    shortened = (each for each in found.values() if each.rule == "tool_output")
    results = [each.result(tree_id) for each in shortened]
    short = estimate_short_savings(context, results)
    lines = load_shorter_lines(context, _to_be_named(context, found))
    named_savings = {seq: line.saved for seq, line in lines.items()}
    return (
        _whole_savings(context.policy, found) | short | named_savings | _cut_savings(context, found)
    )


def _cut_savings(context: ViewContext, found: Verdicts) -> dict[int, int]:
    """Return about how many tokens it saves to cut arguments, by position."""
    places = [each.seq for each in found.values() if each.rule == "arguments"]
    saved = estimate_cut_savings(context, max(places, default=0) + 1)
    return {seq: saved[seq] for seq in places}


def _whole_savings(policy: Policy, found: Verdicts) -> dict[int, int]:
    """Return about how many tokens it saves to replace results as a whole, by position."""
    texts = placeholders(policy)
    costs = {rule: estimate(text) for rule, text in texts.items()}
    replaced = (each for each in found.values() if each.rule in costs)
    return {each.seq: each.tokens - costs[each.rule] for each in replaced}


def _as_recorded(context: ViewContext, verdict: Verdict) -> Verdict:
    """Return a verdict that replaces a result if a recorded clearing does, and only then.

    A read is shown again once it is among the newest again, since later ones were hidden or their
    words taken out, or once older ones point to it. Else nothing would be left to be seen of its
    file. Where results of any tool are cleared, the newest reads may be: nothing points to them.
    """
    rule = context.visible.cleared.get(verdict.seq)
    if rule is None or verdict.why == "redacted" or _returns(verdict, rule, context.policy):
        is_due = verdict.rule is not None
        return verdict._replace(rule=None, why="waiting") if is_due else verdict
    if rule == "file_read" and context.policy.any_tool:
        rule = "any_tool"
    return verdict._replace(rule=cast("Cleared", rule), why="cleared")


def _returns(verdict: Verdict, rule: str, policy: Policy) -> bool:
    """Tell whether a read that was replaced by a rule is to be seen again."""
    if not policy.file_read:
        return False
    if rule == "file_read":
        return verdict.rule not in ("file_read", "any_tool")
    return rule == "tool_output" and verdict.why == "newest_reads"


def verdict_of(row: Row) -> Verdict:
    """Return the verdict that a row tells of."""
    seq, call_seq, call_position, why, length, size, tool_name, kind, branch, failed, *_ = row
    call = None if call_seq is None else (call_seq, call_position)
    rule = why if why in RULES else None
    if kind not in KINDS:
        raise _unknown_kind(tool_name, kind)
    return _verdict((seq, call, rule, why, length, size, tool_name, kind, branch, failed == 1))


def _uncovered(found: Verdicts, rows: list[Row]) -> Verdicts:
    """Return the reads that stay since the newer kept reads do not cover their lines.

    A kept one covers in its turn. ``rows`` come newest first. Lines that were not read in one piece
    cover nothing, nor does a read of a finished turn that the tool-output rule may shorten.
    """
    kept = Kept()
    stays: Verdicts = {}
    for seq, group in groupby(rows, key=itemgetter(0)):
        reads = [read_of(row) for row in group]
        verdict = found[seq]
        if verdict.rule == "file_read" and not kept.cover(reads):
            verdict = stays[seq] = verdict._replace(rule=None, why="uncovered")
        if verdict.rule is None:
            kept.add(reads)
    return stays
