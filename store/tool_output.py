"""The short form in which a finished turn shows what a tool returned (S4.9-S4.19).

A result of the protocol ``{"status", "data", "text", "stats", "context", "error"}`` keeps its status, its error, and
the facts and first items of its data; other JSON and plain text are cut to the same measure. `RULES` says what is kept
of each tool's results. Everything here is pure and total: any text may come in, nothing is raised, what comes out is
never longer, and taken again it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from .excerpts import clipped, decoded, encoded, first_lines, outside, trimmed
from .todos import LISTS, recap
from .tool_kinds import EXIT_KEYS, TOOL_KINDS, Kind
from .tool_shapes import (
    ERROR,
    OUTPUT_MOST,
    OUTPUT_POINTS,
    POINTS,
    READ_WIDTH,
    TAIL,
    WIDTH,
    Fields,
    Shape,
    changed,
    digested,
    fragment,
    listed,
    output_text,
    ran,
    recapped,
    squeezed,
    whole,
)
from .tools import exit_code_field

Cut = Callable[[str], str]
Place = tuple[str, ...]

ENVELOPE = frozenset(("status", "data", "text", "error", "stats", "context"))
"""The fields of the protocol; text, stats and context are dropped (S4.18)."""

STATUSES = ("success", "partial", "error")

STATE_MARKS = frozenset(
    (
        *("truncated", "truncation_reasons", "applied", "dry_run", "timed_out", "signal", "aborted_reason"),
        *("fallback", "fallback_used", "fallback_reason", "fallback_encoding"),
        *("note", "mtime", "file_mtime_ms", "modified_externally", "failed_index", "failed_edits", "failed_items"),
    )
)
"""Fields of ``data`` that say in which state a result is: kept beside what a rule keeps (S4.18, S4.47)."""

ERROR_POINTS = 4000
"""What stays of a text that is an error as a whole."""


class Rule(NamedTuple):
    """What is kept of one tool's results."""

    keeps: str
    """The same in words."""
    shape: Shape
    """Makes the new ``data`` of the old and of the facts."""
    text: Cut
    """Cuts plain text, and each text in JSON that is not of the protocol."""
    reads: tuple[str, ...] = ()
    """Fields of ``data`` that the shape reads; data that has none of them is cut as an unknown tool's is."""
    facts: Mapping[str, tuple[Place, ...]] = MappingProxyType({})
    """Facts that stay, each with the places where it is looked for, in turn (A4.10)."""
    subject: str = ""
    """The fact that every successful result has, "" where it is unknown."""
    marks: frozenset[str] = STATE_MARKS
    points: int = POINTS
    """JSON that is not of the protocol stays as it is up to so many code points."""
    most: int = POINTS
    """Such JSON is cut further until it has no more code points than this."""
    plain: Callable[[str, Any], bool] = lambda _content, _value: False
    """Tells JSON that is not a result's form but what was read, or said by a command: it is cut as text is."""


def compress(tool_name: str, content: str, *, kind: Kind | None = None) -> str:
    """Return the short form of what a tool returned, the content itself where that is no longer.

    The rule is the name's; where the name has none, the kind's, which is looked up by the name unless it is given.
    """
    rule = RULES[NAMES.get(tool_name) or KIND_RULES[kind or TOOL_KINDS.get(tool_name, "other")]]
    while len(shorter := _shortened(rule, content)) < len(content):
        content = shorter
    return content


def _shortened(rule: Rule, content: str) -> str:
    if content[:1] in _BEFORE_JSON:
        bare = content.strip()
        if (bare[:1], bare[-1:]) in (("{", "}"), ("[", "]")):
            try:
                return _of_json(rule, content, decoded(bare))
            except (ValueError, RecursionError):
                pass
    return _of_text(rule, content)


_BEFORE_JSON = frozenset("{[ \n\r\t")


def _of_text(rule: Rule, text: str) -> str:
    return rule.text(text) if not ERROR.match(text) or rule.text is output_text else _ERROR_CUT(text)


