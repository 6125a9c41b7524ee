"""Sessions of Google's Agent Development Kit: ``Runner(…, session_service=Sessions("chat.db"))``.

A session is one of the store, its events with a content are messages of the format ``gemini``; what
an event has beside lies under the key ``google_adk``. Events without a content are items without a
shape, which no view sends. The state of an app and that of a user are sessions without messages.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State
from google.genai.types import Content

from .. import InvalidMessage, Policy, SessionExists, SessionNotFound
from ..records import Message
from ..records import Session as StoredSession
from .stores import StoreSource, StoreUser, read_sessions

__all__ = ["Sessions", "compacted"]

ADK_KEY = "google_adk"
SHAPED, SHAPELESS = "gemini", "responses"
"""The formats of events with a content, and of those without one."""
ADK_SESSION = {"framework": "google-adk"}
CLIENT_ID_PREFIX = "adk-"
"""The beginning of the ids that the framework gives to calls without one; no model is sent them."""


class Sessions(StoreUser, BaseSessionService):
    """The sessions of a store, as ADK's ``BaseSessionService`` has them.

    ``store`` is an open store, or the path or URL of one, which `close` gives back.
    A user is the owner of a session. An event that is appended to a session that others changed
    since it was read raises StaleSessionError.
    """

    def __init__(self, store: StoreSource) -> None:
        super().__init__(store)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session. Raises AlreadyExistsError."""
        own_id = (session_id or "").strip() or str(uuid.uuid4())
        name = name_session(app_name, user_id, own_id)
        described = {**ADK_SESSION, "app": app_name, "user": user_id}

        def work(steps: Any) -> Session:
            created = steps.create_session(name, owner=user_id, metadata=described)
            moment = created.created_at / 1000
            write_state(steps, app_name, user_id, name, state or {}, moment)
            return build_session(steps, steps.session(name), [])

        try:
            return await self.awaited.atomically(work)
        except SessionExists as problem:
            raise AlreadyExistsError(f"Session with id {own_id} already exists.") from problem

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its events, or those that are asked for; None if there is none."""
        name = name_session(app_name, user_id, session_id.strip())
        newest = config.num_recent_events if config else None
        after = config.after_timestamp if config else None

        def work(reads: Any) -> Session:
            found = [] if newest == 0 else reads.messages(name, last=newest)
            events = [restore_event(each.message) for each in found]
            chosen = [each for each in events if after is None or each.timestamp >= after]
            return build_session(reads, reads.session(name), chosen)

        with suppress(SessionNotFound):
            return await self.awaited.reading(work)
        return None

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return the sessions of an app, or of its user, without events, the oldest first."""
        where = {**ADK_SESSION, "app": app_name}
        if user_id is not None:
            where["user"] = user_id
        listed = await self.awaited.reading(
            lambda reads: [
                build_session(reads, each, [])
                for each in read_sessions(reads, where)
                if get_own_id(each)
            ]
        )
        listed.sort(key=lambda each: (each.last_update_time, each.user_id, each.id))
        return ListSessionsResponse(sessions=listed)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erase a session for good; the states of its app and its user stay."""
        with suppress(SessionNotFound):
            name = name_session(app_name, user_id, session_id.strip())
            await self.awaited.delete_session(name)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state of a user in an app, by keys without their prefix."""
        return await self.awaited.reading(
            lambda reads: read_state(reads, name_state(app_name, user_id))
        )

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event with what it changes in the states, as one change.

        Raises SessionNotFoundError, and StaleSessionError if others changed the session.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        shaped = shape_event(event)
        try:
            is_new = await self._store_event(session, event, *shaped)
        except InvalidMessage:
            is_new = await self._store_event(session, event, SHAPELESS, shape_whole(event))
        return self._commit_event_to_session(session, event) if is_new else event

    async def _store_event(
        self, session: Session, event: Event, format_name: str, message: Message
    ) -> bool:
        name = name_session(session.app_name, session.user_id, session.id)

        def work(steps: Any) -> tuple[str, bool]:
            before = steps.session(name)
            check_stale(session, before)
            steps.append(name, message, format=format_name)
            is_new = steps.session(name).head != before.head
            if is_new:
                delta = event.actions.state_delta if event.actions else {}
                owner = (session.app_name, session.user_id)
                write_state(steps, *owner, name, delta or {}, event.timestamp)
            return steps.session(name).revision, is_new

        try:
            session._storage_update_marker, is_new = await self.awaited.atomically(work)
        except SessionNotFound as problem:
            raise SessionNotFoundError(f"Session {session.id} not found.") from problem
        session.last_update_time = event.timestamp
        return is_new


