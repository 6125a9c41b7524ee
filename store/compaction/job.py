"""The job of a summarizer: prepared in one reading transaction, done outside of any.

A job holds the part to be hidden, and the input of the summarizer: the transcript or the messages,
the facts, the earlier summary, the names that occur. Whatever a summarizer does, nothing escapes as
a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, overload

from sqlalchemy import Connection, bindparam, select

from ..database import Statement, pause_gc, summaries
from ..errors import StoreError, SummaryGenerationError, SummaryTimedOut
from ..history import lines, load_session_chat_messages, load_tool_kinds
from ..messages import Message, find_message_time
from ..phrases import PHRASES, render_phrase
from ..policy import Policy
from ..records import Compaction, Outcome, Reason, StoredMessage
from ..summaries import (
    EXTRACTIVE_MODEL,
    TIMED_OUT_NOTICE,
    DatedMessage,
    FittedTranscript,
    Summarizer,
    Summary,
    SummaryRequest,
    build_facts_ledger,
    call_summarizer,
    describe_unfinished_turn,
    extractive,
    fit_brief_transcript,
    fit_whole_transcript,
    get_labels,
    load,
    names_index,
)
from ..view import ActiveSummary, ViewContext, list_range_summaries
from .log_messages import CompactionLog
from .plan import Plan, PlanOptions, build_plan, choose_plan, select_replaced_summaries
from .range_facts import load_hidden_facts
from .record_rows import PlannedPart, build_unrecorded_answer, find_first_time, load_source
from .triggers import NO_ADDITIONS, NextRequest, ViewCost, load_view_cost, mark_still_over

MESSAGES_AT_ONCE = 500
"""Messages that are read in one go: a transcript may have no room for more, and memory need not."""

KindsByTool = Mapping[str, str]
"""The kind of a tool, by its name."""

TURN_GOES_ON = PHRASES["turn_goes_on"]
"""The end of a summary that cuts a running turn, by the language of the policy."""

MOST_SCANNED = 1_000_000
"""Code points of messages that are searched for names, from the newest one on."""

NAMES_AT_ONCE = 100
"""Messages that are searched for names in one go."""

SUMMARY_NAMES = Statement(
    select(summaries.c.names).where(
        summaries.c.tree_id == bindparam("tree_id"),
        summaries.c.summary == bindparam("number"),
    )
)

ReadMessages = Callable[[int, int], list[StoredMessage]]
"""A function that reads a line's raw messages from one position to another."""


