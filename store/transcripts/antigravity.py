"""Conversations of Antigravity, its IDE and its command: databases of steps, or a log of them.

A step is a message of protobuf, whose schema is not published: the numbers of fields here are those
that the program's own descriptors name. A field that is not known is left alone.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from ..records import Message
from ..text import JsonFields
from .conversations import (
    GatheredSession,
    build_chat_message,
    build_picture_part,
    build_result_message,
    join_content,
    round_milliseconds,
)
from .database import Layout, SqliteConnection, load_column_names
from .parser_events import (
    Event,
    NoteEvent,
    RequestUsage,
    SessionMessage,
    UsageTokens,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_objects,
    get_text,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
)
from .source import TranscriptSource

__all__ = ["ANTIGRAVITY_LAYOUT", "is_antigravity_value", "parse_antigravity"]

SELECT_STEPS = "SELECT * FROM steps ORDER BY idx"
NAME_COLUMN, FOLDER_COLUMN = "trajectory_meta.cascade_id", "trajectory_metadata_blob.data"
MODEL_COLUMN = "gen_metadata.data"
SIDE_COLUMNS = {
    NAME_COLUMN: "SELECT cascade_id FROM trajectory_meta LIMIT 1",
    FOLDER_COLUMN: "SELECT data FROM trajectory_metadata_blob LIMIT 1",
    MODEL_COLUMN: "SELECT idx, data FROM gen_metadata ORDER BY rowid",
}
"""Column that not every version has → the query for its table."""

USER_STEP, ANSWER_STEP, COMMAND_STEP = 14, 15, 21
SILENT_STEPS = {23: "checkpoint", 90: "notice", 98: "history", 101: "notice"}
"""Type of a step that is for the program → its name."""
STEP_METADATA, USER_INPUT, ANSWER = 5, 19, 20
RESULT_PLACES = {
    5: ("10.2.1.8", "10.1.2.2.5", "10.1.1.4.5"),
    7: ("13.5", "13.3"),
    8: ("14.4", "14.9"),
    21: ("28.21.1", "28.4"),
    38: ("47.3",),
    132: ("140.2.1",),
}
"""Type of a step that ran a tool → the fields in which its result is, the best first."""
ENDED_STEPS = {3: False, 6: True, 7: True}
"""State of a step that has ended → whether it failed."""
FOLDER_NAME = re.compile(rb"file:///[^\x00-\x1f\"]+")
MODEL_NAME = re.compile(r"(?:gemini|claude|gpt|models/)[\w./-]*\d[\w./-]*", re.IGNORECASE)

WIRE_FIELDS = {"step_index", "source", "type", "status"}
"""Keys of a line of the log."""
LOG_KEYS = ("step_index", "source", "type", "content", "thinking", "tool_calls", "created_at")


class WireMessage:
    """A message of protobuf, as far as it can be read: each field's values by its number."""

    def __init__(self, data: object) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        if isinstance(data, bytes):
            for number, value in _list_wire_fields(data):
                self._fields.setdefault(number, []).append(value)

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of the fields that it has."""
        yield from self._fields

    def count(self, number: int) -> int:
        """Return a number, 0 where there is none."""
        values = self._fields.get(number, [])
        return next((value for value in values if isinstance(value, int)), 0)

    def parts(self, number: int) -> list[bytes]:
        """Return every value of a field that is of bytes."""
        values = self._fields.get(number, [])
        return [value for value in values if isinstance(value, bytes)]

    def inner(self, number: int) -> WireMessage:
        """Return the message that the message holds under a number."""
        return WireMessage(next(iter(self.parts(number)), None))

    def text(self, *places: str) -> str | None:
        """Return the first text at some places, as ``3.1``; None where there is none."""
        return find_first_text(map(self._find_text, places))

    def _find_text(self, place: str) -> str | None:
        message = self
        *way, last = map(int, place.split("."))
        for number in way:
            message = message.inner(number)
        with suppress(UnicodeDecodeError):
            return next(iter(message.parts(last)), b"").decode()
        return None


def _list_wire_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message up to the first that cannot be read."""
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        number, wire = tag >> 3, tag & 7
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire in (0, 2):
            size, place = _read_varint(data, place)
        if wire == 0:
            yield number, size
            continue
        if wire not in (1, 2, 5) or not number or place + size > len(data):
            return
        yield number, data[place : place + size]
        place += size


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length, and the place after it: the end where it is cut."""
    value = 0
    for shift, byte in enumerate(data[place : place + 10]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, place + shift + 1
    return 0, len(data) + 1


def _load_conversation(rows: SqliteConnection) -> Iterator[Any]:
    columns = load_column_names(rows)
    found = {
        column: [tuple(row) for row in rows.execute(select)]
        for column, select in SIDE_COLUMNS.items()
        if column in columns
    }
    yield found | {"antigravity_steps": list(map(dict, rows.execute(SELECT_STEPS)))}


ANTIGRAVITY_LAYOUT = Layout(
    frozenset({"steps.idx", "steps.step_type", "steps.step_payload"}), _load_conversation
)
"""How a conversation's database is laid out."""


