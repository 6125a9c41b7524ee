"""The fields of a policy, by what they are about, and the ready policies."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from store import policy

from .markdown import as_table, plain


def field_groups(owner: type) -> list[type]:
    """Return the classes of a package that have the fields of a class, in the order of fields."""
    package = owner.__module__.partition(".")[0]
    return [each for each in reversed(owner.__mro__) if each.__module__.startswith(f"{package}.")]


def notes_of_fields(owner: type) -> dict[str, str]:
    """Return the string below each annotated field of a class: what the field means."""
    notes = {}
    for each in field_groups(owner)[:-1]:
        body = ast.parse(inspect.getsource(each)).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
            ):
                assert isinstance(below.value, ast.Constant)
                notes[field.target.id] = plain(str(below.value.value))
    return notes


UNWRITTEN = {
    "name": "A name of your own.",
}
"""Fields whose meaning the code says elsewhere."""


GROUPS = {
    "name": "Its name",
    "terminal": "Old output of commands",
    "file_read": "Old reads of files",
    "any_tool": "Old results of any tool",
    "tool_output": "Short forms of tool results",
    "picture_keep": "Pictures in tool results",
    "foreign_reasoning": "What providers have of their own",
    "show_drafts": "Answers that broke off",
    "recall": "What can be called back",
    "tool_kinds": "How results are judged",
    "unanswered": "Repairs",
    "clearing": "When the rules act",
    "context_window": "When to compact",
    "keep_messages": "What a compaction keeps",
    "prompt": "Summaries, and what is done without one",
}
"""The groups of fields: the first field of each, and the heading above it."""


def policy_fields() -> str:
    """Return each field of a policy, its default and what it means, group by group."""
    rows = list(_rows())
    starts = [number for number, (name, _) in enumerate(rows) if name in GROUPS]
    groups = [rows[start:stop] for start, stop in zip(starts, [*starts[1:], None], strict=True)]
    return "\n\n".join(
        f"### {GROUPS[group[0][0]]}\n\n{as_table(HEAD, (cells for _, cells in group))}"
        for group in groups
    )


HEAD = ["field", "values", "default", "meaning"]


def _rows() -> Iterator[tuple[str, list[str]]]:
    notes = notes_of_fields(policy.Policy)
    for name, field in policy.Policy.model_fields.items():
        meaning = notes.get(name) or UNWRITTEN[name]
        values, default = _values(field.annotation), _value(field.default)
        yield name, [f"`{name}`", values, f"`{default}`", meaning]


def _value(value: object) -> str:
    return f"{value:,}".replace(",", "_") if type(value) is int else repr(value).replace("'", '"')


PLAIN_TYPES = {bool: "`True`, `False`", int: "whole number", float: "number", str: "text"}


def _values(annotation: Any) -> str:
    """Return what a field may be: types in words, bounds aside, choices one by one."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in map(json.dumps, parts))
    if origin is tuple:
        return f"some of {_values(parts[0])}"
    if origin is Annotated:
        return _values(parts[0])
    if origin in (Union, UnionType):
        values = [_values(each) for each in parts if each is not NoneType]
        last = "none" if NoneType in parts else values.pop()
        return f"{', '.join(values)}, or {last}"
    return PLAIN_TYPES.get(annotation, "name → kind")


def policies() -> str:
    """Return each ready policy and what it changes."""
    rows = ((f"`{name}`", _changes(fields)) for name, fields in policy.POLICIES.items())
    return as_table(["policy", "what it changes of the defaults"], rows)


def _changes(fields: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value!r}`" for name, value in fields.items()) or "nothing"
