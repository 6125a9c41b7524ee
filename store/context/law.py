"""The rules of a project: its ``CODE_LAW.md``, sent with every request and never stored."""

from __future__ import annotations

import logging
import os
from pathlib import Path

NAME = "CODE_LAW.md"
LIMIT = 1_000_000
"""Bytes of the file that are read."""

Folder = str | os.PathLike[str]

log = logging.getLogger(__name__)


def code_law(root: Folder | None) -> str:
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


def _found(root: Folder) -> Path | None:
    """Return the file of a folder; a folder that is not there has none."""
    named = filter(_is_named_so, _inside(root))
    files = filter(Path.is_file, sorted(named, key=_preferred))
    return next(files, None)


def _inside(root: Folder) -> list[Path]:
    """Return what is in a folder; nothing is in one that is not there."""
    try:
        return list(Path(root).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_named_so(path: Path) -> bool:
    return path.name.lower() == NAME.lower()


def _preferred(path: Path) -> tuple[bool, str]:
    return path.name != NAME, path.name


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LIMIT).decode("utf-8-sig", "replace")
