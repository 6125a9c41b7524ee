"""What is sent to the model: which messages a line shows, what rules replace, what a view costs.

First the rules judge narrow rows, then what is visible is read, paired and written for an API. It
changes no row. Compaction, context and inspection may call it; nothing in it knows when to compact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..doors import door

if TYPE_CHECKING:
    from . import build, hiding, rules, statement
    from .build import Composed, composed
    from .conditions import any_sign, as_terminal, failure, of_kind, overrides
    from .cost import shown_tokens, summary_tokens, view_tokens
    from .hiding import active, history, visible, visible_after
    from .judging import savings
    from .logged import Line
    from .look import Look, look_at
    from .message_count import continued, view_messages
    from .named_results import target_of
    from .recorded import records
    from .rejudging import ruled
    from .standing import Range, Span, Standing, Visible, as_message, summaries_of

__all__ = [
    "Composed",
    "Line",
    "Look",
    "Range",
    "Span",
    "Standing",
    "Visible",
    "active",
    "any_sign",
    "as_message",
    "as_terminal",
    "build",
    "composed",
    "continued",
    "failure",
    "hiding",
    "history",
    "look_at",
    "of_kind",
    "overrides",
    "records",
    "ruled",
    "rules",
    "savings",
    "shown_tokens",
    "statement",
    "summaries_of",
    "summary_tokens",
    "target_of",
    "view_messages",
    "view_tokens",
    "visible",
    "visible_after",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = door(
        __package__,
        build="Composed composed",
        conditions="any_sign as_terminal failure of_kind overrides",
        cost="shown_tokens summary_tokens view_tokens",
        hiding="active history visible visible_after",
        recorded="records",
        judging="savings",
        rejudging="ruled",
        logged="Line",
        look="Look look_at",
        message_count="continued view_messages",
        named_results="target_of",
        standing="Range Span Standing Visible as_message summaries_of",
    )
