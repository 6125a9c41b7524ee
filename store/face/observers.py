"""The observers of operations: counters, callbacks of a host, and spans.

A call of a face is one operation, whatever it calls within. Its name and time are counted always;
an `Observation` is made only for somebody who gets it. Nothing that a callback raises reaches the
operation, and its own calls of the store are not observed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from ..database import TIME_LIMITS, CounterKey, Counters, CounterSum, Database, get_logger
from ..errors import InvalidValue, StoreError, describe_origin, quote_value
from ..records import (
    Compaction,
    Hits,
    Metrics,
    ModelMetric,
    Observation,
    ObserverCallback,
    OperationMetric,
    PolicyMetric,
    Usage,
    View,
)
from .calls import Call, get_inner_call, get_signature

observer_logger = get_logger(__name__)
ObservedResultT = TypeVar("ObservedResultT")
ObservedParams = ParamSpec("ObservedParams")
ObservedValues = dict[str, int | float | str]

TELEMETRY_MODULE = "opentelemetry.trace"
"""The module that a process has imported if its operations may be spans."""
NO_SUM = CounterSum(0, 0, ())
SESSION_ARGUMENTS = ("session_id", "session_ids")
USAGE_FIELDS = ("input", "cached", "written", "output")


class _Observer(NamedTuple):
    """A callback, the owner whose operations it observes (None: all), and its options."""

    callback: ObserverCallback
    owner: str | None
    owners: bool
    tokens: bool


class _Inside(threading.local):
    """Whether a thread is inside an operation that is observed as a whole."""

    is_set = False


class Observers:
    """The counters and callbacks of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._observers: tuple[_Observer, ...] = ()
        self._owned: dict[str, Counters] = {}
        self._inside = _Inside()

    def run(
        self, call: Call[ObservedResultT], work: Callable[[Call[ObservedResultT]], ObservedResultT]
    ) -> ObservedResultT:
        """Do an operation and observe its end."""
        if self._inside.is_set:
            return work(call)
        begun = time.perf_counter()
        try:
            result = work(call)
        except BaseException as error:
            self._end(call, time.perf_counter() - begun, error, None)
            raise
        self._end(call, time.perf_counter() - begun, None, result)
        return result

    def run_whole(
        self, call: Call[ObservedResultT], work: Callable[[Call[ObservedResultT]], ObservedResultT]
    ) -> ObservedResultT:
        """Run an operation and observe its end; the operations that it calls are not observed."""
        if self._inside.is_set:
            return work(call)
        return self.run(call, partial(self._run_inside, work))

    def _run_inside(
        self, work: Callable[[Call[ObservedResultT]], ObservedResultT], call: Call[ObservedResultT]
    ) -> ObservedResultT:
        try:
            self._inside.is_set = True
            return work(call)
        finally:
            self._inside.is_set = False

    def add(
        self, callback: ObserverCallback, owner: str | None, *, owners: bool, tokens: bool
    ) -> Callable[[], None]:
        """Tell a callback each operation from now on; return the function that ends this."""
        if not callable(callback):
            raise InvalidValue(
                f"callback must be a function of an Observation, not {quote_value(callback)}"
            )
        added = _Observer(callback, owner, owners, tokens)
        self._observers = (*self._observers, added)

        def end() -> None:
            self._observers = tuple(each for each in self._observers if each is not added)

        return end

    def get_metrics(self, owner: str | None) -> Metrics:
        """Return the counts: of all, or of an owner since the first request for them."""
        if owner is None:
            return build_metrics(self._database.counters.get_sums())
        return build_metrics(self._owned.setdefault(owner, Counters()).get_sums())

    def _get_owned(self, call: Call[Any]) -> Counters | None:
        """Return the counters of a call's owner, if somebody has asked for them."""
        return None if call.owner is None else self._owned.get(call.owner)

    def _end(
        self, call: Call[Any], seconds: float, error: BaseException | None, result: object
    ) -> None:
        outcome = "ok" if error is None else name_outcome(error)
        key = ("operation", call.name or call.operation.__name__, outcome)
        self._database.counters.add(key, seconds)
        counted = self._get_owned(call)
        if counted:
            counted.add(key, seconds)
        describe = DESCRIPTIONS.get(type(result))
        is_told = bool(self._observers) or has_tracer()
        if not (describe or is_told):
            return
        values = describe(result) if describe else {}
        if values:
            count_values(self._database.counters, values)
        if values and counted:
            count_values(counted, values)
            count_usage(counted, values)
        if is_told:
            self._run_inside(partial(self._tell, outcome, seconds, values, result), call)

    def _tell(
        self, outcome: str, seconds: float, values: ObservedValues, result: object, call: Call[Any]
    ) -> None:
        """Tell spans and callbacks of an operation; a failure of theirs is logged."""
        told = Observation(
            call.name or call.operation.__name__,
            outcome,
            seconds,
            time.time(),
            find_session_id(call),
            call.owner,
            values,
        )
        if has_tracer():
            self._try(self._record_span, told)
        wanted = [each for each in self._observers if each.owner in (None, call.owner)]
        if isinstance(result, View) and any(each.tokens for each in wanted):
            self._try(partial(self._add_tokens, call, result), told)
        for each in wanted:
            is_owner_told = each.owners or each.owner is not None
            self._try(each.callback, told if is_owner_told else told._replace(owner=None))

    def _record_span(self, told: Observation) -> None:
        from .spans import record_span  # only where the process has imported OpenTelemetry

        record_span(told, self._database.dialect)

    def _add_tokens(self, call: Call[Any], view: View, told: Observation) -> None:
        """Add the tokens of a view to its observation, and to the counters."""
        policy, stats = name_policy(call), view.stats
        assert isinstance(told.values, dict)
        told.values.update(policy=policy, tokens=stats.tokens, tokens_saved=stats.tokens_saved)
        for each in (self._database.counters, self._get_owned(call)):
            if each:
                each.add(("policy", policy, "sent"), stats.tokens)
                each.add(("policy", policy, "saved"), stats.tokens_saved)

    def _try(self, callback: Callable[[Observation], object], told: Observation) -> None:
        try:
            callback(told)
        except Exception as error:  # noqa: BLE001 - whatever a host's callback raises
            observer_logger.warning(
                "an observer of the store failed: %s",
                describe_origin(error),
                extra={"session_id": told.session_id, "seconds": told.seconds},
            )


