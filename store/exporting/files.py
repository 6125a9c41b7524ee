"""Write files of one JSON value a line, readable by their owner alone, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, NamedTuple

from ..errors import InvalidValue, StoreError
from ..inspection import is_store_file
from ..records import FilePath
from ..text import format_json_line


class Exported(NamedTuple):
    """A written file, with the number of its sessions and messages.

    ``advice`` tells how a program continues the session, None if no program does. ``homes`` and
    ``keys`` are the numbers of places that were masked.
    """

    path: Path
    sessions: int
    messages: int
    advice: str | None = None
    homes: int = 0
    keys: int = 0


def render_json_lines(values: Iterable[Any], *, ascii_only: bool) -> Iterator[str]:
    """Yield values as lines of JSON."""
    for value in values:
        yield f"{format_json_line(value, ascii_only=ascii_only)}\n"


def write_private_file(
    path: FilePath, lines: Iterable[str], *, store: FilePath | None, replace: bool
) -> Path:
    """Write lines to a file of mode 0600, whole or not at all; return its path.

    Raises StoreError if the file exists, is a file of the ``store``, or cannot be written;
    ``replace`` allows it to exist. Raises InvalidValue for a path that no file can have.
    """
    file = Path(path)
    if "\0" in str(file):
        raise InvalidValue(f"{str(file)!r} is not the path of a file")
    try:
        if is_store_file(store, file):
            raise StoreError(f"{str(file)!r} is the store itself; export to another file")
        if file.is_symlink() or (file.exists() and not file.is_file()):
            raise StoreError(
                f"{str(file)!r} is a link, a folder or a device, and is not replaced; name a file"
            )
        if file.exists() and not replace:
            raise FileExistsError
        if not file.parent.is_dir():
            raise StoreError(f"there is no folder {str(file.parent)!r} to write {file.name} to")
        with _open_private_file(file, replace=replace) as opened:
            opened.writelines(lines)
    except FileExistsError as problem:
        raise StoreError(f"{str(file)!r} exists already; replace=True replaces it") from problem
    except OSError as problem:
        raise StoreError(f"cannot write {str(file)!r}: {problem.strerror or problem}") from problem
    return file


@contextmanager
def _open_private_file(path: Path, *, replace: bool) -> Iterator[IO[str]]:
    """Open a private file beside another; on success it takes the other's name in one step."""
    with NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}", delete=False
    ) as file:
        written = Path(file.name)
        try:
            yield file
            file.close()
            if replace or not _link_new_file(written, path):
                written.replace(path)
        except BaseException:
            written.unlink(missing_ok=True)
            raise


def _link_new_file(written: Path, path: Path) -> bool:
    """Rename a file to a name that no other has, if links can be made. Raises FileExistsError."""
    try:
        path.hardlink_to(written)
    except OSError:
        if path.exists():
            raise FileExistsError from None
        return False
    written.unlink()
    return True
