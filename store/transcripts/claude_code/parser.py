"""Sessions of Claude Code (1.0 to 2.1): several rows of JSON a message, several runs a file.

Collecting the rows (`collecting`) and sorting them (`tree`, `drafts`) come first; here each run is
told, message by message of the OpenAI chat shape, as its rows are taken off their buffer again.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ...records import Message
from ...text import JsonFields
from ..blocks import build_assistant_message, build_user_messages, parse_blocks
from ..disk_buffer import DiskBuffer, KeyNumbers
from ..parser_events import (
    CompactionEvent,
    Event,
    ForkPoint,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SideRowsEvent,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_text,
    parse_iso_milliseconds,
    render_title,
)
from ..source import TranscriptSource
from .rows import ConversationRow, find_constant_fields, has_only_parts, pick_differing_fields
from .sessions import ConversationCollector, SessionRows, SessionSorter
from .tree import MAIN_RUN, RowGroup, RowRun, RunMessages, assign_runs, order_run_messages
from .web import has_loglines, list_session_values

CLAUDE_CODE_INJECTIONS = ("<", "Caveat:", "[Request interrupted")
"""How user texts begin that no user typed."""

_MARKUP_TAG = re.compile(r"<[^<>]*>")


def list_prompt_titles(messages: Iterable[Message]) -> list[str]:
    """Return the first text that a user typed, then the first command, cut for a title."""
    users = (message for message in messages if message["role"] == "user")
    texts = (text for message in users for text in _list_user_texts(message))
    first = next(texts, "")
    typed = next(
        (
            text
            for text in chain([first], texts)
            if not text.lstrip().startswith(CLAUDE_CODE_INJECTIONS)
        ),
        "",
    )
    lines = map(render_title, (typed, _MARKUP_TAG.sub(" ", first[:1000])))
    return [line for line in lines if line]


def _list_user_texts(message: Message) -> list[str]:
    """Return the texts of a user message; none where Claude Code wrote it."""
    extra = message["claude_code"]
    if extra.get("isMeta") or extra.get("isCompactSummary"):
        return []
    texts = (block.get("text") for block in parse_blocks(message["content"]) or [])
    return [text for text in texts if isinstance(text, str) and text.strip()]


def add_summary_ranges(messages: Iterable[Message], *, compacts: bool) -> Iterator[Event]:
    """Yield the messages and, if the program compacts the context, the range of each summary."""
    places = KeyNumbers()
    for place, message in enumerate(messages):
        yield SessionMessage(message)
        facts = message["claude_code"]
        if facts.get("isCompactSummary") is True:
            through = _count_before_preserved(facts, places, place)
            yield from [CompactionEvent(through)] if through else []
        for uuid in (
            [each for key in ("uuids", "copies") for each in facts.get(key, ()) if each]
            if compacts
            else ()
        ):
            places.setdefault(uuid, place)


def _count_before_preserved(facts: JsonFields, places: KeyNumbers, summary: int) -> int:
    """Return the place of the first message that a compaction preserved, else of its summary."""
    told = get_fields(facts.get("compactMetadata"))
    kept = [get_fields(told.get("preservedSegment")).get("headUuid")]
    kept += get_list(get_fields(told.get("preservedMessages")).get("uuids"))
    found = (places.get(each) for each in kept if isinstance(each, str))
    return min((place for place in found if place is not None), default=summary)


def add_side_rows(
    events: Iterable[Event],
    places: Mapping[int, list[int]],
    rows_at: Callable[[list[int]], list[JsonFields]],
) -> Iterator[Event]:
    """Yield events, and after the n-th message the rows kept beside it, from ``places[n]``."""
    count = 0
    for event in events:
        yield event
        count += isinstance(event, SessionMessage)
        if isinstance(event, SessionMessage) and count in places:
            yield SideRowsEvent(rows_at(places[count]))


SYNTHETIC_MODEL = "<synthetic>"
"""The model of answers that no model gave: Claude Code's own notices."""


def build_row_messages(
    rows: SessionRows, drafts: Iterable[RowGroup], constant: JsonFields
) -> Iterator[tuple[RowGroup, list[Message]]]:
    """Yield drafts with the messages that they make, which say nothing that all rows say.

    Each message has its id, its time, and what its rows say beyond it. Where rows make several
    messages, the first has what they say, the others only their uuids.
    """
    taken = KeyNumbers()
    for draft in drafts:
        own = [*rows.of(draft)]
        first = own[0]
        if first.role == "user":
            messages = build_user_messages(first.content, first.blocks)
        else:
            blocks = [block for row in own for block in row.blocks]
            entry, order = build_assistant_message(blocks)
            if order:
                entry["claude_code"] = {"block_order": order}
            messages = [entry]
        extra = _collect_row_extra(own, constant)
        copies = [uuid for index in draft for uuid in rows.copies.get(index, ())]
        if copies:
            extra["copies"] = copies
        for message in messages:
            _set_id_and_time(message, own[0], taken)
            message["claude_code"] = extra | message.get("claude_code", {})
            message_id = own[0].message_id
            if message_id and message.get("id") != message_id:
                message["claude_code"]["message_id"] = message_id
            extra = {"uuids": extra["uuids"]}
        yield draft, messages


