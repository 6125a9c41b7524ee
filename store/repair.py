"""Calls and results in pairs, at render time: nothing stored is touched, every repair is said.

Providers refuse a request in which a tool call has no result, a result no call, or something stands between them.
Here each assistant message is followed at once by one result for each of its calls, in their order (X.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

    """Return a text that can be sent as it is; ids that differ must not become one by mending."""
    return value if isinstance(value, str) and value and is_text(value) else None


def merged(placed: list[Placed]) -> list[Placed]:
    """Return the messages with the summaries in the first system message, for providers that take only one (A2.11)."""
    summaries = [each for each in placed if each.rule == "summary"]
    first = next((each for each in placed if each.message.get("role") == "system" and each.rule is None), None)
    if first is None or not summaries:
        return placed
    texts = [content_text(each.message.get("content")) for each in (first, *summaries)]
    message = {**first.message, "content": "\n\n".join(texts)}
    why = "; ".join(each.repair or "" for each in summaries)
    return [
        each._replace(message=message, repair=why, rule="summary") if each is first else each
        for each in placed
        if each.rule != "summary"
    ]
