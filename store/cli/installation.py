"""Entering the server in a program's configuration, and taking it out again.

A change is made of whole files, with the bytes from before: it can be shown first, a copy is kept,
and it is undone to the byte. A file that cannot be parsed is never written.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InvalidValue
from ..mcp import load_guidance
from .agent_programs import SERVER_NAME, AgentProgram, find_agent_program

COPY_ENDING = ".before-convostore"
HOOK_EVENT, DIGEST_OPTION = "SessionStart", "--digest"
GUIDANCE_MARKS = ("<!-- convostore: begin -->", "<!-- convostore: end -->")
_HOOK_COMMAND = re.compile(rf"(?:convostore'?|-m store) mcp\b.*{DIGEST_OPTION}\"")
_TOML_BLOCK = re.compile(rf"\n?\[mcp_servers\.{SERVER_NAME}\]\n(?:[^\[\n][^\n]*\n)*")
_GUIDANCE_BLOCK = re.compile(rf"\n?{GUIDANCE_MARKS[0]}\n.*?{GUIDANCE_MARKS[1]}\n", re.DOTALL)


class ConfigurationChange(NamedTuple):
    """A file with its content before and after (None: there is no file).

    ``undoes`` tells that it takes back an earlier change, whose copy is no longer needed.
    """

    path: Path
    before: str | None
    after: str | None
    undoes: bool = False

    @property
    def copy(self) -> Path:
        """Where the content from before is kept."""
        return self.path.with_name(self.path.name + COPY_ENDING)

    def render(self) -> str:
        """Return the change as a diff."""
        before, after = ((each or "").splitlines() for each in (self.before, self.after))
        name = str(self.path)
        return "\n".join(unified_diff(before, after, name, name, lineterm=""))

    def write(self) -> None:
        """Make the change; a copy is kept until it is undone."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.before is not None and not self.undoes:
            self.copy.write_bytes(self.before.encode())
            self.copy.chmod(self.path.stat().st_mode)
        if self.after is None:
            self.path.unlink()
        else:
            new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            new.write_bytes(self.after.encode())
            new.chmod(self.path.stat().st_mode if self.path.exists() else 0o600)
            new.replace(self.path)
        if self.undoes:
            self.copy.unlink(missing_ok=True)


def plan_install(
    name: str,
    command: list[str],
    *,
    hook: bool = False,
) -> list[ConfigurationChange]:
    """Return the changes that enter the server. Raises InvalidValue where none can be made.

    A ``hook`` gives each new session of a project a digest of the last ones.
    """
    program = find_agent_program(name)
    path = program.locate(program.path)
    before = read_file_text(path)
    if has_entry(program, path, before):
        raise InvalidValue(f"{path} has an entry {SERVER_NAME!r} already; --uninstall removes it")
    changes = [
        ConfigurationChange(path, before, add_entry(program, before, program.entry(command)))
    ]
    if program.guidance:
        place = program.locate(program.guidance)
        text = read_file_text(place)
        block = "\n".join([GUIDANCE_MARKS[0], load_guidance(), GUIDANCE_MARKS[1], ""])
        changes.append(ConfigurationChange(place, text, f"{text}\n{block}" if text else block))
    return [*changes, _plan_hook(name, program, command)] if hook else changes


def _plan_hook(name: str, program: AgentProgram, command: list[str]) -> ConfigurationChange:
    if program.hooks is None:
        raise InvalidValue(f"{name} gives new sessions no text of a hook; install without --hook")
    path = program.locate(program.hooks)
    text = read_file_text(path)
    entry = {"type": "command", "command": shlex.join([*command, DIGEST_OPTION])}
    group = {"matcher": "startup|clear", "hooks": [entry]}
    return ConfigurationChange(path, text, edit_hooks(path, text, [group]))


def plan_uninstall(name: str) -> list[ConfigurationChange]:
    """Return the changes that take the server out. Raises InvalidValue if it is not entered."""
    program = find_agent_program(name)
    path = program.locate(program.path)
    before = read_file_text(path)
    if before is None or not has_entry(program, path, before):
        raise InvalidValue(f"{path} has no entry {SERVER_NAME!r}")
    changes = [undo_file_change(path, before, lambda text: remove_entry(program, text))]
    place = program.locate(program.guidance) if program.guidance else None
    text = read_file_text(place) if place else None
    if place and text and _GUIDANCE_BLOCK.search(text):
        changes.append(undo_file_change(place, text, lambda text: _GUIDANCE_BLOCK.sub("", text)))
    hooks = program.locate(program.hooks) if program.hooks else None
    text = read_file_text(hooks) if hooks else None
    if hooks and text and _HOOK_COMMAND.search(text):
        changes.append(undo_file_change(hooks, text, lambda text: edit_hooks(hooks, text, [])))
    return changes


