"""Judging what is new: the verdicts of a line that has grown, from those that are known.

**Why it is enough to look at a few.** A verdict follows from three things: what is stored of the
result, how it ranks (one of the newest or not, enough newer reads of its files or not), and on
which side of each border it lies. The first never changes. The ranks are those of the query
`verdicts`, as ever: it is only told where to look. A line grows at its end and never loses what can
be seen, so whatever has lost its place has lost it for good, and what is newer and has a place is
all that can take one from others. So the query looks at what is new, at those that a border has
passed, between its old place and its new one, at the results that were the newest, and at the
newest reads of each file that any of these is about, one more than stay. Ranked among these, each
of them is one of the newest exactly if it is one among all. All others are as they were.

Where a policy has more to say than that, or the line did not grow, all are judged.
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
from .borders import PLACES, Values, has_grown, values_of
from .context import ViewContext
from .judging import Ranked, Verdicts, judged, ranked_in, recorded, settled
from .read_files import Files, paths_of
from .visible_set import VisibleSet

LARGEST_SHARE = 4
"""Where more than one of so many results is to be judged anew, all are."""
FRAME = 1_250
"""Bytes that a message takes beside its texts, and again what is said of a result."""
LINE = 4_500
"""Bytes that a line takes beside its messages."""
CLEARED = 150
"""Bytes that each result takes that a recorded clearing replaces."""


class Truth(NamedTuple):
    """What a view follows from beside its line, policy and moment."""

    changes: ChangeCounts
    project_root: str | None
    kinds: str
    visible: VisibleSet


class Judged(NamedTuple):
    """What the rules say of a look's results, and what it takes to go on from there.

    ``found`` is what they say at the moment, in the order of the line, with what of it may change;
    ``final`` is what is said in the end; ``files`` are those of the reads that may change, None
    until they are asked for; ``changed`` are the positions of which something else was said before,
    None where nothing was.
    """

    values: Values
    ranked: Ranked
    final: Verdicts
    files: Files | None = None
    changed: frozenset[int] | None = None

    @property
    def found(self) -> Verdicts:
        """What the rules say at the moment."""
        return self.ranked.found


def load_earlier_verdicts(context: ViewContext) -> Verdicts:
    """Return what the rules said of a look at an earlier request, going on from one before it."""
    return _kept_judged(context, "before").final


def load_verdicts(context: ViewContext) -> Verdicts:
    """Return verdicts before it is known which results are too short to be replaced by a line."""
    name = f"ruled from {context.visible.first_kept}, {context.turn_over}"
    return recorded(context, _kept_judged(context, name).found)


def _kept_judged(context: ViewContext, name: str) -> Judged:
    """Return what the rules say, going on from what is kept under a name."""
    kept = get_reader_cache(context.connection)
    if kept is None:
        return judge(context, None)
    key = (*context.line.values(), name, policy_text(context.policy))
    truth = truth_of(context, load_kinds_json(context.connection))
    truth_then, judged_then = kept.get(key) or (None, None)
    found = judge(context, judged_then if truth_then == truth else None)
    kept.put(key, (truth, found), weight_of(truth, found), get_read_mark(context.connection))
    return found


def policy_text(policy: Policy) -> str:
    """Return a policy as text, one for all who keep it: it takes more than a short session does."""
    return intern(policy.model_dump_json())


def truth_of(context: ViewContext, kinds: str) -> Truth:
    """Return what a look's view follows from, with the kinds of tools as text."""
    return Truth(context.changes, context.pointer.project_root, kinds, context.visible)


def weight_of(truth: Truth, judged: Judged) -> int:
    """Return about how many bytes it takes to keep what was judged."""
    visible = truth.visible
    texts = measure_bytes((visible.summaries, visible.ranges))
    return LINE + texts + CLEARED * len(visible.cleared) + FRAME * len(judged.found)


def judge(context: ViewContext, known: Judged | None) -> Judged:
    """Return what the rules say of the results of a look, going on from what is known."""
    values = values_of(context, known.values if known else None)
    grown = _grown(context, values, known) if known else None
    if grown is not None:
        return grown
    ranked = judged(context, values)
    return Judged(values, ranked, settled(context, ranked.found))


def _grown(context: ViewContext, values: Values, known: Judged) -> Judged | None:
    """Return what is known with what is new; None where all have to be judged."""
    policy, before = context.policy, known.values
    if policy.range_aware or policy.cut_arguments or not has_grown(values, before):
        return None
    if policy.file_read and policy.any_tool:  # a read that is cleared tells of all of its file
        return None
    if values["old_before"] < before["old_before"]:
        return None
    new = context.shown(before["last"] + 1, values["last"])
    passed = {*_passed(known, values), *_aged(known.ranked, values)}
    if not new and not passed:
        return known._replace(values=values, changed=frozenset())
    files = paths_of(context, known.ranked.reads) if known.files is None else known.files
    added = (range(run.first, run.last + 1) for run in new)
    looked_at = passed | known.ranked.newest
    # A read that the short form spares is so for an older one of its file.
    named = looked_at if policy.tool_output else passed
    asked = paths_of(context, chain(named, *added))
    again = looked_at | _reads_of(asked, files)
    if len(again) > len(known.found) // LARGEST_SHARE + 100:
        return None
    places = [Segment(known.found[seq].branch, seq, seq) for seq in sorted(again)]
    fresh = ranked_in(context, values, chain(places, new))
    return _with(context, values, known, again, files | asked, fresh)


def _reads_of(asked: Files, files: Files) -> set[int]:
    """Return the reads of the files that are asked about, and of all the files of these reads."""
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


def _with(
    context: ViewContext,
    values: Values,
    known: Judged,
    again: set[int],
    files: Files,
    fresh: Ranked,
) -> Judged:
    """Return what is known with what is said anew of some results."""
    final = settled(context, fresh.found)
    reads = (known.ranked.reads - again) | fresh.reads
    young = frozenset(each for each in known.ranked.young if each[1] not in again)
    return Judged(
        values,
        Ranked(known.found | fresh.found, fresh.newest, reads, young | fresh.young),
        known.final | final,
        {seq: files[seq] for seq in reads},
        frozenset(seq for seq in final if known.final.get(seq) != final[seq]),
    )


def _passed(known: Judged, values: Values) -> Iterator[int]:
    """Yield the results that a border has passed."""
    places = list(known.found)
    for name in PLACES:
        ends = sorted((known.values[name], values[name]))
        first, last = (bisect_left(places, end) for end in ends)
        yield from places[first:last]


def _aged(known: Ranked, values: Values) -> Iterator[int]:
    """Yield the results that have grown old."""
    return (seq for at, seq in known.young if at < values["old_before"])
