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

from ..text import clearable_cache

HOME = "~"
"""The sign for a home folder."""
DOTS = "•" * 8
"""The sign for a key."""


LONGEST_SHORT = 64
"""Characters of a text that is short."""


class MaskedText(NamedTuple):
    """A text with masks; ``homes`` and ``keys`` count the places that they cover."""

    text: str
    homes: int = 0
    keys: int = 0


class KeyShape(NamedTuple):
    """A shape of keys: texts, one of them in every text that has such a key, and its pattern.

    The pattern's groups stay. Where ``folded``, the words stand in small letters, for any case;
    where ``named``, one is followed by a sign that gives it a value.
    """

    words: tuple[str, ...]
    pattern: str
    folded: bool = False
    named: bool = False


_ALONE = r"(?<![A-Za-z0-9])"
_KEY_NAME = (
    r"(?:pass(?:word|wd|phrase)|secret|token|credentials?"
    r"|(?:api|access|auth|account|private|secret)[_-]?key)"
)
_QUOTE = r"""\\*["']"""
_CODE_VALUE = r"(?:none|null|true|false|str|string|bytes|any|int|number|bool|boolean|optional)\b"
_PEM_GAP = r"(?:\\[nrt]|\b\d{1,6}[→\t:|]|[\s\"',>|+])"

VALUE_NAMES = (
    *("password", "passwd", "passphrase", "secret", "token", "credential", "credentials", "key"),
)
"""How names of values end that are keys."""

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
        VALUE_NAMES,
        rf"((?i:{_KEY_NAME})(?:{_QUOTE})?\s*[:=]\s*{_QUOTE})[^\s\"'\\•{{}}$<>]{{4,}}(?=\\*[\"'])",
        True,
        True,
    ),
    KeyShape(
        VALUE_NAMES,
        rf"((?i:{_KEY_NAME})(?:=|:[ \t]+))(?!(?i:{_CODE_VALUE}|{_KEY_NAME}\b))"
        r"[^\s\"'\\•{}$<>()\[\].,;&*`|%]{6,}(?![\w.(\[])",
        True,
        True,
    ),
)
"""The shapes of keys; a pattern is tried only in a text that has one of its words."""

_KEY_FIELD = re.compile(rf"(?:^|[_-]|.*(?<=[a-z])(?=[A-Z])|.*[_-]){_KEY_NAME}", re.IGNORECASE)
_PACKED_BYTES = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{4000,}=*")
_PERSON = r"(?!(?:Shared|Public|user|username)\b)[\w@+-](?:[\w.@+-]*[\w@+-])?"


@cache
def _compile_shapes() -> tuple[tuple[KeyShape, re.Pattern[str]], ...]:
    return tuple((shape, re.compile(shape.pattern)) for shape in KEY_SHAPES)


@cache
def _compile_value_names() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of names with the sign that gives them a value, quick to search."""
    return tuple(re.compile(rf"{name}[\\\"']*\s*[:=]") for name in VALUE_NAMES)


@cache
def _compile_homes(own: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the patterns of home folders, each with a text that it needs.

    They are one's own, and those of anybody at their usual places. A pattern begins with its text
    and looks back only then, as that is quicker.
    """
    ends = r"(?![\w.-])"
    places = {own: ends} if len(own) > 1 else {}
    places |= {"/home/": _PERSON, "/Users/": _PERSON, "/root": ends, "/var/root": ends}
    patterns = {
        "Users": rf"(?<![A-Za-z])[A-Za-z]:(?:\\+|/)Users(?:\\+|/){_PERSON}",
        "projects/-": r"(?<=projects/)-(?:(?:home|Users)-[A-Za-z0-9]+|root(?=-))",
    }
    for place, end in places.items():
        it = re.escape(place)
        begins = rf"(?<![\w.~-]{it})|(?<=\\[nrtbf]{it})|(?<=-[IL]{it})"
        patterns[place] = rf"{it}(?:{begins}){end}"
    return tuple((text, re.compile(pattern)) for text, pattern in patterns.items())


def mask(text: str) -> MaskedText:
    """Return a text with `~` for home folders and dots for what looks like a key.

    The home folder is that of whoever runs this, or of anybody at the usual places of Linux, macOS
    and Windows. Keys are found by the shapes of `KEY_SHAPES`: keys of providers and of services,
    tokens, private keys, passwords in addresses and after ``password=``; their first letters stay.
    The result counts both.
    """
    mask_text = _mask_short_text if len(text) <= LONGEST_SHORT else _mask_text
    return mask_text(text, str(Path.home()))


def _mask_text(text: str, own: str) -> MaskedText:
    homes = keys = 0
    for word, pattern in _compile_homes(own):
        if word in text:
            text, found = pattern.subn(HOME, text)
            homes += found
    small = text.lower()
    for shape, pattern in _compile_shapes():
        for word in shape.words:  # as a generator it would take twice as long
            if word in (small if shape.folded else text):
                break
        else:
            continue
        if shape.named and not any(name.search(small) for name in _compile_value_names()):
            continue
        text, found = pattern.subn(_cover_key, text)
        keys += found
    return MaskedText(text, homes, keys)


_mask_short_text = clearable_cache(4096)(_mask_text)
"""The same; most texts of a message are short, and the same in the next one."""


def _cover_key(found: re.Match[str]) -> str:
    first, *last = (group or "" for group in found.groups())
    return f"{first}{DOTS}{''.join(last)}"


def mask_value(value: Any, counts: Counter[str]) -> Any:
    """Return a JSON value with all of its texts masked, and count the masks.

    A text under a key such as ``password`` is masked whole. Packed bytes, as of pictures, stay.
    """
    if isinstance(value, str):
        if len(value) > 4_000 and _PACKED_BYTES.search(value):
            return value
        text, homes, keys = mask(value)
        counts["homes"] += homes
        counts["keys"] += keys
        return text
    if isinstance(value, list):
        return [mask_value(each, counts) for each in value]
    if isinstance(value, dict):
        own = str(Path.home())
        return {
            _mask_short_text(key, own).text: _mask_field(key, held, counts)
            for key, held in value.items()
        }
    return value


def _mask_field(key: str, value: Any, counts: Counter[str]) -> Any:
    if isinstance(value, str) and value and _KEY_FIELD.fullmatch(key) and value != DOTS:
        counts["keys"] += 1
        return DOTS
    return mask_value(value, counts)
