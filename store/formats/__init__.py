"""Wire formats: how a view's messages are written for an API. Pure; a format is one function in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..messages import Message
from ..repair import Placed
from . import openai

FORMATS: Mapping[str, Callable[[Placed], Message]] = {"openai": openai.clean}
"""The formats by name; each takes a message in its place and returns it as the API wants it."""
