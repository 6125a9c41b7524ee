"""Notes on files that somebody else changed between two reads.

For the host, where its tools run: the note is put into the result before the result is stored, so
every later view of the result has the same note.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from ..phrases import REQUIRED
from ..text import parse_object

CHANGED_FILE_NOTE = REQUIRED["changed_outside"].text


class Freshness:
    """The modification times of the files that were read; kept in memory only.

    To continue in another process, keep ``times``, for example in a session's metadata, and pass
    them to it. Paths are keys: use one spelling for a file. Threads may share an object as long as
    each file is read by one thread.
    """

    def __init__(self, times: Mapping[str, float] | None = None) -> None:
        self._seen = dict(times or {})

    @property
    def times(self) -> dict[str, float]:
        """The modification time of each file when it was last read or written, by path."""
        return dict(self._seen)

    def note(
        self,
        path: str | os.PathLike[str],
        mtime: float,
    ) -> str | None:
        """Record that a file was read; return the note for the model if it changed since before."""
        name = os.fspath(path)
        before = self._seen.get(name)
        self._seen[name] = mtime
        if before is None or before == mtime:
            return None
        return CHANGED_FILE_NOTE.format(path=name)

    def wrote(self, path: str | os.PathLike[str], mtime: float) -> None:
        """Record that the agent itself changed a file, which needs no note."""
        self._seen[os.fspath(path)] = mtime

    def noted(
        self,
        path: str | os.PathLike[str],
        mtime: float,
        content: str,
    ) -> str:
        """Return the JSON result of a read with the state of the file in its ``data``.

        This is the ``mtime``, and a ``note`` if the file changed since the last read. Content that
        is not an object with an object as ``data`` is returned unchanged.
        """
        note = self.note(path, mtime)
        result = parse_object(content)
        data = result.get("data")
        if not isinstance(data, dict):
            return content
        data["mtime"] = mtime
        if note:
            data["note"] = note
        return json.dumps(result, ensure_ascii=False)
