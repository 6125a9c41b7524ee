"""The texts that summarizers send to a model: versioned, and safe to fill in.

No value that is filled in can pass for a part of the prompt itself. This module knows the folder
of prompts, but neither models nor messages.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..database import find_folder
from ..errors import InvalidValue, StoreError, quote_value
from ..phrases import Language, render_phrase
from .summary import convert_to_datetime

PLACEHOLDERS = frozenset({"transcript", "previous_summary", "max_chars"})
"""The placeholders that each prompt has."""

_FRONT_MATTER = re.compile(r"---\n(?P<fields>.*?)\n---\n(?P<text>.*)", re.DOTALL)
_TIME_PLACEHOLDERS = ("start_time", "cutoff_time")
"""Placeholders that a prompt may have."""
_PLACEHOLDER = re.compile(rf"\{{({'|'.join((*sorted(PLACEHOLDERS), *_TIME_PLACEHOLDERS))})\}}")

_HEADING_LINE = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_WORD_RUN = re.compile(r"[^\W_]+")

_LINE_END_SIGNS = r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
_UNSEEN_SIGNS = r"[ \t\x1f\xa0\xad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064\u3000\ufeff]*"
_DASH, _EQUALS = r"[\-\u2010-\u2015\u2212\u2500\u2501\ufe58\ufe63\uff0d]", r"[=\u2550\uff1d]"
_FENCE_LINE = re.compile(
    f"({_LINE_END_SIGNS}{_UNSEEN_SIGNS})(?=(?:{_DASH}{_UNSEEN_SIGNS}){{3}}|(?:{_EQUALS}{_UNSEEN_SIGNS}){{3}})"
)


class Prompt(NamedTuple):
    """A prompt; its ``text`` still has its placeholders.

    ``version``, such as ``archive@1``, is recorded with a summary; ``language`` is that of the
    answer.
    """

    name: str
    version: str
    text: str
    language: str = ""

    def lacking(self, answer: str) -> list[str]:
        """Return the headings that the prompt asks for and an answer has not.

        Pictures, marks, case and the level of a heading do not count.
        """
        lines = {_split_heading(line) for line in answer.splitlines()}
        headings = _HEADING_LINE.findall(self.text)
        return [heading for heading in headings if _split_heading(heading) not in lines]

    def fill(
        self,
        *,
        transcript: str,
        previous_summary: str | None,
        max_chars: int,
        times: tuple[int | None, int | None] = (None, None),
    ) -> str:
        """Return the text to send; the values filled in are unchanged, with their braces.

        ``times`` are the first and the last moment (ms) of the messages to be summarised.

        Where a line of a value begins like a fence, in whatever dashes, a backslash is put before
        it, so that a history cannot end its block.
        """
        language = choose_phrase_language(self.language)
        previous = previous_summary or render_phrase("no_previous_summary", language)
        values = {
            "transcript": _escape_fences(transcript).strip("\n"),
            "previous_summary": _escape_fences(previous).strip("\n"),
            "max_chars": str(max_chars),
            "start_time": _render_time(times[0], language),
            "cutoff_time": _render_time(times[1], language),
        }
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.text)


def choose_phrase_language(language: str) -> Language:
    """Return the language of the store's phrases in a prompt: Chinese, English in any other."""
    return "zh" if language.startswith("zh") else "en"


def describe_unfinished_turn(language: str) -> str:
    """Return the note for a prompt in a language that the history ends within a turn."""
    return render_phrase("unfinished", choose_phrase_language(language))


def _split_heading(heading: str) -> str:
    """Return the words of a heading, without case and marks."""
    return " ".join(_WORD_RUN.findall(heading)).casefold()


def list_prompts() -> list[str]:
    """Return the names of all prompts."""
    return sorted(path.stem for path in _find_folder().glob("*.md") if path.stem != "README")


@cache
def load(name: str) -> Prompt:
    """Return the prompt of a name.

    Raises InvalidValue where no prompt has it, StoreError for a file that is no prompt.
    """
    if name not in list_prompts():
        raise InvalidValue(
            f"no prompt is named {quote_value(name)}; "
            f"there are {', '.join(list_prompts()) or 'none'}"
        )
    path = _find_folder() / f"{name}.md"
    try:
        text = path.read_text(encoding="utf-8")
        found = _FRONT_MATTER.fullmatch(text)
        if not found:
            raise ValueError(
                "it does not begin with its name, version and language between two --- lines"
            )
        fields = dict(row.split(": ", 1) for row in found["fields"].splitlines())
        is_versioned = fields.get("version", "").isdecimal()
        if fields.get("name") != name or not is_versioned or not fields.get("language"):
            raise ValueError(
                f"its name should be {name!r}, its version a whole number, and its language given"
            )
        missing = PLACEHOLDERS - {*_PLACEHOLDER.findall(found["text"])}
        if missing:
            raise ValueError(f"it has no {{{min(missing)}}}")
        return Prompt(
            name, f"{name}@{fields['version']}", found["text"].strip(), fields["language"]
        )
    except (OSError, ValueError) as error:
        raise StoreError(
            f"the prompt at {path} cannot be used: {error};"
            " correct it, or install the package again"
        ) from error


def _find_folder() -> Path:
    try:
        return find_folder("prompts")
    except FileNotFoundError as error:
        raise StoreError(str(error)) from error


def _escape_fences(text: str) -> str:
    return _FENCE_LINE.sub(r"\1\\", f"\n{text}")[1:]


def _render_time(milliseconds: int | None, language: Language) -> str:
    when = convert_to_datetime(milliseconds)
    return f"{when:%Y-%m-%d %H:%M} UTC" if when else render_phrase("unknown_time", language)
