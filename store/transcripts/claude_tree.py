"""Which lines of a Claude Code file belong together, and in what order: pure functions over indices.

The order of the file is the order of the conversation, nearly always; the tree of ``parentUuid`` says only where it is
not. Walking the tree up from the last line would drop turns: parallel calls branch it (4,012 of 36,461 calls seen).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from .claude_lines import Line


class Run(NamedTuple):
    """What a line belongs to: the main line ("main", ""), or a run of its own.

    ``kind`` "branch": an abandoned prompt, ``name`` is its index; "agent" and "sidechain": a subagent, by its id or by
    the index of its first line.
    """

    kind: str
    name: str


MAIN = Run("main", "")


def parents_of(lines: Sequence[Line], anchors: Mapping[str, int | None]) -> list[int | None]:
    """Return for each line the index of the nearest line of the conversation above it, None where none is known."""
    found = [anchors.get(line.parent) if line.parent else None for line in lines]
    return [None if parent == index else parent for index, parent in enumerate(found)]


def runs_of(lines: Sequence[Line], parents: Sequence[int | None]) -> list[Run]:
    """Return for each line the run it belongs to."""
    above = _above(lines, parents)
    left = abandoned(lines, parents, above)
    needed = [() if parent is None else (parent,) for parent in above]
    runs: dict[int | None, Run] = {}
    for index in in_order(len(lines), needed.__getitem__):
        inherited = runs.get(above[index], MAIN)
        if lines[index].sidechain:
            runs[index] = _sidechain(index, lines[index], inherited)
        elif index in left:
            runs[index] = Run("branch", str(index))
        else:
            runs[index] = inherited if inherited.kind == "branch" else MAIN
    return [runs[index] for index in range(len(lines))]


def abandoned(lines: Sequence[Line], parents: Sequence[int | None], above: Sequence[int | None]) -> set[int]:
    """Return the prompts that were taken back: answered, left, and another one written in their place.

    Two prompts below the same line are not enough: a queued prompt carries an old parent while the conversation goes
    on. So a prompt counts as taken back only if all that followed from it was written before the next one.
    """
    last, answered = _extent(lines, above)
    siblings: dict[int, list[int]] = {}
    for index, line in enumerate(lines):
        parent = parents[index]
        if parent is not None and parent < index and is_prompt(line):
            siblings.setdefault(parent, []).append(index)
    rivals = (pair for group in siblings.values() for pair in pairwise(group))
    return {old for old, new in rivals if answered[old] and last[old] < new}


def in_order(count: int, needs: Callable[[int], Iterable[int]]) -> list[int]:
    """Return 0 to count - 1 in order, but each after what it needs; of a circle, the first comes first."""
    order: list[int] = []
    state = [""] * count
    for start in range(count):
        path = [start]
        while path:
            index = path[-1]
            waiting = [] if state[index] else [need for need in needs(index) if not state[need] and need != index]
            state[index] = state[index] or "begun"
            path.extend(waiting)
            if not waiting:
                path.pop()
                if state[index] == "begun":
                    state[index] = "done"
                    order.append(index)
    return order


def _above(lines: Sequence[Line], parents: Sequence[int | None]) -> list[int | None]:
    """Return for each line what it follows: its parent, or the main line before it where the parent is not known."""
    above: list[int | None] = []
    previous: int | None = None
    for index, line in enumerate(lines):
        parent = parents[index]
        above.append(previous if parent is None and not line.sidechain else parent)
        previous = previous if line.sidechain else index
    return above


def _extent(lines: Sequence[Line], above: Sequence[int | None]) -> tuple[list[int], list[bool]]:
    """Return for each line the last line that follows from it, and whether one of them is an answer."""
    last = list(range(len(lines)))
    answered = [line.role == "assistant" for line in lines]
    for index in reversed(range(len(lines))):
        parent = above[index]
        if parent is not None and parent < index:
            last[parent] = max(last[parent], last[index])
            answered[parent] = answered[parent] or answered[index]
    return last, answered


def is_prompt(line: Line) -> bool:
    """Tell whether a line is on the user's side of the main line, and neither a tool's result nor a summary."""
    summary = line.envelope.get("isCompactSummary") is True
    return line.role == "user" and not line.sidechain and not summary and not line.holds("tool_result")


def _sidechain(index: int, line: Line, inherited: Run) -> Run:
    if line.agent:
        return Run("agent", line.agent)
    return inherited if inherited.kind == "sidechain" else Run("sidechain", str(index))
