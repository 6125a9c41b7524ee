"""The facts ledger: files touched, commands run and errors met in a hidden range.

Its facts come from the rows, whatever a model wrote about the range. Measured elsewhere, summaries
by models keep one path in ten and one command in five hundred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..ready import PHRASES, Language, counted_phrase, phrase
from .texts import flatten_to_line, scrub_text, shorten


class HiddenFact(NamedTuple):
    """Something done in a hidden range: a ``file`` touched, a ``command`` run, an ``error`` met.

    ``detail`` stands in brackets behind the text, such as ``exit 1``, of a file the kind of the
    tool; ``came_to`` is the last that a command said.
    """

    kind: str
    text: str
    detail: str | None = None
    came_to: str = ""


KINDS = ("file", "command", "error")
"""The kinds of facts, in the order of the ledger; a fact of another kind is passed over."""

_Entries = dict[HiddenFact, str]
"""Facts, newest first, with their text in the ledger."""


def build_facts_ledger(facts: Sequence[HiddenFact], budget: int, language: Language = "en") -> str:
    """Return facts, given in order of time, grouped by kind within a budget of code points.

    A fact met again counts once, as it was last. Where the budget runs out, each kind in turn keeps
    its newest, and what is left out is counted. A path is whole or left out; other texts take at
    most a quarter of the budget. Where there is nothing to tell, or no room for it, "".
    """
    newest_first = _newest_first(facts)
    entries = {fact: _entry(fact, budget // 4, language) for fact in newest_first}
    whole = _laid_out(entries, language)
    if len(whole) <= budget:
        return whole
    return _laid_out_in_part(entries, budget, language)


def _newest_first(facts: Sequence[HiddenFact]) -> Iterable[HiddenFact]:
    distinct: dict[tuple[str, str], HiddenFact] = {}
    for fact in reversed(facts):
        if fact.kind in KINDS and fact.text.strip():
            distinct.setdefault((fact.kind, fact.text), fact)
    return distinct.values()


def _entry(fact: HiddenFact, limit: int, language: Language) -> str:
    indented = _text(fact, limit).replace("\n", "\n  ")
    came_to = phrase("came_to", language, outcome=fact.came_to) if fact.came_to else ""
    return f"- {indented}{came_to}{_detail(fact, language)}"


def _text(fact: HiddenFact, limit: int) -> str:
    text = scrub_text(fact.text).strip()
    if fact.kind == "file":
        return text
    return shorten(text, limit)


def _detail(fact: HiddenFact, language: Language) -> str:
    if not fact.detail:
        return ""
    code = f"kind_{fact.detail}"
    known = fact.kind == "file" and code in PHRASES
    detail = phrase(code, language) if known else flatten_to_line(scrub_text(fact.detail), 80)
    return f" ({detail})"


def _heading(kind: str, language: Language) -> str:
    return phrase(f"facts_{kind}", language)


def _laid_out(entries: _Entries, language: Language) -> str:
    """Return entries under the headings of their kinds, newest last."""
    return "\n".join(_rows(entries, language))


def _rows(entries: _Entries, language: Language) -> Iterator[str]:
    for kind in KINDS:
        group = _of_kind(kind, entries)
        if group:
            yield _heading(kind, language)
            yield from reversed(group)


def _of_kind(kind: str, entries: _Entries) -> list[str]:
    return [entry for fact, entry in entries.items() if fact.kind == kind]


def _laid_out_in_part(entries: _Entries, budget: int, language: Language) -> str:
    """Return the entries that are kept, and how many of each kind are left out; "" for none."""
    kept = _in_turn(entries, budget, language)
    if not kept:
        return ""
    rest = entries.keys() - kept.keys()
    return f"{_laid_out(kept, language)}\n{_left_out(rest, language)}"


def _in_turn(entries: _Entries, budget: int, language: Language) -> _Entries:
    """Choose the newest of each kind, then the second newest of each, while there is room.

    Room is kept for the line that counts what is left out.
    """
    room = budget - len(_left_out(entries, language))
    headings = {kind: len(_heading(kind, language)) + 1 for kind in KINDS}
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


def _left_out(facts: Iterable[HiddenFact], language: Language) -> str:
    counts = Counter(fact.kind for fact in facts)
    said = [counted_phrase(kind, counts[kind], language) for kind in KINDS if counts[kind]]
    return phrase("facts_left_out", language, counts=phrase("comma", language).join(said))
