"""The exact facts of what a compaction hides.

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
from ..history import ANSWERS, lines, segments_cte
from ..messages import decode
from ..policy import Policy
from ..ready import Language, phrase
from ..summaries import (
    HiddenFact,
    build_facts_ledger,
    describe_failure,
    extract_command,
    extract_message_text,
    find_outcome,
    strip_heredocs,
)
from ..text import json_object
from ..tools import failed, is_command
from ..view import ViewContext, has_failure_sign, is_of_kind

_walk = segments_cte()
_r, _c, _k, _p, _m = tool_results, tool_calls, tool_kinds, tool_result_paths, messages
_in_run = lines.in_run(_r)
# Run by run, not all of a line at once: joined with its runs, SQLite begins with the results of the
# whole tree.
_kind = func.coalesce(_k.c.kind, literal_column("'other'"))
_was_called_there = _r.c.call_seq.between(_walk.c.first, _walk.c.last)
_is_call = and_(
    _c.c.tree_id == bindparam("tree_id"),
    _c.c.branch == _walk.c.branch,
    _c.c.seq == _r.c.call_seq,
    _c.c.position == _r.c.call_position,
)
_is_told = or_(
    is_of_kind("terminal"),
    _r.c.looks_terminal == literal_column("1"),
    has_failure_sign,
)


Run = dict[str, int]
"""A run of a line as the values that the statements here are given."""


class _Result(NamedTuple):
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

    def ended(self, language: Language) -> str | None:
        """Return how a command ended, where that is known."""
        if self.exit_code is None:
            return None
        return phrase("exit", language, code=self.exit_code)


RESULTS = Statement(
    select(
        _r.c.branch,
        _r.c.seq,
        _r.c.tool_name,
        _kind,
        _r.c.exit_code,
        _r.c.error_prefix,
        _r.c.status,
        _r.c.has_stderr,
        _r.c.looks_terminal,
        _c.c.arguments_form,
        _c.c.arguments,
    )
    .select_from(_r)
    .outerjoin(_k, _k.c.name == _r.c.tool_name)
    .outerjoin(_walk, _was_called_there)
    .outerjoin(_c, _is_call)
    .where(_in_run, _is_told)
    .order_by(_r.c.seq),
    row=_Result,
)
"""The results of a run that the ledger tells of: output of commands, and errors."""


class _Call(NamedTuple):
    """A call of a run."""

    seq: int
    position: int
    tool_name: str
    kind: str
    arguments_form: str | None
    arguments: str | None

    def ended(self, language: Language) -> str:
        """Return how a command ended that nothing answers: it may have run, or not."""
        return phrase("unanswered", language)


_has_call = _r.c.call_seq.is_not(null())
_answered = select(_r.c.call_seq, _r.c.call_position).where(_in_run, _has_call)
# Not a join with the answers, which SQLite may scan for each call.
_is_unanswered = tuple_(_c.c.seq, _c.c.position).not_in(_answered)
UNANSWERED = Statement(
    select(
        _c.c.seq,
        _c.c.position,
        _c.c.name,
        _kind,
        _c.c.arguments_form,
        _c.c.arguments,
    )
    .select_from(_c)
    .outerjoin(_k, _k.c.name == _c.c.name)
    .where(lines.in_run(_c), _is_unanswered)
    .order_by(_c.c.seq, _c.c.position),
    row=_Call,
)
"""The calls of a run that nothing in it answers."""

_is_path = and_(
    _p.c.tree_id == bindparam("tree_id"),
    _p.c.branch == _r.c.branch,
    _p.c.seq == _r.c.seq,
)
PATHS = Statement(
    select(_p.c.path, _r.c.tool_name, _kind)
    .select_from(_r)
    .join(_p, _is_path)
    .outerjoin(_k, _k.c.name == _r.c.tool_name)
    .where(_in_run)
    .order_by(_p.c.seq, _p.c.path)
)
_content = select(_m.c.content_form, _m.c.content)
CONTENT = Statement(_content.where(lines.at_place(_m)))
TELLING = {"file_edit": 2, "file_read": 1}
"""What is said of a file that several tools touched.

