"""The command that brings sessions in: import."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich.progress import DownloadColumn, Progress, TaskID

from .. import transcripts
from ..errors import InvalidValue, StoreError, UnknownTranscript
from ..face import Store
from ..importing import ImportReport, import_file, is_file_of, require_message
from . import render
from .fitting import Column
from .options import (
    Json,
    opened,
    place,
)
from .render import Row

STANDARD_INPUT = Path("-")

NOTES_SHOWN = 3
"""Notes printed for each file, and names of files skipped, at most."""

COLUMNS = (
    Column("file", clip="start"),
    Column("kind"),
    Column("sessions", number=True),
    Column("messages", number=True),
    Column("calls", number=True, spare=1),
    Column("new", number=True),
    Column("notes", number=True),
)


Paths = Annotated[
    list[Path],
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
Notes = Annotated[
    bool,
    typer.Option(
        "--notes",
        help="Print every note, also on what is left out as usual, and every file skipped.",
    ),
]


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Give a private file that holds what standard input does, and is named by that."""
    content = sys.stdin.buffer.read()
    with TemporaryDirectory() as folder:
        file = Path(folder, f"standard-input-{sha256(content).hexdigest()[:12]}")
        file.write_bytes(content)
        yield file


class Found(NamedTuple):
    """A file to import.

    ``asked`` for by the user, or one of many in a folder, where others may be something else.
    """

    path: Path
    asked: bool


class Failure(NamedTuple):
    """A file that could not be imported; ``skipped`` where it only happened to lie in a folder."""

    path: Path
    problem: str
    skipped: bool


Result = ImportReport | Failure
T = TypeVar("T")


def import_(
    ctx: typer.Context,
    paths: Paths,
    kind: Kind = None,
    id: Id = None,  # noqa: A002 - the option's name
    replace: Replace = False,
    root: Root = None,
    notes: Notes = False,
    json: Json = False,
) -> None:
    """Import transcripts of other programs, or what is new in them.

    What is stored already is not stored again.
    """
    if paths == [STANDARD_INPUT]:
        with _standard_input() as file:
            return import_(ctx, [file], kind, id, replace, root, notes, json)
    if STANDARD_INPUT in paths:
        raise InvalidValue("- reads standard input, alone; name it without other files")
    if not any(path.exists() for path in paths):
        raise StoreError(f"there is no file or folder {str(paths[0])!r}")
    files = _files(paths, place(ctx).file)
    if id is not None and len(files) != 1:
        raise InvalidValue(f"--id names the session of one file, here are {len(files)}")
    options = {"kind": kind, "session_id": id, "replace": replace, "project_root": root}
    results: list[Result] = [] if place(ctx).exists else _nothing_to_import(files, kind)
    if not results:
        with opened(ctx) as store:
            results = list(_import_all(store, files, options))
    if json:
        render.print_json_list(map(_fields, results))
    else:
        _print_results(results, every_note=notes)
    raise typer.Exit(_status(results, replace=replace))


def _files(paths: list[Path], own: Path | None) -> list[Found]:
    """Return the files to import; the store's own, in a folder, is none of them."""
    found = _found(paths)
    return [file for file in found if file.asked or not is_file_of(own, file.path)]


def _found(paths: list[Path]) -> Iterator[Found]:
    """Yield the files given, and those in the folders given that are not hidden."""
    for path in paths:
        if path.is_dir():
            yield from _inside(path)
        else:
            yield Found(path, asked=True)


def _inside(path: Path) -> Iterator[Found]:
    for folder, folders, names in os.walk(path):
        folders[:] = _not_hidden(folders)
        for name in _not_hidden(names):
            inner = Path(folder, name)
            if inner.is_file():
                yield Found(inner, asked=False)


