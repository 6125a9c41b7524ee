"""What comes out: frozen values, cheap to make by the ten thousand.

Times are ms since the epoch, positions from 1.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

from .errors import CompactionError, SummaryGenerationError, SummaryTimedOut
from .messages import Message


class Session(NamedTuple):
    """A session: a named pointer to a head; ``head`` is also how many messages its line has.

    ``branch`` is the branch that its head is on: with it a line can be read after the session has
    left it. ``revision`` is an opaque text that is another one after each change of the session: an
    append, a move of its head, another title, other metadata. None comes again, not where a session
    of the same id is made anew either. What is made of a session (views, compactions, usages) does
    not change it. ``owner`` is whose it is, as whoever created it said.
    """

    id: str
    title: str | None
    head: int
    project_root: str | None
    metadata: dict[str, Any]
    created_at: int
    updated_at: int
    forked_from: str | None
    forked_at: int | None
    branch: int
    revision: str
    owner: str | None
    archived: bool


class StoredMessage(NamedTuple):
    """A message on a line.

    ``message`` equals what went in, ``stored_at`` is when, ``digest`` a SHA-256 of both.
    """

    seq: int
    message: Message
    stored_at: int
    digest: bytes


class Found(NamedTuple):
    """Where a message of some id is: at the position ``seq`` of a session's branch."""

    session_id: str
    branch: int
    seq: int


class Turn(NamedTuple):
    """A turn of a line: its number, its first and last position, and what the user said.

    ``messages`` is how many there are, ``started_at`` when it was said (ms), else when stored.
    """

    turn: int
    first: int
    last: int
    text: str
    messages: int
    started_at: int


class Branch(NamedTuple):
    """A branch that a session can go back to, or the present one (``current``).

    It continues the branch ``parent`` (None: nothing) from the position ``forked_at``, and its line
    ends at ``head``. ``left_at`` is when it was last left (ms), None for the present one.
    """

    branch: int
    parent: int | None
    forked_at: int
    head: int
    left_at: int | None
    current: bool


class Sibling(NamedTuple):
    """A message that follows the same message as others do, and a branch that leads through it.

    Of several it is the one that was left last; the session's own where it is ``current``.
    """

    branch: int
    seq: int
    message: Message
    current: bool


class HeadMove(NamedTuple):
    """One entry of a session's head-move log.

    ``kind`` is ``fork``, ``rewind``, ``switch`` or ``undo``.
    """

    move: int
    kind: str
    from_position: int | None
    to_position: int
    moved_at: int
    from_branch: int | None
    to_branch: int


class Erasure(NamedTuple):
    """What a deletion removed.

    ``kept`` messages stay because other sessions' lines run through them.

    ``purged`` tells whether a purge has written the file anew since, so that no freed byte is left
    in it; on servers it stays False, because nothing there tells what they still hold. ``copies``
    are the paths of the copies of the store that may hold the bytes still. ``finished`` is False
    while rows that nobody can reach any more wait to be erased: the next opening, deletion or purge
    goes on with them.
    """

    session_id: str
    messages: int
    kept: int
    purged: bool
    copies: tuple[str, ...] = ()
    finished: bool = True


class Redaction(NamedTuple):
    """What is recorded of a message whose words were taken out.

    ``session_id`` is the session that it was asked of, ``at`` is when, in ms. ``compactions`` are
    those whose summaries were made of the message before, and may tell of it. ``purged`` tells
    whether a purge has written the file anew since, ``copies`` are the paths of the copies of the
    store that may hold the words still; on servers ``purged`` stays False.
    """

    session_id: str
    seq: int
    reason: str
    by: str | None
    at: int
    compactions: tuple[int, ...]
    purged: bool
    copies: tuple[str, ...] = ()


class Purge(NamedTuple):
    """Whether a purge was done, and why not; true if it was.

    ``removed`` and ``left`` are the copies that were removed, or were gone already, and those that
    were left, by path.
    """

    done: bool
    problem: str | None
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.done


class Copy(NamedTuple):
    """A copy of the store: where it is, when it was made (ms), how large it was (bytes).

    ``kind``: ``backup``, or ``upgrade`` for one made before an upgrade of the schema. ``number`` is
    its place in the store's list, None where an older or full store could not list it. ``size`` is
    None for one that was begun and never finished.
    """

    number: int | None
    path: str
    kind: str
    made_at: int
    size: int | None


