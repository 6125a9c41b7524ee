"""Subagents of Claude Code whose messages stand in rows of progress, and what others cost.

Some versions write each message of a subagent into a row that shows its progress, and nowhere else.
Of one whose messages are in a file of its own, the result of its call tells what it cost.
"""

from __future__ import annotations

from ...text import Fields
from ..events import fields_of, text_of, without

PROGRESS = "agent_progress"
COST = ("totalTokens", "totalDurationMs", "totalToolUseCount", "usage")
"""Keys of a subagent's result that say what it cost; ``usage`` is that of its last request."""
_OF_PROGRESS = ("data", "uuid", "timestamp", "toolUseID", "parentToolUseID")


class Agents:
    """Follow the subagents of a session: the calls that began them, and their last rows."""

    def __init__(self) -> None:
        self.calls: dict[str, str] = {}
        self._last: dict[str, str | None] = {}

    def took(self, value: Fields) -> Fields | None:
        """Return the row of a subagent's that a row of progress holds, None where it holds none."""
        data = fields_of(value.get("data"))
        agent, said = text_of(data.get("agentId")), fields_of(data.get("message"))
        if data.get("type") != PROGRESS or not agent or said.get("type") not in SPEAKERS:
            return None
        self.began(agent, text_of(value.get("parentToolUseID")))
        place = {"parentUuid": self._last.get(agent), "isSidechain": True, "agentId": agent}
        self._last[agent] = text_of(said.get("uuid"))
        return {**without(value, *_OF_PROGRESS), **said, **place}

    def began(self, agent: str | None, call: str | None) -> None:
        """Keep which call began a subagent."""
        if agent and call:
            self.calls[agent] = call


SPEAKERS = ("user", "assistant")


def cost_of(result: object) -> Fields:
    """Return what the result of a call says of a subagent's cost, as a key of its message."""
    told = fields_of(result)
    cost = {key: told[key] for key in COST if key in told}
    return {"agent_cost": cost} if "totalTokens" in cost else {}
