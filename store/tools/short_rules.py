"""The rules of the short forms: the data and text to keep, and the tools that each applies to.

The shape of a rule makes new ``data`` from a result's data and from the facts found in it. If it
gets its own output again, it leaves it unchanged. Limits are code points unless they are called
lines or items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from ..phrases import Language
from ..text import MARKER, JsonFields, clip_text, measure_json, truncate_middle
from .excerpts import (
    ERROR_WORDS,
    LIMIT_STEPS,
    ValueLimits,
    cut_to_both_ends,
    cut_to_first_lines,
    find_cut_place,
    find_line_around,
    find_matching_lines,
    take_first_lines,
    take_last_lines,
    trim_value,
)
from .kinds import EXIT_KEYS, TOOL_KINDS, ToolResultKind, split_names
from .results import find_exit_code
from .todos import TODO_LIST_KEYS, render_recap

FieldNames = tuple[str, ...]
DataShape = Callable[[JsonFields, JsonFields], JsonFields]

POINTS, TAIL = 2000, 600
"""Limits of a result without a rule of its own."""
LINE_WIDTH = 300
"""Limit of one line, one item, one fact."""
READ_WIDTH = 2000
"""Limit of one line of a file that was read."""
OUTPUT_POINTS = 400
"""Output of a command up to this stays as it is."""
STDOUT_POINTS = 200
STDERR_LINES = 20
LAST_LINES = 3
"""Lines kept from the end of a successful command's output, which usually sums up."""
ERROR_LINES_LIMIT = 50
"""Lines kept from the middle of a failed command's output, because they report an error."""
SHORT_OUTPUT_LIMIT = (
    STDOUT_POINTS + 100 + (ERROR_LINES_LIMIT + STDERR_LINES + 1) * (LINE_WIDTH + 40)
)
"""No output of a command is longer than this."""

ERROR_BEGINNING = re.compile(r"\s*(?:<tool_use_error>|Error\b|Traceback \(most)")
"""The beginning of a text that is an error as a whole."""

_HUNK = re.compile(r"^@@ -\S+ \+([0-9]+)(?:,([0-9]+))? @@", re.MULTILINE)
_DOTS = "..."

CHANGE_TEXT_FIELDS = {
    "diff_preview": "diff",
    "diff": "diff",
    "diff_summary": "diff",
    "content": "content",
    "content_summary": "content",
}
"""The fields that tell a change, the best place first, each with its meaning: the difference, or
the new content.
"""


def shorten_list(
    data: JsonFields, facts: JsonFields, *, lists: FieldNames, items: int, total: str
) -> JsonFields:
    """Keep the first items, whether that is all, and how many there are."""
    name = next((name for name in lists if isinstance(data.get(name), list)), None)
    if name is None:
        return facts
    found = data[name]
    counted = facts.pop(total, None)
    return {
        **facts,
        name: [trim_value(item, ValueLimits(LINE_WIDTH, 10)) for item in found[:items]],
        "truncated": bool(data.get("truncated")) or len(found) > items,
        total: counted if type(counted) is int else len(found),
    }


def shorten_file(data: JsonFields, facts: JsonFields, *, lines: int) -> JsonFields:
    """Keep the first lines of a file that was read.

    The end of the range is kept only if all lines are.
    """
    content = data.get("content")
    if content is None:
        return facts
    if not isinstance(content, str):
        return {**facts, "content": squeeze_value(content, POINTS)}
    shown, rest = take_first_lines(content, lines, READ_WIDTH)
    if rest:
        facts.pop("end_line", None)
    return {**facts, "content": shown, "truncated": bool(data.get("truncated") or rest)}


def shorten_change(data: JsonFields, facts: JsonFields, *, lines: int) -> JsonFields:
    """Keep the facts of a change and the first lines of the difference, or of the new text."""
    name = next((name for name in CHANGE_TEXT_FIELDS if data.get(name)), None)
    text = data[name] if name else None
    if name is None or not isinstance(text, str):
        return facts
    what = CHANGE_TEXT_FIELDS[name]
    shown, rest = take_first_lines(text, lines, LINE_WIDTH)
    short = {**facts, f"{what}_summary": shown}
    if rest or data.get(f"{what}_truncated"):
        short[f"{what}_truncated"] = True
    if rest and what == "diff":
        ranges = []
        for hunk in _HUNK.finditer(text):
            start, count = hunk.groups("1")
            is_sane = len(start) + len(count) < 40
            ranges.append(f"{start}-{int(start) + int(count) - 1 if is_sane else '?'}")
        short["changed_ranges"] = trim_value(ranges, ValueLimits(LINE_WIDTH, 20))
    return short


