"""The transcripts to import, and the results of imports, as tables, lines and JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from ..importing import ImportReport, SessionFolder
from ..text import format_count
from . import render
from .shown import Column, TableRow

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

HOME_COLUMNS = (
    Column("kind"),
    Column("folder", wide=True),
    Column("files", number=True),
    Column("kB", number=True),
    Column("last written"),
)


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


def print_results(results: list[ImportResult], *, every_note: bool) -> None:
    """Print the result of each file, and for several files also their sums."""
    reports, failures = _select_reports(results), _select_failures(results)
    skipped = [each for each in failures if each.skipped]
    if reports:
        rows = list(map(_build_report_row, reports))
        if len(reports) > 1:
            rows.append((f"{len(reports)} files", "", *_sum_report_counts(reports)))
        render.show_table(IMPORT_COLUMNS, rows)
    for report in reports:
        _print_notes(report, every=every_note)
    _print_skipped_files(skipped, every=every_note)
    _print_failures(failures)
    if len(skipped) == len(results):
        render.print_problem("nothing was imported; name a file to see what is wrong with it")
    if len(results) > 1:
        render.print_lines(*_describe_import_totals(reports, failures, every=every_note))


def _print_failures(failures: list[ImportFailure]) -> None:
    for failure in failures:
        if not failure.skipped:
            render.print_problem(
                failure.problem
                if str(failure.path) in failure.problem
                else f"{failure.path}: {failure.problem}"
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


def print_followed_result(result: ImportResult, *, json: bool) -> None:
    """Print the result of a followed file: one line, or nothing if there is no news."""
    if json:
        render.print_json(build_result_fields(result))
    elif isinstance(result, ImportReport):
        # a line that is just being written is read again when it has grown
        result = result._replace(notes=[each for each in result.notes if not each.unfinished])
        *_, new, _ = _count_report(result)
        render.print_lines(f"{result.path}: {format_count(new, 'new message')}")
        _print_notes(result, every=False)
    else:
        _print_failures([result])
    sys.stdout.flush()


def print_skipped_homes(found: list[SessionFolder]) -> None:
    """Print the transcripts of programs in skipped folders, and how to import them."""
    if found:
        folders = " ".join(quote(str(each.folder)) for each in found)
        render.print_lines(
            f"hidden folders with more sessions were passed over: convostore import {folders}"
        )


def print_homes(found: list[SessionFolder]) -> None:
    """Print the transcripts of programs with their folders, and how to import them."""
    if not found:
        render.print_lines("no program that is known keeps sessions here")
        return
    render.show_table(HOME_COLUMNS, map(_build_home_row, found))
    folders = " ".join(quote(str(each.folder)) for each in found)
    render.print_lines(f"convostore import {folders}")


def _build_home_row(found: SessionFolder) -> TableRow:
    kilobytes = -(-found.size // 1000)
    written = render.format_moment(found.changed_at)
    return found.kind, str(found.folder), found.files, kilobytes, written


def build_home_fields(found: SessionFolder) -> dict[str, Any]:
    """Return the transcripts of a program in a folder as JSON."""
    return {**found._asdict(), "folder": str(found.folder)}
