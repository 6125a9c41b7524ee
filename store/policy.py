"""The rules of a view as data: what is kept, what is replaced, how pairs are repaired. Knows no SQL, no clock."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from .errors import InvalidPolicy
from .messages import is_text

TERMINAL_PLACEHOLDER = "此命令返回内容已过时"
"""What stands for old output of a command (S0.9)."""
FILE_READ_PLACEHOLDER = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
"""What stands for an old read of a file (S1.9)."""

Kind = Literal["terminal", "file_read", "file_edit", "search", "list", "todo", "other"]


def _kept(text: str) -> str:
    if not is_text(text):
        raise ValueError("no database keeps a text with NUL or a lone surrogate")
    return text


Name = Annotated[str, AfterValidator(_kept)]
Count = Annotated[int, Field(ge=0, le=2**62)]
Some = Annotated[int, Field(ge=1, le=2**62)]
Ratio = Annotated[float, Field(gt=0, le=1)]


class Policy(BaseModel):
    """The rules of a view; frozen, every field a keyword. The defaults are the default profile of S0 and S1.

    Raises InvalidPolicy for a field that does not exist or a value that it cannot have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name = "default"

    terminal: bool = True
    """Replace old, successful output of commands (S0)."""
    terminal_keep: Count = 5
    """How many newest tool results of any tool stay, however old (S0.8)."""
    terminal_max_age: Count = 900_000
    """Ms after which output is old; exactly this age is not (S0.7, S0.20)."""
    terminal_placeholder: str = TERMINAL_PLACEHOLDER

    file_read: bool = True
    """Replace all but the newest reads of each file (S1)."""
    file_read_keep: Count = 5
    """How many newest successful reads of each file stay (S1.8)."""
    file_read_placeholder: str = FILE_READ_PLACEHOLDER

    tool_output: bool = False
    """Show the tool results of finished turns in their short form (S4.8); the running turn stays whole (A4.2)."""

    tool_kinds: Mapping[Name, Kind] = {}
    """Kinds of tools by name, over those in the table ``tool_kinds`` (X.11)."""
    identity: Literal["call", "sniff"] = "call"
    """Tell a command's output by the call's name, by content only where there is none; or always by content (A0.5)."""
    errors_take_slots: bool = False
    """Count errors among the newest tool results (A0.1)."""
    exit_code_is_error: bool = True
    """A command that ended with another exit code than 0 failed (A0.3)."""
    stderr_is_error: Literal["always", "nonzero_exit", "never"] = "always"
    """When something on stderr makes output an error (S0.24, A0.4)."""
    batch_rule: Literal["all", "any"] = "all"
    """Replace a read of several files when it is stale for all of them, or for any (A1.1)."""
    dedupe: bool = True
    """Count a file once in a read that names it twice (A1.4)."""
    range_aware: bool = False
    """Replace a read only if newer kept reads cover its lines (A1.5)."""
    judge_at: Literal["now", "turn"] = "now"
    """Judge the tool results anew at each view, or as they were when the current turn began: then nothing before the
    turn changes while it runs, nothing in it is replaced, and over a turn requests only grow."""
    protect_current_turn: bool = False
    """Replace nothing from the latest user message on (A0.15)."""
    min_saving: Count = 0
    """Code points a replacement must save; 0 replaces always (A0.16), but a short form only where it is shorter."""

    unanswered: Literal["synthetic", "drop", "keep"] = "synthetic"
    """Give a call without result a made-up one, leave the call out, or keep it as it is in the open turn (X.9)."""
    orphans: Literal["adopt", "drop"] = "adopt"
    """Give a result without call a made-up call, so that what it says stays, or leave it out (X.9)."""

    clearing: Literal["always", "batched"] = "always"
    """Apply the rules above at every view, or only at recorded moments, so that a prompt cache keeps its prefix."""
    clear_min_freed: Count = 20_000
    """Batched: clear when at least so many tokens would be freed."""
    clear_cold_after: Count = 300_000
    """Batched: clear when the last request is so many ms ago that the provider's cache is cold anyway."""

    context_window: Count | None = None
    """Tokens the model takes; ratios are of this unless a check says otherwise (S4.37)."""
    trigger_messages: Count | None = None
    """Compact when the view has at least so many messages (S2.3)."""
    trigger_ratio: Ratio | None = None
    """Compact when the view reaches this share of the window (S3.26)."""
    overflow_ratio: Ratio | None = None
    """The view must be compacted before it is sent from this share of the window on (S3.25, A3.2)."""
    trigger_usage: Ratio | None = None
    """Compact when the last request's usage and a third of the new input reach this share of the window (S4.36)."""
    trigger_tokens: Count | None = None
    """Compact when the view has at least so many tokens, whatever the window."""
    min_messages: Count = 0
    """Compact no view of fewer messages (S4.36)."""
    max_iterations: Annotated[int, Field(ge=1, le=100)] = 3
    """Stop after so many compactions in a row that did not get below the trigger (S3.33, A3.4)."""

    keep_messages: Count = 0
    """Newest messages that stay (S2.5, S3.29)."""
    keep_turns: Some = 1
    """Newest turns that stay whole, the current one included (S4.23); the current turn always stays."""
    least_turns: Some | None = None
    """Where what stays would still be at the trigger, half as many turns stay, and so on, down to so many (A4.6)."""
    window_messages: Some | None = None
    """Hide at most so many messages at a time, the oldest ones (S2.4); where a turn that is longer leaves no place to
    cut in their second half, all up to the end of that turn (A2.2)."""
    boundary: Literal["turn", "group"] = "turn"
    """Cut before a user message only, or between any two groups of calls and results (A2.5)."""
    hard_limit: Count | None = None
    """Messages a view may have when no summary can be made: beyond it the oldest turns go (S2.7, A2.9)."""

    prompt: str = "handoff"
    """The prompt of a summary, by its name among the prompts."""
    summary_max_chars: Annotated[int, Field(ge=20, le=2**31)] = 4000
    """Code points a summary may have (S2.6, S3.8)."""
    parts_to_keep: Annotated[tuple[Literal["text", "tool", "reasoning"], ...], Field(strict=False)] = ("text",)
    """What an extractive summary takes its body from (S3.9)."""
    transcript_max_chars: Annotated[int, Field(ge=1000, le=2**31)] = 400_000
    """Code points of a transcript for a summarizer; what does not fit is not hidden either (S2.17, A2.7)."""
    facts_chars: Count = 2000
    """Code points for the exact files, commands and errors of what is hidden, added to every summary; 0 for none."""
    previous_summary: Literal["fold", "append"] = "fold"
    """Give the earlier summary to be carried into the new one, or let it stand beside it (S4.21, A2.4); once those that
    stand take a quarter of the window, the next one is given all of them to carry (A4.6)."""
    summary_role: Literal["system", "user", "developer", "merge"] = "system"
    """The role a summary is sent with; ``merge`` makes one system message of the first and all summaries (A2.11)."""
    summary_heading: str = ""
    """A line before each summary."""
    summary_timeout: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    """Seconds a summarizer may take (S4.32)."""
    on_failure: Literal["abort", "trim", "skip", "truncate"] = "abort"
    """Without a summary: change nothing; keep to the hard limit, and the facts of what goes (S2.27); hide and say so
    (S3.39, S4.33)."""
    back_off_after: Annotated[int, Field(ge=1, le=1000)] = 3
    """Failures in a row after which nothing is tried until a new turn begins."""

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidPolicy(f"no such policy: {problems}") from error

    @classmethod
    def named(cls, name: str, /, **fields: Any) -> Policy:
        """Return a ready policy, with some fields changed. Raises InvalidPolicy for an unknown name or field."""
        if name not in POLICIES:
            raise InvalidPolicy(f"no policy is named {name!r}; there are {', '.join(POLICIES)}")
        return cls(**{"name": name, **POLICIES[name], **fields})


