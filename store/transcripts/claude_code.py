"""Sessions of Claude Code (1.0 to 2.1): one JSON object a line, several lines a message, several runs a file.

Reading (`claude_lines`) and sorting (`claude_tree`) come first; here the lines of each run become messages of the
OpenAI chat shape. What the envelope says beyond the API's message is kept under one extra key, ``claude_code``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .claude_blocks import Message, assistant_message, blocks_of, user_messages
from .claude_lines import Line, Reading
from .claude_tree import MAIN, Run, in_order, is_prompt, parents_of, runs_of
from .events import Event, Noted, Opened, Said, cut, milliseconds
from .source import Source

OF_ONE_MESSAGE = {
    "parentUuid",
    "logicalParentUuid",
    "timestamp",
    "requestId",
    "promptId",
    "isMeta",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "compactMetadata",
    "permissionMode",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
}
"""Envelope keys that stay with their message even where a whole session has the same value."""

SYNTHETIC = "<synthetic>"
"""The model of answers that no model gave: Claude Code's own notices."""

INJECTED = ("<", "Caveat:", "[Request interrupted")
"""How user texts begin that no user typed."""

_TAG = re.compile(r"<[^<>]*>")


class Draft(NamedTuple):
    """Lines that make one message of the API, by index; of a user's line, one or more messages of ours."""

    indices: list[int]
    messages: list[Message]


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a line of such a session."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str) or "role" in value:
        return False
    if value["type"] == "summary":
        return isinstance(value.get("leafUuid"), str)
    return isinstance(value.get("sessionId"), str) or (
        value["type"] == "file-history-snapshot" and "messageId" in value
    )


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file: the main line first, then abandoned branches and subagents; then the notes."""
    reading = Reading()
    yield from reading.read(source)
    parents = parents_of(reading.lines, reading.anchors)
    members: dict[Run, list[int]] = {}
    for index, run in enumerate(runs_of(reading.lines, parents)):
        members.setdefault(run, []).append(index)
    session = _Session(source.stem, reading, parents, members)
    for run in sorted(members, key=lambda run: run != MAIN):
        yield from session.events(run)
    if not members:
        yield Noted(None, "no message in this file", False)
    yield from reading.notes()


class _Session:
    """Make the events of each run of a file."""

    def __init__(self, stem: str, reading: Reading, parents: list[int | None], members: dict[Run, list[int]]) -> None:
        self._reading, self._lines, self._parents, self._members = reading, reading.lines, parents, members
        own = members.get(MAIN) or list(range(len(self._lines)))
        ids = (self._lines[index].envelope.get("sessionId") for index in reversed(own))
        self._id = next((each for each in ids if isinstance(each, str) and each), stem)
        self._ids: dict[int, str] = {}
        self._calls = dict(_prompts_of(self._lines))

    def events(self, run: Run) -> Iterator[Event]:
        """Return a run's session and messages."""
        indices = self._members[run]
        constant = _constant([self._lines[index].envelope for index in indices])
        drafts = _drafts(self._lines, indices)
        ordered = [drafts[place] for place in in_order(len(drafts), _needs(drafts, self._parents))]
        messages = [message for draft in _finished(ordered, self._lines, constant) for message in draft]
        self._ids.update({index: draft.messages[0].get("id", "") for draft in drafts for index in draft.indices})
        title = (self._reading.title() if run == MAIN else None) or _prompt_title(messages)
        name = self._name(run)
        yield Opened(name, title, _project_root(self._lines, indices), self._metadata(run, constant))
        yield from map(Said, messages)
        if run.kind == "branch":
            text = f"a prompt that was taken back, with {len(messages) - 1} messages after it, is session {name!r}"
            yield Noted(None, text, False)

    def _name(self, run: Run) -> str:
        if run == MAIN:
            return self._id
        name = run.name if run.kind == "agent" else self._lines[int(run.name)].uuid or run.name
        return f"{self._id}/{run.kind}-{name}"

    def _metadata(self, run: Run, constant: dict[str, Any]) -> dict[str, Any]:
        """Return what is known of the session as a whole: where it hangs, and what is the same on every line."""
        if run == MAIN:
            links: dict[str, Any] = {"agents": self._reading.agents} if self._reading.agents else {}
        else:
            links = {"parent_session": self._id, **self._links(run)}
        return {**links, "claude_code": constant}

    def _links(self, run: Run) -> dict[str, Any]:
        """Return where a run hangs on its parent: the message a branch follows, the call that began a subagent."""
        first = self._members[run][0] if run.kind == "agent" else int(run.name)
        if run.kind == "branch":
            parent = self._parents[first]
            return {"forked_after": self._ids.get(parent) if parent is not None else None}
        call = self._reading.agents.get(run.name) or self._call_of(self._lines[first])
        links = {"agent_id": run.name} if run.kind == "agent" else {}
        return {**links, "parent_call": call} if call else links

    def _call_of(self, root: Line) -> str | None:
        """Return the call whose prompt is a subagent's first text: in 1.0 the only link there is."""
        prompt = root.blocks[0].get("text") if root.blocks else None
        return self._calls.get(prompt) if isinstance(prompt, str) else None