class Removal(NamedTuple):
    """The copies that were removed, or were gone already, and those that were left, by path."""

    removed: tuple[str, ...]
    left: tuple[str, ...]


class Restored(NamedTuple):
    """Where a copy was put, its schema, and what came back with it.

    ``erased`` are the sessions that the store before it had erased: delete them again.
    ``redacted`` are the messages that it had redacted, as sessions and positions: redact them
    again.
    """

    path: str
    schema: str
    erased: tuple[str, ...]
    redacted: tuple[tuple[str, int], ...] = ()


class Entry(NamedTuple):
    """One message of a view and why it is as it is.

    ``seq`` is its position (None if the store made it), ``message`` the whole message with only its
    content replaced where ``rule`` says so; tokens are counts where they are stored, else
    estimates.
    """

    seq: int | None
    message: Message
    rule: str | None
    reason: str
    tokens: int
    tokens_saved: int


class Replaced(NamedTuple):
    """A tool result that a view sends otherwise than it is stored, and why.

    ``seq`` is its position, ``paths`` are the files it is about; ``rule`` and ``reason`` as in the
    view's entry, ``tokens`` what is sent in its place costs.
    """

    seq: int
    tool_name: str | None
    paths: tuple[str, ...]
    rule: str
    reason: str
    tokens: int
    tokens_saved: int


class ViewStats(NamedTuple):
    """Totals of a view.

    How many entries each rule touched, tokens sent and saved, and what a prompt cache loses.

    ``raw_messages`` and ``raw_tokens`` are of the whole line, ``hidden_messages`` and
    ``hidden_tokens`` of what compactions hide of it (by the estimate), ``messages`` and ``tokens``
    of what is sent. What is saved by the rule ``summary`` is what is hidden less the summaries.
    ``first_changed`` is the first position whose content differs from the raw line (None: none
    does); ``unchanged_tokens`` is how much of its beginning is as in the last recorded request
    (None: none is recorded), what a prompt cache still holds. ``left_out`` are visible positions
    that the policy's repair dropped, or that hold nothing that a chat shows. ``counted_by`` names
    the tokenizer of the counts, ``estimate`` where at least one message has no stored count; what
    the store made itself, such as placeholders and summaries, is always estimated.
    """

    messages: int
    raw_messages: int
    replaced: dict[str, int]
    tokens: int
    tokens_saved: int
    saved_by_rule: dict[str, int]
    first_changed: int | None
    counted_by: str
    unchanged_tokens: int | None
    left_out: tuple[int, ...]
    raw_tokens: int
    hidden_messages: int = 0
    hidden_tokens: int = 0


class View(NamedTuple):
    """What is sent to the model.

    ``messages`` are clean for the API, ``entries`` explain them one by one. What a message is
    depends on the format, so its type is left open and any client takes them as they are.
    """

    messages: list[Any]
    entries: list[Entry]
    stats: ViewStats
    session_id: str
    branch: int
    at: int


class Finding(NamedTuple):
    """Something `verify` found wrong.

    ``check`` names the test, ``where`` the place, ``problem`` what is wrong.
    """

    check: str
    where: str
    problem: str


class TokenTotal(NamedTuple):
    """Tokens of a session's line.

    Counted by ``encoding``, ``counted`` of ``messages`` newly in this call.
    """

    encoding: str
    messages: int
    counted: int
    tokens: int


Kind = Literal["summary", "clear", "undo"]
"""What a record of a line did: hid messages behind a summary, cleared tool results, or undid one of
these.
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

    ``kind``: ``summary`` hides a range behind a summary, ``clear`` replaces tool results from then
    on. ``outcome``: applied, rejected, failed, undone, running or nothing; ``error`` says why it is
    not ``applied``, or what its summary failed of. A result is ``rejected`` where it no longer fits
    the line, makes the view no smaller, or leaves it at the policy's trigger though without the
    summary's text it would be below; where not even that would do, it is progress and applied. A
    policy that does something without a summary does it then, and the record is ``applied``.
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
    ``file_changes`` of a path and what became of it, whoever wrote the summary.
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


class Usage(NamedTuple):
    """What a request really cost, as the provider said, and where and when (ms) it was made."""

    seq: int
    input: int
    output: int
    cached: int
    at: int
