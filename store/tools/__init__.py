"""Facts about tool calls and their results, read once when they are stored: facts, not verdicts.

Tables of names and signs, and pure functions that read them: the files that a call names, the kind
of its tool, whether it failed, its result in a few lines. It reads no database; any higher room may
use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "TOOL_KINDS",
    "LikeError",
    "QuestionWord",
    "TextName",
    "compress",
    "count_names",
    "find_answered_call_id",
    "find_like_error",
    "list_error_lines",
    "parse_question_words",
]

if TYPE_CHECKING:
    from . import failure, patches
    from .calls import ToolPath, find_call_paths, list_file_keys
    from .error_comparison import LikeError, find_like_error, list_error_lines
    from .error_texts import find_error_text
    from .excerpts import translate_markers
    from .failure import (
        build_sign_switches,
        is_command_output,
        is_failed_result,
        is_known_by_look,
        render_signs_sql,
    )
    from .kinds import (
        ALL_TOOL_KINDS,
        DECIDING_ARGUMENTS,
        RECALL_TOOL_NAME,
        TOOL_KINDS,
        normalise_key,
    )
    from .path_normalization import normalise_path
    from .question_words import QuestionWord, parse_question_words
    from .results import (
        Facts,
        compute_result_facts,
        find_answered_call_id,
        find_kind_name,
        find_result_end,
        is_terminal_result,
    )
    from .short_forms import compress
    from .text_names import TextName, count_names, rank_names
    from .todos import is_recap_all_done, render_recap

if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = attach_modules(
        __package__,
        "failure patches",
        calls="ToolPath find_call_paths list_file_keys",
        error_comparison="LikeError find_like_error list_error_lines",
        error_texts="find_error_text",
        excerpts="translate_markers",
        failure=(
            "build_sign_switches is_command_output is_failed_result is_known_by_look "
            "render_signs_sql"
        ),
        kinds="ALL_TOOL_KINDS DECIDING_ARGUMENTS RECALL_TOOL_NAME TOOL_KINDS normalise_key",
        text_names="TextName count_names rank_names",
        path_normalization="normalise_path",
        question_words="QuestionWord parse_question_words",
        results=(
            "Facts compute_result_facts find_answered_call_id find_kind_name find_result_end "
            "is_terminal_result"
        ),
        short_forms="compress",
        todos="is_recap_all_done render_recap",
    )
