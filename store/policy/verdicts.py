"""The verdicts about tool results, and the repair of calls and results without each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .field_types import CountNumber, PolicyFieldGroup, PolicyText, PolicyToolKind


class VerdictFields(PolicyFieldGroup):
    """The verdicts about tool results, and the repair of calls and results without each other."""

    tool_kinds: Mapping[PolicyText, PolicyToolKind] = {}
    """Kinds of tools by name, which take precedence over those in the table ``tool_kinds``."""
    identity: Literal["call", "sniff"] = "call"
    """How the output of a command is recognised: by the call's name, and by content only if there
    is no name; or always by content.
    """
    errors_take_slots: bool = False
    """Count errors among the newest tool results."""
    exit_code_is_error: bool = True
    """A command that ended with another exit code than 0 failed."""
    stderr_is_error: Literal["always", "nonzero_exit", "never"] = "always"
    """When something on stderr makes output an error."""
    batch_rule: Literal["all", "any"] = "all"
    """Replace a read of several files when it is stale for all of them, or for any."""
    dedupe: bool = True
    """Count a file once in a read that names it twice."""
    range_aware: bool = False
    """Replace a read only if newer kept reads cover its lines."""
    undated: Literal["keep", "stored_at"] = "keep"
    """Keep tool results without a time (A0.9), or use the time when they were stored."""
    judge_at: Literal["now", "turn"] = "now"
    """Judge the tool results anew at each view, or as they were when the current turn began.

    With ``"turn"`` nothing before the turn changes while it runs, nothing in it is replaced, and
    over a turn requests only grow.
    """
    protect_current_turn: bool = False
    """Replace nothing from the latest user message on."""
    min_saving: CountNumber = 0
    """Code points that a replacement must save.

    At 0 everything old is replaced, but a short form still has to be shorter.
    """

    unanswered: Literal["synthetic", "drop", "keep"] = "synthetic"
    """Give a call without result an invented one, leave the call out, or keep it as it is in the
    open turn.
    """
    orphans: Literal["adopt", "drop"] = "adopt"
    """Give a result without call an invented call, so that its content stays, or leave it out."""
