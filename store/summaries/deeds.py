"""What tools were used for, what came of it, and which files they changed: read off the messages.

A *use* is a call with its result, as a policy judges them; a *deed* is what a summary tells of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..messages import UNKNOWN_TOOL, Message
from ..policy import Policy
from ..ready import Language, counted_phrase, phrase
from ..text import Fields, json_object
from ..tools import failed as has_failed
from ..tools import (
    files_named,
    how_it_ended,
    is_command,
    kind_name,
    known_by_looks,
    looks_terminal,
    normalise_path,
    patches,
)
from .outcomes import describe_failure, find_outcome, strip_heredocs
from .texts import (
    GivenCall,
    extract_command,
    extract_message_text,
    flatten_to_line,
    parse_json,
    scrub_text,
    tool_name,
)
from .values import FileChange, KeyAction

VERBS: Mapping[str | None, str] = {
    "terminal": "to_run",
    "file_read": "to_read",
    "search": "to_search",
    "list": "to_list",
}
"""What a tool of a kind is used for, by its phrase; an edit is used to do what it did."""

TARGETS = (
    "pattern",
    "query",
    "regex",
    "search",
    "url",
    "description",
    "prompt",
    "question",
    "task",
    "name",
)
"""Arguments that say what a tool was used on, where it is neither a command nor a file."""

CHANGES: tuple[tuple[str, str], ...] = (
    ("delete", "deleted"),
    ("remove", "deleted"),
    ("create", "created"),
    ("write", "written"),
    ("save", "written"),
)
"""What a word in the name of an edit, or in its ``command`` argument, makes of a file.

A file ``written`` is created if the result says so, else modified. Any other edit modifies it.
"""

FATES = ("read", "created", "modified", "deleted")
"""What is counted of files, in the order in which it is told."""

INFINITIVES: Mapping[str, str] = {
    "created": "to_create",
    "modified": "to_modify",
    "deleted": "to_delete",
}

WORTH: Mapping[str | None, int] = {
    "todo": 0,
    "list": 1,
    "search": 2,
    "file_read": 3,
}
"""What the success of a kind of tool is worth where there is no room for all.

Failures and other kinds are worth more.
"""

IN_FACTS = ("terminal", "file_read", "file_edit")
"""Kinds of tools whose successes are among the facts, too; failures of all kinds are."""

_WORTH_MOST = len(WORTH)
_SHOWS_FILES = ("file_read", "file_edit", "list")
_SAYS_CREATED = re.compile(r"\b(?:created|new file)\b", re.IGNORECASE)
_NAME_LIMIT, _TARGET_LIMIT, _OUTCOME_LIMIT = 80, 120, 80


class Deed(NamedTuple):
    """What one answered call did, and what that is worth to know.

    ``in_facts``: it is among the facts that are sent with a summary.
    """

    action: KeyAction
    changes: tuple[FileChange, ...]
    worth: int
    files_read: tuple[str, ...] = ()
    in_facts: bool = False


class _Use(NamedTuple):
    """A call with its result, and the files that it names; the exit code is a command's alone.

    ``fields`` are those of a result that is a JSON object, {} of any other.
    """

    name: str
    kind: str | None
    arguments: Any
    result: str
    fields: Fields
    exit_code: int | None
    failed: bool
    files: list[str]


class Judge(NamedTuple):
    """What uses of tools are judged by: a policy, the kinds of tools that a store knows, a root."""

    policy: Policy
    tool_kinds: Mapping[str, str]
    root: str | None = None

    def kind(self, name: str) -> str | None:
        """Return the kind of a tool, None where nobody knows it."""
        return self.policy.tool_kinds.get(name) or self.tool_kinds.get(name)

    def files(self, arguments: Any) -> list[str]:
        """Return the files that arguments name, as the root sees them."""
        return [scrub_text(path) for path in files_named(arguments, self.root)]


def deed_of(call: GivenCall, result: Message, judge: Judge) -> Deed:
    """Return what a call and its result tell."""
    use = _use(call, result, judge)
    changes = () if use.failed else _changes(use, judge.root)
    language = judge.policy.language
    parts = (_purpose(use, changes, language), _outcome(use, language))
    told = phrase("colon", language).join(filter(None, parts))
    worth = _WORTH_MOST if use.failed else WORTH.get(use.kind, _WORTH_MOST)
    in_facts = use.failed or use.kind in IN_FACTS
    return Deed(
        KeyAction(_quotable(use.name), scrub_text(told)), changes, worth, _files_read(use), in_facts
    )


@lru_cache(maxsize=256)
def _quotable(name: str) -> str:
    return flatten_to_line(scrub_text(name), _NAME_LIMIT).replace("`", "'")


def unknown_call(result: Message) -> GivenCall:
    """Return what stands for the call of a result that answers none."""
    return GivenCall(None, tool_name(result), None)


def last_changes(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return what became of each file in the end, the one last changed last.

    A new file stays new when it is modified.
    """
    last: dict[str, str] = {}
    for path, action in changes:
        before = last.pop(path, None)
        is_new = (before, action) == ("created", "modified")
        last[path] = "created" if is_new else action
    return tuple(FileChange(path, action) for path, action in last.items())


def counted(deeds: Iterable[Deed], changes: Iterable[FileChange], language: Language) -> str:
    """Return one sentence with how many files were read and changed; "" where none was."""
    fates = _fates(deeds, changes)
    told = [counted_phrase(fate, fates[fate], language) for fate in FATES if fates[fate]]
    return phrase("counts_end", language, counts=enumerated(told, language)) if told else ""


