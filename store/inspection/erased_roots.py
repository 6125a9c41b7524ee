"""The project root of a session that was erased, as the stored paths of its branch show it.

Paths are kept relative to the root of the session in which they were read. A branch outlives its
session where forks go on from it, and the root goes with the session. Forks mostly have the same
one; a fork that was handed over to another owner may have another. So where the paths of such a
branch do not follow from its calls by the root of a fork, the roots are tried by which they could:
an absolute path of a call, less the relative one that is stored beside its result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ..database import Row
from ..history import Line, ResultRows, project_root

MOST_ROOTS = 8
"""Roots that are tried for a run of messages; the ones that most results speak for."""


def follow_stored_root(line: Line, derived: ResultRows, stored: list[Row]) -> ResultRows:
    """Return what follows from a run by the root that explains its stored paths best."""
    there = {*stored}
    if {*derived.paths} == there:
        return derived
    absolute = _by_root(line, None, derived)
    likely = Counter(_possible_roots(absolute.paths, stored)).most_common(MOST_ROOTS)
    found = [derived, absolute, *(_by_root(line, root, derived) for root, _ in likely)]
    return min(found, key=lambda rows: len({*rows.paths} ^ there))


def _by_root(line: Line, root: str | None, derived: ResultRows) -> ResultRows:
    """Return derived rows with their paths, and whether these are all, by a root."""
    rooted = Line(line.connection, line.pointer._replace(project_root=root))
    rows = ResultRows([], [])
    for row in derived.results:
        *place, call_seq, call_position = row[:5]
        if call_seq is None:
            rows.results.append(row)
            continue
        answer = project_root.AnsweredCall(row[2], call_seq, call_position, row[-1])
        paths, complete = project_root.find_result_paths(rooted, answer)
        rows.results.append((*row[:-1], int(complete)))
        rows.paths.extend((*place, *each) for each in paths)
    return rows


def _possible_roots(absolute: Iterable[Row], stored: Iterable[Row]) -> Iterator[str]:
    """Yield the roots by which an absolute path may have become one that is stored."""
    there: dict[Row, set[str]] = {}
    for *place, path, _, _, _, _ in stored:
        there.setdefault((*place,), set()).add(path)
    for *place, path, _, _, _, _ in absolute:
        known = there.get((*place,), set())
        if "." in known:
            yield path
        for slash in re.finditer("/", path):
            below = path[slash.end() :]
            if below in known or f"./{below}" in known:
                yield path[: slash.end()]
