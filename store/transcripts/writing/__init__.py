"""Sessions written as other programs keep theirs, so that these go on with them.

What a provider would be sent becomes rows, by the rules that the program's own loader applies; or
pages for people. Pure: the command gives what is sent, and when it was said.
"""

from __future__ import annotations

from .claude_code import build_claude_code_rows, name_project_folder
from .codex import build_rollout_path, build_rollout_rows
from .gemini_cli import build_gemini_cli_lines, name_gemini_file, name_gemini_project
from .markdown import render_markdown_page
from .opencode import build_opencode_documents, name_opencode_session
from .pi import build_pi_entries, build_pi_path
from .qwen_code import build_qwen_code_path, build_qwen_code_rows
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
    "build_gemini_cli_lines",
    "build_opencode_documents",
    "build_pi_entries",
    "build_pi_path",
    "build_qwen_code_path",
    "build_qwen_code_rows",
    "build_rollout_path",
    "build_rollout_rows",
    "build_session_uuid",
    "name_gemini_file",
    "name_gemini_project",
    "name_opencode_session",
    "name_project_folder",
    "render_markdown_page",
]
