"""The state of a todo list in one line: the recap that closes a request."""

from __future__ import annotations

from typing import NamedTuple

from ..ready import PHRASES, Language, phrase
from ..text import Fields, as_object, truncate_to_line

LISTS = ("todos", "plan", "items", "tasks", "task_list", "todoList")
"""The keys under which tools are given a whole list."""
TEXTS = ("content", "step", "title", "text", "task", "description", "name")
DONE = ("completed", "complete", "done", "finished")
RUNNING = ("in_progress", "in-progress", "inProgress", "doing", "active")
DROPPED = ("cancelled", "canceled", "deleted")

OPEN = ("in_progress", "pending")
"""The states of items that are not done, in the order of a recap."""

NAMED = 5
"""Open items that a recap names; the others are counted."""
LIMIT = 200
"""Code points of an item."""


class Todo(NamedTuple):
    """One item of a list: its text, and its status."""

    text: str
    status: str

    @property
    def state(self) -> str:
        """The status as one of three states: done, in progress, pending."""
        if self.status in DONE:
            return "done"
        return OPEN[0] if self.status in RUNNING else OPEN[1]


def recap(arguments: object, result: object = None, *, language: Language = "en") -> str | None:
    """Return the recap of a call to a todo tool.

    It is the text under ``data.recap`` of the result, or else made from the list in the arguments,
    or else from the list in the result; None if there is none. Arguments are an object or its JSON
    text.
    """
    data = as_object(as_object(result).get("data"))
    lists = (as_object(arguments), data)
    made = (_of_list(fields, language) for fields in lists)
    said = data.get("recap")
    return (said.strip() if isinstance(said, str) else "") or next(filter(None, made), None)


def is_all_done(recap: str) -> bool:
    """Tell whether a recap says, in any language, that nothing is left to do."""
    return recap.endswith(tuple(PHRASES["todo_all_done"].values()))


def _of_list(fields: Fields, language: Language) -> str | None:
    todos = _todos(fields)
    return _line(todos, language) if todos else None


def _line(todos: list[Todo], language: Language) -> str:
    done = sum(todo.state == "done" for todo in todos)
    parts = filter(None, [_open_items(todos, state, language) for state in OPEN])
    left = "; ".join(parts) or phrase("todo_all_done", language)
    return f"[{done}/{len(todos)}] {left}"


def _open_items(todos: list[Todo], state: str, language: Language) -> str:
    texts = [
        truncate_to_line(todo.text, LIMIT, ellipsis=phrase("ellipsis", language))
        for todo in todos
        if todo.state == state
    ]
    named = texts[:NAMED]
    if len(texts) > NAMED:
        named.append(phrase("todo_more", language, count=len(texts) - NAMED))
    return phrase(f"todo_{state}", language, named=", ".join(named)) if texts else ""


def _todos(fields: Fields) -> list[Todo]:
    """Return the items of the first list in the fields that has any, without dropped ones."""
    for key in LISTS:
        given = fields.get(key)
        items = given if isinstance(given, list) else ()
        found = list(filter(None, map(_todo, items)))
        if found:
            return [todo for todo in found if todo.status not in DROPPED]
    return []


def _todo(item: object) -> Todo | None:
    if isinstance(item, str):
        item = {TEXTS[0]: item}
    return _described(item) if isinstance(item, dict) else None


def _described(fields: Fields) -> Todo | None:
    text = _first_text(fields)
    return Todo(text, _status(fields)) if text else None


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
