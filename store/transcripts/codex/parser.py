"""Rollouts of Codex (2025 and 2026): items of the Responses API, and notes of the program.

The rows that go to the model become messages; rows for the screen, which say the same again, are
counted and left out. One response of the model is one assistant message: its texts, its calls, its
reasoning. What an item says beyond the chat's shape is kept under one extra key, ``codex``.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ...records import Message, extract_content_text
from ...text import JsonFields, format_count
from ..disk_buffer import DiskBuffer
from ..parser_events import (
    CompactionEvent,
    Event,
    ForkPoint,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_text,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
    render_title,
    simplify_content,
    split_metadata,
)
from ..source import SourceValue, TranscriptSource
from .items import (
    SPOKEN_ITEM_TYPES,
    ApiItem,
    collect_item_extra,
    find_parent_session,
    finish_messages,
    is_answer_item,
    is_output_type,
    parse_codex_call,
    parse_codex_parts,
    parse_output_item,
    parse_own_result,
    set_message_time,
)


def pick_compaction_fields(compacted: JsonFields) -> JsonFields:
    """Return what a row says of a compaction, without the messages that the file has already."""
    told = {key: held for key, held in compacted.items() if held and key != REPLACEMENT_KEY}
    items = _list_replacement_items(compacted)
    told["replaced_by"] = len(items)
    kept = [item for item in items if item.get("type") != "message"]
    return told | {"items": kept} if kept else told


def render_replacement(compacted: JsonFields) -> str | None:
    """Return what can be read of the context that took the place of the old one, if anything."""
    texts = [get_text(compacted.get("message"))]
    if not texts[0]:
        texts = [
            extract_content_text(item.get("content")) for item in _list_replacement_items(compacted)
        ]
    return "\n\n".join(text for text in texts if text and text.strip()) or None


REPLACEMENT_KEY = "replacement_history"
"""Under which key a row has the context that took the place of the old one."""


def _list_replacement_items(compacted: JsonFields) -> list[JsonFields]:
    return [
        get_fields(item) for item in get_list(compacted.get(REPLACEMENT_KEY)) if get_fields(item)
    ]


class RolloutLine:
    """Messages in a buffer on disk, by their ``_places`` there.

    ``_answers`` says which of them are answers. The last one may be in memory, and change: it is
    put back once another one follows, or the line is cut.
    """

    def __init__(self, buffer: DiskBuffer) -> None:
        self._buffer = buffer
        self._places = array("q")
        self._answers = array("q")
        self._answer: Message | None = None

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self._places)

    def __iter__(self) -> Iterator[Message]:
        """Yield the messages."""
        self._put_back()
        return map(self._buffer.at, self._places)

    @property
    def answer(self) -> Message | None:
        """The last answer, which may be changed; None where there is none."""
        if self._answer is None and self._answers:
            self._answer = self._buffer.at(self._places[self._answers[-1]])
        return self._answer

    def append(self, message: Message) -> None:
        """Add a message."""
        if message["role"] == "assistant":
            self._put_back()
            self._answers.append(len(self))
            self._answer = message
        self._places.append(self._buffer.put(message))

    def cut(self, start: int) -> RolloutLine:
        """Take out all messages from one on; return them."""
        self._put_back()
        taken = RolloutLine(self._buffer)
        taken._places = self._places[start:]
        del self._places[start:]
        while self._answers and self._answers[-1] >= start:
            taken._answers.insert(0, self._answers.pop() - start)
        return taken

    def _put_back(self) -> None:
        if self._answer is not None:
            self._places[self._answers[-1]] = self._buffer.put(self._answer)
        self._answer = None


CODEX_INJECTIONS = ("<", "# AGENTS.md instructions")
"""How the texts of user messages begin that no user typed."""


def find_typed_prompt(message: Message) -> str | None:
    """Return what a user typed, None for a message that no user typed."""
    if message["role"] != "user" or "author" in message.get("codex", {}):
        return None
    text = extract_content_text(message["content"])
    return text if not text.lstrip().startswith(CODEX_INJECTIONS) else None


def find_first_prompt(messages: Iterable[Message]) -> str | None:
    """Return the first text that a user typed, None where no user typed one."""
    prompts = map(find_typed_prompt, messages)
    return next((prompt for prompt in prompts if prompt and prompt.strip()), None)


ROLLOUT_ROW_TYPES = (
    "session_meta",
    "response_item",
    "event_msg",
    "compacted",
    "turn_context",
    "world_state",
)
"""Types of rows by which a rollout is known; newer programs write more of them."""

BARE_ITEM_TYPES = ("function_call", "function_call_output", "local_shell_call")
"""Types of items that tell a rollout by rows of their own, as it was before September 2025."""

COMPACTION_ITEM_TYPES = ("compaction", "context_compaction", "compaction_summary")
"""Types of items that stand for a context that was compacted, readable by the API alone."""

_SESSION_META_KEYS = ("id", "cwd", "git", "cli_version")


def is_codex_rollout(value: Any) -> bool:
    """Tell whether a JSON value is a row of a rollout, or a whole one of the first program."""
    if not isinstance(value, dict):
        return False
    if "type" not in value:
        return (
            _is_rollout_header(value)
            or value.get("record_type") == "state"
            or _is_whole_rollout(value)
        )
    if "payload" not in value:
        return value["type"] in BARE_ITEM_TYPES and "call_id" in value
    return value["type"] in ROLLOUT_ROW_TYPES and isinstance(value["payload"], dict)


def parse_codex(source: TranscriptSource) -> Iterator[Event]:
    """Return the session of a file, then each stretch of it that was taken back, then the notes.

    A file to which another session's was added has both.
    """
    with DiskBuffer() as buffer:
        rollout = _Rollout(buffer)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
                continue
            if rollout.is_over(item.value):
                yield from rollout.events(source.stem)
                rollout = _Rollout(buffer)
            yield from rollout.take(item)
        yield from rollout.events(source.stem)


class _Rollout:
    """Collect a file's messages, row by row.

    ``_answer`` is the assistant message that the next items belong to, ``_branches`` are the parts
    taken back, each with the number of messages before it.
    """

    def __init__(self, buffer: DiskBuffer) -> None:
        self._meta: ApiItem = {}
        self._metas = 0
        self._ids: set[str | None] = set()
        self._context: ApiItem = {}
        self._messages = RolloutLine(buffer)
        self._answer: Message | None = None
        self._branches: list[tuple[int, RolloutLine]] = []
        self._titles: list[str | None] = []
        self._typed: str | None = None
        self._compactions: list[JsonFields] = []
        self._hidden: list[CompactionEvent] = []
        self._aborted: list[int] = []
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._total: object = None

    def take(self, value: SourceValue) -> Iterator[NoteEvent]:
        """Take one row; yield notes on its errors."""
        row = value.value
        kind = row.get("type") if isinstance(row, dict) else None
        if not isinstance(kind, str):
            yield from self._take_untyped(value)
        elif "payload" not in row and kind not in ROW_HANDLERS:
            self._take_item(drop_keys(row, "timestamp"), row.get("timestamp"))
        elif not isinstance(row.get("payload"), dict):
            text = f"a {kind:.40} line without a payload that can be read"
            yield NoteEvent(value.row, text, broken=True)
        elif kind in ROW_HANDLERS:
            ROW_HANDLERS[kind](self, row["payload"], row.get("timestamp"))
        else:
            self._leave(kind)

    def is_over(self, row: object) -> bool:
        """Tell whether a row is the head of a new session, after all messages so far.

        The new session began after all of them, or before this session if the newest is told first.
        Heads of copied sessions come before their messages; resumed sessions have a known id.
        """
        fields = get_fields(row)
        meta = get_fields(fields.get("payload"))
        if fields.get("type") != "session_meta" or get_text(meta.get("id")) in self._ids:
            return False
        said = max((each.get("timestamp") or 0 for each in self._messages), default=0)
        began = parse_iso_milliseconds(meta.get("timestamp"))
        if not (self._metas and said and began):
            return False
        return began > said or began < (parse_iso_milliseconds(self._meta.get("timestamp")) or 0)

    def events(self, stem: str) -> Iterator[Event]:
        """Return all sessions, their messages, and the notes."""
        if not (self._messages or self._branches):
            yield NoteEvent(None, "no message in this file")
            yield from self._notes()
            return
        name = get_text(self._meta.get("id")) or stem
        metadata, notes = self._metadata()
        prompt = find_first_prompt(self._messages)
        yield self._opened(name, [*self._titles, self._typed, prompt], metadata)
        messages = finish_messages(self._messages)
        last_of_each = {
            each.through: each for each in self._hidden if each.through and each.summary
        }
        for number, message in enumerate(messages, 1):
            yield SessionMessage(message)
            yield from [last_of_each[number]] if number in last_of_each else []
        yield from self._branch_events(name)
        yield from self._notes()
        yield from notes

    def _branch_events(self, name: str) -> Iterator[Event]:
        """Return the sessions of the parts taken back, each after the session that it continues."""
        numbered = list(enumerate(self._branches, 1))
        for number, (start, messages) in reversed(numbered):
            branch = f"{name}/branch-{number}"
            over = (later for later, (cut, _) in numbered[number:] if cut < start)
            above = next(over, None)
            stem = ForkPoint(f"{name}/branch-{above}" if above else name, start)
            link = {"parent_session": stem.session_id, "forked_at": start}
            yield self._opened(branch, [find_first_prompt(messages)], link)._replace(stem=stem)
            yield from map(SessionMessage, finish_messages(messages))
            count = format_count(len(messages), "message")
            yield NoteEvent(None, f"{count} that were taken back are session {branch!r}")

    def _opened(self, name: str, given: Sequence[str | None], metadata: JsonFields) -> SessionEvent:
        """Return a session with the first of the titles that it was given."""
        root = find_first_text([self._meta.get("cwd"), self._context.get("cwd")])
        titles = tuple(filter(None, (render_title(title or "") for title in given)))
        return SessionEvent(name, next(iter(titles), None), root, metadata, titles=titles)

    def _take_untyped(self, value: SourceValue) -> Iterator[NoteEvent]:
        """Take the head of an older rollout, its state, or a whole one of the first program."""
        row = value.value
        if not isinstance(row, dict):
            yield _note_unread_line(value)
        elif _is_whole_rollout(row):
            self._take_meta(row["session"], None)
            items = (SourceValue(value.row, item) for item in row["items"])
            yield from chain.from_iterable(map(self.take, items))
        elif _is_rollout_header(row):
            self._take_meta(row, None)
        elif "record_type" in row:
            self._leave(str(row["record_type"]))
        else:
            yield _note_unread_line(value)

    def _take_meta(self, meta: ApiItem, _: object) -> None:
        """Take the head of a session: the first is the file's own, others are of copies."""
        self._metas += 1
        self._ids.add(get_text(meta.get("id")))
        if self._metas == 1:
            self._meta = meta
        elif meta.get("id") != self._meta.get("id"):
            self._leave("session_meta", "of other sessions")

    def _take_context(self, context: ApiItem, _: object) -> None:
        self._answer, self._context = None, context
        self._leave("turn_context")

    def _take_item(self, item: ApiItem, at: object) -> None:
        kind = str(item.get("type"))
        if is_answer_item(item):
            self._take_answer(item, at)
        elif kind in SPOKEN_ITEM_TYPES:
            role = get_text(item.get("role")) if item.get("type") == "message" else None
            content = simplify_content(parse_codex_parts(item.get("content"))) or ""
            self._add({"role": role or "user", "content": content}, item, at)
        elif is_output_type(kind):
            self._add(parse_output_item(item), item, at)
        elif kind in COMPACTION_ITEM_TYPES:
            self._note_compaction({"items": [item]}, at)
        else:
            self._leave("response_item", kind)

    def _take_answer(self, item: ApiItem, at: object) -> None:
        """Add an item to the message of its response."""
        answer = self._answer or self._begin_answer(at)
        extra = collect_item_extra(item)
        if isinstance(at, str):
            extra["timestamp"] = at
        answer["codex"]["items"].append(extra)
        if item["type"] == "reasoning":
            answer.setdefault("reasoning_items", []).append(item)
        elif item["type"] == "message":
            answer["content"] += parse_codex_parts(item.get("content"))
        else:
            answer.setdefault("tool_calls", []).append(parse_codex_call(item))
            self._add_own_result(item, at)

    def _add_own_result(self, call: ApiItem, at: object) -> None:
        result = parse_own_result(call)
        if result:
            self._messages.append(set_message_time(result, at))

    def _begin_answer(self, at: object) -> Message:
        extra: JsonFields = {"items": []}
        model = get_text(self._context.get("model"))
        if model:
            extra["model"] = model
        self._answer = set_message_time({"role": "assistant", "content": [], "codex": extra}, at)
        self._messages.append(self._answer)
        return self._answer

    def _add(self, message: Message, item: ApiItem, at: object) -> None:
        """Add a message of its own, which ends the response before it."""
        self._answer = None
        extra = collect_item_extra(item)
        usual = "message" if item.get("type") == "message" else "function_call_output"
        if extra["type"] == usual:
            del extra["type"]
        if extra:
            message["codex"] = extra
        self._messages.append(set_message_time(message, at))

    def _take_agent(self, said: ApiItem, at: object) -> None:
        self._take_item(said | {"type": "agent_message"}, at)

    def _take_event(self, event: ApiItem, _: object) -> None:
        """Take a row for the screen: a few say what no item says."""
        kind = str(event.get("type"))
        if kind in SCREEN_EVENT_HANDLERS:
            SCREEN_EVENT_HANDLERS[kind](self, event)
        self._leave("event_msg", kind)

    def _take_title(self, event: ApiItem) -> None:
        self._titles.insert(0, get_text(event.get("thread_name")))

    def _take_typed(self, event: ApiItem) -> None:
        self._typed = self._typed or get_text(event.get("message"))

    def _abort(self, _: ApiItem) -> None:
        self._answer = None
        self._aborted.append(len(self._messages))

    def _take_usage(self, event: ApiItem) -> None:
        """Keep a request's tokens with its answer, or the one before; told again, they are old."""
        info = get_fields(event.get("info"))
        answer = self._messages.answer
        if answer is None or not isinstance(info.get("last_token_usage"), dict):
            return
        total = info.get("total_token_usage")
        if total is None or total != self._total:
            # Where a file counts no totals, nothing tells the latter from the same told again.
            extra = answer["codex"]
            usage = info["last_token_usage"]
            if "usage" not in extra:
                extra["usage"] = usage
            elif "total_token_usage" in info:
                extra.setdefault("other_usages", []).append(usage)
        self._total = total
        if answer is self._answer and (answer["content"] or "tool_calls" in answer):
            self._answer = None

    def _take_compacted(self, compacted: ApiItem, at: object) -> None:
        self._hidden.append(CompactionEvent(len(self._messages), render_replacement(compacted)))
        self._note_compaction(pick_compaction_fields(compacted), at)

    def _note_compaction(self, compaction: JsonFields, at: object) -> None:
        self._answer = None
        self._compactions.append({"after": len(self._messages), "timestamp": at} | compaction)

    def _roll_back(self, event: ApiItem) -> None:
        """Take the last turns out of the line: they become a session of their own."""
        turns = event.get("num_turns")
        prompts = self._places_of_prompts()
        if type(turns) is int and turns > 0 and prompts:
            start = prompts[-min(turns, len(prompts))]
            self._branches.append((start, self._messages.cut(start)))
            self._hidden = [each for each in self._hidden if each.through <= start]
            self._answer = None

    def _places_of_prompts(self) -> list[int]:
        numbered = enumerate(map(find_typed_prompt, self._messages))
        return [place for place, prompt in numbered if prompt is not None]

    def _leave(self, kind: str, subtype: str = "") -> None:
        self._left_out[kind, subtype] += 1

    def _metadata(self) -> tuple[JsonFields, list[NoteEvent]]:
        """Return the metadata of the session, and a note for each value that is too big for it."""
        known = {
            "model": self._context.get("model"),
            "cli_version": self._meta.get("cli_version"),
            "git": self._meta.get("git"),
            "parent_session": find_parent_session(self._meta),
        }
        extra = drop_keys(self._meta, *_SESSION_META_KEYS)
        if self._context:
            extra["turn_context"] = self._context
        if self._compactions:
            extra["compactions"] = self._compactions
        kept, notes = split_metadata(extra)
        metadata = {key: held for key, held in known.items() if held is not None}
        return metadata | {"codex": kept}, notes

    def _notes(self) -> Iterator[NoteEvent]:
        if self._compactions:
            places = ", ".join(str(each["after"]) for each in self._compactions)
            text = f"the context was compacted after message {places}"
            yield NoteEvent(None, f"{text}: all messages stay, what cannot be read is metadata")
        if self._aborted:
            places = ", ".join(map(str, self._aborted))
            yield NoteEvent(None, f"a turn was interrupted after message {places}")
        if self._metas > 1:
            begun = f"the session begins {self._metas} times in the file"
            yield NoteEvent(None, f"{begun}: it was resumed or copied")
        yield from list_omission_notes(self._left_out, "line")


