"""The folders in which programs keep sessions on this machine, and the choice among them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import Any

import typer

from ..errors import InvalidValue, StoreError
from ..importing import SessionFolder, find_session_folders
from . import render
from .terminal import Column, TableRow, escape_controls

HOME_COLUMNS = (
    Column("kind"),
    Column("folder", wide=True),
    Column("files", number=True),
    Column("kB", number=True),
    Column("last written"),
)

NO_HOMES_TEXT = "no program that is known keeps sessions here"

FOLDER_ANSWERS = ("all", "each", "none")
"""Answers to the question which folders to import: all, one by one, none."""


def print_homes(found: list[SessionFolder]) -> None:
    """Print the transcripts of programs with their folders, and how to import them."""
    if not found:
        render.print_lines(NO_HOMES_TEXT)
        return
    render.show_table(HOME_COLUMNS, map(_build_home_row, found))
    render.print_lines(_join_import_command(found))


def print_skipped_homes(found: list[SessionFolder]) -> None:
    """Print the transcripts of programs in skipped folders, and how to import them."""
    if found:
        command = _join_import_command(found)
        render.print_lines(f"hidden folders with more sessions were passed over: {command}")


def _join_import_command(found: list[SessionFolder]) -> str:
    return f"convostore import {' '.join(quote(str(each.folder)) for each in found)}"


def _build_home_row(found: SessionFolder) -> TableRow:
    kilobytes = -(-found.size // 1000)
    written = render.format_moment(found.changed_at)
    return found.kind, str(found.folder), found.files, kilobytes, written


def build_home_fields(found: SessionFolder) -> dict[str, Any]:
    """Return the transcripts of a program in a folder as JSON."""
    return {**found._asdict(), "folder": str(found.folder)}


def choose_import_paths(paths: list[Path] | None, *, everything: bool, can_ask: bool) -> list[Path]:
    """Return the paths that are named, otherwise folders of programs: all, or those asked for.

    Raises InvalidValue, StoreError.
    """
    if paths:
        if everything:
            raise InvalidValue("--all imports what --found lists; do not name any files with it")
        return paths
    if not everything and not (can_ask and sys.stdin.isatty()):
        raise InvalidValue(
            "name files or folders to import; --all imports those of programs, --found lists them"
        )
    found = find_session_folders()
    if not found:
        raise StoreError(f"{NO_HOMES_TEXT}; name files or folders to import")
    return [each.folder for each in (found if everything else _ask_for_folders(found))]


def _ask_for_folders(found: list[SessionFolder]) -> Iterator[SessionFolder]:
    """List folders and ask for those to import; yield none that lies in a chosen one."""
    render.show_table(HOME_COLUMNS, map(_build_home_row, found), error=True)
    question = f"Import {', '.join(FOLDER_ANSWERS[:-1])} or {FOLDER_ANSWERS[-1]} of them"
    answer = typer.prompt(question, value_proc=_parse_folder_answer, err=True)
    taken: list[Path] = []
    for each in sorted(found, key=attrgetter("folder")):
        if answer == "none" or any(map(each.folder.is_relative_to, taken)):
            continue
        name = escape_controls(f"{each.kind}, {each.folder}")
        if answer == "all" or typer.confirm(f"Import {name}?", default=True, err=True):
            taken.append(each.folder)
            yield each


def _parse_folder_answer(text: str) -> str:
    """Return the answer that a text is the beginning of."""
    begun = text.strip().lower()
    for answer in FOLDER_ANSWERS:
        if begun and answer.startswith(begun):
            return answer
    raise typer.BadParameter(f"answer {', '.join(FOLDER_ANSWERS)}")
