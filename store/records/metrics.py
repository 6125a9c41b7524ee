"""What an open store has done: single operations as they end, and the sums of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from .exposition import Family, Sample, list_histogram_samples, render_exposition

BUSY_OUTCOMES = ("StoreBusy",)
CONFLICT_OUTCOMES = ("Conflict", "HeadMoved", "DraftBusy", "DraftEnded")


class Observation(NamedTuple):
    """An operation that has ended.

    ``operation`` is the name of the method, ``outcome`` is ``ok``, the name of the store's error,
    or ``error`` for any other exception. ``ended`` is its end (seconds since the epoch).
    ``session_id`` is the session that it names (None: none, or several). ``owner`` is that of the
    `Scoped` on which it was called, if owners were asked for. ``values`` has numbers and names of
    the result: of a usage, a compaction, a search, or a view.
    """

    operation: str
    outcome: str
    seconds: float
    ended: float
    session_id: str | None
    owner: str | None
    values: Mapping[str, int | float | str]


ObserverCallback: TypeAlias = Callable[[Observation], object]
"""A function that is told each operation at its end."""


class OperationMetric(NamedTuple):
    """The operations of a name and an outcome: their number, and the seconds that they took.

    ``ranges`` are the numbers of those that took at most each of the `Metrics.limits`, and longer
    than the limit before; the last number is of those that took longer than all limits.
    """

    operation: str
    outcome: str
    number: int
    seconds: float
    ranges: tuple[int, ...]


class PolicyMetric(NamedTuple):
    """The views made by a policy whose tokens were asked for: tokens sent and saved."""

    policy: str
    views: int
    tokens: int
    tokens_saved: int


class ModelMetric(NamedTuple):
    """The recorded usages of a model: requests, and tokens as in a `Usage`."""

    model: str
    requests: int
    input: int
    cached: int
    written: int
    output: int


class Metrics(NamedTuple):
    """What a store has done in this process since it was opened.

    Steps of `atomically` and of `reading` are one operation. ``waits`` counts writes to a file that
    waited for others, and their seconds. ``retries`` are reads that were done once more,
    because the connection to a server broke. ``cached_views`` continued from the cache,
    ``new_views`` were made anew. ``policies`` has the views whose tokens an observer asked for.
    ``compactions`` are pairs of an outcome and a number. ``searches`` left ``behind`` messages in
    all that were not indexed yet.
    """

    limits: tuple[float, ...]
    operations: tuple[OperationMetric, ...] = ()
    waits: OperationMetric | None = None
    retries: int = 0
    cached_views: int = 0
    new_views: int = 0
    policies: tuple[PolicyMetric, ...] = ()
    compactions: tuple[tuple[str, int], ...] = ()
    searches: int = 0
    behind: int = 0
    models: tuple[ModelMetric, ...] = ()

    @property
    def busy(self) -> int:
        """The operations that others kept from going on until their deadline."""
        return self._count_outcomes(BUSY_OUTCOMES)

    @property
    def conflicts(self) -> int:
        """The operations on a session that was not as the caller knew it."""
        return self._count_outcomes(CONFLICT_OUTCOMES)

    def text(self) -> str:
        """Return the metrics in the text format of Prometheus.

        No label holds a message, title, path, session or owner.
        """
        return render_exposition(_list_families(self))

    def _count_outcomes(self, outcomes: Iterable[str]) -> int:
        return sum(each.number for each in self.operations if each.outcome in outcomes)


def _list_families(metrics: Metrics) -> list[Family]:
    return [
        *_list_operation_families(metrics),
        _count("retries", "Reads done once more on another connection.", metrics.retries),
        _count("busy", "Operations that others kept waiting to their deadline.", metrics.busy),
        _count("conflicts", "Operations on a session that had changed.", metrics.conflicts),
        _group(
            "views",
            "Views continued from memory and made anew.",
            "source",
            [("memory", metrics.cached_views), ("anew", metrics.new_views)],
        ),
        _group(
            "view_tokens",
            "Tokens of views, by policy.",
            "policy",
            [(each.policy, each.tokens) for each in metrics.policies],
        ),
        _group(
            "view_tokens_saved",
            "Tokens that policies kept out of views.",
            "policy",
            [(each.policy, each.tokens_saved) for each in metrics.policies],
        ),
        _group("compactions", "Compactions.", "outcome", metrics.compactions),
        _count("searches", "Searches.", metrics.searches),
        _count("search_behind_messages", "Messages that searches left out.", metrics.behind),
        *_list_model_families(metrics.models),
    ]


def _list_operation_families(metrics: Metrics) -> list[Family]:
    total: list[Sample] = []
    times: list[Sample] = []
    waits: list[Sample] = []
    for each in metrics.operations:
        labels = {"operation": each.operation, "outcome": each.outcome}
        total.append(Sample(labels, each.number))
        times += list_histogram_samples(labels, metrics.limits, each.ranges, each.seconds)
    if queue := metrics.waits:
        waits += list_histogram_samples({}, metrics.limits, queue.ranges, queue.seconds)
    return [
        Family("convostore_operations_total", "counter", "Operations.", total),
        Family("convostore_operation_seconds", "histogram", "Time of operations.", times),
        Family("convostore_queue_wait_seconds", "histogram", "Waits for other writers.", waits),
    ]


def _list_model_families(models: Iterable[ModelMetric]) -> list[Family]:
    parts = ("requests", "input", "cached", "written", "output")
    families = []
    for part in parts:
        unit = "" if part == "requests" else "_tokens"
        pairs = [(each.model, getattr(each, part)) for each in models]
        families.append(_group(f"usage_{part}{unit}", f"Usage: {part}.", "model", pairs))
    return families


def _count(name: str, told: str, value: float) -> Family:
    samples = [Sample({}, value)]
    return Family(f"convostore_{name}_total", "counter", told, samples)


def _group(name: str, told: str, label: str, pairs: Iterable[tuple[str, float]]) -> Family:
    samples = [Sample({label: key}, value) for key, value in pairs]
    return Family(f"convostore_{name}_total", "counter", told, samples)