ROW_HANDLERS: dict[str, Callable[[_Rollout, ApiItem, object], None]] = {
    "session_meta": _Rollout._take_meta,
    "response_item": _Rollout._take_item,
    "event_msg": _Rollout._take_event,
    "compacted": _Rollout._take_compacted,
    "turn_context": _Rollout._take_context,
    "inter_agent_communication": _Rollout._take_agent,
}
"""Type of row → what takes its payload, with the time it was written at."""


SCREEN_EVENT_HANDLERS: dict[str, Callable[[_Rollout, ApiItem], None]] = {
    "token_count": _Rollout._take_usage,
    "thread_name_updated": _Rollout._take_title,
    "user_message": _Rollout._take_typed,
    "thread_rolled_back": _Rollout._roll_back,
    "turn_aborted": _Rollout._abort,
}
"""Type of a row for the screen → what takes it, where it says what no item says."""


def _note_unread_line(value: SourceValue) -> NoteEvent:
    return note_unread_value(value.row, value.value, "no line of a rollout")


def _is_rollout_header(value: JsonFields) -> bool:
    """Tell whether a value is the first row of an older rollout."""
    return {"id", "timestamp", "instructions"} <= value.keys() and "role" not in value


def _is_whole_rollout(value: JsonFields) -> bool:
    """Tell whether a value is a whole rollout, as the first program wrote them."""
    return "id" in get_fields(value.get("session")) and isinstance(value.get("items"), list)
