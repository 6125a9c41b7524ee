"""Judging what is new: the verdicts of a line that has grown, from those that are known.

**Why it is enough to look at a few.** A verdict follows from three things: what is stored of the
result, where it stands among others (one of the newest or not, enough newer reads of its files or
not), and on which side of each border it lies. The first never changes. `Ranks` says of whom the
second did; a border that moved passes those between its old place and the new. All others are as
they were. Those few are judged by the same conditions as ever (query ``rejudged``), given their
ranks. Where a policy has more to say than that, or the line did not grow, all are judged.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from ..history import NEVER, Segment
from .borders import MOVING, PLACES, Values, values_of
from .judging import Verdicts, judged, settled, verdict_of
from .look import Look
from .ranks import Ranked, Ranks
from .rules import RANKED, REJUDGED

LARGEST_SHARE = 4
"""Where more than one of so many results is to be judged anew, all are."""


class Judged(NamedTuple):
    """What the rules say of a look's results, and what it takes to go on from there.

    ``found`` is what they say at the moment, in the order of the line, ``final`` what is said in
    the end; ``changed`` are the positions of which something else was said before, None where
    nothing was.
    """

    values: Values
    found: Verdicts
    final: Verdicts
    ranks: Ranks | None = None
    changed: frozenset[int] | None = None


def judge(look: Look, known: Judged | None) -> Judged:
    """Return what the rules say of the results of a look, going on from what is known."""
    values = values_of(look)
    grown = _grown(look, values, known) if known else None
    if grown is not None:
        return grown
    found = judged(look, values)
    return Judged(values, found, settled(look, found))


def _grown(look: Look, values: Values, known: Judged) -> Judged | None:
    """Return what is known with what is new; None where all have to be judged."""
    if not _goes_on(look, values, known.values):
        return None
    ranks = known.ranks.copy() if known.ranks else _ranks_of(look, known.values)
    ranks.meet(_met(look, values, known.values["last"] + 1))
    touched = ranks.rank(_ranked_before(values))
    moved = _passed(known, values)
    aged = ranks.aged(*_ends("old_before", known.values, values))
    new = range(known.values["last"] + 1, values["last"] + 1)
    places = sorted({*touched, *moved, *aged, *new})
    if len(places) - len(new) > len(known.found) // LARGEST_SHARE + 100:
        return None
    return _with(look, values, known, ranks, places)


def _goes_on(look: Look, values: Values, before: Values) -> bool:
    """Tell whether a line was judged alike before, and has only grown since."""
    if look.policy.range_aware or look.policy.cut_arguments:
        return False
    if values["last"] < before["last"] or _ranked_before(values) < _ranked_before(before):
        return False
    fixed = values.keys() - MOVING
    return all(before[name] == values[name] for name in fixed)


def _ranked_before(values: Values) -> int:
    """Return the position before which results take part in the ranking."""
    return min(int(values["judged_before"]), int(values["last"]) + 1)


def _ranks_of(look: Look, values: Values) -> Ranks:
    """Return the ranks of a line as it was judged."""
    ranks = Ranks(values)
    ranks.meet(_met(look, values, values["start"]))
    ranks.rank(_ranked_before(values))
    return ranks


def _met(look: Look, values: Values, first: int) -> Iterator[Ranked]:
    """Yield the results of a line from a position on, as far as ranks ask."""
    for run in look.runs(first, values["last"]):
        asked = {**values, **_within(run), "judged_before": NEVER}
        yield from RANKED.rows(look.connection, **asked)


def _within(run: Segment) -> Values:
    """Return the values by which the queries of a part of a line name it."""
    return {"branch": run.branch, "begin": run.first, "last": run.last}


def _passed(known: Judged, values: Values) -> Iterator[int]:
    """Return the results that a border has passed."""
    places = list(known.found)
    for name in PLACES:
        ends = _ends(name, known.values, values)
        first, last = (bisect_left(places, end) for end in ends)
        yield from places[first:last]


def _ends(name: str, before: Values, now: Values) -> list[int]:
    """Return the two places of a border, the lower one first."""
    return sorted((before[name], now[name]))


def _with(look: Look, values: Values, known: Judged, ranks: Ranks, places: list[int]) -> Judged:
    """Return what is known, with some results judged anew."""
    fresh = _rejudged(look, values, ranks, places) if places else {}
    final = settled(look, fresh)
    changed = {seq for seq in final if known.final.get(seq) != final[seq]}
    return Judged(
        values,
        known.found | fresh,
        known.final | final,
        ranks,
        frozenset(changed),
    )


def _rejudged(look: Look, values: Values, ranks: Ranks, places: list[int]) -> Verdicts:
    """Return what the rules say of results of the line, in order; of hidden ones nothing."""
    found: Verdicts = {}
    wanted = json.dumps(ranks.of(places))
    for run in look.runs(places[0], places[-1]):
        asked = {**values, **_within(run), "wanted": wanted}
        rows = REJUDGED.rows(look.connection, **asked)
        found |= {row[0]: verdict_of(row) for row in rows}
    return look.visible.of_shown(found)
