"""The verdicts of a line that has grown, from the cached verdicts of its earlier state.

**Why a few results are enough.** A verdict depends on three things: the stored result, its rank
(whether it is one of the newest, whether enough newer reads of its files exist), and its side of
each border. The first never changes. The ranks still come from the query ``verdicts``, which is
only given fewer results. A line grows at its end and never loses visible results, so a result that
lost its place never gets it back, and only newer results that have a place can take one from
others. So the query reads the new results, those that a border has passed between its old and its
new place, those that were the newest, and the newest reads of each file that any of these is about,
one more than stay. Among these a result is one of the newest exactly if it is one among all
results. The verdicts on all others stay the same.

If the verdicts of a policy depend on more than that, or the line did not grow, all are judged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain
from sys import intern
from typing import NamedTuple

from ..database import get_read_mark, get_reader_cache, measure_bytes
from ..history import ChangeCounts, Segment, load_kinds_json
from ..policy import Policy
from .borders import POSITION_BORDERS, RuleValues, build_rule_values, has_grown
from .context import ViewContext
from .judging import (
    RankedVerdicts,
    Verdicts,
    apply_recorded_clearings,
    judge_all_results,
    rank_run_results,
    settle_verdicts,
)
from .read_files import ReadFiles, load_read_paths
from .rules import AGE_BORDERS
from .visible_set import VisibleSet

LARGEST_REJUDGED_SHARE = 4
"""All results are judged again if more than one in this many would be."""
FRAME_BYTES = 1_250
"""Bytes of a message without its texts; the verdict on a result takes as many."""
LINE_BYTES = 4_500
"""Bytes of a line without its messages."""
CLEARED_BYTES = 150
"""Bytes of each result that a recorded clearing replaces."""


class ViewInputs(NamedTuple):
    """The inputs of a view other than its line, policy and moment."""

    changes: ChangeCounts
    project_root: str | None
    kinds: str
    visible: VisibleSet


class JudgedLine(NamedTuple):
    """The verdicts on a look's results, and the values from which later verdicts are derived.

    ``ranked`` has the verdicts at the moment, in the order of the line, and the results whose
    verdicts may change; ``final`` are the final verdicts; ``files`` are the files of the reads that
    may change, None until they are needed; ``changed`` are the positions whose final verdicts
    differ from the earlier ones, None if there were none.
    """

    values: RuleValues
    ranked: RankedVerdicts
    final: Verdicts
    files: ReadFiles | None = None
    changed: frozenset[int] | None = None

    @property
    def found(self) -> Verdicts:
        """The verdicts at the moment."""
        return self.ranked.found


def load_earlier_verdicts(context: ViewContext) -> Verdicts:
    """Return the final verdicts of a look at an earlier request, from cached ones if possible."""
    return _load_judged_line(context, "before").final


def load_verdicts(context: ViewContext) -> Verdicts:
    """Return verdicts without the check for results too short to be replaced by a line."""
    name = f"ruled from {context.visible.first_kept}, {context.turn_over}"
    return apply_recorded_clearings(context, _load_judged_line(context, name).found)


def _load_judged_line(context: ViewContext, name: str) -> JudgedLine:
    """Return the verdicts of a look, from those cached under a name if they are valid."""
    kept = get_reader_cache(context.connection)
    if kept is None:
        return judge_line(context, None)
    key = (*context.line.values(), name, render_policy_text(context.policy))
    truth = build_view_inputs(context, load_kinds_json(context.connection))
    truth_then, judged_then = kept.get(key) or (None, None)
    found = judge_line(context, judged_then if truth_then == truth else None)
    kept.put(
        key, (truth, found), weigh_judged_line(truth, found), get_read_mark(context.connection)
    )
    return found


def render_policy_text(policy: Policy) -> str:
    """Return a policy as text, one object for all caches: it is larger than a short session."""
    return intern(policy.model_dump_json())


def build_view_inputs(context: ViewContext, kinds: str) -> ViewInputs:
    """Return the inputs of a look's view, with the kinds of tools as text."""
    return ViewInputs(context.changes, context.pointer.project_root, kinds, context.visible)


