"""Conversations of OpenHands: lists of events, of V1 (the SDK) or V0, or results of evaluations.

Events sent to the model become messages (`conversation`). The other fields of an event are kept
under one extra key, ``openhands``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from ...records import Message
from ...text import JsonFields, format_count, wrap_in_list
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_text,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
    render_sketch,
    split_metadata,
)
from ..source import SourceValue, TranscriptSource
from . import program_events
from .program_events import (
    ConversationFacts,
    ProgramEvent,
    is_v0_event,
    is_v1_event,
    omit_event_keys,
)

CONDENSATION_EVENTS = (
    "Condensation",
    "CondensationRequest",
    "CondensationSummaryEvent",
    "condensation",
    "condensation_request",
)
"""Events of V1 and V0 that name the events no longer sent to the model."""

V1_RESULT_KINDS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")

UNSENT_OBSERVATIONS = ("null", "recall", "agent_state_changed", "condense", "success")
"""Observations of V0 that were not sent to a model in their own form."""

STEERING_ACTIONS = (
    "null",
    "recall",
    "change_agent_state",
    "start",
    "pause",
    "resume",
    "stop",
    "push",
    "send_pr",
    "initialize",
)
"""Actions of V0 that are neither a message nor a tool call."""

REPEATED_KEY_REASONS = {
    "action": "it repeats the call's arguments",
    "args": "they repeat the call's arguments",
    "llm_metrics": "they are sums over all events so far",
}
"""The events that are left out, and the reasons."""

_FAILURE_OBSERVATIONS = ("error", "user_rejected")  # observations of V0


class OpenhandsConversation:
    """Collect the messages of one list of events.

    ``name`` is the id of the conversation in its events. ``_answer`` is the open answer, to which
    further actions may belong.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self._model: str | None = None
        self._root: str | None = None
        self._messages: list[Message] = []
        self._answer: Message | None = None
        self._ids: set[str] = set()
        self._called: set[str] = set()
        self._condensed: list[JsonFields] = []
        self._recalled: list[JsonFields] = []
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._repeated: Counter[str] = Counter()

    @property
    def is_empty(self) -> bool:
        """Tell whether no event was taken yet."""
        return not (self._messages or self._left_out or self._condensed)

    def take(self, event: ProgramEvent) -> None:
        """Take one event."""
        self._learn(program_events.find_conversation_facts(event))
        if program_events.is_v1_event(event):
            self._take_v1(event, event["kind"])
        elif program_events.is_v0_action(event):
            self._take_action(event, event["action"])
        else:
            self._take_observation(event, event["observation"])

    def _learn(self, known: ConversationFacts) -> None:
        self._model = self._model or known.model
        self._root = self._root or known.root
        self.name = self.name or known.name

    def events(self, name: str, fields: JsonFields) -> Iterator[Event]:
        """Return the session, its messages and the notes.

        ``fields`` are the metadata of the session, apart from its events.
        """
        if self._messages:
            metadata, notes = self._metadata(fields)
            yield SessionEvent(name, find_title(self._messages), self._root, metadata)
            yield from map(SessionMessage, self._messages)
            yield from notes
        else:
            yield NoteEvent(None, f"no message in {name!r:.80}")
        if self._condensed:
            places = ", ".join(str(each["after"]) for each in self._condensed)
            text = f"the context was condensed after message {places}"
            yield NoteEvent(None, f"{text}: all messages stay")
        yield from list_omission_notes(self._left_out, "event")
        yield from self._repetitions()

    def _repetitions(self) -> Iterator[NoteEvent]:
        for key, count in sorted(self._repeated.items()):
            events = format_count(count, "event")
            yield NoteEvent(None, f"left out {key!r} of {events}: {REPEATED_KEY_REASONS[key]}")

    def _metadata(self, fields: JsonFields) -> tuple[JsonFields, list[NoteEvent]]:
        whole = fields | {"condensations": self._condensed, "recalled": self._recalled}
        said = {key: held for key, held in whole.items() if held != []}
        metadata, notes = split_metadata(said)
        if self._model:
            metadata = {"model": self._model} | metadata
        return metadata, notes

    # Events of V1.

    def _take_v1(self, event: ProgramEvent, kind: str) -> None:
        if kind in V1_EVENT_HANDLERS:
            V1_EVENT_HANDLERS[kind](self, event)
        else:
            self._leave(kind, event.get("key"))

    def _take_result(self, event: ProgramEvent) -> None:
        self._add(program_events.parse_result_event(event), _collect_result_extra(event))

    def _take_message(self, event: ProgramEvent) -> None:
        extra = omit_event_keys(event, "llm_message", "extended_content")
        self._add(program_events.parse_message_event(event), extra)

    def _take_prompt(self, event: ProgramEvent) -> None:
        extra = omit_event_keys(event, "system_prompt", "dynamic_context")
        self._add(program_events.parse_prompt_event(event), extra)

    def _act(self, event: ProgramEvent) -> None:
        """Take an action of V1: another call of the answer before it, or a new answer."""
        call = program_events.parse_action_call(event)
        response = event.get("llm_response_id")
        self._count_repeated(event, "action")
        extra = omit_event_keys(event, *_ACTION_MESSAGE_KEYS)
        answer = None if event.get("thought") else self._answer_of(response)
        if answer is None or _has_call(answer, get_fields(call).get("id")):
            message = program_events.build_action_message(event, call)
            self._add_answer(message, extra, {"llm_response_id": response})
        else:
            answer["tool_calls"].append(call)
            answer["openhands"]["events"].append(extra)

    # Events of V0.

    def _take_action(self, event: ProgramEvent, action: str) -> None:
        if action in CONDENSATION_EVENTS:
            self._condense(event)
        elif action in STEERING_ACTIONS:
            self._leave(action, "action")
        elif action == "system":
            content = program_events.parse_v0_content(get_fields(event.get("args")))
            self._add(
                {"role": "system", "content": content}, _collect_action_extra(event, "content")
            )
        elif action == "message":
            role = "assistant" if event.get("source") == "agent" else "user"
            self._add(
                {
                    "role": role,
                    "content": program_events.parse_v0_content(get_fields(event.get("args"))),
                },
                _collect_action_extra(event, "content", "image_urls"),
            )
        elif event.get("source") != "agent":
            command = get_fields(event.get("args")).get("command") or action
            self._add(
                {"role": "user", "content": f"User executed the command:\n{command}"},
                _collect_action_extra(event),
            )
        elif action == "finish" and not event.get("tool_call_metadata"):
            self._add(_parse_finish_action(event), _collect_action_extra(event))
        else:
            self._call(event)

    def _call(self, event: ProgramEvent) -> None:
        """Take an action of V0 that is a tool call.

        The first action of a response holds the whole answer. If one of its calls has no id, the
        actions cannot be matched with the calls, and each action is an answer of its own.
        """
        metadata = get_fields(event.get("tool_call_metadata"))
        response = get_fields(metadata.get("model_response"))
        call_id = metadata.get("tool_call_id")
        for key in ("args", "llm_metrics"):
            self._count_repeated(event, key)
        extra = omit_event_keys(event, "args", "llm_metrics", "message", "tool_call_metadata")
        extra["tool_call_id"] = call_id
        given = program_events.find_model_answer(metadata)
        answer = self._answer_of(response.get("id")) if given else None
        if answer and _has_call(answer, call_id) and not _has_call(answer, None):
            answer["openhands"]["events"].append(extra)
            return
        rest = omit_event_keys(response, "id", "choices")
        said = {"llm_response_id": response.get("id"), "response": rest}
        self._add_answer(given or program_events.build_v0_answer(event, metadata), extra, said)

    def _take_observation(self, event: ProgramEvent, observation: str) -> None:
        """Take the result of a call of V0, the output of a user's own command, or an error."""
        message = self._result_of(event)
        if message is None and observation in UNSENT_OBSERVATIONS:
            self._leave_unsaid(event, observation)
            return
        message = message or {
            "role": "user",
            "content": program_events.parse_observation_content(event),
        }
        if observation in _FAILURE_OBSERVATIONS:
            message["messageStatus"] = "error"
        extra = omit_event_keys(event, "content", "message", "tool_call_metadata", "llm_metrics")
        self._add(message, extra)

    def _leave_unsaid(self, event: ProgramEvent, observation: str) -> None:
        self._leave(observation, "observation")
        if observation == "recall" and event.get("extras"):
            self._recalled.append(event["extras"])

    def _result_of(self, event: ProgramEvent) -> Message | None:
        """Return an observation of V0 as the result of a call, None if it is not a result."""
        metadata = get_fields(event.get("tool_call_metadata"))
        cause = event.get("cause")
        call_id = get_text(metadata.get("tool_call_id")) or program_events.build_event_call_id(
            cause
        )
        if not metadata and (cause is None or call_id not in self._called):
            return None
        content = program_events.parse_observation_content(event)
        message: Message = {"role": "tool", "content": content, "tool_call_id": call_id}
        name = get_text(metadata.get("function_name"))
        if name:
            message["name"] = name
        return message

    # Both versions.

    def _answer_of(self, response: object) -> Message | None:
        """Return the open answer if it belongs to a response, None if it belongs to another."""
        if self._answer is None or not get_text(response):
            return None
        is_same = self._answer["openhands"].get("llm_response_id") == response
        return self._answer if is_same else None

    def _add_answer(self, message: Message, extra: JsonFields, response: JsonFields) -> None:
        """Add an answer that further actions may belong to."""
        said = {key: held for key, held in response.items() if held}
        self._add(message, extra, said | {"events": [extra]})
        self._answer = message
        call_ids = (get_text(get_fields(call).get("id")) for call in message["tool_calls"])
        self._called.update(filter(None, call_ids))

    def _add(self, message: Message, extra: JsonFields, kept: JsonFields | None = None) -> None:
        """Add a message with the extra of its event, or with ``kept`` instead.

        Results leave the answer open, because its calls may be carried out one by one.
        """
        if message["role"] != "tool":
            self._answer = None
        at = parse_iso_milliseconds(extra.get("timestamp"))
        if at is not None:
            message["timestamp"] = at
        name = get_text(extra.get("id"))
        if name and name not in self._ids:
            self._ids.add(name)
            message["id"] = name
        message["openhands"] = extra if kept is None else kept
        self._messages.append(message)

    def _leave(self, kind: str, subtype: object) -> None:
        self._left_out[kind, get_text(subtype) or ""] += 1

    def _condense(self, event: ProgramEvent) -> None:
        self._condensed.append({"after": len(self._messages)} | event)

    def _count_repeated(self, event: ProgramEvent, key: str) -> None:
        if event.get(key) is not None:
            self._repeated[key] += 1