def undo_file_change(path: Path, text: str, remove: Any) -> ConfigurationChange:
    """Return the change back: to the copy if all else is as it was, else of our part alone."""
    rest: str = remove(text)
    change = ConfigurationChange(path, text, rest, undoes=True)
    original = read_file_text(change.copy)
    if original is not None and _is_same(path, original, rest):
        return change._replace(after=original)
    is_empty = original is None and rest.strip() in ("", "{}")
    return change._replace(after=None if is_empty else rest)


def _is_same(path: Path, original: str, rest: str) -> bool:
    if path.suffix != ".json":
        return original == rest
    return bool(json.loads(original or "{}") == json.loads(rest))


def read_file_text(path: Path) -> str | None:
    """Return the text of a file, None if there is none. Raises InvalidValue if it is no text."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidValue(f"{path} is not a text in UTF-8; it was not changed") from None


def parse_configuration(
    program: AgentProgram,
    path: Path,
    text: str | None,
) -> dict[str, Any]:
    """Return a configuration. Raises InvalidValue for one that cannot be parsed."""
    load = tomllib.loads if program.format == "toml" else json.loads
    try:
        parsed = load(text) if text and text.strip() else {}
    except ValueError as error:
        raise InvalidValue(f"{path} cannot be parsed, and was not changed: {error}") from None
    servers = parsed
    for key in program.keys if isinstance(parsed, dict) else ():
        servers = servers.get(key, {}) if isinstance(servers, dict) else None
    if not isinstance(servers, dict):
        raise InvalidValue(f"{path} is not a configuration of this program; it was not changed")
    return parsed


def has_entry(program: AgentProgram, path: Path, text: str | None) -> bool:
    """Tell whether a configuration has the entry. Raises InvalidValue."""
    servers = parse_configuration(program, path, text)
    for key in program.keys:
        servers = servers.get(key, {})
    return SERVER_NAME in servers


def add_entry(
    program: AgentProgram,
    text: str | None,
    entry: dict[str, Any],
) -> str:
    """Return a configuration with the entry; all else stays."""
    if program.format == "toml":
        block = program.render([entry["command"], *entry["args"]])
        return f"{text.rstrip(chr(10))}\n\n{block}" if text and text.strip() else block
    return _edit_json(program, text, entry)


def remove_entry(program: AgentProgram, text: str) -> str:
    """Return a configuration without the entry; all else stays."""
    if program.format == "toml":
        return _TOML_BLOCK.sub("", text)
    return _edit_json(program, text, None)


def edit_hooks(path: Path, text: str | None, groups: list[Any]) -> str:
    """Return settings whose hooks of new sessions are those of others, and the given ones.

    Raises InvalidValue for settings that cannot be parsed.
    """
    try:
        parsed = json.loads(text) if text and text.strip() else {}
        hooks = parsed.setdefault("hooks", {})
        others = [
            {**group, "hooks": rest}
            for group in hooks.get(HOOK_EVENT, [])
            if (rest := _leave_out_digest(group["hooks"])) or not group["hooks"]
        ]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise InvalidValue(f"{path} cannot be parsed, and was not changed: {error}") from None
    hooks[HOOK_EVENT] = [*others, *groups]
    if not hooks[HOOK_EVENT]:
        del hooks[HOOK_EVENT]
    if not hooks:
        del parsed["hooks"]
    return write_settings(parsed, text)


def _leave_out_digest(hooks: list[Any]) -> list[Any]:
    return [each for each in hooks if not _HOOK_COMMAND.search(json.dumps(each))]


def write_settings(parsed: Any, text: str | None) -> str:
    """Return settings as JSON, indented as the text from before."""
    indent = re.search(r"\n([ \t]+)", text or "")
    return json.dumps(parsed, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _edit_json(
    program: AgentProgram,
    text: str | None,
    entry: dict[str, Any] | None,
) -> str:
    parsed = json.loads(text) if text and text.strip() else {}
    servers = parsed
    for key in program.keys:
        servers = servers.setdefault(key, {})
    servers.pop(SERVER_NAME, None)
    if entry is not None:
        servers[SERVER_NAME] = entry
    elif not servers:
        parsed.pop(program.keys[0])
    return write_settings(parsed, text)
