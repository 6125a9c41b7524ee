"""Which policies are compared: the ready ones of the library, and these with fields changed."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any, NamedTuple

from store import Policy
from store.policy import POLICIES, PROMPT_CACHES
from store.summaries import NAMED_SUMMARIZERS, Summarizer, named

from .programs import PROGRAMS, Program

RAW = "raw"
"""What everything is measured against."""
BATCHED = "default,clearing=batched"
"""Compared with the ready ones where nothing else is asked for."""

JUDGED = "agent"
"""The policy of judged summarizers where no other is asked for."""


class Variant(NamedTuple):
    """A policy under the name that it was asked for by, or the rules of another program.

    The summarizer None is the extractive one.
    """

    name: str
    policy: Policy | Program
    summarizer: str | None = None

    def by(self, summarizer: str) -> Variant:
        """Return the policy with another summarizer, under a name that says so."""
        return self._replace(name=f"{self.name} by {summarizer}", summarizer=summarizer)


def ready() -> list[str]:
    """Return the names of all ready policies, the one of all messages apart."""
    return [name for name in POLICIES if name != RAW]


def programs() -> list[Variant]:
    """Return the rules of other programs."""
    return [Variant(name, program) for name, program in PROGRAMS.items()]


def variant(text: str) -> Variant:
    """Return the policy of ``NAME[,FIELD=VALUE …]``; values are JSON or plain.

    It is called by its ``name`` where that is among the fields, else by the whole text. Raises
    InvalidPolicy.
    """
    ready, *changes = re.split(r",(?=\w+=)", text)
    given = (change.split("=", 1) for change in changes)
    fields = {field: _value(value) for field, value in given}
    return Variant(fields.get("name", text), Policy.named(ready, **fields))


def load_summarizer(name: str) -> Summarizer:
    """Return a summarizer of the library by its name, ``openai:MODEL``, or ``MODULE:NAME``.

    Raises StoreError, and ValueError for what cannot be imported or called.
    """
    module, _, attribute = name.partition(":")
    if module in {known.rstrip(":") for known in NAMED_SUMMARIZERS}:
        return named(name)
    try:
        found: Summarizer = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"there is no summarizer {name}: {error}") from error
    if not callable(found):
        raise ValueError(f"{name} cannot be called")
    return found


def looks_at_caches(policy: Policy | Program) -> bool:
    """Tell whether what a policy does depends on how long a provider's cache lives."""
    if isinstance(policy, Program):
        return False
    return policy.clearing != "always" or policy.compact_cold_from is not None


def told_of(policy: Policy | Program, lifetime: int, factor: float = 1.0) -> Policy | Program:
    """Return a policy that knows the provider's cache, by how many ms it lives.

    With another ``factor`` than 1 it is told so many times the true lifetime, and knows the prices
    of Anthropic only.
    """
    if isinstance(policy, Program):
        return policy
    if factor != 1:
        return policy.model_copy(update={"cache_lifetime": round(lifetime * factor)})
    named = (name for name, cache in PROMPT_CACHES.items() if cache.lifetime == lifetime)
    return policy.model_copy(update={"cache_lifetime": next(named, lifetime)})


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
