"""The rules of a project: its ``CODE_LAW.md``, sent with every request and never stored."""

from __future__ import annotations

import logging
import os
from pathlib import Path

NAME = "CODE_LAW.md"
LIMIT = 1_000_000
"""Bytes of the file that are read."""

log = logging.getLogger(__name__)


def code_law(root: str | os.PathLike[str] | None) -> str:
    """Return the rules of the project in a folder, as the file is now; "" where there are none.

    The name counts in any case; of several the exact one is taken, else the first in order.
    A file that cannot be read is as none, and logged: a host's turn never fails for it.
    """
    if root is None:
        return ""
    try:
        path = _found(root)
        return "" if path is None else _text(path)
    except (OSError, ValueError) as error:
        named = {"root": os.fspath(root)}
        log.warning("%s of %s cannot be read: %s", NAME, root, error, extra=named)
        return ""


def _found(root: str | os.PathLike[str]) -> Path | None:
    """Return the file of a folder; a folder that is not there has none."""
    try:
        inside = list(Path(root).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return None
    named = [path for path in inside if path.name.lower() == NAME.lower()]
    return next(filter(Path.is_file, sorted(named, key=_preferred)), None)


def _preferred(path: Path) -> tuple[bool, str]:
    return path.name != NAME, path.name


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LIMIT).decode("utf-8-sig", "replace")
