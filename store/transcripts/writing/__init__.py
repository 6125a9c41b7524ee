"""Sessions written as other programs keep theirs, so that these go on with them.

What a provider would be sent becomes rows, by the rules that the program's own loader applies; or
pages for people. Pure: the command gives what is sent, and when it was said.
"""

from __future__ import annotations

from .claude_code import build_claude_code_rows, name_project_folder
from .codex import build_rollout_path, build_rollout_rows
from .markdown import render_markdown_page
from .sessions import (
    TimedMessage,
    WritableLine,
    WritableSession,
    assign_message_moments,
    build_session_uuid,
)

__all__ = [
    "TimedMessage",
    "WritableLine",
    "WritableSession",
    "assign_message_moments",
    "build_claude_code_rows",
    "build_rollout_path",
    "build_rollout_rows",
    "build_session_uuid",
    "name_project_folder",
    "render_markdown_page",
]
