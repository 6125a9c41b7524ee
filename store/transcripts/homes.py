"""Where programs keep their sessions: a folder of a user's home, and how its files are named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

VSCODE_CHATS = (
    "workspaceStorage/*/chatSessions/*.json",
    "workspaceStorage/*/chatSessions/*.jsonl",
    "globalStorage/emptyWindowChatSessions/*.json",
    "globalStorage/emptyWindowChatSessions/*.jsonl",
)
"""How VS Code names the files of its chats, below the folder of its user's data."""

CURSOR_CHATS = ("globalStorage/state.vscdb", "workspaceStorage/*/state.vscdb")
"""How Cursor names the database of its chats, and those that older versions have of each folder."""

GOOSE_SESSIONS = ("sessions/sessions.db", "sessions/*.jsonl")
"""How goose names its database, and the files before it."""

STORED = "storage/session/*.json"
"""How opencode and its kin named sessions before their databases."""


CLINE_TASKS = ("tasks/*/api_conversation_history.json",)
"""How Cline and its kin name the files of their tasks."""

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
"""Where Cline, Roo and Kilo keep them: beside VS Code's own, on each system."""


class Home(NamedTuple):
    """A folder of the user's home in which a program keeps sessions.

    ``names`` are patterns of paths below it, in which * may stand for several folders, too; the
    ``variable`` of the environment names another folder, where it is set.
    """

    folder: str
    names: tuple[str, ...]
    variable: str | None = None

    @property
    def path(self) -> Path:
        """Return where the folder is on this machine, whether it is there or not."""
        return Path(self._told) if self._told else Path.home() / self.folder

    @property
    def _told(self) -> str | None:
        return os.environ.get(self.variable) if self.variable else None

    def holds(self, path: Path) -> bool | None:
        """Tell whether a file is one of the program's sessions; None where it is not in its folder.

        The folder may be that of any user, also in a copy.
        """
        inner = self._below(path.as_posix())
        return None if inner is None else any(fnmatchcase(inner, name) for name in self.names)

    def _below(self, path: str) -> str | None:
        """Return the part of a path that is below such a folder."""
        named = [f"{Path(self._told).as_posix()}/"] if self._told else []
        for folder in (*named, f"/{self.folder}/"):
            _, found, inner = path.rpartition(folder)
            if found:
                return inner
        return None

    def files(self) -> Iterator[Path]:
        """Yield the sessions' files on this machine, in order."""
        for folder, folders, names in os.walk(self.path):
            folders.sort()
            paths = (Path(folder, name) for name in sorted(names))
            yield from filter(self.holds, paths)
