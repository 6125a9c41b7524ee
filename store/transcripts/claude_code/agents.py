"""Subagents of Claude Code with messages in rows of progress, and the cost of other subagents.

Some versions write each message of a subagent into a row that shows its progress, and nowhere else.
If a subagent's messages are in a file of its own, the result of its call tells its cost.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...text import JsonFields
from ..blocks import ContentBlock
from ..events import drop_keys, get_fields, get_text
from ..shelf import KeyNumbers

AGENT_PROGRESS_TYPE = "agent_progress"
AGENT_COST_KEYS = ("totalTokens", "totalDurationMs", "totalToolUseCount", "usage")
"""Keys of a subagent's result that tell its cost; ``usage`` is that of its last request."""
_PROGRESS_ROW_KEYS = ("data", "uuid", "timestamp", "toolUseID", "parentToolUseID")


class SubagentTracker:
    """Follow the subagents of a session: the calls that began them, and their last rows.

    ``_prompts`` leads from what calls ask of subagents to these calls, the first that asks it.
    """

    def __init__(self) -> None:
        self._prompts = KeyNumbers()
        self._asking: list[str] = []
        self.calls: dict[str, str] = {}
        self._last: dict[str, str | None] = {}

    def took(self, value: JsonFields) -> JsonFields | None:
        """Return the row of a subagent's that a row of progress holds, None where it holds none."""
        data = get_fields(value.get("data"))
        agent, said = get_text(data.get("agentId")), get_fields(data.get("message"))
        if (
            data.get("type") != AGENT_PROGRESS_TYPE
            or not agent
            or said.get("type") not in AGENT_MESSAGE_TYPES
        ):
            return None
        self.began(agent, get_text(value.get("parentToolUseID")))
        place = {"parentUuid": self._last.get(agent), "isSidechain": True, "agentId": agent}
        self._last[agent] = get_text(said.get("uuid"))
        return {**drop_keys(value, *_PROGRESS_ROW_KEYS), **said, **place}

    def began(self, agent: str | None, call: str | None) -> None:
        """Keep which call began a subagent."""
        if agent and call:
            self.calls[agent] = call

    def asked_in(self, blocks: Iterable[ContentBlock]) -> None:
        """Keep what calls ask of subagents."""
        for block in blocks:
            prompt = get_text(get_fields(block.get("input")).get("prompt"))
            call = get_text(block.get("id"))
            if block.get("type") == "tool_use" and prompt and call:
                self._prompts.setdefault(prompt, len(self._asking))
                self._asking.append(call)

    def call_that_asks(self, prompt: str) -> str | None:
        """Return the first call that asked a subagent for something."""
        number = self._prompts.get(prompt)
        return None if number is None else self._asking[number]


AGENT_MESSAGE_TYPES = ("user", "assistant")


def parse_agent_cost(result: object) -> JsonFields:
    """Return what the result of a call says of a subagent's cost, as a key of its message."""
    told = get_fields(result)
    cost = {key: told[key] for key in AGENT_COST_KEYS if key in told}
    return {"agent_cost": cost} if "totalTokens" in cost else {}
