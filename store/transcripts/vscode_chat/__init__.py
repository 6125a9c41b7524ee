"""Chats of VS Code.

`log` replays changes; `parts`, `results` and `requests` translate what a state holds; `reading`
reads the file.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
