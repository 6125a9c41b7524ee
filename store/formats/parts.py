"""What a content says, part by part, in the words of a provider, whoever wrote it.

Parts come in the shapes of all providers. Texts and media are known by any name; reasoning is left
to the format whose own it is. What a provider has no part for goes out as its JSON text, without
the bytes in it and without what only its own provider can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..messages import Media, Message, is_unreadable, parse_media, replace_media
from .openai import TEXTS, sendable

REASONING = ("thinking", "redacted_thinking", "reasoning", "fallback")
"""Parts that are a model's reasoning, which says nothing to another provider's."""
SEALED = frozenset(
    ("encrypted_content", "encrypted_index", "signature", "thoughtSignature", "thought_signature")
)
"""Keys under which parts hold what only their own provider can read."""


class Speech(NamedTuple):
    """How a provider is told a text, and media; None of media that it has no part for."""

    text: Callable[[str], Message]
    media: Callable[[Media], Message | None]
    own: Callable[[Message], Message | None] = lambda _: None
    """Returns a part that is in the provider's own shape as it is sent; None of any other."""


def parts_of(content: Any) -> list[Any]:
    """Return a content as its parts, none of them where it says nothing."""
    if content is None or content == "":
        return []
    return content if isinstance(content, list) else [content]


def told(content: Any, speech: Speech) -> list[Message]:
    """Return what a content says, in the words of a provider; blank texts say nothing."""
    if isinstance(content, str):
        return [*_text_told(content, speech)]
    return [part for each in parts_of(content) for part in part_told(each, speech)]


def part_told(part: Any, speech: Speech) -> Iterator[Message]:
    """Yield one part in the words of a provider, if it says anything."""
    if not isinstance(part, dict):
        yield from _text_told(part if isinstance(part, str) else as_json(part), speech)
        return
    own = speech.own(part)
    if own is not None and not is_unreadable(part):
        yield own
    elif part.get("type") not in REASONING:
        yield from _foreign_told(part, speech)


def _text_told(text: str, speech: Speech) -> Iterator[Message]:
    if text and not text.isspace():
        yield speech.text(sendable(text))


def _foreign_told(part: Message, speech: Speech) -> Iterator[Message]:
    text = text_of_part(part)
    media = parse_media(part) if text is None else None
    made = speech.media(media) if media is not None and media.is_readable else None
    if made is not None:
        yield made
    elif media is not None:
        yield from _text_told(media.named()["text"], speech)
    else:
        yield from _text_told(as_json(opened(part)) if text is None else text, speech)


def text_of_part(part: Message) -> str | None:
    """Return the text of a part that is text, or a refusal; None of any other."""
    kind = part.get("type")
    text = part.get("refusal") if kind == "refusal" else part.get("text")
    if kind in (*TEXTS, "refusal") and isinstance(text, str):
        return text
    return None


def opened(part: Any) -> Any:
    """Return a part without what nobody but its provider can read."""
    if isinstance(part, list):
        return [*map(opened, part)]
    if isinstance(part, dict):
        return {key: opened(held) for key, held in part.items() if key not in SEALED}
    return part


def as_json(value: Any) -> str:
    """Return a value as JSON text that can be sent, with its media named."""
    named = replace_media(value, Media.named)
    return sendable(json.dumps(named, ensure_ascii=False))


def mended(value: Any) -> Any:
    """Return a value with texts that can be sent."""
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, list):
        return [*map(mended, value)]
    if isinstance(value, dict):
        return {sendable(key): mended(held) for key, held in value.items()}
    return value


def as_sent(own: Message, *without: str) -> Message:
    """Return what is in a provider's own shape as it is sent: without some keys.

    And without null, which clients write where nothing is said, and providers refuse.
    """
    return {
        sendable(key): mended(held)
        for key, held in own.items()
        if held is not None and key not in without
    }


def arguments_object(given: Any) -> Message:
    """Return the arguments of a call as the object that some providers ask for."""
    value = _decoded(given) if isinstance(given, str) else mended(given)
    if isinstance(value, dict):
        return value
    return {} if value is None or value == "" else {"input": value}


def _refused(constant: str) -> None:
    raise ValueError(constant)


_decode = json.JSONDecoder(parse_constant=_refused).decode


def _decoded(text: str) -> Any:
    """Return the value that a JSON text stands for, else the text itself."""
    text = sendable(text)
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        return text
    return mended(value) if ESCAPE in text else value


ESCAPE = "\\u"
"""How a JSON text writes signs that it does not hold, half ones among them."""