def shorten_command(data: JsonFields, facts: JsonFields, *, failed: bool = False) -> JsonFields:
    """Keep the outcome of a command, the beginning of its output and the end of its errors.

    The beginning ends with three dots, as in the protocol; one that does so already stays as it is.
    If a command failed without a word on stderr, the end of stdout is kept too.
    """
    stdout = _find_field_text(data, "stdout", "stdout_summary")
    stderr = _find_field_text(data, "stderr", "stderr_tail")
    ending = _find_field_text(data, "stdout_tail")
    if failed and not stderr and len(stdout) > STDOUT_POINTS + len(_DOTS):
        ending = stdout
    is_summary = len(stdout) == STDOUT_POINTS + len(_DOTS) and stdout.endswith(_DOTS)
    if len(stdout) > STDOUT_POINTS and not is_summary:
        stdout = stdout[:STDOUT_POINTS] + _DOTS
    tail, before = take_last_lines(stderr, STDERR_LINES, LINE_WIDTH)
    short = {
        "stdout_summary": stdout,
        "stdout_tail": take_last_lines(ending, STDERR_LINES, LINE_WIDTH).shown,
        "stderr_tail": tail,
        "stderr_truncated": bool(before or data.get("stderr_truncated")),
    }
    return facts | {name: value for name, value in short.items() if value}


def _find_field_text(data: JsonFields, *names: str) -> str:
    found = next((data[name] for name in names if data.get(name)), "")
    return found if isinstance(found, str) else json.dumps(found)


def shorten_todos(data: JsonFields, facts: JsonFields, language: Language = "en") -> JsonFields:
    """Keep the recap; if there is none, make one from the list."""
    said = facts.get("recap") or render_recap(data, language=language)
    return {"recap": said or ""} if said or data else {}


def shorten_unknown(data: JsonFields, _facts: JsonFields) -> JsonFields:
    """Keep the data of an unknown tool, cut if it is long."""
    short = squeeze_value(data, POINTS - 60)
    return short if short is data else {**short, "truncated": True}


def squeeze_value(value: Any, points: int) -> Any:
    """Return a JSON value cut to at most this many code points, or its size if no cut is enough."""
    whole_size = measure_json(value)
    if whole_size <= points:
        return value
    for limits in LIMIT_STEPS:
        cut = trim_value(value, limits)
        if measure_json(cut) <= points:
            return cut
    return {"original_size": whole_size}


def shorten_output(text: str, *, failed: bool = False) -> str:
    """Keep the beginning, the line with the exit code, and the end.

    For a command that failed, and for a text that begins as an error, more of the end is kept, and
    the lines that report an error.
    """
    if len(text) <= OUTPUT_POINTS or (
        len(text) <= SHORT_OUTPUT_LIMIT
        and (
            (" more lines)" in text or " 行)" in text)
            and any(MARKER.fullmatch(line) for line in text.split("\n"))
        )
    ):
        return text
    bare = text.strip()
    failed = failed or bool(ERROR_BEGINNING.match(bare))
    lines = STDERR_LINES if failed else LAST_LINES
    telling: dict[int, str] = {}
    code, place = find_exit_code(bare)
    if code is not None:
        place += text.find(bare)
        telling.update([find_line_around(text, place, place)])
    if failed:
        start = find_cut_place(text, STDOUT_POINTS)
        telling.update(find_matching_lines(ERROR_WORDS, text, start, ERROR_LINES_LIMIT))
    return cut_to_both_ends(text, STDOUT_POINTS, lines, LINE_WIDTH, sorted(telling.items()))


TextCut = Callable[[str], str]
FieldPath = tuple[str, ...]
FieldPaths = tuple[FieldPath, ...]

STATE_MARKS = split_names("""
    truncated truncation_reasons applied dry_run timed_out signal aborted_reason fallback
    fallback_used fallback_reason fallback_encoding note mtime file_mtime_ms modified_externally
    failed_index failed_edits failed_items""")
"""Fields of ``data`` that tell the state of a result; kept in addition to those of a rule."""

ERROR_POINTS = 4000
"""Limit of a text that is an error as a whole."""


