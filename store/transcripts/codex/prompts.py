"""Which messages of a Codex rollout a user typed."""

from __future__ import annotations

from collections.abc import Iterable

from ...messages import Message, extract_content_text

CODEX_INJECTIONS = ("<", "# AGENTS.md instructions")
"""How the texts of user messages begin that no user typed."""


def find_typed_prompt(message: Message) -> str | None:
    """Return what a user typed, None for a message that no user typed."""
    if message["role"] != "user" or "author" in message.get("codex", {}):
        return None
    text = extract_content_text(message["content"])
    return text if not text.lstrip().startswith(CODEX_INJECTIONS) else None


def find_first_prompt(messages: Iterable[Message]) -> str | None:
    """Return the first text that a user typed, None where no user typed one."""
    prompts = map(find_typed_prompt, messages)
    return next((prompt for prompt in prompts if prompt and prompt.strip()), None)
