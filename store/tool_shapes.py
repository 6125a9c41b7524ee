"""What is kept of a tool's data, and of its text, by the kind of result: the cuts that the rules of `tool_output` name.

A shape makes new ``data`` of a result's data and of the facts found in it. It may get its own output again, and leaves
that as it is. Limits are of code points unless they are called lines or items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .excerpts import ERROR_WORDS, STEPS, beginning, both_ends, digest, first, is_cut, last, lines_with, size, trimmed
from .todos import recap
from .tools import exit_said

Fields = dict[str, Any]
Shape = Callable[[Fields, Fields], Fields]

POINTS, TAIL = 2000, 600
"""What stays of a result that no rule is about."""
WIDTH = 300
"""What stays of one line, one item, one fact."""
READ_WIDTH = 2000
"""What stays of one line of a file that was read."""
OUTPUT_POINTS = 400
"""Output of a command up to this stays as it is."""
STDOUT_POINTS = 200
STDERR_LINES = 20
LAST_LINES = 3
"""Lines kept of the end of what a successful command said: there it sums up."""
TELLING_LINES = 50
"""Lines kept of the middle of what a failed command said, because they say an error."""
OUTPUT_MOST = STDOUT_POINTS + 100 + (TELLING_LINES + STDERR_LINES + 1) * (WIDTH + 40)
"""No output of a command is longer than this."""

ERROR = re.compile(r"\s*(?:<tool_use_error>|Error\b|Traceback \(most)")
"""How a text begins that is an error as a whole."""

_HUNK = re.compile(r"^@@ -\S+ \+([0-9]+)(?:,([0-9]+))? @@", re.MULTILINE)
_ANYTHING = re.compile("")
_DIFFS = (("diff_preview", "diff"), ("diff", "diff"), ("diff_summary", "diff"))
_TEXTS = (*_DIFFS, ("content", "content"), ("content_summary", "content"))


def listed(data: Fields, facts: Fields, *, lists: tuple[str, ...], items: int, total: str) -> Fields:
    """Keep the first items, whether that is all, and how many there are (S4.9-S4.11)."""
    name = next((name for name in lists if isinstance(data.get(name), list)), None)
    if name is None:
        return facts
    found = data[name]
    counted = facts.pop(total, None)
    return {
        **facts,
        name: [trimmed(item, WIDTH, 10) for item in found[:items]],
        "truncated": bool(data.get("truncated")) or len(found) > items,
        total: counted if type(counted) is int else len(found),
    }


def fragment(data: Fields, facts: Fields, *, lines: int) -> Fields:
    """Keep the first lines of what was read (S4.12); where the reading ended is only true of all of it."""
    content = data.get("content")
    if not isinstance(content, str):
        return facts if content is None else {**facts, "content": squeezed(content, POINTS)}
    shown, rest = first(content, lines, READ_WIDTH)
    if rest:
        facts.pop("end_line", None)
    return {**facts, "content": shown, "truncated": bool(data.get("truncated") or rest)}


def changed(data: Fields, facts: Fields, *, lines: int) -> Fields:
    """Keep what was changed and the first lines of the difference, or of the new text (S4.13, S4.14)."""
    name, what = next(((name, what) for name, what in _TEXTS if data.get(name)), ("", ""))
    text = data.get(name)
    if not isinstance(text, str):
        return facts
    shown, rest = first(text, lines, WIDTH)
    short = {**facts, f"{what}_summary": shown}
    if rest or data.get(f"{what}_truncated"):
        short[f"{what}_truncated"] = True
    if rest and what == "diff":
        short["changed_ranges"] = _ranges(text)
    return short


def _ranges(diff: str) -> Any:
    """Return the lines that a unified difference changes, as they are counted after it."""
    hunks = (found.groups("1") for found in _HUNK.finditer(diff))
    return trimmed([f"{start}-{_sum(start, count)}" for start, count in hunks], WIDTH, 20)


def _sum(start: str, count: str) -> int | str:
    return int(start) + int(count) - 1 if len(start) + len(count) < 40 else "?"


def ran(data: Fields, facts: Fields) -> Fields:
    """Keep how a command ended, the beginning of what it said and the end of its errors (S4.15, A4.12).

    Of a command that failed without a word on stderr the end of stdout is kept too.
    """
    stdout, stderr = _said(data, "stdout", "stdout_summary"), _said(data, "stderr", "stderr_tail")
    ending = _said(data, "stdout_tail")
    if not stderr and facts.get("exit_code") and len(stdout) > STDOUT_POINTS + 3:
        ending = stdout
    tail, before = last(stderr, STDERR_LINES, WIDTH)
    short = {
        "stdout_summary": digest(stdout, STDOUT_POINTS),
        "stdout_tail": last(ending, STDERR_LINES, WIDTH)[0],
        "stderr_tail": tail,
        "stderr_truncated": bool(before or data.get("stderr_truncated")),
    }
    return facts | {name: value for name, value in short.items() if value}


def _said(data: Fields, *names: str) -> str:
    found = next((data[name] for name in names if data.get(name)), "")
    return found if isinstance(found, str) else json.dumps(found)


def recapped(data: Fields, facts: Fields) -> Fields:
    """Keep the recap; where there is none, make one of the list (S4.16)."""
    said = facts.get("recap") or recap(data)
    return {"recap": said or ""} if said or data else {}


def whole(data: Fields, _facts: Fields) -> Fields:
    """Keep all: instructions and decisions hold beyond their turn."""
    return data


def digested(data: Fields, _facts: Fields) -> Fields:
    """Keep the data of an unknown tool, cut where it is long (S4.19)."""
    short = squeezed(data, POINTS - 60)
    return short if short is data else {**short, "truncated": True}


def squeezed(value: Any, points: int) -> Any:
    """Return a JSON value of at most so many code points as JSON; its size alone where no cutting helps."""
    whole_size = size(value)
    if whole_size <= points:
        return value
    cut = (trimmed(value, *step) for step in STEPS)
    return next((each for each in cut if size(each) <= points), {"original_size": whole_size})


def output_text(text: str, *, failed: bool = False) -> str:
    """Keep the beginning, the line that says the exit code, and the end; more of the end where the command failed.

    It failed if it is said to, or if the text says so itself. Then lines that say an error stay too.
    """
    if len(text) <= OUTPUT_POINTS or (len(text) <= OUTPUT_MOST and is_cut(text)):
        return text
    bare = text.strip()
    code, place = exit_said(bare)
    failed = failed or bool(code or ERROR.match(bare))
    telling = dict(lines_with(ERROR_WORDS, text, beginning(text, STDOUT_POINTS), TELLING_LINES) if failed else ())
    if code is not None:
        telling.update(lines_with(_ANYTHING, text, text.find(bare) + place, 1))
    return both_ends(text, STDOUT_POINTS, STDERR_LINES if failed else LAST_LINES, WIDTH, sorted(telling.items()))
