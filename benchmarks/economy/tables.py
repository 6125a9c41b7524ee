"""The tables: a line for each policy, against the one that sends everything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from .measured import FIRST, SMALL, Measured, Outcome
from .policies import RAW
from .pricing import PROVIDERS
from .probes import QUESTIONS
from .replay import COLD, COMPACTED, EVERY
from .reuse import NEWEST, RECALLED, SENT, TRUNCATED, Tally, summed
from .strings import GROUPS
from .summaries import ANSWER, LONG, OUTCOME, SHORT, USER, Told, together

DEARER = 1.02
"""The ratio from which on a session counts as dearer than sending everything."""
UNCHANGED = 0.9995
"""The ratio from which on a session counts as one that saves nothing."""
IN_SIGHT = "needed again and in sight"
MOMENTS = {
    EVERY: "at every request measured",
    COLD: "where the cache was cold",
    COMPACTED: "right after compactions",
}
LOOKED_AT = {SENT: "", RECALLED: "recalled", NEWEST: "newest", TRUNCATED: "cut"}
FACTS = [(fact, length) for length in (SHORT, LONG) for fact in (USER, ANSWER, OUTCOME)]
KINDS = [kind for group in GROUPS.values() for kind in group]

Found = dict[str, list[Measured]]
"""What all sessions came to, by the names of the policies; the one of all messages among them."""
Row = list[str]


class Table(NamedTuple):
    """A table under a title; the first row is its head."""

    title: str
    rows: list[Row]

    def lines(self) -> Iterator[str]:
        """Yield it as it is printed."""
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        yield f"\n{self.title}"
        for row in self.rows:
            yield "  ".join(map(str.ljust, row, widths)).rstrip()


def by_policy(done: Iterable[Measured]) -> Found:
    """Return what all sessions came to under each policy."""
    found: Found = defaultdict(list)
    for each in done:
        found[each.policy].append(each)
    return found


def bills(found: Found) -> Iterator[Table]:
    """Yield the bills of the first provider."""
    counts = [f"> {DEARER}", "compactions", "clearings", "largest"]
    recalls = ["with recalls", "worst with", "misses in 100", "words alone"]
    head = [
        "policy",
        "bill",
        "sent",
        "median",
        "worst",
        "in session",
        *recalls,
        "unchanged",
        *counts,
    ]
    rows = [[policy, *_bill(found, policy)] for policy in found]
    yield Table(f"bill ({FIRST}, input) and tokens, of those of all messages", [head, *rows])


def providers(found: Found) -> Iterator[Table]:
    """Yield the bills of all providers; in brackets the worst session where it is dearer."""
    rows: list[Row] = []
    for policy in found:
        ratios = (_ratios(found, policy, provider) for provider in PROVIDERS)
        rows.append([policy, *map(_with_worst, ratios)])
    yield Table("bill by provider (worst session)", [["policy", *PROVIDERS], *rows])


def reuse(found: Found) -> Iterator[Table]:
    """Yield what is in sight of what is needed, at each kind of moment."""
    for moment, title in MOMENTS.items():
        tallies = {
            policy: [each.reuse[moment] for each in _usual(of) if moment in each.reuse]
            for policy, of in _others(found)
        }
        yield _reuse(f"{IN_SIGHT}, {title}", tallies)


def window(found: Found) -> Iterator[Table]:
    """Yield what comes of the small window."""
    of_window = {policy: _small(of) for policy, of in found.items()}
    head = ["policy", "bill", "compactions", "requests", "over", "avoidable", "largest"]
    rows = [[policy, *_window(of, of_window[RAW])] for policy, of in of_window.items()]
    yield Table(f"a window of {SMALL:,} tokens", [head, *rows])
    after = {
        policy: [each.reuse[COMPACTED] for each in of if COMPACTED in each.reuse]
        for policy, of in of_window.items()
        if policy != RAW
    }
    yield _reuse(f"{IN_SIGHT}, {MOMENTS[COMPACTED]} in that window", after)


def summaries(found: Found) -> Iterator[Table]:
    """Yield what is told after compactions at the beginnings of turns."""
    told = {policy: together(_told(of)) for policy, of in _others(found)}
    head = ["policy", "applied", "hidden", "view", *map(" ".join, FACTS)]
    rows = [[policy, *_sizes(each), *_facts(each)] for policy, each in told.items()]
    yield Table("compacted at the beginning of a turn: told of what is hidden", [head, *rows])
    head = ["policy", "summary", *QUESTIONS, "names in no hidden message", "price", "of the bill"]
    rows = [[policy, *_probes(each)] for policy, each in told.items()]
    yield Table("answered by the view; names of summaries; tokens of plain input", [head, *rows])
    after = {policy: each.reuse for policy, each in told.items()}
    yield _reuse(
        f"{IN_SIGHT}, of what only hidden messages told",
        {name: [each] for name, each in after.items()},
    )
    kinds = [[policy, *_kinds(each)] for policy, each in after.items()]
    yield Table("the same by kinds", [["policy", *KINDS], *kinds])


TABLES: dict[str, Callable[[Found], Iterator[Table]]] = {
    "bill": bills,
    "providers": providers,
    "reuse": reuse,
    "window": window,
    "summaries": summaries,
}


class _Ratios(NamedTuple):
    """Bills as shares of those of all messages: of all sessions together, and of each."""

    total: float
    single: dict[str, float]

    @property
    def worst(self) -> str:
        """The session that became dearest."""
        return max(self.single, key=lambda name: self.single[name])


def _ratios(found: Found, policy: str, provider: str) -> _Ratios:
    ours, raw = (_bills(found[name], provider) for name in (policy, RAW))
    single = {name: ours[name] / raw[name] for name in raw}
    return _Ratios(sum(ours.values()) / sum(raw.values()), single)


def _bills(of: Sequence[Measured], provider: str) -> dict[str, float]:
    return {each.session: each.usual.bills[provider] for each in of if each.usual}


def _bill(found: Found, policy: str) -> Row:
    ratios = _ratios(found, policy, FIRST)
    of, raw = (_usual(found[name]) for name in (policy, RAW))
    sent = sum(each.sent for each in of) / sum(each.sent for each in raw)
    singles = ratios.single.values()
    shares = ratios.total, sent, median(singles), ratios.single[ratios.worst]
    dearer = sum(ratio > DEARER for ratio in singles)
    counts = map(str, (dearer, _done(of, "summary"), _done(of, "clear")))
    paid = {each.session: each.usual.recalled for each in found[policy] if each.usual}
    plain = _bills(found[RAW], FIRST)
    recalled = sum(paid.values()) / sum(plain.values())
    worst = max(paid[name] / plain[name] for name in plain)
    requests = sum(each.requests for each in of)
    missed = sum(each.misses for each in of), sum(each.word_misses for each in of)
    misses = [f"{100 * each / requests:.1f}" for each in missed]
    recalls = [_share(recalled), _share(worst), *misses]
    unchanged = str(sum(ratio >= UNCHANGED for ratio in singles))
    return [*map(_share, shares), ratios.worst, *recalls, unchanged, *counts, _largest(of)]


def _with_worst(ratios: _Ratios) -> str:
    worst = ratios.single[ratios.worst]
    return f"{ratios.total:.3f} ({worst:.2f})" if worst > DEARER else f"{ratios.total:.3f}"


def _window(of: Sequence[Outcome], raw: Sequence[Outcome]) -> Row:
    bill = sum(each.bills[FIRST] for each in of) / sum(each.bills[FIRST] for each in raw)
    requests = sum(each.requests for each in of)
    over = sum(each.over for each in of)
    avoidable = sum(each.avoidable for each in of)
    counts = map(str, (_done(of, "summary"), requests, over, avoidable))
    return [_share(bill), *counts, _largest(of)]


def _done(of: Sequence[Outcome], kind: str) -> int:
    return sum(each.done.get(kind, 0) for each in of)


def _largest(of: Sequence[Outcome]) -> str:
    return f"{max(each.largest for each in of):,}"


def _others(found: Found) -> list[tuple[str, list[Measured]]]:
    """Return the policies that may leave something out, and what sessions came to."""
    return [(policy, of) for policy, of in found.items() if policy != RAW]


def _usual(of: Sequence[Measured]) -> list[Outcome]:
    return [each.usual for each in of if each.usual]


def _small(of: Sequence[Measured]) -> list[Outcome]:
    return [each.small for each in of if each.small]


def _told(of: Sequence[Measured]) -> list[Told]:
    return [each.told for each in of if each.told]


def _reuse(title: str, tallies: dict[str, list[Tally]]) -> Table:
    """Return a table of what is in sight, beside what its rivals of as many tokens show."""
    totals = {policy: summed(each) for policy, each in tallies.items()}
    looked_at = {looked for total in totals.values() for looked, _ in total.seen}
    shown = [each for each in LOOKED_AT if each in looked_at or each != RECALLED]
    columns = [f"{group} {LOOKED_AT[each]}".rstrip() for group in GROUPS for each in shown]
    rows = [[policy, *_of_tally(total, shown)] for policy, total in totals.items()]
    return Table(title, [["policy", *columns, "requests", "needed"], *rows])


def _of_tally(tally: Tally, shown: Sequence[str]) -> Row:
    groups = GROUPS.values()
    shares = [tally.share(looked_at, kinds) for kinds in groups for looked_at in shown]
    needed = " ".join(str(tally.count(kinds)) for kinds in groups)
    return [*map(_share, shares), str(tally.requests), needed]


def _kinds(tally: Tally) -> Row:
    return [_share(tally.share(SENT, [kind])) for kind in KINDS]


def _sizes(told: Told) -> Row:
    applied = told.applied or 1
    means = (f"{size / applied:,.0f}" for size in (told.hidden, told.tokens))
    return [f"{told.applied}/{told.tried}", *means]


def _facts(told: Told) -> Row:
    return [f"{_share(told.share(*fact))} of {told.facts[fact]}" for fact in FACTS]


def _probes(told: Told) -> Row:
    applied, asked = told.applied or 1, told.asked
    answers = [
        f"{_share(told.answered[each] / asked[each] if asked[each] else None)} of {asked[each]}"
        for each in QUESTIONS
    ]
    foreign = f"{_share(told.foreign / told.names if told.names else None)} of {told.names}"
    of_bill = told.spent / told.bill if told.bill else None
    price = f"{told.spent / applied:,.0f}"
    return [f"{told.written / applied:,.0f}", *answers, foreign, price, _share(of_bill)]


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"
