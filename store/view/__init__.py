"""Views for the model: the messages that a line shows, the results that rules replace, the cost.

First the rules judge narrow rows, then the visible messages are read, paired and written for an
API. No row is changed. Compaction, context and inspection may call this room; nothing in it decides
when to compact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from . import build, rules, statement, visible_set
    from .build import ComposedView, build_view, compose_view, prepare_record
    from .cost import (
        estimate_shown_tokens,
        estimate_summary_tokens,
        estimate_view_tokens,
        load_savings,
    )
    from .counts import count_view_messages, find_continuations
    from .early_queries import load_viewed_pointer, send_view_queries
    from .explanation import Explanation, ExplanationInputs, RequestBasis
    from .log_messages import LogMessage, get_named_language
    from .placeholders import CallAnswer, describe_target
    from .result_predicates import (
        has_failure_sign,
        is_failure,
        is_of_kind,
        is_terminal_output,
        kind_overrides,
    )
    from .sent_digest import KeyedMessages, MessageKey, SentDigest, SentParts
    from .verdicts import Verdicts, estimate_savings, load_cut_savings, load_verdicts
    from .visible_set import (
        ActiveSummary,
        HiddenRange,
        PositionRange,
        ViewContext,
        VisibleSet,
        build_summary_message,
        build_visible_set,
        describe_records,
        list_range_summaries,
        load_records,
        load_view_context,
        load_visible_set,
        select_active_records,
    )

__all__ = [
    "ActiveSummary",
    "CallAnswer",
    "ComposedView",
    "Explanation",
    "ExplanationInputs",
    "HiddenRange",
    "KeyedMessages",
    "LogMessage",
    "MessageKey",
    "PositionRange",
    "RequestBasis",
    "SentDigest",
    "SentParts",
    "Verdicts",
    "ViewContext",
    "VisibleSet",
    "build",
    "build_summary_message",
    "build_view",
    "build_visible_set",
    "compose_view",
    "count_view_messages",
    "describe_records",
    "describe_target",
    "estimate_savings",
    "estimate_shown_tokens",
    "estimate_summary_tokens",
    "estimate_view_tokens",
    "find_continuations",
    "get_named_language",
    "has_failure_sign",
    "is_failure",
    "is_of_kind",
    "is_terminal_output",
    "kind_overrides",
    "list_range_summaries",
    "load_cut_savings",
    "load_records",
    "load_savings",
    "load_verdicts",
    "load_view_context",
    "load_viewed_pointer",
    "load_visible_set",
    "prepare_record",
    "rules",
    "select_active_records",
    "send_view_queries",
    "statement",
    "visible_set",
]

if not TYPE_CHECKING:  # a type checker would accept any name from it
    __getattr__, __dir__ = attach_modules(
        __package__,
        "build rules statement visible_set",
        build="ComposedView build_view compose_view prepare_record",
        cost="estimate_shown_tokens estimate_summary_tokens estimate_view_tokens load_savings",
        counts="count_view_messages find_continuations",
        early_queries="load_viewed_pointer send_view_queries",
        explanation="Explanation ExplanationInputs RequestBasis",
        log_messages="LogMessage get_named_language",
        placeholders="CallAnswer describe_target",
        result_predicates="has_failure_sign is_failure is_of_kind is_terminal_output "
        "kind_overrides",
        sent_digest="KeyedMessages MessageKey SentDigest SentParts",
        verdicts="Verdicts estimate_savings load_cut_savings load_verdicts",
        visible_set="ActiveSummary HiddenRange PositionRange ViewContext VisibleSet "
        "build_summary_message build_visible_set describe_records list_range_summaries "
        "load_records load_view_context load_visible_set select_active_records",
    )
