"""Measures of whole requests: what assembling costs beside the view that is in it."""

from __future__ import annotations

from store import Policy

from .reading import Found
from .stage import SESSION, Stage, equal
from .timing import interleaved

PROMPT = "You are a careful engineer. " * 200
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {}}}
    for name in ("Read", "Bash", "Edit")
]
TURNS = Policy.named("turns")


def request(stage: Stage) -> Found:
    """Assemble the whole session as a request, against its view alone by the same policy."""
    store, now = stage.forgetful, stage.now
    view = store.view(SESSION, TURNS, now=now).messages
    equal(store.context(SESSION, PROMPT, TOOLS, now=now).messages[1 : len(view) + 1], view)
    yield (
        "request: against its view",
        interleaved(
            lambda _: store.context(SESSION, PROMPT, TOOLS, now=now),
            lambda _: store.view(SESSION, TURNS, now=now),
            stage.pace,
        ),
    )
    kept = stage.normal
    yield (
        "check with short forms: against without",
        interleaved(
            lambda _: kept.check(SESSION, TURNS, now=now),
            lambda _: kept.check(SESSION, Policy.named("turns", tool_output=False), now=now),
            stage.pace,
        ),
    )