def is_antigravity_value(value: Any) -> bool:
    """Tell whether a value is a conversation of a database, or a line of a log."""
    fields = get_fields(value)
    return fields.keys() >= WIRE_FIELDS or isinstance(fields.get("antigravity_steps"), list)


def parse_antigravity(source: TranscriptSource) -> Iterator[Event]:
    """Yield the session of a database or a log, and the notes."""
    log = _StepLog()
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif get_fields(item.value).keys() >= WIRE_FIELDS:
            log.take(item.value)
        elif source.kind == "antigravity":
            yield from _parse_conversation(item.value, source.stem)
        else:
            yield note_unread_value(item.row, item.value, "no step of a conversation")
    folders = source.path.absolute().parents
    is_in_brain = folders[0].name == "logs" and len(folders) > 2
    name = f"{folders[2].name}/transcript" if is_in_brain else source.stem
    yield from GatheredSession("antigravity", name, log.said).events()
    yield from list_omission_notes(log.silent, "step")


def _parse_conversation(told: JsonFields, stem: str) -> Iterator[Event]:
    models = {number: find_model_name(data) for number, data in told.get(MODEL_COLUMN, ())}
    steps = [
        _Step(row.get("idx"), row.get("step_type"), row.get("status"), row)
        for row in told["antigravity_steps"]
    ]
    said = [
        message
        for step in steps
        if step.kind not in SILENT_STEPS
        for message in step.messages(models.get(step.number))
    ]
    name = find_first_text(chain(*told.get(NAME_COLUMN, ()), [stem])) or stem
    root, model = _find_folder_name(told), find_first_text([*models.values()][::-1])
    yield from GatheredSession("antigravity", name, said, root=root, model=model).events()
    silent = filter(None, (SILENT_STEPS.get(step.kind) for step in steps))
    yield from list_omission_notes(Counter((kind, "") for kind in silent), "step")


def _find_folder_name(told: JsonFields) -> str | None:
    for (data,) in told.get(FOLDER_COLUMN, ()):
        found = FOLDER_NAME.search(data) if isinstance(data, bytes) else None
        if found:
            return found[0].decode("utf-8", "replace")
    return None


