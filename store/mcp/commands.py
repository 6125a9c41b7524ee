"""Commands of the past: the failure, the attempts after it, and the success.

An error is the same as another if their lines are, apart from numbers, paths and ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..records import CallRecord
from ..summaries import extract_command
from ..text import parse_object, truncate
from .answers import Answer, Source, shorten
from .passages import Group, load_group, render_message, render_value

COMMAND_KIND = "terminal"
SUBJECT_ARGUMENTS = ("file_path", "path", "filePath", "pattern", "query", "url")
MOST_TRIED = 12
"""Calls that are told between a failure and what succeeded."""
FOLLOWED = 40
"""Calls after a failure among which one that succeeds is looked for."""
TRIED_LENGTH = 100
RESULT_LENGTH = 700

_CHANGING = re.compile(
    r"""(?x)
    (?:[a-z]:)?(?:[\w.@~-]*[/\\])+[\w.@-]*   # paths
    | 0x[0-9a-f]+ | \b[0-9a-f]{7,40}\b | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
    | \d+(?:[.:,]\d+)*
    """
)
_ERROR_SIGN = re.compile(
    r"(?i)error|fail|fatal|exception|panic|cannot|can't|denied|refused|not found|no such|undefined"
    r"|unexpected|invalid|missing|unable|timed? ?out"
)
_STEP_SIGNS = re.compile(r"&&|\|\||[;\n|]")
_SETTING = re.compile(r"\w+=\S*")
SIMILAR = 0.5
"""How much of the words of an error line another has that is taken for the same."""
CONTAINED_LOSS = 0.25
"""What a line loses that has the words of an error among others."""
TELLING_WORDS = 4
"""Words of an error that another line may have among others."""
LONGEST_ERROR_LINE = 500
LEAST_WORDS = 2
"""Words that a line needs, so that it tells one error from others."""


class PastCommand(NamedTuple):
    """A call of a session: its place, its purpose, and whether it failed."""

    session_id: str
    record: CallRecord

    @property
    def place(self) -> str:
        """Its place as a text."""
        return f"{self.session_id}:{self.record.seq}.{self.record.position}"

    @property
    def target(self) -> str:
        """The command, or the file or pattern of another tool."""
        if self.record.kind == COMMAND_KIND:
            return extract_command(self.record.arguments) or str(self.record.arguments or "")
        fields = parse_object(self.record.arguments)
        name = next((name for name in SUBJECT_ARGUMENTS if name in fields), None)
        return render_value(fields[name]) if name else str(self.record.arguments or "")

    @property
    def purpose(self) -> str:
        """What stays the same when a call is tried again: the program and its purpose."""
        if self.record.kind != COMMAND_KIND:
            return f"{self.record.name} {self.target}"
        words = [word for step in _STEP_SIGNS.split(self.target) for word in _name_program(step)]
        return " ".join(words[:2])

    @property
    def line(self) -> str:
        """The call in a line: where, which tool, on what, and whether it failed."""
        failed = " (failed)" if self.record.failed else ""
        return f"{self.record.seq} {self.record.name}: {shorten(self.target, TRIED_LENGTH)}{failed}"


def _name_program(step: str) -> list[str]:
    """Return the program of one step of a command line and its first word; [] for ``cd``."""
    words = [word for word in step.split() if not _SETTING.fullmatch(word)]
    if not words or words[0] in ("cd", "export", "set", "source", "echo", "sleep"):
        return []
    plain = [word for word in words[1:] if not word.startswith("-")]
    program = words[0].split("/")[-1]
    return [program, *plain[:1]]


def list_commands(source: Source, session_id: str, failed: bool | None) -> list[PastCommand]:
    """Return the commands of a session, the newest first."""
    found = source.calls(session_id, kind=COMMAND_KIND, failed=failed)
    return [PastCommand(session_id, record) for record in reversed(found)]


def describe_command(source: Source, command: PastCommand) -> Answer:
    """Return a command, how it ended, and of a failed one what followed."""
    record = command.record
    told: Answer = {"seq": record.seq, "command": shorten(command.target, RESULT_LENGTH)}
    if record.failed is not None:
        told["failed"] = record.failed
    if not record.failed:
        return told
    told["error"] = cut_error_text(load_result(source, command))
    return told | follow_failure(source, command)


def follow_failure(source: Source, failed: PastCommand) -> Answer:
    """Return what was tried after a failed call until one of the same purpose succeeded."""
    session_id, place = failed.session_id, failed.record[:2]
    calls = [each for each in source.calls(session_id) if each[:2] > place]
    later = [PastCommand(session_id, each) for each in calls[:FOLLOWED]]
    done = [_succeeds(each, failed) for each in later]
    end = done.index(True) if True in done else None
    tried = later[: MOST_TRIED if end is None else end]
    return {
        "tried": [each.line for each in tried[-MOST_TRIED:]],
        "succeeded": None if end is None else _describe_success(source, later[end]),
    }


def _succeeds(later: PastCommand, failed: PastCommand) -> bool:
    is_same = later.record.kind == failed.record.kind and later.purpose == failed.purpose
    return later.record.failed is False and is_same


def _describe_success(source: Source, command: PastCommand) -> Answer:
    return {
        "seq": command.record.seq,
        "command": shorten(command.target, RESULT_LENGTH),
        "result": shorten(load_result(source, command), RESULT_LENGTH // 3),
    }


def load_result(source: Source, command: PastCommand) -> str:
    """Return the result of a call; "" if there is none."""
    group = load_group(source, command.session_id, command.record.seq)
    return read_result(group, command.record.position) if group else ""


def read_result(group: Group, position: int) -> str:
    """Return the result of a call by its place in its message; "" if there is none."""
    said = [each.message for each in group.messages]
    results = [each for each in said if each.get("tool_call_id")]
    calling = (each["tool_calls"] for each in said if each.get("tool_calls"))
    calls = next(calling, ())
    wanted = calls[position].get("id") if position < len(calls) else None
    named = [each for each in results if each["tool_call_id"] == wanted]
    found = named or results[position : position + 1]
    return "\n".join(render_message(each).removeprefix("result: ") for each in found)


def cut_error_text(result: str) -> str:
    """Return the part of a result that tells an error: from the line before it, or the end."""
    found = _ERROR_SIGN.search(result)
    if len(result) <= RESULT_LENGTH:
        return result
    if not found:
        return f"…{result[-RESULT_LENGTH:]}"
    line = result.rfind("\n", 0, found.start())
    begin = result.rfind("\n", 0, max(0, line)) + 1
    return "…" * (begin > 0) + truncate(result[begin:], RESULT_LENGTH)


def normalize_error(line: str) -> str:
    """Return a line without what changes from time to time: numbers, paths and ids."""
    plain = _CHANGING.sub(" ", line.lower())
    return " ".join(re.findall(r"[^\W\d_]+", plain))


def list_error_lines(text: str) -> list[str]:
    """Return the lines of a text that can tell an error, as they are compared, each once."""
    plain = dict.fromkeys(map(normalize_error, text.splitlines()))
    return [each for each in plain if len(each.split()) >= LEAST_WORDS]


class FoundError(NamedTuple):
    """A line of a text that tells an error, and how much of the asked lines it has, up to 1.0."""

    likeness: float
    line: str


def find_error(asked: Iterable[str], text: str) -> FoundError:
    """Return the line of a text that is the most like one that is asked for."""
    lines = [line.removeprefix("result: ").removeprefix("user: ") for line in text.splitlines()]
    words = ({*line.split()} for line in asked)
    found = (each for wanted in words for each in _compare_lines(wanted, lines))
    return max(found, key=lambda each: each.likeness, default=FoundError(0.0, ""))


def list_alike(asked: list[str], groups: Iterable[Group]) -> list[tuple[FoundError, Group]]:
    """Return the passages with a line like one that is asked for, the most alike first."""
    found = [(find_error(asked, group.text), group) for group in groups]
    alike = [each for each in found if each[0].likeness >= SIMILAR]
    return sorted(alike, key=lambda each: -each[0].likeness)


def _compare_lines(words: set[str], lines: list[str]) -> Iterator[FoundError]:
    """Yield the lines that may be like an asked one: the share of words that both have.

    A line with nearly all words of an error among others counts too.
    """
    # A line that is alike lacks at most so many words, so it has one of these.
    missing = int(len(words) * (1 - SIMILAR))
    rarest = sorted(words, key=len)[-missing - 1 :]
    pattern = re.compile("|".join(map(re.escape, rarest)))
    for line in lines:
        lowered = line[:LONGEST_ERROR_LINE].lower()
        if pattern.search(lowered):
            found = {*normalize_error(lowered).split()}
            both = len(words & found)
            among = both / len(words) - CONTAINED_LOSS if len(words) >= TELLING_WORDS else 0.0
            yield FoundError(max(both / len(words | found), among), line)


def describe_told_error(source: Source, group: Group, line: str) -> Answer:
    """Return an error that stands in a message or a result, with what followed it in its turn."""
    session_id, begin = group.session_id, group.last + 1
    end = next((turn.last for turn in source.turns(session_id) if turn.last >= begin), begin)
    calls = [each for each in source.calls(session_id) if begin <= each.seq <= end]
    last = load_group(source, session_id, end)
    return {
        "seq": group.first,
        "error": shorten(line, RESULT_LENGTH),
        "tried": [PastCommand(session_id, each).line for each in calls[:MOST_TRIED]],
        "said": shorten(last.text, RESULT_LENGTH) if last and last.first >= begin else "",
    }
