"""What a todo list came to, in one line: the recap that closes a request (S4.4, S4.16)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

LISTS = ("todos", "plan", "items", "tasks", "task_list", "todoList")
"""The keys under which tools are given a whole list."""
TEXTS = ("content", "step", "title", "text", "task", "description", "name")
DONE = ("completed", "complete", "done", "finished")
RUNNING = ("in_progress", "in-progress", "inProgress", "doing", "active")
DROPPED = ("cancelled", "canceled", "deleted")

ALL_DONE = "all done"
NAMED = 5
"""Open items that a recap names; the others are counted."""
LIMIT = 200
"""Code points of an item."""


class Todo(NamedTuple):
    """One item of a list: what is to do, and how far it is."""

    text: str
    status: str


def recap(arguments: object, result: object = None) -> str | None:
    """Return the recap of a call to a todo tool: what its result says, else what its arguments list; None for neither.

    A result says it under ``data.recap``. Arguments are an object or its JSON text.
    """
    data = _object(_object(result).get("data"))
    said = data.get("recap")
    if isinstance(said, str) and said.strip():
        return said.strip()
    todos = list(_todos(_object(arguments))) or list(_todos(data))
    return _line(todos) if todos else None


def _line(todos: list[Todo]) -> str:
    done = sum(todo.status in DONE for todo in todos)
    running = [todo.text for todo in todos if todo.status in RUNNING]
    waiting = [todo.text for todo in todos if todo.status not in (*DONE, *RUNNING)]
    parts = [f"{what}: {_named(texts)}" for what, texts in (("in progress", running), ("pending", waiting)) if texts]
    return f"[{done}/{len(todos)}] {'; '.join(parts) or ALL_DONE}"


def _named(texts: list[str]) -> str:
    more = [f"and {len(texts) - NAMED} more"] if len(texts) > NAMED else []
    return ", ".join([*texts[:NAMED], *more])


def _todos(fields: dict[str, Any]) -> Iterator[Todo]:
    """Yield the items of the first list among the fields that has any; dropped ones are none."""
    for key in LISTS:
        given = fields.get(key)
        found = [todo for todo in map(_todo, given if isinstance(given, list) else ()) if todo]
        if found:
            yield from (todo for todo in found if todo.status not in DROPPED)
            return


def _todo(item: object) -> Todo | None:
    if isinstance(item, str):
        return Todo(_one_line(item), "pending") if item.strip() else None
    fields = item if isinstance(item, dict) else {}
    text = next((fields[key] for key in TEXTS if isinstance(fields.get(key), str) and fields[key].strip()), None)
    if text is None:
        return None
    status = fields.get("status", "completed" if fields.get("completed") is True else "pending")
    return Todo(_one_line(text), status if isinstance(status, str) else "pending")


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LIMIT else line[: LIMIT - 1] + "…"


def _object(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip()[:1] == "{" else None
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}
