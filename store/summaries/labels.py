"""What a transcript calls those who speak in it, in the language of the prompt around it."""

from __future__ import annotations

from typing import NamedTuple


class Labels(NamedTuple):
    """The words for who speaks, for a call and for its result."""

    user: str
    assistant: str
    call: str
    result: str

    def speaker(self, role: object) -> str:
        """Return the word for a role; whoever is no user is an assistant."""
        return self.user if role == "user" else self.assistant


CHINESE = Labels("用户", "助手", "工具调用", "工具结果")
ENGLISH = Labels("User", "Assistant", "Tool call", "Tool result")


def labels_in(language: str) -> Labels:
    """Return the words that go with a prompt's language: Chinese ones or English ones."""
    return CHINESE if language.startswith("zh") else ENGLISH
