"""The session of each row of a Claude Code file, if one file was appended to another.

A resumed session continues under another id, so an id alone tells nothing: a row that follows or
repeats a row of another session belongs to the same session. A row that starts anew does not.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...records import extract_content_text
from ...text import JsonFields, format_count
from ..blocks import count_user_messages, parse_blocks
from ..disk_buffer import DiskBuffer, KeyNumbers
from ..parser_events import (
    NoteEvent,
    drop_keys,
    get_fields,
    get_text,
    list_omission_notes,
    note_omission,
    note_unread_value,
)
from ..source import SourceValue
from .rows import (
    CALL_BLOCK_BY_ROLE,
    CONVERSATION_ROW_TYPES,
    ConversationRow,
    RowIndices,
    RowOutline,
    SubagentTracker,
    build_block_key,
    find_parent_uuid,
    parse_conversation_row,
)

ABSORBED_REASON = "absorbed_mid_turn"
"""Why an entry was removed that the model was given; newer programs say it, for other reasons too.
"""

_TASK_NOTICE_START = '{"task_id":'
"""How an entry begins that tells other programs of a task, not the model."""


class PromptQueue:
    """Follow a session's queue; ``_waiting`` are the rows of the entries that wait there.

    ``_entered`` maps their words to the number of rows of the conversation before they came, until
    a row says them: they may have left the queue a while ago.
    """

    def __init__(self) -> None:
        self._waiting: list[JsonFields] = []
        self._entered: dict[str, int] = {}

    @property
    def waiting(self) -> int:
        """Return how many prompts and notices were never given to the model."""
        return len(self._waiting)

    def take(self, value: JsonFields, count: int) -> JsonFields | None:
        """Take a row of the queue, which comes after a number of rows of the conversation.

        Return the user's line that it stands for, if it does.
        """
        operation = value.get("operation")
        if operation == "enqueue":
            self._enter(value, count)
        elif operation == "popAll" and not get_text(value.get("content")):
            self._waiting.clear()
            self._entered.clear()
        elif operation in ("dequeue", "popAll", "remove"):
            return self._leave(value)
        return None

    def said(self, words: str) -> bool:
        """Take out what a line or an attachment says; return whether it was waiting."""
        return self._find(words) is not None

    def entered(self, row: ConversationRow) -> int | None:
        """Return the number of rows before what a row says entered the queue, and forget it."""
        if row.role != "user" or not self._entered:
            return None
        return self._entered.pop(render_words(row.content), None)

    def _enter(self, value: JsonFields, count: int) -> None:
        text = get_text(value.get("content"))
        if text and not text.startswith(_TASK_NOTICE_START):
            self._waiting.append(value)
            self._entered[text.strip()] = count

    def _leave(self, value: JsonFields) -> JsonFields | None:
        text = get_text(value.get("content"))
        entry = self._find(text.strip()) if text else self._first()
        if text and value["operation"] == "popAll":
            self._entered.pop(text.strip(), None)
        reason = value.get("reason", ABSORBED_REASON)
        if entry is None or (value["operation"], reason) != ("remove", ABSORBED_REASON):
            return None
        queued = drop_keys(value, "type", "content", "sessionId", "timestamp")
        queued["enqueued"] = entry.get("timestamp")
        envelope = drop_keys(value, "operation", "content", "reason")
        return envelope | _build_user_fields(entry["content"], queued)

    def _first(self) -> JsonFields | None:
        return self._waiting.pop(0) if self._waiting else None

    def _find(self, words: str) -> JsonFields | None:
        for place, entry in enumerate(self._waiting):
            if render_words(entry["content"]) == words:
                return self._waiting.pop(place)
        return None


def render_words(content: object) -> str:
    """Return what a content says as one text, to find the same again."""
    return extract_content_text(content).strip()


def _build_user_fields(content: Any, queued: JsonFields) -> JsonFields:
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "queued": queued}


NO_ANSWER = -1

_CONTENT_INDEX = ConversationRow._fields.index("content")


class SessionRows:
    """The rows of a session, by their index in the order of the file.

    Of each there is its ``outlines``, and in ``answers`` the first row of the same answer of the
    API (NO_ANSWER where no id tells). ``copies`` are the uuids of rows that repeat one, by its
    index; ``entered`` tells of rows that waited in the queue how many rows there were when they
    entered it. ``_links`` are numbers of the calls that rows make or answer, those of a row up to
    its ``_ends``.
    """

    def __init__(self, buffer: DiskBuffer) -> None:
        self._buffer = buffer
        self._places = array("q")
        self._links = array("q")
        self._ends = array("q", [0])
        self._shared: dict[RowOutline, RowOutline] = {}
        self._calls = KeyNumbers()
        self._requests = KeyNumbers()
        self.outlines: list[RowOutline] = []
        self.answers = array("q")
        self.copies: dict[int, list[str]] = {}
        self.entered: dict[int, int] = {}

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.outlines)

    def __getitem__(self, index: int) -> ConversationRow:
        """Return a row as it was read."""
        kept = self._buffer.at(self._places[index])
        return ConversationRow._make((*kept, parse_blocks(kept[_CONTENT_INDEX]) or []))

    def of(self, indices: Iterable[int]) -> Iterator[ConversationRow]:
        """Return rows one by one."""
        return map(self.__getitem__, indices)

    def append(self, row: ConversationRow) -> None:
        """Keep the next row."""
        prompt = (
            False
            if row.role != "user" or row.sidechain or row.is_summary
            else not row.holds("tool_result")
        )
        outline = RowOutline(
            role=row.role,
            sidechain=row.sidechain,
            agent=row.agent,
            is_prompt=prompt,
            begins_turn=prompt and row.envelope.get("isMeta") is not True,
            is_summary=row.is_summary,
            has_request=row.request_id is not None,
            width=1 if row.role == "assistant" else count_user_messages(row.blocks),
        )
        self._places.append(self._buffer.put(row[:-1]))
        self.answers.append(self._answer_of(row))
        kind, key = CALL_BLOCK_BY_ROLE[row.role]
        named = (block.get(key) for block in row.blocks if block.get("type") == kind)
        for call in [each for each in named if isinstance(each, str)]:
            self._links.append(self._calls.setdefault(call, len(self)))
        self._ends.append(len(self._links))
        self.outlines.append(self._shared.setdefault(outline, outline))

    def links_of(self, index: int) -> Sequence[int]:
        """Return the numbers of the calls that a row makes or answers."""
        return self._links[self._ends[index] : self._ends[index + 1]]

    def _answer_of(self, row: ConversationRow) -> int:
        if row.role != "assistant" or not row.message_id:
            return NO_ANSWER
        return self._requests.setdefault((row.message_id, row.request_id), len(self))


TITLE_KEY_BY_ROW_TYPE = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Row type → its key that holds a title, the best first."""

