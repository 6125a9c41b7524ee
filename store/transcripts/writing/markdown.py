"""A session as a page for people: who said what, and when; calls and results folded.

The page is ours, the texts on it are not. A message that says ``## Assistant`` must not look like
an answer, a tag in it must do nothing, and no picture of it may be fetched. So the text of a
message stands in a quotation, calls and results in fences, and names in one line. In a quotation
and in a line a tag and a picture get a backslash in front, which a reader does not see. In code one
would be seen, so code is left as it is, but only where every renderer sees code: in a fence that
begins a line of the message, and in spans of a line before which no backtick of its paragraph is
left open. Where that is in doubt the rest of the message is no code: a backslash too many is seen,
one too few is a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...records import Message, extract_content_text, find_message_time
from ...text import truncate_to_line
from ..parser_events import get_fields, get_list, render_json
from .sessions import render_iso_moment

ROLE_HEADINGS = {"user": "User", "assistant": "Assistant", "tool": "Result", "system": "System"}
FOLD_LINE_LENGTH = 100
"""Characters of the title of a fold."""


def render_markdown_page(title: str, messages: Iterable[Message]) -> Iterator[str]:
    """Yield the paragraphs of a page."""
    yield f"# {_replace_surrogates(_render_safe_line(title))}\n"
    for message in messages:
        yield _replace_surrogates("\n".join(_render_message_paragraphs(message)))


def _replace_surrogates(text: str) -> str:
    """Return a text without halves of characters, which no file holds."""
    return text.encode("utf-8", "replace").decode()


def _render_message_paragraphs(message: Message) -> Iterator[str]:
    """Yield what a message says, under a heading; a result is folded."""
    role = str(message.get("role"))
    content = message.get("content")
    if isinstance(content, str):
        text = content
    elif not isinstance(content, list):
        text = "" if content is None else render_json(content)
    else:
        texts = []
        for part in content:
            said = extract_content_text([part])
            if isinstance(part, dict) and not said:
                said = f"*[{part.get('type')}]*"
            texts.append(said or render_json(part))
        text = "\n\n".join(texts)
    if role == "tool":
        yield from _render_folded_text(f"Result {truncate_to_line(text, FOLD_LINE_LENGTH)}", text)
        return
    heading = ROLE_HEADINGS.get(role) or _render_safe_line(role)
    yield f"## {heading}{_render_message_moment(message)}\n"
    if text:
        yield f"{_render_quotation(text)}\n"
    for call in map(get_fields, get_list(message.get("tool_calls"))):
        function = get_fields(call.get("function"))
        arguments = function.get("arguments")
        asked = arguments if isinstance(arguments, str) else render_json(arguments)
        yield from _render_folded_text(
            f"{function.get('name')} {truncate_to_line(asked, FOLD_LINE_LENGTH)}", asked
        )


def _render_message_moment(message: Message) -> str:
    moment = find_message_time(message)
    return "" if moment is None else f" · {render_iso_moment(moment)[:19].replace('T', ' ')}"


def _render_folded_text(head: str, text: str) -> Iterator[str]:
    """Yield a text in a fence that is longer than any it holds, under a line that opens it."""
    runs = re.findall("`{3,}", text)
    fence = "`" * max([3, *(len(run) + 1 for run in runs)])
    summary = (
        truncate_to_line(head, 2 * FOLD_LINE_LENGTH)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
    yield f"<details><summary>{summary}</summary>\n"
    yield f"{fence}\n{text}\n{fence}\n"
    yield "</details>\n"


def _render_safe_line(text: str) -> str:
    """Return a text as one line of the page, with nothing in it that acts."""
    line = truncate_to_line(text, FOLD_LINE_LENGTH)
    return _escape_line(line, _find_code_spans(line) or [])


def _render_quotation(text: str) -> str:
    """Return a text as a quotation, with nothing in it that acts."""
    lines = _escape_lines(_LINE_BREAK.split(text))
    return "\n".join(f"> {line}" if line else ">" for line in lines)


_LINE_BREAK = re.compile(r"\r\n|[\r\n]")
_CODE_FENCE = re.compile(r"(`{3,})[^`|]*|(~{3,})[^|]*")
_ACTIVE_MARKUP = re.compile(r"(\\*)(<|!\[)")
"""What begins a tag or a picture, with the backslashes before it."""


def _escape_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text, with a backslash before each sign that acts outside of code."""
    fence, is_open, is_doubtful = "", False, False
    for line in lines:
        if fence and not is_doubtful:
            yield line
            said = line.strip()
            if len(said) >= len(fence) and not said.strip(fence[0]):
                fence = "" if re.fullmatch(rf" {{0,3}}{fence}+[ \t]*", line) else fence
                is_doubtful = bool(fence)
            continue
        opened = None if is_doubtful else _CODE_FENCE.fullmatch(line)
        if opened:
            fence, is_open = str(opened[1] or opened[2]), False
            yield line
            continue
        is_doubtful = is_doubtful or "```" in line or "~~~" in line
        is_open = is_open and bool(line.strip(" \t"))
        spans = None if is_open or is_doubtful else _find_code_spans(line)
        is_open = spans is None
        yield _escape_line(line, spans or [])


def _find_code_spans(line: str) -> list[tuple[int, int]] | None:
    """Return where the code of a line begins and ends; None where that cannot be told for sure.

    In a table a line is divided before its code is found, and a backslash may belong to a backtick.
    """
    if "`" not in line:
        return []
    if "\\" in line or "|" in line:
        return None
    spans, start = [], 0
    runs = [*re.finditer("`+", line)]
    while start < len(runs):
        run = runs[start]
        later = range(start + 1, len(runs))
        ends = (n for n in later if len(runs[n][0]) == len(run[0]))
        end = next(ends, None)
        if end is None:
            return None
        spans.append((run.start(), runs[end].end()))
        start = end + 1
    return spans


def _escape_line(line: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a line with a backslash before each sign that would act outside of its code."""
    written, last = [], 0
    for first, end in (*spans, (len(line), len(line))):
        written += [_ACTIVE_MARKUP.sub(_escape_active_markup, line[last:first]), line[first:end]]
        last = end
    return "".join(written)


def _escape_active_markup(found: re.Match[str]) -> str:
    """Return what acts with a backslash that is not one of a pair."""
    backslashes, active = found.groups()
    return f"{backslashes}\\{active}" if len(backslashes) % 2 == 0 else found[0]