class ObservedFace(Protocol):
    """A face whose methods are observed, and its owner, if it has one."""

    _observers: Observers

    @property
    def _own(self) -> str | None:
        """The owner of the face's sessions; None for the whole store."""


ObservedFaceT = TypeVar("ObservedFaceT", bound=ObservedFace)


def observed(
    method: Callable[Concatenate[ObservedFaceT, ObservedParams], ObservedResultT],
) -> Callable[Concatenate[ObservedFaceT, ObservedParams], ObservedResultT]:
    """Observe a method of a face as one operation."""

    @wraps(method)
    def run(
        face: ObservedFaceT, /, *args: ObservedParams.args, **options: ObservedParams.kwargs
    ) -> ObservedResultT:
        call = Call(method, args, options, name=method.__name__, owner=face._own)
        return face._observers.run_whole(call, lambda made: made(face))

    return run


def has_tracer() -> bool:
    """Tell whether the process has set up OpenTelemetry to record spans."""
    trace: Any = sys.modules.get(TELEMETRY_MODULE)
    return bool(trace) and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def name_outcome(error: BaseException) -> str:
    """Return the name of the store's own error, ``error`` for any other."""
    return type(error).__name__ if isinstance(error, StoreError) else "error"


@cache
def has_session(operation: Callable[..., Any]) -> bool:
    """Tell whether the first argument of an operation, after its connection, is a session's id."""
    return [*get_signature(operation).parameters][1] in SESSION_ARGUMENTS


