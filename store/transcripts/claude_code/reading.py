"""Sessions of Claude Code (1.0 to 2.1): several rows of JSON a message, several runs a file.

Collecting the rows (`collecting`) and sorting them (`tree`, `drafts`) come first; here each run is
told, message by message of the OpenAI chat shape, as its rows are taken off their shelf again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ...messages import Message
from ...text import JsonFields
from ..events import (
    Event,
    ForkPoint,
    NoteEvent,
    SessionEvent,
    find_first_text,
    get_fields,
    get_text,
)
from ..shelf import Shelf
from ..source import TranscriptSource
from .collecting import ConversationCollector
from .compactions import add_side_rows, add_summary_ranges
from .drafts import RunMessages, order_run_messages
from .messages import build_row_messages
from .rows import ConversationRow, find_constant_fields, has_only_parts
from .sessions import SessionSorter
from .titles import list_prompt_titles
from .tree import MAIN_RUN, RowRun, assign_runs


class MessageEnds(NamedTuple):
    """Of each message of the API its first row, and how many messages there are with it."""

    firsts: array[int]
    counts: array[int]


def is_claude_code_row(value: Any) -> bool:
    """Tell whether a JSON value is a row of such a session."""
    if not isinstance(value, dict) or "role" in value:
        return False
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
    with Shelf() as shelf:
        sessions = SessionSorter(shelf, keeps_beside=source.keeps_beside)
        yield from sessions.read(source)
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
        self._runs = assign_runs(self._rows.outlines, self._parents)
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
        """Return the messages that stood before a prompt that was taken back."""
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
