"""Where programs keep their sessions: folders in a user's home, and patterns of file names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

VSCODE_CHAT_FILES = (
    "workspaceStorage/*/chatSessions/*.json",
    "workspaceStorage/*/chatSessions/*.jsonl",
    "globalStorage/emptyWindowChatSessions/*.json",
    "globalStorage/emptyWindowChatSessions/*.jsonl",
)
"""The files of VS Code's chats, below the folder of its user data."""

CURSOR_DATABASE_FILES = ("globalStorage/state.vscdb", "workspaceStorage/*/state.vscdb")
"""The database of Cursor's chats, and the database per folder of older versions."""

GOOSE_SESSION_FILES = ("sessions/sessions.db", "sessions/*.jsonl")
"""The database of goose, and the files of versions without a database."""

OPENCODE_SESSION_FILES = "storage/session/*.json"
"""The session files of opencode and its forks, from versions without a database."""


CLINE_TASK_FILES = ("tasks/*/api_conversation_history.json",)
"""The task files of Cline and its forks."""

CLINE_FOLDERS = tuple(
    f"{user}/globalStorage/{extension}"
    for user in (
        ".config/Code/User",
        "Library/Application Support/Code/User",
        "AppData/Roaming/Code/User",
    )
    for extension in (
        "saoudrizwan.claude-dev",
        "rooveterinaryinc.roo-cline",
        "kilocode.kilo-code",
    )
)
"""The folders of Cline, Roo and Kilo: next to VS Code's own, on each system."""


class Home(NamedTuple):
    """A folder of the user's home in which a program keeps sessions.

    ``names`` are patterns of paths below it, in which * may also match several folders. The
    environment variable ``variable``, if set, names another folder.
    """

    folder: str
    names: tuple[str, ...]
    variable: str | None = None

    @property
    def path(self) -> Path:
        """Return the path of the folder on this machine, whether the folder exists or not."""
        return Path(self._told) if self._told else Path.home() / self.folder

    @property
    def _told(self) -> str | None:
        return os.environ.get(self.variable) if self.variable else None

    def holds(self, path: Path) -> bool | None:
        """Tell whether a file is one of the program's sessions; None if it is outside the folder.

        The folder may belong to any user, and may be a copy.
        """
        inner = self._below(path.as_posix())
        return None if inner is None else any(fnmatchcase(inner, name) for name in self.names)

    def _below(self, path: str) -> str | None:
        """Return the part of a path below such a folder."""
        named = [f"{Path(self._told).as_posix()}/"] if self._told else []
        for folder in (*named, f"/{self.folder}/"):
            _, found, inner = path.rpartition(folder)
            if found:
                return inner
        return None

    def files(self) -> Iterator[Path]:
        """Yield the session files on this machine, in order."""
        for folder, folders, names in os.walk(self.path):
            folders.sort()
            paths = (Path(folder, name) for name in sorted(names))
            yield from filter(self.holds, paths)
