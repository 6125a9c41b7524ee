"""Subagents of Claude Code with messages in rows of progress, and the cost of other subagents.

Some versions write each message of a subagent into a row that shows its progress, and nowhere else.
If a subagent's messages are in a file of its own, the result of its call tells its cost.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...text import Fields
from ..blocks import Block
from ..events import fields_of, text_of, without
from ..shelf import Numbers

PROGRESS = "agent_progress"
COST = ("totalTokens", "totalDurationMs", "totalToolUseCount", "usage")
"""Keys of a subagent's result that tell its cost; ``usage`` is that of its last request."""
_OF_PROGRESS = ("data", "uuid", "timestamp", "toolUseID", "parentToolUseID")


class Agents:
    """Follow the subagents of a session: the calls that began them, and their last rows.

    ``_prompts`` leads from what calls ask of subagents to these calls, the first that asks it.
    """

    def __init__(self) -> None:
        self._prompts = Numbers()
        self._asking: list[str] = []
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

    def asked_in(self, blocks: Iterable[Block]) -> None:
        """Keep what calls ask of subagents."""
        for block in blocks:
            prompt = text_of(fields_of(block.get("input")).get("prompt"))
            call = text_of(block.get("id"))
            if block.get("type") == "tool_use" and prompt and call:
                self._prompts.setdefault(prompt, len(self._asking))
                self._asking.append(call)

    def call_that_asks(self, prompt: str) -> str | None:
        """Return the first call that asked a subagent for something."""
        number = self._prompts.get(prompt)
        return None if number is None else self._asking[number]


SPEAKERS = ("user", "assistant")


def cost_of(result: object) -> Fields:
    """Return what the result of a call says of a subagent's cost, as a key of its message."""
    told = fields_of(result)
    cost = {key: told[key] for key in COST if key in told}
    return {"agent_cost": cost} if "totalTokens" in cost else {}
