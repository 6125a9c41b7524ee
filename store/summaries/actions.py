"""The actions of tools in a hidden range: their purpose, their outcome, and the files they changed.

An *answered call* is a call with its result, as a policy judges them; its summary is a `KeyAction`
with the facts that decide where there is room for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..messages import UNKNOWN_TOOL, Message
from ..phrases import Language, render_counted_phrase, render_phrase
from ..text import JsonFields, get_at_path, parse_object
from ..tools import (
    find_error_text,
    find_kind_name,
    find_result_end,
    is_command_output,
    is_known_by_look,
    is_terminal_result,
    list_file_keys,
    normalise_path,
    patches,
)
from ..tools import is_failed_result as has_failed
from .message_texts import (
    SUMMARY_ELLIPSIS,
    GivenCall,
    extract_command,
    extract_message_text,
    extract_rejection_reason,
    flatten_to_line,
    parse_json_container,
    scrub_text,
    strip_program_tags,
)
from .summary import FileChange, KeyAction, SummaryRequest

PURPOSE_PHRASES: Mapping[str | None, str] = {
    "terminal": "to_run",
    "file_read": "to_read",
    "search": "to_search",
    "list": "to_list",
}
"""The purpose of a tool, as a phrase, by its kind; the purpose of an edit is the change it made."""

TARGET_ARGUMENTS = (
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
"""Arguments that name the target of a tool that has neither a command nor a file."""

CHANGE_WORDS: tuple[tuple[str, str], ...] = (
    ("delete", "deleted"),
    ("remove", "deleted"),
    ("create", "created"),
    ("write", "written"),
    ("save", "written"),
)
"""Words in the name of an edit, or in its ``command`` argument, and the change of a file they mean.

A file ``written`` is created if the result says so, else modified. Any other edit modifies it.
"""

COUNTED_ACTIONS = ("read", "created", "modified", "deleted")
"""The actions on files that a summary counts, in this order."""

CHANGE_PHRASES: Mapping[str, str] = {
    "created": "to_create",
    "modified": "to_modify",
    "deleted": "to_delete",
}

KIND_WORTH: Mapping[str | None, int] = {
    "todo": 0,
    "list": 1,
    "search": 2,
    "file_read": 3,
}
"""The worth of a successful call by the kind of its tool, where there is no room for all.

Failures and other kinds are worth more.
"""

FACT_KINDS = ("terminal", "file_read", "file_edit")
"""Kinds of tools whose successes are also among the facts; failures of all kinds are."""

OUTPUT_FIELDS = (
    *(("stdout",), ("stderr",)),
    *(("data", "stdout"), ("data", "stderr")),
    ("output",),
)
"""The fields of a JSON result that hold the output of a command."""

OUTPUT_READ_LIMIT = 4000
"""Code points at the end of an output in which its outcome is searched."""
OUTPUT_END_LIMIT = 400
"""Code points at the very end that are searched first: nearly every last line is an outcome."""
FAILURE_LIMIT = 200
"""Code points that are shown of the words of a user who refused a call."""

_MOST_WORTH = len(KIND_WORTH)
_KINDS_SHOWING_FILES = ("file_read", "file_edit", "list")
_NAME_LIMIT, _TARGET_LIMIT, _OUTCOME_LIMIT = 80, 120, 80
_SAYS_CREATED = re.compile(r"\b(?:created|new file)\b", re.IGNORECASE)
_HAS_WORD = re.compile(r"\w.*\w")
_WRAPPER_LINE = re.compile(
    r"\[.*\]|</?[a-z_]+>|Shell cwd was reset.*|Output:|Process exited with code -?\d+"
    r"|(?:Chunk ID|Wall time|Exit code|Original token count|Total output lines):? .*"
)
"""Lines by the program that ran the command."""
_HEREDOC = re.compile(
    r"(<<-?[ \t]*[\"']?(\w+)[\"']?[^\n]*\n[^\n]*\n)(.*?)(?=^[ \t]*\2\b|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A here-document: its beginning up to the end of its first line, its word, and its other lines."""
_HEREDOC_LIMIT = 80
_COMMAND_READ_LIMIT = 4000


class CallSummary(NamedTuple):
    """The action of one answered call, and its worth.

    ``in_facts``: it is among the facts that are sent with a summary. ``edited`` is the text that it
    wrote into a file, as it is.
    """

    action: KeyAction
    changes: tuple[FileChange, ...]
    worth: int
    files_read: tuple[str, ...] = ()
    in_facts: bool = False
    edited: str = ""


