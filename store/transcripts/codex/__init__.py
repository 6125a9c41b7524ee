"""Rollouts of Codex, 2025 and 2026.

`items` translates items of the Responses API; `parser` separates them from the program's notes.
"""

from .parser import is_codex_rollout, parse_codex

__all__ = ["is_codex_rollout", "parse_codex"]
