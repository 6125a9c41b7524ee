"""What stands for hidden messages: prompts, transcripts, extracts, facts, and who writes them.

Compaction calls this room with messages in hand; nothing here reads a row. All of it is pure, but
for the summarizer that asks a model over HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..doors import door

if TYPE_CHECKING:
    from . import names_index
    from .brief import FLOOR, LIMITS, TranscriptLimits, fit, group_ends, transcript
    from .extracts import MODEL, extractive
    from .facts_ledger import HiddenFact, ledger
    from .fitting import Fitted
    from .labels import labels_in
    from .outcomes import came_to, failure_told, without_texts
    from .prompts import Prompt, load, unfinished
    from .returned import EMPTY, normalised
    from .summarizers import NAMED, call, chat_model, named
    from .texts import RESULT_ROLES, SYSTEM_ROLES, command_of, cut, message_content, scrubbed
    from .values import (
        TIMED_OUT_NOTICE,
        FileChange,
        KeyAction,
        Summarizer,
        Summary,
        SummaryRequest,
        rendered,
        title,
    )
    from .whole import Dated, told

__all__ = [
    "EMPTY",
    "FLOOR",
    "LIMITS",
    "MODEL",
    "NAMED",
    "RESULT_ROLES",
    "SYSTEM_ROLES",
    "TIMED_OUT_NOTICE",
    "Dated",
    "FileChange",
    "Fitted",
    "HiddenFact",
    "KeyAction",
    "Prompt",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "TranscriptLimits",
    "call",
    "came_to",
    "chat_model",
    "command_of",
    "cut",
    "extractive",
    "failure_told",
    "fit",
    "group_ends",
    "labels_in",
    "ledger",
    "load",
    "message_content",
    "named",
    "names_index",
    "normalised",
    "rendered",
    "scrubbed",
    "title",
    "told",
    "transcript",
    "unfinished",
    "without_texts",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = door(
        __package__,
        brief="FLOOR LIMITS TranscriptLimits fit group_ends transcript",
        extracts="MODEL extractive",
        facts_ledger="HiddenFact ledger",
        fitting="Fitted",
        labels="labels_in",
        outcomes="came_to failure_told without_texts",
        prompts="Prompt load unfinished",
        returned="EMPTY normalised",
        summarizers="NAMED call chat_model named",
        texts="RESULT_ROLES SYSTEM_ROLES command_of cut message_content scrubbed",
        values=(
            "TIMED_OUT_NOTICE FileChange KeyAction Summarizer Summary SummaryRequest rendered title"
        ),
        whole="Dated told",
    )
