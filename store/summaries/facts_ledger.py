"""The facts ledger: files touched, commands run and errors met in a hidden range.

Its facts come from the rows, whatever a model wrote about the range. Measured elsewhere, summaries
by models keep one path in ten and one command in five hundred.
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


HEADINGS: Mapping[str, str] = {
    "file": "Files touched:",
    "command": "Commands run:",
    "error": "Errors met:",
}
"""The kinds of facts, in the order of the ledger; a fact of another kind is passed over."""

_Entries = dict[HiddenFact, str]
"""Facts, newest first, with their text in the ledger."""


def ledger(facts: Sequence[HiddenFact], budget: int) -> str:
    """Return facts, given in order of time, grouped by kind within a budget of code points.

    A fact met again counts once, as it was last. Where the budget runs out, each kind in turn keeps
    its newest, and what is left out is counted. A path is whole or left out; other texts take at
    most a quarter of the budget. Where there is nothing to tell, or no room for it, "".
    """
    entries = {fact: _entry(fact, budget // 4) for fact in _newest_first(facts)}
    whole = _laid_out(entries)
    if len(whole) <= budget:
        return whole
    kept = _in_turn(entries, budget - len(_left_out(entries)))
    if not kept:
        return ""
    rest = entries.keys() - kept.keys()
    return f"{_laid_out(kept)}\n{_left_out(rest)}"


def _newest_first(facts: Sequence[HiddenFact]) -> Iterable[HiddenFact]:
    distinct: dict[tuple[str, str], HiddenFact] = {}
    for fact in reversed(facts):
        if fact.kind in HEADINGS and fact.text.strip():
            distinct.setdefault((fact.kind, fact.text), fact)
    return distinct.values()


def _entry(fact: HiddenFact, limit: int) -> str:
    text = scrubbed(fact.text).strip()
    if fact.kind != "file":
        text = shortened(text, limit)
    entry = "- " + text.replace("\n", "\n  ")
    if fact.detail:
        entry += f" ({one_line(scrubbed(fact.detail), 80)})"
    return entry


def _laid_out(entries: _Entries) -> str:
    """Return entries under the headings of their kinds, newest last."""
    groups: dict[str, list[str]] = {kind: [] for kind in HEADINGS}
    for fact, entry in entries.items():
        groups[fact.kind].append(entry)
    rows: list[str] = []
    for kind, group in groups.items():
        if group:
            rows += [HEADINGS[kind], *reversed(group)]
    return "\n".join(rows)


def _in_turn(entries: _Entries, room: int) -> _Entries:
    """Choose the newest of each kind, then the second newest of each, while there is room."""
    headings = {kind: len(heading) + 1 for kind, heading in HEADINGS.items()}
    chosen = set()
    for fact in _by_rank(entries):
        cost = len(entries[fact]) + 1 + headings[fact.kind]
        if cost <= room:
            room -= cost
            headings[fact.kind] = 0
            chosen.add(fact)
    return {fact: entry for fact, entry in entries.items() if fact in chosen}


def _by_rank(facts: Iterable[HiddenFact]) -> list[HiddenFact]:
    """Return the first of each kind, then the second of each, and so on."""
    counts: Counter[str] = Counter()
    ranks: dict[HiddenFact, int] = {}
    for fact in facts:
        counts[fact.kind] += 1
        ranks[fact] = counts[fact.kind]
    return sorted(ranks, key=ranks.__getitem__)


def _left_out(facts: Iterable[HiddenFact]) -> str:
    counts = Counter(fact.kind for fact in facts)
    said = [_counted(counts[kind], kind) for kind in HEADINGS if counts[kind]]
    return f"(left out for want of room: {', '.join(said)})"


def _counted(count: int, kind: str) -> str:
    return f"{count} {kind}" if count == 1 else f"{count} {kind}s"
