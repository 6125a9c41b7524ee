"""The rules of a view as data: what is kept, what is replaced, how pairs are repaired. Knows no SQL, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import InvalidPolicy

TERMINAL_PLACEHOLDER = "此命令返回内容已过时"
"""What stands for old output of a command (S0.9)."""
FILE_READ_PLACEHOLDER = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
"""What stands for an old read of a file (S1.9)."""

Kind = Literal["terminal", "file_read", "file_edit", "search", "list", "todo", "other"]
Count = Annotated[int, Field(ge=0, le=2**62)]


class Policy(BaseModel):
    """The rules of a view; frozen, every field a keyword. The defaults are the default profile of S0 and S1.

    Raises InvalidPolicy for a field that does not exist or a value that it cannot have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = "default"

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

    tool_kinds: Mapping[str, Kind] = {}
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
    protect_current_turn: bool = False
    """Replace nothing from the latest user message on (A0.15)."""
    min_saving: Count = 0
    """Code points a replacement must save; 0 replaces always (A0.16)."""

    unanswered: Literal["synthetic", "drop", "keep"] = "synthetic"
    """Give a call without result a made-up one, leave the call out, or keep it as it is in the open turn (X.9)."""
    orphans: Literal["adopt", "drop"] = "adopt"
    """Give a result without call a made-up call, so that what it says stays, or leave it out (X.9)."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidPolicy(f"no such policy: {problems}") from error

    @classmethod
    def named(cls, name: str, **fields: Any) -> Policy:
        """Return a ready policy, with some fields changed. Raises InvalidPolicy for an unknown name or field."""
        if name not in POLICIES:
            raise InvalidPolicy(f"no policy is named {name!r}; there are {', '.join(POLICIES)}")
        return cls(**{"name": name, **POLICIES[name], **fields})


POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "raw": {"terminal": False, "file_read": False},
}
"""The ready policies: what each changes of the defaults."""

DEFAULT = Policy()
