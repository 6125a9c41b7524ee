"""A summary without a model: what was asked and answered, what tools were used for, which files changed (S3.48).

Deterministic and quick, so that a compaction can always be made. What tools did is always extracted; which raw text
goes into the body is the request's choice (A3.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, zip_longest
from typing import Any, NamedTuple

from ..error_texts import error_told
from ..messages import Message
from ..paths import normalise_path
from ..tools import TOOL_KINDS, Facts, answered_call_id, call_paths, kind_name, result_facts
from .texts import (
    ELLIPSIS,
    RESULT_ROLES,
    UNKNOWN_TOOL,
    Call,
    calls_of,
    command_of,
    cut,
    json_value,
    message_content,
    one_line,
    scrubbed,
    shortened_inside,
)
from .values import (
    ACTIONS_HEADING,
    BODY_HEADING,
    CHANGES_HEADING,
    FileChange,
    KeyAction,
    Summary,
    SummaryRequest,
    action_line,
    change_line,
    newest,
    rendered_size,
    title,
)

MODEL = "extractive"
"""What such a summary names as its model."""

VERBS: Mapping[str, str] = {"terminal": "run", "file_read": "read", "search": "search for", "list": "list"}
"""What a tool of a kind is used for; an edit is used to do what it did."""

TARGETS = ("pattern", "query", "regex", "search", "url", "description", "prompt", "question", "task", "name")
"""Arguments that say what a tool was used on, where it is neither a command nor a file."""

CHANGES: tuple[tuple[str, str], ...] = (
    ("delete", "deleted"),
    ("remove", "deleted"),
    ("create", "created"),
    ("write", "written"),
    ("save", "written"),
)
"""What a word in the name of an edit, or in its ``command`` argument, makes of a file; any other edit modifies it.

