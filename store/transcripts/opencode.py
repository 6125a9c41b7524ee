"""Sessions of opencode and its forks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from ..records import FilePath, Message
from ..text import JsonFields, wrap_in_list
from .database import Layout, SqliteConnection, parse_json_cell
from .parser_events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
    SessionNames,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_text,
    list_omission_notes,
    note_unread_value,
    render_titles,
    simplify_content,
    split_metadata,
)
from .source import SourceValue, TranscriptSource, parse_conversations
from .trees import Tree, build_tree_events, insert_compactions

__all__ = [
    "OPENCODE_LAYOUT",
    "OpencodeFolderSource",
    "is_opencode_export",
    "is_opencode_session_file",
    "parse_opencode",
]

SELECT_OPENCODE_SESSIONS = "SELECT * FROM session ORDER BY time_created, id"

SELECT_OPENCODE_MESSAGES = """
    SELECT id, data FROM message
    WHERE session_id = :session
    ORDER BY time_created, id
"""

SELECT_OPENCODE_PARTS = """
    SELECT message_id, id, data FROM part
    WHERE session_id = :session
    ORDER BY id
"""

SESSION_COLUMN_KEYS = {"parent_id": "parentID", "project_id": "projectID"}
"""Columns of a session → keys of its export, where the names differ."""

TIME_COLUMN_PREFIX = "time_"


def _load_opencode_sessions(rows: SqliteConnection) -> Iterator[Any]:
    for session in rows.execute(SELECT_OPENCODE_SESSIONS):
        of = {"session": session["id"]}
        parts = _load_opencode_parts(rows, of)
        messages = [
            {"info": _parse_opencode_data(name, data), "parts": parts.pop(name, [])}
            for name, data in rows.execute(SELECT_OPENCODE_MESSAGES, of)
        ]
        info: JsonFields = {}
        times: JsonFields = {}
        for key, cell in zip(session.keys(), session, strict=True):
            if key.startswith(TIME_COLUMN_PREFIX):
                times[key.removeprefix(TIME_COLUMN_PREFIX)] = cell
            else:
                is_object = isinstance(cell, str) and cell.startswith(("{", "["))
                info[SESSION_COLUMN_KEYS.get(key, key)] = (
                    (parse_json_cell(cell) or cell) if is_object else cell
                )
        yield {
            "info": drop_empty_fields({**info, "time": drop_empty_fields(times)}),
            "messages": messages,
        }


def _load_opencode_parts(rows: SqliteConnection, of: JsonFields) -> dict[str, list[JsonFields]]:
    """Return the parts of a session's messages, by the ids of the messages."""
    found: dict[str, list[JsonFields]] = {}
    for message, name, data in rows.execute(SELECT_OPENCODE_PARTS, of):
        found.setdefault(message, []).append(_parse_opencode_data(name, data))
    return found


def _parse_opencode_data(name: str, data: object) -> JsonFields:
    return get_fields(parse_json_cell(data)) | {"id": name}


OPENCODE_LAYOUT = Layout(
    frozenset({"session.directory", "message.data", "part.message_id"}),
    _load_opencode_sessions,
)
"""The layout of the database."""


SESSION_FILE_FOLDERS = ("storage", "session")
"""The folders that contain the folder of a project, whose files are its sessions."""


def is_opencode_session_file(path: FilePath) -> bool:
    """Tell whether a file in such a folder is a session's own file, by its path."""
    place = Path(path).absolute()
    is_json = place.suffix == ".json" and len(place.parts) > len(SESSION_FILE_FOLDERS) + 2
    return is_json and place.parts[-4:-2] == SESSION_FILE_FOLDERS


