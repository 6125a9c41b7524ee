"""Rollouts of Codex (2025 and 2026): items of the Responses API line by line, and what the program noted of them.

The lines that go to the model become messages; lines for the screen, which say the same again, are counted and left
out. One response of the model is one assistant message: its texts, its calls, its reasoning. What an item says beyond
the chat's shape is kept under one extra key, ``codex``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from store.messages import content_text

from .codex_items import (
    SPEECH,
    Item,
    Message,
    call_of,
    facts_of,
    is_answer,
    is_output,
    output_message,
    own_result,
    parts_of,
)
from .events import (
    Event,
    Noted,
    Opened,
    Said,
    cut,
    fields_of,
    left_out,
    milliseconds,
    plural,
    simplest,
    sketch,
    split_metadata,
    text_of,
)
from .source import Source, Value

LINES = ("session_meta", "response_item", "event_msg", "compacted", "turn_context", "world_state")
"""Types of lines by which a rollout is known; newer programs write more of them."""

BARE = ("function_call", "function_call_output", "local_shell_call")
"""Types of items that tell a rollout where they are lines of their own, as they were before September 2025."""

COMPACTIONS = ("compaction", "context_compaction", "compaction_summary")
"""Types of items that stand for a context that was compacted, readable by the API alone."""

INJECTED = ("<", "# AGENTS.md instructions")
"""How the texts of user messages begin that no user typed."""

_META = ("id", "cwd", "git", "cli_version")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a line of a rollout, or a whole one of the first program."""
    if not isinstance(value, dict):
        return False
    if "type" not in value:
        return _is_header(value) or value.get("record_type") == "state" or _is_whole(value)
    if "payload" not in value:
        return value["type"] in BARE and "call_id" in value
    return value["type"] in LINES and isinstance(value["payload"], dict)


def parse(source: Source) -> Iterator[Event]:
    """Return the session of a file, then each stretch of it that was taken back, then the notes."""
    rollout = _Rollout()
    for item in source.values():
        yield from [item] if isinstance(item, Noted) else rollout.take(item)
    yield from rollout.events(source.stem)


