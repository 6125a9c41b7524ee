"""What is told of the turns that go beyond a hard limit, where there is no summary.

Their facts, with the texts of the summaries that they replace, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..view import list_range_summaries
from .budget import Budget
from .job import hiding_of
from .plan import trim
from .record_rows import Hiding
from .summarization import without_end


def tellings(cost: Budget) -> Iterator[Hiding]:
    """Yield what may be told of what a trim hides, the fuller one first; none of what needs none.

    What stands for a range that was hidden by name is told in any case.
    """
    hiding = _hiding_with_facts(cost)
    covers = list_range_summaries(hiding.plan.covered)
    if hiding.facts or hiding.plan.inside or covers:
        yield hiding
    if covers:
        yield hiding._replace(facts="")


def earlier(hiding: Hiding) -> str:
    """Return the texts of the summaries that a trim carries on."""
    bodies = (without_end(each.body) for each in hiding.previous)
    return "\n\n".join(filter(None, bodies))


def _hiding_with_facts(cost: Budget) -> Hiding:
    """Return what a trim hides, and the facts of it.

    They are told with the summary before, else by themselves. By themselves they are one more
    message, for which the hard limit has to leave room.
    """
    context, last = cost.context, cost.context.visible.summaries[-1:]
    folds = context.policy.previous_summary == "fold"
    previous = tuple(each for each in last if folds or not each.body)
    hiding = hiding_of(context, trim(cost), previous)
    if hiding.previous or not (hiding.facts or hiding.plan.inside):
        return hiding
    return hiding_of(context, trim(cost, spare=1), previous)