class OpencodeFolderSource(TranscriptSource):
    """A session that is kept in a folder, in the shape of its export."""

    kind = "opencode"

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self.problem = None
        self.report_to(None)

    def values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the session, and a note for each of its files that cannot be read."""
        self.rows = self._size = 0
        storage = self.path.absolute().parents[2]
        broken: list[NoteEvent] = []
        info = self._read(self.path, broken)
        folder = storage / "message" / self.path.stem
        told = [self._read(path, broken) for path in _list_json_files(folder)]
        yield from broken
        messages = [{"info": each, "parts": self._parts(storage, each)} for each in told if each]
        yield SourceValue(None, {"info": info, "messages": messages})
        self._progress(self.path.stat().st_size)

    def _parts(self, storage: Path, message: JsonFields) -> list[JsonFields]:
        name = str(message.get("id"))
        if Path(name).name != name:  # it names no folder there
            return []
        return [self._read(path, []) for path in _list_json_files(storage / "part" / name)]

    def _read(self, path: Path, broken: list[NoteEvent]) -> JsonFields:
        self.rows += 1
        self.limits.check_time()
        self._size += path.stat().st_size
        self.limits.check_size(self._size, "its files have")
        try:
            told: Any = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as problem:
            broken.append(NoteEvent(None, f"{path.name} is left out: {problem}", broken=True))
            return {}
        return get_fields(told)


def _list_json_files(folder: Path) -> list[Path]:
    """Return the files of a folder in the order of their names, which is also that of time."""
    return sorted(folder.glob("*.json"))


OPENCODE_ROLES = ("user", "assistant")

STEP, STEP_END = "step-start", "step-finish"

OPENCODE_COMPACTION_PROMPT = "What did we do so far?"
"""The text that the program sends if its user's message asks for a compaction."""

OPENCODE_COST_KEYS = ("tokens", "cost")

OPENCODE_PART_TYPES = ("text", "reasoning", "tool", "file", "compaction", STEP, STEP_END)
"""Types of parts that are read."""


def is_opencode_message(value: object) -> bool:
    """Tell whether a JSON value is a message that can be read."""
    fields = get_fields(value)
    role = get_fields(fields.get("info")).get("role")
    return role in OPENCODE_ROLES and isinstance(fields.get("parts"), list)


def list_opencode_parts(message: JsonFields) -> list[JsonFields]:
    """Return a message's parts."""
    return list(filter(None, map(get_fields, get_list(message.get("parts")))))


def parse_opencode_message(name: str, told: JsonFields) -> list[Message]:
    """Return the chat messages of one message; the first has its id and its other fields."""
    info, parts = told["info"], list_opencode_parts(told)
    if info["role"] == "user":
        content = [_parse_opencode_part(part) for part in parts if _is_part_for_model(part)]
        files = [
            part for part in parts if part.get("type") == "file" and not _is_part_for_model(part)
        ]
        said: Message = {"role": "user", "content": simplify_content(content) or ""}
        made = [said | drop_empty_fields({"opencode": drop_empty_fields({"files": files})})]
    else:
        made = list(chain.from_iterable(map(_parse_opencode_step, _split_opencode_steps(parts))))
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
    extra = drop_empty_fields(drop_keys(info, "id", "sessionID", "role", "tokens", "cost"))
    made[0]["opencode"] = extra | made[0].get("opencode", {})
    _add_opencode_cost(made, info)
    return [
        _build_timestamp_field(get_fields(info.get("time")).get("created")) | message
        for message in made
    ]


def _build_timestamp_field(moment: Any) -> JsonFields:
    return {"timestamp": moment} if type(moment) is int and 0 < moment < 2**53 else {}


def _is_part_for_model(part: JsonFields) -> bool:
    """Tell whether a part goes to the model; of files only pictures do, others go as text."""
    if part.get("type") == "file":
        kind = get_text(part.get("mime")) or ""
        return kind.startswith("image/") and "url" in part
    return part.get("type") in ("text", "compaction") and part.get("ignored") is not True


def _parse_opencode_part(part: JsonFields) -> JsonFields:
    if part["type"] == "file":
        return {"type": "image_url", "image_url": {"url": part["url"]}}
    return build_text_part(
        OPENCODE_COMPACTION_PROMPT
        if part["type"] == "compaction"
        else get_text(part.get("text")) or ""
    )


def _split_opencode_steps(parts: list[JsonFields]) -> list[list[JsonFields]]:
    """Return the parts of each step; there is at least one step."""
    steps: list[list[JsonFields]] = [[]]
    for part in parts:
        if part.get("type") == STEP and steps[-1]:
            steps.append([])
        if part.get("type") != STEP:
            steps[-1].append(part)
    return steps


