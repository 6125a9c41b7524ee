"""Rollouts of Codex, 2025 and 2026.

`items` translates what the Responses API says; `reading` tells it from notes of the program.
"""

from .reading import is_codex_rollout, parse_codex

__all__ = ["is_codex_rollout", "parse_codex"]
