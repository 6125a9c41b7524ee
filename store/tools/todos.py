"""The state of a todo list in one line: the recap that closes a request."""

from __future__ import annotations

from typing import NamedTuple

from ..phrases import PHRASES, Language, render_phrase
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
    made = (_render_list_recap(todos, language) for todos in map(_parse_todo_list, lists) if todos)
    said = data.get("recap")
    return (said.strip() if isinstance(said, str) else "") or next(made, None)


def is_recap_all_done(recap: str) -> bool:
    """Tell whether a recap says, in any language, that nothing is left to do."""
    return recap.endswith(tuple(PHRASES["todo_all_done"].values()))


def _render_list_recap(todos: list[TodoItem], language: Language) -> str:
    """Return the number of done items, and the texts of the open ones by their state."""
    parts = []
    for state in OPEN_STATES:
        texts = [
            truncate_to_line(
                todo.text, TODO_TEXT_LIMIT, ellipsis=render_phrase("ellipsis", language)
            )
            for todo in todos
            if todo.state == state
        ]
        named = texts[:NAMED_ITEMS_LIMIT]
        if len(texts) > NAMED_ITEMS_LIMIT:
            named.append(render_phrase("todo_more", language, count=len(texts) - NAMED_ITEMS_LIMIT))
        if named:
            parts.append(render_phrase(f"todo_{state}", language, named=", ".join(named)))
    done = sum(todo.state == "done" for todo in todos)
    left = "; ".join(parts) or render_phrase("todo_all_done", language)
    return f"[{done}/{len(todos)}] {left}"


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
    fields = {TODO_TEXT_KEYS[0]: item} if isinstance(item, str) else item
    if not isinstance(fields, dict):
        return None
    texts = (fields.get(key) for key in TODO_TEXT_KEYS)
    text = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    if text is None:
        return None
    status = fields.get("status", "completed" if fields.get("completed") is True else "pending")
    return TodoItem(text, status if isinstance(status, str) else "pending")
