"""The results of tools that a view replaces, and the text that it puts in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import model_validator

from ..phrases import DEFAULT_TEXTS
from .field_types import CountNumber, PolicyFieldGroup, PolicyText


class ToolResultFields(PolicyFieldGroup):
    """The results of tools that a view replaces, and the text that it puts in their place."""

    terminal: bool = True
    """Replace old, successful output of commands (S0)."""
    terminal_keep: CountNumber = 5
    """How many newest tool results of any tool stay, however old."""
    terminal_max_age: CountNumber = 900_000
    """Ms after which output is old; exactly this age is not.

    If clearing waits for recorded moments, it is 0 unless another age is given: the age of output
    has nothing to do with a cache.
    """
    terminal_placeholder: PolicyText = DEFAULT_TEXTS["terminal_placeholder"]
    """The text that replaces old output of a command."""

    file_read: bool = True
    """Replace all but the newest reads of each file (S1)."""
    file_read_keep: CountNumber = 5
    """How many newest successful reads of each file stay."""
    file_read_placeholder: PolicyText = DEFAULT_TEXTS["file_read_placeholder"]
    """The text that replaces an old read of a file."""

    any_tool: bool = False
    """Replace the results of any tool, however old, except the newest and those that no request has
    contained yet.
    """
    clear_keep: CountNumber = 10
    """How many newest tool results of any tool ``any_tool`` leaves.

    With 10 and no warm clearing 124 recorded sessions were billed 0.64 of the cost of sending
    everything, with 97 % of the names in sight that were needed again; with 5, cleared in warm
    caches too, 0.48 and 92 to 95 %.
    """
    keep_asked: CountNumber = 0
    """Tokens of older results that a clearing leaves besides: those that share most names with the
    newest 8 messages.
    """
    any_tool_placeholder: PolicyText = DEFAULT_TEXTS["any_tool_placeholder"]
    """The beginning of a line that replaces a result of any tool; after it come the tool, its file
    or command, the exit code, the number of lines and the best names of the result.
    """
    cut_arguments: bool = False
    """Cut the texts among the arguments of equally old calls: each keeps 100 code points, the
    number of its lines and its best names.
    """
    cut_keep: CountNumber | None = None
    """How many newest tool results have calls that are not cut (None: ``clear_keep``)."""

    tool_output: bool = False
    """Show the tool results of finished turns in their short form; the running turn stays whole."""

    picture_keep: CountNumber | Literal["all"] = 0
    """How many newest pictures, sounds and files of tool results are sent, or `all`.

    Providers limit their number in a request, such as 100 with Anthropic.
    """
    picture_current_turn: bool = False
    """Send all of the current turn as well, as the model has just asked for them."""
    picture_placeholder: str = DEFAULT_TEXTS["picture_placeholder"]
    """The text that replaces an older one; ``{type}`` and ``{size}`` are its own."""

    @model_validator(mode="before")
    @classmethod
    def _of_no_age(cls, fields: Any) -> Any:
        """Ignore the age of output if clearing depends on a cache, unless an age is given."""
        if not isinstance(fields, Mapping) or fields.get("clearing", "always") == "always":
            return fields
        return {"terminal_max_age": 0, **fields}
