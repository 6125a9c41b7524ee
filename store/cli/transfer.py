"""Commands that bring sessions in and out: import, export."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, NamedTuple

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from .. import transcripts
from ..errors import InvalidValue, StoreError, UnknownTranscript
from ..importing import ImportReport, import_file, is_file_of
from ..messages import Message
from ..store import Store
from . import render
from .options import At, Fields, Json, Now, PolicyName, SessionId, existing, find, moment_of, opened, policy_of
from .render import Cell, Column

NOTES_SHOWN = 5
"""Notes printed for each file, at most."""

COLUMNS = (
    Column("file", wide=True),
    Column("kind"),
    Column("sessions", number=True),
    Column("messages", number=True),
    Column("calls", number=True),
    Column("new", number=True),
    Column("notes", number=True),
)


class Found(NamedTuple):
    """A file to import: ``asked`` for by the user, or one of many in a folder, where others may be something else."""

    path: Path
    asked: bool


class Failure(NamedTuple):
    """A file that could not be imported; ``skipped`` where it only happened to lie in a folder."""

    path: Path
    problem: str
    skipped: bool


def import_(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="FILES", help="Transcripts, and folders to search for them.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help=f"Kind of the files: {', '.join(transcripts.KINDS)}.",
            show_default="by content",
        ),
    ] = None,
    id: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option("--id", metavar="ID", help="The session's id, for a single file.", show_default="the file's own"),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Rewind sessions that differ, and continue them as in the file.")
    ] = False,
    notes: Annotated[
        bool, typer.Option("--notes", help="Print every note, also on what is left out as usual.")
    ] = False,
    json: Json = False,
) -> None:
    """Import transcripts of other programs; what is stored already is not stored again."""
    if not any(path.exists() for path in paths):
        raise StoreError(f"there is no file or folder {str(paths[0])!r}")
    with opened(ctx) as store:
        files = list(_files(paths, store))
        if id is not None and len(files) != 1:
            raise InvalidValue(f"--id names the session of one file, here are {len(files)}")
        results = list(_import_all(store, files, kind=kind, session_id=id, replace=replace))
    if json:
        render.print_json_list(map(_fields, results))
    else:
        _print_results(results, every_note=notes)
    raise typer.Exit(_status(results, replace=replace))


def export(
    ctx: typer.Context,
    session: SessionId,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to, readable by you alone.", show_default="stdout"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    view: Annotated[bool, typer.Option("--view", help="Export what would be sent to the model instead.")] = False,
    at: At = None,
    now: Now = None,
    policy: PolicyName = "default",
    fields: Fields = None,
) -> None:
    """Write a session's raw messages, one JSON object a line; `import` reads them back equal."""
    with existing(ctx) as store:
        found = find(store, session).id
        if view:
            messages: Iterable[Message] = store.view(
                found, policy_of(policy, fields), at=at, now=moment_of(now)
            ).messages
        else:
            messages = (stored.message for page in store.pages(found, at=at) for stored in page)
        if output is None:
            render.write(render.json_text(message) + "\n" for message in messages)
            return
        if is_file_of(store, output):
            raise StoreError(f"{str(output)!r} is the store itself; export to another file")
        lines = (render.json_text(message, ascii_only=False) + "\n" for message in messages)
        count = _write_private(output, lines, replace=force)
    render.say(f"{render.counted(count, 'message')} written to {output}")


def _files(paths: list[Path], store: Store) -> Iterator[Found]:
    """Yield the files given and those in the folders given, hidden ones and the store's own left out."""
    for path in paths:
        if not path.is_dir():
            yield Found(path, asked=True)
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                inner = Path(folder, name)
                if not name.startswith(".") and inner.is_file() and not is_file_of(store, inner):
                    yield Found(inner, asked=False)


def _import_all(store: Store, files: list[Found], **options: Any) -> Iterator[ImportReport | Failure]:
    """Import files one after the other, with a progress bar on a terminal; a file that fails stops no other."""
    sizes = [_size(file.path) for file in files]
    with _progress() as bar:
        task = bar.add_task("", total=sum(sizes))
        done = 0
        for file, size in zip(files, sizes, strict=True):
            bar.update(task, description=render.one_line(file.path.name, 40), completed=done)
            start = done
            yield _import(store, file, progress=lambda read: bar.update(task, completed=start + read), **options)  # noqa: B023
            done += size


def _import(store: Store, file: Found, **options: Any) -> ImportReport | Failure:
    try:
        return import_file(store, file.path, **options)
    except UnknownTranscript as problem:
        return Failure(file.path, str(problem), skipped=not file.asked)
    except (StoreError, OSError) as problem:
        return Failure(file.path, str(problem), skipped=False)


def _size(path: Path) -> int:
    try:
        return transcripts.size(path)
    except StoreError:
        return 0  # the import itself will say what is wrong


def _progress() -> Progress:
    error = render.console(error=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=error, transient=True, disable=not error.is_terminal)


def _status(results: list[ImportReport | Failure], *, replace: bool) -> int:
    """Return 2 where a file failed or nothing was a transcript, 1 where a session was left as it is, else 0."""
    failures = [each for each in results if isinstance(each, Failure)]
    if len(failures) == len(results) or not all(each.skipped for each in failures):
        return 2
    sessions = (each for report in results if isinstance(report, ImportReport) for each in report.sessions)
    return int(not replace and any(session.differs_at for session in sessions))


def _print_results(results: list[ImportReport | Failure], *, every_note: bool) -> None:
    reports = [each for each in results if isinstance(each, ImportReport)]
    failures = [each for each in results if isinstance(each, Failure)]
    if reports:
        rows = [(render.file_name(report.path.name), report.kind, *_counts(report)) for report in reports]
        total: tuple[Cell, ...] = (f"{len(rows)} files", "", *map(sum, zip(*(row[2:] for row in rows), strict=True)))
        render.table(COLUMNS, rows if len(rows) == 1 else [*rows, total])
    for report in reports:
        _print_notes(report, every=every_note)
    skipped = [failure for failure in failures if failure.skipped]
    if skipped:
        render.say(f"skipped {render.counted(len(skipped), 'file')} of no known kind, the first {skipped[0].path}")
    for failure in failures:
        if not failure.skipped:
            named = str(failure.path) in failure.problem
            render.complain(failure.problem if named else f"{failure.path}: {failure.problem}")
    if len(skipped) == len(results):
        render.complain("nothing was imported; name a file to see what is wrong with it")


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
    for note in notes if every else notes[:NOTES_SHOWN]:
        render.say(f"{report.path}{f':{note.line}' if note.line else ''}: {note.text}")
    if not every and len(notes) > NOTES_SHOWN:
        render.say(f"{report.path}: {len(notes) - NOTES_SHOWN} notes like these; --notes prints all")


def _fields(result: ImportReport | Failure) -> dict[str, Any]:
    if isinstance(result, Failure):
        return {"file": str(result.path), "error": result.problem, "skipped": result.skipped}
    return {
        "file": str(result.path),
        "kind": result.kind,
        "sessions": [each._asdict() for each in result.sessions],
        "notes": [each._asdict() for each in result.notes],
    }


def _write_private(path: Path, lines: Iterable[str], *, replace: bool) -> int:
    """Write lines to a file of mode 0600, whole or not at all; return how many. Raises StoreError where it exists."""
    if path.exists() and not replace:
        raise StoreError(f"{str(path)!r} exists already; --force replaces it")
    # its mode is 0600; a file beside the other can take its place in one step
    with NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}", delete=False
    ) as file:
        try:
            count = sum(1 for line in lines if file.write(line))
            file.close()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return count
