"""Whether a file that is read again was changed by somebody else meanwhile (S4.47, S4.48).

For the host, where its tools run: what it says is put into the result before that is stored, so every later view of
the result says the same.
"""

from __future__ import annotations

import json
import os

NOTE = "Note: {path} was modified externally."


class Freshness:
    """The modification times of the files that one process has read; kept in memory only (S4.48).

    Paths are keys: use one spelling for a file. Safe to share by threads as far as each file is read by one.
    """

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}

    def note(self, path: str | os.PathLike[str], mtime: float) -> str | None:
        """Take note that a file was read; return what to tell the model if it changed since it was read before."""
        name = os.fspath(path)
        before = self._seen.get(name)
        self._seen[name] = mtime
        return None if before is None or before == mtime else NOTE.format(path=name)

    def wrote(self, path: str | os.PathLike[str], mtime: float) -> None:
        """Take note that the agent itself changed a file: of that it need not be told."""
        self._seen[os.fspath(path)] = mtime

    def noted(self, path: str | os.PathLike[str], mtime: float, content: str) -> str:
        """Return the JSON result of a read with ``mtime``, and a ``note`` if the file changed, in its ``data``.

        A content that is not an object with an object as ``data`` is returned as it is.
        """
        note = self.note(path, mtime)
        try:
            result = json.loads(content)
        except (ValueError, RecursionError):
            return content
        if not isinstance(result, dict) or not isinstance(result.get("data"), dict):
            return content
        result["data"] |= {"mtime": mtime, **({"note": note} if note else {})}
        return json.dumps(result, ensure_ascii=False)
