"""Whether a file that is read again was changed by somebody else meanwhile.

For the host, where its tools run: what it says is put into the result before that is stored, so
every later view of the result says the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from ..ready import REQUIRED
from ..text import as_object

NOTE = REQUIRED["changed_outside"].text


class Freshness:
    """The modification times of the files that were read; kept in memory only.

    For another process to go on with them, keep ``times``, such as in a session's metadata, and
    give them to it. Paths are keys: use one spelling for a file. Safe to share by threads as far as
    each file is read by one.
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
        """Take note that a file was read; return what to tell the model if it has changed since."""
        name = os.fspath(path)
        before = self._seen.get(name)
        self._seen[name] = mtime
        if before is None or before == mtime:
            return None
        return NOTE.format(path=name)

    def wrote(self, path: str | os.PathLike[str], mtime: float) -> None:
        """Take note that the agent itself changed a file: of that it need not be told."""
        self._seen[os.fspath(path)] = mtime

    def noted(
        self,
        path: str | os.PathLike[str],
        mtime: float,
        content: str,
    ) -> str:
        """Return the JSON result of a read with what is known of the file in its ``data``.

        That is its ``mtime``, and a ``note`` if it changed since it was read before. A content that
        is not an object with an object as ``data`` is returned as it is.
        """
        note = self.note(path, mtime)
        result = as_object(content)
        data = result.get("data")
        if not isinstance(data, dict):
            return content
        data["mtime"] = mtime
        if note:
            data["note"] = note
        return json.dumps(result, ensure_ascii=False)