def _prompts_of(lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Yield the prompts that the main line gives to subagents, with the call that does; the first call comes last."""
    for line in reversed(lines):
        for block in reversed(line.blocks if not line.sidechain else ()):
            given = block.get("input") if block.get("type") == "tool_use" else None
            prompt = given.get("prompt") if isinstance(given, dict) else None
            if isinstance(prompt, str) and prompt and isinstance(block.get("id"), str) and block["id"]:
                yield prompt, block["id"]


def _drafts(lines: Sequence[Line], indices: Sequence[int]) -> list[Draft]:
    """Return a run's messages in the order of their first lines: one API message may be several lines."""
    merged: dict[object, list[int]] = {}
    turn = 0
    for index in indices:
        line = lines[index]
        turn += is_prompt(line) and line.envelope.get("isMeta") is not True
        # a message id without a request's beside it comes from elsewhere, and may be the same for every answer
        key = (line.message_id, line.request_id or turn) if line.role == "assistant" and line.message_id else index
        merged.setdefault(key, []).append(index)
    return [Draft(group, _messages([lines[index] for index in group])) for group in merged.values()]


def _messages(lines: Sequence[Line]) -> list[Message]:
    first = lines[0]
    if first.role == "user":
        return user_messages(first.content, first.blocks)
    message, order = assistant_message([block for line in lines for block in line.blocks])
    return [{**message, "claude_code": {"block_order": order}} if order else message]


def _needs(drafts: Sequence[Draft], parents: Sequence[int | None]) -> Callable[[int], list[int]]:
    """Return the function that tells what a message must come after: its parent, and the call that it answers."""
    place_of = {index: place for place, draft in enumerate(drafts) for index in draft.indices}
    callers: dict[object, int] = {}
    for place, draft in enumerate(drafts):
        for call in draft.messages[0].get("tool_calls", ()):
            if isinstance(call.get("id"), str):
                callers.setdefault(call["id"], place)

    def answered(place: int | None) -> list[int | None]:
        messages = drafts[place].messages if place is not None else ()
        return [callers.get(message.get("tool_call_id")) for message in messages]

    def needs(place: int) -> list[int]:
        parent_lines = (parents[index] for index in drafts[place].indices)
        above = (place_of.get(line) if line is not None else None for line in parent_lines)
        # where lines are out of order, the first may follow its own message, or the result of another of its calls
        outside = next((each for each in above if each != place and place not in answered(each)), None)
        return [each for each in (outside, *answered(place)) if each is not None]

    return needs


def _finished(drafts: Sequence[Draft], lines: Sequence[Line], constant: dict[str, Any]) -> Iterator[list[Message]]:
    """Give each message its id, its time and its facts."""
    taken: dict[str, int] = {}
    for draft in drafts:
        own = [lines[index] for index in draft.indices]
        facts, at = _facts(own, constant), milliseconds(own[0].envelope.get("timestamp"))
        wanted = _wanted_id(own[0])
        for message in draft.messages:
            message_id = _free(wanted, own[0].uuid, taken)
            message.update({"id": message_id} if message_id else {})
            message.update({"timestamp": at} if at is not None else {})
            message["claude_code"] = facts | message.get("claude_code", {})
            if own[0].message_id and message_id != own[0].message_id:
                message["claude_code"]["message_id"] = own[0].message_id
            facts = {"uuids": facts["uuids"]}
        yield draft.messages


def _wanted_id(line: Line) -> str | None:
    synthetic = line.role != "assistant" or line.api.get("model") == SYNTHETIC
    return line.uuid if synthetic else line.message_id or line.uuid


def _free(wanted: str | None, uuid: str | None, taken: dict[str, int]) -> str | None:
    """Return an id no message of the session has: the wanted one, else the line's, else that with a number.

    ``taken`` counts for each id how often it was used as it is or with a number.
    """
    if wanted is None:
        return None
    if wanted in taken:
        wanted = base = uuid or wanted
        while wanted in taken:
            wanted, taken[base] = f"{base}#{taken[base]}", taken[base] + 1
    taken[wanted] = 1
    return wanted


def _facts(lines: Sequence[Line], constant: dict[str, Any]) -> dict[str, Any]:
    """Return what a message's lines say beside the API's message; of numbers that grow from line to line, the last.

    The keys are the first line's; what a later line says otherwise is under ``later_lines``, line by line.
    """
    first, *later = lines
    api: dict[str, Any] = {}
    for line in lines:
        api |= {key: value for key, value in line.api.items() if value is not None or key not in api}
    facts = {"uuids": [line.uuid for line in lines]} | _without(first.envelope, constant)
    facts |= {f"message_{key}" if key in first.envelope else key: value for key, value in api.items()}
    if later:
        facts["later_lines"] = [
            {key: value for key, value in line.envelope.items() if not _same(first.envelope, line.envelope, key)}
            for line in later
        ]
    copies = [uuid for line in lines for uuid in line.copies]
    return facts | ({"copies": copies} if copies else {})


def _constant(envelopes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what every envelope of a run says the same, but for what belongs to single messages."""
    first, *others = envelopes
    return {
        key: value
        for key, value in first.items()
        if key not in OF_ONE_MESSAGE and all(_same(first, other, key) for other in others)
    }


def _same(one: dict[str, Any], other: dict[str, Any], key: str) -> bool:
    return key in one and key in other and type(one[key]) is type(other[key]) and one[key] == other[key]


def _without(envelope: dict[str, Any], constant: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in envelope.items() if key not in constant}


def _prompt_title(messages: Sequence[Message]) -> str | None:
    """Return the first thing the user really said, cut for a title; the first command where nothing was said."""
    texts = [text for message in messages if message["role"] == "user" for text in _said_texts(message)]
    typed = next((text for text in texts if not text.lstrip().startswith(INJECTED)), None)
    if typed is None and texts:
        typed = _TAG.sub(" ", texts[0][:1000])
    return (cut(typed) or None) if typed else None


def _said_texts(message: Message) -> list[str]:
    """Return the texts of a user message; none where Claude Code wrote it."""
    if message["claude_code"].get("isMeta") or message["claude_code"].get("isCompactSummary"):
        return []
    texts = (block.get("text") for block in blocks_of(message["content"]) or [])
    return [text for text in texts if isinstance(text, str) and text.strip()]


def _project_root(lines: Sequence[Line], indices: Sequence[int]) -> str | None:
    roots = (lines[index].envelope.get("cwd") for index in indices)
    return next((root for root in roots if isinstance(root, str) and root), None)
