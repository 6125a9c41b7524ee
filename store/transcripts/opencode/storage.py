"""The folder in which opencode kept sessions before its database, with a file for each object.

A session's own file has its name; its messages and their parts are in folders named after them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...text import JsonFields
from ..events import NoteEvent, get_fields
from ..source import FilePath, SourceValue, TranscriptSource

SESSION_FILE_FOLDERS = ("storage", "session")
"""The folders that contain the folder of a project, whose files are its sessions."""


def is_opencode_session_file(path: FilePath) -> bool:
    """Tell whether a file in such a folder is a session's own file, by its path."""
    place = Path(path).absolute()
    is_json = place.suffix == ".json" and len(place.parts) > len(SESSION_FILE_FOLDERS) + 2
    return is_json and place.parts[-4:-2] == SESSION_FILE_FOLDERS


class OpencodeFolderSource(TranscriptSource):
    """A session that is kept in a folder, in the shape of its export."""

    kind = "opencode"

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self.problem = None
        self.report_to(None)

    def values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the session, and a note for each of its files that cannot be read."""
        self.rows = self._size = 0
        storage = self.path.absolute().parents[2]
        broken: list[NoteEvent] = []
        info = self._read(self.path, broken)
        folder = storage / "message" / self.path.stem
        told = [self._read(path, broken) for path in _list_json_files(folder)]
        yield from broken
        messages = [{"info": each, "parts": self._parts(storage, each)} for each in told if each]
        yield SourceValue(None, {"info": info, "messages": messages})
        self._progress(self.path.stat().st_size)

    def _parts(self, storage: Path, message: JsonFields) -> list[JsonFields]:
        name = str(message.get("id"))
        if Path(name).name != name:  # it names no folder there
            return []
        return [self._read(path, []) for path in _list_json_files(storage / "part" / name)]

    def _read(self, path: Path, broken: list[NoteEvent]) -> JsonFields:
        self.rows += 1
        self.limits.check_time()
        self._size += path.stat().st_size
        self.limits.check_size(self._size, "its files have")
        try:
            told: Any = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as problem:
            broken.append(NoteEvent(None, f"{path.name} is left out: {problem}", broken=True))
            return {}
        return get_fields(told)


def _list_json_files(folder: Path) -> list[Path]:
    """Return the files of a folder in the order of their names, which is also that of time."""
    return sorted(folder.glob("*.json"))
