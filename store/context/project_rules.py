"""The rules of a project: its ``CODE_LAW.md``, sent with every request and never stored.

It is sent whole or not at all: half of a rule may say its opposite.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..database import get_logger
from .file_mentions import Root, check_root

LAW_FILE_NAME = "CODE_LAW.md"
LAW_SIZE_LIMIT = 100_000
"""Bytes that the file may have."""

law_logger = get_logger(__name__)


class Law(NamedTuple):
    """The rules of a project; "" where there are none.

    ``problem`` says why a file that is there is not sent.
    """

    text: str = ""
    problem: str | None = None


def code_law(root: Root | None) -> Law:
    """Return the rules of the project in a folder, as the file is now.

    The case of the name does not matter; of several files the exact name is taken, else the first
    in order. A file that is no text, is too large, is outside of the folder or cannot be read is
    refused: this is reported in ``problem`` and logged, and never ends a host's turn.

    Raises InvalidValue for a root that is no path.
    """
    root = check_root(root)
    if root is None:
        return Law()
    try:
        path = _find_law_file(Path(root))
        return Law() if path is None else Law(_read_law_text(path, Path(root)))
    except (OSError, ValueError, RuntimeError) as error:
        # Any log can hold it: bytes that are no text in UTF-8 are written as escapes.
        folder = os.fspath(root).encode("utf-8", "backslashreplace").decode("utf-8")
        problem = f"{LAW_FILE_NAME} of {folder} is not sent: {error}"
        law_logger.warning(problem, extra={"root": folder})
        return Law(problem=problem)


def _find_law_file(root: Path) -> Path | None:
    """Return the file of a folder; a folder that does not exist has none."""
    try:
        paths = [path for path in root.iterdir() if path.name.lower() == LAW_FILE_NAME.lower()]
    except (FileNotFoundError, NotADirectoryError):
        return None
    paths.sort(key=lambda path: (path.name != LAW_FILE_NAME, path.name))
    return next(filter(Path.is_file, paths), None)


def _read_law_text(path: Path, root: Path) -> str:
    """Return the text of a file. Raises OSError, and ValueError for a file that is refused."""
    resolved = path.resolve()
    if not resolved.is_relative_to(root.resolve()):
        raise ValueError("it is a link to a file outside of the folder")
    with resolved.open("rb") as file:
        content = file.read(LAW_SIZE_LIMIT + 1)
    if len(content) > LAW_SIZE_LIMIT:
        raise ValueError(f"it has more than {LAW_SIZE_LIMIT:,} bytes")
    if b"\0" in content:
        raise ValueError("it is no text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("it is no text in UTF-8") from error
