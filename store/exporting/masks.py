"""Masks over what a text tells of a person and should not: the home folder, and keys.

A key is known by its shape: `KEY_SHAPES` is the table. What has no such shape stays, so a masked
text still has to be read by whoever gives it away. A masked text that is masked again is the same.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

HOME = "~"
"""The sign for a home folder."""
DOTS = "•" * 8
"""The sign for a key."""


class MaskedText(NamedTuple):
    """A text with masks; ``homes`` and ``keys`` count the places that they cover."""

    text: str
    homes: int = 0
    keys: int = 0


class KeyShape(NamedTuple):
    """A shape of keys: texts of which one is in every text that has such a key, and its pattern.

    The pattern's groups stay. Where ``folded``, the words stand in small letters, for any case.
    """

    words: tuple[str, ...]
    pattern: str
    folded: bool = False


_ALONE = r"(?<![A-Za-z0-9])"
_KEY_NAME = (
    r"(?:pass(?:word|wd|phrase)|secret|token|credentials?"
    r"|(?:api|access|auth|account|private|secret)[_-]?key)"
)
_QUOTE = r"""\\*["']"""
_CODE_VALUE = r"(?:none|null|true|false|str|string|bytes|any|int|number|bool|boolean|optional)\b"
_PEM_GAP = r"(?:\\[nrt]|\b\d{1,6}[→\t:|]|[\s\"',>|+])"

KEY_SHAPES = (
    KeyShape(("sk-",), rf"({_ALONE}sk-)(?=[\w-]*\d)[\w-]{{16,}}"),
    KeyShape(("k_live_", "k_test_"), rf"({_ALONE}[rsp]k_(?:live|test)_)\w{{10,}}"),
    KeyShape(
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        rf"({_ALONE}(?:gh[pousr]_|github_pat_))\w{{16,}}",
    ),
    KeyShape(
        ("glpat-", "glptt-", "glrt-", "glcbt-"), rf"({_ALONE}gl(?:pat|ptt|rt|cbt)-)[\w-]{{16,}}"
    ),
    KeyShape(("AKIA", "ASIA"), rf"({_ALONE}A[KS]IA)[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
    KeyShape(("AIza",), rf"({_ALONE}AIza)[\w-]{{30,}}"),
    KeyShape(("ya29.",), rf"({_ALONE}ya29\.)[\w-]{{16,}}"),
    KeyShape(("xox",), rf"({_ALONE}xox[a-z]-)[\w-]{{10,}}"),
    KeyShape(("hooks.slack.com",), r"(hooks\.slack\.com/services/)[\w/]{10,}"),
    KeyShape(("npm_", "hf_", "gsk_"), rf"({_ALONE}(?:npm|hf|gsk)_)\w{{24,}}"),
    KeyShape(("pypi-", "xai-"), rf"({_ALONE}(?:pypi|xai)-)[\w-]{{24,}}"),
    KeyShape(("SG.",), rf"({_ALONE}SG\.)[\w-]{{16,}}\.[\w-]{{16,}}"),
    KeyShape(("eyJ",), rf"({_ALONE}eyJ)[\w-]{{8,}}\.[\w-]{{8,}}(?:\.[\w-]*)?"),
    KeyShape(
        ("PRIVATE KEY",),
        r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)"
        rf"(?:{_PEM_GAP}*(?:Proc-Type|DEK-Info):[^\n\\]*)*"
        rf"(?:{_PEM_GAP}*[A-Za-z0-9+/=]{{24,}})+(?:{_PEM_GAP}*[A-Za-z0-9+/=]+(?={_PEM_GAP}*-----))?",
    ),
    KeyShape(("://",), r"(://[^\s/:@\"'<>]*:)(?![•$])[^\s/@\"'<>]+(@)"),
    KeyShape(
        ("bearer", "basic"), r"((?i:\b(?:bearer|basic))\s+)(?=[^\s]*[\d=])[\w.~+/-]{12,}=*", True
    ),
    KeyShape(
        ("authorization",),
        rf"((?i:\bauthorization)(?:{_QUOTE})?\s*[:=]\s*(?:{_QUOTE})?(?i:(?:bearer|basic|token)\s+)?)"
        r"(?!(?i:bearer|basic|token)\b)[^\s\"'\\<>•$`{}]{6,}",
        True,
    ),
    KeyShape(
        ("pass", "secret", "token", "credential", "key"),
        rf"((?i:{_KEY_NAME})(?:{_QUOTE})?\s*[:=]\s*{_QUOTE})[^\s\"'\\•{{}}$<>]{{4,}}(?=\\*[\"'])",
        True,
    ),
    KeyShape(
        ("pass", "secret", "token", "credential", "key"),
        rf"((?i:{_KEY_NAME})(?:=|:[ \t]+))(?!(?i:{_CODE_VALUE}|{_KEY_NAME}\b))"
        r"[^\s\"'\\•{}$<>()\[\].,;&*`|%]{6,}(?![\w.(\[])",
        True,
    ),
)
"""The shapes of keys; a pattern is tried only in a text that has one of its words."""

_KEY_FIELD = re.compile(rf"(?:^|[_-]|.*(?<=[a-z])(?=[A-Z])|.*[_-]){_KEY_NAME}", re.IGNORECASE)
_PACKED_BYTES = re.compile(r"[A-Za-z0-9+/_-]{4000,}=*")
_HOME_WORDS = ("/home/", "/Users/", "/root", "Users", "projects")


@cache
def _compile_shapes() -> tuple[tuple[KeyShape, re.Pattern[str]], ...]:
    return tuple((shape, re.compile(shape.pattern)) for shape in KEY_SHAPES)


@cache
def _compile_homes(own: str) -> re.Pattern[str]:
    """Return the pattern of home folders: one's own, and those of anybody by their usual places."""
    name = r"(?!(?:Shared|Public|user|username)\b)[\w@+-](?:[\w.@+-]*[\w@+-])?"
    begins = r"(?:(?<![\w.~-])|(?<=\\[nrtbf])|(?<=-[IL]))"
    places = [rf"/(?:home|Users)/{name}", r"/(?:var/)?root(?![\w.-])"]
    if len(own) > 1:
        places.insert(0, rf"{re.escape(own)}(?![\w.-])")
    return re.compile(
        rf"{begins}(?:{'|'.join(places)})"
        rf"|(?<![A-Za-z])[A-Za-z]:(?:\\+|/)Users(?:\\+|/){name}"
        r"|(?<=projects/)-(?:home|Users)-[A-Za-z0-9]+|(?<=projects/)-root(?=-)"
    )


def mask(text: str) -> MaskedText:
    """Return a text with `~` for home folders and dots for what looks like a key.

    The home folder is that of whoever runs this, or of anybody at the usual places of Linux, macOS
    and Windows. Keys are found by the shapes of `KEY_SHAPES`: keys of providers and of services,
    tokens, private keys, passwords in addresses and after ``password=``; their first letters stay.
    The result counts both.
    """
    own = str(Path.home())
    homes = keys = 0
    if own in text or any(word in text for word in _HOME_WORDS):
        text, homes = _compile_homes(own).subn(HOME, text)
    small = text.lower()
    for shape, pattern in _compile_shapes():
        if any(word in (small if shape.folded else text) for word in shape.words):
            text, found = pattern.subn(_cover_key, text)
            keys += found
    return MaskedText(text, homes, keys)


def _cover_key(found: re.Match[str]) -> str:
    first, *last = (group or "" for group in found.groups())
    return f"{first}{DOTS}{''.join(last)}"


def mask_value(value: Any, counts: Counter[str]) -> Any:
    """Return a JSON value with all of its texts masked, and add up what was.

    A text under a key such as ``password`` is masked whole. Packed bytes, as of pictures, stay.
    """
    if isinstance(value, str):
        if len(value) > 4_000 and _PACKED_BYTES.search(value):
            return value
        text, homes, keys = mask(value)
        counts.update(homes=homes, keys=keys)
        return text
    if isinstance(value, list):
        return [mask_value(each, counts) for each in value]
    if isinstance(value, dict):
        return {mask(key).text: _mask_field(key, held, counts) for key, held in value.items()}
    return value


def _mask_field(key: str, value: Any, counts: Counter[str]) -> Any:
    if isinstance(value, str) and value and _KEY_FIELD.fullmatch(key) and value != DOTS:
        counts["keys"] += 1
        return DOTS
    return mask_value(value, counts)
