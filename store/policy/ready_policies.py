"""The ready policies as data, and the right values of fields in words."""

from __future__ import annotations

from typing import Any

from ..phrases import LANGUAGE_TEXTS, Language

__all__ = [
    "FIELD_PROBLEMS",
    "LANGUAGE_TEXTS",
    "POLICIES",
    "READY_POLICY_TEXTS",
    "Language",
    "PolicyFields",
]

PolicyFields = dict[str, Any]
"""Fields of a policy, by name."""

CODING_FIELDS: PolicyFields = {
    "language": "en",
    "picture_keep": 100,
    "terminal": False,
    "file_read": False,
    "any_tool": True,
    "trigger_ratio": 0.7,
    "summary_max_chars": 7_200,
    "facts_chars": 3_000,
    "told_once": True,
    "edits_chars": 1_200,
    "index_chars": 2_000,
    "within_turn": True,
    "least_groups": 1,
    "least_freed": 0.15,
    "undated": "stored_at",
}
"""The fields that the policies for coding agents share."""

POLICIES: dict[str, PolicyFields] = {
    "default": {},
    "message_count": {
        "picture_current_turn": True,
        "trigger_messages": 40,
        "window_messages": 30,
        "keep_messages": 10,
        "hard_limit": 50,
        "prompt": "summary_zh",
        "summary_max_chars": 1500,
        "transcript": "brief",
        "transcript_max_chars": 12_000,
        "summary_heading": "[对话摘要 - 早期上下文]",
        "on_failure": "trim",
        "undated": "stored_at",
    },
    "token_ratio": {
        "picture_current_turn": True,
        "trigger_ratio": 0.8,
        "overflow_ratio": 0.9,
        "keep_messages": 10,
        "summary_max_chars": 500,
        "max_iterations": 3,
        "protect_current_turn": True,
        "on_failure": "skip",
        "undated": "stored_at",
    },
    "turns": {
        "picture_current_turn": True,
        "tool_output": True,
        "judge_at": "turn",
        "trigger_usage": 0.8,
        "context_window": 200_000,
        "min_messages": 3,
        "keep_turns": 10,
        "prompt": "archive",
        "previous_summary": "append",
        "protect_current_turn": True,
        "on_failure": "truncate",
        "undated": "stored_at",
    },
    "raw": {"terminal": False, "file_read": False, "undated": "stored_at", "picture_keep": "all"},
    "agent": {**CODING_FIELDS, "clearing": "cold"},
    "paged": {
        **CODING_FIELDS,
        "clear_keep": 5,
        "clear_warm_keep": 3,
        "keep_asked": 3_000,
        "cut_arguments": True,
        "cut_keep": 15,
        "recall": True,
        "clearing": "bounded",
    },
    "frugal": {
        "language": "en",
        "picture_keep": 100,
        "terminal": False,
        "file_read": False,
        "trigger_ratio": 0.7,
        "compact_cold_from": 20_000,
        "boundary": "group",
        "keep_messages": 20,
        "summary_max_chars": 6_000,
        "told_once": True,
        "index_chars": 8_000,
        "within_turn": True,
        "least_groups": 1,
        "least_freed": 0.15,
        "undated": "stored_at",
    },
}
"""The ready policies: the fields that each changes.

No wire format has a time, so all but the first use the time of storing for a result without one.
"""

READY_POLICY_TEXTS: dict[str, dict[Language, dict[str, str]]] = {
    "message_count": {
        "en": {"prompt": "handoff", "summary_heading": "[Summary of the earlier conversation]"},
    },
}
"""The texts of ready policies in another language than the default one."""

FIELD_PROBLEMS = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "is a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "is a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "is true or false"),
    "string_type": "is a text",
    "tuple_type": "is a list",
    "dict_type": "is a mapping",
    "literal_error": "is {expected}",
    "greater_than": "is more than {gt}",
    "greater_than_equal": "is at least {ge}",
    "less_than": "is less than {lt}",
    "less_than_equal": "is at most {le}",
}
"""The right value of a field, by the type of the problem."""
