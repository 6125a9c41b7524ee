"""The reasons of views in the language of a page; a view gives them in English."""

from __future__ import annotations

import re
import tomllib
from functools import cache

from ..policy import Language
from .page_rendering import FOLDER

VALUE_PLACE = re.compile(r"\\\{(\w+)\\\}")
"""A place of a value in an escaped text."""
NAMED_FILES = "(?P<files>: .*)?"
"""What may follow a reason: the files that it is about."""
REASON_BREAK = "; "
"""The separator of the reasons of one message."""


def translate_reason(reason: str, language: Language) -> str:
    """Return a reason in a language; a part of it that is not known stays as it is."""
    if language == "en":
        return reason
    return "；".join(map(_translate_part, reason.split(REASON_BREAK)))


def _translate_part(part: str) -> str:
    found = ((pattern.fullmatch(part), text) for pattern, text in load_reasons())
    for match, text in found:
        if match:
            values = match.groupdict("")
            return text.format(**values) + values["files"]
    return part


@cache
def load_reasons() -> list[tuple[re.Pattern[str], str]]:
    """Return what recognizes each reason, with the same reason in Chinese."""
    told = tomllib.loads((FOLDER / "reasons.toml").read_text("utf-8"))
    values = r"(?P<\1>.+?)"
    patterns = (VALUE_PLACE.sub(values, re.escape(text)) + NAMED_FILES for text in told)
    compiled = (re.compile(each, re.DOTALL) for each in patterns)
    return [*zip(compiled, told.values(), strict=True)]
