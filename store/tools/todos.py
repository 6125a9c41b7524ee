"""The state of a todo list in one line: the recap that closes a request."""

from __future__ import annotations

from typing import NamedTuple

from ..ready import PHRASES, Language, render_phrase
from ..text import JsonFields, parse_object, truncate_to_line

TODO_LIST_KEYS = ("todos", "plan", "items", "tasks", "task_list", "todoList")
"""The keys under which tools are given a whole list."""
TODO_TEXT_KEYS = ("content", "step", "title", "text", "task", "description", "name")
DONE_STATUSES = ("completed", "complete", "done", "finished")
RUNNING_STATUSES = ("in_progress", "in-progress", "inProgress", "doing", "active")
DROPPED_STATUSES = ("cancelled", "canceled", "deleted")

OPEN_STATES = ("in_progress", "pending")
"""The states of items that are not done, in the order of a recap."""

NAMED_ITEMS_LIMIT = 5
"""Open items that a recap names; the others are counted."""
TODO_TEXT_LIMIT = 200
"""Code points of an item."""


class TodoItem(NamedTuple):
    """One item of a list: its text, and its status."""

    text: str
    status: str

    @property
    def state(self) -> str:
        """The status as one of three states: done, in progress, pending."""
        if self.status in DONE_STATUSES:
            return "done"
        return OPEN_STATES[0] if self.status in RUNNING_STATUSES else OPEN_STATES[1]


def render_recap(
    arguments: object, result: object = None, *, language: Language = "en"
) -> str | None:
    """Return the recap of a call to a todo tool.

    It is the text under ``data.recap`` of the result, or else made from the list in the arguments,
    or else from the list in the result; None if there is none. Arguments are an object or its JSON
    text.
    """
    data = parse_object(parse_object(result).get("data"))
    lists = (parse_object(arguments), data)
    made = (_render_list_recap(fields, language) for fields in lists)
    said = data.get("recap")
    return (said.strip() if isinstance(said, str) else "") or next(filter(None, made), None)


def is_recap_all_done(recap: str) -> bool:
    """Tell whether a recap says, in any language, that nothing is left to do."""
    return recap.endswith(tuple(PHRASES["todo_all_done"].values()))


def _render_list_recap(fields: JsonFields, language: Language) -> str | None:
    todos = _parse_todo_list(fields)
    return _render_recap_line(todos, language) if todos else None


def _render_recap_line(todos: list[TodoItem], language: Language) -> str:
    done = sum(todo.state == "done" for todo in todos)
    parts = filter(None, [_render_open_items(todos, state, language) for state in OPEN_STATES])
    left = "; ".join(parts) or render_phrase("todo_all_done", language)
    return f"[{done}/{len(todos)}] {left}"


def _render_open_items(todos: list[TodoItem], state: str, language: Language) -> str:
    texts = [
        truncate_to_line(todo.text, TODO_TEXT_LIMIT, ellipsis=render_phrase("ellipsis", language))
        for todo in todos
        if todo.state == state
    ]
    named = texts[:NAMED_ITEMS_LIMIT]
    if len(texts) > NAMED_ITEMS_LIMIT:
        named.append(render_phrase("todo_more", language, count=len(texts) - NAMED_ITEMS_LIMIT))
    return render_phrase(f"todo_{state}", language, named=", ".join(named)) if texts else ""


def _parse_todo_list(fields: JsonFields) -> list[TodoItem]:
    """Return the items of the first list in the fields that has any, without dropped ones."""
    for key in TODO_LIST_KEYS:
        given = fields.get(key)
        items = given if isinstance(given, list) else ()
        found = list(filter(None, map(_parse_todo_item, items)))
        if found:
            return [todo for todo in found if todo.status not in DROPPED_STATUSES]
    return []


def _parse_todo_item(item: object) -> TodoItem | None:
    if isinstance(item, str):
        item = {TODO_TEXT_KEYS[0]: item}
    return _parse_todo_object(item) if isinstance(item, dict) else None


def _parse_todo_object(fields: JsonFields) -> TodoItem | None:
    text = _find_todo_text(fields)
    return TodoItem(text, _find_todo_status(fields)) if text else None


def _find_todo_text(fields: JsonFields) -> str | None:
    for key in TODO_TEXT_KEYS:
        value = fields.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None


def _find_todo_status(fields: JsonFields) -> str:
    if "status" not in fields:
        return "completed" if fields.get("completed") is True else "pending"
    status = fields["status"]
    return status if isinstance(status, str) else "pending"
