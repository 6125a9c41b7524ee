"""Programs of others that ask the server: the inspector's command line, and coding agents."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import real_agents

from store import Store

pytestmark = [pytest.mark.sqlite_only, pytest.mark.slow]

INSPECTOR = "@modelcontextprotocol/inspector@0.15"
PROGRAMS = ("claude-code", "codex")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a folder with the inspector and the programs, from npm."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    packages = [INSPECTOR, *(real_agents.AGENTS[name].package for name in PROGRAMS)]
    folder = tmp_path_factory.mktemp("programs")
    try:
        real_agents.install_packages(folder, packages)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot install: {str(error)[:100]}")
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_agent_calls_each_tool(name: str, programs: Path) -> None:
    """In an empty home, by the configuration that `--install` wrote."""
    outcome = real_agents.ask_agent(name, programs)
    assert real_agents.find_problems(outcome) == [], outcome.printed
    assert real_agents.SESSION in json.dumps(outcome.answers["remember"])


def test_the_inspector_lists_and_calls_the_tools(programs: Path, tmp_path: Path) -> None:
    """Its command line, on the command over stdio."""
    path = tmp_path / "chat.db"
    with Store(path) as store:
        store.create_session(real_agents.SESSION, project_root="/srv/parcel", now=real_agents.START)
        store.append(
            real_agents.SESSION, [*real_agents.list_past_messages()], now=real_agents.START
        )

    def inspect(*options: str) -> dict[str, object]:
        program = str(programs / "node_modules" / ".bin" / "mcp-inspector")
        command = [program, "--cli", sys.executable, "-m", "store", "mcp", str(path)]
        printed = subprocess.check_output([*command, *options], text=True, timeout=120)
        told: dict[str, object] = json.loads(printed)
        return told

    listed = inspect("--method", "tools/list")["tools"]
    assert isinstance(listed, list)
    assert {each["name"] for each in listed} == {tool for tool, _ in real_agents.CALLS}
    for tool, arguments in real_agents.CALLS:
        given = [
            f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in arguments.items()
        ]
        options = ["--method", "tools/call", "--tool-name", tool, "--tool-arg", *given]
        assert not inspect(*options).get("isError"), tool
