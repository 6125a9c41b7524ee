"""The rules of a project: its ``CODE_LAW.md``, sent with every request and never stored.

It is sent whole or not at all: half of a rule may say its opposite.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..database import get_logger
from .at_files import Root, checked_root

NAME = "CODE_LAW.md"
LIMIT = 100_000
"""Bytes that the file may have."""

log = get_logger(__name__)


class Law(NamedTuple):
    """The rules of a project; "" where there are none.

    ``problem`` says why a file that is there is not sent.
    """

    text: str = ""
    problem: str | None = None


def code_law(root: Root | None) -> Law:
    """Return the rules of the project in a folder, as the file is now.

    The name counts in any case; of several the exact one is taken, else the first in order.
    A file that is no text, is too large or lies outside of the folder is refused, and one that
    cannot be read too: that is told and logged, a host's turn never fails for it.

    Raises InvalidValue for a root that is no path.
    """
    root = checked_root(root)
    if root is None:
        return Law()
    try:
        path = _found(root)
        return Law() if path is None else Law(_text(path, root))
    except (OSError, ValueError, RuntimeError) as error:
        folder = _printable(os.fspath(root))
        problem = f"{NAME} of {folder} is not sent: {error}"
        log.warning(problem, extra={"root": folder})
        return Law(problem=problem)


def _printable(path: str) -> str:
    """Return a path as any log can hold it: what is no text in UTF-8 stands in it as an escape."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def _found(root: Root) -> Path | None:
    """Return the file of a folder; a folder that is not there has none."""
    named = filter(_is_named_so, _inside(root))
    files = filter(Path.is_file, sorted(named, key=_preferred))
    return next(files, None)


def _inside(root: Root) -> list[Path]:
    """Return what is in a folder; nothing is in one that is not there."""
    try:
        return list(Path(root).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_named_so(path: Path) -> bool:
    return path.name.lower() == NAME.lower()


def _preferred(path: Path) -> tuple[bool, str]:
    return path.name != NAME, path.name


def _text(path: Path, root: Root) -> str:
    """Return what a file says. Raises ValueError for one that is not to be sent, OSError."""
    place = path.resolve()
    if not place.is_relative_to(Path(root).resolve()):
        raise ValueError("it is a link to a file outside of the folder")
    with place.open("rb") as file:
        found = file.read(LIMIT + 1)
    if len(found) > LIMIT:
        raise ValueError(f"it has more than {LIMIT:,} bytes")
    if b"\0" in found:
        raise ValueError("it is no text")
    return _decoded(found)


def _decoded(found: bytes) -> str:
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("it is no text in UTF-8") from error
