"""The facts ledger: what was touched, run and met in a hidden range, whatever a model wrote about it.

Measured elsewhere, summaries by models keep one path in ten and one command in five hundred; these come from the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .texts import one_line, scrubbed, shortened


class HiddenFact(NamedTuple):
    """Something done in a hidden range: a ``file`` touched, a ``command`` run, an ``error`` met.

    ``detail`` stands in brackets behind the text, such as ``exit 1``.
    """

    kind: str
    text: str
    detail: str | None = None


HEADINGS: Mapping[str, str] = {"file": "Files touched:", "command": "Commands run:", "error": "Errors met:"}
"""The kinds of facts, in the order of the ledger; a fact of another kind is passed over."""

_Lines = dict[HiddenFact, str]


def ledger(facts: Sequence[HiddenFact], budget: int) -> str:
    """Return facts, given in order of time, grouped by kind within a budget of code points; "" for nothing.

    A fact met again counts once, as it was last. Where the budget runs out, each kind in turn keeps its newest, and
    what is left out is counted. A path is whole or left out; other texts take at most a quarter of the budget.
    """
    lines = {fact: _line(fact, budget // 4) for fact in _newest_first(facts)}
    whole = _laid_out(lines)
    if len(whole) <= budget:
        return whole
    kept = _in_turn(lines, budget - len(_left_out(lines)))
    return "\n".join([_laid_out(kept), _left_out(lines.keys() - kept.keys())]) if kept else ""


def _newest_first(facts: Sequence[HiddenFact]) -> Iterable[HiddenFact]:
    distinct: dict[tuple[str, str], HiddenFact] = {}
    for fact in reversed(facts):
        if fact.kind in HEADINGS and fact.text.strip():
            distinct.setdefault((fact.kind, fact.text), fact)
    return distinct.values()


def _line(fact: HiddenFact, limit: int) -> str:
    text = scrubbed(fact.text).strip()
    text = text if fact.kind == "file" else shortened(text, limit)
    detail = f" ({one_line(scrubbed(fact.detail), 80)})" if fact.detail else ""
    return "- " + text.replace("\n", "\n  ") + detail


def _laid_out(lines: _Lines) -> str:
    """Return lines, given newest first, under the headings of their kinds, newest last."""
    groups = {kind: [line for fact, line in lines.items() if fact.kind == kind] for kind in HEADINGS}
    return "\n".join("\n".join([HEADINGS[kind], *reversed(group)]) for kind, group in groups.items() if group)


def _in_turn(lines: _Lines, room: int) -> _Lines:
    """Choose the newest of each kind, then the second newest of each, and so on, while there is room."""
    ranks: Counter[str] = Counter()
    turns: dict[HiddenFact, int] = {}
    for fact in lines:
        turns[fact] = ranks[fact.kind] = ranks[fact.kind] + 1
    headings = {kind: len(heading) + 1 for kind, heading in HEADINGS.items()}
    chosen = set()
    for fact in sorted(lines, key=turns.__getitem__):
        cost = len(lines[fact]) + 1 + headings[fact.kind]
        if cost <= room:
            room -= cost
            headings[fact.kind] = 0
            chosen.add(fact)
    return {fact: line for fact, line in lines.items() if fact in chosen}


def _left_out(facts: Iterable[HiddenFact]) -> str:
    counts = Counter(fact.kind for fact in facts)
    said = ", ".join(f"{counts[kind]} {kind}{'s' * (counts[kind] > 1)}" for kind in HEADINGS if counts[kind])
    return f"(left out for want of room: {said})"