class _AnsweredCall(NamedTuple):
    """A call with its result, and the files that it names; only a command has an exit code.

    ``fields`` are those of a result that is a JSON object, {} of any other.
    """

    name: str
    kind: str | None
    arguments: Any
    result: str
    fields: JsonFields
    exit_code: int | None
    failed: bool
    files: list[str]


def summarize_call(given: GivenCall, message: Message, request: SummaryRequest) -> CallSummary:
    """Return the summary of a call and of the message with its result, as the request judges them.

    The policy of the request knows the kind of a tool before the store does, and says which
    results failed. Paths of files are relative to the project root.
    """
    policy, root = request.policy, request.project_root
    arguments = parse_json_container(given.arguments)
    name = ""
    if given.name != UNKNOWN_TOOL:
        name = find_kind_name(given.name, arguments) or ""
    kind = policy.tool_kinds.get(name) or request.tool_kinds.get(name)
    result = extract_message_text(message)
    fields = parse_object(result)
    ended = find_result_end(message, fields)
    looks = is_known_by_look(name, policy) and is_terminal_result(message)
    command = is_command_output(name, kind, looks, policy)
    exit_code = ended.exit_code if command else None
    failed = has_failed(ended, policy, command=command)
    files: list[str] = []
    if kind != "terminal":
        files = [scrub_text(path) for path in list_file_keys(arguments, root)]
    call = _AnsweredCall(given.name, kind, arguments, result, fields, exit_code, failed, files)
    changes = () if failed else _find_changes(call, root)
    parts = (
        _describe_purpose(call, changes, policy.language),
        _describe_outcome(call, policy.language),
    )
    description = render_phrase("colon", policy.language).join(filter(None, parts))
    return CallSummary(
        KeyAction(_make_quotable(call.name), scrub_text(description)),
        changes,
        worth=_MOST_WORTH if failed else KIND_WORTH.get(kind, _MOST_WORTH),
        files_read=tuple(files) if kind == "file_read" and not failed else (),
        in_facts=failed or kind in FACT_KINDS,
        edited="\n".join(_list_written_texts(arguments)) if changes else "",
    )


WRITTEN_KEYS = ("new_string", "new_str", "new_text", "newText", "newString", "replace", "content")
"""The arguments of edits that hold the text after them."""


def _list_written_texts(value: Any) -> Iterator[str]:
    """Yield the texts that an edit writes: by their keys, of a patch the lines that stay."""
    if isinstance(value, list):
        for each in value:
            yield from _list_written_texts(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str) and key in WRITTEN_KEYS:
                yield scrub_text(each)
            else:
                yield from _list_written_texts(each)
    elif isinstance(value, str) and any(patches.find_patch_headings(value)):
        lines = (line for line in value.splitlines() if line.startswith(("+", " ")))
        yield scrub_text("\n".join(line[1:] for line in lines))


@lru_cache(maxsize=256)
def _make_quotable(name: str) -> str:
    return flatten_to_line(scrub_text(name), _NAME_LIMIT).replace("`", "'")


