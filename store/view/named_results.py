"""What stands for a cleared result: one line that says what was there.

The line is a function of the result and of the call that it answers, so it is the same in every
request. Both change by a redaction or an erasure alone, so until there is one it is kept in memory:
a later view or check reads none of the contents that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import and_, select

from ..database import Statement, messages, tool_results
from ..errors import VERIFY, Damaged
from ..history import lines, load_calls
from ..messages import content_text, decode
from ..policy import Policy
from ..ready import Language, phrase
from ..summaries import extract_command
from ..text import ELLIPSIS, json_object, one_line
from ..tokens import estimate, message_tokens
from ..tools import best_first, call_paths, names_in
from .context import ViewContext
from .log_messages import attempt_rule
from .made_once import Result, made_once

LONGEST_LINE = 500
"""Code points of a line, what the policy has it begin with included."""
LONGEST_TARGET = 60
"""Code points of a file or command in it: the call itself stays in sight."""
LARGEST_COUNT = 999
"""A number in JSON that is no larger counts something, and is no name."""

_m, _r = messages, tool_results
_PLACE = ("tree_id", "branch", "seq")
_there = and_(*(_r.c[name] == _m.c[name] for name in _PLACE))
CLEARED = Statement(
    select(_m.c.content_form, _m.c.content, _r.c.exit_code)
    .join_from(_m, _r, _there)
    .where(lines.at_place(_m))
)


class Answer(NamedTuple):
    """A result, and the place of the call that it answers: of its message, and in that message."""

    result: Result
    call: tuple[int, int] | None


class Named(NamedTuple):
    """A line that stands for a result, the tokens that it saves, and those that it has."""

    line: str
    saved: int
    tokens: int


NOTHING_SAVED = Named("", -1, 0)
"""What stands for a result whose line cannot be made: it saves too little to be used."""
Lines = dict[int, Named]
"""The lines of results, by their positions."""


def line_begin(policy: Policy) -> str:
    """Return what each line begins with."""
    if not policy.recall:
        return policy.any_tool_placeholder
    return f"{policy.any_tool_placeholder} {policy.recall_notice}"


def named(context: ViewContext, answers: Sequence[Answer]) -> Lines:
    """Return what stands for results, by position; nothing does where it would save too little.

    A short result stays: its line would save little, and have less of what it says.
    """
    lines = lines_of(context, answers)
    found = ((each.result, lines[each.result.seq]) for each in answers)
    return {result.seq: line for result, line in found if _saves_enough(context, result, line)}


def _saves_enough(context: ViewContext, result: Result, line: Named) -> bool:
    """Tell whether a line is half as long as what it stands for, or less; if asked, much less."""
    least = context.policy.min_saving
    if least and result.length - len(line.line) < least:
        return False
    return line.saved >= line.tokens


def lines_of(context: ViewContext, answers: Sequence[Answer]) -> Lines:
    """Return the line that says what was in each of some results, by position."""
    by_result = {each.result: each for each in answers}

    def read(results: list[Result]) -> dict[Result, Named]:
        return {each: _read(context, by_result[each]) for each in results}

    name = (
        "line",
        context.policy.language,
        line_begin(context.policy),
        context.pointer.project_root,
    )
    known = made_once(context, name, by_result, read)
    return {each.seq: known[each] for each in by_result}


def _read(context: ViewContext, answer: Answer) -> Named:
    """Return the line of a result whose content has to be read."""
    result = answer.result
    place = {"tree_id": result.tree_id, "branch": result.branch, "seq": result.seq}
    form, content, exit_code = CLEARED.one(context.connection, **place)
    value = decode(content) if form == "json" and content is not None else content
    arguments = None if answer.call is None else _arguments(context, *answer.call)
    language = context.policy.language

    def made() -> Named:
        said = "\n".join(_texts_in(content_text(value) or content or ""))
        told = _told(result, _target(context, answer, arguments), said, exit_code, language)
        names = names_in(_seen_from(context.pointer.project_root, said))
        ellipsis = phrase("ellipsis", language)
        begins = one_line(f"{line_begin(context.policy)} {told}", LONGEST_LINE, ellipsis=ellipsis)
        line = _line(begins, best_first(names))
        tokens = estimate(line)
        return Named(line, _tokens(value) - tokens, tokens)

    return attempt_rule("any_tool", made, otherwise=NOTHING_SAVED)


def _tokens(content: Any) -> int:
    """Return the tokens of a content, its pictures included."""
    nothing = message_tokens({"content": ""}, estimate)
    return message_tokens({"content": content}, estimate) - nothing


def _seen_from(root: str | None, text: str) -> str:
    """Return a text with the root and what is below it as they are seen from there: shorter."""
    folder = (root or "").rstrip("/")
    return _below(folder).sub(_seen, text) if folder else text


@lru_cache(maxsize=64)
def _below(folder: str) -> re.Pattern[str]:
    """Return the pattern of a folder, and of the slash behind it where a name follows.

    What stands before is asked behind it: what begins with a text is found thirty times as fast.
    """
    there = re.escape(folder)
    return re.compile(rf"{there}(?<![\w.~/-]{there})(?:/(?=[\w.])|(?![\w.-]))")


def _seen(found: re.Match[str]) -> str:
    return "" if found[0].endswith("/") else "."


def _told(result: Result, target: str, said: str, exit_code: int | None, language: Language) -> str:
    """Return what a line says of a result before it names what was in it."""
    of = " ".join(filter(None, (result.tool_name, target)))
    ended = "" if exit_code is None else phrase("exit", language, code=exit_code)
    lines = phrase("lines", language, count=len(said.splitlines()))
    return ", ".join(filter(None, (of, ended, lines)))


def _texts_in(text: str) -> Iterator[str]:
    """Yield the texts of a result that is a JSON object, without what JSON makes of line ends."""
    fields = json_object(text)
    return filter(None, _leaves(fields)) if fields else iter((text,))


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts in a value, and the numbers that are long enough to be names."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    elif isinstance(value, str):
        yield value.removesuffix("\n")
    elif isinstance(value, int) and value > LARGEST_COUNT:
        yield str(value)


def _target(context: ViewContext, answer: Answer, arguments: Any) -> str:
    """Return the file or the command of a call, "" where it is not known."""
    if answer.call is None:
        return ""
    ellipsis = phrase("ellipsis", context.policy.language)
    return describe_target(arguments, answer.result.kind, context.pointer.project_root, ellipsis)


def describe_target(
    arguments: Any, kind: str | None, project_root: str | None, ellipsis: str = ELLIPSIS
) -> str:
    """Return the file or the command in the arguments of a tool of a kind, as a line names it."""
    files = call_paths(arguments, project_root).paths
    command = extract_command(arguments) if kind == "terminal" or not files else None
    target = command or "".join(each.path for each in files[:1])
    return one_line(_seen_from(project_root, target), LONGEST_TARGET, ellipsis=ellipsis)


def _arguments(context: ViewContext, seq: int, position: int) -> Any:
    place = context.raw.place(seq)
    run = {"tree_id": place["tree_id"], "branch": place["branch"], "first": seq, "last": seq}
    calls = load_calls(context.connection, run).get(seq, [])
    if not 0 <= position < len(calls):
        raise Damaged(f"there is no call {position} at position {seq}; {VERIFY}")
    call = calls[position]
    function = call.get("function") if isinstance(call, dict) else None
    return function.get("arguments") if isinstance(function, dict) else None


def _line(line: str, names: Iterator[str]) -> str:
    """Return a line with as many names behind it as there is room for."""
    between = ": "
    for name in names:
        if len(line) + len(between) + len(name) > LONGEST_LINE:
            break
        line += between + name
        between = ", "
    return line
