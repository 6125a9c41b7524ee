"""The names that a room lets others use, written from the table of its `__init__`.

The table names them for Python, which imports a module where a name of it is used first. Type
checkers and readers need them as imports and as ``__all__``: both are written from the table, in
the place of the lines between ``if TYPE_CHECKING:`` and the table itself. A public room has its
``__all__`` before these lines: it is written by hand, and names what the room promises to programs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .imports import render_import, sort_names

ROOT = Path(__file__).resolve().parent.parent.parent
START, END = "if TYPE_CHECKING:\n", "if not TYPE_CHECKING:"


def list_rooms() -> list[Path]:
    """Return each `__init__` that has a table of names."""
    found = sorted((ROOT / "store").rglob("__init__.py"))
    return [path for path in found if f"\n{END}" in path.read_text(encoding="utf-8")]


def read_table(source: str) -> dict[str, list[str]]:
    """Return the names of a room by the module that has them, modules themselves under ""."""
    calls = (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Call))
    named = (each for each in calls if isinstance(each.func, ast.Name))
    (call,) = (each for each in named if ast.unparse(each.func) == "attach_modules")
    listed = [
        *((None, each) for each in call.args[1:]),
        *((each.arg, each.value) for each in call.keywords),
    ]
    return {module or "": ast.literal_eval(names).split() for module, names in listed}


def render_exports(path: Path) -> str:
    """Return an `__init__` with its imports and its `__all__` as the table says."""
    source = path.read_text(encoding="utf-8")
    table = read_table(source)
    imports = [
        render_import(f".{module}", table[module]) for module in sorted(table) if table[module]
    ]
    before, after = source[: source.index(START)], source[source.index(END) :]
    if "\n__all__ = [" in before:
        return f"{before}{START}" + "\n".join([*imports, "", after])
    names = sort_names([name for names in table.values() for name in names])
    listed = ["__all__ = [", *(f'    "{name}",' for name in names), "]"]
    return f"{before}{START}" + "\n".join([*imports, "", *listed, "", after])


EXPORTS: dict[str, Callable[[], str]] = {
    path.relative_to(ROOT).as_posix(): partial(render_exports, path) for path in list_rooms()
}
"""What writes each `__init__` that has a table, by its path in the project."""
