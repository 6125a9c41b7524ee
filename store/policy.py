"""The rules of a view as data: the messages to keep, replace and repair. Knows no SQL, no clock."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from .clock import check_zone_name
from .errors import InvalidPolicy, check_readable_to_end, describe_read_error, quote_value
from .ready import (
    DEFAULT_LANGUAGE,
    FIELD_PROBLEMS,
    LANGUAGE_TEXTS,
    POLICIES,
    READY_POLICY_TEXTS,
    Language,
    PolicyFields,
)
from .text import check_text

__all__ = [
    "FIELD_PROBLEMS",
    "LANGUAGE_TEXTS",
    "POLICIES",
    "READY_POLICY_TEXTS",
    "STANDARD_POLICY",
    "TURNS_POLICY",
    "Language",
    "Policy",
    "PolicyFields",
    "PolicyToolKind",
    "check_policy",
    "load",
]

_DEFAULT_TEXTS = LANGUAGE_TEXTS[DEFAULT_LANGUAGE]

PolicyToolKind = Literal["terminal", "file_read", "file_edit", "search", "list", "todo", "other"]
"""The kinds of tools that rules tell apart."""


PolicyText = Annotated[str, AfterValidator(check_text)]
CountNumber = Annotated[int, Field(ge=0, le=2**62)]
PositiveNumber = Annotated[int, Field(ge=1, le=2**62)]
RatioNumber = Annotated[float, Field(gt=0, le=1)]


class Policy(BaseModel):
    """The rules of a view; frozen, every field a keyword.

    The defaults are the default profile of S0 and S1.

    Raises InvalidPolicy for a field that does not exist or an invalid value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: PolicyText = "default"
    language: Language = DEFAULT_LANGUAGE
    """The language of the texts below that replace something in a request.

    A given text takes precedence over that of a ready policy, and this over the language's own.
    """

    terminal: bool = True
    """Replace old, successful output of commands (S0)."""
    terminal_keep: CountNumber = 5
    """How many newest tool results of any tool stay, however old."""
    terminal_max_age: CountNumber = 900_000
    """Ms after which output is old; exactly this age is not.

    If clearing waits for recorded moments, it is 0 unless another age is given: the age of output
    has nothing to do with a cache.
    """
    terminal_placeholder: PolicyText = _DEFAULT_TEXTS["terminal_placeholder"]
    """The text that replaces old output of a command."""

    file_read: bool = True
    """Replace all but the newest reads of each file (S1)."""
    file_read_keep: CountNumber = 5
    """How many newest successful reads of each file stay."""
    file_read_placeholder: PolicyText = _DEFAULT_TEXTS["file_read_placeholder"]
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
    any_tool_placeholder: PolicyText = _DEFAULT_TEXTS["any_tool_placeholder"]
    """The beginning of a line that replaces a result of any tool; after it come the tool, its file
    or command, the exit code, the number of lines and the best names of the result.
    """
    cut_arguments: bool = False
    """Cut the texts among the arguments of equally old calls to 100 code points: 0.52 of the bill
    instead of 0.61, and 97 % of the lines that edits repeated instead of 99.
    """

    tool_output: bool = False
    """Show the tool results of finished turns in their short form; the running turn stays whole."""

    picture_keep: CountNumber | Literal["all"] = 0
    """How many newest pictures, sounds and files of tool results are sent, or `all`.

    Providers limit their number in a request, such as 100 with Anthropic.
    """
    picture_current_turn: bool = False
    """Send all of the current turn as well, as the model has just asked for them."""
    picture_placeholder: str = _DEFAULT_TEXTS["picture_placeholder"]
    """The text that replaces an older one; ``{type}`` and ``{size}`` are its own."""

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
    draft_notice: PolicyText = _DEFAULT_TEXTS["draft_notice"]
    """The text at the end of such an answer."""

    recall: bool = False
    """Say in summaries and ``any_tool`` lines that the model has a tool to see hidden content."""
    recall_notice: PolicyText = _DEFAULT_TEXTS["recall_notice"]
    """The text that says so."""

    tool_kinds: Mapping[PolicyText, PolicyToolKind] = {}
    """Kinds of tools by name, which take precedence over those in the table ``tool_kinds``."""
    identity: Literal["call", "sniff"] = "call"
    """How the output of a command is recognised: by the call's name, and by content only if there
    is no name; or always by content.
    """
    errors_take_slots: bool = False
    """Count errors among the newest tool results."""
    exit_code_is_error: bool = True
    """A command that ended with another exit code than 0 failed."""
    stderr_is_error: Literal["always", "nonzero_exit", "never"] = "always"
    """When something on stderr makes output an error."""
    batch_rule: Literal["all", "any"] = "all"
    """Replace a read of several files when it is stale for all of them, or for any."""
    dedupe: bool = True
    """Count a file once in a read that names it twice."""
    range_aware: bool = False
    """Replace a read only if newer kept reads cover its lines."""
    undated: Literal["keep", "stored_at"] = "keep"
    """Keep tool results without a time (A0.9), or use the time when they were stored."""
    judge_at: Literal["now", "turn"] = "now"
    """Judge the tool results anew at each view, or as they were when the current turn began.

    With ``"turn"`` nothing before the turn changes while it runs, nothing in it is replaced, and
    over a turn requests only grow.
    """
    protect_current_turn: bool = False
    """Replace nothing from the latest user message on."""
    min_saving: CountNumber = 0
    """Code points that a replacement must save.

    At 0 everything old is replaced, but a short form still has to be shorter.
    """

    unanswered: Literal["synthetic", "drop", "keep"] = "synthetic"
    """Give a call without result an invented one, leave the call out, or keep it as it is in the
    open turn.
    """
    orphans: Literal["adopt", "drop"] = "adopt"
    """Give a result without call an invented call, so that its content stays, or leave it out."""

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

    context_window: CountNumber | None = None
    """Tokens that the model accepts; ratios are of this unless a check gives another window."""
    trigger_messages: CountNumber | None = None
    """Compact when the view has at least this many messages."""
    trigger_ratio: RatioNumber | None = None
    """Compact when the view reaches this share of the window."""
    overflow_ratio: RatioNumber | None = None
    """From this share of the window on, the view must be compacted before it is sent."""
    trigger_usage: RatioNumber | None = None
    """Compact when the last request's usage and a third of the new input reach this share of the
    window.
    """
    trigger_tokens: CountNumber | None = None
    """Compact when the view has at least this many tokens, whatever the window."""
    compact_cold_from: CountNumber | None = None
    """Compact when the cache is cold and the view has at least this many tokens.

    From 20,000 on that reduced the bill to 0.62, and hid a third of the exact lines that later
    edits repeated.
    """
    min_messages: CountNumber = 0
    """Compact no view of fewer messages."""
    max_iterations: Annotated[int, Field(ge=1, le=100)] = 3
    """Stop after this many compactions in a row that did not get below the trigger."""
    scope: Literal["turn", "session"] = "turn"
    """Whether ``max_iterations`` counts compactions of the current turn, or all of the session."""

    keep_messages: CountNumber = 0
    """Newest messages that stay."""
    keep_turns: PositiveNumber = 1
    """Newest turns that stay whole, the current one included.

    The current turn always stays, except the groups that ``within_turn`` hides.
    """
    within_turn: bool = False
    """If nothing else is enough, hide finished groups of calls and results of the current turn too.
    Its user message, its unanswered calls and its newest groups stay.
    """
    keep_groups: PositiveNumber = 5
    """Newest groups that stay if the current turn is cut, or a line without a user message.

    A group is a message, or a message with calls and all their results.
    """
    least_groups: PositiveNumber | None = None
    """Halve ``keep_groups`` and ``keep_messages`` in a full window, at least to so many groups."""
    least_turns: PositiveNumber | None = None
    """The fewest turns that stay: while the remaining view would still be at the trigger,
    ``keep_turns`` is halved, but never to less than this. None: it is not halved.
    """
    window_messages: PositiveNumber | None = None
    """Hide at most this many messages at a time, the oldest ones.

    If a longer turn leaves no place to cut in their second half, all up to the end of that turn are
    hidden.
    """
    boundary: Literal["turn", "group"] = "turn"
    """Cut before a user message only, or between any two groups of calls and results."""
    hard_limit: CountNumber | None = None
    """Messages that a view may have when no summary can be made; beyond that the oldest turns go.

    They include messages that the view invents for calls and results without each other.
    """

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

    if not TYPE_CHECKING:  # otherwise type checkers would not know the fields

        def __init__(self, /, **fields: Any) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                problems = "; ".join(map(_describe_problem, error.errors()))
                raise InvalidPolicy(f"no such policy: {problems}") from error

    @model_validator(mode="before")
    @classmethod
    def _of_no_age(cls, fields: Any) -> Any:
        """Ignore the age of output if clearing depends on a cache, unless an age is given."""
        if not isinstance(fields, Mapping) or fields.get("clearing", "always") == "always":
            return fields
        return {"terminal_max_age": 0, **fields}

    @model_validator(mode="before")
    @classmethod
    def _in_its_language(cls, fields: Any) -> Any:
        """Add the texts that are not given, in the language of the policy."""
        language = fields.get("language") if isinstance(fields, Mapping) else None
        if not isinstance(language, str) or language not in LANGUAGE_TEXTS:
            return fields
        return {**LANGUAGE_TEXTS[language], **fields}

    @classmethod
    def named(cls, name: str, /, **fields: Any) -> Policy:
        """Return a ready policy, with some fields changed.

        Raises InvalidPolicy for an unknown name or field.
        """
        language = fields.get("language")
        if not isinstance(name, str) or name not in POLICIES:
            raise InvalidPolicy(
                f"no policy is named {quote_value(name)}; there are {', '.join(POLICIES)}"
            )
        spoken = READY_POLICY_TEXTS.get(name, {})
        ready = {
            "name": name,
            **POLICIES[name],
            **next((texts for each, texts in spoken.items() if each == language), {}),
        }
        return cls(**{**ready, **fields})


