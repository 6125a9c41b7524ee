"""The requirements by their codes: what each means, and which tests name it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from .markdown import as_table

ROOT = Path(__file__).resolve().parent.parent.parent
MEANINGS = Path(__file__).with_suffix(".toml")
CODE = re.compile(r"\b([SA][0-4]|X)\.(\d+)([a-z]?)\b")
SPAN = re.compile(r"\b([SA][0-4]|X)\.(\d+) ?[-–] ?\1\.(\d+)\b")
"""From one code to another of the same letter: all between are meant as well."""
SHOWN = 2
"""Tests that are named for each code; the others are counted."""


def codes(text: str) -> set[str]:
    """Return the codes that a text names."""
    spans = (
        f"{found[1]}.{number}"
        for found in SPAN.finditer(text)
        for number in range(int(found[2]), int(found[3]) + 1)
    )
    return {found[0] for found in CODE.finditer(text)} | {*spans}


def meanings() -> dict[str, dict[str, str]]:
    """Return what each code means, group by group."""
    return tomllib.loads(MEANINGS.read_text("utf-8"))


def tests() -> dict[str, list[str]]:
    """Return the tests that name each code, as links."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, text in _tests_of(path):
            link = f"[{name}](../{path.relative_to(ROOT).as_posix()})"
            for code in codes(text):
                found.setdefault(code, []).append(link)
    return found


def _tests_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each test of a file with its text.

    A class or file that names codes above its tests speaks for all of them, by its own name.
    """
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    yield path.stem, ast.get_docstring(tree) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, ast.get_docstring(node) or ""
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield node.name, "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def requirements() -> str:
    """Return each code, what it means, and the tests that prove it."""
    proofs = tests()
    return "\n\n".join(
        f"## {group}\n\n{as_table(['code', 'meaning', 'proved by'], _rows(listed, proofs))}"
        for group, listed in meanings().items()
    )


def _rows(listed: dict[str, str], proofs: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    for code, meaning in listed.items():
        yield code, meaning, _named(proofs.get(code, []))


def _named(links: list[str]) -> str:
    more = len(links) - SHOWN
    named = ", ".join(islice(links, SHOWN))
    return f"{named}, and {more} more" if more > 0 else named