SUBTYPE_GETTERS: dict[str, Callable[[JsonFields], object]] = {
    "system": lambda row: row.get("subtype"),
    "attachment": lambda row: get_fields(row.get("attachment")).get("type"),
    "progress": lambda row: get_fields(row.get("data")).get("type"),
    "queue-operation": lambda row: row.get("operation"),
}
"""Row type → the subtype of a row, for the note on omitted rows."""

SIDE_ROW_FILTERS: dict[str, Callable[[str], bool]] = {
    "system": lambda subtype: subtype in ("local_command", "stop_hook_summary"),
    "attachment": lambda _: True,
    "progress": lambda subtype: subtype == "hook_progress",
}
"""Row type → whether rows of a subtype may be kept beside a message."""

NO_ROW = -1
"""The number of a uuid whose row stands for none of the conversation."""


class _TitleRow(NamedTuple):
    """A title, the type of row that gave it, and the row that it names as its session's last."""

    kind: str
    text: str
    leaf: object


class ConversationCollector:
    """Collect a file's conversation, row by row.

    ``anchors`` maps every uuid to the row of the conversation it stands for: the row itself, the
    row a copy repeats, or the nearest row above a row outside the conversation (None if there is
    none). ``_parents`` are the rows above rows, or their uuids until those rows are read.
    ``_absorbed`` maps words that left the queue for the running turn to their row. ``beside`` maps
    rows to the places in the buffer of the rows below them outside the conversation, if these are
    kept.
    """

    def __init__(self, buffer: DiskBuffer, *, keeps_beside: bool = False) -> None:
        self._buffer = buffer
        self._keeps_beside = keeps_beside
        self.beside: dict[int, list[int]] = {}
        self.rows = SessionRows(buffer)
        self.anchors = KeyNumbers()
        self.agents = SubagentTracker()
        self._parents: list[int | str | None] = []
        self._titles: list[_TitleRow] = []
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._results = self._copies = 0
        self._blocks = KeyNumbers()
        self._boundary: JsonFields = {}
        self._queue = PromptQueue()
        self._absorbed: dict[str, int] = {}

    def knows(self, value: JsonFields) -> bool:
        """Tell whether a row follows a row that was read, or repeats one."""
        names = get_text(value.get("uuid")), find_parent_uuid(value)
        if any(name in self.anchors for name in names if name):
            return True
        row = parse_conversation_row(value)
        return row is not None and all(key in self._blocks for key in self._keys(row))

    def parents(self) -> RowIndices:
        """Return for each row the nearest row of the conversation above it, None where unknown."""
        found = (
            self._stands_for(each) if isinstance(each, str) else each for each in self._parents
        )
        return [None if parent == index else parent for index, parent in enumerate(found)]

    def beside_of(self, places: Iterable[int]) -> list[JsonFields]:
        """Return what hung on a row and is no conversation."""
        return [*map(self._buffer.at, places)]

    def title(self) -> str | None:
        """Return the session's last title: one the user gave before one that a program made."""
        titles = {title.kind: title.text for title in self._titles if self._is_own(title)}
        return next((titles[kind] for kind in TITLE_KEY_BY_ROW_TYPE if kind in titles), None)

    def titles(self) -> list[str]:
        """Return every title of the file; each of them was the last title at some time."""
        return [title.text for title in self._titles]

    def notes(self) -> Iterator[NoteEvent]:
        """Return a note for each sort of row that was left out."""
        others = Counter(
            (title.kind, "of other sessions") for title in self._titles if not self._is_own(title)
        )
        yield from list_omission_notes(self._left_out + others, "line")
        own = Counter(title.kind for title in self._titles if self._is_own(title))
        for kind, count in sorted(own.items()):
            yield NoteEvent(
                None, f"took titles from {format_count(count, f'{kind} line')}, the last counts"
            )
        if self._queue.waiting:
            why = " that the model was never given"
            yield note_omission(self._queue.waiting, "queued prompt", why)
        if self._copies:
            yield note_omission(self._copies, "copied line", ", said before in the file")
        if self._results:
            lines = format_count(self._results, "result line")
            yield NoteEvent(
                None, f"left out toolUseResult of {lines}: most of it repeats the tool results"
            )

    def _is_own(self, title: _TitleRow) -> bool:
        """Tell whether a title is this session's; a file may begin with those of others."""
        return not isinstance(title.leaf, str) or title.leaf in self.anchors

    def take(self, item: SourceValue) -> NoteEvent | None:
        """Take a row; return a note if it cannot be read."""
        if not isinstance(item.value, dict):
            return note_unread_value(item.row, item.value, "no line of a session")
        kind = item.value.get("type")
        line = self._absorbed_line(item.value)
        if line:
            return self._take_conversation(SourceValue(item.row, line))
        if kind in CONVERSATION_ROW_TYPES:
            return self._take_conversation(item)
        self._take_other(item.value, kind if isinstance(kind, str) else "untyped")
        return None

    def _absorbed_line(self, value: JsonFields) -> JsonFields | None:
        """Return the line that a row of the queue, of progress or an attachment stands for."""
        kind = value.get("type")
        if kind == "queue-operation":
            return self._queue.take(value, len(self.rows))
        if kind == "progress":
            return self._subagents_line(value)
        if kind == "attachment":
            attachment = get_fields(value.get("attachment"))
            if attachment.get("type") != "queued_command" or not attachment.get("prompt"):
                return None
            line = _build_user_fields(attachment["prompt"], drop_keys(attachment, "type", "prompt"))
            return drop_keys(value, "attachment") | line
        return None

    def _subagents_line(self, value: JsonFields) -> JsonFields | None:
        line = self.agents.took(value)
        if line:
            self._anchor(get_text(value.get("uuid")), self._above(value))
        return line

    def _take_conversation(self, item: SourceValue) -> NoteEvent | None:
        row = parse_conversation_row(item.value)
        if row is None:
            text = f"a {item.value['type']} line without a message that can be read"
            return NoteEvent(item.row, text, broken=True)
        self._drop_tool_use_result(item.value.get("toolUseResult"), row)
        original = self._original(row)
        if original is None:
            original = self._absorbed_before(row)
        if original is None:
            self._add(row)
        else:
            self._add_copy(row, original)
        return None

    def _absorbed_before(self, row: ConversationRow) -> int | None:
        """Return the row of the same words that left the queue just before, else None.

        Also take these words out of the queue.
        """
        words = render_words(row.content)
        if row.role != "user" or self._queue.said(words):
            return None
        absorbed = self._absorbed.pop(words, None)
        is_last = absorbed == len(self.rows) - 1
        return absorbed if is_last or "queued" in row.envelope else None

    def _add(self, row: ConversationRow) -> None:
        index = len(self.rows)
        self._anchor(row.uuid, index)
        above = self._stands_for(row.parent) if row.parent else None
        self._parents.append(row.parent if above is None else above)
        self.rows.append(self._with_boundary(row))
        entered = self._queue.entered(row)
        if entered is not None:
            self.rows.entered[index] = entered
        if not row.sidechain:
            self.agents.asked_in(row.blocks)
        if not row.uuid and "queued" in row.envelope:
            self._absorbed[render_words(row.content)] = index

    def _add_copy(self, row: ConversationRow, index: int) -> None:
        self._anchor(row.uuid, index)
        self._copies += 1
        if row.uuid:
            self.rows.copies.setdefault(index, []).append(row.uuid)

    def _take_other(self, value: JsonFields, kind: str) -> None:
        """Remember a place in the tree, a title, or where the context was compacted."""
        self._anchor(get_text(value.get("uuid")), self._above(value))
        title = get_text(value.get(TITLE_KEY_BY_ROW_TYPE.get(kind, "")))
        if title:
            self._titles.append(_TitleRow(kind, title, value.get("leafUuid")))
        elif kind == "system" and isinstance(value.get("compactMetadata"), dict):
            self._boundary = {"compactMetadata": value["compactMetadata"]}
        else:
            self._leave(kind, value)

    def _leave(self, kind: str, value: JsonFields) -> None:
        told = SUBTYPE_GETTERS[kind](value) if kind in SUBTYPE_GETTERS else None
        subtype = get_text(told) or ""
        if self._keeps_beside and kind in SIDE_ROW_FILTERS and SIDE_ROW_FILTERS[kind](subtype):
            beside = self.beside.setdefault(self._above(value) or 0, [])
            beside.append(self._buffer.put(value))
        else:
            self._left_out[kind, subtype] += 1

    def _above(self, value: JsonFields) -> int | None:
        """Return the row of the conversation above a row that is none."""
        parent = find_parent_uuid(value)
        if parent:
            return self._stands_for(parent)
        return len(self.rows) - 1 if self.rows else None

    def _anchor(self, uuid: str | None, index: int | None) -> None:
        if uuid is not None:
            self.anchors.setdefault(uuid, NO_ROW if index is None else index)

    def _stands_for(self, uuid: str) -> int | None:
        """Return the row of the conversation that a uuid stands for, None where there is none."""
        index = self.anchors.get(uuid)
        return None if index == NO_ROW else index

    def _with_boundary(self, row: ConversationRow) -> ConversationRow:
        """Return a row; add the facts of the last compaction if the row is its summary."""
        if not row.is_summary or not self._boundary:
            return row
        boundary, self._boundary = self._boundary, {}
        return row._replace(envelope=row.envelope | boundary)

    def _original(self, row: ConversationRow) -> int | None:
        """Return the row that this one copies, None if any part of it is new.

        A resumed or rewritten session repeats rows, under their own uuid or a new one, sometimes as
        one row per block: a row is a copy if all its blocks occurred before, at the same moment.
        """
        new = len(self.rows)
        originals = [self._blocks.setdefault(key, new) for key in self._keys(row)]
        return originals[0] if max(originals) < new else None

    def _keys(self, row: ConversationRow) -> list[object]:
        """Return a key for each block of a row, the same for copies of the block."""
        moment = row.envelope.get("timestamp") or row.uuid or len(self._blocks)
        return [build_block_key(row, moment, block) for block in row.blocks or [{}]]

    def _drop_tool_use_result(self, result: object, row: ConversationRow) -> None:
        """Count a copy of a result, and keep which call began the subagent that it names."""
        if result is None:
            return
        self._results += 1
        agent = get_text(get_fields(result).get("agentId"))
        call = get_text(row.blocks[0].get("tool_use_id")) if row.blocks else None
        self.agents.began(agent, call)