def _parse_opencode_step(parts: list[JsonFields]) -> Iterator[Message]:
    """Yield the answer of a step, then the results of its calls."""
    tools = [part for part in parts if part.get("type") == "tool"]
    more = {
        "tool_calls": list(map(_parse_opencode_call, tools)),
        **_parse_opencode_thoughts([part for part in parts if part.get("type") == "reasoning"]),
        "opencode": _find_step_cost(parts),
    }
    text = "\n\n".join(_list_opencode_texts(parts, "text"))
    yield {"role": "assistant", "content": text or None} | drop_empty_fields(more)
    yield from (
        _parse_opencode_result(part)
        for part in tools
        if _find_part_state(part).get("status") in ENDED_CALL_STATES
    )


def _parse_opencode_thoughts(parts: list[JsonFields]) -> JsonFields:
    """Return thoughts: as Anthropic's blocks if they are signed, else as text."""
    blocks = [*map(_build_signed_thought, parts)]
    if blocks and all(blocks):
        return {"thinking_blocks": blocks}
    return {"reasoning_content": "\n\n".join(_list_opencode_texts(parts, "reasoning"))}


def _build_signed_thought(part: JsonFields) -> JsonFields:
    """Return a thought as a block of Anthropic's; {} if it has no signature."""
    kept = get_fields(get_fields(part.get("metadata")).get("anthropic"))
    thought = get_text(part.get("text")) or ""
    match kept:
        case {"signature": str(signature)} if signature:
            return {"type": "thinking", "thinking": thought, "signature": signature}
        case {"redactedData": str(data)} if data:
            return {"type": "redacted_thinking", "data": data}
    return {}


def _list_opencode_texts(parts: list[JsonFields], kind: str) -> Iterator[str]:
    meant = (part for part in parts if part.get("type") == kind)
    return filter(None, (get_text(part.get("text")) for part in meant))


def _find_step_cost(parts: list[JsonFields]) -> JsonFields:
    """Return the tokens and the cost of a step, from the part that ends it."""
    ends = [part for part in parts if part.get("type") == STEP_END]
    return {key: end.get(key) for end in ends[-1:] for key in OPENCODE_COST_KEYS}


def _add_opencode_cost(made: list[Message], info: JsonFields) -> None:
    """Add the model to each answer, and the message's tokens if its steps have none."""
    answers = [message for message in made if message["role"] == "assistant"]
    told = {key: info[key] for key in OPENCODE_COST_KEYS if key in info}
    model = drop_empty_fields(
        {"modelID": info.get("modelID"), "providerID": info.get("providerID")}
    )
    if answers and not any("tokens" in answer.get("opencode", {}) for answer in answers):
        answers[-1]["opencode"] = answers[-1].get("opencode", {}) | told
    for answer in answers:
        answer["opencode"] = model | answer.get("opencode", {})


ENDED_CALL_STATES = ("completed", "error")


_RESULT_STATE_KEYS = ("status", "input", "output", "error", "attachments")


def _find_part_state(part: JsonFields) -> JsonFields:
    return get_fields(part.get("state"))


def _parse_opencode_call(part: JsonFields) -> JsonFields:
    arguments = json.dumps(_find_part_state(part).get("input") or {}, ensure_ascii=False)
    function = {"name": get_text(part.get("tool")) or "", "arguments": arguments}
    return {"id": _find_opencode_call_id(part), "type": "function", "function": function}


def _find_opencode_call_id(part: JsonFields) -> str:
    return get_text(part.get("callID")) or get_text(part.get("id")) or ""


def _parse_opencode_result(part: JsonFields) -> Message:
    state = _find_part_state(part)
    failed = state["status"] == "error"
    said = get_text(state.get("error" if failed else "output")) or ""
    attached = list(filter(None, map(get_fields, get_list(state.get("attachments")))))
    pictures = [part for part in attached if _is_part_for_model(part)]
    texts = [build_text_part(said)] if said else []
    content = [*texts, *map(_parse_opencode_part, pictures)]
    message: Message = {
        "role": "tool",
        "tool_call_id": _find_opencode_call_id(part),
        "content": content if pictures else said,
    }
    others = {"attachments": [part for part in attached if part not in pictures]}
    extra = drop_empty_fields({**drop_keys(state, *_RESULT_STATE_KEYS), **others})
    more = {"messageStatus": "error" if failed else None, "opencode": extra}
    ended = get_fields(state.get("time")).get("end")
    return message | _build_timestamp_field(ended) | drop_empty_fields(more)


DEFAULT_TITLE_STARTS = ("New session - ", "Child session - ")
"""The beginning of a default title."""

