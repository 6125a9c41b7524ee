"""The work of a day: by project, each session with its questions, changed files and commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..clock import Day
from ..records import Session, Turn
from .answers import (
    Answer,
    Source,
    count_json_tokens,
    label_session,
    list_asked_sessions,
    shorten,
)
from .commands import COMMAND_KIND

MOST_DAY_SESSIONS = 60
"""Sessions of a day that are told, at most."""
ASKED_LENGTHS = (160, 100, 60, 30)
"""Code points of each thing that was asked: fewer where all would be too long."""
ASKED_COUNTS = (6, 3, 2, 1)
"""Things that are told of each session, likewise."""
CHANGED_COUNTS = (8, 5, 3, 1)


class DaySession(NamedTuple):
    """A session of a day: its label, its turns, the files that changed, which commands failed."""

    label: Answer
    turns: list[Turn]
    changed: list[str]
    failed: list[bool]

    def describe(self, level: int) -> Answer:
        """Return the session, the shorter, the higher the level is."""
        length = ASKED_LENGTHS[level]
        texts = (turn.text for turn in self.turns)
        asked = [shorten(text, length) for text in texts if text.strip()]
        told: dict[str, Any] = {
            "seq": f"{self.turns[0].first}-{self.turns[-1].last}",
            "asked": _keep_some(asked, ASKED_COUNTS[level]),
            "changed": _keep_some(self.changed, CHANGED_COUNTS[level]),
            "commands": len(self.failed),
            "failed": sum(self.failed),
        }
        return self.label | {key: value for key, value in told.items() if value}


def describe_day(
    source: Source, day: Day, project: str | None, budget: int
) -> tuple[list[Answer], int]:
    """Return the projects of a day with their sessions, in a budget of tokens.

    With it comes the number of sessions that had no room.
    """
    facts = [*islice(_list_day_sessions(source, day, project), MOST_DAY_SESSIONS)]
    for level in range(len(ASKED_LENGTHS)):
        told = [each.describe(level) for each in facts]
        grouped = _group_projects(told)
        if count_json_tokens(grouped) <= budget:
            return grouped, 0
    while told and count_json_tokens(grouped) > budget:
        told.pop()
        grouped = _group_projects(told)
    return grouped, len(facts) - len(told)


def _list_day_sessions(source: Source, day: Day, project: str | None) -> Iterator[DaySession]:
    """Yield the sessions of a day."""
    for session in list_asked_sessions(source, project, day):
        every = source.turns(session.id)
        turns = [turn for turn in every if day.has(turn.started_at)]
        if turns:
            yield _read_day_session(source, session, turns, day)


def _read_day_session(
    source: Source,
    session: Session,
    turns: list[Turn],
    day: Day,
) -> DaySession:
    edits = (use for use in source.files(session.id) if use.kind == "file_edit")
    changed = Counter(use.path for use in edits if day.has(use.at))
    failed = [
        call.failed is True
        for call in source.calls(session.id, kind=COMMAND_KIND)
        if turns[0].first <= call.seq <= turns[-1].last
    ]
    files = [path for path, _ in changed.most_common()]
    return DaySession(label_session(source, session), turns, files, failed)


def _keep_some(items: list[str], most: int) -> list[str]:
    """Return the first items, and how many more there are."""
    more = len(items) - most
    return items if more <= 0 else [*items[:most], f"and {more} more"]


def _group_projects(told: list[Answer]) -> list[Answer]:
    projects: dict[str | None, list[Answer]] = {}
    for each in told:
        rest = {key: value for key, value in each.items() if key != "project"}
        projects.setdefault(each.get("project"), []).append(rest)
    return [{"project": project, "sessions": each} for project, each in projects.items()]
