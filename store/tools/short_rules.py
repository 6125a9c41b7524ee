"""The rules of the short forms, and the tools that each applies to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from ..text import clip_text, truncate_middle
from .excerpts import cut_to_first_lines
from .kinds import EXIT_KEYS, TOOL_KINDS, ToolResultKind, split_names
from .shapes import (
    LINE_WIDTH,
    OUTPUT_POINTS,
    POINTS,
    READ_WIDTH,
    SHORT_OUTPUT_LIMIT,
    TAIL,
    DataShape,
    FieldNames,
    keep_data,
    shorten_change,
    shorten_command,
    shorten_file,
    shorten_list,
    shorten_output,
    shorten_todos,
    shorten_unknown,
)
from .todos import TODO_LIST_KEYS

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


def _is_never_plain(_content: str, _value: Any) -> bool:
    return False


def _is_always_plain(_content: str, _value: Any) -> bool:
    return True


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
    plain: Callable[[str, Any], bool] = _is_never_plain
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


def _has_no_streams(_content: str, value: Any) -> bool:
    return not isinstance(value, dict) or _STREAM_FIELDS.isdisjoint(value)


def _has_several_lines(content: str, _value: Any) -> bool:
    return "\n" in content.strip()


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
            plain=_has_several_lines,
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
            plain=_has_no_streams,
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
            shape=keep_data,
            text=str,
            plain=_is_always_plain,
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
