"""Compactions as they are recorded, what they hide, and whether one is due."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from ..errors import CompactionError, SummaryGenerationError, SummaryTimedOut

Kind = Literal["summary", "hide", "clear", "undo"]
"""What a record of a line did: hid old messages behind a summary, hid a range that somebody named,
cleared tool results, or undid one of these.
"""


Outcome = Literal["running", "applied", "rejected", "failed", "undone", "nothing"]


Reason = Literal["llm_call", "tool_execution", "manual"]


REASONS: tuple[Reason, ...] = get_args(Reason)
"""Why a compaction is made."""


ERROR_KINDS = {kind.__name__: kind for kind in (SummaryGenerationError, SummaryTimedOut)}
"""What there may be in the place of a summary, by the name that a record and its error give it."""


class Compaction(NamedTuple):
    """One recorded compaction, or the answer that there was nothing to compact.

    Such an answer has no ``id`` and the outcome ``nothing``.

    ``kind``: ``summary`` hides what is old behind a summary, ``hide`` a range that somebody named
    behind a text of theirs or nothing, ``clear`` replaces tool results from then on. ``outcome``:
    applied, rejected, failed, undone, running or nothing; ``error`` says why it is not ``applied``,
    or what its summary failed of. A result is ``rejected`` where it no longer fits the line, makes
    the view no smaller, or leaves it at the policy's trigger though without the summary's text it
    would be below; where not even that would do, it is progress and applied. A policy that does
    something without a summary does it then, and the record is ``applied``.
    ``reason``: ``llm_call``, ``tool_execution`` or ``manual``. ``hidden``: first and last position;
    ``first_kept``: the first one behind them, also where they were rejected for their size;
    ``cleared``: pairs of a position and the rule that replaces it. Tokens are estimates of the view
    before and after, without what repairs make up. ``summary`` is empty where only the facts of
    what a hard limit hid stay. ``still_over``: the view that is left would still trigger, or is
    over the window, by its estimate; it is not kept with the record. ``session_id`` is the session
    that was compacted: in the history of a fork it may be another one. ``pinned`` positions stay
    visible though they are in the range, ``stands_from`` is the first position that the summary
    stands for, with those of the summaries that it replaced. ``error_kind`` names what there was in
    the place of a summary, if it was an error. ``key_actions`` are pairs of a tool and what it did,
    ``file_changes`` of a path and what became of it, whoever wrote the summary and whatever room
    its text had.
    """

    id: int | None
    kind: Kind
    outcome: Outcome
    reason: Reason
    policy: str | None = None
    hidden: tuple[int, int] | None = None
    first_kept: int | None = None
    cleared: tuple[tuple[int, str], ...] = ()
    summary: str | None = None
    title: str | None = None
    messages_before: int | None = None
    messages_after: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    error: str | None = None
    head: int = 0
    created_at: int = 0
    still_over: bool = False
    session_id: str | None = None
    pinned: tuple[int, ...] = ()
    undoes: int | None = None
    summary_number: int | None = None
    stands_from: int | None = None
    error_kind: str | None = None
    key_actions: tuple[tuple[str, str], ...] = ()
    file_changes: tuple[tuple[str, str], ...] = ()

    @property
    def problem(self) -> CompactionError | None:
        """What went wrong, as an error that was not raised; None where nothing did.

        A SummaryGenerationError where there was no summary, whatever was done in its place; else a
        CompactionError.
        """
        if self.error is None or self.outcome == "nothing":
            return None
        made = ERROR_KINDS.get(self.error_kind or "", CompactionError)
        text = self.error.removeprefix(f"{self.error_kind}: ")
        return made(text, session_id=self.session_id, reason=self.reason, can_retry=True)


class Hidden(NamedTuple):
    """That a message is hidden: by which compaction, and since when in ms (``time.compacted``)."""

    compaction: int
    compacted_at: int


class Check(NamedTuple):
    """Whether a session's view should be compacted, and why; all numbers are tokens.

    ``overflow``: it must be compacted before it is sent; ``should_compact``: it had better be.
    ``tokens`` are by the estimate those of the view's entries, without its repairs: exactly, where
    the results that rules replace are plain text. For one with a ``name`` or other keys it may be
    off by 1, for one that is an object or has parts by what is not text in it (images count as if
    they were still sent). A summary merged into a system message counts up to 5 more. ``problem``:
    why nothing is tried though a trigger fires, as an error that was not raised.
    """

    overflow: bool
    should_compact: bool
    tokens: int
    estimated_savings: int
    reason: str
    problem: CompactionError | None = None
