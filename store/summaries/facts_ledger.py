"""The facts ledger: files touched, commands run and errors met in a hidden range.

Its facts come from the rows, whatever a model wrote about the range. Measured elsewhere, summaries
by models keep one path in ten and one command in five hundred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..phrases import PHRASES, Language, render_counted_phrase, render_phrase
from .message_texts import flatten_to_line, scrub_text, shorten_text


class HiddenFact(NamedTuple):
    """A ``file`` touched, a ``command`` run or an ``error`` met in a hidden range.

    ``detail`` is shown in brackets after the text, such as ``exit 1``, of a file the kind of the
    tool; ``came_to`` is the outcome of a command.
    """

    kind: str
    text: str
    detail: str | None = None
    came_to: str = ""


FACT_ORDER = ("file", "command", "error")
"""The kinds of facts, in the order of the ledger; a fact of another kind is ignored."""

_Entries = dict[HiddenFact, str]
"""Facts, newest first, with their text in the ledger."""


def build_facts_ledger(facts: Sequence[HiddenFact], budget: int, language: Language = "en") -> str:
    """Return facts, in the order of time, grouped by kind within a budget of code points.

    A repeated fact counts once, at its last place. Where the budget runs out, each kind in turn
    keeps its newest, and the others are counted. A path is whole or left out; other texts take at
    most a quarter of the budget. Where there are no facts, or no room for any, "".
    """
    newest: dict[tuple[str, str], HiddenFact] = {}
    for fact in reversed(facts):
        if fact.kind in FACT_ORDER and fact.text.strip():
            newest.setdefault((fact.kind, fact.text), fact)
    entries = {fact: _render_entry(fact, budget // 4, language) for fact in newest.values()}
    whole = _render_groups(entries, language)
    if len(whole) <= budget:
        return whole
    kept = _choose_in_turn(entries, budget, language)
    if not kept:
        return ""
    rest = _count_facts(entries.keys() - kept.keys(), language)
    return f"{_render_groups(kept, language)}\n{rest}"


def _render_entry(fact: HiddenFact, limit: int, language: Language) -> str:
    text = scrub_text(fact.text).strip()
    if fact.kind != "file":
        text = shorten_text(text, limit)
    indented = text.replace("\n", "\n  ")
    outcome = render_phrase("came_to", language, outcome=fact.came_to) if fact.came_to else ""
    if not fact.detail:
        return f"- {indented}{outcome}"
    code = f"kind_{fact.detail}"
    if fact.kind == "file" and code in PHRASES:
        return f"- {indented}{outcome} ({render_phrase(code, language)})"
    return f"- {indented}{outcome} ({flatten_to_line(scrub_text(fact.detail), 80)})"


def _render_groups(entries: _Entries, language: Language) -> str:
    """Return entries under the headings of their kinds, newest last."""
    lines: list[str] = []
    for kind in FACT_ORDER:
        group = [entry for fact, entry in entries.items() if fact.kind == kind]
        if group:
            lines += [render_phrase(f"facts_{kind}", language), *reversed(group)]
    return "\n".join(lines)


def _choose_in_turn(entries: _Entries, budget: int, language: Language) -> _Entries:
    """Choose the newest of each kind, then the second newest of each, while there is room.

    Room is kept for the line that counts the others.
    """
    counts: Counter[str] = Counter()
    ranks: dict[HiddenFact, int] = {}
    for fact in entries:
        counts[fact.kind] += 1
        ranks[fact] = counts[fact.kind]
    room = budget - len(_count_facts(entries, language))
    headings = {kind: len(render_phrase(f"facts_{kind}", language)) + 1 for kind in FACT_ORDER}
    chosen = set()
    for fact in sorted(ranks, key=ranks.__getitem__):
        cost = len(entries[fact]) + 1 + headings[fact.kind]
        if cost <= room:
            room -= cost
            headings[fact.kind] = 0
            chosen.add(fact)
    return {fact: entry for fact, entry in entries.items() if fact in chosen}


def _count_facts(facts: Iterable[HiddenFact], language: Language) -> str:
    """Return the line that counts the facts that are left out."""
    counts = Counter(fact.kind for fact in facts)
    words = [
        render_counted_phrase(kind, counts[kind], language) for kind in FACT_ORDER if counts[kind]
    ]
    return render_phrase(
        "facts_left_out", language, counts=render_phrase("comma", language).join(words)
    )
