"""A statement's text laid out for people: a clause, a condition, a column a line.

Only white space changes, so what is printed is what runs. A text is taken apart into words and
groups (parentheses, ``CASE … END``). A group that is short and selects nothing stays on its line;
any other has its parts on lines of their own, two spaces further in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

WORD = re.compile(
    r"""(?P<space>\s*)(?P<word>
        '(?:[^']|'')*' | "[^"]*" | %\(\w+\)s(?:::\w+)? | [(),] | [\w.:]+ | [^\s\w(),'"]+
    )""",
    re.VERBOSE,
)
CLOSES = {"(": ")", "CASE": "END"}
CLAUSES = {
    *("SELECT", "FROM", "WHERE", "JOIN", "LEFT", "GROUP", "ORDER", "LIMIT", "UNION"),
    *("SET", "VALUES", "RETURNING", "FOR"),
}
"""Words that begin a line where their statement stands."""
PARTS = {"AND", "OR", "WHEN", "ELSE"}
"""Words that begin a line two spaces further in, as a new column does."""
JOINED = {
    *(("DELETE", "FROM"), ("LEFT", "JOIN"), ("OUTER", "JOIN"), ("BETWEEN", "AND")),
    *(("DISTINCT", "FROM"), ("DO", "UPDATE")),
}
"""Pairs of which the second word goes on with the first."""
SHORT = 60
"""Characters of a group that stays on its line."""


class Word(NamedTuple):
    """A word of SQL, and whether a space stands before it."""

    text: str
    spaced: bool


class Group(NamedTuple):
    """What stands between a word that opens and the one that closes."""

    opens: Word
    items: list[Word | Group]
    closes: Word


def printed(text: str) -> str:
    """Return a statement laid out."""
    lines = [""]
    _lay_out(_taken_apart(_words(text), None)[0], 0, lines)
    return "\n".join(line.rstrip() for line in lines if line.strip()) + "\n"


def _words(text: str) -> Iterator[Word]:
    for match in WORD.finditer(text):
        yield Word(match["word"], bool(match["space"]))


def _taken_apart(words: Iterator[Word], until: str | None) -> tuple[list[Word | Group], Word]:
    """Return the words up to one that closes, those of inner groups in groups, and that one."""
    items: list[Word | Group] = []
    for word in words:
        if word.text == until:
            return items, word
        if word.text in CLOSES:
            inner, closes = _taken_apart(words, CLOSES[word.text])
            items.append(Group(word, inner, closes))
        else:
            items.append(word)
    return items, Word("", spaced=False)


def _lay_out(items: list[Word | Group], indent: int, lines: list[str]) -> None:
    """Add words and groups to lines; parts of a clause stand further in than the clause."""
    before, further = "", 0
    for item in items:
        if isinstance(item, Group):
            _lay_out_group(item, lines)
            before = ""
            continue
        goes_on = (before, item.text) in JOINED
        if item.text in CLAUSES and not goes_on:
            lines.append(" " * indent + item.text)
            further = 2
        elif item.text in PARTS and not goes_on:
            lines.append(" " * (indent + further) + item.text)
        else:
            _add(lines, item)
        if item.text == ",":
            lines.append(" " * (indent + further))
        if before != "BETWEEN" or goes_on:
            before = item.text


def _lay_out_group(group: Group, lines: list[str]) -> None:
    flat = _flat(group)
    if len(flat) <= SHORT and "SELECT " not in flat:
        _add(lines, Word(flat, group.opens.spaced))
        return
    _add(lines, group.opens)
    indent = len(lines[-1]) - len(lines[-1].lstrip())
    if group.opens.text == "(":
        lines.append(" " * (indent + 2))
    _lay_out(group.items, indent + 2, lines)
    lines.append(" " * indent + group.closes.text)


def _add(lines: list[str], word: Word) -> None:
    """Add a word to the last line, after a space where it has one and does not begin the line."""
    if word.spaced and lines[-1].strip():
        lines[-1] += " "
    lines[-1] += word.text


def _flat(item: Word | Group) -> str:
    """Return a word or a group on one line."""
    if isinstance(item, Word):
        return item.text
    parts = [*item.items, item.closes]
    spaced = [part.spaced if isinstance(part, Word) else part.opens.spaced for part in parts]
    texts = map(_flat, parts)
    return item.opens.text + "".join(
        f" {text}" if space else text for text, space in zip(texts, spaced, strict=True)
    )