def _set_id_and_time(message: Message, row: ConversationRow, taken: KeyNumbers) -> None:
    """Give a message its id and its time."""
    if row.role != "assistant" or row.api.get("model") == SYNTHETIC_MODEL:
        wanted = row.uuid
    else:
        wanted = row.message_id or row.uuid
    if wanted is None:
        message_id = None
    else:
        if wanted in taken:
            base = row.uuid or wanted
            name = base
            while name in taken:
                used = taken.get(base) or 0
                name, taken[base] = f"{base}#{used}", used + 1
            wanted = name
        taken[wanted] = 1
        message_id = wanted
    if message_id:
        message["id"] = message_id
    at = parse_iso_milliseconds(row.envelope.get("timestamp"))
    if at is not None:
        message["timestamp"] = at


def _collect_row_extra(rows: Sequence[ConversationRow], constant: JsonFields) -> JsonFields:
    """Return what a message's rows say beyond the API's message.

    The keys are the first row's; what a later row says otherwise is under ``later_lines``, row by
    row. What belongs to the API's message is the last that was said: its numbers grow.
    """
    first, *later = rows
    envelope = first.envelope
    extra: JsonFields = {"uuids": [row.uuid for row in rows]}
    extra |= drop_keys(envelope, *constant)
    api: JsonFields = {}
    for record in rows:
        for name, value in record.api.items():
            if value is not None or name not in api:
                api[name] = value
    for key, held in api.items():
        extra[f"message_{key}" if key in envelope else key] = held
    if later:
        extra["later_lines"] = [pick_differing_fields(envelope, row.envelope) for row in later]
    return extra


class MessageEnds(NamedTuple):
    """Of each message of the API its first row, and how many messages there are with it."""

    firsts: array[int]
    counts: array[int]


def is_claude_code_row(value: Any) -> bool:
    """Tell whether a JSON value is a row of such a session, or holds its rows."""
    if not isinstance(value, dict) or "role" in value:
        return False
    if has_loglines(value):
        return True
    kind = value.get("type")
    if kind == "summary":
        return isinstance(value.get("leafUuid"), str)
    if kind == "file-history-snapshot" and "messageId" in value:
        return True
    return isinstance(kind, str) and isinstance(value.get("sessionId"), str)


def find_claude_code_lookalike(value: Any) -> str | None:
    """Return the program whose rows only look like these, None where they can be read."""
    message = get_fields(get_fields(value).get("message"))
    return "Qwen Code" if has_only_parts(message) else None