class _Rollout:
    """Collect a file's messages, line by line; ``_answer`` is the assistant message that the next items belong to."""

    def __init__(self) -> None:
        self._meta: Item = {}
        self._metas = 0
        self._messages: list[Message] = []
        self._answer: Message | None = None
        self._branches: list[tuple[int, list[Message]]] = []
        self._context: Item = {}
        self._title: str | None = None
        self._typed: str | None = None
        self._compactions: list[dict[str, Any]] = []
        self._aborted: list[int] = []
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._takers: dict[str, Callable[[Item, object], None]] = {
            "session_meta": self._take_meta,
            "response_item": self._take_item,
            "event_msg": self._take_event,
            "compacted": self._take_compacted,
            "turn_context": self._take_context,
            "inter_agent_communication": self._take_agent,
        }

    def take(self, value: Value) -> Iterator[Noted]:
        """Take one line; return what is wrong with it."""
        line = value.value
        if not isinstance(line, dict):
            yield Noted(value.line, f"{sketch(line)} is no line of a rollout", True)
            return
        kind, at = line.get("type"), line.get("timestamp")
        if not isinstance(kind, str):
            yield from self._take_untyped(value)
        elif "payload" not in line and kind not in self._takers:
            self._take_item({key: held for key, held in line.items() if key != "timestamp"}, at)
        elif not isinstance(line.get("payload"), dict):
            yield Noted(value.line, f"a {kind:.40} line without a payload that can be read", True)
        else:
            take = self._takers.get(kind)
            take(line["payload"], at) if take else self._leave(kind)

    def events(self, stem: str) -> Iterator[Event]:
        """Return all sessions, their messages, and the notes."""
        if not (self._messages or self._branches):
            yield Noted(None, "no message in this file", False)
            yield from self._notes()
            return
        name = text_of(self._meta.get("id")) or stem
        metadata, notes = self._metadata()
        title = self._title or self._typed or _first_prompt(self._messages)
        yield Opened(name, cut(title) or None if title else None, self._root(), metadata)
        yield from map(Said, _finished(self._messages))
        for number, (start, messages) in enumerate(self._branches, 1):
            facts = {"parent_session": name, "forked_at": start}
            branch = f"{name}/branch-{number}"
            yield Opened(branch, cut(_first_prompt(messages) or "") or None, self._root(), facts)
            yield from map(Said, _finished(messages))
            text = f"{plural(len(messages), 'message')} that were taken back are session {branch!r}"
            yield Noted(None, text, False)
        yield from self._notes()
        yield from notes

    def _take_untyped(self, value: Value) -> Iterator[Noted]:
        """Take what has no type: the head of an older rollout, its state lines, a whole one of the first program."""
        line = value.value
        if _is_whole(line):
            self._take_meta(line["session"], None)
            for item in line["items"]:
                yield from self.take(Value(value.line, item))
        elif _is_header(line):
            self._take_meta(line, None)
        elif "record_type" in line:
            self._leave(str(line["record_type"]))
        else:
            yield Noted(value.line, f"{sketch(line)} is no line of a rollout", True)

    def _take_meta(self, meta: Item, _: object) -> None:
        """Take the head of a session: the first is the file's own, others are of resumes and of what was copied."""
        self._metas += 1
        if self._metas == 1:
            self._meta = meta
        elif meta.get("id") != self._meta.get("id"):
            self._leave("session_meta", "of other sessions")

    def _take_context(self, context: Item, _: object) -> None:
        self._answer = None
        self._context = context
        self._leave("turn_context")

    def _take_item(self, item: Item, at: object) -> None:
        kind = str(item.get("type"))
        if is_answer(item):
            self._take_answer(item, at)
        elif kind in SPEECH:
            role = (kind == "message" and text_of(item.get("role"))) or "user"
            self._add({"role": role, "content": simplest(parts_of(item.get("content"))) or ""}, item, at)
        elif is_output(kind):
            self._add(output_message(item), item, at)
        elif kind in COMPACTIONS:
            self._note_compaction({"items": [item]}, at)
        else:
            self._leave("response_item", kind)

    def _take_answer(self, item: Item, at: object) -> None:
        """Add an item to the message of its response, which begins here if none is open."""
        if self._answer is None:
            model = text_of(self._context.get("model"))
            self._answer = {"role": "assistant", "content": [], "codex": {"items": []}}
            self._answer["codex"] |= {"model": model} if model else {}
            self._messages.append(_timed(self._answer, at))
        facts = facts_of(item)
        self._answer["codex"]["items"].append(facts | ({"timestamp": at} if isinstance(at, str) else {}))
        if item["type"] == "reasoning":
            self._answer.setdefault("reasoning_items", []).append(item)
        elif item["type"] == "message":
            self._answer["content"] += parts_of(item.get("content"))
        else:
            self._answer.setdefault("tool_calls", []).append(call_of(item))
            result = own_result(item)
            self._messages.extend([_timed(result, at)] if result else [])

    def _add(self, message: Message, item: Item, at: object) -> None:
        """Add a message of its own, which ends the response before it."""
        self._answer = None
        facts = facts_of(item)
        usual = "message" if item.get("type") == "message" else "function_call_output"
        if facts["type"] == usual:
            del facts["type"]
        self._messages.append(_timed(message | ({"codex": facts} if facts else {}), at))

    def _take_agent(self, said: Item, at: object) -> None:
        self._take_item(said | {"type": "agent_message"}, at)

    def _take_event(self, event: Item, _: object) -> None:
        """Take a line for the screen: a few say what no item says."""
        kind = str(event.get("type"))
        if kind == "token_count":
            self._take_usage(fields_of(event.get("info")).get("last_token_usage"))
        elif kind == "thread_name_updated":
            self._title = text_of(event.get("thread_name")) or self._title
        elif kind == "user_message":
            self._typed = self._typed or text_of(event.get("message"))
        elif kind == "thread_rolled_back":
            self._roll_back(event.get("num_turns"))
        elif kind == "turn_aborted":
            self._answer = None
            self._aborted.append(len(self._messages))
        self._leave("event_msg", kind)

    def _take_usage(self, usage: object) -> None:
        """Keep a response's tokens with its message; they are said when it has ended, and again later."""
        answer = next((each for each in reversed(self._messages) if each["role"] == "assistant"), None)
        if answer is None or not isinstance(usage, dict):
            return
        answer["codex"].setdefault("usage", usage)
        if answer is self._answer and (answer["content"] or "tool_calls" in answer):
            self._answer = None

    def _take_compacted(self, compacted: Item, at: object) -> None:
        history = compacted.get("replacement_history")
        items = [item for item in history if isinstance(item, dict)] if isinstance(history, list) else []
        facts = {key: value for key, value in compacted.items() if key != "replacement_history" and value}
        kept = [item for item in items if item.get("type") != "message"]
        self._note_compaction(facts | {"replaced_by": len(items)} | ({"items": kept} if kept else {}), at)

    def _note_compaction(self, facts: dict[str, Any], at: object) -> None:
        self._answer = None
        self._compactions.append({"after": len(self._messages), "timestamp": at} | facts)

    def _roll_back(self, turns: object) -> None:
        """Take the last turns out of the line: they become a session of their own."""
        prompts = [place for place, message in enumerate(self._messages) if _prompt_of(message) is not None]
        if type(turns) is int and turns > 0 and prompts:
            start = prompts[-min(turns, len(prompts))]
            self._branches.append((start, self._messages[start:]))
            del self._messages[start:]
            self._answer = None

    def _leave(self, kind: str, subtype: str = "") -> None:
        self._left_out[kind, subtype] += 1

    def _root(self) -> str | None:
        return text_of(self._meta.get("cwd")) or text_of(self._context.get("cwd"))

    def _metadata(self) -> tuple[dict[str, Any], list[Noted]]:
        """Return what is known of the session as a whole, and a note for each thing too big for it."""
        known = {"model": self._context.get("model")} | {key: self._meta.get(key) for key in ("cli_version", "git")}
        known["parent_session"] = _parent_of(self._meta)
        facts = {key: value for key, value in self._meta.items() if key not in _META}
        facts |= {"turn_context": self._context} if self._context else {}
        facts |= {"compactions": self._compactions} if self._compactions else {}
        kept, notes = split_metadata(facts, without=())
        return {key: value for key, value in known.items() if value is not None} | {"codex": kept}, notes

    def _notes(self) -> Iterator[Noted]:
        if self._compactions:
            places = ", ".join(str(each["after"]) for each in self._compactions)
            text = f"the context was compacted after message {places}: all messages stay, what is known is metadata"
            yield Noted(None, text, False)
        if self._aborted:
            text = f"a turn was interrupted after message {', '.join(map(str, self._aborted))}"
            yield Noted(None, text, False)
        if self._metas > 1:
            yield Noted(None, f"the session begins {self._metas} times in the file: it was resumed or copied", False)
        yield from left_out(self._left_out, "line")


