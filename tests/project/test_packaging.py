"""What an installation promises.

Its name, its extras, its command, its typing and the folders that come with it.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from store.database import files


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """Read the project's own metadata."""
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


IMPORTED_AS = {
    "openai-agents": "agents",
    "pydantic-ai-slim": "pydantic_ai",
    "strands-agents": "strands",
    "google-adk": "google",
    "opentelemetry-api": "opentelemetry",
    "agent-framework-core": "agent_framework",
    "llama-index-core": "llama_index",
}
"""Distributions that are imported under another name."""


def distributions(requirements: list[str]) -> set[str]:
    """Return what is required, by the names under which it is imported."""
    names = (re.split(r"[\[<>=~! ]", requirement)[0] for requirement in requirements)
    names = (IMPORTED_AS.get(name, name) for name in names)
    return {name.replace("-", "_").removesuffix("_py") for name in names}


def imported(module: Path) -> set[str]:
    """Return the libraries that a module imports, anywhere in it.

    Each backport is one, though they share a name.
    """
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [
        node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level
    ]
    names = [name.replace("backports.", "backports_") for name in names]
    return {name.split(".")[0] for name in names} - {*sys.stdlib_module_names, "store"}


def test_project(project: dict[str, Any]) -> None:
    """The distribution and the command are called convostore.

    The extras have the documented names.
    """
    assert project["name"] == "convostore"
    assert project["scripts"] == {"convostore": "store.cli:main"}
    assert {"postgres", "offline", "test", "dev"} <= set(project["optional-dependencies"])


def test_every_library_is_declared(project: dict[str, Any]) -> None:
    """What the package imports, the project or one of its extras requires."""
    declared = distributions(project["dependencies"]).union(
        *map(distributions, project["optional-dependencies"].values())
    )
    used = set().union(*(imported(path) for path in (ROOT / "store").rglob("*.py")))
    assert used - declared == set()


def test_installed(project: dict[str, Any]) -> None:
    """Where it is installed, the version and the command are those of this checkout, and the
    command can be loaded.
    """
    try:
        installed = metadata.distribution("convostore")
    except metadata.PackageNotFoundError:
        pytest.skip("not installed: the checkout is tested as it lies")
    assert installed.version == project["version"]
    (command,) = (entry for entry in installed.entry_points if entry.name == "convostore")
    assert callable(command.load())


def test_typed() -> None:
    """Type checkers are told that the package has types."""
    assert (files.PACKAGE_FOLDER / "py.typed").is_file()


@pytest.mark.parametrize(("name", "file"), [("migrations", "env.py"), ("prompts", "README.md")])
def test_shipped_folders(name: str, file: str) -> None:
    """The folders that the code needs are found, with what belongs in them."""
    assert (files.find_folder(name) / file).is_file()


@pytest.mark.parametrize("place", ["store/prompts", "prompts"])
def test_wheel_and_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str) -> None:
    """A folder is found inside the package, as in a wheel, and beside it, as in a checkout."""
    monkeypatch.setattr(files, "PACKAGE_FOLDER", tmp_path / "store")
    (tmp_path / place).mkdir(parents=True)
    assert files.find_folder("prompts") == tmp_path / place


def test_inside_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installed package does not take a stranger's folder that happens to lie beside it."""
    monkeypatch.setattr(files, "PACKAGE_FOLDER", tmp_path / "store")
    for place in ("store/prompts", "prompts"):
        (tmp_path / place).mkdir(parents=True)
    assert files.find_folder("prompts") == tmp_path / "store" / "prompts"


def test_missing_folder() -> None:
    """A folder that is nowhere means a damaged installation, and the error says so."""
    with pytest.raises(
        FileNotFoundError,
        match=r"nowhere/ is neither in nor next to the package .* install it again",
    ):
        files.find_folder("nowhere")


@pytest.mark.slow
def test_the_library_prints_nothing_by_itself(tmp_path: Path) -> None:
    """What it logs is for the host.

    Without logging set up, a warning does not reach standard error.
    """
    code = (
        "from store import Policy, Store\n"
        "store = Store('chat.db')\n"
        "store.create_session('s')\n"
        "store.append('s', [{'role': 'user', 'content': 'x' * 99}] * 9)\n"
        "print(store.compact('s', Policy(), lambda request: '').outcome)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    assert (ran.stdout, ran.stderr) == ("failed\n", "")


@pytest.mark.slow
def test_a_file_store_py_beside_an_app_does_not_hide_the_package(tmp_path: Path) -> None:
    """The second name opens a new store, with all migrations, and takes nothing of the app's."""
    installed, app = tmp_path / "site", tmp_path / "app"
    (installed / "convostore").mkdir(parents=True)
    app.mkdir()
    (installed / "store").symlink_to(ROOT / "store")
    alias = (ROOT / "store" / "alias.py").read_text(encoding="utf-8")
    (installed / "convostore" / "__init__.py").write_text(alias, encoding="utf-8")
    (app / "store.py").write_text("shop = 'mine'\n")
    (app / "main.py").write_text(
        "import store, sys\n"
        "from convostore import Store, StoreError, __all__\n"
        "from convostore.context import mentions\n"
        "with Store('chat.db') as opened:\n"
        "    opened.append(opened.create_session('a').id, {'role': 'user', 'content': 'Hi'})\n"
        "    print(store.shop, opened.session('a').head, StoreError.__module__, len(__all__) > 9)\n"
        "    assert opened.verify() == [] and mentions('@a.py')\n"
        "assert not [name for name in sys.modules if name.startswith('store.')]\n"
    )
    done = subprocess.run(
        [sys.executable, "main.py"],
        cwd=app,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["mine", "1", "convostore.errors", "True"], done.stderr
