"""The facts ledger: files touched, commands run and errors met in a hidden range.

Its facts come from the rows, whatever a model wrote about the range. Measured elsewhere, summaries
by models keep one path in ten and one command in five hundred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .texts import one_line, scrubbed, shortened


class HiddenFact(NamedTuple):
    """Something done in a hidden range: a ``file`` touched, a ``command`` run, an ``error`` met.

    ``detail`` stands in brackets behind the text, such as ``exit 1``; ``came_to`` is the last that
    a command said.
    """

    kind: str
    text: str
    detail: str | None = None
    came_to: str = ""


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
    entries = _entries(facts, budget // 4)
    whole = _laid_out(entries)
    if len(whole) <= budget:
        return whole
    return _laid_out_in_part(entries, budget)


def _entries(facts: Sequence[HiddenFact], limit: int) -> _Entries:
    return {fact: _entry(fact, limit) for fact in _newest_first(facts)}


def _newest_first(facts: Sequence[HiddenFact]) -> Iterable[HiddenFact]:
    distinct: dict[tuple[str, str], HiddenFact] = {}
    for fact in reversed(facts):
        if fact.kind in HEADINGS and fact.text.strip():
            distinct.setdefault((fact.kind, fact.text), fact)
    return distinct.values()


def _entry(fact: HiddenFact, limit: int) -> str:
    indented = _text(fact, limit).replace("\n", "\n  ")
    came_to = f" → {fact.came_to}" if fact.came_to else ""
    return f"- {indented}{came_to}{_detail(fact)}"


def _text(fact: HiddenFact, limit: int) -> str:
    text = scrubbed(fact.text).strip()
    if fact.kind == "file":
        return text
    return shortened(text, limit)


def _detail(fact: HiddenFact) -> str:
    if not fact.detail:
        return ""
    return f" ({one_line(scrubbed(fact.detail), 80)})"


def _laid_out(entries: _Entries) -> str:
    """Return entries under the headings of their kinds, newest last."""
    return "\n".join(_rows(entries))


def _rows(entries: _Entries) -> Iterator[str]:
    for kind, heading in HEADINGS.items():
        group = _of_kind(kind, entries)
        if group:
            yield heading
            yield from reversed(group)


def _of_kind(kind: str, entries: _Entries) -> list[str]:
    return [entry for fact, entry in entries.items() if fact.kind == kind]


def _laid_out_in_part(entries: _Entries, budget: int) -> str:
    """Return the entries that are kept, and how many of each kind are left out; "" for none."""
    kept = _in_turn(entries, budget)
    if not kept:
        return ""
    rest = entries.keys() - kept.keys()
    return f"{_laid_out(kept)}\n{_left_out(rest)}"


def _in_turn(entries: _Entries, budget: int) -> _Entries:
    """Choose the newest of each kind, then the second newest of each, while there is room.

    Room is kept for the line that counts what is left out.
    """
    room = budget - len(_left_out(entries))
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
