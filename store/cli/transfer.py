"""The command that brings sessions in: import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple, TypeVar

import typer
from rich.progress import DownloadColumn, Progress, TaskID

from .. import transcripts
from ..errors import (
    Conflict,
    ConnectionLost,
    InvalidValue,
    StoreBusy,
    StoreError,
    StoreFull,
    UnknownTranscript,
)
from ..face import Store
from ..importing import FileFound, Growing, files_in, homes_found, import_file, require_message
from . import render
from .accounts import (
    Failure,
    Result,
    fields_of,
    fields_of_home,
    print_as_it_comes,
    print_homes,
    print_results,
    status_of,
)
from .options import (
    Json,
    opened,
    place,
)

STANDARD_INPUT = Path("-")

PASSING = (Conflict, ConnectionLost, StoreBusy, StoreFull)
"""Errors of the store, behind which a file that is followed is read again."""

NOT_KEPT = "it lies with a program's sessions, and is not named as they are"

Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILES",
        help="Transcripts, and folders to search for them; - reads standard input.",
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help=f"Kind of the files: {', '.join(transcripts.KINDS)}.",
        show_default="by content",
        autocompletion=lambda: list(transcripts.KINDS),
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="The session's id, for a single file.",
        show_default="the file's own",
    ),
]
Replace = Annotated[
    bool,
    typer.Option(
        "--replace", help="Rewind sessions that differ, and continue them as in the file."
    ),
]
Root = Annotated[
    str | None,
    typer.Option(
        "--project-root",
        metavar="FOLDER",
        help="Where their tools read files, for new sessions.",
        show_default="what the file tells",
    ),
]
Aside = Annotated[
    bool,
    typer.Option(
        "--beside",
        help="Keep hooks, own commands and added context as notes beside messages.",
    ),
]
Notes = Annotated[
    bool,
    typer.Option(
        "--notes",
        help="Print every note, also on what is left out as usual, and every file skipped.",
    ),
]


FoundOnly = Annotated[
    bool,
    typer.Option(
        "--found",
        help="Import nothing: list what programs keep sessions where on this machine.",
    ),
]

Watch = Annotated[
    bool,
    typer.Option("--watch", help="Go on, and import what files gain as they grow; Ctrl-C ends it."),
]

T = TypeVar("T")


class Wanted(NamedTuple):
    """How files are to be imported, by the names that `import_file` has for it."""

    kind: str | None
    session_id: str | None
    replace: bool
    project_root: str | None
    beside: bool


def import_(
    ctx: typer.Context,
    paths: Paths = None,
    kind: Kind = None,
    id: Id = None,  # noqa: A002 - the option's name
    replace: Replace = False,
    root: Root = None,
    beside: Aside = False,
    notes: Notes = False,
    found: FoundOnly = False,
    watch: Watch = False,
    json: Json = False,
) -> None:
    """Import transcripts of other programs, or what is new in them.

    What is stored already is not stored again.
    """
    if found:
        return _print_found(paths, json=json)
    wanted = Wanted(kind, id, replace, root, beside)
    if watch:
        return _watch(ctx, paths, wanted, json=json)
    with _given(paths) as given:
        results = _import(ctx, given, wanted)
    if json:
        render.print_json_list(map(fields_of, results))
    else:
        print_results(results, every_note=notes)
    raise typer.Exit(status_of(results, replace=replace))


def _print_found(paths: list[Path] | None, *, json: bool) -> None:
    if paths:
        raise InvalidValue("--found lists what there is; name no files with it")
    found = homes_found()
    if json:
        render.print_json_list(map(fields_of_home, found))
    else:
        print_homes(found)


@contextmanager
def _given(paths: list[Path] | None) -> Iterator[list[Path]]:
    """Give the files and folders that are named; standard input as a file."""
    if paths == [STANDARD_INPUT]:
        with _standard_input() as file:
            yield [file]
    else:
        yield _checked(paths or [])


def _checked(paths: list[Path]) -> list[Path]:
    """Return paths of which there is one at least. Raises StoreError."""
    if not paths:
        raise InvalidValue("name files or folders to import; --found lists what there is")
    if STANDARD_INPUT in paths:
        raise InvalidValue("- reads standard input, alone; name it without other files")
    if not any(path.exists() for path in paths):
        raise StoreError(f"there is no file or folder {str(paths[0])!r}")
    return paths


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Give a private file that holds what standard input does, and is named by that."""
    content = sys.stdin.buffer.read()
    with TemporaryDirectory() as folder:
        file = Path(folder, f"standard-input-{sha256(content).hexdigest()[:12]}")
        file.write_bytes(content)
        yield file


def _import(ctx: typer.Context, paths: list[Path], wanted: Wanted) -> list[Result]:
    """Import what the paths name; no store is made where there is nothing to import."""
    files = list(files_in(paths, place(ctx).file))
    if wanted.session_id is not None and len(files) != 1:
        raise InvalidValue(f"--id names the session of one file, here are {len(files)}")
    results = [] if place(ctx).exists else _nothing_to_import(files, wanted.kind)
    if results:
        return results
    with opened(ctx) as store:
        return list(_import_all(store, files, wanted))


def _watch(ctx: typer.Context, paths: list[Path] | None, wanted: Wanted, *, json: bool) -> None:
    """Import what the paths name, then what is new in it, until Ctrl-C."""
    if wanted.session_id is not None:
        raise InvalidValue("--watch follows all sessions of files; --id names one")
    growing = Growing(_checked(paths or []), place(ctx).file)
    with opened(ctx) as store, suppress(KeyboardInterrupt):
        for files in growing.rounds():
            for result in _import_all(store, files, wanted):
                print_as_it_comes(result, json=json)
                if isinstance(result, Failure) and result.is_passing:
                    growing.forget(result.path)


def _nothing_to_import(files: list[FileFound], kind: str | None) -> list[Result]:
    """Return why none of the files can be imported, nothing where one can."""
    failures: list[Result] = []
    for file in files:
        result = _tried(file, lambda path: require_message(path, kind))
        if not isinstance(result, Failure):
            return []
        failures.append(result)
    return failures


def _import_all(
    store: Store,
    files: list[FileFound],
    wanted: Wanted,
) -> Iterator[Result]:
    """Import files one after the other, with a progress bar on a terminal.

    A file that fails stops no other.
    """
    sizes = [_size(file.path) for file in files]
    done = 0
    with render.progress(DownloadColumn()) as bar:
        task = bar.add_task("", total=sum(sizes))
        for file, size in zip(files, sizes, strict=True):
            name = render.one_line(file.path.name, 40)
            bar.update(task, description=name, completed=done)
            tell = partial(_tell, bar, task, done)
            yield _tried(file, partial(import_file, store, progress=tell, **wanted._asdict()))
            done += size


def _tell(bar: Progress, task: TaskID, start: int, read: int) -> None:
    bar.update(task, completed=start + read)


def _tried(file: FileFound, work: Callable[[Path], T]) -> T | Failure:
    """Return what comes of a file, or why nothing does.

    In a folder, what no program is known to have written is no transcript that was refused.
    """
    if not file.kept:
        return Failure(file.path, NOT_KEPT, skipped=True)
    try:
        return work(file.path)
    except UnknownTranscript as problem:
        skipped = not (file.asked or problem.program)
        return Failure(file.path, str(problem), skipped)
    except (StoreError, OSError) as problem:
        passing = isinstance(problem, PASSING)
        return Failure(file.path, str(problem), skipped=False, is_passing=passing)


def _size(path: Path) -> int:
    try:
        return transcripts.size(path)
    except StoreError:
        return 0  # the import itself will say what is wrong
