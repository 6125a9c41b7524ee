"""Messages, and pages of them, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from markupsafe import Markup

from ..clock import EPOCH
from ..phrases import Language, render_phrase
from ..text import truncate_to_line
from .flow import Alternatives, Band, Item, ShownCall, ShownGroup, group_items
from .markdown_text import render_markdown
from .message_parts import Part, render_json_text
from .shown_text import clean_text
from .source_code import render_code
from .templates import find_macro, load_style_sheet

PAGE_COLORED = 400_000
"""Characters of code in calls that get colors on a page; further ones have none."""
PROMPT_ROLES, LONGEST_PROMPT = ("system", "developer"), 400
"""The roles of prompts, and the characters from which on they are folded."""
GIST_LENGTH = 120
GIST_KEYS = (
    *("command", "cmd", "file_path", "path", "filePath", "filename", "pattern", "query", "url"),
    *("description", "prompt", "skill"),
)
"""The arguments that tell the most about a call, the first one first."""
COMMAND_KEYS = ("command", "cmd", "script")
CODE_KEYS = ("content", "file_text", "new_string", "old_string", "new_str", "old_str", "code")
OLD_KEYS, NEW_KEYS = ("old_string", "old_str", "oldText"), ("new_string", "new_str", "newText")
PATCH_BEGINNINGS = ("*** Begin Patch", "diff --git ", "--- ", "Index: ")
"""How a patch begins."""
BODY_MARK: Literal["\x00"] = "\x00"
"""The placeholder of the body in a rendered frame: no text of a page has it."""


@dataclass
class _Writing:
    """The written part of a page: the last day and role, and the code that got colors."""

    language: Language
    day: str = ""
    role: str = ""
    colored: int = 0

    def say(self, code: str) -> str:
        """Return a label of a page."""
        return render_phrase(f"page_{code}", self.language)


class _Field(NamedTuple):
    """An argument of a call: its name, its value, and whether that is a line of text."""

    name: str
    text: Markup | str
    is_line: bool
    change: str = ""


def render_messages(
    items: Iterable[Item], *, language: Language = "en", day: str = ""
) -> Iterator[Markup]:
    """Yield messages, bands and alternatives as HTML, for the inside of a page.

    `day` is the one that they stand under already, in ISO 8601.
    A result of a tool stands with its call where both are near. The style sheet of
    `load_style_sheet` belongs to it. Items are taken as they are needed.
    """
    return _render_items(items, _Writing(language, day))


def _render_items(items: Iterable[Item], writing: _Writing) -> Iterator[Markup]:
    for each in group_items(items):
        if isinstance(each, ShownGroup):
            yield _render_group(each, writing)
        elif isinstance(each, Band):
            text = None if each.text is None else render_markdown(each.text)
            yield find_macro("band_begin")(each.title, text)
            yield from _render_items(each.items, writing)
            yield Markup("</div></details>\n")
            writing.role = ""
        else:
            yield _render_alternatives(each, writing)


def _render_alternatives(given: Alternatives, writing: _Writing) -> Markup:
    day, lines = writing.day, []
    order = [number for number in range(len(given.lines)) if number != given.current]
    rendered = {}
    for number in (*order, given.current):
        writing.role, writing.day = "", day
        rendered[number] = Markup("").join(_render_items(given.lines[number], writing))
    lines = [rendered[number] for number in range(len(given.lines))]
    return find_macro("alternatives")(given.name, given.current, lines, writing.say)


def _render_group(group: ShownGroup, writing: _Writing) -> Markup:
    """Return a message with its calls, under the day where that is a new one."""
    moment = _render_moment(group.at)
    day = moment[:10]
    is_new_day = bool(day) and day != writing.day
    goes_on = group.role == writing.role and group.role == "assistant" and not is_new_day
    writing.day, writing.role = day or writing.day, group.role
    return find_macro("message")(
        group,
        day=day if is_new_day else "",
        moment=moment,
        goes_on=goes_on,
        parts=[_render_said(part) for part in group.parts],
        folded=_find_fold_line(group),
        thoughts=[render_markdown(each) for each in group.thoughts],
        calls=[_render_call(each, writing) for each in group.calls],
        results=[[_render_output(part) for part in each.parts] for each in group.results],
        say=writing.say,
        label=_find_label(group.role, writing),
    )


def _find_fold_line(group: ShownGroup) -> str:
    """Return the line under which the texts of a message are folded; "" if they are not."""
    text = " ".join(part.text for part in group.parts if part.kind == "text")
    is_prompt = group.role in PROMPT_ROLES and len(text) > LONGEST_PROMPT
    return truncate_to_line(text, GIST_LENGTH) if is_prompt or group.shown.folded else ""


def _find_label(role: str, writing: _Writing) -> str:
    known = role in ("user", "assistant", "tool", "system", "developer")
    return writing.say(role) if known else truncate_to_line(role, 20)


def _render_moment(at: int | None) -> str:
    """Return a time as UTC in ISO 8601, to the second; "" for none that a calendar has."""
    if at is None:
        return ""
    try:
        moment: datetime = EPOCH + timedelta(milliseconds=at)
    except OverflowError:
        return ""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _render_said(part: Part) -> Markup:
    """Return a piece of a message."""
    if part.kind == "text":
        return render_markdown(part.text)
    return _render_output(part)


def _render_output(part: Part) -> Markup:
    """Return a piece of a tool's result: text as it is."""
    return find_macro("output")(part.kind, part.text)


