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
from ..importing import (
    Begun,
    FileFound,
    Growing,
    ImportReport,
    begin,
    files_in,
    homes_beyond,
    homes_found,
    import_begun,
    import_file,
)
from . import render, tables
from .accounts import (
    Failure,
    Result,
    fields_of,
    fields_of_home,
    print_as_it_comes,
    print_beyond,
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
NAME_OF_INPUT = "standard input"
PART = 1024 * 1024
"""Bytes of standard input that are held at once."""

PASSING = (Conflict, ConnectionLost, StoreBusy, StoreFull)
"""Errors of the store after which a followed file is read again."""

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
    """The settings of an import, by the parameter names of `import_file`."""

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
    if paths == [STANDARD_INPUT]:
        results = [_of_standard_input(each) for each in results]
    if json:
        render.print_json_list(map(fields_of, results))
    else:
        print_results(results, every_note=notes)
        print_beyond(homes_beyond(paths or []))
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
    """Return the paths. Raises StoreError if none is given."""
    if not paths:
        raise InvalidValue("name files or folders to import; --found lists what there is")
    if STANDARD_INPUT in paths:
        raise InvalidValue("- reads standard input, alone; name it without other files")
    if not any(path.exists() for path in paths):
        raise StoreError(f"there is no file or folder {str(paths[0])!r}")
    return paths


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Yield a private file with the contents of standard input, under its name."""
    digest = sha256()
    with TemporaryDirectory() as folder:
        held = Path(folder, "standard-input")
        with held.open("wb") as file:
            while part := sys.stdin.buffer.read(PART):
                digest.update(part)
                file.write(part)
        yield held.rename(f"{held}-{digest.hexdigest()[:12]}")


def _of_standard_input(result: Result) -> Result:
    """Return a failure of standard input under its own name, not under that of its file."""
    if not isinstance(result, Failure):
        return result
    problem = result.problem.replace(str(result.path), NAME_OF_INPUT)
    return result._replace(path=Path(NAME_OF_INPUT), problem=problem)


def _import(ctx: typer.Context, paths: list[Path], wanted: Wanted) -> list[Result]:
    """Import the named files; create no store if there is nothing to import."""
    files = list(files_in(paths, place(ctx).file))
    if not files:
        raise StoreError(f"there is nothing to import in {', '.join(map(repr, map(str, paths)))}")
    if wanted.session_id is not None and len(files) != 1:
        raise InvalidValue(f"--id names the session of one file, here are {len(files)}")
    begun = None if place(ctx).exists else _first_begun(files, wanted)
    if isinstance(begun, list):
        return [*begun]
    with opened(ctx) as store:
        return list(_import_all(store, files, wanted, begun))


def _watch(
    ctx: typer.Context,
    paths: list[Path] | None,
    wanted: Wanted,
    *,
    json: bool,
) -> None:
    """Import the named files, then their new lines, until Ctrl-C."""
    if wanted.session_id is not None:
        raise InvalidValue("--watch follows all sessions of files; --id names one")
    growing = Growing(_checked(paths or []), place(ctx).file)
    with opened(ctx) as store, suppress(KeyboardInterrupt):
        for files in growing.rounds():
            for result in _import_all(store, files, wanted):
                print_as_it_comes(result, json=json)
                if isinstance(result, Failure) and result.is_passing:
                    growing.forget(result.path)


def _first_begun(files: list[FileFound], wanted: Wanted) -> Begun | list[Failure]:
    """Return the first file that can be imported, otherwise all failures."""
    failures: list[Failure] = []
    for file in files:
        result = _tried(file, partial(begin, kind=wanted.kind, beside=wanted.beside))
        if not isinstance(result, Failure):
            return result
        failures.append(result)
    return failures


def _import_all(
    store: Store,
    files: list[FileFound],
    wanted: Wanted,
    begun: Begun | None = None,
) -> Iterator[Result]:
    """Import files one after the other, with a progress bar on a terminal.

    A file that fails stops no other. One of them may have begun to be read.
    """
    sizes = [_size(file.path) for file in files]
    done = 0
    with tables.progress(DownloadColumn()) as bar:
        task = bar.add_task("", total=sum(sizes))
        for file, size in zip(files, sizes, strict=True):
            name = render.one_line(file.path.name, 40)
            bar.update(task, description=name, completed=done)
            tell = partial(_tell, bar, task, done)
            yield _tried(file, partial(_import_one, store, wanted, begun, tell))
            done += size


def _import_one(
    store: Store, wanted: Wanted, begun: Begun | None, progress: transcripts.Progress, path: Path
) -> ImportReport:
    if begun is None or begun.path != path:
        return import_file(store, path, progress=progress, **wanted._asdict())
    return import_begun(
        store,
        begun,
        session_id=wanted.session_id,
        replace=wanted.replace,
        project_root=wanted.project_root,
    )


def _tell(bar: Progress, task: TaskID, start: int, read: int) -> None:
    bar.update(task, completed=start + read)


def _tried(file: FileFound, work: Callable[[Path], T]) -> T | Failure:
    """Return the result of a file, or its failure.

    In a folder, a file of no known program does not count as a refused transcript.
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
        return 0  # the import itself will report the problem