def checked(policy: object) -> Policy:
    """Return a policy as it is. Raises InvalidPolicy for anything else, such as a name."""
    if not isinstance(policy, Policy):
        raise InvalidPolicy(f"a policy is a Policy, such as Policy.named('default'), not {policy!r:.80}")
    return policy


def load(path: str | os.PathLike[str]) -> Policy:
    """Return a policy from a TOML file: fields by name, on top of the ready policy that ``base`` names.

    Raises InvalidPolicy for a file that cannot be read and for unknown or impossible fields.
    """
    try:
        with open(path, "rb") as file:
            fields = tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidPolicy(f"no policy can be read from {os.fspath(path)}: {error}") from error
    base = fields.pop("base", "default")
    fields.setdefault("name", Path(path).stem)
    return Policy.named(str(base), **fields)


POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "message_count": {
        "trigger_messages": 40,
        "window_messages": 30,
        "keep_messages": 10,
        "hard_limit": 50,
        "prompt": "summary_zh",
        "summary_max_chars": 1500,
        "transcript_max_chars": 12_000,
        "summary_heading": "[对话摘要 - 早期上下文]",
        "on_failure": "trim",
    },
    "token_ratio": {
        "trigger_ratio": 0.8,
        "overflow_ratio": 0.9,
        "keep_messages": 10,
        "summary_max_chars": 500,
        "max_iterations": 3,
        "protect_current_turn": True,
        "on_failure": "skip",
    },
    "turns": {
        "tool_output": True,
        "judge_at": "turn",
        "trigger_usage": 0.8,
        "context_window": 200_000,
        "min_messages": 3,
        "keep_turns": 10,
        "prompt": "archive",
        "previous_summary": "append",
        "protect_current_turn": True,
        "on_failure": "truncate",
    },
    "raw": {"terminal": False, "file_read": False},
}
"""The ready policies: what each changes of the defaults."""

DEFAULT = Policy()
TURNS = Policy.named("turns")