def _fates(deeds: Iterable[Deed], changes: Iterable[FileChange]) -> Counter[str]:
    """Return how many files met each fate; a file that was read several times counts once."""
    files_read = {path for deed in deeds for path in deed.files_read}
    counts = Counter(change.action for change in changes)
    counts["read"] = len(files_read)
    return counts


def enumerated(words: Sequence[str], language: Language) -> str:
    """Return words with commas between them, and an ``and`` before the last."""
    *before, last = words
    if not before:
        return last
    return phrase("comma", language).join(before) + phrase("and", language) + last


Worth = dict[KeyAction, int]
"""What each of some actions is worth to know."""


def worth_by_action(deeds: Iterable[Deed]) -> Worth:
    """Return the distinct actions, each where it was met last, with what it is worth to know."""
    worth: Worth = {}
    for deed in deeds:
        worth.pop(deed.action, None)
        worth[deed.action] = deed.worth
    return worth


def _use(call: GivenCall, result: Message, judge: Judge) -> _Use:
    arguments = parse_json(call.arguments)
    name = ""
    if call.name != UNKNOWN_TOOL:
        name = kind_name(call.name, arguments) or ""
    kind, policy = judge.kind(name), judge.policy
    text = extract_message_text(result)
    fields = json_object(text)
    ended = how_it_ended(result, fields)
    looks = known_by_looks(name, policy) and looks_terminal(result)
    command = is_command(name, kind, looks, policy)
    exit_code = ended.exit_code if command else None
    failed = has_failed(ended, policy, command=command)
    files = [] if kind == "terminal" else judge.files(arguments)
    return _Use(call.name, kind, arguments, text, fields, exit_code, failed, files)


def _purpose(use: _Use, changes: Sequence[FileChange], language: Language) -> str:
    """Return what a tool was used for, "" where nothing tells."""
    target = flatten_to_line(_target(use, changes), _TARGET_LIMIT)
    if not target:
        return ""
    return phrase(_verb(use, changes), language, target=target)


def _verb(use: _Use, changes: Sequence[FileChange]) -> str:
    if changes:
        return _change_verb(changes)
    return VERBS.get(use.kind, "to_use_on")


def _change_verb(changes: Sequence[FileChange]) -> str:
    """Return the verb for what a call did to files; for several things, one for them all."""
    actions = {change.action for change in changes}
    return INFINITIVES[actions.pop()] if len(actions) == 1 else "to_change"


def _target(use: _Use, changes: Sequence[FileChange]) -> str:
    """Return what a tool was used on.

    The files it changed, its command, what it looked for, or the files it names.
    """
    if changes:
        return ", ".join(change.path for change in changes)
    if use.kind == "terminal":
        return strip_heredocs(extract_command(use.arguments) or "")
    given = use.arguments if isinstance(use.arguments, dict) else {}
    files = ", ".join(use.files) if given else ""
    if files and use.kind in _SHOWS_FILES:
        return files
    words = (word for word in map(given.get, TARGETS) if isinstance(word, str))
    return next(filter(None, words), files)


def _outcome(use: _Use, language: Language) -> str:
    """Return what came of a call: why it failed, or of a success what is worth telling."""
    ended = "" if use.exit_code is None else phrase("exit", language, code=use.exit_code)
    if use.failed:
        told = _in_short(describe_failure(use.result, use.fields, language))
        parts = (ended or phrase("failed", language), told)
    elif use.kind == "terminal":
        parts = (ended, find_outcome(use.result, use.fields))
    elif use.kind in (None, "other"):
        parts = (ended, _in_short(use.result))
    else:
        parts = (ended if use.kind in VERBS else "", "")
    return phrase("comma", language).join(filter(None, parts))


def _files_read(use: _Use) -> tuple[str, ...]:
    if use.failed or use.kind != "file_read":
        return ()
    return tuple(use.files)


def _in_short(text: str) -> str:
    """Return the first line of a text that is not blank."""
    lines = text[:4000].splitlines()
    return flatten_to_line(next((line for line in lines if line.strip()), ""), _OUTCOME_LIMIT)


def _changes(use: _Use, root: str | None) -> tuple[FileChange, ...]:
    """Return the files that a successful call changed.

    Only edits change files, by their patch or else by their name, and commands that hold a patch.
    """
    if use.kind == "terminal":
        return last_changes(_patched(use, root))
    if use.kind == "file_edit":
        return last_changes(_patched(use, root)) or last_changes(_edited(use))
    return ()


def _patched(use: _Use, root: str | None) -> Iterator[FileChange]:
    """Yield what the patches in a call change, whichever argument they stand in."""
    for value in _values(use.arguments):
        for path, action in patches.changes(value):
            if key := normalise_path(scrub_text(path), root):
                yield FileChange(key, action)


def _values(arguments: Any) -> Iterable[Any]:
    """Return the values of arguments; such as are no object are one themselves."""
    if isinstance(arguments, dict):
        return arguments.values()
    return (arguments,)


def _edited(use: _Use) -> Iterator[FileChange]:
    """Yield the files that an edit without a patch names."""
    if isinstance(use.arguments, dict):
        action = _edit_action(use)
        for path in use.files:
            yield FileChange(path, action)


def _edit_action(use: _Use) -> str:
    """Return what an edit without a patch made of its files, by the words of its call."""
    words = f"{use.name} {use.arguments.get('command', '')}".lower()
    action = next((action for word, action in CHANGES if word in words), "modified")
    if action == "written":
        return _written_action(use)
    return action


def _written_action(use: _Use) -> str:
    """Return what a call made of the files that it wrote, by the words of its result."""
    beginning = use.result[:200]
    return "created" if _SAYS_CREATED.search(beginning) else "modified"
