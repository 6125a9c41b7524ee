"""The triggers of compactions, and their limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .field_types import CountNumber, PolicyFieldGroup, RatioNumber


class TriggerFields(PolicyFieldGroup):
    """The triggers of compactions, and their limits."""

    context_window: CountNumber | None = None
    """Tokens that the model accepts; ratios are of this unless a check gives another window."""
    trigger_messages: CountNumber | None = None
    """Compact when the view has at least this many messages."""
    trigger_ratio: RatioNumber | None = None
    """Compact when the view reaches this share of the window."""
    overflow_ratio: RatioNumber | None = None
    """From this share of the window on, the view must be compacted before it is sent."""
    trigger_usage: RatioNumber | None = None
    """Compact when the last request's usage and a third of the new input reach this share of the
    window.
    """
    trigger_tokens: CountNumber | None = None
    """Compact when the view has at least this many tokens, whatever the window."""
    compact_cold_from: CountNumber | None = None
    """Compact when the cache is cold and the view has at least this many tokens.

    From 20,000 on that reduced the bill to 0.62, and hid a third of the exact lines that later
    edits repeated.
    """
    min_messages: CountNumber = 0
    """Compact no view of fewer messages."""
    max_iterations: Annotated[int, Field(ge=1, le=100)] = 3
    """Stop after this many compactions in a row that did not get below the trigger."""
    scope: Literal["turn", "session"] = "turn"
    """Whether ``max_iterations`` counts compactions of the current turn, or all of the session."""