CHOICE_ENDINGS = ("constrained-", "literal[")
"""The endings of places in a problem if a field may be one of several things."""


def _describe_problem(found: Any) -> str:
    """Return the problem of a field, and the right value."""
    places = map(str, found["loc"])
    name = ".".join(each for each in places if not each.startswith(CHOICE_ENDINGS))
    if found["type"] == "extra_forbidden":
        return f"there is no field {name!r}{_suggest_field(name)}"
    if found["type"] in FIELD_PROBLEMS:
        right = FIELD_PROBLEMS[found["type"]].format(**found.get("ctx", {}))
        return f"{name} {right}, not {quote_value(found['input'])}"
    return f"{name}: {found['msg'].removeprefix('Value error, ')}"


def _suggest_field(name: str) -> str:
    """Return the field that a wrong name may mean; all fields if none is similar."""
    like = get_close_matches(name, Policy.model_fields, n=1)
    if like:
        return f", did you mean {like[0]!r}?"
    return f"; there are {', '.join(Policy.model_fields)}"


def check_policy(policy: object) -> Policy:
    """Return a policy as it is. Raises InvalidPolicy for any other value, such as a name."""
    if not isinstance(policy, Policy):
        raise InvalidPolicy(
            f"a policy is a Policy (Policy.named('agent')), not {quote_value(policy)}"
        )
    return policy


def load(path: str | os.PathLike[str]) -> Policy:
    """Return a policy from a TOML file: fields by name, over the ready policy that ``base`` names.

    Raises InvalidPolicy for a file that cannot be read and for unknown or invalid fields.
    """
    fields = _read_policy_fields(path)
    base = fields.pop("base", "default")
    fields.setdefault("name", Path(path).stem)
    return Policy.named(str(base), **fields)


def _read_policy_fields(path: str | os.PathLike[str]) -> PolicyFields:
    try:
        check_readable_to_end(path)
        return tomllib.loads(Path(path).read_text("utf-8"))
    except TypeError as error:
        raise InvalidPolicy(
            f"a policy is read from a file, not from {quote_value(path)}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidPolicy(
            f"no policy can be read from {path}: {describe_read_error(error)}"
        ) from error


STANDARD_POLICY = Policy()
"""The policy of a view that names none."""
TURNS_POLICY = Policy.named("turns")
"""The ready policy that shows finished turns in short forms."""
