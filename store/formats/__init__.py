"""Wire formats: how a request is written for a provider, or for a model that reads plain text.

A format is one row of `FORMATS`. It is given the whole request at once, so that it may put several
messages into one, or one into several. Pure; views and contexts write by it, history asks it what
counts as a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..errors import InvalidValue
from ..messages import Message
from . import openai, react
from .openai import foreign_kinds, sendable
from .placed import ApiCall, Placed

__all__ = [
    "CHAT",
    "FORMATS",
    "REACT",
    "ApiCall",
    "Format",
    "Placed",
    "asks_for_tool",
    "foreign_kinds",
    "format_named",
    "sendable",
]


class Format(NamedTuple):
    """How a request is written: one row of the table."""

    name: str
    write: Callable[[Sequence[Placed]], list[Message]]
    """Returns the messages of a request. They may be fewer or more than what they are made of."""
    tools_apart: bool = True
    """Whether definitions of tools have a place of their own, beside the messages."""
    asks_for_tool: Callable[[str], bool] | None = None
    """Tells whether what the assistant said is a call; None where calls are no part of a text."""


CHAT = Format("openai", openai.write)
"""One message for each that is placed, in the shape in which a context shows its pieces too."""
REACT = Format("react", react.write, tools_apart=False, asks_for_tool=react.asks_for_tool)

FORMATS: Mapping[str, Format] = {row.name: row for row in (CHAT, REACT)}
"""The formats by name."""


def format_named(name: object) -> Format:
    """Return a format. Raises InvalidValue for a name that no format has."""
    if not isinstance(name, str) or name not in FORMATS:
        raise InvalidValue(f"no format is named {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def asks_for_tool(said: str) -> bool:
    """Tell whether a text calls a tool in any format in which calls are text."""
    return any(row.asks_for_tool(said) for row in FORMATS.values() if row.asks_for_tool)
