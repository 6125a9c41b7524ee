"""The moments of clearing, chosen so that a provider's prompt cache keeps its prefix."""

from __future__ import annotations

from typing import Literal

from .field_types import CountNumber, PolicyFieldGroup, RatioNumber


class PromptCacheFields(PolicyFieldGroup):
    """The moments of clearing, chosen so that a provider's prompt cache keeps its prefix."""

    clearing: Literal["always", "batched", "cold"] = "always"
    """Apply the rules above at every view, or only at recorded moments, so that a prompt cache
    keeps its prefix: when the cache is cold anyway, and when much can be freed.

    The amount is set by ``clear_min_freed`` if clearing is batched, and by ``clear_warm_freed`` and
    ``clear_warm_share`` if it is cold.
    """
    cache_lifetime: CountNumber = 300_000
    """Ms for which the provider's prompt cache lives: it is cold once the last request is that old.

    5 minutes with Anthropic, unless 1 hour is paid for; 5 to 10 minutes with OpenAI. If 5 minutes
    were assumed and it was 1 hour, single sessions cost up to 1.5 times as much as sending
    everything.
    """
    clear_min_freed: CountNumber = 20_000
    """When clearing is batched, clear once at least this many tokens would be freed."""
    clear_warm_freed: CountNumber = 60_000
    """When clearing is cold, clear in a warm cache too once this many tokens would be freed, if
    they are ``clear_warm_share`` of the view.

    Never from a lifetime of 1 hour on, because writing the cache anew costs too much. Both numbers
    together reduced the bill from 0.64 to 0.61, with no session over 1.00; at 20,000 tokens alone
    single sessions reached 1.06 to 1.19.
    """
    clear_warm_share: RatioNumber = 0.5
    """The share of the view's tokens that a clearing in a warm cache must free."""
    clear_warm_keep: CountNumber = 20
    """How many newest tool results ``any_tool`` leaves in a warm cache: 20 gave the 0.61."""
