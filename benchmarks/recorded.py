"""Recorded conversations, as programs tell them again: sessions of a folder, step by step."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from store import StoreError
from store.transcripts import SessionEvent, SessionMessage, read, sniff

Message = dict[str, Any]

START = 1_600_000_000_000
"""When a session begins whose messages tell no moment (ms)."""


class Transcript(NamedTuple):
    """A session of a recorded file.

    What it is called, where its files lie, what was said, by which kind of program.
    """

    name: str
    root: str | None
    messages: list[Message]
    kind: str = ""


def largest(
    folder: Path, wanted: int, *, of_each_kind: bool = False
) -> tuple[list[Transcript], int]:
    """Return the largest sessions below a folder, and how many files no parser reads.

    The largest have the most characters: so many of all, or of each kind of program.
    """
    found: list[Transcript] = []
    unread = 0
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        try:
            found += _sessions(path)
        except StoreError:
            unread += 1
    found.sort(
        key=lambda each: (each.kind if of_each_kind else "", -len(json.dumps(each.messages)))
    )
    kinds = groupby(found, key=lambda each: each.kind if of_each_kind else "")
    return [each for _, same in kinds for each in list(same)[:wanted]], unread


def parser(
    program: str, description: str | None, *, of: str, wanted: int | None
) -> argparse.ArgumentParser:
    """Return what reads the options of a program over recorded conversations.

    A folder, how many ``of`` what, and as what.
    """
    options = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{program}", description=description
    )
    options.add_argument("folder", type=Path, help="a folder of recorded conversations")
    options.add_argument(
        "--largest", type=int, default=wanted, help=f"how many {of}, those with the most characters"
    )
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return options


def groups(messages: list[Message]) -> Iterator[list[Message]]:
    """Yield messages as they come: the results of one batch at once, everything else by itself."""
    for is_result, following in groupby(messages, key=lambda each: each.get("role") == "tool"):
        group = list(following)
        yield from [group] if is_result else [[message] for message in group]


def _sessions(path: Path) -> list[Transcript]:
    kind = sniff(path)
    found: list[Transcript] = []
    for event in read(path, kind=kind):
        if isinstance(event, SessionEvent):
            found.append(Transcript(event.session_id, event.project_root, [], kind))
        elif isinstance(event, SessionMessage):
            found[-1].messages.append(event.message)
    return found