OpencodeMessagesById = dict[str, JsonFields]
"""The messages of a session, each under its id."""

ChatMessagesById = dict[str, list[Message]]
"""The chat messages of each of them."""


def is_opencode_export(value: Any) -> bool:
    """Tell whether a JSON value is a session, or a list of them."""
    return any(map(_is_opencode_session, wrap_in_list(value)))


def _is_opencode_session(value: Any) -> bool:
    messages = get_fields(value).get("messages")
    if not isinstance(messages, list) or not get_fields(value.get("info")):
        return False
    return not messages or any(map(is_opencode_message, messages))


def parse_opencode(source: TranscriptSource) -> Iterator[Event]:
    """Return each session of a file, its reverted messages, and the notes."""
    expected = "session: it has no 'info' and no 'messages'"
    return parse_conversations(source, _is_opencode_session, expected, _parse_opencode_session)


def _parse_opencode_session(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    info = item.value["info"]
    told, broken = _index_opencode_messages(item)
    yield from broken
    said = {name: parse_opencode_message(name, message) for name, message in told.items()}
    name = names.name(get_text(info.get("id")))
    opened, notes = _build_opencode_opening(name, info, said)
    first: dict[str, str | None] = dict.fromkeys(list(told)[:1])
    tree = Tree(
        (first | {after: before for before, after in pairwise(told)}),
        _find_present_message(info, list(told)),
        said.__getitem__,
    )
    events = build_tree_events(tree, opened) if told else iter([opened])
    yield from insert_compactions(events, dict(_find_opencode_compactions(told, said)))
    parts = (part for message in told.values() for part in list_opencode_parts(message))
    kinds = (str(part.get("type")) for part in parts)
    yield from list_omission_notes(
        Counter((kind, "") for kind in kinds if kind not in OPENCODE_PART_TYPES), "part"
    )
    yield from notes


def _index_opencode_messages(item: SourceValue) -> tuple[OpencodeMessagesById, list[NoteEvent]]:
    """Return the messages, and a note for each value that is not a message."""
    names = SessionNames("message")
    told: OpencodeMessagesById = {}
    broken = []
    for message in item.value["messages"]:
        if is_opencode_message(message):
            told[names.name(get_text(message["info"].get("id")))] = message
        else:
            broken.append(note_unread_value(item.row, message, "no message"))
    return told, broken


def _find_present_message(info: JsonFields, names: list[str]) -> str | None:
    """Return the last message that was not reverted; if a part is named, its message stays."""
    revert = get_fields(info.get("revert"))
    if revert.get("messageID") not in names:
        return None
    place = names.index(revert["messageID"])
    if not revert.get("partID"):
        place -= 1
    return names[place] if place >= 0 else None


def _build_opencode_opening(
    name: str, info: JsonFields, said: ChatMessagesById
) -> tuple[SessionEvent, list[NoteEvent]]:
    messages = list(chain.from_iterable(said.values()))
    given = get_text(info.get("title")) or ""
    titles = render_titles(
        ("" if given.startswith(DEFAULT_TITLE_STARTS) else given, find_title(messages))
    )
    kept, notes = split_metadata(drop_empty_fields(drop_keys(info, "id", "title", "directory")))
    facts = (message.get("opencode", {}) for message in reversed(messages))
    model = find_first_text(each.get("modelID") for each in facts)
    told = {"model": model, "parent_session": get_text(info.get("parentID"))}
    metadata = drop_empty_fields(told) | {"opencode": kept}
    root = get_text(info.get("directory"))
    return SessionEvent(name, find_first_text(titles), root, metadata, titles=titles), notes


def _find_opencode_compactions(
    told: OpencodeMessagesById, said: ChatMessagesById
) -> Iterator[tuple[int, CompactionEvent]]:
    """Yield the compactions: each answer sums up the chat before its question."""
    before: dict[str, int] = {}
    count = 0
    for name, message in told.items():
        before[name] = count
        count += len(said[name])
        asked = get_text(message["info"].get("parentID"))
        if message["info"].get("summary") is True and asked in told:
            through = before.get(_find_tail_start(told[asked]) or asked, 0)
            yield from [(count, CompactionEvent(through))] if through else []


def _find_tail_start(question: JsonFields) -> str | None:
    """Return the first message before a question that stayed visible, if any."""
    return find_first_text(part.get("tail_start_id") for part in list_opencode_parts(question))