def _not_hidden(names: list[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("."))


def _nothing_to_import(files: list[Found], kind: str | None) -> list[Result]:
    """Return why none of the files can be imported, nothing where one can.

    So no store is made for nothing.
    """
    failures: list[Result] = []
    for file in files:
        result = _tried(file, lambda path: require_message(path, kind))
        if not isinstance(result, Failure):
            return []
        failures.append(result)
    return failures


def _import_all(
    store: Store,
    files: list[Found],
    options: dict[str, Any],
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
            yield _tried(file, partial(import_file, store, progress=tell, **options))
            done += size


def _tell(bar: Progress, task: TaskID, start: int, read: int) -> None:
    bar.update(task, completed=start + read)


def _tried(file: Found, work: Callable[[Path], T]) -> T | Failure:
    """Return what comes of a file, or why nothing does."""
    try:
        return work(file.path)
    except UnknownTranscript as problem:
        return Failure(file.path, str(problem), skipped=not file.asked)
    except (StoreError, OSError) as problem:
        return Failure(file.path, str(problem), skipped=False)


def _size(path: Path) -> int:
    try:
        return transcripts.size(path)
    except StoreError:
        return 0  # the import itself will say what is wrong


def _status(results: list[Result], *, replace: bool) -> int:
    """Return 2 for a failed file or no transcript at all, 1 where a part of one is lost, else 0."""
    failures = _failures(results)
    if len(failures) == len(results) or not all(each.skipped for each in failures):
        return 2
    return int(any(_is_lossy(report, replace=replace) for report in _reports(results)))


def _is_lossy(report: ImportReport, *, replace: bool) -> bool:
    """Tell whether something of a file is not in the store; what was replaced as asked is."""
    broken = sum(note.broken for note in report.notes)
    replaced = sum(bool(session.differs_at) for session in report.sessions) if replace else 0
    return broken > replaced


def _reports(results: list[Result]) -> list[ImportReport]:
    return [each for each in results if isinstance(each, ImportReport)]


def _failures(results: list[Result]) -> list[Failure]:
    return [each for each in results if isinstance(each, Failure)]


def _print_results(results: list[Result], *, every_note: bool) -> None:
    reports, failures = _reports(results), _failures(results)
    if reports:
        render.table(COLUMNS, _rows(reports))
    for report in reports:
        _print_notes(report, every=every_note)
    skipped = [each for each in failures if each.skipped]
    _print_skipped(skipped, every=every_note)
    for failure in failures:
        if not failure.skipped:
            render.complain(_complaint(failure))
    if len(skipped) == len(results):
        render.complain("nothing was imported; name a file to see what is wrong with it")


def _complaint(failure: Failure) -> str:
    """Return what went wrong with a file, its path in front where the problem does not name it."""
    if str(failure.path) in failure.problem:
        return failure.problem
    return f"{failure.path}: {failure.problem}"


def _print_skipped(skipped: list[Failure], *, every: bool) -> None:
    if not skipped:
        return
    head = f"skipped {render.counted(len(skipped), 'file')} of no known kind:"
    if every:
        render.say(head, *(str(each.path) for each in skipped))
        return
    names = ", ".join(each.path.name for each in skipped[:NOTES_SHOWN])
    more = ", …; --notes names all" if len(skipped) > NOTES_SHOWN else ""
    render.say(f"{head} {names}{more}")


def _rows(reports: list[ImportReport]) -> list[Row]:
    """Return a row for each file, and their sums where there are several."""
    rows = [_row(report) for report in reports]
    if len(reports) > 1:
        rows.append(_together(reports))
    return rows


def _row(report: ImportReport) -> Row:
    return report.path.name, report.kind, *_counts(report)


def _together(reports: list[ImportReport]) -> Row:
    sums = map(sum, zip(*map(_counts, reports), strict=True))
    return f"{len(reports)} files", "", *sums


def _counts(report: ImportReport) -> tuple[int, int, int, int, int]:
    sessions = report.sessions
    return (
        len(sessions),
        sum(each.messages for each in sessions),
        sum(each.tool_calls for each in sessions),
        sum(each.appended for each in sessions),
        len(report.notes),
    )


def _print_notes(report: ImportReport, *, every: bool) -> None:
    notes = [note for note in report.notes if note.broken or every]
    shown = notes if every else notes[:NOTES_SHOWN]
    for note in shown:
        line = f":{note.row}" if note.row else ""
        render.say(f"{report.path}{line}: {note.text}")
    if len(shown) < len(notes):
        more = len(notes) - len(shown)
        render.say(f"{report.path}: {more} notes like these; --notes prints all")


def _fields(result: Result) -> dict[str, Any]:
    if isinstance(result, Failure):
        return {"file": str(result.path), "error": result.problem, "skipped": result.skipped}
    return {
        "file": str(result.path),
        "kind": result.kind,
        "sessions": [each._asdict() for each in result.sessions],
        "notes": [each._asdict() for each in result.notes],
    }
