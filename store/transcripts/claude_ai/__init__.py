"""Exports of claude.ai.

`messages` translates a message; `reading` makes a tree of them.
"""

from .reading import has_claude_ai_messages, parse_claude_ai

__all__ = ["has_claude_ai_messages", "parse_claude_ai"]