def compacted(
    sessions: Sessions, policy: Policy
) -> Callable[[CallbackContext, LlmRequest], Awaitable[None]]:
    """Return a callback before each request to a model, which sends the view by a policy.

    The view is compacted first if the policy says so; what is stored stays. A session with events
    of other agents, or that ADK itself rewound or compacted, is sent as ADK does.
    """

    async def send_view(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        session = callback_context.session
        agents = {"user", callback_context.agent_name}
        if all(is_plain_event(each, agents) for each in session.events):
            name = name_session(session.app_name, session.user_id, session.id)
            view = await sessions.load_view(name, policy, SHAPED)
            llm_request.contents = [*map(build_content, view.messages)]

    return send_view


def is_plain_event(event: Event, agents: set[str]) -> bool:
    """Tell whether an event is of some agents, and changes nothing in what is sent of others."""
    actions = event.actions
    return event.author in agents and not (
        actions.compaction or actions.rewind_before_invocation_id
    )


def build_content(message: Message) -> Content:
    """Return a message of a view as ADK sends it."""
    content = Content.model_validate(message)
    for part in content.parts or []:
        for call in (part.function_call, part.function_response):
            if call and call.id and call.id.startswith(CLIENT_ID_PREFIX):
                call.id = None
    return content


def name_session(app_name: str, user_id: str, session_id: str) -> str:
    """Return the id of the session of the store."""
    return f"{app_name}/{user_id}/{session_id}"


def get_own_id(stored: StoredSession) -> str:
    """Return the id of a session in ADK: of a fork, its own; empty if its name is no such one."""
    held = stored.metadata or {}
    beginning = name_session(held["app"], held["user"], "")
    return stored.id.removeprefix(beginning) if stored.id.startswith(beginning) else ""


def name_state(app_name: str, user_id: str | None = None) -> str:
    """Return the id of the session that holds the state of an app, or of a user in it."""
    return f"state of {app_name}" if user_id is None else f"state of {user_id} in {app_name}"


def check_stale(session: Session, stored: StoredSession) -> None:
    """Raise StaleSessionError if others changed a session since it was read."""
    marker = session._storage_update_marker
    updated = (stored.metadata or {})["updated"]
    is_stale = (
        updated > session.last_update_time + 0.001 if marker is None else marker != stored.revision
    )
    if is_stale:
        raise StaleSessionError(f"Session {session.id} was changed since it was read.")


def read_state(reads: Any, name: str) -> dict[str, Any]:
    """Return the state that a session holds; an empty one if it is not there."""
    try:
        held = (reads.session(name).metadata or {}).get("state")
    except SessionNotFound:
        return {}
    return json.loads(held) if held else {}


def write_state(
    steps: Any, app_name: str, user_id: str, name: str, delta: dict[str, Any], moment: float
) -> None:
    """Store what changes in the states of a session, its user and its app, by their prefixes."""
    changes: dict[str, dict[str, Any]] = {"": {}}
    for key, value in delta.items():
        prefix = next(
            (each for each in (State.APP_PREFIX, State.USER_PREFIX) if key.startswith(each)), ""
        )
        if not key.startswith(State.TEMP_PREFIX):
            changes.setdefault(prefix, {})[key.removeprefix(prefix)] = value
    names = {
        State.APP_PREFIX: name_state(app_name),
        State.USER_PREFIX: name_state(app_name, user_id),
    }
    for prefix in sorted(changes):  # in one order, so that two writers do not wait for each other
        place = names.get(prefix, name)
        if prefix:
            owner = user_id if prefix == State.USER_PREFIX else None
            steps.create_session(place, owner=owner, exist_ok=True)
        state = {**read_state(steps, place), **changes[prefix]}
        changed = {"state": json.dumps(state, default=str)}
        steps.set_metadata(place, changed if prefix else {**changed, "updated": moment}, merge=True)


def build_session(reads: Any, stored: StoredSession, events: list[Event]) -> Session:
    """Return a session with its events and the merged states."""
    held = stored.metadata or {}
    app_name, user_id = held["app"], held["user"]
    app_state = read_state(reads, name_state(app_name))
    user_state = read_state(reads, name_state(app_name, user_id))
    session = Session(
        id=get_own_id(stored),
        app_name=app_name,
        user_id=user_id,
        state=json.loads(held["state"])
        | {f"{State.APP_PREFIX}{key}": value for key, value in app_state.items()}
        | {f"{State.USER_PREFIX}{key}": value for key, value in user_state.items()},
        events=events,
        last_update_time=held["updated"],
    )
    session._storage_update_marker = stored.revision
    return session


# --- events as messages ---------------------------------------------------------------------------


def shape_event(event: Event) -> tuple[str, Message]:
    """Return the format of an event, and its message."""
    if not event.content or not event.content.parts or not event.content.role:
        return SHAPELESS, shape_whole(event)
    dumped = event.model_dump(mode="json", exclude_none=True, by_alias=True)
    content = dumped.pop("content")
    said = {"role": content["role"], "parts": content["parts"], "id": event.id}
    return SHAPED, {**said, "timestamp": int(event.timestamp * 1000), ADK_KEY: dumped}


def shape_whole(event: Event) -> Message:
    """Return an event as an item without a shape."""
    dumped = event.model_dump(mode="json", exclude_none=True, by_alias=True)
    return {ADK_KEY: dumped, "id": event.id}


def restore_event(message: Message) -> Event:
    """Return the event of a message; of one that has none, such as a redacted one, a plain one."""
    said = {key: message[key] for key in ("role", "parts") if key in message}
    author = "user" if said.get("role") == "user" else "model"
    held = message.get(ADK_KEY) or {"author": author, "id": str(message.get("id") or uuid.uuid4())}
    return Event.model_validate({**held, "content": said} if said else held)
