"""The contents of a request beside messages: data of providers, drafts, a hint at recall."""

from __future__ import annotations

from typing import Literal

from ..phrases import DEFAULT_TEXTS
from .field_types import PolicyFieldGroup, PolicyText


class RequestFields(PolicyFieldGroup):
    """The contents of a request beside messages: data of providers, drafts, a hint at recall."""

    foreign_reasoning: Literal["drop", "text"] = "drop"
    """The treatment of reasoning from another provider's model: ``drop`` leaves it out, ``text``
    puts its readable part in front of the answer.
    """
    chat_extensions: bool = True
    """Send back what providers of OpenAI's chat API added to an answer, in the format `openai`.

    These are `reasoning_content`, `reasoning`, `reasoning_details`, `extra_content`, and the id of
    `audio`. Some providers refuse a request without them, others one with them: set False if a chat
    changes its provider.
    """
    cache_control: bool = False
    """Send the `cache_control` of blocks as it was given, in the format `anthropic`.

    The last four at most, which is the limit of a request.
    """

    show_drafts: bool = False
    """Send the stored parts of answers that broke off, each after the message that it answers,
    until the line continues with another answer there. Such a view depends on the drafts, too.
    """
    draft_notice: PolicyText = DEFAULT_TEXTS["draft_notice"]
    """The text at the end of such an answer."""

    recall: bool = False
    """Say in summaries and ``any_tool`` lines that the model has a tool to see hidden content."""
    recall_notice: PolicyText = DEFAULT_TEXTS["recall_notice"]
    """The text that says so."""
