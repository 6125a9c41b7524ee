"""Sessions of Strands: ``RepositorySessionManager("chat-1", Repository("chat.db"))``.

A session of the framework has one session of the store for its state, and one for each agent. Each
result of a tool is a message of a chat, and so is what else a message says; the blocks are kept
under the key ``strands``. A message that a guardrail redacts is redacted here: its words are gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from itertools import groupby
from typing import Any

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from .. import MessageNotFound, Policy, SessionExists, SessionNotFound
from ..records import Message, Note
from .stores import StoreSource, StoreUser

__all__ = ["Repository"]

STRANDS_KEY = "strands"
STATE_KEYS = {"framework": "strands"}


class Repository(StoreUser, SessionRepository):
    """The sessions of a store, as Strands' ``SessionRepository`` has them.

    ``store`` is an open store, or the path or URL of one, which `close` gives back. With a
    ``policy`` an agent that is restored gets the view by that policy, compacted first if the policy
    says so, whatever the framework's own manager of conversations has trimmed.
    """

    def __init__(self, store: StoreSource, *, policy: Policy | None = None) -> None:
        super().__init__(store)
        self._policy = policy

    def create_session(self, session: Session, **_: Any) -> Session:
        """Create a session. Raises SessionException if it exists."""
        state = {**STATE_KEYS, "session": json.dumps(session.to_dict())}
        try:
            self.store.create_session(session.session_id, metadata=state)
        except SessionExists as problem:
            raise SessionException(f"session {session.session_id} already exists") from problem
        return session

    def read_session(self, session_id: str, **_: Any) -> Session | None:
        """Return a session; None if there is none."""
        held = self._read_state(session_id, "session")
        return None if held is None else Session.from_dict(held)

    def create_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        """Create an agent of a session. Raises SessionException."""

        def work(steps: Any) -> None:
            require_session(steps, session_id)
            metadata = {**STATE_KEYS, "agent": json.dumps(session_agent.to_dict())}
            steps.create_session(name_agent(session_id, session_agent.agent_id), metadata=metadata)

        try:
            self.store.atomically(work)
        except SessionExists as problem:
            raise SessionException(f"agent {session_agent.agent_id} already exists") from problem

    def read_agent(self, session_id: str, agent_id: str, **_: Any) -> SessionAgent | None:
        """Return an agent; None if there is none."""
        held = self._read_state(name_agent(session_id, agent_id), "agent")
        return None if held is None else SessionAgent.from_dict(held)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        """Store another state of an agent, which keeps its creation. Raises SessionException."""

        def work(steps: Any) -> None:
            name = name_agent(session_id, session_agent.agent_id)
            before = json.loads(require_session(steps, name)["agent"])
            state = {**session_agent.to_dict(), "created_at": before["created_at"]}
            steps.set_metadata(name, {"agent": json.dumps(state)}, merge=True)

        self.store.atomically(work)

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any
    ) -> None:
        """Append a message of an agent. Raises SessionException."""

        def work(steps: Any) -> None:
            name = name_agent(session_id, agent_id)
            require_session(steps, name)
            if steps.find(str(session_message.message_id), name):
                raise SessionException(f"message {session_message.message_id} already exists")
            steps.append(name, build_message_rows(session_message))

        self.store.atomically(work)

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **_: Any
    ) -> SessionMessage | None:
        """Return a message of an agent; None if there is none."""
        with suppress(SessionNotFound):
            found = self._list_stored(name_agent(session_id, agent_id))
            return next((each for each in found if each.message_id == message_id), None)
        return None

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any
    ) -> None:
        """Replace a message, one that is redacted for good. Raises SessionException.

        The words of a redacted one are overwritten, on every line that has it; what is shown in
        their place is a note beside it, and so is any other replacement.
        """
        told = session_message.to_dict()

        def work(steps: Any) -> None:
            name = name_agent(session_id, agent_id)
            require_session(steps, name)
            try:
                last = steps.message(name, str(session_message.message_id)).seq
            except MessageNotFound as problem:
                text = f"message {session_message.message_id} does not exist"
                raise SessionException(text) from problem
            if session_message.redact_message is not None:
                told["message"] = told["redact_message"]
                first = last
                while first > 1 and is_part(steps.message(name, first - 1).message, told):
                    first -= 1
                for seq in range(first, last + 1):
                    steps.redact(name, seq, "redacted by the agent")
            steps.annotate(name, last, STRANDS_KEY, told)

        self.store.atomically(work)

    def list_messages(
        self,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **_: Any,
    ) -> list[SessionMessage]:
        """Return the messages of an agent from the place ``offset`` on, at most ``limit``."""
        name = name_agent(session_id, agent_id)
        with suppress(SessionNotFound):
            if self._policy is not None and limit is None:
                return self._list_view(name, self._policy)
            stored = self._list_stored(name)
            return stored[offset : None if limit is None else offset + limit]
        return []

    def _list_stored(self, name: str) -> list[SessionMessage]:
        rows, notes = self.store.reading(
            lambda reads: (
                [each.message for each in reads.messages(name)],
                reads.annotations(name, key=STRANDS_KEY),
            )
        )
        return join_messages(rows, notes)

    def _list_view(self, name: str, policy: Policy) -> list[SessionMessage]:
        view = self.read_view(name, policy)
        notes = self.store.annotations(name, key=STRANDS_KEY)
        return join_messages([each.message for each in view.entries], notes)

    def create_multi_agent(self, session_id: str, multi_agent: Any, **_: Any) -> None:
        """Store the state of several agents. Raises SessionException."""
        self._write_multi_agent(session_id, multi_agent, is_new=True)

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **_: Any
    ) -> dict[str, Any] | None:
        """Return the state of several agents; None if there is none."""
        held: dict[str, Any] | None = self._read_state(session_id, f"multi_agent/{multi_agent_id}")
        return held

    def update_multi_agent(self, session_id: str, multi_agent: Any, **_: Any) -> None:
        """Store another state of several agents. Raises SessionException."""
        self._write_multi_agent(session_id, multi_agent, is_new=False)

    def _write_multi_agent(self, session_id: str, multi_agent: Any, *, is_new: bool) -> None:
        key, state = f"multi_agent/{multi_agent.id}", json.dumps(multi_agent.serialize_state())

        def work(steps: Any) -> None:
            if key not in require_session(steps, session_id) and not is_new:
                raise SessionException(f"{multi_agent.id} does not exist in {session_id}")
            steps.set_metadata(session_id, {key: state}, merge=True)

        self.store.atomically(work)

    def _read_state(self, name: str, key: str) -> Any:
        try:
            held = (self.store.session(name).metadata or {}).get(key)
        except SessionNotFound:
            return None
        return held and json.loads(held)


def name_agent(session_id: str, agent_id: str) -> str:
    """Return the id of the session with the messages of an agent."""
    return f"{session_id}/agents/{agent_id}"


def require_session(steps: Any, name: str) -> dict[str, Any]:
    """Return the metadata of a session. Raises SessionException."""
    try:
        return steps.session(name).metadata or {}
    except SessionNotFound as problem:
        raise SessionException(f"{name} does not exist") from problem


# --- messages of Converse as messages of a chat ---------------------------------------------------


def build_message_rows(given: SessionMessage) -> list[Message]:
    """Return the rows of a message: a result of a tool each, and what else is said in one."""
    told = given.to_dict()
    blocks = told["message"].pop("content")
    results = [number for number, block in enumerate(blocks) if "toolResult" in block]
    said = [number for number in range(len(blocks)) if number not in results]
    rows = [build_result_row(number, blocks[number]["toolResult"]) for number in results]
    if said or not rows:
        shown = {number: blocks[number] for number in said}
        rows.append(build_said_row(told["message"]["role"], shown))
    for number, row in enumerate(rows, start=1):
        row["id"] = f"{given.message_id}/{number}"
        row["timestamp"] = int(datetime.fromisoformat(given.created_at).timestamp() * 1000)
    rows[-1]["id"] = str(given.message_id)
    rows[-1][STRANDS_KEY]["record"] = told
    return rows


def build_result_row(number: int, result: dict[str, Any]) -> Message:
    """Return the result of a tool as a message."""
    row: Message = {
        "role": "tool",
        "tool_call_id": result["toolUseId"],
        "content": render_result(result),
        STRANDS_KEY: {"blocks": {str(number): {"toolResult": result}}},
    }
    if result.get("status") == "error":
        row["messageStatus"] = "error"
    return row


def render_result(result: dict[str, Any]) -> str:
    """Return the content of a result as a text."""
    parts = result.get("content") or []
    texts = [part.get("text", None) for part in parts]
    said = [
        json.dumps(part, ensure_ascii=False) if text is None else text
        for part, text in zip(parts, texts, strict=True)
    ]
    return "\n\n".join(said)


def build_said_row(role: str, blocks: dict[int, dict[str, Any]]) -> Message:
    """Return texts and calls as a message; other blocks are kept beside."""
    text = "\n\n".join(block["text"] for block in blocks.values() if "text" in block)
    calls = [block["toolUse"] for block in blocks.values() if "toolUse" in block]
    row: Message = {"role": role, "content": text}
    if calls:
        row["tool_calls"] = [
            {
                "id": call["toolUseId"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["input"])},
            }
            for call in calls
        ]
    row[STRANDS_KEY] = {"blocks": {str(number): block for number, block in blocks.items()}}
    return row


def is_part(row: Message, told: dict[str, Any]) -> bool:
    """Tell whether a row belongs to the message of a record, before its last row."""
    return str(row.get("id")).startswith(f"{told['message_id']}/")


def join_messages(rows: Iterable[Message], notes: Iterable[Note]) -> list[SessionMessage]:
    """Return the messages of rows, each as a note says it, if there is one."""
    replaced = {note.value["message_id"]: note.value for note in notes}
    messages = []
    for name, group in groupby(rows, lambda row: str(row.get("id") or 0).partition("/")[0]):
        number = int(name) if name.isdecimal() else 0
        message = replaced.get(number) or restore_record(number, [*group])
        messages.append(SessionMessage.from_dict(message))
    return messages


def restore_record(number: int, rows: list[Message]) -> dict[str, Any]:
    """Return the record of a message from its rows; texts are those of the rows."""
    blocks: dict[int, Any] = {}
    for row in rows:
        held = row.get(STRANDS_KEY, {}).get("blocks")
        held = build_plain_blocks(row) if held is None else replace_texts(row, held)
        blocks |= {int(key): block for key, block in held.items()}
    role = "assistant" if rows[-1]["role"] == "assistant" else "user"
    record = rows[-1].get(STRANDS_KEY, {}).get("record") or {"message": {"role": role}}
    content = [blocks[key] for key in sorted(blocks)]
    return {**record, "message_id": number, "message": {**record["message"], "content": content}}


def build_plain_blocks(row: Message) -> dict[str, Any]:
    """Return the blocks of a row that another program made, or that was redacted."""
    said = str(row.get("content") or "")
    if row["role"] == "tool":
        return {
            "0": {"toolResult": {"toolUseId": row["tool_call_id"], "content": [{"text": said}]}}
        }
    return {"0": {"text": said}}


def replace_texts(row: Message, blocks: dict[str, Any]) -> dict[str, Any]:
    """Return the blocks of a row with its text, where a view replaced the text of a result."""
    if row["role"] != "tool":
        return blocks
    ((key, block),) = blocks.items()
    result = block["toolResult"]
    if render_result(result) == row["content"]:
        return blocks
    return {key: {"toolResult": {**result, "content": [{"text": row["content"]}]}}}
