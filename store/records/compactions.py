"""Records of compactions, the messages they hide, and the check whether one is due."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from ..errors import CompactionError, SummaryGenerationError, SummaryTimedOut

Kind = Literal["summary", "hide", "clear", "undo"]
"""The effect of a record on a line: it replaces old messages with a summary, hides a range that a
caller named, clears tool results, or undoes one of these.
"""


Outcome = Literal["running", "applied", "rejected", "failed", "undone", "nothing"]
"""The state of a compaction: it runs, hides its range, was refused or failed, was undone, or had
nothing to do.
"""


Reason = Literal["llm_call", "tool_execution", "manual"]
"""The occasion of a compaction."""


REASONS: tuple[Reason, ...] = get_args(Reason)
"""The reasons for which a compaction is made."""


ERROR_KINDS = {kind.__name__: kind for kind in (SummaryGenerationError, SummaryTimedOut)}
"""The errors that can take the place of a summary, by the name used in a record."""


class Compaction(NamedTuple):
    """One recorded compaction, or the answer that there was nothing to compact.

    Such an answer has no ``id`` and the outcome ``nothing``.

    ``kind``: ``summary`` replaces old messages with a summary, ``hide`` replaces a range that a
    caller named with a text of the caller or nothing, ``clear`` replaces tool results from then on.
    ``outcome``: applied, rejected, failed, undone, running or nothing; ``error`` says why it is not
    ``applied``, or why its summary failed. A result is ``rejected`` if it no longer fits the line,
    makes the view no smaller, or leaves it at the policy's trigger although it would be below
    without the summary's text; if even then it would not, the result is progress and is applied. If
    a policy continues without a summary, the record is ``applied``. ``reason``: ``llm_call``,
    ``tool_execution`` or ``manual``. ``hidden``: first and last position; ``first_kept``: the first
    position after them, also if they were rejected for their size; ``cleared``: pairs of a position
    and the rule that replaces it. Tokens are estimates of the view before and after, without
    repairs. ``summary`` is empty if only the facts of the messages hidden by a hard limit stay.
    ``still_over``: the remaining view would still trigger, or is over the window, by its estimate;
    it is not stored with the record. ``session_id`` is the compacted session: in the history of a
    fork it may be another one. ``pinned`` positions stay visible although they are in the range,
    ``stands_from`` is the first position that the summary covers, including those of the summaries
    that it replaced. ``error_kind`` names the error that took the place of a summary, if there was
    one. ``key_actions`` are pairs of a tool and its action, ``file_changes`` are pairs of a path
    and its change; both are complete, independent of the author and length of the summary.
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
        """The failure, as an error that was not raised; None if nothing failed.

        A SummaryGenerationError if there was no summary, even if something else was done instead;
        otherwise a CompactionError.
        """
        if self.error is None or self.outcome == "nothing":
            return None
        made = ERROR_KINDS.get(self.error_kind or "", CompactionError)
        text = self.error.removeprefix(f"{self.error_kind}: ")
        return made(text, session_id=self.session_id, reason=self.reason, can_retry=True)


class Hidden(NamedTuple):
    """The compaction that hides a message, and since when in ms (``time.compacted``)."""

    compaction: int
    compacted_at: int


class Check(NamedTuple):
    """Whether a session's view should be compacted, and why; all numbers are tokens.

    ``overflow``: it must be compacted before it is sent; ``should_compact``: it should be.
    ``tokens`` are the estimate for the view's entries, without repairs. The figure is exact if the
    results that rules replace are plain text. It may be off by 1 for a result with a ``name`` or
    other keys, and by the parts that are not text for an object or a list of parts (images count as
    if they were still sent). A summary merged into a system message counts up to 5 more.
    ``problem``: why nothing is tried although a trigger fires, as an error that was not raised.
    """

    overflow: bool
    should_compact: bool
    tokens: int
    estimated_savings: int
    reason: str
    problem: CompactionError | None = None
