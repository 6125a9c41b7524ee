"""Sessions of Claude Code (1.0 to 2.1): several rows of JSON a message, several runs a file.

Reading (`rows`) and sorting (`tree`) come first; here the rows of each run become
messages of the OpenAI chat shape. What a row says beyond its message is kept under one extra key,
``claude_code``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ...messages import Message
from ...text import Fields
from ..blocks import assistant_message, user_messages
from ..events import (
    Event,
    Noted,
    Opened,
    Stem,
    fields_of,
    first_text,
    iso_milliseconds,
    without,
)
from ..source import Source
from .compactions import said, with_beside
from .rows import Reading, Row, constant_of, differences, is_unread
from .sessions import Sessions
from .titles import prompt_titles
from .tree import (
    MAIN,
    Indices,
    Run,
    continued,
    in_order,
    is_prompt,
    parents_of,
    prompts_of,
    runs_of,
)

SYNTHETIC = "<synthetic>"
"""The model of answers that no model gave: Claude Code's own notices."""

Members = dict[Run, list[int]]
"""The rows of each run, by index, in the order of the file."""
Uses = dict[str, int]
"""How often each id was used, as it is or with a number."""


class Draft(NamedTuple):
    """Rows, by index, of one message of the API; a user's content may make several of ours."""

    indices: list[int]
    messages: list[Message]


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a row of such a session."""
    if not isinstance(value, dict) or "role" in value:
        return False
    kind = value.get("type")
    if kind == "summary":
        return isinstance(value.get("leafUuid"), str)
    if kind == "file-history-snapshot" and "messageId" in value:
        return True
    return isinstance(kind, str) and isinstance(value.get("sessionId"), str)


def foreign(value: Any) -> str | None:
    """Return the program whose rows only look like these, None where they can be read."""
    message = fields_of(fields_of(value).get("message"))
    return "Qwen Code" if is_unread(message) else None


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file: the main line, then abandoned branches and subagents.

    Notes on what was left out come last.
    """
    sessions = Sessions(keeps_beside=source.keeps_beside)
    yield from sessions.read(source)
    for reading in sessions.readings:
        yield from _events(reading, source.stem)
    for reading in sessions.readings:
        yield from reading.notes()


def _events(reading: Reading, stem: str) -> Iterator[Event]:
    parents = parents_of(reading.rows, reading.anchors)
    members = _members(runs_of(reading.rows, parents))
    session = _Session(stem, reading, parents, members)
    for run in sorted(members, key=lambda run: run != MAIN):
        yield from session.events(run)
    if not members:
        yield Noted(None, "no message in this file")


def _members(runs: list[Run]) -> Members:
    members: Members = {}
    for index, run in enumerate(runs):
        members.setdefault(run, []).append(index)
    return members