def weigh_judged_line(truth: ViewInputs, judged: JudgedLine) -> int:
    """Return about how many bytes the verdicts take in the cache."""
    visible = truth.visible
    texts = measure_bytes((visible.summaries, visible.ranges))
    return (
        LINE_BYTES + texts + CLEARED_BYTES * len(visible.cleared) + FRAME_BYTES * len(judged.found)
    )


def judge_line(context: ViewContext, known: JudgedLine | None) -> JudgedLine:
    """Return the verdicts on the results of a look, from known ones if possible."""
    values = build_rule_values(context, known.values if known else None)
    grown = _extend_judged_line(context, values, known) if known else None
    if grown is not None:
        return grown
    ranked = judge_all_results(context, values)
    return JudgedLine(values, ranked, settle_verdicts(context, ranked.found))


def _extend_judged_line(
    context: ViewContext, values: RuleValues, known: JudgedLine
) -> JudgedLine | None:
    """Return the known verdicts with the new ones, None if all results have to be judged."""
    policy, before = context.policy, known.values
    if policy.range_aware or policy.cut_arguments or not has_grown(values, before):
        return None
    if policy.file_read and policy.any_tool:  # a read that is cleared tells of all of its file
        return None
    if any(values[border] < before[border] for border in AGE_BORDERS):
        return None
    new = context.shown(before["last"] + 1, values["last"])
    passed = {*_list_passed_results(known, values), *_list_aged_results(known, values)}
    if not new and not passed:
        return known._replace(values=values, changed=frozenset())
    files = load_read_paths(context, known.ranked.reads) if known.files is None else known.files
    added = (range(run.first, run.last + 1) for run in new)
    looked_at = passed | known.ranked.newest
    # A read that the short form spares is so for an older one of its file.
    named = looked_at if policy.tool_output else passed
    asked = load_read_paths(context, chain(named, *added))
    again = looked_at | _find_related_reads(asked, files)
    if len(again) > len(known.found) // LARGEST_REJUDGED_SHARE + 100:
        return None
    places = [Segment(known.found[seq].branch, seq, seq) for seq in sorted(again)]
    fresh = rank_run_results(context, values, chain(places, new))
    return _merge_judged_line(context, values, known, again, files | asked, fresh)


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


def _merge_judged_line(
    context: ViewContext,
    values: RuleValues,
    known: JudgedLine,
    again: set[int],
    files: ReadFiles,
    fresh: RankedVerdicts,
) -> JudgedLine:
    """Return the known verdicts with the fresh verdicts on some results."""
    final = settle_verdicts(context, fresh.found)
    reads = (known.ranked.reads - again) | fresh.reads
    young = frozenset(each for each in known.ranked.young if each[1] not in again)
    return JudgedLine(
        values,
        RankedVerdicts(known.found | fresh.found, fresh.newest, reads, young | fresh.young),
        known.final | final,
        {seq: files[seq] for seq in reads},
        frozenset(seq for seq in final if known.final.get(seq) != final[seq]),
    )


def _list_passed_results(known: JudgedLine, values: RuleValues) -> Iterator[int]:
    """Yield the results that a border has passed."""
    places = list(known.found)
    for name in POSITION_BORDERS:
        ends = sorted((known.values[name], values[name]))
        first, last = (bisect_left(places, end) for end in ends)
        yield from places[first:last]


def _list_aged_results(known: JudgedLine, values: RuleValues) -> Iterator[int]:
    """Yield the results that have grown old under a rule since they were judged."""
    moments = [(known.values[border], values[border]) for border in AGE_BORDERS]
    for at, seq in known.ranked.young:
        if any(before <= at < border for before, border in moments):
            yield seq
