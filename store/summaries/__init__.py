"""Summaries of hidden messages: prompts, transcripts, extracts, facts, and their authors.

Compaction calls this room with messages in hand; nothing here reads a row. All of it is pure, but
for the summarizer that asks a model over HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "EXTRACTIVE_MODEL",
    "NAMED_SUMMARIZERS",
    "FileChange",
    "KeyAction",
    "Prompt",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "anthropic_model",
    "chat_model",
    "extract_command",
    "extract_user_words",
    "extractive",
    "is_by_program",
    "load",
    "named",
]

if TYPE_CHECKING:
    from . import names_index
    from .actions import describe_failure, find_outcome, strip_heredocs
    from .extractive_summary import EXTRACTIVE_MODEL, extractive
    from .facts_ledger import HiddenFact, build_facts_ledger
    from .message_texts import (
        PROGRAM_BEGINNINGS,
        RESULT_ROLES,
        SYSTEM_ROLES,
        cut_at_line_end,
        extract_command,
        extract_message_text,
        extract_user_words,
        is_by_program,
        scrub_text,
    )
    from .prompts import Prompt, describe_unfinished_turn, load
    from .summarizers import NAMED_SUMMARIZERS, anthropic_model, call_summarizer, chat_model, named
    from .summary import (
        EMPTY_SUMMARY_ERROR,
        TIMED_OUT_NOTICE,
        FileChange,
        KeyAction,
        Summarizer,
        Summary,
        SummaryRequest,
        build_title,
        normalize_summary,
        render_summary,
    )
    from .transcripts import (
        BRIEF_FLOOR,
        DEFAULT_LIMITS,
        DatedMessage,
        FittedTranscript,
        TranscriptLimits,
        find_group_ends,
        fit_brief_transcript,
        fit_whole_transcript,
        get_labels,
        render_brief_transcript,
    )

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = attach_modules(
        __package__,
        "names_index",
        actions="describe_failure find_outcome strip_heredocs",
        extractive_summary="EXTRACTIVE_MODEL extractive",
        facts_ledger="HiddenFact build_facts_ledger",
        prompts="Prompt describe_unfinished_turn load",
        summarizers="NAMED_SUMMARIZERS anthropic_model call_summarizer chat_model named",
        summary=(
            "EMPTY_SUMMARY_ERROR TIMED_OUT_NOTICE FileChange KeyAction Summarizer Summary "
            "SummaryRequest build_title normalize_summary render_summary"
        ),
        message_texts=(
            "PROGRAM_BEGINNINGS RESULT_ROLES SYSTEM_ROLES cut_at_line_end extract_command "
            "extract_message_text extract_user_words is_by_program scrub_text"
        ),
        transcripts=(
            "BRIEF_FLOOR DEFAULT_LIMITS DatedMessage FittedTranscript TranscriptLimits "
            "find_group_ends fit_brief_transcript fit_whole_transcript get_labels "
            "render_brief_transcript"
        ),
    )
