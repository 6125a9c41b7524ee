"""Bring a session into another program: where it looks for it, or by a command of its own."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import InvalidValue, StoreError
from ..records import FilePath
from .files import write_private_file
from .programs import Resumption, render_home_path
from .shapes import ExportSource, Written

LONGEST_COMMAND_SECONDS = 300
"""How long the command of a program may take for a file."""
FILE_NAME = "session.json"
"""The name of a file for a command of a program."""


def check_move(written: Written) -> Resumption:
    """Return how a program goes on with a written session, if it can be moved there now.

    Raises InvalidValue where no program goes on with it, and StoreError where it is there already,
    where the program is missing that has to take it, or the folder in which it works.
    """
    found = written.resumption
    if found is None:
        raise InvalidValue("no program goes on with a session of this shape")
    if not found.folder.is_dir():
        raise StoreError(
            f"the project's folder {str(found.folder)!r} is not here, so nothing can go on in it;"
            " `convostore project` names another"
        )
    if found.place is None:
        _find_import_command(found)
    elif found.place.exists() or found.place.is_symlink():
        place = render_home_path(found.place)
        raise StoreError(f"{place} is there already, and stays as it is; {found.command}")
    return found


def put_session(store: ExportSource, written: Written) -> Path | None:
    """Write a session to where its program looks for it, or let the program's command take it.

    Returns the path of the file, None where a command took it. Nothing that is there is written
    over; the file is readable by its owner alone, and is written whole or not at all.
    Raises what `check_move` raises, and StoreError where the file cannot be written or taken.
    """
    found, own = check_move(written), store._database.path
    if found.place is None:
        _run_import_command(found, written.lines, own)
        return None
    try:
        found.place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        told = problem.strerror or problem
        raise StoreError(f"cannot make the folder {str(found.place.parent)!r}: {told}") from problem
    return write_private_file(found.place, written.lines, store=own, replace=False)


def _find_import_command(found: Resumption) -> list[str]:
    """Return the words of the command that takes a file, with the path of its program."""
    name, *words = shlex.split(found.import_command)
    path = shutil.which(name)
    if path is None:
        raise StoreError(
            f"{name} is not on the PATH, and it takes the file itself; with --output, `convostore"
            " export` writes the file for another machine"
        )
    return [path, *words]


def _run_import_command(found: Resumption, lines: Iterable[str], store: FilePath | None) -> None:
    """Let the command of a program take a session; its output has to name the session."""
    command = _find_import_command(found)
    with TemporaryDirectory(prefix="convostore-") as folder:
        file = write_private_file(Path(folder, FILE_NAME), lines, store=store, replace=False)
        try:
            done = subprocess.run(  # noqa: S603 - the command stands in the table of programs
                [*command, str(file)],
                check=False,
                cwd=found.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LONGEST_COMMAND_SECONDS,
                encoding="utf-8",
                errors="replace",
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise StoreError(
                f"`{found.import_command}` did not take the session: {problem}"
            ) from problem
    if done.returncode or found.name not in done.stdout:
        told = done.stdout.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
        raise StoreError(f"`{found.import_command}` did not take the session: {told}")