def _is_header(value: dict[str, Any]) -> bool:
    """Tell whether a value is the first line of an older rollout."""
    return {"id", "timestamp", "instructions"} <= value.keys() and "role" not in value


def _is_whole(value: dict[str, Any]) -> bool:
    """Tell whether a value is a whole rollout, as the first program wrote them."""
    return "id" in fields_of(value.get("session")) and isinstance(value.get("items"), list)


def _parent_of(meta: Item) -> str | None:
    """Return the session that made this one as its subagent."""
    spawn = fields_of(fields_of(fields_of(meta.get("source")).get("subagent")).get("thread_spawn"))
    return text_of(meta.get("parent_thread_id")) or text_of(spawn.get("parent_thread_id"))


def _timed(message: Message, at: object) -> Message:
    moment = milliseconds(at)
    if moment is not None:
        message["timestamp"] = moment
    return message


def _prompt_of(message: Message) -> str | None:
    """Return what a user typed, None for a message that no user typed."""
    if message["role"] != "user" or "author" in message.get("codex", {}):
        return None
    text = content_text(message["content"])
    return text if not text.lstrip().startswith(INJECTED) else None


def _first_prompt(messages: list[Message]) -> str | None:
    return next((text for text in map(_prompt_of, messages) if text and text.strip()), None)


def _finished(messages: list[Message]) -> Iterator[Message]:
    """Return messages with their content as simple as it can be, and with the API's id where it is theirs alone."""
    taken: set[str] = set()
    for message in messages:
        if message["role"] == "assistant":
            message["content"] = simplest(message["content"])
        wanted = _wanted_id(message.get("codex", {}))
        if wanted and wanted not in taken:
            taken.add(wanted)
            message["id"] = wanted
        yield message


def _wanted_id(facts: dict[str, Any]) -> str | None:
    """Return the API's id of a message: of an answer, that of its text, else that of its first item that has one."""
    items = sorted(facts.get("items", [facts]), key=lambda item: item.get("type") != "message")
    return next(filter(None, (text_of(item.get("id")) for item in items)), None)