def find_session_id(call: Call[Any]) -> str | None:
    """Return the session that a call names, if it is one."""
    inner = get_inner_call(call)
    named = inner.args[:1] if inner.args and has_session(inner.operation) else ()
    return named[0] if named and isinstance(named[0], str) else None


def name_policy(call: Call[Any]) -> str:
    """Return the name of the policy of a call."""
    inner = get_inner_call(call)
    found = [each for each in inner.args if hasattr(each, "model_fields_set")]
    policy: Any = found[0] if found else inner.options.get("policy")
    return policy.name if policy else "default"


def list_usage_values(usage: Usage) -> ObservedValues:
    """Return the values of a recorded usage."""
    names = ("model", "provider", *USAGE_FIELDS, "cost")
    named = {name: getattr(usage, name) for name in names}
    return {name: value for name, value in named.items() if value is not None}


DESCRIPTIONS: dict[type, Callable[[Any], ObservedValues]] = {
    Usage: list_usage_values,
    Compaction: lambda made: {"compaction": made.outcome, "kind": made.kind},
    Hits: lambda found: {"hits": len(found), "behind": found.behind},
}
"""The values of an observation by the type of the result."""


def count_values(counters: Counters, values: ObservedValues) -> None:
    """Add the values of an observation to counters; usages are counted where they are written."""
    if outcome := values.get("compaction"):
        counters.add(("compaction", str(outcome)))
    if "behind" in values:
        counters.add(("search",), float(values["behind"]))


def count_usage(counters: Counters, values: ObservedValues) -> None:
    """Add a usage to the counters of an owner; those of the store count it where it is written."""
    if "input" in values:
        model = str(values.get("model", "unknown"))
        for name, number in {"requests": 1, **values}.items():
            if name in ("requests", *USAGE_FIELDS):
                counters.add(("usage", model, name), float(number))


def build_metrics(sums: dict[CounterKey, CounterSum]) -> Metrics:
    """Return the metrics of sums."""
    kinds = defaultdict[str, dict[CounterKey, CounterSum]](dict)
    for key in sorted(sums):
        kinds[key[0]][key[1:]] = sums[key]
    views = kinds["view"]
    searches = kinds["search"].get((), NO_SUM)
    waits = kinds["queue"].get(())
    return Metrics(
        limits=TIME_LIMITS,
        operations=tuple(
            OperationMetric(name, outcome, *total)
            for (name, outcome), total in kinds["operation"].items()
        ),
        waits=OperationMetric("queue", "ok", *waits) if waits else None,
        retries=kinds["retry"].get((), NO_SUM).number,
        cached_views=views.get(("memory",), NO_SUM).number,
        new_views=views.get(("anew",), NO_SUM).number,
        policies=tuple(_build_policy_metrics(kinds["policy"])),
        compactions=tuple((key[0], total.number) for key, total in kinds["compaction"].items()),
        searches=searches.number,
        behind=int(searches.total),
        models=tuple(_build_model_metrics(kinds["usage"])),
    )


def _build_policy_metrics(sums: dict[CounterKey, CounterSum]) -> Iterator[PolicyMetric]:
    for name in dict.fromkeys(key[0] for key in sums):
        sent = sums.get((name, "sent"), NO_SUM)
        saved = sums.get((name, "saved"), NO_SUM)
        yield PolicyMetric(name, sent.number, int(sent.total), int(saved.total))


def _build_model_metrics(sums: dict[CounterKey, CounterSum]) -> Iterator[ModelMetric]:
    fields = ("requests", *USAGE_FIELDS)
    for name in dict.fromkeys(key[0] for key in sums):
        found = (sums.get((name, each), NO_SUM) for each in fields)
        yield ModelMetric(name, *(int(each.total) for each in found))
