"""Contents of Gemini's API, as programs that keep each result by itself divide them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...records import Message
from ...text import JsonFields

SUCCESS, FAILURE = "success", "error"
"""The states of a call that has ended."""


MEDIA_NAME = re.compile(r"\[([^],]+), [^]]*\]")
"""The text by which the format names a picture within a response, whose part follows it."""


class ResponseParts(NamedTuple):
    """The response to a call, and the pictures and files that belong to it."""

    response: JsonFields
    media: list[Message]

    @property
    def state(self) -> str:
        """How the call ended."""
        return FAILURE if FAILURE in self.response["response"] else SUCCESS

    def drop_names(self) -> JsonFields:
        """Return the response without the names of the pictures that follow it."""
        embedded = (held for part in self.media for held in part.values())
        types = [str(each.get("mimeType")) for each in embedded if isinstance(each, dict)]
        said = self.response["response"]
        kept = {key: _drop_media_names(text, types) for key, text in said.items()}
        return {**self.response, "response": kept} if types else self.response


def split_user_parts(parts: Iterable[Message]) -> tuple[list[ResponseParts], list[Message]]:
    """Return the responses of a content with their pictures, and what the user said in it.

    The format has the pictures of a result after its response, and no texts there.
    """
    responses: list[ResponseParts] = []
    words: list[Message] = []
    for part in parts:
        if "functionResponse" in part:
            responses.append(ResponseParts(part["functionResponse"], []))
        elif responses and not words and "text" not in part:
            responses[-1].media.append(part)
        else:
            words.append(part)
    return responses, words


def _drop_media_names(text: object, types: list[str]) -> object:
    """Return a text without the paragraphs that name pictures of some types."""
    if not isinstance(text, str):
        return text
    left = [*types]
    kept = []
    for paragraph in text.split("\n\n"):
        named = MEDIA_NAME.fullmatch(paragraph)
        if named and named[1] in left:
            left.remove(named[1])
        else:
            kept.append(paragraph)
    return "\n\n".join(kept)


def get_content_parts(message: Message) -> list[Message]:
    """Return the parts of a content, and of a message with system text."""
    if "parts" in message:
        return list(message["parts"])
    return [{"text": block["text"]} for block in message["content"]]