V1_EVENT_HANDLERS: dict[str, Callable[[OpenhandsConversation, ProgramEvent], None]] = {
    "ActionEvent": OpenhandsConversation._act,
    "MessageEvent": OpenhandsConversation._take_message,
    "SystemPromptEvent": OpenhandsConversation._take_prompt,
    **dict.fromkeys(V1_RESULT_KINDS, OpenhandsConversation._take_result),
    **dict.fromkeys(CONDENSATION_EVENTS, OpenhandsConversation._condense),
}
"""Kind of an event of V1 → the method that takes it; events of other kinds are left out."""

_ACTION_MESSAGE_KEYS = (
    "thought",
    "action",
    "tool_call",
    "tool_call_id",
    "tool_name",
    "llm_response_id",
    *program_events.OPENHANDS_REASONING_KEYS,
)
"""Keys of a V1 action that are read into its message."""

_RESULT_MESSAGE_KEYS = ("content", "tool_name", "tool_call_id", "error", "extended_content")
"""Keys of a V1 result that are read into its message."""


def _has_call(answer: Message, call_id: object) -> bool:
    return any(get_fields(call).get("id") == call_id for call in answer["tool_calls"])


def _collect_result_extra(event: ProgramEvent) -> JsonFields:
    """Return the fields of a V1 result that are not in its message."""
    observation = omit_event_keys(get_fields(event.get("observation")), "content")
    return omit_event_keys(event | {"observation": observation}, *_RESULT_MESSAGE_KEYS)


