"""What requests cost: over time as a plot, and by project, model and program."""

from __future__ import annotations

from .. import InvalidValue
from ..records import UsageTotal
from .page_rendering import Values, Visit, page
from .plots import Plot, plot_bars

COST_PERIODS = ("day", "week", "month")
COST_KEYS = ("project", "model", "source")
LISTED_TOTALS = 40


@page("/costs", "costs.html")
def show_costs(visit: Visit) -> Values:
    """Return the costs of a time."""
    period = visit.get("by") or COST_PERIODS[0]
    if period not in COST_PERIODS:
        raise InvalidValue(f"by is one of {', '.join(COST_PERIODS)}, not {period[:40]!r}")
    over_time = load_cost_totals(visit, period)
    by_key = {key: load_cost_totals(visit, key) for key in COST_KEYS}
    values = {"periods": COST_PERIODS, "period": period, "over_time": over_time, "by_key": by_key}
    return values | {"plot": plot_totals(over_time), "most": LISTED_TOTALS}


def load_cost_totals(visit: Visit, key: str) -> list[UsageTotal]:
    """Return the totals by a key, of the time that the address names."""
    since, until = visit.moment("since"), visit.moment("until", days=1)
    return visit.face.usage_totals(by=key, since=since, until=until)


def plot_totals(totals: list[UsageTotal]) -> Plot:
    """Return the costs of periods as bars; where no cost is known, the tokens."""
    is_priced = any(each.cost for each in totals)
    return plot_bars(
        [
            (
                str(each.name),
                (each.cost or 0) if is_priced else each.input + each.output,
                0,
                Visit.format_cost(each.cost) if is_priced else f"{each.input + each.output:,}",
            )
            for each in totals
        ]
    )