class ShortRule(NamedTuple):
    """The rule for the short form of one tool's results."""

    keeps: str
    """The kept data, in words."""
    shape: DataShape
    """Makes the new ``data`` from the old and from the facts."""
    text: TextCut
    """Cuts plain text, and each text in JSON that is not of the protocol."""
    reads: tuple[str, ...] = ()
    """Fields of ``data`` that the shape reads; data without any is cut like an unknown tool's."""
    facts: Mapping[str, FieldPaths] = MappingProxyType({})
    """Facts that are kept, each with its possible places, in order."""
    subject: str = ""
    """The fact that every successful result has, "" if it is unknown."""
    marks: frozenset[str] = STATE_MARKS
    points: int = POINTS
    """JSON that is not of the protocol stays as it is up to this many code points."""
    most: int = POINTS
    """Such JSON is cut further until it has no more code points than this."""
    plain: Callable[[str, Any], bool] = lambda *_: False
    """Tells JSON that was read from a file, or printed by a command: it is cut like text."""
    keeps_errors: bool = False
    """Whether the cut of a text keeps the lines of an error; otherwise a whole error has its own
    cut.
    """


def find_short_rule(
    tool_name: str,
    kind: ToolResultKind | None,
    failed: Callable[[], bool],
) -> ShortRule:
    """Return the rule of a tool by its name, or else by its kind (None: the kind of the name).

    ``failed`` is called if commands that failed have a rule of their own.
    """
    named = TOOL_RULES.get(tool_name)
    rule = SHORT_RULES[(named or KIND_RULES[kind or TOOL_KINDS.get(tool_name, "other")])]
    return FAILED_OUTPUT_RULE if rule is _OUTPUT_RULE and failed() else rule


_STREAM_FIELDS = frozenset(("stdout", "stderr", "output", "content"))


def _build_lines_cut(lines: int, width: int = LINE_WIDTH) -> TextCut:
    return partial(cut_to_first_lines, lines=lines, width=width)


def _build_points_cut(points: int) -> TextCut:
    return partial(clip_text, points=points, before_marker="\n")


cut_error = _build_points_cut(ERROR_POINTS)
"""Cuts a text that is an error as a whole."""


def _build_fact_places(**places: str) -> Mapping[str, FieldPaths]:
    return MappingProxyType(
        {
            name: tuple(tuple(place.split(".")) for place in words.split())
            for name, words in places.items()
        }
    )


def _build_list_rule(
    keeps: str, lists: FieldNames, *, items: int, subject: str, **facts: str
) -> ShortRule:
    *_, total = facts
    return ShortRule(
        keeps,
        shape=partial(shorten_list, lists=lists, items=items, total=total),
        text=_build_lines_cut(items),
        reads=lists,
        facts=_build_fact_places(**facts),
        subject=subject,
    )


_PATH_PLACES = "data.path context.path_resolved context.params_input.path"
_PATTERN_PLACES = "data.pattern context.params_input.pattern"
_CHANGE_FACTS = _build_fact_places(
    path=_PATH_PLACES,
    operation="data.operation",
    replacements="data.replacements stats.replacements",
    lines_added="data.lines_added stats.lines_added",
    lines_removed="data.lines_removed stats.lines_removed",
    changed_ranges="data.changed_ranges",
)
_CHANGE_FIELDS = (
    "diff_preview",
    "diff",
    "diff_summary",
    "content",
    "content_summary",
    "applied",
    "operation",
    "replacements",
)


def _build_change_rule(keeps: str, *, lines: int) -> ShortRule:
    return ShortRule(
        keeps,
        shape=partial(shorten_change, lines=lines),
        text=_build_lines_cut(lines),
        reads=_CHANGE_FIELDS,
        facts=_CHANGE_FACTS,
        subject="path",
    )