def _render_call(shown: ShownCall, writing: _Writing) -> Markup:
    call, result = shown.call, shown.result
    fields = [*_list_fields(call.fields, writing)]
    if call.text:
        fields.append(_Field("", _color(call.text, _guess_language(call.text), writing), False))
    return find_macro("call")(
        shown,
        gist=find_gist(call.fields) or truncate_to_line(call.text, GIST_LENGTH),
        fields=fields,
        parts=[] if result is None else [_render_output(part) for part in result.parts],
        time=_render_seconds(shown.end.seconds),
        say=writing.say,
    )


def find_gist(fields: Mapping[str, object]) -> str:
    """Return in a line what a call was about."""
    first = [fields[key] for key in GIST_KEYS if fields.get(key)]
    told = [each for each in (*first, *fields.values()) if isinstance(each, str | list) and each]
    if not told:
        return ""
    said = told[0]
    text = said if isinstance(said, str) else " ".join(map(render_json_text, said))
    return truncate_to_line(clean_text(text[: 4 * GIST_LENGTH]), GIST_LENGTH)


def _list_fields(fields: Mapping[str, object], writing: _Writing) -> Iterator[_Field]:
    """Yield the arguments of a call, code with colors."""
    path = next((fields[key] for key in GIST_KEYS[2:6] if isinstance(fields.get(key), str)), "")
    for key, value in fields.items():
        text = render_json_text(value)
        change = "old" if key in OLD_KEYS else "new" if key in NEW_KEYS else ""
        is_line = "\n" not in text and len(text) <= GIST_LENGTH
        if is_line and key not in COMMAND_KEYS:
            yield _Field(key, text, True, change)
            continue
        kind = "bash" if key in COMMAND_KEYS else str(path) if key in CODE_KEYS else ""
        kind = kind or ("" if isinstance(value, str) else "json") or _guess_language(text)
        yield _Field(key, _color(text, kind, writing), False, change)


def _guess_language(text: str) -> str:
    return "diff" if text.startswith(PATCH_BEGINNINGS) else ""


def _color(text: str, language: str, writing: _Writing) -> Markup:
    if writing.colored > PAGE_COLORED:
        language = ""
    if language:
        writing.colored += len(text)
    return render_code(text, language)


def _render_seconds(seconds: float | None) -> str:
    if seconds is None or seconds < 0.1:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3600:.1f} h"


def render_frame(title: str, body: Iterable[str], *, language: Language = "en") -> Iterator[str]:
    """Yield a page that stands for itself: its head with the style sheet, the body, the end.

    The page lets nothing be fetched and no script run.
    """
    style = Markup(load_style_sheet())  # noqa: S704 - our own file
    mark = Markup(BODY_MARK)  # noqa: S704 - no text of a page
    whole = find_macro("frame")(clean_text(title), style, mark, language)
    head, _, end = str(whole).partition(BODY_MARK)
    yield head
    yield from body
    yield end


def render_session_page(
    title: str,
    facts: Iterable[tuple[str, str]],
    items: Iterable[Item],
    *,
    language: Language = "en",
) -> Iterator[str]:
    """Yield a session as one page.

    It has its title, facts about it as pairs of a name and a text, and its items.
    """
    head = find_macro("session_head")(title, [*facts])
    writing = _Writing(language)

    def list_body() -> Iterator[str]:
        yield head
        yield '<main class="line">\n'
        yield from _render_items(items, writing)
        yield "</main>\n"

    return render_frame(title, list_body(), language=language)
