"""The texts that are sent in place of results, of arguments of calls, and of media.

**Lines.** A cleared result becomes one line that describes its content. The line depends only on
the result and on the call that it answers, so it is the same in every request.

**Short forms.** A result of a finished turn is sent in a short form that its tool allows.

**Arguments.** The texts in the arguments of old calls are cut: a text that a model wrote into a
file is in the file. Each text keeps its beginning, and the arguments keep their JSON structure.

**Media.** The newest pictures, sounds and files of results are sent, the older ones are described.
A screenshot is a million characters of base64, and costs its tokens again in every request that
follows, so the old ones are replaced first.

Results change only by a redaction or an erasure. So lines, and the savings of short forms, are
cached until the next one: a later view or check reads none of the contents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, select

from ..database import Statement, json_sql, messages, tool_results
from ..errors import VERIFY_HINT, Damaged
from ..history import Segment, lines, load_calls, restore_contents
from ..messages import Message, decode, extract_content_text
from ..phrases import Language, render_phrase
from ..policy import Policy, PolicyToolKind
from ..summaries import extract_command
from ..text import ELLIPSIS, parse_object, truncate, truncate_to_line
from ..tokens import count_message_tokens, estimate, estimate_size
from ..tools import compress, count_names, find_call_paths, rank_names
from .log_messages import attempt_rule
from .visible_set import ViewContext

LONGEST_LINE = 500
"""Code points of a line, its beginning by the policy included."""
LONGEST_TARGET = 60
"""Code points of a file or command in it: the call itself is still sent."""
LARGEST_COUNT = 999
"""A number in JSON that is no larger counts something, and is no name."""
LONGEST_ARGUMENT = 100
"""Code points that a text among the arguments keeps."""
LONGEST_STAND_IN = 300
"""Code points of its placeholder, its names included."""
_DEFINITION = re.compile(
    r"^[ \t+]*(?:(?:export|pub|async|static|public|private)[ \t]+)*"
    r"(?:def|class|func|function|fn|struct|enum|trait|interface|type|const)[ \t]+(\w{3,60})",
    re.MULTILINE,
)
"""A line of a program that defines a name."""
MEDIA_RULE = "picture"
"""The rule of entries whose media were replaced, and the name of its reason."""
PAST_MEDIA, UNREADABLE_MEDIA = "past_picture", "unreadable_picture"
"""The names of the other reasons of that rule."""
SCREENSHOT = "computer_screenshot"
"""The type of the result of a computer's call."""

_m, _r = messages, tool_results
_PLACE_COLUMNS = ("tree_id", "branch", "seq")
CLEARED_RESULT = Statement(
    select(_m.c.seq, _r.c.exit_code, _m.c.content_form, _m.c.content)
    .join_from(_m, _r, and_(*(_r.c[name] == _m.c[name] for name in _PLACE_COLUMNS)))
    .where(lines.match_place(_m))
)
RESULT_CONTENTS = Statement(
    select(_m.c.seq, _m.c.content_form, _m.c.content)
    .where(lines.match_run(_m))
    .where(_m.c.seq.in_(json_sql.select_positions("wanted")))
    .order_by(_m.c.seq)
)
_BRANCH_KEY = attrgetter("tree_id", "branch")


class NarrowResult(NamedTuple):
    """A tool result as narrow rows know it; ``length`` in code points, ``size`` in bytes."""

    tree_id: int
    branch: int
    seq: int
    tool_name: str | None
    kind: PolicyToolKind | None
    length: int
    size: int
    failed: bool


make_narrow_result: Callable[[tuple[Any, ...]], NarrowResult] = partial(tuple.__new__, NarrowResult)
"""Builds a result from its fields, in C because there may be thousands."""


class CallAnswer(NamedTuple):
    """A result, and the place of its call: the position of the message, and the index in it."""

    result: NarrowResult
    call: tuple[int, int] | None


class ResultLine(NamedTuple):
    """The line in place of a result, the tokens that it saves, and the tokens that it takes."""

    line: str
    saved: int
    tokens: int


