"""The usage of a request, read from the response of a provider's client, or from its usage alone.

OpenAI's and Google's input includes the tokens that a cache held; Anthropic's excludes them. Google
tells thoughts beside the answer, and results of its own tools beside the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidValue, quote_value
from ..messages import is_model
from ..text import JsonFields

USAGE_KEYS = ("usage", "usageMetadata", "usage_metadata")
MODEL_KEYS = ("model", "modelVersion", "model_version")
MISSING_USAGE_ADVICE = (
    "give the response of a provider, or its usage (streams of OpenAI's chat tell it with"
    " stream_options={'include_usage': True})"
)
MOST_TOLD_TOKENS = 2**53


class ResponseUsage(NamedTuple):
    """The tokens of a request as a response tells them, its model, and its provider.

    ``told`` is the usage in the words of the provider.
    """

    input: int
    output: int
    cached: int
    written: int
    model: str | None
    provider: str | None
    told: JsonFields


class UsageShape(NamedTuple):
    """The keys by which an API tells tokens, in snake case; a dot leads into an object.

    A usage has the shape if it has a key of ``signs``. Values of ``input`` and of ``output`` are
    added up; of ``cached`` and ``written`` the first one counts.
    """

    provider: str | None
    signs: str
    input: str
    output: str
    cached: str
    written: str = ""


CHAT_USAGE = UsageShape(
    "openai",
    "prompt_tokens completion_tokens",
    "prompt_tokens",
    "completion_tokens",
    "prompt_tokens_details.cached_tokens prompt_cache_hit_tokens cache_read_input_tokens",
    "prompt_tokens_details.cache_write_tokens cache_creation_input_tokens",
)
ANTHROPIC_USAGE = UsageShape(
    "anthropic",
    "cache_read_input_tokens cache_creation_input_tokens cache_creation server_tool_use",
    "input_tokens cache_read_input_tokens cache_creation_input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
RESPONSES_USAGE = UsageShape(
    "openai",
    "input_tokens_details output_tokens_details",
    "input_tokens",
    "output_tokens",
    "input_tokens_details.cached_tokens",
    "input_tokens_details.cache_write_tokens",
)
GEMINI_USAGE = UsageShape(
    "google",
    "prompt_token_count candidates_token_count total_token_count",
    "prompt_token_count tool_use_prompt_token_count",
    "candidates_token_count thoughts_token_count",
    "cached_content_token_count",
)
PLAIN_USAGE = UsageShape(None, "input_tokens output_tokens", "input_tokens", "output_tokens", "")
"""A usage without any detail, as several servers tell it."""
PLAIN_PROVIDERS = {"message": "anthropic"}
"""The provider of a plain usage by the type of its response."""
USAGE_SHAPES = (CHAT_USAGE, ANTHROPIC_USAGE, RESPONSES_USAGE, GEMINI_USAGE, PLAIN_USAGE)

_OPENAI_MODEL = re.compile(r"(.*/|ft:)?(gpt|chatgpt|codex|o\d)")
_CAPITAL = re.compile(r"(?<=[a-z])[A-Z]")


def read_response_usage(response: object, model: str | None = None) -> ResponseUsage:
    """Return the usage that a response tells, as a dict or as the object of a provider's client.

    It may be the usage itself, which names no model. ``model`` takes precedence. The provider is
    None if other companies serve the model in OpenAI's shape. Raises InvalidValue if no tokens are
    told.
    """
    told = _dump_usage(_find_field(response, USAGE_KEYS) or response)
    fields = {_CAPITAL.sub(lambda found: f"_{found[0]}".lower(), key): told[key] for key in told}
    shape = next((each for each in USAGE_SHAPES if fields.keys() & {*each.signs.split()}), None)
    if shape is None:
        raise InvalidValue(f"no tokens are told by {quote_value(told)}; {MISSING_USAGE_ADVICE}")
    model = model or _find_field(response, MODEL_KEYS)
    provider = _name_provider(shape.provider, response, model)
    return ResponseUsage(*_count_told_tokens(shape, fields), model, provider, told)


def _count_told_tokens(shape: UsageShape, fields: JsonFields) -> tuple[int, int, int, int]:
    """Return the tokens that a usage tells: input, output, cached, written."""
    sent, answer = (sum(_list_counts(fields, keys)) for keys in (shape.input, shape.output))
    cached, written = (
        next(filter(None, _list_counts(fields, keys)), 0) for keys in (shape.cached, shape.written)
    )
    if cached + written > sent:  # some servers exclude them, as Anthropic does
        sent += cached + written
    return sent, answer, cached, written


def _name_provider(told: str | None, response: object, model: str | None) -> str | None:
    """Return the provider by the shape of a usage, else by the type of its response."""
    provider = told or PLAIN_PROVIDERS.get(str(_find_field(response, ("type",))))
    is_other = provider == "openai" and model and not _OPENAI_MODEL.match(model.lower())
    return None if is_other else provider


def _find_field(value: Any, keys: Sequence[str]) -> Any:
    """Return the first value under some keys of a dict, or attributes of an object."""
    is_dict = isinstance(value, Mapping)
    values = (value.get(key) if is_dict else getattr(value, key, None) for key in keys)
    return next((each for each in values if each is not None), None)


def _dump_usage(usage: object) -> JsonFields:
    """Return a usage as an object of JSON without nulls. Raises InvalidValue."""
    if isinstance(usage, Mapping):
        return {str(key): value for key, value in usage.items() if value is not None}
    if not is_model(usage):
        raise InvalidValue(f"no tokens are told by {quote_value(usage)}; {MISSING_USAGE_ADVICE}")
    dumped: JsonFields = usage.model_dump(mode="json", exclude_none=True, warnings=False)
    return dumped


def _list_counts(fields: JsonFields, keys: str) -> list[int]:
    """Return the numbers of tokens under some keys; 0 for any other value."""
    counts: list[int] = []
    for key in keys.split():
        value: Any = fields
        for name in key.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        is_count = type(value) is int and 0 <= value < MOST_TOLD_TOKENS
        counts.append(value if is_count else 0)
    return counts
