"""The verdict of the rules on each tool result: whether it stays, or which rule replaces it.

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

**Why a line that has grown is judged from its cached verdicts.** A verdict depends on three things:
the stored result, its rank (whether it is one of the newest, whether enough newer reads of its
files exist), and its side of each border. The first never changes. The ranks still come from the
query ``verdicts``, which is only given fewer results. A line grows at its end and never loses
visible results, so a result that lost its place never gets it back, and only newer results that
have a place can take one from others. So the query reads the new results, those that a border has
passed between its old and its new place, those that were the newest, and the newest reads of each
file that any of these is about, one more than stay. Among these a result is one of the newest
exactly if it is one among all results. The verdicts on all others stay the same. If the verdicts of
a policy depend on more than that, or the line did not grow, all are judged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple, cast, get_args

from ..database import Row, measure_bytes
from ..errors import VERIFY_HINT, Damaged
from ..formats import replace_surrogates
from ..history import NO_LIMIT, Segment
from ..policy import PolicyToolKind
from ..tokens import estimate, estimate_size
from .placeholders import (
    CallAnswer,
    NarrowResult,
    estimate_cut_savings,
    estimate_short_savings,
    load_result_lines,
    load_shorter_lines,
    make_narrow_result,
)
from .read_files import ReadFiles, load_read_paths
from .rule_parameters import POSITION_BORDERS, RuleValues, build_rule_values, has_grown, render_runs
from .rules import (
    AGE_BORDERS,
    COVERED_READS,
    NAMING_RULES,
    RESULT_VERDICTS,
    RULES,
    ClearingEffect,
    VerdictReason,
    list_placeholders,
)
from .visible_set import ViewContext, VisibleSet

VERDICT_KINDS = {*get_args(PolicyToolKind), None}
"""The kinds of tools; None is for a tool without a kind."""
LARGEST_REJUDGED_SHARE = 4
"""All results are judged again if more than one in this many would be."""
FRAME_BYTES = 1_250
"""Bytes of a message without its texts; the verdict on a result takes as many."""
LINE_BYTES = 4_500
"""Bytes of a line without its messages."""
CLEARED_BYTES = 150
"""Bytes of each result that a recorded clearing replaces."""


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
        seq, _, _, _, length, size, tool_name, kind, branch, failed = self
        return make_narrow_result((tree_id, branch, seq, tool_name, kind, length, size, failed))

    def answer(self, tree_id: int) -> CallAnswer:
        """Return the result of the verdict, with its call."""
        return CallAnswer(self.result(tree_id), self.call)

    def settle(self, rule: ClearingEffect | None, why: VerdictReason) -> Verdict:
        """Return the verdict with another rule and reason; there may be thousands."""
        return _build_verdict((*self[:2], rule, why, *self[4:]))


_build_verdict: Callable[[tuple[Any, ...]], Verdict] = partial(tuple.__new__, Verdict)
"""Builds a verdict from its fields, in C because there may be thousands."""
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

    def list_places(self, positions: Iterable[int]) -> list[Segment]:
        """Return some of the results, each as a run, in order."""
        return [Segment(self.found[seq].branch, seq, seq) for seq in sorted(positions)]


class JudgedLine(NamedTuple):
    """The verdicts on a look's results, and the values from which later verdicts are derived.

    ``ranked`` has the verdicts at the moment, in the order of the line, and the results whose
    verdicts may change; ``final`` are the final verdicts; ``files`` are the files of the reads that
    may change, None until they are needed; ``changed`` are the positions whose final verdicts
    differ from the earlier ones, None if there were none. ``cleared`` are the recorded clearings by
    which they were settled.
    """

    values: RuleValues
    ranked: RankedVerdicts
    final: Verdicts
    cleared: dict[int, str]
    files: ReadFiles | None = None
    changed: frozenset[int] | None = None

    def replace(
        self,
        values: RuleValues,
        fresh: RankedVerdicts,
        final: Verdicts,
        again: set[int],
        files: ReadFiles,
    ) -> JudgedLine:
        """Return these verdicts with fresh ones, among them those on the results ``again``."""
        before = self.ranked
        reads = (before.reads - again) | fresh.reads
        young = frozenset(each for each in before.young if each[1] not in again)
        return JudgedLine(
            values,
            RankedVerdicts(
                _merge_verdicts(before.found, fresh.found),
                fresh.newest,
                reads,
                young | fresh.young,
            ),
            _merge_verdicts(self.final, final),
            self.cleared,
            {seq: files[seq] for seq in reads},
            frozenset(seq for seq in final if self.final.get(seq) != final[seq]),
        )

    def measure_size(self, visible: VisibleSet) -> int:
        """Return about how many bytes the verdicts take in the cache."""
        texts = measure_bytes((visible.summaries, visible.ranges))
        cleared = CLEARED_BYTES * len(visible.cleared)
        return LINE_BYTES + texts + cleared + FRAME_BYTES * len(self.ranked.found)


def _merge_verdicts(before: Verdicts, fresh: Verdicts) -> Verdicts:
    """Return verdicts with fresh ones, in the order of the line."""
    merged = before | fresh
    last = next(reversed(before), 0)
    is_in_order = all(seq in before or seq > last for seq in fresh)
    return merged if is_in_order else dict(sorted(merged.items()))


def load_verdicts(context: ViewContext) -> Verdicts:
    """Return verdicts without the check for results too short to be replaced by a line."""
    purpose = f"ruled from {context.visible.first_kept}, {context.turn_over}"
    return apply_recorded_clearings(context, load_judged_line(context, purpose).ranked.found)


def load_judged_line(context: ViewContext, purpose: str) -> JudgedLine:
    """Return the verdicts of a look, from those cached for a purpose if they are valid."""
    if not context.cache.is_enabled:
        return judge_line(context, None)
    name, validity = context.build_cache_name(purpose), context.load_validity()
    judged = judge_line(context, context.cache.load(name, validity))
    context.cache.save(name, judged, judged.measure_size(context.visible), validity)
    return judged


def judge_line(context: ViewContext, known: JudgedLine | None) -> JudgedLine:
    """Return the verdicts on the results of a look, from known ones if possible."""
    values = build_rule_values(context, known.values if known else None)
    if known and (grown := _extend_judged_line(context, values, known)):
        return grown
    runs = context.shown(values["start"], values["last"])
    ranked = rank_run_results(context, values, runs)
    found, policy = ranked.found, context.policy
    if policy.range_aware:
        rows = COVERED_READS.rows(context.connection, **values, runs=render_runs(runs))
        found.update(_spare_uncovered_reads(found, rows))
    if policy.cut_arguments:
        cuts = _build_cuts(context, _list_cut_calls(context, values))
        found = dict(sorted((found | cuts).items()))
        ranked = ranked._replace(found=found)
    final = settle_verdicts(context, found)
    return JudgedLine(values, ranked, final, _list_clearings(context))


def _list_clearings(context: ViewContext) -> dict[int, str]:
    """Return the recorded clearings that a policy goes by, none if it clears at any time."""
    return {} if context.policy.clearing == "always" else context.visible.cleared


def _build_cuts(context: ViewContext, positions: Iterable[int]) -> Verdicts:
    """Return the verdicts on messages whose calls are cut."""
    branch = context.pointer.branch
    return {
        seq: Verdict(seq, None, "arguments", "arguments", 0, 0, None, None, branch, failed=False)
        for seq in positions
    }


def load_cut_savings(context: ViewContext) -> dict[int, int]:
    """Return about how many tokens are saved if old calls are cut, by position."""
    values = build_rule_values(context)
    return estimate_cut_savings(context, min(values["cut_before"], values["protected_from"]))


def _list_cut_calls(context: ViewContext, values: RuleValues) -> Iterable[int]:
    """Return the positions of messages whose calls may be cut: those recorded, if any wait."""
    if context.policy.clearing == "always":
        before = min(values["cut_before"], values["protected_from"])
        return estimate_cut_savings(context, before)
    recorded = context.visible.cleared.items()
    shown = range(values["start"], values["last"] + 1)
    return [seq for seq, rule in recorded if rule == "arguments" and seq in shown]


def rank_run_results(
    context: ViewContext, values: RuleValues, runs: Iterable[Sequence[int]]
) -> RankedVerdicts:
    """Return the verdicts on the results in some runs, ranked among themselves."""
    rows = RESULT_VERDICTS.rows(context.connection, **values, runs=render_runs(runs))
    for tool_name, kind in {(row[6], row[7]) for row in rows}:
        if kind not in VERDICT_KINDS:
            raise Damaged(
                f"the tool {tool_name!r:.80} is said to be of the kind {kind!r:.40}; {VERIFY_HINT}"
            )
    found: Verdicts = {}
    for seq, call_seq, position, why, length, size, tool, kind, branch, failed, _, _, _ in rows:
        call = None if call_seq is None else (call_seq, position)
        rule = why if why in RULES else None
        found[seq] = _build_verdict(
            (seq, call, rule, why, length, size, tool, kind, branch, failed == 1)
        )
    return RankedVerdicts(
        found,
        newest=frozenset([row[0] for row in rows if row[10]]),
        reads=frozenset([row[0] for row in rows if row[11]]),
        young=frozenset([(row[12], row[0]) for row in rows if row[12] is not None]),
    )


def _spare_uncovered_reads(found: Verdicts, rows: list[Row]) -> Verdicts:
    """Return the reads that stay because newer kept reads do not cover their lines.

    Each kept read may cover older ones. ``rows`` are ordered newest first. Lines that were not read
    in one piece cover nothing, nor does a read of a finished turn that the tool-output rule may
    shorten.
    """
    kept: dict[str | None, list[tuple[int, int]]] = {}
    stays: Verdicts = {}
    for seq, group in groupby(rows, key=itemgetter(0)):
        reads = [
            (path, first or 1, last or NO_LIMIT, in_one_piece)
            for _, path, first, last, in_one_piece in group
        ]
        verdict = found[seq]
        if verdict.rule == "file_read" and not all(
            _covers_lines(kept.get(path, ()), first, last) for path, first, last, _ in reads
        ):
            verdict = stays[seq] = verdict._replace(rule=None, why="uncovered")
        if verdict.rule is None:
            for path, first, last, in_one_piece in reads:
                if in_one_piece:
                    kept.setdefault(path, []).append((first, last))
    return stays


def _covers_lines(ranges: Iterable[tuple[int, int]], first: int, last: int) -> bool:
    """Tell whether ranges together include every line from the first to the last."""
    for low, high in sorted(ranges):
        if low > first:
            return False
        first = max(first, high + 1)
        if first > last:
            return True
    return first > last


def _extend_judged_line(
    context: ViewContext, values: RuleValues, known: JudgedLine
) -> JudgedLine | None:
    """Return the known verdicts with the new ones, None if all results have to be judged."""
    if not _can_extend(context, values, known):
        return None
    ranked, cleared = known.ranked, _list_clearings(context)
    new = context.shown(known.values["last"] + 1, values["last"])
    passed = _find_passed_results(known, values)
    recorded = cleared.keys() - known.cleared.keys()
    if not new and not passed and not recorded:
        return known._replace(values=values, changed=frozenset())
    looked_at = passed | ranked.newest
    likely = render_runs(chain(ranked.list_places(looked_at), new))
    RESULT_VERDICTS.send(context.connection, **values, runs=likely)
    files = load_read_paths(context, ranked.reads) if known.files is None else known.files
    added = (range(run.first, run.last + 1) for run in new)
    # A read that the short form spares is so for an older one of its file.
    named = looked_at if context.policy.tool_output else passed
    asked = load_read_paths(context, chain(named, *added))
    again = looked_at | _find_related_reads(asked, files)
    if len(again) > len(ranked.found) // LARGEST_REJUDGED_SHARE + 100:
        return None
    fresh = rank_run_results(context, values, chain(ranked.list_places(again), new))
    if recorded:
        fresh = _add_recorded(context, values, recorded, ranked.found, fresh)
    final = settle_verdicts(context, fresh.found)
    return known._replace(cleared=cleared).replace(values, fresh, final, again, files | asked)


def _add_recorded(
    context: ViewContext,
    values: RuleValues,
    recorded: set[int],
    before: Verdicts,
    fresh: RankedVerdicts,
) -> RankedVerdicts:
    """Return fresh verdicts with those on messages of which a clearing was recorded since."""
    found = {seq: before[seq] for seq in recorded & before.keys()}
    found |= fresh.found
    if context.policy.cut_arguments:
        cut = recorded.intersection(_list_cut_calls(context, values))
        found |= _build_cuts(context, cut)
    in_order = sorted(found.items())
    return fresh._replace(found=dict(in_order))


def _can_extend(context: ViewContext, values: RuleValues, known: JudgedLine) -> bool:
    """Tell whether known verdicts stay true but for those that `_extend_judged_line` looks at."""
    policy, before = context.policy, known.values
    if policy.range_aware or not has_grown(values, before):
        return False
    if policy.cut_arguments and policy.clearing == "always":
        return False
    if policy.file_read and policy.any_tool:  # a read that is cleared tells of all of its file
        return False
    if not known.cleared.items() <= _list_clearings(context).items():  # one was undone
        return False
    return all(values[border] >= before[border] for border in AGE_BORDERS)


def _find_passed_results(known: JudgedLine, values: RuleValues) -> set[int]:
    """Return the results that a border has passed since they were judged, or that grew old."""
    places = list(known.ranked.found)
    passed: set[int] = set()
    for name in POSITION_BORDERS:
        ends = sorted((known.values[name], values[name]))
        first, last = (bisect_left(places, end) for end in ends)
        passed.update(places[first:last])
    moments = [(known.values[border], values[border]) for border in AGE_BORDERS]
    for at, seq in known.ranked.young:
        if any(before <= at < border for before, border in moments):
            passed.add(seq)
    return passed


def _find_related_reads(asked: ReadFiles, files: ReadFiles) -> set[int]:
    """Return the reads of some files, and of all other files in these reads."""
    readers: dict[str, list[int]] = {}
    for seq, paths in files.items():
        for path in paths:
            readers.setdefault(path, []).append(seq)
    found: set[int] = set()
    wanted = {*chain.from_iterable(asked.values())}
    while wanted:
        new = {*readers.pop(wanted.pop(), ())} - found
        wanted.update(*(files[seq] for seq in new))
        found |= new
    return found


def settle_verdicts(context: ViewContext, found: Verdicts) -> Verdicts:
    """Return the final verdicts, from the verdicts of the rules at this moment.

    Each final verdict follows from the verdict on the same result alone.
    """
    policy = context.policy
    if policy.clearing != "always":
        found = apply_recorded_clearings(context, found)
    elif not any(getattr(policy, rule) for rule in NAMING_RULES):
        return found
    answers = _list_results_to_name(context, found)
    lines = load_shorter_lines(context, answers)
    places = (each.result.seq for each in answers if each.result.seq not in lines)
    return found | {seq: found[seq].settle(None, "small") for seq in places}


def apply_recorded_clearings(context: ViewContext, found: Verdicts) -> Verdicts:
    """Return verdicts after the policy's ``clearing``: rules may act only at recorded moments.

    Then a rule replaces a result only if a recorded clearing does. A read is shown again once it is
    among the newest again, because later ones were hidden or redacted, or once older ones point to
    it; else no read of its file would be visible. If results of any tool are cleared, the newest
    reads may be cleared too, since nothing points to them. Results that are too short to be
    replaced by a line are not told apart yet.
    """
    policy = context.policy
    if policy.clearing == "always":
        return found
    applied: Verdicts = {}
    for seq, verdict in found.items():
        rule = context.visible.cleared.get(seq)
        is_shown_again = policy.file_read and (
            (rule == "file_read" and verdict.rule not in ("file_read", "any_tool"))
            or (rule == "tool_output" and verdict.why == "newest_reads")
        )
        if rule is None or verdict.why == "redacted" or is_shown_again:
            is_due = verdict.rule is not None
            applied[seq] = verdict.settle(None, "waiting") if is_due else verdict
        else:
            if rule == "file_read" and policy.any_tool:
                rule = "any_tool"
            applied[seq] = verdict.settle(cast("ClearingEffect", rule), "cleared")
    return applied


def _list_results_to_name(context: ViewContext, found: Verdicts) -> list[CallAnswer]:
    """Return the results that are replaced by a line with names from their contents."""
    tree_id = context.pointer.tree_id
    return [each.answer(tree_id) for each in found.values() if each.rule in NAMING_RULES]


def load_replacements(context: ViewContext, judged: Verdicts) -> dict[int, str]:
    """Return the texts of the results that are replaced as a whole, by position."""
    texts = list_placeholders(context.policy)
    verdicts = [verdict for verdict in judged.values() if verdict.rule]
    replaced = {verdict.seq: texts[verdict.rule] for verdict in verdicts if verdict.rule in texts}
    tree_id = context.pointer.tree_id
    cleared = [verdict.answer(tree_id) for verdict in verdicts if verdict.rule in NAMING_RULES]
    if cleared:
        named = load_result_lines(context, cleared)
        replaced |= {seq: replace_surrogates(each.line) for seq, each in named.items()}
    return replaced


def estimate_savings(context: ViewContext, found: Verdicts) -> dict[int, int]:
    """Return about how many tokens each replacement saves, by position.

    Results without a shorter form are not replaced.
    """
    tree_id = context.pointer.tree_id
    shortened = (each for each in found.values() if each.rule == "tool_output")
    short = estimate_short_savings(context, [each.result(tree_id) for each in shortened])
    lines = load_shorter_lines(context, _list_results_to_name(context, found))
    costs = {rule: estimate(text) for rule, text in list_placeholders(context.policy).items()}
    replaced = (each for each in found.values() if each.rule in costs)
    places = [each.seq for each in found.values() if each.rule == "arguments"]
    saved = estimate_cut_savings(context, max(places, default=0) + 1)
    return (
        {each.seq: each.tokens - costs[each.rule] for each in replaced}
        | short
        | {seq: line.saved for seq, line in lines.items()}
        | {seq: saved[seq] for seq in places}
    )
