"""Files that commands write: a JSON value a line, readable by their owner alone, whole or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from . import render
from .options import require_folder, require_new


def lines(values: Iterable[Any], *, ascii_only: bool | None = None) -> Iterator[str]:
    """Yield values as lines of JSON; ``ascii_only`` None means as standard output needs them."""
    for value in values:
        yield render.json_text(value, ascii_only=ascii_only) + "\n"


def write_private(path: Path, rows: Iterable[str], *, replace: bool) -> int:
    """Write rows to a file of mode 0600, whole or not at all; return how many.

    Raises StoreError where it exists, or its folder does not.
    """
    require_new(path, replace=replace)
    require_folder(path)
    with _beside(path) as file:
        return sum(1 for row in rows if file.write(row))


@contextmanager
def _beside(path: Path) -> Iterator[IO[str]]:
    """Give a private file beside another, whose place it takes in one step when all went well."""
    with NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}", delete=False
    ) as file:
        try:
            yield file
            file.close()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