def merge_changes(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return the final change of each file, in the order of their last changes.

    A new file stays new when it is modified.
    """
    last: dict[str, str] = {}
    for path, action in changes:
        before = last.pop(path, None)
        is_new = (before, action) == ("created", "modified")
        last[path] = "created" if is_new else action
    return tuple(FileChange(path, action) for path, action in last.items())


def describe_file_counts(
    calls: Iterable[CallSummary], changes: Iterable[FileChange], language: Language
) -> str:
    """Return one sentence with how many files were read and changed; "" where none was.

    A file that was read several times counts once.
    """
    counts = Counter(change.action for change in changes)
    counts["read"] = len({path for call in calls for path in call.files_read})
    told = [
        render_counted_phrase(action, counts[action], language)
        for action in COUNTED_ACTIONS
        if counts[action]
    ]
    return render_phrase("counts_end", language, counts=join_words(told, language)) if told else ""


def join_words(words: Sequence[str], language: Language) -> str:
    """Return words with commas between them, and an ``and`` before the last."""
    *before, last = words
    if not before:
        return last
    return render_phrase("comma", language).join(before) + render_phrase("and", language) + last


def _describe_purpose(
    call: _AnsweredCall, changes: Sequence[FileChange], language: Language
) -> str:
    """Return the purpose of a call, "" where it is not known.

    Its target are the files it changed, its command, the words it searched, or the files it names.
    """
    code = PURPOSE_PHRASES.get(call.kind, "to_use_on")
    if changes:
        target = ", ".join(change.path for change in changes)
        actions = {change.action for change in changes}
        code = CHANGE_PHRASES[actions.pop()] if len(actions) == 1 else "to_change"
    elif call.kind == "terminal":
        target = strip_heredocs(extract_command(call.arguments) or "")
    else:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        target = ", ".join(call.files) if arguments else ""
        if not target or call.kind not in _KINDS_SHOWING_FILES:
            values = map(arguments.get, TARGET_ARGUMENTS)
            words = (word for word in values if isinstance(word, str))
            target = next(filter(None, words), target)
    target = flatten_to_line(target, _TARGET_LIMIT)
    return render_phrase(code, language, target=target) if target else ""


def _describe_outcome(call: _AnsweredCall, language: Language) -> str:
    """Return why a call failed, or the part of a successful result that is worth showing."""
    ended = "" if call.exit_code is None else render_phrase("exit", language, code=call.exit_code)
    if call.failed:
        failure = describe_failure(call.result, call.fields, language)
        parts = (ended or render_phrase("failed", language), _find_first_line(failure))
    elif call.kind == "terminal":
        parts = (ended, find_outcome(call.result, call.fields))
    elif call.kind in (None, "other"):
        parts = (ended, _find_first_line(call.result))
    else:
        parts = (ended if call.kind in PURPOSE_PHRASES else "", "")
    return render_phrase("comma", language).join(filter(None, parts))


def _find_first_line(text: str) -> str:
    """Return the first line of a text that is not blank."""
    lines = text[:4000].splitlines()
    return flatten_to_line(next((line for line in lines if line.strip()), ""), _OUTCOME_LIMIT)


def _find_changes(call: _AnsweredCall, root: str | None) -> tuple[FileChange, ...]:
    """Return the files that a successful call changed.

    Only edits change files, by their patch or else by their name, and commands that hold a patch.
    """
    if call.kind not in ("terminal", "file_edit"):
        return ()
    arguments = call.arguments
    values = arguments.values() if isinstance(arguments, dict) else (arguments,)
    patched = [
        FileChange(key, action)
        for value in values
        for path, action in patches.list_patch_changes(value)
        if (key := normalise_path(scrub_text(path), root))
    ]
    if patched or call.kind == "terminal" or not isinstance(arguments, dict):
        return merge_changes(patched)
    words = f"{call.name} {arguments.get('command', '')}".lower()
    action = next((action for word, action in CHANGE_WORDS if word in words), "modified")
    if action == "written":
        action = "created" if _SAYS_CREATED.search(call.result[:200]) else "modified"
    return merge_changes(FileChange(path, action) for path in call.files)


def find_outcome(result: str, fields: JsonFields | None = None) -> str:
    """Return the last informative line of a command's result, in one line; "" for none.

    ``fields`` are those of a result that is a JSON object, {} of any other (None: not read yet).
    """
    if fields is None:
        fields = parse_object(result)
    output = result
    if fields:
        texts = (get_at_path(path, fields) for path in OUTPUT_FIELDS)
        output = next((each for each in texts if isinstance(each, str) and each.strip()), result)
    output = output[-OUTPUT_READ_LIMIT:]
    end = scrub_text(output[output.find("\n", max(0, len(output) - OUTPUT_END_LIMIT)) + 1 :])
    # A tag that is closed there may begin before.
    outcome = "" if "</" in end else _find_informative_line(end)
    return outcome or _find_informative_line(scrub_text(output))


def _find_informative_line(output: str) -> str:
    for line in reversed(strip_program_tags(output).splitlines()):
        bare = line.strip()
        if _HAS_WORD.search(bare) and not _WRAPPER_LINE.fullmatch(bare):
            return flatten_to_line(line, _OUTCOME_LIMIT)
    return ""


def describe_failure(
    result: str, fields: JsonFields | None = None, language: Language = "en"
) -> str:
    """Return why a call failed; where the user refused it, the user's reasons.

    ``fields`` as for `find_outcome`.
    """
    reason = extract_rejection_reason(result)
    if reason:
        refused = render_phrase("refused", language) + render_phrase("colon", language) + reason
        return flatten_to_line(refused, FAILURE_LIMIT)
    return find_error_text(result, fields)


def strip_heredocs(command: str) -> str:
    """Return a command without its here-documents after their first lines."""
    if "<<" not in command:
        return command
    return _HEREDOC.sub(
        lambda found: (
            found[0] if len(found[3]) < _HEREDOC_LIMIT else f"{found[1]}{SUMMARY_ELLIPSIS}\n"
        ),
        command[:_COMMAND_READ_LIMIT],
    ).rstrip()
