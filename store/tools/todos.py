"""What a todo list came to, in one line: the recap that closes a request."""

from __future__ import annotations

from typing import NamedTuple

from ..text import Fields, json_object, one_line

LISTS = ("todos", "plan", "items", "tasks", "task_list", "todoList")
"""The keys under which tools are given a whole list."""
TEXTS = ("content", "step", "title", "text", "task", "description", "name")
DONE = ("completed", "complete", "done", "finished")
RUNNING = ("in_progress", "in-progress", "inProgress", "doing", "active")
DROPPED = ("cancelled", "canceled", "deleted")

OPEN = ("in progress", "pending")
"""The states of items that are not done, in the order in which a recap tells them."""

ALL_DONE = "all done"
NAMED = 5
"""Open items that a recap names; the others are counted."""
LIMIT = 200
"""Code points of an item."""


class Todo(NamedTuple):
    """One item of a list: what is to do, and how far it is."""

    text: str
    status: str

    @property
    def state(self) -> str:
        """The status in one word of three: done, in progress, pending."""
        if self.status in DONE:
            return "done"
        return OPEN[0] if self.status in RUNNING else OPEN[1]


def recap(arguments: object, result: object = None) -> str | None:
    """Return the recap of a call to a todo tool.

    It is what its result says under ``data.recap``, else made of the list in its arguments, else of
    the one in its result; None where there is none. Arguments are an object or its JSON text.
    """
    data = json_object(json_object(result).get("data"))
    return _said(data) or _of_list(json_object(arguments)) or _of_list(data)


def _said(data: Fields) -> str:
    said = data.get("recap")
    return said.strip() if isinstance(said, str) else ""


def _of_list(fields: Fields) -> str | None:
    todos = _todos(fields)
    return _line(todos) if todos else None


def _line(todos: list[Todo]) -> str:
    done = sum(todo.state == "done" for todo in todos)
    parts = filter(None, [_open_items(todos, state) for state in OPEN])
    return f"[{done}/{len(todos)}] {'; '.join(parts) or ALL_DONE}"


def _open_items(todos: list[Todo], state: str) -> str:
    texts = [todo.text for todo in todos if todo.state == state]
    return f"{state}: {_named(texts)}" if texts else ""


def _named(texts: list[str]) -> str:
    named = texts[:NAMED]
    if len(texts) > NAMED:
        named.append(f"and {len(texts) - NAMED} more")
    return ", ".join(named)


def _todos(fields: Fields) -> list[Todo]:
    """Return the items of the first list among the fields that has any; dropped ones are none."""
    for key in LISTS:
        found = _items(fields.get(key))
        if found:
            return [todo for todo in found if todo.status not in DROPPED]
    return []


def _items(given: object) -> list[Todo]:
    items = given if isinstance(given, list) else ()
    return list(filter(None, map(_todo, items)))


def _todo(item: object) -> Todo | None:
    if isinstance(item, str):
        item = {TEXTS[0]: item}
    return _described(item) if isinstance(item, dict) else None


def _described(fields: Fields) -> Todo | None:
    text = _first_text(fields)
    return Todo(one_line(text, LIMIT), _status(fields)) if text else None


def _first_text(fields: Fields) -> str | None:
    for key in TEXTS:
        value = fields.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None


def _status(fields: Fields) -> str:
    if "status" not in fields:
        return "completed" if fields.get("completed") is True else "pending"
    status = fields["status"]
    return status if isinstance(status, str) else "pending"