class _Session:
    """Make the events of each run of a file.

    ``_ends`` holds for each run, message by message of the API, its first row and how many messages
    there are with it.
    """

    def __init__(self, stem: str, reading: Reading, parents: Indices, members: Members) -> None:
        self._reading = reading
        self._rows = reading.rows
        self._parents = parents
        self._members = members
        own = members.get(MAIN) or range(len(self._rows))
        self._id = self._first_said("sessionId", reversed(own)) or stem
        self._ids: dict[int, str] = {}
        self._counts: dict[int, int] = {}
        self._ends: dict[Run, list[tuple[int, int]]] = {}
        self._stems: dict[Run, Stem] = {}
        self._calls = dict(prompts_of(self._rows))

    def events(self, run: Run) -> Iterator[Event]:
        """Return a run's session and messages."""
        indices = self._members[run]
        name = self._name(run)
        constant = constant_of([self._rows[index] for index in indices])
        messages = self._messages(run, constant)
        root = self._first_said("cwd", indices)
        prompts = prompt_titles(messages)
        titles = (*self._given_titles(run), *prompts)
        metadata = self._metadata(run, constant)
        title = next(iter(titles), None)
        stem = self._stem(run) if run.kind == "branch" else None
        yield Opened(name, title, root, metadata, titles=titles, stem=stem)
        yield from with_beside(said(messages), self._beside(run))
        if run.kind == "branch":
            followed = f"with {len(messages) - 1} messages after it"
            yield Noted(None, f"a prompt that was taken back, {followed}, is session {name!r}")

    def _beside(self, run: Run) -> dict[int, list[Fields]]:
        """Return what stood beside a run's messages, by how many there are with each."""
        found: dict[int, list[Fields]] = {}
        for index in self._members[run]:
            if index in self._reading.beside:
                rows = found.setdefault(self._counts[index], [])
                rows += self._reading.beside[index]
        return found

    def _first_said(self, key: str, indices: Iterable[int]) -> str | None:
        """Return the first text that rows say under a key of their envelopes."""
        return first_text(self._rows[index].envelope.get(key) for index in indices)

    def _messages(self, run: Run, constant: Fields) -> list[Message]:
        """Return the messages of a run, and remember the id of each row's first message."""
        drafts = _drafts(self._rows, self._members[run])
        order = in_order(len(drafts), _Precedence(drafts, self._parents).needs)
        ordered = [drafts[place] for place in order]
        ends = accumulate(len(draft.messages) for draft in ordered)
        self._ends[run] = [
            (draft.indices[0], end) for draft, end in zip(ordered, ends, strict=True)
        ]
        for draft, (_, end) in zip(ordered, self._ends[run], strict=True):
            self._counts |= dict.fromkeys(draft.indices, end)
        finished = _finished(ordered, self._rows, constant)
        messages = list(chain.from_iterable(finished))
        for draft in drafts:
            message_id: str = draft.messages[0].get("id", "")
            self._ids |= dict.fromkeys(draft.indices, message_id)
        return messages

    def _stem(self, branch: Run) -> Stem | None:
        """Return the messages that stood before a prompt that was taken back."""
        prompt = int(branch.name)
        run = self._run_of(self._parents[prompt])
        if run not in self._ends:
            return None
        above = self._stems[run].after if run in self._stems else 0
        before = (end for first, end in self._ends[run] if first < prompt)
        self._stems[branch] = Stem(self._name(run), above + max(before, default=0))
        return self._stems[branch]

    def _run_of(self, index: int | None) -> Run:
        holders = (run for run, indices in self._members.items() if index in indices)
        return next(holders, MAIN)

    def _name(self, run: Run) -> str:
        if run == MAIN:
            return self._id
        name = run.name
        if run.kind != "agent":
            name = self._rows[int(run.name)].uuid or run.name
        return f"{self._id}/{run.kind}-{name}"

    def _given_titles(self, run: Run) -> list[str]:
        """Return the titles that were given to a session, the present one first."""
        title = self._reading.title()
        return [title, *self._reading.titles()] if title and run == MAIN else []

    def _metadata(self, run: Run, constant: Fields) -> Fields:
        """Return where a session hangs, and what all its rows say the same."""
        return {**self._links(run), "claude_code": constant}

    def _links(self, run: Run) -> Fields:
        """Return what a session continues, the message before a branch, the call of a subagent."""
        if run == MAIN:
            agents, first = self._reading.agents, self._rows[self._members[MAIN][0]]
            links = continued(first, self._id, self._reading.anchors)
            return {**links, "agents": agents} if agents else links
        links = {"parent_session": self._id}
        if run.kind == "branch":
            return {**links, "forked_after": self._id_above(int(run.name))}
        links |= {"agent_id": run.name} if run.kind == "agent" else {}
        call = self._reading.agents.get(run.name) or self._call_of(self._first_row(run))
        if call:
            links["parent_call"] = call
        return links

    def _id_above(self, index: int) -> str | None:
        parent = self._parents[index]
        return None if parent is None else self._ids.get(parent)

    def _first_row(self, run: Run) -> Row:
        return self._rows[self._members[run][0] if run.kind == "agent" else int(run.name)]

    def _call_of(self, root: Row) -> str | None:
        """Return the call whose prompt is a subagent's first text; 1.0 has no other link."""
        prompt = root.blocks[0].get("text") if root.blocks else None
        return self._calls.get(prompt) if isinstance(prompt, str) else None


def _drafts(rows: Sequence[Row], indices: Sequence[int]) -> list[Draft]:
    """Return a run's messages in the order of their first rows.

    One API message may be several rows. A message id without a request's beside it comes from
    elsewhere, and may be the same for every answer: there it counts within its turn.
    """
    merged: dict[object, list[int]] = {}
    turn = 0
    for index in indices:
        row = rows[index]
        turn += _begins_turn(row)
        merged.setdefault(_message_key(index, row, turn), []).append(index)
    return [_draft(rows, group) for group in merged.values()]


def _begins_turn(row: Row) -> bool:
    return is_prompt(row) and row.envelope.get("isMeta") is not True


def _message_key(index: int, row: Row, turn: int) -> object:
    """Return what is equal for all rows of one API message."""
    if row.role == "assistant" and row.message_id:
        return row.message_id, row.request_id or turn
    return index


