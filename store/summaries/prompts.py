"""The texts that summarizers send to a model: versioned, and safe to fill in.

Nothing that is filled in can pass for a part of the prompt itself. This module knows the folder of
prompts, but neither models nor messages.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..database import resources
from ..errors import InvalidValue, StoreError, quoted
from ..ready import Language, phrase
from .summary import to_datetime

PLACEHOLDERS = frozenset({"transcript", "previous_summary", "max_chars"})
"""What each prompt has a place for."""

_FRONT_MATTER = re.compile(r"---\n(?P<fields>.*?)\n---\n(?P<text>.*)", re.DOTALL)
_TIMES = ("start_time", "cutoff_time")
"""What a prompt may have a place for."""
_PLACEHOLDER = re.compile(rf"\{{({'|'.join((*sorted(PLACEHOLDERS), *_TIMES))})\}}")

_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_WORDS = re.compile(r"[^\W_]+")

_LINE_END = r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
_UNSEEN = r"[ \t\x1f\xa0\xad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064\u3000\ufeff]*"
_DASH, _EQUALS = r"[\-\u2010-\u2015\u2212\u2500\u2501\ufe58\ufe63\uff0d]", r"[=\u2550\uff1d]"
_FENCE = re.compile(
    f"({_LINE_END}{_UNSEEN})(?=(?:{_DASH}{_UNSEEN}){{3}}|(?:{_EQUALS}{_UNSEEN}){{3}})"
)


class Prompt(NamedTuple):
    """A prompt; its ``text`` still has its placeholders.

    ``version`` is what a summary keeps of it, such as ``archive@1``; ``language`` is that of the
    answer.
    """

    name: str
    version: str
    text: str
    language: str = ""

    def lacking(self, answer: str) -> list[str]:
        """Return the headings that the prompt asks for and an answer has not.

        Pictures, marks and case do not count, nor how deep a heading is.
        """
        told = {_bare(line) for line in answer.splitlines()}
        headings = _HEADING.findall(self.text)
        return [heading for heading in headings if _bare(heading) not in told]

    def fill(
        self,
        *,
        transcript: str,
        previous_summary: str | None,
        max_chars: int,
        times: tuple[int | None, int | None] = (None, None),
    ) -> str:
        """Return the text to send; what is filled in stays what it is, with its braces.

        ``times`` are the first and the last moment (ms) of what the summary will stand for.

        Where a row of it begins like a fence, in whatever dashes, a backslash is put before that,
        so that a history cannot end its block.
        """
        language = phrase_language(self.language)
        previous = previous_summary or phrase("no_previous_summary", language)
        values = {
            "transcript": _unfenced(transcript).strip("\n"),
            "previous_summary": _unfenced(previous).strip("\n"),
            "max_chars": str(max_chars),
            "start_time": _told(times[0], language),
            "cutoff_time": _told(times[1], language),
        }
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.text)


def phrase_language(language: str) -> Language:
    """Return the language of the store's phrases in a prompt: Chinese, English in any other."""
    return "zh" if language.startswith("zh") else "en"


def describe_unfinished_turn(language: str) -> str:
    """Return what a prompt in a language is told of a history that ends within a turn."""
    return phrase("unfinished", phrase_language(language))


def _bare(heading: str) -> str:
    """Return a heading as its words alone."""
    return " ".join(_WORDS.findall(heading)).casefold()


def list_prompts() -> list[str]:
    """Return the names of the prompts there are."""
    return sorted(path.stem for path in _folder().glob("*.md") if path.stem != "README")


@cache
def load(name: str) -> Prompt:
    """Return the prompt of a name.

    Raises InvalidValue where no prompt has it, StoreError for a file that is no prompt.
    """
    if name not in list_prompts():
        raise InvalidValue(
            f"no prompt is named {quoted(name)}; there are {', '.join(list_prompts()) or 'none'}"
        )
    return _read(name)


def _read(name: str) -> Prompt:
    path = _folder() / f"{name}.md"
    try:
        return _parsed(name, path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"the prompt at {path} cannot be used: {error}; mend it or install again"
        ) from error


def _folder() -> Path:
    try:
        return resources.find_folder("prompts")
    except FileNotFoundError as error:
        raise StoreError(str(error)) from error


def _parsed(name: str, text: str) -> Prompt:
    found = _FRONT_MATTER.fullmatch(text)
    if not found:
        raise ValueError(
            "it does not begin with its name, version and language between two --- lines"
        )
    fields = _fields(name, found["fields"])
    missing = PLACEHOLDERS - {*_PLACEHOLDER.findall(found["text"])}
    if missing:
        raise ValueError(f"it has no {{{min(missing)}}}")
    return Prompt(name, f"{name}@{fields['version']}", found["text"].strip(), fields["language"])


def _fields(name: str, text: str) -> dict[str, str]:
    """Return what a prompt says of itself."""
    fields = dict(row.split(": ", 1) for row in text.splitlines())
    is_versioned = fields.get("version", "").isdecimal()
    if fields.get("name") != name or not is_versioned or not fields.get("language"):
        raise ValueError(
            f"its name should be {name!r}, its version a whole number, and its language given"
        )
    return fields


def _unfenced(text: str) -> str:
    return _FENCE.sub(r"\1\\", f"\n{text}")[1:]


def _told(milliseconds: int | None, language: Language) -> str:
    when = to_datetime(milliseconds)
    return f"{when:%Y-%m-%d %H:%M} UTC" if when else phrase("unknown_time", language)