def parse_claude_code(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file: the main line, then abandoned branches and subagents.

    Notes on omitted parts come last.
    """
    with DiskBuffer() as buffer:
        sessions = SessionSorter(buffer, keeps_beside=source.keeps_beside)
        yield from sessions.read(list_session_values(source))
        for reading in sessions.readings:
            session = _SessionRuns(source.stem, reading)
            yield from chain.from_iterable(map(session.events, session.runs()))
            if not reading.rows:
                yield NoteEvent(None, "no message in this file")
    for reading in sessions.readings:
        yield from reading.notes()


class _SessionRuns:
    """Make the events of each run of a file.

    ``_members`` are the rows of each run, in the order of the file, ``_ends`` where its messages
    end; ``_ids`` are the ids of those messages that stand before prompts which were taken back, by
    their rows.
    """

    def __init__(self, stem: str, reading: ConversationCollector) -> None:
        self._reading = reading
        self._rows = reading.rows
        self._parents = reading.parents()
        self._runs = assign_runs(self._rows.outlines, self._parents, self._rows.entered)
        self._members: dict[RowRun, array[int]] = {}
        for index, run in enumerate(self._runs):
            self._members.setdefault(run, array("q")).append(index)
        own = self._members.get(MAIN_RUN) or range(len(self._rows))
        self._id = self._first_said("sessionId", reversed(own)) or stem
        left = [int(run.name) for run in self._members if run.kind == "branch"]
        self._ids = dict.fromkeys(map(self._parents.__getitem__, left))
        self._ends: dict[RowRun, MessageEnds] = {}
        self._stems: dict[RowRun, ForkPoint] = {}

    def runs(self) -> list[RowRun]:
        """Return the runs, the main line first."""
        return sorted(self._members, key=lambda run: run != MAIN_RUN)

    def events(self, run: RowRun) -> Iterator[Event]:
        """Return a run's session and messages."""
        indices = self._members[run]
        name = self._name(run)
        constant = find_constant_fields(self._rows.of(indices))
        drafts = order_run_messages(self._rows, self._parents, indices)
        self._ends[run] = self._ends_of(drafts)
        root = self._first_said("cwd", indices)
        prompts = list_prompt_titles(self._messages(drafts, constant))
        titles = (*self._given_titles(run), *prompts)
        metadata = self._metadata(run, constant)
        title = next(iter(titles), None)
        stem = self._stem(run) if run.kind == "branch" else None
        yield SessionEvent(name, title, root, metadata, titles=titles, stem=stem)
        compacts = any(self._rows.outlines[index].is_summary for index in indices)
        messages = add_summary_ranges(self._messages(drafts, constant), compacts=compacts)
        yield from add_side_rows(messages, self._beside(run, drafts), self._reading.beside_of)
        if run.kind == "branch":
            followed = f"with {self._ends[run].counts[-1] - 1} messages after it"
            yield NoteEvent(None, f"a prompt that was taken back, {followed}, is session {name!r}")

    def _ends_of(self, drafts: RunMessages) -> MessageEnds:
        counts = accumulate(self._rows.outlines[first].width for first in drafts.firsts)
        return MessageEnds(drafts.firsts, array("q", counts))

    def _beside(self, run: RowRun, drafts: RunMessages) -> dict[int, list[int]]:
        """Return where what stood beside a run's messages is, by how many there are with each."""
        beside = self._reading.beside
        if not beside:
            return {}
        ended = zip(drafts, self._ends[run].counts, strict=True)
        counts = {index: count for draft, count in ended for index in draft}
        found: dict[int, list[int]] = {}
        for index in filter(beside.__contains__, self._members[run]):
            found.setdefault(counts[index], []).extend(beside[index])
        return found

    def _first_said(self, key: str, indices: Iterable[int]) -> str | None:
        """Return the first text that rows say under a key of their envelopes."""
        return find_first_text(row.envelope.get(key) for row in self._rows.of(indices))

    def _messages(self, drafts: RunMessages, constant: JsonFields) -> Iterator[Message]:
        """Yield the messages of a run, and keep the ids that are asked for."""
        for draft, messages in build_row_messages(self._rows, drafts, constant):
            for index in filter(self._ids.__contains__, draft):
                self._ids[index] = messages[0].get("id", "")
            yield from messages

    def _stem(self, branch: RowRun) -> ForkPoint | None:
        """Return the messages before a prompt that was taken back."""
        prompt = int(branch.name)
        run = self._run_of(self._parents[prompt])
        if run not in self._ends:
            return None
        above = self._stems[run].after if run in self._stems else 0
        ends = zip(*self._ends[run], strict=True)
        before = max((end for first, end in ends if first < prompt), default=0)
        self._stems[branch] = ForkPoint(self._name(run), above + before)
        return self._stems[branch]

    def _run_of(self, index: int | None) -> RowRun:
        return MAIN_RUN if index is None else self._runs[index]

    def _name(self, run: RowRun) -> str:
        if run == MAIN_RUN:
            return self._id
        name = run.name
        if run.kind != "agent":
            name = self._rows[int(run.name)].uuid or run.name
        return f"{self._id}/{run.kind}-{name}"

    def _given_titles(self, run: RowRun) -> list[str]:
        """Return the titles that were given to a session, the present one first."""
        title = self._reading.title()
        return [title, *self._reading.titles()] if title and run == MAIN_RUN else []

    def _metadata(self, run: RowRun, constant: JsonFields) -> JsonFields:
        """Return where a session hangs, and what all its rows say the same."""
        return {**self._links(run), "claude_code": constant}

    def _links(self, run: RowRun) -> JsonFields:
        """Return what a session continues, the message before a branch, the call of a subagent."""
        if run == MAIN_RUN:
            agents, first = self._reading.agents.calls, self._rows[self._members[MAIN_RUN][0]]
            links: JsonFields = {}
            before = get_text(first.envelope.get("sessionId"))
            if before not in (None, self._id):
                links["parent_session"] = before
            if first.parent and first.parent not in self._reading.anchors:
                links["continues"] = first.parent
            return {**links, "agents": agents} if agents else links
        links = {"parent_session": self._id}
        if run.kind == "branch":
            return {**links, "forked_after": self._id_above(int(run.name))}
        links |= {"agent_id": run.name} if run.kind == "agent" else {}
        call = self._reading.agents.calls.get(run.name) or self._call_of(self._first_row(run))
        if call:
            links["parent_call"] = call
        return links

    def _id_above(self, index: int) -> str | None:
        return self._ids[self._parents[index]]

    def _first_row(self, run: RowRun) -> ConversationRow:
        return self._rows[self._members[run][0] if run.kind == "agent" else int(run.name)]

    def _call_of(self, root: ConversationRow) -> str | None:
        """Return the call whose prompt is a subagent's first text; 1.0 has no other link."""
        prompt = root.blocks[0].get("text") if root.blocks else None
        return self._reading.agents.call_that_asks(prompt) if isinstance(prompt, str) else None
