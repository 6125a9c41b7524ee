"""The house rules that a machine can check: floors, libraries, lengths, docstrings, names, stray words."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "store"

FLOORS = [
    floor.split()
    for floor in (
        "errors clock collector messages records resources paths mentions todos code_law freshness",
        "schema tokens tool_kinds tools excerpts error_texts tool_shapes tool_output policy prompts summaries repair",
        "formats transcripts statements places writer_queue engine migrate",
        "lines facts sessions heads history turns tokenizing rules compactions shortening verdicts",
        "planning budget prefix view summarizers ledger recording fitting clearing compaction compacting",
        "context statistics console inspection erasure invariants verifying",
        "store",
        "importing simulation",
        "cli integrations",
    )
]
"""Where each module (or folder of modules) stands: it may import what stands before it, on its own floor too."""

ORDER = [module for floor in FLOORS for module in floor]
ENTRANCES = ("__init__", "__main__")  # they stand above all floors

SQL_FREE = {*FLOORS[0], *FLOORS[1], "formats", "transcripts", "cli"} - {"schema"}
ONLY_IN = {"tiktoken": {"tokens"}, "alembic": {"migrate"}, "typer": {"cli"}, "rich": {"cli"}}
ON_FIRST_USE = ("alembic", "tiktoken")

LONGEST_FILE = 400
LONGEST_FUNCTION = 50
BANNED_NAMES = re.compile("manager|helper|utils|handler", re.IGNORECASE)

# Taken apart, so that this file does not name them itself.
STRAY_WORDS = re.compile(
    r"(?<![\w.:])/" + "(work|tmp|root)/|" + "shared" + r"/(?!/)|house" + r"\.md|\bissues?" + r" #?\d"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """A file of the package; ``place`` is the name that the floors know it by."""

    path: Path
    place: str
    tree: ast.Module
    lines: int


def read(path: Path) -> Module:
    """Read one file of the package."""
    text = path.read_text(encoding="utf-8")
    return Module(path, path.relative_to(PACKAGE).with_suffix("").parts[0], ast.parse(text), len(text.splitlines()))


MODULES = [read(path) for path in sorted(PACKAGE.rglob("*.py"))]


def where(module: Module, node: ast.AST | None = None) -> str:
    """Return the place of a finding as an editor understands it."""
    return f"{module.path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def imports(module: Module) -> Iterator[tuple[ast.stmt, str]]:
    """Yield every import with the full names it may mean: ``from .. import x`` gives ``store.x``."""
    package = ("store", *module.path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            names = {f"{name}.{alias.name}" if name == "store" else name for alias in node.names}
            yield from ((node, name) for name in names)


def inner_imports(module: Module) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the imports from the package itself, by their places."""
    for node, name in imports(module):
        if name.startswith("store."):
            yield node, name.split(".")[1]


def functions() -> list[tuple[int, str]]:
    """Return each function's length without its docstring, and where it stands."""
    return [
        (length(node), f"{where(module, node)} {node.name}")
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, Function)
    ]


def length(function: Function) -> int:
    """Return the lines of a function without its docstring."""
    assert function.end_lineno is not None
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - docstring


def public(module: Module) -> Iterator[Function | ast.ClassDef]:
    """Yield the public functions, classes and methods; an overload has the docstring of what it overloads."""
    waiting: list[ast.stmt] = list(module.tree.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            waiting.extend(node.body)
        if not any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list):
            yield node


def test_every_module_has_a_floor() -> None:
    """A new module is given its place in the table above."""
    unknown = [where(module) for module in MODULES if module.place not in (*ORDER, *ENTRANCES)]
    assert not unknown, "add to FLOORS, each where all it imports stands before it:\n" + "\n".join(unknown)


def test_imports_go_down() -> None:
    """A module imports only what stands before it, so the package can be read from the first floor up."""
    wrong = [
        f"{where(module, node)} {module.place} imports {name}"
        for module in MODULES
        if module.place in ORDER
        for node, name in inner_imports(module)
        if name != module.place and (name not in ORDER or ORDER.index(name) > ORDER.index(module.place))
    ]
    assert not wrong, "\n".join(wrong)


def test_libraries_stay_where_they_belong() -> None:
    """Each library is used in one place, and no SQL library where the code is pure."""
    wrong = [
        f"{where(module, node)} {module.place} imports {name}"
        for module in MODULES
        for node, name in imports(module)
        for library in [name.split(".")[0]]
        if module.place not in ONLY_IN.get(library, {module.place})
        or (library == "sqlalchemy" and module.place in SQL_FREE)
    ]
    assert not wrong, "\n".join(wrong)


def test_slow_libraries_are_imported_on_first_use() -> None:
    """Opening a store that is up to date imports none of what it does not use."""
    wrong = [
        where(module, node)
        for module in MODULES
        for node, name in imports(module)
        if name.split(".")[0] in ON_FIRST_USE and node.col_offset == 0
    ]
    assert not wrong, "\n".join(wrong)
    code = "import sys, store; print(*{'alembic', 'tiktoken', 'typer', 'rich'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_files_are_short() -> None:
    """A file is read in one sitting."""
    assert [where(module) for module in MODULES if module.lines > LONGEST_FILE] == []


def test_functions_are_short() -> None:
    """Half of the functions have at most 8 lines, nine of ten at most 25, and none has more than 50."""
    found = sorted(functions(), reverse=True)
    lengths = [lines for lines, _ in found]
    assert [name for lines, name in found if lines > LONGEST_FUNCTION] == []
    assert statistics.median(lengths) <= 8, found[: len(found) // 2]
    assert statistics.quantiles(lengths, n=10)[-1] <= 25, found[: len(found) // 10]


def test_everything_public_is_documented() -> None:
    """Modules and public names have docstrings."""
    bare = [where(module) for module in MODULES if not ast.get_docstring(module.tree)]
    bare += [
        f"{where(module, node)} {node.name}"
        for module in MODULES
        for node in public(module)
        if not ast.get_docstring(node)
    ]
    assert not bare, "\n".join(bare)


def test_names_say_what_things_are() -> None:
    """No name is one of the words that fit everything."""
    named = [(where(module), module.path.stem) for module in MODULES]
    named += [
        (where(module, node), node.name)
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, Function | ast.ClassDef)
    ]
    assert [f"{place} {name}" for place, name in named if BANNED_NAMES.search(name)] == []


def test_no_stray_words() -> None:
    """Nothing in the repository names a path of one machine or the occasion on which it was written."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed if (ROOT / name).is_file()]
    stray = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in files
        for number, line in enumerate(path.read_bytes().decode("utf-8", "ignore").splitlines(), start=1)
        if STRAY_WORDS.search(line)
    ]
    assert files
    assert not stray, "\n".join(stray)


@pytest.mark.parametrize(
    ("text", "stray"),
    [
        ("see /" + "work/main", True),
        ("in (/" + "tmp/x)", True),
        ("the folder shared" + "/spec", True),
        ("closes issue" + " #12", True),
        ("~/network/tmp.db", False),
        ("a shared lock", False),
        ("tests/tmp/x", False),
    ],
)
def test_stray_words_are_found(text: str, stray: bool) -> None:
    """The search above finds what it should, and leaves the rest alone."""
    assert bool(STRAY_WORDS.search(text)) is stray
