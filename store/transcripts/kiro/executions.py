"""The sub-agents of a session of Kiro; each has a file of records below it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...text import JsonFields
from ..limits import Limits
from ..parser_events import get_fields, get_nested, get_text

SUB_EXECUTIONS_FOLDER = "sub-executions"
"""The folder below a session's in which the files of its sub-agents are."""
RECORDS_FILE = "messages.jsonl"
"""The file of records in a session's folder."""


class SubExecution(NamedTuple):
    """A sub-agent: the id of its session and of its parent's, the record of its start, its call."""

    name: str
    parent: str
    start: JsonFields
    call: str | None

    @property
    def asked(self) -> list[JsonFields]:
        """The record of its start as that of its task; none where it is not told."""
        told = get_fields(self.start.get("payload"))
        prompt = {"type": "user", "content": told.get("prompt")}
        return [self.start | {"payload": prompt}] if get_text(told.get("prompt")) else []

    @property
    def told(self) -> JsonFields:
        """What the record of its start says beyond that."""
        told = get_fields(self.start.get("payload"))
        return {
            "title": told.get("explanation"),
            "createdAt": self.start.get("timestamp"),
            "rootConversationId": self.parent,
            "subAgentName": told.get("subAgentName"),
        }


def load_sub_execution(path: Path, root: str, limits: Limits) -> SubExecution | None:
    """Return what the files beside a file tell of it; None if it is not that of a sub-agent.

    ``root`` is the id of the session in whose folder it is. Another sub-agent may have begun it.
    """
    if path.parent.name != SUB_EXECUTIONS_FOLDER:
        return None
    others = [each for each in sorted(path.parent.glob("*.jsonl")) if each.name != path.name]
    start: JsonFields = {}
    call = None
    for file in (path.parent.parent / RECORDS_FILE, *others):
        for record in _list_records_with(file, path.stem, limits):
            told = get_fields(record.get("payload"))
            if told.get("subSessionId") == path.stem and told.get("type") == "sub_agent_start":
                start = record
            if get_nested(told, "_meta", "kiro", "agentSubtaskId") == path.stem:
                call = call or get_text(told.get("toolCallId"))
        if start:
            is_root = file.name == RECORDS_FILE
            parent = root if is_root else _name_sub_execution(root, file)
            return SubExecution(_name_sub_execution(root, path), parent, start, call)
    return SubExecution(_name_sub_execution(root, path), root, {}, call)


def _name_sub_execution(root: str, path: Path) -> str:
    return f"{root}/agent-{path.stem}"


def _list_records_with(path: Path, name: str, limits: Limits) -> Iterator[JsonFields]:
    """Yield the records of a file that have a name in them."""
    wanted = name.encode()
    with suppress(OSError), path.open("rb") as lines:
        for line in lines:
            limits.check_time()
            if wanted in line:
                with suppress(ValueError, RecursionError):
                    yield get_fields(json.loads(line))
