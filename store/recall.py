"""Recall as a tool of an agent: its definition, and the answer to a call of it.

    tools = [*own_tools, tool()]
    ...
    if call["function"]["name"] == NAME:
        content = answer(store, session_id, call["function"]["arguments"])

The answer is stored as any other result, so it is in sight, and among the newest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

from .context import recall_tool
from .policy import Policy
from .records import Passage

__all__ = [
    "BUDGET",
    "NAME",
    "POLICY",
    "Recalls",
    "answer",
    "tool",
]

NAME = "recall"
"""The name of the tool."""
POLICY = Policy.named("paged")
"""The policy of the views unless a call names another."""
BUDGET = 6_000
"""Tokens of an answer, about."""

ASK = "say what to recall: `names`, a list of exact names, or `text`, some words"
NOTHING = "nothing that is out of sight has that; try another name, or fewer words"


class Recalls(Protocol):
    """A source of passages: a store, or the sessions of one owner."""

    def recall(
        self,
        session_id: str,
        wanted: str | Iterable[str],
        /,
        *,
        policy: Policy,
        budget: int,
    ) -> list[Passage]:
        """Return the passages that are out of sight and match the wanted names or words."""


def tool(name: str = NAME) -> dict[str, Any]:
    """Return the definition of the tool, in the format of chat completions."""
    return recall_tool(name)


def answer(
    store: Recalls,
    session_id: str,
    arguments: str | dict[str, Any],
    *,
    policy: Policy = POLICY,
    budget: int = BUDGET,
) -> str:
    """Return the answer to a call of the tool: passages, or a sentence that says what to do.

    ``arguments`` are those of the call, a JSON text or an object; any arguments of a model are
    answered, never raised. ``policy`` is that of the views. Raises SessionNotFound, and any other
    error of the store that the arguments did not cause.
    """
    given = _read(arguments)
    names, text = given.get("names"), given.get("text")
    listed = names if isinstance(names, list) else [names]
    words = text.split() if isinstance(text, str) else []
    named = [*listed, text, *words]
    wanted = [each for each in named if isinstance(each, str) and each.strip()]
    if not wanted:
        return ASK
    passages = store.recall(session_id, wanted, policy=policy, budget=budget)
    return "\n\n".join(each.text for each in passages) or NOTHING


def _read(arguments: str | dict[str, Any]) -> dict[str, Any]:
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}
