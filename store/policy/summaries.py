"""The prompt and the contents of summaries, and the treatment of failures."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ..clock import check_zone_name
from .field_types import CountNumber, PolicyFieldGroup, PolicyText, PositiveNumber


class SummaryFields(PolicyFieldGroup):
    """The prompt and the contents of summaries, and the treatment of failures."""

    prompt: str = "handoff"
    """The prompt of a summary, by its name among the prompts."""
    summary_max_chars: Annotated[int, Field(ge=20, le=2**31)] = 4000
    """Code points that a summary may have."""
    parts_to_keep: Annotated[
        tuple[Literal["text", "tool", "reasoning"], ...], Field(strict=False)
    ] = ("text",)
    """The parts of messages that an extractive summary takes its body from."""
    transcript: Literal["whole", "brief"] = "whole"
    """The form in which a summarizer is shown the messages: their whole content, or the gist of it.

    A whole transcript has the messages themselves, with the arguments of calls, the results and the
    times. A brief one shows in short who said what: calls by the names of their tools, results in
    200 code points.
    """
    transcript_max_chars: Annotated[int, Field(ge=1000, le=2**31)] = 400_000
    """Code points of a transcript for a summarizer; messages that do not fit stay visible."""
    facts_chars: CountNumber = 2000
    """Code points for the exact files, commands and errors of the hidden messages, added to every
    summary; 0 for none.
    """
    told_once: bool = False
    """Tell the actions of tools once: commands, files and errors among the facts, commands with
    their results, and not in the lists of an extractive summary as well.
    """
    edits_chars: CountNumber = 0
    """Code points of an extractive summary for the newest texts that edits wrote, as they are."""
    index_chars: CountNumber = 0
    """Code points for the index of names, added to every summary: the paths, urls, error codes,
    numbers and identifiers of the hidden messages; 0 for none.
    """
    previous_summary: Literal["fold", "append"] = "fold"
    """Carry the earlier summary on in the new one, or keep it beside it.

    Once the kept summaries take a quarter of the window, the next summary carries all of them on.
    """
    summary_role: Literal["system", "user", "developer", "merge"] = "system"
    """The role a summary is sent with; ``merge`` makes one system message of the first system
    message and all summaries.
    """
    zone: Annotated[str, AfterValidator(check_zone_name)] = "UTC"
    """The time zone of the hours in a summary's title, by its IANA name."""
    summary_heading: PolicyText = ""
    """A line before each summary."""
    summary_timeout: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    """Seconds a summarizer may take."""
    on_failure: Literal["abort", "trim", "skip", "truncate"] = "abort"
    """Without a summary ``abort`` changes nothing; ``trim`` keeps to the hard limit and the facts
    of the removed turns; ``skip`` and ``truncate`` hide the range and say so.
    """
    least_freed: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of the view's tokens that a compaction must free, otherwise none is made.

    This does not apply if the view is over the window, nor to a compaction by hand.
    """
    back_off_after: Annotated[int, Field(ge=1, le=1000)] = 3
    """Failures in a row after which nothing is tried for a while."""
    back_off_messages: PositiveNumber = 10
    """Messages after which that while is over, if ``back_off_time`` does not end it first."""
    back_off_time: CountNumber = 600_000
    """Ms after which that while is over, if ``back_off_messages`` does not end it first."""