class _Step(NamedTuple):
    """A row of a database: its number, its type and state, and its columns."""

    number: Any
    kind: Any
    status: Any
    row: JsonFields

    @property
    def payload(self) -> WireMessage:
        """Return what the row holds."""
        return WireMessage(self.row.get("step_payload"))

    @property
    def metadata(self) -> WireMessage:
        """Return what the step says about itself."""
        return self.payload.inner(STEP_METADATA)

    def messages(self, model: str | None) -> Iterator[SessionMessage]:
        """Yield what the step amounts to, if anything."""
        message: Message | None
        if self.kind == USER_STEP:
            message = self._question()
        else:
            message = self._answer() if self.kind == ANSWER_STEP else self._result()
        if not message or not (message["content"] or len(message) > 2):
            return
        time = self.metadata.inner(1)
        moment = round_milliseconds(time.count(1) * 1000 + time.count(2) // 1_000_000)
        told = drop_empty_fields({"id": f"step-{self.number}", "timestamp": moment})
        spent = tuple(self._costs(model)) if self.kind == ANSWER_STEP else ()
        yield SessionMessage(message | told, spent=spent)

    def _question(self) -> Message:
        told = self.payload.inner(USER_INPUT)
        images = map(WireMessage, told.parts(5))
        pictures = [build_picture_part(each.text("2"), each.text("1")) for each in images]
        return build_chat_message("user", join_content(told.text("2", "3.1", "1"), pictures))

    def _answer(self) -> Message:
        told = self.payload.inner(ANSWER)
        held = map(WireMessage, told.parts(7))
        calls = [[each.text(place) for place in "123"] for each in held]
        extra = {"signature": told.text("4"), "stop": told.count(12) or None}
        return build_chat_message(
            "assistant",
            told.text("8", "1"),
            reasoning_content=told.text("3"),
            tool_calls=[build_chat_call(*each) for each in calls],
            antigravity=drop_empty_fields(extra),
        )

    def _costs(self, model: str | None) -> Iterator[RequestUsage]:
        usage, number = self.metadata.inner(9), self.metadata.count(11)
        beside, written, read = usage.count(2), usage.count(4), usage.count(5)
        tokens = UsageTokens(beside + written + read, usage.count(3), read, written)
        if any(tokens) and max(tokens) < 2**53:
            name = model or (f"model-{number}" if number else None)
            yield RequestUsage(tokens, name, "google", tokens._asdict())

    def _result(self) -> Message | None:
        """Return the result of a call; None for a step that has not ended, or ran nothing."""
        call, payload = self.metadata.text("4.1"), self.payload
        if call is None or self.status not in ENDED_STEPS:
            return None
        wrong = WireMessage(self.row.get("error_details")).text("9", "1", "2")
        said = wrong or payload.text(*RESULT_PLACES.get(self.kind, ()))
        if self.kind not in RESULT_PLACES:
            said = said or "\n".join(_list_wire_texts(payload, 3))
        failed = ENDED_STEPS[self.status] or bool(wrong) or self._has_exit_code()
        return build_result_message(call, said, failed=failed, name=self.metadata.text("4.2"))

    def _has_exit_code(self) -> bool:
        """Tell whether a command ended with a code that is not 0."""
        return self.kind == COMMAND_STEP and self.payload.inner(28).count(6) != 0


def find_model_name(data: object, depth: int = 4) -> str | None:
    """Return the model that a step's metadata name, None where they do not."""
    message = WireMessage(data)
    told = message.text("21", "19")
    if told and MODEL_NAME.fullmatch(told):
        return told
    if not depth:
        return None
    inner = (part for number in message.numbers() for part in message.parts(number))
    return find_first_text(find_model_name(part, depth - 1) for part in inner)


def _list_wire_texts(message: WireMessage, depth: int) -> Iterator[str]:
    """Yield the texts of an unknown message, without those of its metadata."""
    for number in message.numbers():
        for part in message.parts(number) if number != STEP_METADATA else ():
            inner = [*_list_wire_texts(WireMessage(part), depth - 1)] if depth else []
            yield from inner
            text = part.decode("utf-8", "ignore")
            if not inner and text.isprintable() and len(text) > 1:
                yield text


class _StepLog:
    """A log of steps, line by line; its calls have no ids, so a result answers the oldest."""

    def __init__(self) -> None:
        self.said: list[SessionMessage] = []
        self.silent: Counter[tuple[str, str]] = Counter()
        self._waiting: deque[str] = deque()

    def take(self, row: JsonFields) -> None:
        """Take the next line."""
        kind = get_text(row.get("type")) or "step"
        text = get_text(row.get("content"))
        name = f"step-{row['step_index']}"
        if row["source"] == "USER_EXPLICIT":
            message = build_chat_message("user", text)
        elif kind == "PLANNER_RESPONSE":
            message = self._answer_of(row, name)
        elif row["source"] == "SYSTEM" or not text:
            self.silent[kind, ""] += 1
            return
        elif self._waiting:
            failed = row["status"] == "ERROR"
            message = build_result_message(self._waiting.popleft(), text, failed=failed)
        else:
            message = build_chat_message("assistant", text)
        told = {
            "id": name,
            "timestamp": parse_iso_milliseconds(row.get("created_at")),
            "antigravity": drop_empty_fields(drop_keys(row, *LOG_KEYS)),
        }
        self.said.append(SessionMessage(message | drop_empty_fields(told)))

    def _answer_of(self, row: JsonFields, name: str) -> Message:
        calls = [
            build_chat_call(f"{name}-call-{number}", call.get("name"), call.get("args"))
            for number, call in enumerate(get_objects(row.get("tool_calls")), 1)
        ]
        self._waiting = deque(call["id"] for call in calls)
        text, thoughts = map(get_text, (row.get("content"), row.get("thinking")))
        return build_chat_message("assistant", text, tool_calls=calls, reasoning_content=thoughts)
