"""What is sent to the model: which messages a line shows, what rules replace, what a view costs.

First the rules judge narrow rows, then what is visible is read, paired and written for an API. It
changes no row. Compaction, context and inspection may call it; nothing in it knows when to compact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..doors import door

if TYPE_CHECKING:
    from . import build, hiding, rules, statement
    from .build import ComposedView, compose_view
    from .context import ViewContext, load_view_context
    from .cost import estimate_shown_tokens, estimate_summary_tokens, estimate_view_tokens
    from .hiding import active, history, visible, visible_after
    from .judging import estimate_savings
    from .log_messages import LogMessage
    from .message_count import continued, view_messages
    from .named_results import target_of
    from .recorded import records
    from .rejudging import load_verdicts
    from .standing import Range, Span, Standing, Visible, as_message, summaries_of
    from .tool_result_filters import (
        has_failure_sign,
        is_failure,
        is_of_kind,
        is_terminal_output,
        kind_overrides,
    )

__all__ = [
    "ComposedView",
    "LogMessage",
    "Range",
    "Span",
    "Standing",
    "ViewContext",
    "Visible",
    "active",
    "as_message",
    "build",
    "compose_view",
    "continued",
    "estimate_savings",
    "estimate_shown_tokens",
    "estimate_summary_tokens",
    "estimate_view_tokens",
    "has_failure_sign",
    "hiding",
    "history",
    "is_failure",
    "is_of_kind",
    "is_terminal_output",
    "kind_overrides",
    "load_verdicts",
    "load_view_context",
    "records",
    "rules",
    "statement",
    "summaries_of",
    "target_of",
    "view_messages",
    "visible",
    "visible_after",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = door(
        __package__,
        build="ComposedView compose_view",
        tool_result_filters=(
            "has_failure_sign is_failure is_of_kind is_terminal_output kind_overrides"
        ),
        cost="estimate_shown_tokens estimate_summary_tokens estimate_view_tokens",
        hiding="active history visible visible_after",
        recorded="records",
        judging="estimate_savings",
        rejudging="load_verdicts",
        log_messages="LogMessage",
        context="ViewContext load_view_context",
        message_count="continued view_messages",
        named_results="target_of",
        standing="Range Span Standing Visible as_message summaries_of",
    )
