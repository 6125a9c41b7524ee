"""Texts as they are shown: without characters that act, or that no file holds."""

from __future__ import annotations

import re

_COLOR_SEQUENCE = re.compile(r"\x1b\[[0-9;:]*m")
_ACTING_CHARACTER = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_SHOWN_CONTROLS = 0x2400
"""Where the signs for control characters begin in Unicode."""


def clean_text(text: str) -> str:
    """Return a text with signs for the characters that control a terminal or turn the direction.

    Sequences that only color are left out. A half of a character is shown as its number.
    """
    if not _ACTING_CHARACTER.search(text):
        return text
    text = _COLOR_SEQUENCE.sub("", text).replace("\r\n", "\n")
    return _ACTING_CHARACTER.sub(_show_character, text)


def _show_character(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == 0x2028:
        return "\n"
    return chr(_SHOWN_CONTROLS + code) if code < 0x20 else f"⟨U+{code:04X}⟩"


def clean_value(value: object) -> object:
    """Return what a template writes of a value: a text without acting characters, else the same."""
    # Markup is a text, too: it was made of clean texts, so the search above finds nothing in it
    return clean_text(value) if type(value) is str else value
