"""The turns and messages that a compaction keeps visible, and where it may cut."""

from __future__ import annotations

from typing import Literal

from .field_types import CountNumber, PolicyFieldGroup, PositiveNumber


class KeptRangeFields(PolicyFieldGroup):
    """The turns and messages that a compaction keeps visible, and where it may cut."""

    keep_messages: CountNumber = 0
    """Newest messages that stay."""
    keep_turns: PositiveNumber = 1
    """Newest turns that stay whole, the current one included.

    The current turn always stays, except the groups that ``within_turn`` hides.
    """
    within_turn: bool = False
    """If nothing else is enough, hide finished groups of calls and results of the current turn too.
    Its user message, its unanswered calls and its newest groups stay.
    """
    keep_groups: PositiveNumber = 5
    """Newest groups that stay if the current turn is cut, or a line without a user message.

    A group is a message, or a message with calls and all their results.
    """
    least_groups: PositiveNumber | None = None
    """Halve ``keep_groups`` and ``keep_messages`` in a full window, at least to so many groups."""
    least_turns: PositiveNumber | None = None
    """The fewest turns that stay: while the remaining view would still be at the trigger,
    ``keep_turns`` is halved, but never to less than this. None: it is not halved.
    """
    window_messages: PositiveNumber | None = None
    """Hide at most this many messages at a time, the oldest ones.

    If a longer turn leaves no place to cut in their second half, all up to the end of that turn are
    hidden.
    """
    boundary: Literal["turn", "group"] = "turn"
    """Cut before a user message only, or between any two groups of calls and results."""
    hard_limit: CountNumber | None = None
    """Messages that a view may have when no summary can be made; beyond that the oldest turns go.

    They include messages that the view invents for calls and results without each other.
    """
