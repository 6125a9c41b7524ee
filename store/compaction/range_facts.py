"""The exact facts of the range that a compaction hides.

Files touched, commands with their exit codes, errors. Models' summaries lose nearly all of them, so
they are read from the tables and added to every summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import and_, bindparam, func, literal_column, null, or_, select, tuple_

from ..database import (
    Statement,
    messages,
    tool_calls,
    tool_kinds,
    tool_result_paths,
    tool_results,
)
from ..history import ANSWERED_PLACES, build_segments, lines, restore_call, restore_contents
from ..messages import WHOLE_FORMS, decode
from ..phrases import Language, render_phrase
from ..policy import Policy
from ..summaries import (
    HiddenFact,
    describe_failure,
    extract_command,
    extract_message_text,
    find_outcome,
    strip_heredocs,
)
from ..text import parse_object
from ..tools import is_command_output, is_failed_result
from ..view import ViewContext, has_failure_sign, is_of_kind


class HiddenResult(NamedTuple):
    """A result of a run, and its call."""

    branch: int
    seq: int
    tool_name: str | None
    kind: str
    exit_code: int | None
    error_prefix: int
    status: str | None
    has_stderr: int
    looks_terminal: int
    arguments_form: str | None
    arguments: str | None
    call_seq: int
    call_position: int

    @property
    def call_place(self) -> tuple[int, int]:
        """The position of the message of its call, and the number of the call in it."""
        return self.call_seq, self.call_position

    def outcome(self, language: Language) -> str | None:
        """Return how a command ended, if that is known."""
        if self.exit_code is None:
            return None
        return render_phrase("exit", language, code=self.exit_code)


class UnansweredCall(NamedTuple):
    """A call of a run that has no result."""

    seq: int
    position: int
    tool_name: str
    kind: str
    arguments_form: str | None
    arguments: str | None

    @property
    def call_place(self) -> tuple[int, int]:
        """The position of its message, and its number in it."""
        return self.seq, self.position

    def outcome(self, language: Language) -> str:
        """Return that a command has no result: it may have run, or not."""
        return render_phrase("unanswered", language)


HiddenCall = TypeVar("HiddenCall", HiddenResult, UnansweredCall)

_results, _calls = tool_results.c, tool_calls.c
_call_segments = build_segments()
# Run by run, not all of a line at once: joined with its runs, SQLite begins with the results of the
# whole tree.
_result_in_run = lines.match_run(tool_results)
_hidden_result_kind = func.coalesce(tool_kinds.c.kind, literal_column("'other'"))
LISTED_RESULTS = Statement(
    select(
        _results.branch,
        _results.seq,
        _results.tool_name,
        _hidden_result_kind,
        _results.exit_code,
        _results.error_prefix,
        _results.status,
        _results.has_stderr,
        _results.looks_terminal,
        _calls.arguments_form,
        _calls.arguments,
        _results.call_seq,
        _results.call_position,
    )
    .select_from(tool_results)
    .outerjoin(tool_kinds, tool_kinds.c.name == _results.tool_name)
    .outerjoin(
        _call_segments, _results.call_seq.between(_call_segments.c.first, _call_segments.c.last)
    )
    .outerjoin(
        tool_calls,
        and_(
            _calls.tree_id == bindparam("tree_id"),
            _calls.branch == _call_segments.c.branch,
            _calls.seq == _results.call_seq,
            _calls.position == _results.call_position,
        ),
    )
    .where(
        _result_in_run,
        or_(
            is_of_kind("terminal"),
            _results.looks_terminal == literal_column("1"),
            has_failure_sign,
        ),
    )
    .order_by(_results.seq),
    row=HiddenResult,
)
"""The results of a run that the ledger lists: output of commands, and errors."""

_answered_calls = select(_results.call_seq, _results.call_position).where(
    _result_in_run, _results.call_seq.is_not(null())
)
# Not a join with the answers, which SQLite may scan for each call.
UNANSWERED_CALLS = Statement(
    select(
        _calls.seq,
        _calls.position,
        _calls.name,
        _hidden_result_kind,
        _calls.arguments_form,
        _calls.arguments,
    )
    .select_from(tool_calls)
    .outerjoin(tool_kinds, tool_kinds.c.name == _calls.name)
    .where(lines.match_run(tool_calls), tuple_(_calls.seq, _calls.position).not_in(_answered_calls))
    .order_by(_calls.seq, _calls.position),
    row=UnansweredCall,
)
"""The calls of a run that nothing in it answers."""

TOUCHED_PATHS = Statement(
    select(tool_result_paths.c.path, _results.tool_name, _hidden_result_kind)
    .select_from(tool_results)
    .join(
        tool_result_paths,
        and_(
            tool_result_paths.c.tree_id == bindparam("tree_id"),
            tool_result_paths.c.branch == _results.branch,
            tool_result_paths.c.seq == _results.seq,
        ),
    )
    .outerjoin(tool_kinds, tool_kinds.c.name == _results.tool_name)
    .where(_result_in_run)
    .order_by(tool_result_paths.c.seq, tool_result_paths.c.path)
)
HIDDEN_CONTENT = Statement(
    select(messages.c.seq, messages.c.content_form, messages.c.content).where(
        lines.match_place(messages)
    )
)
KIND_RANKS = {"file_edit": 2, "file_read": 1}
"""The kind listed for a file that several tools touched: the highest rank, else the last kind."""

FOLDER_KINDS = ("search", "list")
"""Kinds of tools that name folders as well as files."""


def load_hidden_facts(context: ViewContext, first: int, last: int) -> list[HiddenFact]:
    """Return the facts of a range of a line, oldest first.

    The policy may set the kind of a tool. A result belongs to the range of its own position,
    wherever its call was made. Of errors as many are listed as the policy's budget can take, the
    newest ones.
    """
    policy = context.policy
    runs = context.told(first, last)
    kinds = json.dumps(dict(policy.tool_kinds))
    results = [
        _apply_policy_kind(row, policy)
        for run in runs
        for row in LISTED_RESULTS.rows(context.connection, **run, start=1, kinds=kinds)
    ]
    # A searched path may be a folder; a file is known by the ending of its name.
    files: dict[str, str] = {}
    for run in runs:
        for path, tool_name, stored_kind in TOUCHED_PATHS.rows(context.connection, **run):
            kind = _find_kind(tool_name, stored_kind, context.policy)
            _, dot, ending = path.rpartition("/")[2].rpartition(".")
            if kind in FOLDER_KINDS and not (dot and ending.isalnum()):
                continue
            earlier = files.pop(path, "")
            outranks = KIND_RANKS.get(earlier, 0) > KIND_RANKS.get(kind, 0)
            files[path] = earlier if outranks else kind
    return [
        *[HiddenFact("file", path, kind) for path, kind in files.items()],
        *_list_commands(context, runs, results),
        *_list_errors(context, results),
    ]


def _list_commands(
    context: ViewContext, runs: list[dict[str, int]], results: list[HiddenResult]
) -> Iterator[HiddenFact]:
    """Yield the commands, in the order of their results, with their output in short.

    A call without a result has the place where it was made. It may be answered by a later run of
    the line.
    """
    policy = context.policy
    unanswered: dict[tuple[int, int], UnansweredCall] = {}
    for run in runs:
        if unanswered:
            for call_seq, position in ANSWERED_PLACES.rows(context.connection, **run):
                unanswered.pop((call_seq, position), None)
        for call in UNANSWERED_CALLS.rows(context.connection, **run):
            unanswered[call.seq, call.position] = _apply_policy_kind(call, policy)
    outputs = _shorten_outputs(context, results) if policy.told_once else {}
    calls: list[UnansweredCall | HiddenResult] = [*unanswered.values(), *results]
    for each in sorted(calls, key=attrgetter("seq")):
        command = _parse_call_command(context, each)
        if command:
            output = outputs.get(each.seq, "")
            yield HiddenFact(
                "command", strip_heredocs(command), each.outcome(policy.language), output
            )


def _shorten_outputs(context: ViewContext, results: list[HiddenResult]) -> dict[int, str]:
    """Return the output in short of the newest commands, by the positions of their results.

    As many as the policy's budget can take. Text that an error repeats is left to the error.
    """
    policy = context.policy
    outputs: dict[int, str] = {}
    room = policy.facts_chars
    for result in reversed(results):
        if room <= 0:
            break
        if not _parse_call_command(context, result):
            continue
        text = _load_result_text(context, result)
        fields = parse_object(text)
        output = find_outcome(text, fields)
        if _is_failure(result, policy) and output in describe_failure(
            text, fields, policy.language
        ):
            output = ""
        outputs[result.seq] = output
        room -= len(output)
    return outputs


def _list_errors(context: ViewContext, results: list[HiddenResult]) -> list[HiddenFact]:
    """Return the newest errors, until their texts have no more room."""
    errors: list[HiddenFact] = []
    texts: set[str] = set()
    room = context.policy.facts_chars
    for result in reversed(results):
        if room <= 0:
            break
        if not _is_failure(result, context.policy):
            continue
        text = describe_failure(
            _load_result_text(context, result), language=context.policy.language
        )
        if text not in texts:
            room -= len(text)
        texts.add(text)
        errors.append(HiddenFact("error", text, result.tool_name))
    return errors[::-1]


def _apply_policy_kind(call: HiddenCall, policy: Policy) -> HiddenCall:
    """Return a result or a call with the kind that a policy sets for its tool, if it does."""
    kind = _find_kind(call.tool_name, call.kind, policy)
    return call if kind == call.kind else call._replace(kind=kind)


def _find_kind(tool_name: str | None, stored: str, policy: Policy) -> str:
    """Return the kind of a tool by the policy, else the kind that is stored for its name."""
    return stored if tool_name is None else policy.tool_kinds.get(tool_name, stored)


def _parse_call_command(context: ViewContext, call: UnansweredCall | HiddenResult) -> str | None:
    """Return the command of a call; None if it is no command, or its call is not known."""
    if call.kind != "terminal" or call.arguments is None:
        return None
    given: tuple[str | None, str | None] = (call.arguments_form, call.arguments)
    if call.arguments_form in WHOLE_FORMS:
        seq, number = call.call_place
        given = restore_call(context.connection, context.raw.place(seq), number, *given)
    return extract_command(_decode_form(*given))


def _is_failure(result: HiddenResult, policy: Policy) -> bool:
    command = is_command_output(result.tool_name, result.kind, result.looks_terminal, policy)
    return is_failed_result(result, policy, command=command)


def _load_result_text(context: ViewContext, result: HiddenResult) -> str:
    place = {**context.line, "branch": result.branch, "seq": result.seq}
    row = HIDDEN_CONTENT.one(context.connection, **place)
    ((_, form, content),) = restore_contents(context.connection, place, [row])
    return extract_message_text({"content": _decode_form(form, content)})


def _decode_form(form: str | None, stored: str | None) -> Any:
    """Return the value of a stored text: JSON, or the text itself."""
    return decode(stored) if form == "json" and stored else stored