That it was changed, else that it was read, else the last.
"""


LOOK_INTO_FOLDERS = ("search", "list")
"""Kinds of tools that name folders as well as files."""


def ledger_of(context: ViewContext, first: int, last: int) -> str:
    """Return the facts of a range of a line as the text that is sent with a summary."""
    policy = context.policy
    return build_facts_ledger(
        hidden_facts(context, first, last), policy.facts_chars, policy.language
    )


def hidden_facts(context: ViewContext, first: int, last: int) -> list[HiddenFact]:
    """Return the facts of a range of a line, oldest first.

    The policy says of what kind a tool is. A result belongs to the range that it stands in,
    wherever its call was made. Of errors as many as the policy's budget could take, the newest
    ones.
    """
    runs = context.told(first, last)
    results = list(_results(context, runs))
    outcomes = _outcomes(context, results) if context.policy.told_once else {}
    called: list[_Call | _Result] = [*_unanswered(context, runs), *results]
    commands = _commands(called, outcomes, context.policy.language)
    return [*_files(context, runs), *commands, *_errors(context, results)]


def _results(context: ViewContext, runs: list[Run]) -> Iterator[_Result]:
    kinds = json.dumps(dict(context.policy.tool_kinds))
    for run in runs:
        for row in RESULTS.rows(context.connection, **run, start=1, kinds=kinds):
            yield _as_known(row, context.policy)


def _files(context: ViewContext, runs: list[Run]) -> list[HiddenFact]:
    """Return what was done to each file."""
    touched = _touched(context, runs)
    return [HiddenFact("file", path, kind) for path, kind in touched.items()]


def _touched(context: ViewContext, runs: list[Run]) -> dict[str, str]:
    """Return what was done to each file, in the order in which they were touched last."""
    files: dict[str, str] = {}
    for run in runs:
        for path, tool_name, stored in PATHS.rows(context.connection, **run):
            kind = _kind_of(tool_name, stored, context.policy)
            if kind not in LOOK_INTO_FOLDERS or _has_ending(path):
                files[path] = _more_telling(files.pop(path, ""), kind)
    return files


def _has_ending(path: str) -> bool:
    """Tell whether a path ends as names of files do: what was searched may be a folder."""
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    return bool(dot) and ending.isalnum()


def _more_telling(before: str, kind: str) -> str:
    if TELLING.get(before, 0) > TELLING.get(kind, 0):
        return before
    return kind


def _unanswered(context: ViewContext, runs: list[Run]) -> list[_Call]:
    """Return the calls that no run of a line answers, neither their own nor a later one."""
    waiting: dict[tuple[int, int], _Call] = {}
    for run in runs:
        if waiting:
            for call_seq, position in ANSWERS.rows(context.connection, **run):
                waiting.pop((call_seq, position), None)
        for call in UNANSWERED.rows(context.connection, **run):
            waiting[call.seq, call.position] = call
    return [_as_known(call, context.policy) for call in waiting.values()]


_Row = TypeVar("_Row", _Result, _Call)


def _as_known(row: _Row, policy: Policy) -> _Row:
    """Return a result or a call whose tool is of the kind that a policy knows it for."""
    kind = _kind_of(row.tool_name, row.kind, policy)
    return row if kind == row.kind else row._replace(kind=kind)


def _kind_of(tool_name: str | None, stored: str, policy: Policy) -> str:
    """Return the kind of a tool: what the policy says, else what its name is known for."""
    if tool_name is None:
        return stored
    return policy.tool_kinds.get(tool_name, stored)


def _commands(
    called: list[_Call | _Result], outcomes: dict[int, str], language: Language
) -> Iterator[HiddenFact]:
    """Yield what was run, in the order of the results, with what it came to.

    A call without any stands where it was made.
    """
    for run in sorted(called, key=attrgetter("seq")):
        command = _command(run)
        if command:
            came = outcomes.get(run.seq, "")
            yield HiddenFact("command", strip_heredocs(command), run.ended(language), came)


def _outcomes(context: ViewContext, results: list[_Result]) -> dict[int, str]:
    """Return what the newest commands came to, by the positions of their results.

    As many as the policy's budget could take. What an error tells is left to it.
    """
    found: dict[int, str] = {}
    room = context.policy.facts_chars
    for result in reversed(results):
        if room > 0 and _command(result):
            outcome = _outcome(context, result)
            found[result.seq] = outcome
            room -= len(outcome)
    return found


def _outcome(context: ViewContext, result: _Result) -> str:
    text = _text_of(context, result)
    fields = json_object(text)
    outcome = find_outcome(text, fields)
    policy = context.policy
    if _failed(result, policy) and outcome in describe_failure(text, fields, policy.language):
        return ""
    return outcome


def _command(run: _Call | _Result) -> str | None:
    """Return what was run; None where it is no command, or its call is not known."""
    if run.kind != "terminal" or run.arguments is None:
        return None
    return extract_command(_decoded(run.arguments_form, run.arguments))


def _decoded(form: str | None, stored: str | None) -> Any:
    """Return what was given, of what was stored of it: JSON, or its own text."""
    if form == "json" and stored:
        return decode(stored)
    return stored


def _errors(context: ViewContext, results: list[_Result]) -> list[HiddenFact]:
    """Return the newest errors, until their texts have no more room."""
    errors: list[HiddenFact] = []
    seen: set[str] = set()
    room = context.policy.facts_chars
    for result in _failures(results, context.policy):
        if room <= 0:
            break
        error = _error(context, result)
        if error.text not in seen:
            room -= len(error.text)
        seen.add(error.text)
        errors.append(error)
    return errors[::-1]


def _failures(results: list[_Result], policy: Policy) -> Iterator[_Result]:
    """Yield the results that failed, the newest first."""
    for result in reversed(results):
        if _failed(result, policy):
            yield result


def _failed(result: _Result, policy: Policy) -> bool:
    command = is_command(result.tool_name, result.kind, result.looks_terminal, policy)
    return failed(result, policy, command=command)


def _error(context: ViewContext, result: _Result) -> HiddenFact:
    text = _text_of(context, result)
    told = describe_failure(text, language=context.policy.language)
    return HiddenFact("error", told, result.tool_name)


def _text_of(context: ViewContext, result: _Result) -> str:
    place = {**context.line, "branch": result.branch, "seq": result.seq}
    form, content = CONTENT.one(context.connection, **place)
    return extract_message_text({"content": _decoded(form, content)})