def _of_json(rule: Rule, content: str, value: Any) -> str:
    if isinstance(value, dict) and is_protocol(value):
        return encoded(_enveloped(rule, value))
    if rule.plain(content, value):
        return _of_text(rule, content)
    if rule.shape is recapped and (said := recap({"todos": value} if isinstance(value, list) else value)):
        return encoded({"recap": said})
    if len(content) <= rule.points:
        return content
    cut = partial(output_text, failed=True) if rule.text is output_text and _failed(value) else rule.text
    return encoded(squeezed(_walked(cut, value, 4), rule.most))


def _failed(value: Fields) -> bool:
    return bool(exit_code_field(value) or value.get("stderr"))


def _walked(cut: Cut, value: Any, depth: int) -> Any:
    """Return a JSON value with each of its texts cut."""
    if isinstance(value, str):
        return cut(value)
    if depth and isinstance(value, list):
        return [_walked(cut, each, depth - 1) for each in value]
    if depth and isinstance(value, dict):
        return {key: _walked(cut, each, depth - 1) for key, each in value.items()}
    return value


def is_protocol(value: Fields) -> bool:
    """Tell a result of the protocol from any other JSON object."""
    return value.get("status") in STATUSES and not ENVELOPE.isdisjoint(value.keys() - {"status"})


def _enveloped(rule: Rule, result: Fields) -> Fields:
    """Return a result of the protocol in short; an error stays whole, whatever the status (S4.18, A4.13)."""
    data = {} if result.get("data") is None else result["data"]
    short = {"status": result["status"], "data": _data(rule, data, result)}
    if result.get("error") is not None:
        short["error"] = result["error"]
    others: Fields = trimmed({key: result[key] for key in result if key not in ENVELOPE}, WIDTH, 10)
    return short | others


def _data(rule: Rule, data: Any, result: Fields) -> Any:
    if not isinstance(data, dict):
        return squeezed(data, POINTS)
    if rule.reads and data and not any(name in data for name in rule.reads):
        return digested(data, {})
    facts = {name: found for name, places in rule.facts.items() if (found := _found(result, places)) is not None}
    if rule.subject and data and result["status"] != "error":
        facts = {rule.subject: "", **facts}
    short = rule.shape(data, facts)
    marks = {name: value for name, value in data.items() if name in rule.marks and name not in short}
    return short | trimmed({name: value for name, value in marks.items() if value is not None}, WIDTH, len(STATE_MARKS))


def _found(result: Fields, places: tuple[Place, ...]) -> Any:
    """Return the first value in some places of a result, None where there is none."""
    for place in places:
        value: Any = result
        for key in place:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return trimmed(value, WIDTH, 20)
    return None


# The rules.


def _first_of(lines: int, width: int = WIDTH) -> Cut:
    return partial(first_lines, lines=lines, width=width)


def _digest_of(points: int) -> Cut:
    return partial(clipped, points=points, before_marker="\n")


_ERROR_CUT = _digest_of(ERROR_POINTS)
_STREAMS = frozenset(("stdout", "stderr", "output", "content"))


def _no_streams(_content: str, value: Any) -> bool:
    return not isinstance(value, dict) or _STREAMS.isdisjoint(value)


def _several_lines(content: str, _value: Any) -> bool:
    return "\n" in content.strip()


def _facts(**places: str) -> Mapping[str, tuple[Place, ...]]:
    return MappingProxyType(
        {name: tuple(tuple(at.split(".")) for at in words.split()) for name, words in places.items()}
    )


def _list_rule(keeps: str, lists: tuple[str, ...], items: int, subject: str, **facts: str) -> Rule:
    *_, total = facts
    shape = partial(listed, lists=lists, items=items, total=total)
    return Rule(keeps, shape, _first_of(items), lists, _facts(**facts), subject)


