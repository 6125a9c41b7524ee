"""The command that brings sessions in, and its results as tables, lines and JSON: import."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich.progress import DownloadColumn, Progress, TaskID

from .. import Store, transcripts
from ..errors import (
    Conflict,
    ConnectionLost,
    InvalidValue,
    StoreBusy,
    StoreError,
    StoreFull,
    UnknownTranscript,
)
from ..importing import (
    GrowingFiles,
    ImportReport,
    OpenedTranscript,
    TranscriptFile,
    find_session_folders,
    find_skipped_folders,
    find_transcript_files,
    import_file,
    import_opened_transcript,
    open_transcript,
)
from ..records import ProgressCallback
from ..text import format_count
from ..transcripts import NoteEvent
from . import render, tables
from .import_summary import summarize_import
from .options import (
    Json,
    get_place,
    open_store,
    resolve_folder,
)
from .program_folders import (
    build_home_fields,
    choose_import_paths,
    print_homes,
    print_skipped_homes,
)
from .terminal import Column, TableRow

MAX_NOTES = 3
"""Notes printed for each file, and names in a line, at most."""

IMPORT_COLUMNS = (
    Column("file", clip="start"),
    Column("kind"),
    Column("sessions", number=True),
    Column("messages", number=True),
    Column("calls", number=True, spare=1),
    Column("new", number=True),
    Column("notes", number=True),
)

STANDARD_INPUT = Path("-")
INPUT_NAME = "standard input"
NOTE_VALUES = re.compile(r"'[^']*'|\d+")
"""Values in a note, without which notes of one kind are equal."""
INPUT_CHUNK_SIZE = 1024 * 1024
"""Bytes of standard input that are held at once."""

PASSING_ERRORS = (Conflict, ConnectionLost, StoreBusy, StoreFull)
"""Errors of the store after which a followed file is read again."""

MISNAMED_FILE_PROBLEM = "it lies with a program's sessions, and is not named as they are"

TranscriptPaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILES",
        help="Transcripts, and folders to search for them; - reads standard input.",
    ),
]
FileKind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help=f"Kind of the files: {', '.join(transcripts.TRANSCRIPT_KINDS)}.",
        show_default="by content",
        autocompletion=lambda: list(transcripts.TRANSCRIPT_KINDS),
    ),
]
ImportedId = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="The session's id, for a single file.",
        show_default="the file's own",
    ),
]
ReplaceSessions = Annotated[
    bool,
    typer.Option(
        "--replace", help="Rewind sessions that differ, and continue them as in the file."
    ),
]
ImportedRoot = Annotated[
    str | None,
    typer.Option(
        "--project-root",
        metavar="FOLDER",
        help="The folder of their project, for new sessions.",
        show_default="what the file tells",
    ),
]
BesideOption = Annotated[
    bool,
    typer.Option(
        "--beside",
        help="Keep hooks, own commands and added context as notes on messages.",
    ),
]
AllNotes = Annotated[
    bool,
    typer.Option(
        "--notes",
        help="Print every note, also on parts that are always left out, and every skipped file.",
    ),
]

EveryFile = Annotated[
    bool, typer.Option("--verbose", help="Print what came of each file, too, and its notes.")
]

EveryFolder = Annotated[
    bool, typer.Option("--all", help="Import the sessions of all programs that --found lists.")
]

HomesOption = Annotated[
    bool,
    typer.Option(
        "--found",
        help="Import nothing; list the folders with sessions of programs on this machine.",
    ),
]

WatchOption = Annotated[
    bool,
    typer.Option(
        "--watch", help="Keep running, and import new messages of growing files, until Ctrl-C."
    ),
]

ResultT = TypeVar("ResultT")


class ImportFailure(NamedTuple):
    """A file that could not be imported; ``skipped`` if it was merely found in a folder.

    ``is_passing`` if the store caused the failure, not the file.
    """

    path: Path
    problem: str
    skipped: bool
    is_passing: bool = False


ImportResult = ImportReport | ImportFailure


def compute_exit_status(results: list[ImportResult], *, replace: bool) -> int:
    """Return 2 for a failed file or no transcript at all, 1 for a partly lost one, otherwise 0."""
    failures = _select_failures(results)
    if len(failures) == len(results) or not all(each.skipped for each in failures):
        return 2
    return int(any(_is_lossy(report, replace=replace) for report in _select_reports(results)))


def _is_lossy(report: ImportReport, *, replace: bool) -> bool:
    """Tell whether a part of a file is missing in the store, except for requested replacements."""
    broken = sum(note.broken for note in report.notes)
    replaced = sum(bool(session.differs_at) for session in report.sessions) if replace else 0
    return broken > replaced


def _select_reports(results: list[ImportResult]) -> list[ImportReport]:
    return [each for each in results if isinstance(each, ImportReport)]


def _select_failures(results: list[ImportResult]) -> list[ImportFailure]:
    return [each for each in results if isinstance(each, ImportFailure)]


def print_results(
    results: list[ImportResult], summary: list[str], *, every_note: bool, every_file: bool
) -> None:
    """Print the summary of an import, and sums of several files; those of each one, if wanted."""
    reports, failures = _select_reports(results), _select_failures(results)
    skipped = [each for each in failures if each.skipped]
    if reports and (every_file or len(reports) == 1):
        rows = list(map(_build_report_row, reports))
        if len(reports) > 1:
            rows.append((f"{len(reports)} files", "", *_sum_report_counts(reports)))
        render.show_table(IMPORT_COLUMNS, rows)
    if len(reports) == 1 or every_file or every_note:
        for report in reports:
            _print_notes(report, every=every_note)
    else:
        render.print_lines(*_describe_note_kinds(reports))
    render.print_lines(*summary)
    _print_skipped_files(skipped, every=every_note)
    _print_failures(failures)
    if len(skipped) == len(results):
        render.print_problem("nothing was imported; name a file to see what is wrong with it")
    if len(results) > 1:
        render.print_lines(*_describe_import_totals(reports, failures, every=every_note))


def _print_failures(failures: list[ImportFailure]) -> None:
    """Print what failed; what the store caused, such as a full disk, is printed once."""
    alike = Counter(each.problem for each in failures if each.is_passing)
    for failure in failures:
        if failure.skipped or (failure.is_passing and not alike[failure.problem]):
            continue
        problem, others = failure.problem, alike.pop(failure.problem, 1) - 1
        said = problem if str(failure.path) in problem else f"{failure.path}: {problem}"
        render.print_problem(
            f"{said} ({format_count(others, 'more file')} like this)" if others else said
        )


def _print_skipped_files(skipped: list[ImportFailure], *, every: bool) -> None:
    if not skipped:
        return
    head = f"skipped {format_count(len(skipped), 'file')} of no known kind:"
    if every:
        render.print_lines(head, *(str(each.path) for each in skipped))
        return
    names = [each.path.name for each in skipped]
    render.print_lines(f"{head} {_join_first_names(names, every=every)}")


def _join_first_names(names: list[str], *, every: bool) -> str:
    """Return names in one line: all of them, or the first and how to list the others."""
    if every or len(names) <= MAX_NOTES:
        return ", ".join(names)
    return f"{', '.join(names[:MAX_NOTES])}, …; --notes names all"


def _describe_import_totals(
    reports: list[ImportReport],
    failures: list[ImportFailure],
    *,
    every: bool,
) -> Iterator[str]:
    """Yield the summed results of all files, and of all their lines."""
    skipped = sum(each.skipped for each in failures)
    refused = len(failures) - skipped
    count = format_count(len(reports) + len(failures), "file")
    yield f"{count}: {len(reports):,} read, {refused:,} refused, {skipped:,} skipped"
    if reports:
        yield _describe_line_totals(reports, every=every)


def _describe_line_totals(reports: list[ImportReport], *, every: bool) -> str:
    read = format_count(sum(each.lines for each in reports), "line")
    _, messages, _, new, _ = _sum_report_counts(reports)
    told = f"{read} read: {format_count(messages, 'message')}, {new:,} of them new"
    left_out = sum((each.left_out for each in reports), Counter[str]())
    if not left_out:
        return told
    things = [format_count(count, thing) for thing, count in left_out.most_common()]
    return f"{told}; left out: {_join_first_names(things, every=every)}"


def _build_report_row(report: ImportReport) -> TableRow:
    return (report.path.name, report.kind, *_count_report(report))


def _sum_report_counts(reports: list[ImportReport]) -> list[int]:
    return [sum(column) for column in zip(*map(_count_report, reports), strict=True)]


def _count_report(report: ImportReport) -> tuple[int, int, int, int, int]:
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
    shown = notes if every else notes[:MAX_NOTES]
    for note in shown:
        line = f":{note.row}" if note.row else ""
        render.print_lines(f"{report.path}{line}: {note.text}")
    if len(shown) < len(notes):
        more = len(notes) - len(shown)
        render.print_lines(f"{report.path}: {more} notes like these; --notes prints all")


def _describe_note_kinds(reports: list[ImportReport]) -> Iterator[str]:
    """Yield the first broken note of each kind with its place, and how many are like it."""
    kinds: dict[str, list[str]] = {}
    for report in reports:
        for note in filter(attrgetter("broken"), report.notes):
            line = f":{note.row}" if note.row else ""
            kind = NOTE_VALUES.sub("", note.text)
            kinds.setdefault(kind, []).append(f"{report.path}{line}: {note.text}")
    for first, *others in list(kinds.values())[:MAX_NOTES]:
        more = f"; {format_count(len(others), 'more note')} like this" if others else ""
        yield f"{first}{more}"
    if len(kinds) > MAX_NOTES:
        yield f"{len(kinds) - MAX_NOTES} more kinds of notes; --notes prints all"


def build_result_fields(result: ImportResult) -> dict[str, Any]:
    """Return the result of a file as JSON."""
    if isinstance(result, ImportFailure):
        return {"file": str(result.path), "error": result.problem, "skipped": result.skipped}
    return {
        "file": str(result.path),
        "kind": result.kind,
        "lines": result.lines,
        "left_out": result.left_out,
        "sessions": [each._asdict() for each in result.sessions],
        "notes": [each._asdict() for each in result.notes],
    }


def print_followed_result(result: ImportResult, told: set[NoteEvent], *, json: bool) -> None:
    """Print the result of a followed file: one line, or nothing if there is no news.

    ``told`` are its notes that were printed before; those printed now are added.
    """
    if json:
        render.print_json(build_result_fields(result))
    elif isinstance(result, ImportReport):
        # a line that is just being written is read again when it has grown
        notes = [each for each in result.notes if not each.unfinished and each not in told]
        told.update(notes)
        if new := _count_report(result)[3]:
            render.print_lines(f"{result.path}: {format_count(new, 'new message')}")
        _print_notes(result._replace(notes=notes), every=False)
    else:
        _print_failures([result])
    sys.stdout.flush()


class ImportSettings(NamedTuple):
    """The settings of an import, by the parameter names of `import_file`."""

    kind: str | None
    session_id: str | None
    replace: bool
    project_root: str | None
    beside: bool


def import_(
    ctx: typer.Context,
    paths: TranscriptPaths = None,
    kind: FileKind = None,
    id: ImportedId = None,  # noqa: A002 - the option's name
    replace: ReplaceSessions = False,
    root: ImportedRoot = None,
    beside: BesideOption = False,
    notes: AllNotes = False,
    verbose: EveryFile = False,
    all: EveryFolder = False,  # noqa: A002 - the option's name
    found: HomesOption = False,
    watch: WatchOption = False,
    json: Json = False,
) -> None:
    """Import transcripts of other programs, or their new messages.

    Messages that are stored already are not stored again.
    """
    if found:
        return _print_found_homes(paths, json=json)
    wanted = ImportSettings(kind, id, replace, resolve_folder(root), beside)
    paths = choose_import_paths(paths, everything=all, can_ask=not json)
    if not paths:
        return render.print_lines("nothing was imported")
    if watch:
        return _watch_files(ctx, paths, wanted, json=json)
    with _resolve_paths(paths) as given:
        is_piped = paths == [STANDARD_INPUT]
        results, summary = _import_files(ctx, given, wanted, is_piped=is_piped, summarize=not json)
    if is_piped:
        results = [_rename_input_failure(each) for each in results]
    if json:
        render.print_json_list(map(build_result_fields, results))
    else:
        print_results(results, summary, every_note=notes, every_file=verbose)
        print_skipped_homes(find_skipped_folders(paths))
    raise typer.Exit(compute_exit_status(results, replace=replace))


def _print_found_homes(paths: list[Path] | None, *, json: bool) -> None:
    if paths:
        raise InvalidValue("--found only lists files; do not name any with it")
    found = find_session_folders()
    if json:
        render.print_json_list(map(build_home_fields, found))
    else:
        print_homes(found)


@contextmanager
def _resolve_paths(paths: list[Path]) -> Iterator[list[Path]]:
    """Give the files and folders that are named; standard input as a file."""
    if paths == [STANDARD_INPUT]:
        with _save_standard_input() as file:
            yield [file]
    else:
        yield _check_paths(paths)


def _check_paths(paths: list[Path]) -> list[Path]:
    """Return the paths. Raises StoreError if none of them is there."""
    if STANDARD_INPUT in paths:
        raise InvalidValue("- reads standard input; do not name other files with it")
    if not any(path.exists() for path in paths):
        raise StoreError(f"there is no file or folder {str(paths[0])!r}")
    return paths


@contextmanager
def _save_standard_input() -> Iterator[Path]:
    """Yield a private file with the contents of standard input, under its name."""
    digest = sha256()
    with TemporaryDirectory() as folder:
        held = Path(folder, "standard-input")
        with held.open("wb") as file:
            while part := sys.stdin.buffer.read(INPUT_CHUNK_SIZE):
                digest.update(part)
                file.write(part)
        yield held.rename(f"{held}-{digest.hexdigest()[:12]}")


def _rename_input_failure(result: ImportResult) -> ImportResult:
    """Return a failure of standard input under its own name, not under that of its file."""
    if not isinstance(result, ImportFailure):
        return result
    problem = result.problem.replace(str(result.path), INPUT_NAME)
    return result._replace(path=Path(INPUT_NAME), problem=problem)


def _import_files(
    ctx: typer.Context,
    paths: list[Path],
    wanted: ImportSettings,
    *,
    is_piped: bool,
    summarize: bool,
) -> tuple[list[ImportResult], list[str]]:
    """Import the named files, and summarize what they brought, if wanted, in some lines.

    No store is created if there is nothing to import.
    """
    # the folders of programs may lie in one another
    files = list(dict.fromkeys(find_transcript_files(paths, get_place(ctx).file)))
    if not files:
        raise StoreError(f"there is nothing to import in {', '.join(map(repr, map(str, paths)))}")
    if wanted.session_id is not None and len(files) != 1:
        raise InvalidValue(f"--id is for one file, but there are {len(files)}")
    begun = None
    if is_piped or not get_place(ctx).exists:
        begun = _begin_first_file(files, wanted)
    if isinstance(begun, list):
        return [*begun], []
    if begun is not None and is_piped:
        begun = begun._replace(file=None, look=None)
    with open_store(ctx) as store:
        results = list(_import_found_files(store, files, wanted, begun))
        reports = _select_reports(results)
        summary = summarize and sum(len(each.sessions) for each in reports) > 1
        return results, summarize_import(store, reports) if summary else []


def _watch_files(
    ctx: typer.Context,
    paths: list[Path],
    wanted: ImportSettings,
    *,
    json: bool,
) -> None:
    """Import the named files, then their new lines, until Ctrl-C."""
    if wanted.session_id is not None:
        raise InvalidValue("--watch imports all sessions of files; do not use --id with it")
    growing = GrowingFiles(_check_paths(paths), get_place(ctx).file)
    with open_store(ctx) as store, suppress(KeyboardInterrupt):
        told = defaultdict[Path, set[NoteEvent]](set)
        for files in growing.rounds():
            for result in _import_found_files(store, files, wanted):
                print_followed_result(result, told[result.path], json=json)
                if isinstance(result, ImportFailure) and result.is_passing:
                    growing.forget(result.path)


def _begin_first_file(
    files: list[TranscriptFile], wanted: ImportSettings
) -> OpenedTranscript | list[ImportFailure]:
    """Return the first file that can be imported, otherwise all failures."""
    failures: list[ImportFailure] = []
    for file in files:
        result = _try_file(file, partial(open_transcript, kind=wanted.kind, beside=wanted.beside))
        if not isinstance(result, ImportFailure):
            return result
        failures.append(result)
    return failures


def _import_found_files(
    store: Store,
    files: list[TranscriptFile],
    wanted: ImportSettings,
    begun: OpenedTranscript | None = None,
) -> Iterator[ImportResult]:
    """Import files one after the other, with a progress bar on a terminal.

    A file that fails stops no other. One of them may have begun to be read.
    """
    sizes = [_measure_import_file(file.path) for file in files]
    done = 0
    with tables.build_progress(DownloadColumn()) as bar:
        task = bar.add_task("", total=sum(sizes))
        for file, size in zip(files, sizes, strict=True):
            name = render.shorten_to_line(file.path.name, 40)
            bar.update(task, description=name, completed=done)
            tell = partial(_update_import_bar, bar, task, done)
            yield _try_file(file, partial(_import_single_file, store, wanted, begun, tell))
            done += size


def _import_single_file(
    store: Store,
    wanted: ImportSettings,
    begun: OpenedTranscript | None,
    progress: ProgressCallback,
    path: Path,
) -> ImportReport:
    if begun is None or begun.path != path:
        return import_file(store, path, progress=progress, **wanted._asdict())
    return import_opened_transcript(
        store,
        begun,
        session_id=wanted.session_id,
        replace=wanted.replace,
        project_root=wanted.project_root,
    )


def _update_import_bar(bar: Progress, task: TaskID, start: int, read: int, _: int) -> None:
    bar.update(task, completed=start + read)


def _try_file(file: TranscriptFile, work: Callable[[Path], ResultT]) -> ResultT | ImportFailure:
    """Return the result of a file, or its failure.

    In a folder, a file of no known program does not count as a refused transcript.
    """
    if not file.kept:
        return ImportFailure(file.path, MISNAMED_FILE_PROBLEM, skipped=True)
    try:
        return work(file.path)
    except UnknownTranscript as problem:
        skipped = not (file.asked or problem.program)
        return ImportFailure(file.path, str(problem), skipped)
    except (StoreError, OSError) as problem:
        passing = isinstance(problem, PASSING_ERRORS)
        return ImportFailure(file.path, str(problem), skipped=False, is_passing=passing)


def _measure_import_file(path: Path) -> int:
    try:
        return transcripts.measure_file_size(path)
    except StoreError:
        return 0  # the import itself will report the problem
