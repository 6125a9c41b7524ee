"""What a program imports: what it uses, where it first does."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import store
from store import Store

SLOW = {
    *("alembic", "anyio", "platformdirs", "pydantic", "pydantic_core"),
    *("rich", "sqlalchemy", "tiktoken", "typer"),
}
OF_THE_COMMAND = {"platformdirs", "rich", "typer"}
MOST_TO_IMPORT = 65
"""Modules of ours that importing the class takes, of three hundred."""
MOST_TO_READ = 96
MOST_TO_APPEND = 111
MOST_TO_PROBE = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a message."""
    with Store(tmp_path / "chat.db") as made:
        made.append("s", {"role": "user", "content": "hi"}, create=True)
    return tmp_path / "chat.db"


def imported(code: str, *arguments: object) -> set[str]:
    """Return what a new process imports."""
    told = f"import sys\n{code}\nimport json; print(json.dumps([*sys.modules]))"
    command = [sys.executable, "-c", told, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {*json.loads(done.stdout.splitlines()[-1])}


def ours(modules: set[str]) -> int:
    """Return how many modules are the package's own."""
    return sum(each.split(".")[0] == "store" for each in modules)


def test_who_imports_the_package_waits_for_no_library() -> None:
    """Who needs an error alone imports none; who needs a policy, what checks it."""
    assert not SLOW & imported("import store")
    assert not SLOW & imported("from store import StoreError, InvalidMessage")
    assert SLOW & imported("from store import Policy") == {"pydantic", "pydantic_core"}


@pytest.mark.slow
def test_a_program_loads_no_library_of_the_command(path: Path) -> None:
    """Whatever it imports from the package, and with a store in use: only `store.cli` needs them."""
    names = "import store\nfor name in store.__all__: getattr(store, name)\n"
    use = "with store.Store(sys.argv[1]) as opened: opened.view('s'), opened.context('s')\n"
    rooms = "from store import context, exporting, importing, inspection, recall, simulation\n"
    assert not OF_THE_COMMAND & imported("import store")
    assert not OF_THE_COMMAND & imported(names + use + rooms, path)


@pytest.mark.slow
def test_who_imports_the_class_waits_for_tables_and_no_policy() -> None:
    """Nor for what views, compacts, searches or counts."""
    modules = imported("from store import Store")
    assert SLOW & modules == {"sqlalchemy"}
    assert ours(modules) <= MOST_TO_IMPORT
    awaited = imported("from store import AsyncStore")
    assert SLOW & awaited == {"sqlalchemy", "anyio"}
    assert ours(awaited) <= MOST_TO_IMPORT + 5


@pytest.mark.slow
def test_who_opens_and_reads_waits_for_little_more(path: Path) -> None:
    """What opening and reading import is what they run."""
    modules = imported(
        "from store import Store\nwith Store(sys.argv[1]) as s: assert s.messages('s', -20)", path
    )
    assert SLOW & modules == {"sqlalchemy"}
    assert ours(modules) <= MOST_TO_READ


def test_who_appends_waits_for_no_policy(path: Path) -> None:
    """A message is stored without a rule for views."""
    said = {"role": "user", "content": "hi"}
    modules = imported(
        f"from store import Store\nwith Store(sys.argv[1]) as s: s.append('s', {said})", path
    )
    assert SLOW & modules == {"sqlalchemy"}
    assert ours(modules) <= MOST_TO_APPEND


def test_who_asks_for_the_health_waits_for_little(path: Path) -> None:
    """A probe in a new process reads no message, and loads nothing that does."""
    opening = "from store import Store\nwith Store(sys.argv[1]) as s: "
    asked = imported(f"{opening}assert s.health()", path)
    assert ours(asked) <= ours(imported(f"{opening}pass", path)) + MOST_TO_PROBE
    assert "store.messages.wire_fields" not in asked


@pytest.mark.slow
@pytest.mark.parametrize("asked", [["sessions", "--json"], ["append", "s", "hi"]], ids=str)
def test_a_command_that_draws_nothing_waits_for_no_drawing(path: Path, asked: list[str]) -> None:
    """Nor for a policy, where it has nothing to do with one."""
    modules = imported(f"from store.cli import main\nmain(['--db', sys.argv[1], *{asked}])", path)
    assert not {"rich", "store.policy.policy", "store.policy.field_types"} & modules


FROM_MANY_THREADS = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from store import Store
begin = Barrier(16)
asked = [lambda s: s.view('s'), lambda s: s.messages('s'), lambda s: s.count_tokens('s'),
         lambda s: s.context('s'), lambda s: s.search('hi'), lambda s: s.session('s'),
         lambda s: s.append('s', {'role': 'user', 'content': 'hi'}), lambda s: s.turns('s')]
def ask(number):
    begin.wait()
    return asked[number % len(asked)](store)
with Store(sys.argv[1]) as store, ThreadPoolExecutor(16) as threads:
    assert all(each is not None for each in threads.map(ask, range(16)))
"""


@pytest.mark.slow
def test_operations_may_be_used_first_by_many_threads_at_once(path: Path) -> None:
    """Each finds its operation whole, whoever imports it."""
    assert ours(imported(FROM_MANY_THREADS, path)) > MOST_TO_APPEND


def test_operations_are_plain_functions_to_whoever_looks() -> None:
    """Each method begins with ``self``, and has the parameters and the help of its operation."""
    looked = r"""
import inspect, pydoc, re
from store import Store
from store.history.append import append_messages as append
method, operation = (inspect.signature(each).parameters for each in (Store.append, append))
assert [*method][0] == "self" and [*method.values()][1:] == [*operation.values()][1:]
assert inspect.getdoc(Store.append) == inspect.getdoc(append) and inspect.isfunction(Store.append)
told = pydoc.plain(pydoc.render_doc(Store))
assert len(re.findall(r"\([\s|]*self,", told)) > 50 and "(connection: " not in told, told
"""
    assert ours(imported(looked))


def test_a_public_name_is_what_type_checkers_take_it_for() -> None:
    """Each is found in the room that the package names for those who read types."""
    source = ast.parse((ROOT / "store" / "__init__.py").read_text())
    said = [each for each in ast.walk(source) if isinstance(each, ast.ImportFrom) and each.level]
    names = {alias.name: f"store.{each.module}" for each in said for alias in each.names}
    for name in store.__all__:
        assert getattr(store, name) is getattr(importlib.import_module(names[name]), name)
    assert not hasattr(store, "shop")
    assert {*store.__all__} <= {*dir(store)}


def test_a_room_has_its_modules_by_name() -> None:
    """They need no import of their own."""
    assert inspect.ismodule(store.history.append)
    assert store.context.mentions is importlib.import_module("store.context.file_mentions").mentions
