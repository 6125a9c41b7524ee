"""The public names: the `__all__` of each public module, with the docstring of each name.

The docstring of a constant or of a type is the string below its assignment. A name that a module
imports has the docstring of its definition.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from .markdown import as_table, plain

ROOT = Path(__file__).resolve().parent.parent.parent

PUBLIC = (
    *("", "errors", "policy", "records", "formats", "tools", "context", "summaries"),
    *("importing", "exporting", "transcripts", "transcripts.writing"),
    *(
        "inspection",
        "inspection.dump",
        "inspection.transfer",
        "simulation",
        "recall",
        "copying",
        "tokens",
        "html",
    ),
    "mcp",
    "pages",
    *("adapters.openai_agents", "adapters.pydantic_ai", "adapters.claude", "adapters.strands"),
    *("adapters.adk", "adapters.langgraph", "adapters.langchain"),
    *("adapters.agent_framework", "adapters.llama_index"),
)
"""The public modules by their names in the package; "" is the package itself."""


@cache
def source_of(place: str) -> ast.Module:
    """Return the tree of a module, by its name in the package."""
    path = ROOT.joinpath("store", *filter(None, place.split(".")))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def public_names(place: str) -> list[str]:
    """Return the `__all__` of a public module."""
    (listed,) = (
        each.value
        for each in source_of(place).body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__"
    )
    names: list[str] = ast.literal_eval(listed)
    return names


def docstring_of(place: str, name: str) -> str | None:
    """Return the docstring of a name where it is defined; None if it has none."""
    is_folder = ROOT.joinpath("store", *filter(None, place.split("."))).is_dir()
    body = source_of(place).body
    for each, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == name:
            return ast.get_docstring(each)
        targets = each.targets if isinstance(each, ast.Assign) else []
        targets = [each.target] if isinstance(each, ast.AnnAssign) else targets
        if name in [ast.unparse(part) for target in targets for part in ast.walk(target)]:
            is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            return str(below.value.value) if is_text else None
    for each in ast.walk(source_of(place)):
        if isinstance(each, ast.ImportFrom) and name in [alias.name for alias in each.names]:
            above = place.split(".")[: None if is_folder else -1] if place else []
            home = [*above[: len(above) + 1 - each.level], *(each.module or "").split(".")]
            found = ".".join(filter(None, home))
            inner = ROOT.joinpath("store", *filter(None, home), name)
            if inner.is_dir() or inner.with_suffix(".py").is_file():
                return ast.get_docstring(source_of(f"{found}.{name}".strip(".")))
            return docstring_of(found, name)
    return None


def public_list() -> str:
    """Return the names of each public module, each with the first sentence of its docstring."""
    return "\n\n".join(
        f"### {'.'.join(filter(None, ['store', place]))}: its names\n\n{_names_of(place)}"
        for place in PUBLIC
    )


def _names_of(place: str) -> str:
    rows = [
        [f"`{name}`", plain((docstring_of(place, name) or "").split("\n\n")[0])]
        for name in public_names(place)
    ]
    return as_table(["name", "what it is"], rows)
