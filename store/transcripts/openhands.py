"""Conversations of OpenHands: lists of events, of V1 (the SDK) or V0, alone or among the records of an evaluation.

Events that the model was sent become messages; the actions of one response are one message. Events about the program
itself are counted and left out. What an event says beyond its message is kept under one extra key, ``openhands``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from . import openhands_events as told
from .events import Event as Report
from .events import (
    Noted,
    Opened,
    Said,
    SessionNames,
    fields_of,
    left_out,
    milliseconds,
    plural,
    simplest,
    sketch,
    split_metadata,
    text_of,
    title_of,
)
from .openhands_events import Event, Message, facts_of
from .source import Source, Value

HISTORIES = ("history", "trajectory", "events", "items")
"""Keys under which a record may hold its events."""

NAMES = ("instance_id", "conversation_id", "id")
"""Keys of a record that name it."""

CONDENSED = ("Condensation", "CondensationRequest", "CondensationSummaryEvent", "condensation", "condensation_request")
"""Events, of V1 and of V0, that say what the model was no longer sent."""

RESULTS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")

UNSAID = ("null", "recall", "agent_state_changed", "condense", "success")
"""Observations of V0 that no model was sent as they are."""

STEERING = ("null", "recall", "change_agent_state", "start", "pause", "resume", "stop", "push", "send_pr", "initialize")
"""Actions of V0 that are no one's words and no tool's work."""

REPEATED = {
    "action": "it repeats the call's arguments",
    "args": "they repeat the call's arguments",
    "llm_metrics": "they are sums over all events so far",
}
"""What is left out of events, and why."""

_LOOKED_AT = 20  # events of a list that are looked at to know it


def looks(value: Any) -> bool:
    """Tell whether a JSON value is an event, a list of them, or a record that holds one."""
    return _is_event(value) or any(map(_is_event, islice(_events_in(value) or (), _LOOKED_AT)))


def parse(source: Source) -> Iterator[Report]:
    """Return a session for each record or list, one for all events that stand on lines of their own; then notes."""
    names, loose = SessionNames(), _Conversation()
    for item in source.values():
        if isinstance(item, Noted):
            yield item
        elif _is_event(item.value):
            loose.take(item.value)
        else:
            yield from _record(item, source.stem, names)
    if not loose.is_empty:
        yield from loose.events(names.name(loose.name or source.stem), {})


class _Conversation:
    """Collect the messages of one list of events; ``_answer`` is the answer that further actions may belong to."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._messages: list[Message] = []
        self._answer: Message | None = None
        self._ids: set[str] = set()
        self._called: set[str] = set()
        self._model: str | None = None
        self._root: str | None = None
        self._condensed: list[dict[str, Any]] = []
        self._recalled: list[dict[str, Any]] = []
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._repeated: Counter[str] = Counter()

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing was taken yet."""
        return not (self._messages or self._left_out or self._condensed)

    def take(self, event: Event) -> None:
        """Take one event."""
        self._learn(event)
        if told.is_v1(event):
            self._take_v1(event, event["kind"])
        elif told.is_action(event):
            self._take_action(event, event["action"])
        else:
            self._take_observation(event, event["observation"])

    def events(self, name: str, record: dict[str, Any]) -> Iterator[Report]:
        """Return the session, its messages and the notes."""
        if not self._messages:
            yield Noted(None, f"no message in {name!r:.80}", False)
        else:
            facts = record | {"condensations": self._condensed, "recalled": self._recalled}
            metadata, notes = split_metadata({key: value for key, value in facts.items() if value != []}, without=())
            known = {"model": self._model} if self._model else {}
            yield Opened(name, title_of(self._messages), self._root, known | metadata)
            yield from map(Said, self._messages)
            yield from notes
        if self._condensed:
            places = ", ".join(str(each["after"]) for each in self._condensed)
            yield Noted(None, f"the context was condensed after message {places}: all messages stay", False)
        yield from left_out(self._left_out, "event")
        for key, count in sorted(self._repeated.items()):
            yield Noted(None, f"left out {key!r} of {plural(count, 'event')}: {REPEATED[key]}", False)

    def _take_v1(self, event: Event, kind: str) -> None:
        if kind == "ActionEvent":
            self._act(event)
        elif kind in RESULTS:
            used = ("content", "tool_name", "tool_call_id", "error", "extended_content")
            observation = facts_of(fields_of(event.get("observation")), "content")
            self._add(told.result_message(event), facts_of(event | {"observation": observation}, *used))
        elif kind == "MessageEvent":
            self._add(told.spoken_message(event), facts_of(event, "llm_message", "extended_content"))
        elif kind == "SystemPromptEvent":
            self._add(told.system_message(event), facts_of(event, "system_prompt", "dynamic_context"))
        elif kind in CONDENSED:
            self._condense(event)
        else:
            self._left_out[kind, text_of(event.get("key")) or ""] += 1

    def _act(self, event: Event) -> None:
        """Take an action of V1: another call of the answer before it, or a new answer."""
        call = event.get("tool_call")
        given = call if isinstance(call, dict) else {"id": event.get("tool_call_id"), "name": event.get("tool_name")}
        made = told.call_of(given if call else given | {"arguments": event.get("action")})
        self._drop(event, "action")
        used = ("thought", "action", "tool_call", "tool_call_id", "tool_name", "llm_response_id", *told.REASONING)
        facts = facts_of(event, *used)
        if self._continues(event.get("llm_response_id"), made) and not event.get("thought"):
            assert self._answer is not None
            self._answer["tool_calls"].append(made)
            self._answer["openhands"]["events"].append(facts)
            return
        content = simplest(told.parts_of(event.get("thought")))
        message = {"role": "assistant", "content": content, "tool_calls": [made]}
        thoughts = {key: event[key] for key in told.REASONING if event.get(key)}
        self._add_answer(message | thoughts, facts, {"llm_response_id": event.get("llm_response_id")})

    def _take_action(self, event: Event, action: str) -> None:
        """Take an action of V0."""
        args, agent = fields_of(event.get("args")), event.get("source") == "agent"
        if action == "system":
            self._add({"role": "system", "content": told.message_content(args)}, _facts(event, "content"))
        elif action == "message":
            role = "assistant" if agent else "user"
            self._add({"role": role, "content": told.message_content(args)}, _facts(event, "content", "image_urls"))
        elif action in CONDENSED:
            self._condense(event)
        elif action in STEERING:
            self._left_out[action, "action"] += 1
        elif not agent:
            text = f"User executed the command:\n{args.get('command') or action}"
            self._add({"role": "user", "content": text}, _facts(event))
        elif action == "finish" and not event.get("tool_call_metadata"):
            texts = (text_of(args.get("final_thought")), told.thought_of(args), text_of(event.get("message")))
            self._add({"role": "assistant", "content": next(filter(None, texts), "")}, _facts(event))
        else:
            self._call(event)

    def _call(self, event: Event) -> None:
        """Take an action of V0 that is a tool call: the first of a response holds the whole answer."""
        metadata = fields_of(event.get("tool_call_metadata"))
        response = fields_of(metadata.get("model_response"))
        given = told.given_answer(metadata)
        message = given or told.made_answer(event, metadata)
        for key in ("args", "llm_metrics"):
            self._drop(event, key)
        used = ("args", "llm_metrics", "message", "tool_call_metadata")
        facts = facts_of(event, *used) | {"tool_call_id": metadata.get("tool_call_id")}
        if given and self._continues(response.get("id"), None) and self._holds(metadata.get("tool_call_id")):
            assert self._answer is not None
            self._answer["openhands"]["events"].append(facts)
        else:
            answer = {"llm_response_id": response.get("id"), "response": facts_of(response, "id", "choices")}
            self._add_answer(message, facts, answer)

    def _take_observation(self, event: Event, observation: str) -> None:
        """Take an observation of V0: the result of a call, what a user's own command gave, or an error."""
        metadata = fields_of(event.get("tool_call_metadata"))
        call_id = text_of(metadata.get("tool_call_id")) or told.event_call_id(event.get("cause"))
        facts = facts_of(event, "content", "message", "tool_call_metadata", "llm_metrics")
        failed = {"messageStatus": "error"} if observation in ("error", "user_rejected") else {}
        content = told.observed_content(event)
        if metadata or (event.get("cause") is not None and call_id in self._called):
            named = {"name": metadata["function_name"]} if text_of(metadata.get("function_name")) else {}
            self._add({"role": "tool", "content": content, "tool_call_id": call_id} | named | failed, facts)
        elif observation in UNSAID:
            self._left_out[observation, "observation"] += 1
            self._recalled.extend([event["extras"]] if observation == "recall" and event.get("extras") else [])
        else:
            self._add({"role": "user", "content": content} | failed, facts)

    def _continues(self, response: object, call: Any) -> bool:
        """Tell whether an action belongs to the answer before it: of the same response, and not said yet."""
        if self._answer is None or not text_of(response):
            return False
        same = self._answer["openhands"].get("llm_response_id") == response
        return same and not self._holds(fields_of(call).get("id"))

    def _holds(self, call_id: object) -> bool:
        calls = self._answer["tool_calls"] if self._answer else ()
        return any(fields_of(call).get("id") == call_id for call in calls)

    def _add_answer(self, message: Message, facts: dict[str, Any], answer: dict[str, Any]) -> None:
        known = {key: value for key, value in answer.items() if value}
        self._add(message, facts, known | {"events": [facts]})
        self._answer = message
        self._called |= {call["id"] for call in message["tool_calls"] if text_of(fields_of(call).get("id"))}

    def _add(self, message: Message, event: dict[str, Any], facts: dict[str, Any] | None = None) -> None:
        """Add a message; results leave the answer open, as its calls may be carried out one by one."""
        if message["role"] != "tool":
            self._answer = None
        at = milliseconds(event.get("timestamp"))
        message |= {"timestamp": at} if at is not None else {}
        name = text_of(event.get("id"))
        if name and name not in self._ids:
            self._ids.add(name)
            message["id"] = name
        message["openhands"] = event if facts is None else facts
        self._messages.append(message)

    def _condense(self, event: Event) -> None:
        self._condensed.append({"after": len(self._messages)} | event)

    def _drop(self, event: Event, key: str) -> None:
        if event.get(key) is not None:
            self._repeated[key] += 1

    def _learn(self, event: Event) -> None:
        """Remember what an event says of its conversation: the model, the folder, the id."""
        response = fields_of(fields_of(event.get("tool_call_metadata")).get("model_response"))
        extras, observation, state = map(fields_of, (event.get(key) for key in ("extras", "observation", "value")))
        default = fields_of(fields_of(state.get("usage_to_metrics")).get("default"))
        agent = fields_of(fields_of(state.get("agent")).get("llm"))
        models = (response.get("model"), default.get("model_name"), agent.get("model"))
        roots = (
            extras.get("working_dir"),
            extras.get("repo_directory"),
            fields_of(state.get("workspace")).get("working_dir"),
            *(fields_of(each.get("metadata")).get("working_dir") for each in (extras, observation)),
        )
        self._model = self._model or next(filter(None, map(text_of, models)), None)
        self._root = self._root or next(filter(None, map(text_of, roots)), None)
        if event.get("key") == "full_state":
            self.name = self.name or text_of(state.get("id"))


