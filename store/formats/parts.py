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
from ..text import decode_json
from .openai import PROVIDER_TEXT_TYPES, replace_surrogates

REASONING_TYPES = ("thinking", "redacted_thinking", "reasoning", "fallback")
"""Parts that hold a model's reasoning, which the models of other providers cannot use."""
SEALED_KEYS = frozenset(
    ("encrypted_content", "encrypted_index", "signature", "thoughtSignature", "thought_signature")
)
"""Keys of parts whose values only their own provider can read."""


class PartWriter(NamedTuple):
    """The parts of a provider for a text and for media; None for media that it has no part for."""

    text: Callable[[str], Message]
    media: Callable[[Media], Message | None]
    own: Callable[[Message], Message | None] = lambda _: None
    """Returns the sent form of a part in the provider's own shape; None for any other part."""


def list_parts(content: Any) -> list[Any]:
    """Return a content as its parts; no parts if it is empty."""
    if content is None or content == "":
        return []
    return content if isinstance(content, list) else [content]


def write_parts(content: Any, speech: PartWriter) -> list[Message]:
    """Return a content in the parts of a provider; blank texts are left out."""
    if isinstance(content, str):
        return [*_write_text_part(content, speech)]
    return [part for each in list_parts(content) for part in write_part(each, speech)]


def write_part(part: Any, speech: PartWriter) -> Iterator[Message]:
    """Yield one part in the parts of a provider, if it is not blank."""
    if not isinstance(part, dict):
        yield from _write_text_part(
            part if isinstance(part, str) else render_readable_json(part), speech
        )
        return
    own = speech.own(part)
    if own is not None and not is_unreadable(part):
        yield own
    elif part.get("type") not in REASONING_TYPES:
        kind = part.get("type")
        text = part.get("refusal") if kind == "refusal" else part.get("text")
        if kind not in (*PROVIDER_TEXT_TYPES, "refusal") or not isinstance(text, str):
            text = None
        media = parse_media(part) if text is None else None
        made = speech.media(media) if media is not None and media.is_readable else None
        if made is not None:
            yield made
        elif media is not None:
            yield from _write_text_part(media.named()["text"], speech)
        else:
            yield from _write_text_part(
                render_readable_json(remove_sealed_values(part)) if text is None else text, speech
            )


def _write_text_part(text: str, speech: PartWriter) -> Iterator[Message]:
    if text and not text.isspace():
        yield speech.text(replace_surrogates(text))


def remove_sealed_values(part: Any) -> Any:
    """Return a part without the values that only its provider can read."""
    if isinstance(part, list):
        return [*map(remove_sealed_values, part)]
    if isinstance(part, dict):
        return {
            key: remove_sealed_values(held) for key, held in part.items() if key not in SEALED_KEYS
        }
    return part


def render_readable_json(value: Any) -> str:
    """Return a value as JSON text that can be sent, with its media named."""
    named = replace_media(value, Media.named)
    return replace_surrogates(json.dumps(named, ensure_ascii=False))


def replace_nested_surrogates(value: Any) -> Any:
    """Return a value with texts that can be sent."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [*map(replace_nested_surrogates, value)]
    if isinstance(value, dict):
        return {
            replace_surrogates(key): replace_nested_surrogates(held) for key, held in value.items()
        }
    return value


def clean_own_part(own: Message, *without: str) -> Message:
    """Return a part in a provider's own shape as it is sent: without some keys.

    Keys with null are left out too: clients write null for missing values, and providers refuse it.
    """
    return {
        replace_surrogates(key): replace_nested_surrogates(held)
        for key, held in own.items()
        if held is not None and key not in without
    }


def parse_arguments(given: Any) -> Message:
    """Return the arguments of a call as the object that some providers require.

    Of a text this is its JSON value, otherwise the text itself.
    """
    if isinstance(given, str):
        text = replace_surrogates(given)
        try:
            value = decode_json(text)
        except (ValueError, RecursionError):
            value = text
        else:
            if JSON_ESCAPE in text:
                value = replace_nested_surrogates(value)
    else:
        value = replace_nested_surrogates(given)
    if isinstance(value, dict):
        return value
    return {} if value is None or value == "" else {"input": value}


JSON_ESCAPE = "\\u"
"""How a JSON text writes signs that it does not hold, half ones among them."""