_PATH = "data.path context.path_resolved context.params_input.path"
_PATTERN = "data.pattern context.params_input.pattern"
_CHANGES = {
    "path": _PATH,
    "operation": "data.operation",
    "replacements": "data.replacements stats.replacements",
    "lines_added": "data.lines_added stats.lines_added",
    "lines_removed": "data.lines_removed stats.lines_removed",
    "changed_ranges": "data.changed_ranges",
}
_CHANGED = (
    "diff_preview",
    "diff",
    "diff_summary",
    "content",
    "content_summary",
    "applied",
    "operation",
    "replacements",
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "LS": _list_rule(
            "the path, the first 10 entries, how many there are",
            *(("entries", "files", "items"), 10, "path"),
            path=_PATH,
            total_count="data.total_count stats.total_entries stats.total",
        ),
        "Glob": _list_rule(
            "the pattern, the first 10 paths, how many there are",
            *(("paths", "matches", "files"), 10, "pattern"),
            pattern=_PATTERN,
            total_matched="data.total_matched stats.matched stats.total_matches",
        ),
        "Grep": _list_rule(
            "the pattern, the first 5 matches, how many there are",
            *(("matches", "results", "files", "paths"), 5, "pattern"),
            pattern=_PATTERN,
            total_matches="data.total_matches stats.matched_lines stats.total_matches",
        ),
        "Read": Rule(
            "the path, the first 500 of the lines that were read, which lines these are, when the file was changed",
            *(partial(fragment, lines=500), _first_of(500, READ_WIDTH), ("content",)),
            _facts(
                path=_PATH,
                start_line="data.start_line stats.start_line context.params_input.start_line",
                end_line="data.end_line stats.end_line context.params_input.end_line",
                total_lines="data.total_lines stats.total_lines context.total_lines",
                mtime="data.mtime stats.mtime",
                file_mtime_ms="data.file_mtime_ms stats.file_mtime_ms",
            ),
            "path",
            points=0,
            most=100_000,
            plain=_several_lines,
        ),
        "Edit": Rule(
            "the path, how much was changed, the first 20 lines of the difference; if it is longer, also which lines",
            *(partial(changed, lines=20), _first_of(20), _CHANGED, _facts(**_CHANGES), "path"),
        ),
        "Write": Rule(
            "the path, whether the file is new, the first 50 lines of the difference or of the file",
            *(partial(changed, lines=50), _first_of(50), _CHANGED, _facts(**_CHANGES), "path"),
        ),
        "Bash": Rule(
            "the exit code, the command, the first 200 code points of stdout, the last 20 lines of stderr; where both "
            "are one text, its last 3 lines too; if the command failed, the last 20 and 50 more that say an error",
            *(ran, output_text, (*EXIT_KEYS, "stdout", "stderr", "stdout_summary", "stderr_tail")),
            _facts(
                exit_code=" ".join(f"data.{key}" for key in EXIT_KEYS),
                command="data.command context.params_input.command",
            ),
            points=OUTPUT_POINTS,
            most=2 * OUTPUT_MOST,
            plain=_no_streams,
        ),
        "TodoWrite": Rule(
            "the recap",
            *(recapped, _digest_of(OUTPUT_POINTS), ("recap", *LISTS), _facts(recap="data.recap")),
            marks=frozenset(),
        ),
        "Skill": Rule("everything: instructions, plans and answers hold on", whole, str, plain=lambda *_: True),
        "default": Rule(
            "of 2,000 code points the last 600, where reports conclude, and the first; of JSON the first of each list",
            *(digested, partial(outside, points=POINTS, tail=TAIL)),
        ),
    }
)
"""What is kept of each tool's results, by the name of the rule."""

NAMES: Mapping[str, str] = MappingProxyType(
    {
        name: rule
        for rule, names in {
            "LS": "LS",
            "Glob": """
                Glob glob find_file find_path find find_by_name file_search glob_file_search file_glob_search
                fileSearch list_files""",
            "Grep": "Grep",
            "Read": "Read",
            "Edit": "Edit MultiEdit",
            "Write": """
                Write write write_file write_to_file create create_file create_new_file save_file Create WriteFile
                CreateFile filesystem-create filesystem-write fs_write fsWrite""",
            "Bash": "Bash",
            "TodoWrite": "TodoWrite",
            "Skill": "Skill skill skill-execute activate_skill ExitPlanMode exit_plan_mode AskUserQuestion ask_user",
        }.items()
        for name in names.split()
    }
)
"""The rule of tools that have one by name."""

KIND_RULES: Mapping[Kind, str] = MappingProxyType(
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
"""The rule of all other tools, by their kind."""
