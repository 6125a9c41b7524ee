"""Operations as spans of OpenTelemetry, by its conventions for databases and generative AI.

It is imported only by a process that has imported OpenTelemetry itself. A span is made at the end
of an operation, with the moments of its beginning and end, in the context of the caller. Without a
provider that records, nothing is set.
"""

from __future__ import annotations

from opentelemetry import trace

from ..records import Observation
from ..release import find_release

NANOSECONDS = 1_000_000_000
SYSTEM_NAMES = {"sqlite": "sqlite", "postgresql": "postgresql"}
VALUE_ATTRIBUTES = {
    "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "cached": "gen_ai.usage.cache_read.input_tokens",
    "written": "gen_ai.usage.cache_creation.input_tokens",
}
"""The attributes of the values of an observation; others are called ``convostore.NAME``."""

_tracer = trace.get_tracer("convostore", find_release())


def record_span(seen: Observation, dialect: str) -> None:
    """Record an operation that has ended as a span."""
    ended = int(seen.ended * NANOSECONDS)
    span = _tracer.start_span(
        seen.operation,
        kind=trace.SpanKind.CLIENT,
        start_time=ended - int(seen.seconds * NANOSECONDS),
    )
    if span.is_recording():
        _describe(span, seen, dialect)
    span.end(ended)


def _describe(span: trace.Span, seen: Observation, dialect: str) -> None:
    span.set_attribute("db.system.name", SYSTEM_NAMES.get(dialect, "other_sql"))
    span.set_attribute("db.operation.name", seen.operation)
    if seen.session_id is not None:
        span.set_attribute("gen_ai.conversation.id", seen.session_id)
    for name, value in seen.values.items():
        span.set_attribute(VALUE_ATTRIBUTES.get(name, f"convostore.{name}"), value)
    if seen.outcome != "ok":
        span.set_attribute("error.type", seen.outcome)
        span.set_status(trace.StatusCode.ERROR)