def _record(item: Value, stem: str, names: SessionNames) -> Iterator[Report]:
    """Return the session of one list of events, or of a record that holds one."""
    events = _events_in(item.value)
    if events is None:
        yield Noted(item.line, f"{sketch(item.value)} is neither an event nor a record with a list of them", True)
        return
    record = item.value if isinstance(item.value, dict) else {}
    wanted = next(filter(None, (text_of(record.get(key)) for key in NAMES)), None)
    name = names.name(f"{stem}-{wanted:.80}" if wanted else stem)
    conversation = _Conversation()
    for number, event in enumerate(events, 1):
        if _is_event(event):
            conversation.take(event)
        else:
            yield Noted(item.line, f"event {number} of {name!r:.80} is none: {sketch(event)}", True)
    key = _history_of(record)
    yield from conversation.events(name, {each: value for each, value in record.items() if each != key})


def _is_event(value: Any) -> bool:
    return told.is_v1(value) or told.is_v0(value)


def _events_in(value: Any) -> list[Any] | None:
    """Return the events of a list or a record, None where it has none; V0 once kept them in pairs."""
    if isinstance(value, dict):
        value = value.get(_history_of(value) or "")
    if not isinstance(value, list):
        return None
    return [event for each in value for event in (each if isinstance(each, list) else [each])]


def _history_of(record: dict[str, Any]) -> str | None:
    return next((key for key in HISTORIES if isinstance(record.get(key), list)), None)


def _facts(event: Event, *used: str) -> dict[str, Any]:
    """Return what an event of V0 says beyond its message, without what was used of its arguments."""
    facts = facts_of(event, "message", "llm_metrics", "tool_call_metadata")
    return facts | ({"args": facts_of(event["args"], *used)} if isinstance(event.get("args"), dict) else {})