class SessionSorter:
    """Read each session of a file by itself.

    Rows of a new id wait for the first one of its conversation, which tells where they belong.
    """

    def __init__(self, buffer: DiskBuffer, *, keeps_beside: bool) -> None:
        self._new = partial(ConversationCollector, buffer, keeps_beside=keeps_beside)
        self.readings = [self._new()]
        self._last = self.readings[0]
        self._homes: dict[str, ConversationCollector] = {}
        self._waiting: dict[str, list[SourceValue]] = {}

    def read(self, values: Iterable[SourceValue | NoteEvent]) -> Iterator[NoteEvent]:
        """Read the rows of a file; return a note for each row that is broken."""
        for item in values:
            if isinstance(item, NoteEvent):
                yield item
            else:
                yield from self._take(item)
        for items in self._waiting.values():
            yield from self._give(items)

    def _take(self, item: SourceValue) -> Iterator[NoteEvent]:
        fields = get_fields(item.value)
        name = get_text(fields.get("sessionId"))
        items = [item]
        if name and name not in self._homes:
            items = self._waiting.setdefault(name, [])
            items.append(item)
            if self._homes and fields.get("type") not in CONVERSATION_ROW_TYPES:
                return
            self._homes[name] = self._home_of(self._waiting.pop(name))
        self._last = self._homes[name] if name else self._last
        yield from self._give(items)

    def _give(self, items: list[SourceValue]) -> Iterator[NoteEvent]:
        yield from filter(None, map(self._last.take, items))

    def _home_of(self, items: list[SourceValue]) -> ConversationCollector:
        """Return the session that knows one of some rows, a new one where one of them is a root."""
        rows = [get_fields(item.value) for item in items]
        for reading in self.readings:
            if any(map(reading.knows, rows)):
                return reading
        return (
            self._begun()
            if self._homes
            and any(bool(row.get("uuid")) and row.get("parentUuid") is None for row in rows)
            else self._last
        )

    def _begun(self) -> ConversationCollector:
        self.readings.append(self._new())
        return self.readings[-1]
