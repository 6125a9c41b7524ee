"""What a transcript calls those who speak in it, in the language of the prompt around it."""

from __future__ import annotations

from typing import NamedTuple

from ..ready import Language, phrase


class Labels(NamedTuple):
    """The words for who speaks, for a call and for its result."""

    user: str
    assistant: str
    call: str
    result: str

    def speaker(self, role: object) -> str:
        """Return the word for a role; whoever is no user is an assistant."""
        return self.user if role == "user" else self.assistant


_CODES = ("voice_user", "voice_assistant", "label_call", "label_result")
CHINESE = Labels(*(phrase(code, "zh") for code in _CODES))
ENGLISH = Labels(*(phrase(code, "en") for code in _CODES))


def get_labels(language: str) -> Labels:
    """Return the words that go with a prompt's language."""
    return CHINESE if spoken_in(language) == "zh" else ENGLISH


def spoken_in(language: str) -> Language:
    """Return the language of the store's phrases in a prompt: Chinese, English in any other."""
    return "zh" if language.startswith("zh") else "en"