def _collect_action_extra(event: ProgramEvent, *used: str) -> JsonFields:
    """Return the fields of a V0 action without the arguments that its message used."""
    extra = omit_event_keys(event, "message", "llm_metrics", "tool_call_metadata")
    if isinstance(event.get("args"), dict):
        extra["args"] = omit_event_keys(event["args"], *used)
    return extra


def _parse_finish_action(event: ProgramEvent) -> Message:
    """Return the last words of an agent of V0."""
    args = get_fields(event.get("args"))
    texts = (
        args.get("final_thought"),
        program_events.find_action_thought(args),
        event.get("message"),
    )
    return {"role": "assistant", "content": find_first_text(texts) or ""}


EVENT_LIST_KEYS = ("history", "trajectory", "events", "items")
"""Keys under which an object may hold its events."""

OPENHANDS_NAME_KEYS = ("instance_id", "conversation_id", "id")
"""Keys of an object that name it."""

_INSPECTED_EVENTS = 20  # the number of events that are inspected to recognize a list


def is_openhands_history(value: Any) -> bool:
    """Tell whether a JSON value is an event, a list of them, or an object that holds one."""
    events = [value] if _is_openhands_event(value) else _find_event_list(value) or []
    return any(map(_is_openhands_event, events[:_INSPECTED_EVENTS]))


