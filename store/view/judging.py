"""What the rules say of each tool result, and about how many tokens that saves.

The judging is one statement over narrow rows (``rules.sql``): what will be replaced is known before
any content is touched. Results are ranked by their moment, and by their position where moments are
equal, the later one being newer: all that no prefix hides. Those in ranges that were hidden by name
take part in the ranking, and nothing is said of them; so hiding a range changes nothing beside it.

**What `judge_at` freezes.** Judged ``"now"``, a result may be replaced between two requests of one
turn: it grew old, or newer ones took its slot. Each time a prompt cache loses what stands behind
it. Judged at the ``"turn"``, three values that the statement is given stand still while the turn
runs, and with them every verdict: the clock (``old_before``) is that of the message that began the
turn; nothing in the turn takes a slot or counts as a newer read (``judged_before``); and nothing in
it is replaced (``protected_from``). So within a turn a request is the one before and more. When a
new turn begins behind the line (``Look.turn_over``), the turn is frozen as it will be then: its
beginning is behind the last position, and its clock is the moment of the look. Where the message
says a moment after the look's own, two clocks disagree and nothing is old.

**Why the two statements agree.** A view asks `verdicts`, a check only `saved`: their sum, wanted
far more often. The sum is found without ranking what need not be ranked. Two facts allow it. Of the
newest results only the border matters: the newest result that has no slot (query ``slotless``), for
what is not newer than that has none either; so ``is_newest`` is a comparison of two columns in
place of a window over all results. And the conditions of the rules are the same pieces of text in
both, asked of columns of the same names; a read's saving goes along while its files are ranked, and
is dropped where the terminal rule, which comes first, takes it. What stays after judging by Python
(covered lines, recorded clearings, hidden ranges) has no such short cut: there the sum is that of
the verdicts. A law in the tests compares both on random lines and policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, cast, get_args

from ..database import Row
from ..errors import VERIFY, Damaged
from ..policy import Kind, Policy
from ..tokens import estimate, estimate_size
from .borders import Values, values_of
from .covering import Kept, read_of
from .look import Look
from .made_once import Result
from .named_results import Answer, named
from .old_calls import saved_by_cuts
from .rules import (
    COVERED,
    FILE_READ_SAVED,
    FINISHED,
    NAMING,
    RULES,
    SAVED_OF_EACH_READ,
    SLOTLESS,
    SUMMED,
    TERMINAL_SAVED,
    VERDICTS,
    Cleared,
    Finished,
    RuleName,
    Why,
    placeholders,
)
from .short_results import short_savings


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

    def answer(self, tree_id: int) -> Answer:
        """Return the result that it is about, with its call."""
        return Answer(self.result(tree_id), self.call)


_verdict: Callable[[tuple[Any, ...]], Verdict] = partial(tuple.__new__, Verdict)
"""Makes one of its fields; without a step of Python, for there may be thousands."""
KINDS = {*get_args(Kind), None}
"""The kinds of tools; None is that of a tool without one."""
Verdicts = dict[int, Verdict]
"""What the rules say of the tool results at some positions."""


def verdicts(look: Look) -> Verdicts:
    """Return what the rules say of each visible tool result of a look, by position."""
    return settled(look, judged(look, values_of(look)))


def settled(look: Look, found: Verdicts) -> Verdicts:
    """Return verdicts as they are in the end, given what the rules say at this moment.

    Each follows from what is said of that result alone.
    """
    found = _recorded(look, found)
    if look.policy.clearing == "always" and not look.policy.any_tool:
        return found
    return found | _short_already(look, found)


def ruled(look: Look) -> Verdicts:
    """Return verdicts before it is known which results are too short to be replaced by a line."""
    return _recorded(look, judged(look, values_of(look)))


def _recorded(look: Look, found: Verdicts) -> Verdicts:
    found = look.visible.of_shown(found)
    if look.policy.clearing == "always":
        return found
    return _as_recorded(found, look.visible.cleared)


def judged(look: Look, values: Values) -> Verdicts:
    """Return what the rules say at this moment of what no range hides, whatever was recorded."""
    rows = look.visible.rows_shown(VERDICTS.rows(look.connection, **values))
    found = {row[0]: verdict_of(row) for row in rows}
    if look.policy.range_aware:
        reads = COVERED.rows(look.connection, **values)
        shown = look.visible.of_shown(found)
        found |= _uncovered(found, [row for row in reads if row[0] in shown])
    if look.policy.cut_arguments:
        found |= _old_calls(look, values)
    return found


def _old_calls(look: Look, values: Values) -> Verdicts:
    """Return what is said of messages whose calls are to be cut."""
    saved = saved_by_cuts(look, min(values["clear_before"], values["protected_from"]))
    branch = look.pointer.branch
    return {
        seq: Verdict(seq, None, "arguments", "arguments", 0, 0, None, None, branch, failed=False)
        for seq in saved
    }


def _short_already(look: Look, found: Verdicts) -> Verdicts:
    """Return the results that stay since a line that names what is in them is no shorter."""
    answers = _to_be_named(look, found)
    lines = named(look, answers)
    places = (each.result.seq for each in answers if each.result.seq not in lines)
    return {seq: found[seq]._replace(rule=None, why="small") for seq in places}


def _to_be_named(look: Look, found: Verdicts) -> list[Answer]:
    """Return the results that give way to a line that names what was in them."""
    tree_id = look.pointer.tree_id
    return [each.answer(tree_id) for each in found.values() if each.rule in NAMING]


def saved(look: Look) -> int:
    """Return about how many tokens the rules save of what a look sees."""
    if _replaces_nothing(look):
        return 0
    if _has_sums(look.policy) and not look.visible.holes:
        return _summed(look)
    return sum(savings(look, ruled(look)).values())


def _replaces_nothing(look: Look) -> bool:
    """Tell whether no rule is on, or all of them wait for a clearing."""
    if not _rules_on(look.policy):
        return True
    return look.policy.clearing != "always" and not look.visible.cleared


def _has_sums(policy: Policy) -> bool:
    """Tell whether queries of sums say what verdicts would, after which Python changes nothing."""
    if policy.range_aware or policy.clearing != "always":
        return False
    return _rules_on(policy) <= SUMMED


def _rules_on(policy: Policy) -> set[RuleName]:
    return {rule for rule in RULES if getattr(policy, rule)}


def _summed(look: Look) -> int:
    """Return what the queries of sums say, without a verdict of each result."""
    values = values_of(look)
    slotless = SLOTLESS.row(look.connection, **values) if look.policy.terminal else None
    values["slot_at"], values["slot_seq"] = slotless or (None, None)
    terminal: int = TERMINAL_SAVED.value(look.connection, **values) if slotless else 0
    return terminal + _saved_besides(look, values)


def _saved_besides(look: Look, values: Values) -> int:
    """Return about how many tokens the other rules save than the terminal rule."""
    if look.policy.tool_output:
        return _saved_of_finished(look, values)
    if not look.policy.file_read:
        return 0
    reads: int = FILE_READ_SAVED.value(look.connection, **values)
    return reads


def _saved_of_finished(look: Look, values: Values) -> int:
    """Return about how many tokens stale reads and short forms save."""
    stale = _saved_of_stale(look, values)
    finished = FINISHED.rows(look.connection, **values)
    results = (_short_result(look, each) for each in finished if each.seq not in stale)
    return sum(stale.values()) + _saved_by_short_forms(look, results)


def _saved_of_stale(look: Look, values: Values) -> dict[int, int]:
    """Return about how many tokens it saves to replace each stale read, by position."""
    if not look.policy.file_read:
        return {}
    return dict(SAVED_OF_EACH_READ.rows(look.connection, **values))


def _saved_by_short_forms(look: Look, results: Iterable[Result]) -> int:
    savings = short_savings(look, results)
    return sum(savings.values())


def _short_result(look: Look, of: Finished) -> Result:
    return Result(
        look.pointer.tree_id,
        of.branch,
        of.seq,
        of.tool_name,
        _own_kind(look, of.tool_name) or _known_kind(of),
        of.length,
        of.size,
        bool(of.is_error),
    )


def _known_kind(of: Finished) -> Kind | None:
    if of.kind not in KINDS:
        raise _unknown_kind(of.tool_name, of.kind)
    return of.kind


def _unknown_kind(tool_name: str | None, kind: object) -> Damaged:
    return Damaged(f"the tool {tool_name!r:.80} is said to be of the kind {kind!r:.40}; {VERIFY}")


def _own_kind(look: Look, tool_name: str | None) -> Kind | None:
    """Return the kind that the policy gives a tool, over that in the table."""
    return None if tool_name is None else look.policy.tool_kinds.get(tool_name)


def savings(look: Look, found: Verdicts) -> dict[int, int]:
    """Return about how many tokens each replacement saves, by position.

    What has no shorter form is not replaced.
    """
    tree_id = look.pointer.tree_id
    shortened = (each for each in found.values() if each.rule == "tool_output")
    results = [each.result(tree_id) for each in shortened]
    short = short_savings(look, results)
    lines = named(look, _to_be_named(look, found))
    named_savings = {seq: line.saved for seq, line in lines.items()}
    return _whole_savings(look.policy, found) | short | named_savings | _cut_savings(look, found)


def _cut_savings(look: Look, found: Verdicts) -> dict[int, int]:
    """Return about how many tokens it saves to cut arguments, by position."""
    places = [each.seq for each in found.values() if each.rule == "arguments"]
    saved = saved_by_cuts(look, max(places, default=0) + 1)
    return {seq: saved[seq] for seq in places}


def _whole_savings(policy: Policy, found: Verdicts) -> dict[int, int]:
    """Return about how many tokens it saves to replace results as a whole, by position."""
    texts = placeholders(policy)
    costs = {rule: estimate(text) for rule, text in texts.items()}
    replaced = (each for each in found.values() if each.rule in costs)
    return {each.seq: each.tokens - costs[each.rule] for each in replaced}


def _as_recorded(found: Verdicts, cleared: dict[int, str]) -> Verdicts:
    """Return verdicts where rules act only at recorded moments."""
    judged = found.items()
    return {seq: _cleared(verdict, cleared.get(seq)) for seq, verdict in judged}


def _cleared(verdict: Verdict, rule: str | None) -> Verdict:
    """Return a verdict that replaces a result if a recorded clearing does, and only then."""
    if rule is not None:
        return verdict._replace(rule=cast("Cleared", rule), why="cleared")
    if verdict.rule:
        return verdict._replace(rule=None, why="waiting")
    return verdict


def verdict_of(row: Row) -> Verdict:
    """Return the verdict that a row tells of."""
    seq, call_seq, call_position, why, length, size, tool_name, kind, branch, failed = row
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