def split_range(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last positions of each part of a range that is read in one go."""
    for start in range(first, last + 1, MESSAGES_AT_ONCE):
        yield start, min(start + MESSAGES_AT_ONCE - 1, last)


class Transcript(NamedTuple):
    """A plan, the messages that it hides, and a text that shows all of them.

    ``messages`` are None and the text is empty for a summarizer that reads the messages itself.
    """

    plan: Plan
    messages: list[Message] | None
    text: str


class FittedPlan(NamedTuple):
    """A plan, and a transcript of as many of its messages as fit."""

    plan: Plan
    fitted: FittedTranscript

    @property
    def is_complete(self) -> bool:
        """Whether the transcript shows all that the plan hides."""
        return self.fitted.messages_shown == self.plan.messages


def build_transcript(
    cost: ViewCost, plan: Plan, options: PlanOptions, kinds: KindsByTool
) -> Transcript | None:
    """Return a transcript of all that a plan hides; the cut moves back until all of it fits.

    None if not even the first messages fit.
    """
    reader = TranscriptReader(cost.context, kinds)
    current = FittedPlan(plan, reader.fit(plan))
    for boundary in (options.boundary, "group"):
        if current.is_complete:
            break
        reach = reader.reach(current)
        smaller = build_plan(cost, options._replace(boundary=boundary, reach=reach))
        if smaller.nothing:
            continue
        current = current._replace(plan=smaller)  # the text may be all of the smaller plan
        if not current.is_complete:
            current = FittedPlan(smaller, reader.fit(smaller))
    if not current.is_complete:
        return None
    messages = [each.message for each in reader.cached(current.plan)]
    return Transcript(current.plan, messages, current.fitted.transcript)


class TranscriptReader:
    """The messages of a line from the first visible one on, read once, when they are needed."""

    def __init__(self, context: ViewContext, kinds: KindsByTool) -> None:
        self._context = context
        self._kinds = kinds
        self._cache: list[StoredMessage] = []

    def fit(self, plan: Plan) -> FittedTranscript:
        """Return a transcript of as many messages that a plan hides as fit in it."""
        policy = self._context.policy
        labels = get_labels(load(policy.prompt).language)
        most = policy.transcript_max_chars
        hidden = self._read(plan)
        if policy.transcript == "brief":
            return fit_brief_transcript(
                (each.message for each in hidden), max_chars=most, labels=labels
            )
        # A message has its own time, or else that when it was stored.
        moments = ((each, find_message_time(each.message)) for each in hidden)
        dated = (
            DatedMessage(each.message, each.stored_at if moment is None else moment)
            for each, moment in moments
        )
        return fit_whole_transcript(dated, most, labels, {**self._kinds, **policy.tool_kinds})

    def reach(self, current: FittedPlan) -> int:
        """Return how many positions hold the messages that a transcript shows of a plan."""
        count = current.fitted.messages_shown
        return self._cache[count].seq - current.plan.first if count else 0

    def cached(self, plan: Plan) -> list[StoredMessage]:
        """Return the messages that a plan hides, as far as they were read."""
        return [each for each in self._cache if each.seq <= plan.last]

    def _read(self, plan: Plan) -> Iterator[StoredMessage]:
        """Yield the messages that a plan hides; none is read twice."""
        context = self._context
        yield from self.cached(plan)
        start = self._cache[-1].seq + 1 if self._cache else plan.first
        for first, last in split_range(start, plan.last):
            stored = load_session_chat_messages(
                context.connection, context.pointer.session_id, first, last
            )
            included = [each for each in stored if plan.includes(each.seq)]
            self._cache += included
            yield from included


class CompactionRequest(NamedTuple):
    """The request of a caller: the session to compact, the policy, and the summarizer."""

    session_id: str
    policy: Policy
    summarizer: Summarizer | None = None
    reason: Reason = "manual"
    next_request: NextRequest = NO_ADDITIONS


class Job(NamedTuple):
    """The input of a summarizer, and the part of the line that its summary is for.

    ``cost`` is that of the view before, by a context whose transaction is over. ``part`` is the
    part to be hidden; ``holder`` the branch that holds its last position, ``ideal_last`` the last
    position that the policy would hide if a transcript had room for everything. ``messages`` are
    None for a summarizer that reads them itself, one by one. ``times`` are the first and last time
    (ms) of the messages that the summary covers, ``tool_kinds`` the kinds of tools in the store.
    """

    cost: ViewCost
    part: PlannedPart
    holder: int
    ideal_last: int
    messages: list[Message] | None
    transcript: str
    times: tuple[int, int] | None
    tool_kinds: KindsByTool


class SummaryResult(NamedTuple):
    """The result of a summarizer: a summary, or the text in its place, and what went wrong."""

    summary: Summary | None
    error: str | None = None
    error_kind: str | None = None


def prepare_job(
    connection: Connection, request: CompactionRequest, moment: int
) -> Job | Compaction:
    """Return the job of a summarizer, or the answer that there is nothing to compact.

    Everything that will be hidden is in the transcript: if it is too long, the cut moves back.
    Raises SessionNotFound, InvalidValue for an unknown prompt.
    """
    load(request.policy.prompt)
    pointer = lines.load_pointer(connection, request.session_id)
    cost = load_view_cost(connection, pointer, request.policy, moment, request.next_request)
    context = cost.context
    plan, options = choose_plan(cost)
    if plan.nothing:
        return answer_unchanged(cost, request, plan.nothing)
    with pause_gc(plan.messages):
        kinds = load_tool_kinds(connection)
        transcript: Transcript | None = Transcript(plan, None, "")
        if request.summarizer is not None and request.summarizer is not extractive:
            transcript = build_transcript(cost, plan, options, kinds)
        if transcript is None:
            problem = "its first messages are longer than a transcript may be"
            return answer_unchanged(cost, request, problem)
        previous = select_replaced_summaries(context)
        part = build_hidden_part(context, transcript.plan, previous)
        times = part.source.times
        if times and part.previous:
            earliest = find_first_time(context, part.previous[0].first, part.previous[-1].last)
            times = (min(times[0], times[0] if earliest is None else earliest), times[1])
        return Job(
            cost=cost,
            part=part,
            holder=find_holding_branch(context, part.plan.last),
            ideal_last=plan.last,
            messages=transcript.messages,
            transcript=transcript.text,
            times=times,
            tool_kinds=kinds,
        )


def find_holding_branch(context: ViewContext, position: int) -> int:
    """Return the branch that holds a position of a line."""
    return context.raw.place(position)["branch"]


def answer_unchanged(
    cost: ViewCost, request: CompactionRequest, reason: str, outcome: Outcome = "nothing"
) -> Compaction:
    """Return the answer that nothing is hidden, with the size of the unchanged view."""
    answer = build_unrecorded_answer(
        cost.context.pointer,
        request.policy,
        outcome=outcome,
        reason=request.reason,
        error=reason,
        moment=cost.context.now,
    )
    answer = answer._replace(messages_before=cost.messages, tokens_before=cost.tokens)
    return mark_still_over(answer, request.policy, cost.added_tokens)


def build_hidden_part(
    context: ViewContext, plan: Plan, previous: tuple[ActiveSummary, ...]
) -> PlannedPart:
    """Return the part that a plan hides, with its facts and its names.

    Facts that a summary has which stays active are left out. Summaries of ranges that the plan
    covers are replaced with the previous ones.
    """
    policy = context.policy
    active = (each.last for each in context.visible.summaries if each not in previous)
    listed = load_hidden_facts(context, max(active, default=0) + 1, plan.last)
    facts = build_facts_ledger(listed, policy.facts_chars, policy.language)
    replaced = (*previous, *list_range_summaries(plan.covered))
    names, next_names = _index_names(context, plan, replaced, facts)
    source = load_source(context, plan.first, plan.last, plan.pinned)
    text = "\n".join(filter(None, (facts, names)))
    return PlannedPart(plan, replaced, text, source, next_names)


def _index_names(
    context: ViewContext, plan: Plan, previous: tuple[ActiveSummary, ...], facts: str
) -> tuple[str, str | None]:
    """Return the names to be sent with a summary, and those that the next index begins with.

    There are none if the policy has no room for them. Names in ``facts``, in an active summary or
    in a visible message are not sent, but the next index has them: they may no longer be visible
    when the next summary is written.
    """
    room = context.policy.index_chars
    if not room:
        return "", None
    root = context.pointer.project_root
    names = names_index.select_names(_collect_names(context, plan, previous), room)
    visible = plan.visible_after(context.visible)
    shown = set(_read_names(context, visible.first_kept, context.last))
    for position in visible.pinned:
        shown |= set(_read_names(context, position, position))
    texts = [facts]
    for each in context.visible.active_summaries:
        if each not in previous:
            texts += [each.body, each.facts or ""]
    shown |= names_index.extract_text_names(texts, root)
    unseen = (name for name in names if name not in shown)
    text = names_index.render_index(unseen, room, context.policy.language)
    return text, names_index.dump_index(names)


def _collect_names(
    context: ViewContext, plan: Plan, previous: tuple[ActiveSummary, ...]
) -> names_index.NameIndex:
    """Return the names in all that a summary covers.

    If an earlier summary has no index, its messages are read as well; of ranges that were hidden by
    name, the texts in their place are read.
    """
    names: names_index.NameIndex = {}
    first = plan.first
    for each in previous:
        place = {"tree_id": context.pointer.tree_id, "number": each.number}
        stored: str | None = SUMMARY_NAMES.value(context.connection, **place)
        if stored is None:
            first = min(first, each.first)
        names = names_index.merge_indexes(names, names_index.parse_index(stored))
    for each in list_range_summaries(plan.covered):
        names_index.add_message(
            names, each.last, each.message(context.policy), context.pointer.project_root
        )
    return names_index.merge_indexes(names, _read_names(context, first, plan.last))


def _read_names(context: ViewContext, first: int, last: int) -> names_index.NameIndex:
    """Return the names in the visible messages of a range of a line, from the newest one on."""
    names: names_index.NameIndex = {}
    pointer = context.pointer
    room = MOST_SCANNED
    for start in range(last - NAMES_AT_ONCE + 1, first - NAMES_AT_ONCE, -NAMES_AT_ONCE):
        end = start + NAMES_AT_ONCE - 1
        stored = load_session_chat_messages(
            context.connection, pointer.session_id, max(start, first), end
        )
        for each in reversed(stored):
            if not context.visible.shows(each.seq):
                continue
            room -= names_index.add_message(names, each.seq, each.message, pointer.project_root)
            if room < 0:
                return names
    return names


class HiddenMessages(Sequence[Message]):
    """The raw messages that a plan hides, read when they are used.

    So any number of them fits in memory.
    """

    def __init__(self, plan: Plan, read: ReadMessages) -> None:
        self._plan, self._read = plan, read

    def __len__(self) -> int:
        return self._plan.messages

    def __iter__(self) -> Iterator[Message]:
        for first, last in split_range(self._plan.first, self._plan.last):
            yield from self._between(first, last)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        position = self._plan.first + range(len(self))[index]
        for first, last in self._plan.excluded_ranges():
            if first <= position:
                position += last - first + 1
        return self._between(position, position)[0]

    def _between(self, first: int, last: int) -> list[Message]:
        stored = self._read(first, last)
        return [each.message for each in stored if self._plan.includes(each.seq)]


def summarize(job: Job, request: CompactionRequest, read: ReadMessages) -> SummaryResult:
    """Return the summary of a job, or the policy's text in its place if there is none.

    Whatever the summarizer does, nothing is raised; StoreError if the messages cannot be read.
    """
    policy = request.policy
    log = CompactionLog(request.session_id, policy)
    log.start(job.part.plan)
    try:
        summary_request = build_summary_request(job, policy, read)
        summary = call_summarizer(
            request.summarizer or extractive, summary_request, policy.summary_timeout
        )
    except SummaryGenerationError as error:
        if job.messages is None and isinstance(error.__cause__, StoreError):
            raise error.__cause__ from None  # what cannot be read is no failure of the summarizer
        log.failure(error)
        kind = type(error).__name__
        failure = SummaryResult(None, f"{kind}: {error}", kind)
        timed_out = TIMED_OUT_NOTICE if isinstance(error, SummaryTimedOut) else None
        return build_fallback_result(job, policy, failure, timed_out)
    prompt = load(policy.prompt)
    log.summary(summary, prompt)
    version = summary.prompt_version
    if summary.model not in (None, EXTRACTIVE_MODEL) and not version:
        version = prompt.version
    return SummaryResult(summary._replace(prompt_version=version or None, notice=None))


def build_summary_request(job: Job, policy: Policy, read: ReadMessages) -> SummaryRequest:
    """Return the request to a summarizer.

    It has the raw messages of the range, never placeholders, and the earlier summary.
    """
    plan = job.part.plan
    bodies = [strip_turn_end(each.body) for each in job.part.previous if each.body]
    previous = "\n\n".join(bodies) or None
    started_at, ended_at = job.times or (None, None)
    template = load(policy.prompt)
    prompt = template.fill(
        transcript=job.transcript,
        previous_summary=previous,
        max_chars=policy.summary_max_chars,
        times=(started_at, ended_at),
    )
    if plan.inside:
        prompt = f"{prompt}\n\n{describe_unfinished_turn(template.language)}"
    return SummaryRequest(
        messages=HiddenMessages(plan, read) if job.messages is None else job.messages,
        previous_summary=previous,
        transcript=job.transcript,
        prompt=prompt,
        max_chars=policy.summary_max_chars,
        first=plan.first,
        last=plan.last,
        parts_to_keep=policy.parts_to_keep,
        started_at=started_at,
        ended_at=ended_at,
        policy=policy,
        tool_kinds=job.tool_kinds,
        turn_goes_on=plan.inside,
        project_root=job.cost.context.pointer.project_root,
    )


def build_fallback_result(
    job: Job, policy: Policy, failure: SummaryResult, notice: str | None = None
) -> SummaryResult:
    """Return the policy's text for a summary that failed: a notice, if anything.

    Earlier summaries that it would replace are continued in it.
    """
    if policy.on_failure not in ("skip", "truncate"):
        return failure
    notice = notice or render_phrase("no_summary", policy.language)
    earlier = [
        strip_turn_end(each.body).removesuffix(each.notice or "").rstrip()
        for each in job.part.previous
    ]
    body = "\n\n".join(filter(None, (*earlier, notice)))
    return failure._replace(summary=Summary(body, notice=notice))


def strip_turn_end(body: str) -> str:
    """Return the body of a summary without the line that its turn goes on."""
    for line in TURN_GOES_ON.values():
        if body.endswith(line):
            return body.removesuffix(line).rstrip()
    return body