NO_LINE = ResultLine("", -1, 0)
"""The value for a result whose line cannot be made; it saves too little to be used."""
ResultLines = dict[int, ResultLine]
"""The lines of results, by their positions."""


def load_shorter_lines(context: ViewContext, answers: Sequence[CallAnswer]) -> ResultLines:
    """Return the lines of results, by position, where a line saves enough.

    A line is half as long as its result, or less, and saves the policy's ``min_saving``. A short
    result stays: its line would save little, and say less.
    """
    lines = load_result_lines(context, answers)
    least = context.policy.min_saving
    shorter: ResultLines = {}
    for result, _ in answers:
        line = lines[result.seq]
        saves_least = not least or result.length - len(line.line) >= least
        if saves_least and line.saved >= line.tokens:
            shorter[result.seq] = line
    return shorter


def load_result_lines(context: ViewContext, answers: Sequence[CallAnswer]) -> ResultLines:
    """Return the lines of results, by position."""
    by_result = {each.result: each for each in answers}

    def make(results: list[NarrowResult]) -> dict[NarrowResult, ResultLine]:
        return {each: _load_result_line(context, by_result[each]) for each in results}

    policy = context.policy
    name = ("line", policy.language, _render_line_prefix(policy), context.pointer.project_root)
    made = context.cache.load_or_compute(name, by_result, make)
    return {each.seq: made[each] for each in by_result}


def _render_line_prefix(policy: Policy) -> str:
    """Return the beginning of each line."""
    if not policy.recall:
        return policy.any_tool_placeholder
    return f"{policy.any_tool_placeholder} {policy.recall_notice}"


def _load_result_line(context: ViewContext, answer: CallAnswer) -> ResultLine:
    """Return the line of a result, reading its content and the arguments of its call."""
    result = answer.result
    place = {"tree_id": result.tree_id, "branch": result.branch, "seq": result.seq}
    row = CLEARED_RESULT.one(context.connection, **place)
    (whole,) = restore_contents(context.connection, place, [row])
    _, exit_code, form, content = whole
    value = decode(content) if form == "json" and content is not None else content
    arguments = None if answer.call is None else _load_arguments(context, *answer.call)

    def make() -> ResultLine:
        target = ""
        if answer.call is not None:
            ellipsis = render_phrase("ellipsis", context.policy.language)
            root = context.pointer.project_root
            target = describe_target(arguments, result.kind, root, ellipsis)
        text = extract_content_text(value)
        if not text and not isinstance(value, list):  # a list has pictures, and no words
            text = content or ""
        fields = parse_object(text)
        if fields:
            text = "\n".join(filter(None, _list_value_texts(fields)))
        line = _write_line(context, result.tool_name, target, text, exit_code)
        tokens = estimate(line)
        nothing = count_message_tokens({"content": ""}, estimate)
        saved = count_message_tokens({"content": value}, estimate) - nothing - tokens
        return ResultLine(line, saved, tokens)

    return attempt_rule("any_tool", make, otherwise=NO_LINE)


def _load_arguments(context: ViewContext, seq: int, position: int) -> Any:
    """Return the arguments of a call. Raises Damaged where there is no such call."""
    place = context.raw.place(seq)
    run = {"tree_id": place["tree_id"], "branch": place["branch"], "first": seq, "last": seq}
    calls = load_calls(context.connection, run).get(seq, [])
    if not 0 <= position < len(calls):
        raise Damaged(f"there is no call {position} at position {seq}; {VERIFY_HINT}")
    call = calls[position]
    function = call.get("function") if isinstance(call, dict) else None
    return function.get("arguments") if isinstance(function, dict) else None


def _write_line(
    context: ViewContext, tool_name: str | None, target: str, text: str, exit_code: int | None
) -> str:
    """Return a line: tool, target, exit code, count of lines, then as many names as fit."""
    language = context.policy.language
    parts = (
        " ".join(filter(None, (tool_name, target))),
        "" if exit_code is None else render_phrase("exit", language, code=exit_code),
        render_phrase("lines", language, count=len(text.splitlines())),
    )
    whole = f"{_render_line_prefix(context.policy)} {', '.join(filter(None, parts))}"
    line = truncate_to_line(whole, LONGEST_LINE, ellipsis=render_phrase("ellipsis", language))
    between = ": "
    for name in rank_names(count_names(_make_paths_relative(context.pointer.project_root, text))):
        if len(line) + len(between) + len(name) > LONGEST_LINE:
            break
        line += between + name
        between = ", "
    return line


