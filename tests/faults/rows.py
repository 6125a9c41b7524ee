"""What a row of the table of faults is, and what all rows do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from store import Store

Count = tuple[int, int]
Work = Callable[[str, Path], Count]


class Row(NamedTuple):
    """One kind of fault: on which engine, what is tried, and why it does not hold yet, if so."""

    fault: str
    engine: str
    work: Work
    pending: str = ""


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def contents(store: Store, session_id: str = "s") -> list[Any]:
    """Return what the messages of a session say."""
    return [each.message["content"] for each in store.messages(session_id)]
