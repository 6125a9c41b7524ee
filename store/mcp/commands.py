"""Commands of the past: the failure, the attempts after it, and the success.

An error is the same as another if a line of each is, apart from numbers, paths and ids.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..records import CallRecord
from ..summaries import extract_command
from ..text import parse_object, truncate, truncate_to_line
from ..tools import LikeError, find_like_error
from .answers import Answer, Source
from .passages import Group, load_group, render_message, render_value

COMMAND_KIND = "terminal"
SUBJECT_ARGUMENTS = ("file_path", "path", "filePath", "pattern", "query", "url")
MOST_TRIED = 12
"""Calls that are told between a failure and what succeeded."""
FOLLOWED = 40
"""Calls after a failure among which one that succeeds is looked for."""
TRIED_LENGTH = 100
RESULT_LENGTH = 700

_ERROR_SIGN = re.compile(
    r"(?i)error|fail|fatal|exception|panic|cannot|can't|denied|refused|not found|no such|undefined"
    r"|unexpected|invalid|missing|unable|timed? ?out"
)
_STEP_SIGNS = re.compile(r"&&|\|\||[;\n|]")
_SETTING = re.compile(r"\w+=\S*")


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
    def purpose(self) -> tuple[str | None, str]:
        """What stays the same when a call is tried again: its kind, the program and its purpose."""
        if self.record.kind != COMMAND_KIND:
            return self.record.kind, f"{self.record.name} {self.target}"
        words = [word for step in _STEP_SIGNS.split(self.target) for word in _name_program(step)]
        return self.record.kind, " ".join(words[:2])

    @property
    def line(self) -> str:
        """The call in a line: where, which tool, on what, and whether it failed."""
        target = truncate_to_line(self.target, TRIED_LENGTH)
        failed = " (failed)" if self.record.failed else ""
        return f"{self.record.seq} {self.record.name}: {target}{failed}"


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
    told: Answer = {"seq": record.seq, "command": truncate_to_line(command.target, RESULT_LENGTH)}
    told |= {} if record.failed is None else {"failed": record.failed}
    if record.failed:
        told["error"] = cut_error_text(load_result(source, command))
        told |= follow_failure(source, command)
    return told


def follow_failure(source: Source, failed: PastCommand) -> Answer:
    """Return what was tried after a failed call until one of the same purpose succeeded."""
    session_id, place = failed.session_id, failed.record[:2]
    calls = [each for each in source.calls(session_id) if each[:2] > place]
    later = [PastCommand(session_id, each) for each in calls[:FOLLOWED]]
    done = [each for each in later if each.record.failed is False]
    last = next((each for each in done if each.purpose == failed.purpose), None)
    tried = later[: MOST_TRIED if last is None else later.index(last)]
    return {
        "tried": [each.line for each in tried[-MOST_TRIED:]],
        "succeeded": last
        and {
            "seq": last.record.seq,
            "command": truncate_to_line(last.target, RESULT_LENGTH),
            "result": truncate_to_line(load_result(source, last), RESULT_LENGTH // 3),
        },
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


def list_alike(asked: list[str], groups: list[Group]) -> list[tuple[LikeError, Group]]:
    """Return the passages with a line like one that is asked for, the most alike first."""
    alike = []
    for group in groups:
        lines = group.text.splitlines()
        plain = [line.removeprefix("result: ").removeprefix("user: ") for line in lines]
        if error := find_like_error(asked, plain):
            alike.append((error, group))
    return sorted(alike, key=lambda each: -each[0].likeness)


def describe_told_error(source: Source, group: Group, line: str) -> Answer:
    """Return an error that stands in a message or a result, with what followed it in its turn."""
    session_id, begin = group.session_id, group.last + 1
    end = next((turn.last for turn in source.turns(session_id) if turn.last >= begin), begin)
    calls = [each for each in source.calls(session_id) if begin <= each.seq <= end]
    last = load_group(source, session_id, end)
    return {
        "seq": group.first,
        "error": truncate_to_line(line, RESULT_LENGTH),
        "tried": [PastCommand(session_id, each).line for each in calls[:MOST_TRIED]],
        "said": truncate_to_line(last.text, RESULT_LENGTH) if last and last.first >= begin else "",
    }