def _list_value_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, and the numbers that are long enough to be names.

    Texts lose the line end that JSON tools add.
    """
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _list_value_texts(each)
    elif isinstance(value, str):
        yield value.removesuffix("\n")
    elif isinstance(value, int) and value > LARGEST_COUNT:
        yield str(value)


def describe_target(
    arguments: Any, kind: str | None, project_root: str | None, ellipsis: str = ELLIPSIS
) -> str:
    """Return the file or the command in the arguments of a tool of a kind, as a line names it."""
    files = find_call_paths(arguments, project_root).paths
    command = extract_command(arguments) if kind == "terminal" or not files else None
    target = command or "".join(each.path for each in files[:1])
    return truncate_to_line(
        _make_paths_relative(project_root, target), LONGEST_TARGET, ellipsis=ellipsis
    )


def _make_paths_relative(root: str | None, text: str) -> str:
    """Return a text with the root folder and paths below it written relative to the root."""
    folder = (root or "").rstrip("/")
    if not folder:
        return text
    return _build_folder_pattern(folder).sub(lambda found: "" if found[0][-1] == "/" else ".", text)


@lru_cache(maxsize=64)
def _build_folder_pattern(folder: str) -> re.Pattern[str]:
    """Return the pattern of a folder, and of the slash after it if a name follows.

    The character before the folder is tested after the name: a pattern that begins with plain text
    is found thirty times as fast.
    """
    name = re.escape(folder)
    return re.compile(rf"{name}(?<![\w.~/-]{name})(?:/(?=[\w.])|(?![\w.-]))")


class ShortSize(NamedTuple):
    """The length of a short form in code points, and its tokens."""

    length: int
    tokens: int


def shorten_result(
    content: object,
    tool_name: str | None,
    kind: PolicyToolKind | None,
    *,
    failed: bool,
    min_saving: int = 0,
    language: Language = "en",
) -> str | None:
    """Return the short form of a content that is text, None where nothing is shorter.

    Content with other parts than text has no short form, since these parts would be lost. More is
    kept of the output of a command that ``failed``.
    """
    text = content if isinstance(content, str) else ""
    if isinstance(content, list):
        is_text = all(isinstance(part, dict) and part.get("type") == "text" for part in content)
        text = extract_content_text(content) if is_text else ""
    if not text:
        return None
    apply = partial(compress, tool_name or "", text, kind=kind, failed=failed, language=language)
    short = attempt_rule("tool_output", apply, otherwise=text)
    return short if len(text) - len(short) >= max(1, min_saving) else None


def estimate_short_savings(context: ViewContext, results: Iterable[NarrowResult]) -> dict[int, int]:
    """Return about how many tokens short forms save, by position; only for shorter ones."""
    wanted = dict.fromkeys(results)
    language = context.policy.language
    measure = partial(_measure_short_forms, context.connection, language)
    sizes = context.cache.load_or_compute(("short", language), wanted, measure)
    least = max(1, context.policy.min_saving)
    return {
        result.seq: estimate_size(result.length, result.size) - short.tokens
        for result in wanted
        if (short := sizes[result]) and result.length - short.length >= least
    }


def _measure_short_forms(
    connection: Connection, language: Language, results: list[NarrowResult]
) -> dict[NarrowResult, ShortSize | None]:
    """Return the sizes of short forms, reading the results a branch at a time.

    None where a result has no shorter form, or cannot be found.
    """
    sizes: dict[NarrowResult, ShortSize | None] = dict.fromkeys(results)
    by_branch = sorted(results, key=_BRANCH_KEY)
    for (tree_id, branch), group in groupby(by_branch, key=_BRANCH_KEY):
        wanted = {result.seq: result for result in group}
        run = Segment(branch, min(wanted), max(wanted)).within(tree_id)
        rows = RESULT_CONTENTS.rows(connection, **run, wanted=json.dumps([*wanted]))
        for seq, form, content in restore_contents(connection, run, rows):
            result = wanted[seq]
            value = decode(content) if form == "json" and content is not None else content
            short = shorten_result(
                value, result.tool_name, result.kind, failed=result.failed, language=language
            )
            if short is not None:
                sizes[result] = ShortSize(len(short), estimate(short))
    return sizes


def cut_arguments(calls: list[Any], policy: Policy) -> list[Any]:
    """Return calls with the texts among their arguments cut."""
    return attempt_rule(
        "arguments", lambda: [_cut_call(call, policy) for call in calls], otherwise=calls
    )


AskingPlace = tuple[int, int]
"""The branch and the position of a message that may have calls."""


def estimate_cut_savings(context: ViewContext, before: int) -> dict[int, int]:
    """Return about how many tokens cuts save, by the positions of messages before one."""
    policy = context.policy
    name = ("cut", policy.language, policy.recall_notice if policy.recall else "")
    runs = context.shown(context.visible.first_kept, before - 1)
    places = [
        (run.branch, seq)  # of any message: calls are found when they are read
        for run in runs
        for seq in range(run.first, run.last + 1)
    ]
    saved = context.cache.load_or_compute(name, places, partial(_measure_cuts, context))
    return {place[1]: saved[place] for place in places if saved[place] > 0}


def _measure_cuts(context: ViewContext, places: list[AskingPlace]) -> dict[AskingPlace, int]:
    """Return the tokens that cuts save, reading the calls of a branch at a time."""
    savings = dict.fromkeys(places, 0)
    tree_id = context.pointer.tree_id
    for branch, group in groupby(places, key=itemgetter(0)):
        positions = [seq for _, seq in group]
        run = Segment(branch, min(positions), max(positions)).within(tree_id)
        for seq, calls in load_calls(context.connection, run).items():
            cut: Message = {"tool_calls": cut_arguments(calls, context.policy)}
            whole: Message = {"tool_calls": calls}
            saved = count_message_tokens(whole, estimate) - count_message_tokens(cut, estimate)
            savings[branch, seq] = saved
    return savings


def _cut_call(call: Any, policy: Policy) -> Any:
    """Return a call with its texts cut; arguments that are short or no JSON stay as they are."""
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if function is None or not isinstance(arguments, str) or len(arguments) <= LONGEST_ARGUMENT:
        return call
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return call
    cut = json.dumps(_cut_texts(value, policy), ensure_ascii=False)
    return call | {"function": {**function, "arguments": cut}}


def _cut_texts(value: Any, policy: Policy) -> Any:
    """Return a JSON value with its texts cut, at any depth."""
    if isinstance(value, str):
        return _write_stand_in(value, policy) if len(value) > LONGEST_ARGUMENT else value
    if isinstance(value, list):
        return [_cut_texts(each, policy) for each in value]
    if isinstance(value, dict):
        return {key: _cut_texts(each, policy) for key, each in value.items()}
    return value


def _write_stand_in(text: str, policy: Policy) -> str:
    """Return the placeholder of a text: its beginning, the number of its lines, its best names.

    The names that it defines come first.
    """
    beginning = truncate(
        text, LONGEST_ARGUMENT, ellipsis=render_phrase("ellipsis", policy.language)
    )
    notice = f"{policy.recall_notice} " if policy.recall else ""
    lines = render_phrase("lines", policy.language, count=len(text.splitlines()))
    stand_in = f"{beginning} {notice}[{lines}"
    between = ": "
    defined = _DEFINITION.findall(text[len(beginning) :])
    for name in dict.fromkeys((*defined, *rank_names(count_names(text)))):
        if name not in stand_in:
            if len(stand_in) + len(between) + len(name) > LONGEST_STAND_IN:
                break
            stand_in += between + name
            between = ", "
    return f"{stand_in}]" if len(stand_in) < len(text) else beginning