def parse_openhands(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, and notes.

    Each list of events is a session; all events that are rows of their own form one session.
    """
    names = SessionNames(source.stem)
    loose = OpenhandsConversation()
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif _is_openhands_event(item.value):
            loose.take(item.value)
        else:
            yield from _parse_event_list(item, names)
    if not loose.is_empty:
        yield from loose.events(names.name(loose.name), {})


def _parse_event_list(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of one list of events, or of an object that holds one."""
    events = _find_event_list(item.value)
    if events is None:
        what = "neither an event nor a record with a list of them"
        yield note_unread_value(item.row, item.value, what)
        return
    fields = get_fields(item.value)
    wanted = find_first_text(fields.get(key) for key in OPENHANDS_NAME_KEYS)
    name = names.name(f"{names.stem}-{wanted:.80}" if wanted else None)
    conversation = OpenhandsConversation()
    for number, event in enumerate(events, 1):
        if _is_openhands_event(event):
            conversation.take(event)
        else:
            text = f"event {number} of {name!r:.80} is none: {render_sketch(event)}"
            yield NoteEvent(item.row, text, broken=True)
    history = _find_event_list_key(fields) or ""
    yield from conversation.events(name, drop_keys(fields, history))


def _is_openhands_event(value: Any) -> bool:
    return is_v1_event(value) or is_v0_event(value)


def _find_event_list(value: Any) -> list[Any] | None:
    """Return the events of a list, or of an object that holds one; V0 once kept them in pairs."""
    if isinstance(value, dict):
        value = value.get(_find_event_list_key(value) or "")
    if not isinstance(value, list):
        return None
    return list(chain.from_iterable(map(wrap_in_list, value)))


def _find_event_list_key(fields: JsonFields) -> str | None:
    lists = (key for key in EVENT_LIST_KEYS if isinstance(fields.get(key), list))
    return next(lists, None)