A file ``written`` is created if the result says so (A3.19).
"""

INFINITIVES: Mapping[str, str] = {"created": "create", "modified": "modify", "deleted": "delete"}

WORTH: Mapping[str | None, int] = {"todo": 0, "list": 1, "search": 2, "file_read": 3}
"""What the success of a kind is worth where there is no room for all; whatever is not here is worth more."""

_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
PATCH_CHANGES = {"Add": "created", "Update": "modified", "Delete": "deleted"}
_SAYS_CREATED = re.compile(r"\b(?:created|new file)\b", re.IGNORECASE)
_ANSWERING = "Assistant"
_TARGET_LIMIT, _OUTCOME_LIMIT, _LINE_LIMIT = 120, 80, 200


class _Deed(NamedTuple):
    """What one answered call did, and what that is worth to know."""

    action: KeyAction
    changes: tuple[FileChange, ...]
    worth: int


def extractive(request: SummaryRequest) -> Summary:
    """Summarise by rules: title, key actions, file changes, and a body of raw text (S3.13, S3.34, S3.48).

    All but the title keeps the request's limit as it is rendered; half of it is for what tools did, the body has what
    that leaves, half of it for the previous summary. The body counts what was left out.
    """
    deeds, said = _read(request)
    changes = _final(change for deed in deeds for change in deed.changes)
    actions = _worth(deeds)
    room = request.max_chars // 2
    kept_changes = newest(changes, change_line, room // 2)
    room -= rendered_size(Summary("", file_changes=kept_changes))
    chosen = {*newest(sorted(actions, key=actions.__getitem__), action_line, room)}
    kept_actions = tuple(action for action in actions if action in chosen)
    lists = Summary("", title(request.started_at, request.ended_at), kept_actions, kept_changes, MODEL)
    room = request.max_chars - (rendered_size(lists._replace(body=" ")) - 1)
    note = _left_out(len(actions) - len(kept_actions), len(changes) - len(kept_changes))
    return lists._replace(body=_body(request, _lines(said), note, room))


def _read(request: SummaryRequest) -> tuple[list[_Deed], list[tuple[str, str]]]:
    """Return what each answered call did, and who said what, in order: in one pass, so that no more need be in memory.

    An id that is met again means the nearest call before (A1.11).
    """
    deeds: list[_Deed] = []
    said: list[tuple[str, str]] = []
    waiting: dict[object, Call] = {}
    limit = max(_LINE_LIMIT, request.max_chars // max(len(request.messages), 1))
    for message in request.messages:
        waiting.update((call.id, call) for call in calls_of(message) if isinstance(call.id, str))
        if message.get("role") in RESULT_ROLES:
            call_id = answered_call_id(message)
            deeds.append(_deed(waiting.pop(call_id) if call_id in waiting else _call_unknown(message), message))
        for voice, text in _voices(message, request.parts_to_keep):
            said.append((voice, one_line(scrubbed(text[: 8 * limit]), limit)))
    return deeds, said


# What tools did.


def _call_unknown(result: Message) -> Call:
    name = result.get("name")
    return Call(None, name if isinstance(name, str) and name else UNKNOWN_TOOL, None)


def _deed(call: Call, result: Message) -> _Deed:
    arguments = json_value(call.arguments)
    kind = TOOL_KINDS.get(kind_name(call.name, arguments) or "")
    facts = result_facts(result)
    failed = bool(facts.error_prefix or facts.status == "error" or facts.exit_code)
    changes = () if failed else tuple(_changes(call.name, kind, arguments, result))
    verb = INFINITIVES[changes[0].action] if changes else VERBS.get(kind or "", "use it on")
    target = one_line(_target(kind, arguments, changes), _TARGET_LIMIT)
    purpose = f"to {verb} {target}" if target else ""
    said = filter(None, (purpose, _outcome(kind, facts, result, failed=failed)))
    action = KeyAction(one_line(scrubbed(call.name), 80).replace("`", "'"), scrubbed(": ".join(said)))
    return _Deed(action, changes, len(WORTH) if failed else WORTH.get(kind, len(WORTH)))


def _target(kind: str | None, arguments: Any, changes: Sequence[FileChange]) -> str:
    """Return what a tool was used on: the files it changed, its command, what it looked for, or the files it names."""
    if changes:
        return ", ".join(change.path for change in changes)
    if kind == "terminal":
        return command_of(arguments) or ""
    given = arguments if isinstance(arguments, dict) else {}
    said = (given[word] for word in TARGETS if isinstance(given.get(word), str) and given[word])
    files = ", ".join(each.path for each in call_paths(given).paths)
    return files or next(said, "") if kind in ("file_read", "file_edit", "list") else next(said, files)


def _outcome(kind: str | None, facts: Facts, result: Message, *, failed: bool) -> str:
    """Return what came of a call: of a success of a known kind only a command's exit code is worth telling."""
    exit_code = "" if facts.exit_code is None else f"exit {facts.exit_code}"
    if kind in VERBS and not failed:
        return exit_code
    if kind is not None and kind != "other" and not failed:
        return ""
    text = error_told(message_content(result)) if failed else message_content(result)
    first = next((line for line in text[:4000].splitlines() if line.strip()), "")
    return ", ".join(filter(None, (exit_code or ("failed" if failed else ""), one_line(first, _OUTCOME_LIMIT))))


def _changes(name: str, kind: str | None, arguments: Any, result: Message) -> Iterator[FileChange]:
    """Yield the files that a successful call changed: by its patch, else by its name; other tools change none."""
    patched = list(_patched(arguments)) if kind in ("file_edit", "terminal") else []
    yield from patched
    if kind != "file_edit" or patched or not isinstance(arguments, dict):
        return
    words = f"{name} {arguments.get('command', '')}".lower()
    action = next((action for word, action in CHANGES if word in words), "modified")
    if action == "written":
        action = "created" if _SAYS_CREATED.search(message_content(result)[:200]) else "modified"
    yield from (FileChange(scrubbed(each.path), action) for each in call_paths(arguments).paths)