def _draft(rows: Sequence[Row], group: list[int]) -> Draft:
    first = rows[group[0]]
    if first.role == "user":
        return Draft(group, user_messages(first.content, first.blocks))
    blocks = [block for index in group for block in rows[index].blocks]
    return Draft(group, [_answer(blocks)])


def _answer(blocks: list[Fields]) -> Message:
    message, order = assistant_message(blocks)
    if order:
        message["claude_code"] = {"block_order": order}
    return message


class _Precedence:
    """What must stand before each message: its parent, and the calls that it answers."""

    def __init__(self, drafts: Sequence[Draft], parents: Indices) -> None:
        self._drafts = drafts
        self._parents = parents
        self._places: dict[int, int] = {}
        self._callers: dict[object, int] = {}
        for place, draft in enumerate(drafts):
            self._places |= dict.fromkeys(draft.indices, place)
            for call in draft.messages[0].get("tool_calls", ()):
                if isinstance(call.get("id"), str):
                    self._callers.setdefault(call["id"], place)

    def needs(self, place: int) -> list[int]:
        """Return the places of the messages that the message at a place must come after.

        Where rows are out of order, the first row may follow its own message, or the result of
        another of its calls: that is no parent.
        """
        found: list[int | None] = list(self._answered(place))
        for above in self._above(place):
            if above != place and place not in self._answered(above):
                found.insert(0, above)
                break
        return [each for each in found if each is not None]

    def _above(self, place: int) -> Iterator[int | None]:
        for index in self._drafts[place].indices:
            parent = self._parents[index]
            yield None if parent is None else self._places.get(parent)

    def _answered(self, place: int | None) -> list[int | None]:
        """Return the places of the calls that the message at a place answers."""
        if place is None:
            return []
        messages = self._drafts[place].messages
        return [self._callers.get(message.get("tool_call_id")) for message in messages]


def _finished(
    drafts: Sequence[Draft], rows: Sequence[Row], constant: Fields
) -> Iterator[list[Message]]:
    """Give each message its id, its time, and what its rows say beyond it.

    Where rows make several messages, the first has what they say, the others only their uuids.
    """
    taken: Uses = {}
    for draft in drafts:
        own = [rows[index] for index in draft.indices]
        extra = _extra(own, constant)
        for message in draft.messages:
            _identify(message, own[0], taken)
            message["claude_code"] = extra | message.get("claude_code", {})
            message_id = own[0].message_id
            if message_id and message.get("id") != message_id:
                message["claude_code"]["message_id"] = message_id
            extra = {"uuids": extra["uuids"]}
        yield draft.messages


def _identify(message: Message, row: Row, taken: Uses) -> None:
    """Give a message its id and its time."""
    message_id = _free(_wanted_id(row), row.uuid, taken)
    if message_id:
        message["id"] = message_id
    at = iso_milliseconds(row.envelope.get("timestamp"))
    if at is not None:
        message["timestamp"] = at


def _wanted_id(row: Row) -> str | None:
    if row.role != "assistant" or row.api.get("model") == SYNTHETIC:
        return row.uuid
    return row.message_id or row.uuid


def _free(wanted: str | None, uuid: str | None, taken: Uses) -> str | None:
    """Return an id no message of the session has: the wanted one, the row's, that with a number."""
    if wanted is None:
        return None
    if wanted in taken:
        wanted = _numbered(uuid or wanted, taken)
    taken[wanted] = 1
    return wanted


def _numbered(base: str, taken: Uses) -> str:
    name = base
    while name in taken:
        name = f"{base}#{taken[base]}"
        taken[base] += 1
    return name


def _extra(rows: Sequence[Row], constant: Fields) -> Fields:
    """Return what a message's rows say beyond the API's message.

    The keys are the first row's; what a later row says otherwise is under ``later_lines``, row by
    row. What belongs to the API's message is the last that was said: its numbers grow.
    """
    first, *later = rows
    envelope = first.envelope
    extra: Fields = {"uuids": [row.uuid for row in rows]}
    extra |= without(envelope, *constant)
    for key, held in _last_said(rows).items():
        extra[f"message_{key}" if key in envelope else key] = held
    if later:
        extra["later_lines"] = [differences(envelope, row.envelope) for row in later]
    copies = [uuid for row in rows for uuid in row.copies]
    if copies:
        extra["copies"] = copies
    return extra


def _last_said(rows: Iterable[Row]) -> Fields:
    """Return what rows say of their API message, of each key the last value."""
    api: Fields = {}
    for row in rows:
        for key, held in row.api.items():
            if held is not None or key not in api:
                api[key] = held
    return api
