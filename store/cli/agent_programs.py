"""The programs that the server is entered in: where their configuration is, and its entry."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InvalidValue

SERVER_NAME = "convostore"
"""The name of the entry."""


class AgentProgram(NamedTuple):
    """A program that asks MCP servers.

    ``path`` are the parts of its configuration's path in the home folder, or in the folder that the
    variable ``home`` names; ``keys`` lead to the table of servers. ``guidance`` is the file of the
    user's own instructions, ``hooks`` that of its hooks, likewise (None: it has none).
    """

    path: tuple[str, ...]
    keys: tuple[str, ...]
    entry: Callable[[list[str]], dict[str, Any]]
    guidance: tuple[str, ...] | None = None
    home: str | None = None
    format: str = "json"
    hooks: tuple[str, ...] | None = None

    def locate(self, parts: tuple[str, ...]) -> Path:
        """Return the path of a file of the program in the user's home."""
        own = os.environ.get(self.home or "")
        if own:
            return Path(own, *parts[-1:])
        return Path.home().joinpath(*parts)

    def render(self, command: list[str]) -> str:
        """Return the lines of its configuration that start the server."""
        if self.format == "toml":
            return render_toml_entry(self.entry(command))
        value: Any = {SERVER_NAME: self.entry(command)}
        for key in reversed(self.keys):
            value = {key: value}
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _split_command(command: list[str]) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:]}


AGENT_PROGRAMS = {
    "claude-code": AgentProgram(
        (".claude.json",),
        ("mcpServers",),
        lambda command: {"type": "stdio", **_split_command(command)},
        (".claude", "CLAUDE.md"),
        "CLAUDE_CONFIG_DIR",
        hooks=(".claude", "settings.json"),
    ),
    "codex": AgentProgram(
        (".codex", "config.toml"),
        ("mcp_servers",),
        _split_command,
        (".codex", "AGENTS.md"),
        "CODEX_HOME",
        "toml",
    ),
    "gemini-cli": AgentProgram(
        (".gemini", "settings.json"), ("mcpServers",), _split_command, (".gemini", "GEMINI.md")
    ),
    "cursor": AgentProgram((".cursor", "mcp.json"), ("mcpServers",), _split_command),
    "opencode": AgentProgram(
        (".config", "opencode", "opencode.json"),
        ("mcp",),
        lambda command: {"type": "local", "command": command, "enabled": True},
        (".config", "opencode", "AGENTS.md"),
    ),
}
"""The programs by name."""


def render_toml_entry(entry: Mapping[str, Any]) -> str:
    """Return the table of the server; a JSON text or list of texts is one in TOML too."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    return "\n".join([f"[mcp_servers.{SERVER_NAME}]", *lines, ""])


def find_agent_program(name: str) -> AgentProgram:
    """Return a program by its name. Raises InvalidValue."""
    if name not in AGENT_PROGRAMS:
        raise InvalidValue(f"there is no program {name!r}; there are {', '.join(AGENT_PROGRAMS)}")
    return AGENT_PROGRAMS[name]


def render_configuration(name: str, command: list[str]) -> str:
    """Return the lines to paste into a program's configuration. Raises InvalidValue."""
    return find_agent_program(name).render(command)


def build_command(options: list[str]) -> list[str]:
    """Return the command that starts this server with some options, wherever it is started from."""
    beside = Path(sys.executable).with_name("convostore")
    started = [str(beside)] if beside.exists() else [sys.executable, "-m", "store"]
    return [*started, "mcp", *options]