def _patched(arguments: Any) -> Iterator[FileChange]:
    """Yield what the patches in arguments change, in whatever argument, or argument of a shell, they stand."""
    texts = [arguments]
    for value in arguments.values() if isinstance(arguments, dict) else ():
        texts += value if isinstance(value, list) else [value]
    patches = (text for text in texts if isinstance(text, str) and "*** Begin Patch" in text)
    for verb, path in (found for patch in patches for found in _PATCHED.findall(scrubbed(patch))):
        if key := normalise_path(path):
            yield FileChange(key, PATCH_CHANGES[verb])


def _final(changes: Iterator[FileChange]) -> tuple[FileChange, ...]:
    """Return what became of each file in the end, the one last changed last; a new file stays new when modified."""
    final: dict[str, str] = {}
    for path, action in changes:
        before = final.pop(path, None)
        final[path] = "created" if (before, action) == ("created", "modified") else action
    return tuple(FileChange(path, action) for path, action in final.items())


def _worth(deeds: Iterable[_Deed]) -> dict[KeyAction, int]:
    """Return the distinct actions, each where it was met last, with what it is worth to know."""
    worth: dict[KeyAction, int] = {}
    for deed in deeds:
        worth.pop(deed.action, None)
        worth[deed.action] = deed.worth
    return worth


def _left_out(actions: int, changes: int) -> str:
    counts = ((actions, "action"), (changes, "file change"))
    said = " and ".join(f"{count} more {what}{'s' * (count > 1)}" for count, what in counts if count)
    return f"({said} not listed.)" if said else ""


# What was said.


def _body(request: SummaryRequest, lines: Sequence[str], note: str, room: int) -> str:
    """Return the previous summary, what was said, and the note, in at most so many code points; never nothing."""
    note = note if len(note) < room // 4 else ""
    left = room - len(note) - 1
    said_size = sum(len(line) + 1 for line in lines)
    previous = shortened_inside(_flattened(request.previous_summary or ""), max(left // 2, left - said_size))
    said = _selected(lines, left - len(previous) - 1)
    body = "\n".join(filter(None, (previous, said, note)))
    return cut(body or f"{len(request.messages)} messages without text.", max(room, 1))


_HEADINGS = re.compile(
    rf"\n*^(?:# Summary of conversation.*|{re.escape(ACTIONS_HEADING)}|{re.escape(CHANGES_HEADING)})\n*", re.MULTILINE
)


def _flattened(summary: str) -> str:
    """Return a summary without the headings of one, its body first: so summaries of summaries do not nest."""
    lists, heading, body = scrubbed(summary).rpartition(BODY_HEADING)
    if not heading:
        lists, body = body, ""
    listed = _HEADINGS.sub("\n", lists).strip()
    return f"{body}\n{listed}".strip()


def _voices(message: Message, parts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield who speaks in a message, and the text, for each part that is kept."""
    role = message.get("role")
    thought = message.get("reasoning_content") or message.get("reasoning")
    if "reasoning" in parts and isinstance(thought, str):
        yield "Reasoning", thought
    if role in RESULT_ROLES and "tool" in parts:
        yield "Tool", message_content(message)
    if role in ("user", "assistant") and "text" in parts:
        yield "User" if role == "user" else _ANSWERING, message_content(message)


def _lines(said: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each text; of an assistant's texts in a row only the last, its answer."""
    told = [each for each in said if each[1]]
    following = [voice for voice, _ in told[1:]]
    return [
        f"{voice}: {text}" for (voice, text), after in zip_longest(told, following) if not voice == after == _ANSWERING
    ]


def _selected(lines: Sequence[str], room: int) -> str:
    """Return lines that fit: all, else the first, which names the goal, and the newest, with ``...`` between."""
    text = "\n".join(lines)
    if len(text) <= room or room <= 0:
        return text if room > 0 else ""
    goal = cut(lines[0], room // 2)
    left = room - len(goal) - len(f"\n{ELLIPSIS}")
    count = sum(size <= left for size in accumulate(len(line) + 1 for line in reversed(lines[1:])))
    return cut("\n".join([goal, ELLIPSIS, *lines[len(lines) - count :]]), room)
