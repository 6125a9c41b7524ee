"""Chats of VS Code.

`log` replays changes; `parts`, `results` and `requests` translate what a state holds; `reading`
reads the file.
"""

from .reading import is_vscode_chat, parse_vscode_chat

__all__ = ["is_vscode_chat", "parse_vscode_chat"]