SHORT_RULES: Mapping[str, ShortRule] = MappingProxyType(
    {
        "LS": _build_list_rule(
            "the path, the first 10 entries, how many there are",
            ("entries", "files", "items"),
            items=10,
            subject="path",
            path=_PATH_PLACES,
            total_count="data.total_count stats.total_entries stats.total",
        ),
        "Glob": _build_list_rule(
            "the pattern, the first 10 paths, how many there are",
            ("paths", "matches", "files"),
            items=10,
            subject="pattern",
            pattern=_PATTERN_PLACES,
            total_matched="data.total_matched stats.matched stats.total_matches",
        ),
        "Grep": _build_list_rule(
            "the pattern, the first 5 matches, how many there are",
            ("matches", "results", "files", "paths"),
            items=5,
            subject="pattern",
            pattern=_PATTERN_PLACES,
            total_matches="data.total_matches stats.matched_lines stats.total_matches",
        ),
        "Read": ShortRule(
            "the path, the first 500 of the lines that were read, which lines these are, "
            "when the file was changed",
            shape=partial(shorten_file, lines=500),
            text=_build_lines_cut(500, READ_WIDTH),
            reads=("content",),
            facts=_build_fact_places(
                path=_PATH_PLACES,
                start_line="data.start_line stats.start_line context.params_input.start_line",
                end_line="data.end_line stats.end_line context.params_input.end_line",
                total_lines="data.total_lines stats.total_lines context.total_lines",
                mtime="data.mtime stats.mtime",
                file_mtime_ms="data.file_mtime_ms stats.file_mtime_ms",
            ),
            subject="path",
            points=0,
            most=100_000,
            plain=lambda content, _: "\n" in content.strip(),
        ),
        "Edit": _build_change_rule(
            "the path, how much was changed, the first 20 lines of the difference; "
            "if it is longer, also which lines",
            lines=20,
        ),
        "Write": _build_change_rule(
            "the path, whether the file is new, "
            "the first 50 lines of the difference or of the file",
            lines=50,
        ),
        "Bash": ShortRule(
            "the exit code, the command, the first 200 code points of stdout, the last 20 lines of "
            "stderr; where both are one text, its last 3 lines too; if the command failed, the "
            "last 20 and 50 more that say an error",
            shape=shorten_command,
            text=shorten_output,
            reads=(*EXIT_KEYS, "stdout", "stderr", "stdout_summary", "stderr_tail"),
            facts=_build_fact_places(
                exit_code=" ".join(f"data.{key}" for key in EXIT_KEYS),
                command="data.command context.params_input.command",
            ),
            points=OUTPUT_POINTS,
            most=2 * SHORT_OUTPUT_LIMIT,
            plain=lambda _, value: not isinstance(value, dict) or _STREAM_FIELDS.isdisjoint(value),
            keeps_errors=True,
        ),
        "TodoWrite": ShortRule(
            "the recap",
            shape=shorten_todos,
            text=_build_points_cut(OUTPUT_POINTS),
            reads=("recap", *TODO_LIST_KEYS),
            facts=_build_fact_places(recap="data.recap"),
            marks=frozenset(),
        ),
        "Skill": ShortRule(
            "everything: instructions, plans and answers hold on",
            shape=lambda data, _: data,
            text=str,
            plain=lambda *_: True,
        ),
        "default": ShortRule(
            "of 2,000 code points the last 600, where reports conclude, and the first; "
            "of JSON the first of each list",
            shape=shorten_unknown,
            text=partial(truncate_middle, limit=POINTS, tail=TAIL),
        ),
    }
)
"""The rule of each tool's results, by the name of the rule."""

_OUTPUT_RULE = SHORT_RULES["Bash"]
FAILED_OUTPUT_RULE = _OUTPUT_RULE._replace(
    shape=partial(shorten_command, failed=True), text=partial(shorten_output, failed=True)
)
"""The rule for the output of a command that failed."""

_RULE_TOOLS = {
    "LS": "LS",
    "Glob": """
        Glob glob find_file find_path find find_by_name file_search glob_file_search
        file_glob_search fileSearch list_files""",
    "Grep": "Grep",
    "Read": "Read",
    "Edit": "Edit MultiEdit",
    "Write": """
        Write write write_file write_to_file create create_file create_new_file save_file Create
        WriteFile CreateFile filesystem-create filesystem-write fs_write fsWrite""",
    "Bash": "Bash",
    "TodoWrite": "TodoWrite",
    "Skill": """
        Skill skill skill-execute activate_skill ExitPlanMode exit_plan_mode AskUserQuestion
        ask_user""",
}

TOOL_RULES: Mapping[str, str] = MappingProxyType(
    {name: rule for rule, names in _RULE_TOOLS.items() for name in names.split()}
)
"""The rules of tools that have one by name."""

KIND_RULES: Mapping[ToolResultKind, str] = MappingProxyType(
    {
        "terminal": "Bash",
        "file_read": "Read",
        "file_edit": "Edit",
        "search": "Grep",
        "list": "LS",
        "todo": "TodoWrite",
        "other": "default",
    }
)
"""The rules of all other tools, by their kind."""
