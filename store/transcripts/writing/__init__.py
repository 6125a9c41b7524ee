"""Sessions written as other programs keep theirs, so that these go on with them.

What a provider would be sent becomes rows, by the rules that the program's own loader applies; or
pages for people. Pure: the command gives what is sent, and when it was said.
"""

from __future__ import annotations

from .about import About, Timed, Told, session_uuid, timed
from .claude_code import claude_code, project_folder
from .codex import codex, rollout_name
from .markdown import markdown

__all__ = [
    "About",
    "Timed",
    "Told",
    "claude_code",
    "codex",
    "markdown",
    "project_folder",
    "rollout_name",
    "session_uuid",
    "timed",
]
