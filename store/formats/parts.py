"""Write a content of any origin, part by part, in the parts of a provider.

Parts come in the shapes of all providers. Texts and media are recognized under any name; reasoning
is left to its own format. A part that a provider does not have is sent as its JSON text, without
the bytes in it and without values that only its own provider can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..messages import Media, Message, is_unreadable, parse_media, replace_media
from .openai import TEXTS, sendable

REASONING = ("thinking", "redacted_thinking", "reasoning", "fallback")
"""Parts that hold a model's reasoning, which the models of other providers cannot use."""
SEALED = frozenset(
    ("encrypted_content", "encrypted_index", "signature", "thoughtSignature", "thought_signature")
)
"""Keys of parts whose values only their own provider can read."""


class Speech(NamedTuple):
    """The parts of a provider for a text and for media; None for media that it has no part for."""

    text: Callable[[str], Message]
    media: Callable[[Media], Message | None]
    own: Callable[[Message], Message | None] = lambda _: None
    """Returns the sent form of a part in the provider's own shape; None for any other part."""


def parts_of(content: Any) -> list[Any]:
    """Return a content as its parts; no parts if it is empty."""
    if content is None or content == "":
        return []
    return content if isinstance(content, list) else [content]


def told(content: Any, speech: Speech) -> list[Message]:
    """Return a content in the parts of a provider; blank texts are left out."""
    if isinstance(content, str):
        return [*_text_told(content, speech)]
    return [part for each in parts_of(content) for part in part_told(each, speech)]


def part_told(part: Any, speech: Speech) -> Iterator[Message]:
    """Yield one part in the parts of a provider, if it is not blank."""
    if not isinstance(part, dict):
        yield from _text_told(part if isinstance(part, str) else as_json(part), speech)
        return
    own = speech.own(part)
    if own is not None and not is_unreadable(part):
        yield own
    elif part.get("type") not in REASONING:
        kind = part.get("type")
        text = part.get("refusal") if kind == "refusal" else part.get("text")
        if kind not in (*TEXTS, "refusal") or not isinstance(text, str):
            text = None
        media = parse_media(part) if text is None else None
        made = speech.media(media) if media is not None and media.is_readable else None
        if made is not None:
            yield made
        elif media is not None:
            yield from _text_told(media.named()["text"], speech)
        else:
            yield from _text_told(as_json(opened(part)) if text is None else text, speech)


def _text_told(text: str, speech: Speech) -> Iterator[Message]:
    if text and not text.isspace():
        yield speech.text(sendable(text))


def opened(part: Any) -> Any:
    """Return a part without the values that only its provider can read."""
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
    """Return a part in a provider's own shape as it is sent: without some keys.

    Keys with null are left out too: clients write null for missing values, and providers refuse it.
    """
    return {
        sendable(key): mended(held)
        for key, held in own.items()
        if held is not None and key not in without
    }


def arguments_object(given: Any) -> Message:
    """Return the arguments of a call as the object that some providers require."""
    value = _decoded(given) if isinstance(given, str) else mended(given)
    if isinstance(value, dict):
        return value
    return {} if value is None or value == "" else {"input": value}


def _refused(constant: str) -> None:
    raise ValueError(constant)


_decode = json.JSONDecoder(parse_constant=_refused).decode


def _decoded(text: str) -> Any:
    """Return the value of a JSON text, else the text itself."""
    text = sendable(text)
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        return text
    return mended(value) if ESCAPE in text else value


ESCAPE = "\\u"
"""How a JSON text writes signs that it does not hold, half ones among them."""
