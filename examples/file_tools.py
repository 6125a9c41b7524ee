"""The tools of a coding agent that works in one folder.

Each returns a result of one protocol, errors included.

    {"status": "success" or "error", "data": …, "text": …, "stats": …, "context": …, "error": …}

All of it is stored. What a finished turn still shows of a result, its short form, is not the tools'
business.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from store.context import Freshness

COMMANDS = {"python check.py": [sys.executable, "-E", "-B", "check.py"]}
"""What Bash runs: an example runs nothing that a model makes up."""


class ToolError(Exception):
    """What a tool cannot do: a code for programs, and a sentence for the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Result(NamedTuple):
    """What a tool found: ``data`` for programs, ``text`` for readers.

    ``error`` where it failed all the same.
    """

    data: dict[str, Any]
    text: str
    stats: dict[str, Any] = {}  # noqa: RUF012 - never changed
    error: ToolError | None = None


class FileTools:
    """The tools on one folder; ``clock`` tells the time in ms, for the files that they write."""

    def __init__(self, root: Path, clock: Callable[[], int]) -> None:
        self.root, self.clock, self.freshness = root, clock, Freshness()
        self.tools: dict[str, Callable[..., Result]] = {
            "LS": self.ls,
            "Glob": self.glob,
            "Grep": self.grep,
            "Read": self.read,
            "Edit": self.edit,
            "Write": self.write,
            "Bash": self.bash,
            "TodoWrite": self.todo_write,
        }

    def run(self, name: str, arguments: str) -> str:
        """Return what a tool returns, as JSON; whatever goes wrong is a result too."""
        given = json.loads(arguments)
        try:
            result = self.tools[name](**given)
        except ToolError as error:
            result = Result({}, str(error), error=error)
        fields = {"status": "error" if result.error else "success", **result._asdict()}
        fields["context"] = {"cwd": ".", "params_input": given}
        fields["error"] = (
            {"code": result.error.code, "message": str(result.error)} if result.error else None
        )
        content = json.dumps(fields, ensure_ascii=False)
        if (
            name == "Read" and not result.error
        ):  # says so if somebody else changed the file since it was read
            return self.freshness.noted(given["path"], self._mtime(given["path"]), content)
        return content

    def definitions(self) -> list[dict[str, Any]]:
        """Return the tools as the API is told of them."""
        return [_definition(name, tool) for name, tool in self.tools.items()]

    def ls(self, path: str) -> Result:
        """List a folder."""
        names = sorted(each.name + "/" * each.is_dir() for each in self._at(path).iterdir())
        return Result(
            {"path": path, "entries": names}, "\n".join(names), {"total_entries": len(names)}
        )

    def glob(self, pattern: str) -> Result:
        """Find files by their names."""
        paths = sorted(
            each.relative_to(self.root).as_posix()
            for each in self.root.glob(pattern)
            if each.is_file()
        )
        return Result({"paths": paths}, "\n".join(paths), {"matched": len(paths)})

    def grep(self, pattern: str) -> Result:
        """Find lines by what they say."""
        matches = [
            {"file": file, "line": number, "text": line.strip()}
            for file in self.glob("**/*").data["paths"]
            for number, line in enumerate(self._at(file).read_text("utf-8").splitlines(), 1)
            if re.search(pattern, line)
        ]
        text = "\n".join("{file}:{line}: {text}".format_map(match) for match in matches)
        return Result({"matches": matches}, text, {"matched_lines": len(matches)})

    def read(self, path: str) -> Result:
        """Read a file."""
        lines = self._at(path).read_text("utf-8").splitlines()
        content = "\n".join(f"{number:4} | {line}" for number, line in enumerate(lines, 1))
        stats = {"start_line": 1, "end_line": len(lines), "total_lines": len(lines)}
        return Result({"path": path, "content": content}, f"{path}\n{content}", stats)

    def edit(self, path: str, old: str, new: str) -> Result:
        """Replace what stands exactly once in a file."""
        before = self._at(path).read_text("utf-8")
        if before.count(old) != 1:
            raise ToolError("NOT_ONCE", f"the old text stands {before.count(old)} times in {path}")
        return self._changed(path, before, before.replace(old, new), replacements=1)

    def write(self, path: str, content: str) -> Result:
        """Write a whole file."""
        target = self._inside(path)
        before = target.read_text("utf-8") if target.exists() else ""
        return self._changed(
            path, before, content, operation="update" if target.exists() else "create"
        )

    def bash(self, command: str) -> Result:
        """Run a command."""
        if command not in COMMANDS:
            raise ToolError("REFUSED", f"only these commands run here: {', '.join(COMMANDS)}")
        done = subprocess.run(
            COMMANDS[command],
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        data = {
            "command": command,
            "stdout": done.stdout,
            "stderr": done.stderr,
            "exit_code": done.returncode,
        }
        failed = (
            ToolError("COMMAND_FAILED", f"exit code {done.returncode}") if done.returncode else None
        )
        return Result(data, done.stdout + done.stderr, {"exit_code": done.returncode}, failed)

    def todo_write(self, todos: list[dict[str, str]]) -> Result:
        """Note what is to do, and how far it is."""
        return Result(
            {"todos": todos}, "\n".join(f"[{each['status']}] {each['content']}" for each in todos)
        )

    def _changed(self, path: str, before: str, after: str, **facts: Any) -> Result:
        target = self._inside(path)
        write(target, after, self.clock())
        self.freshness.wrote(path, self._mtime(path))  # the agent knows of its own changes
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), path, path, lineterm=""
        )
        diff = "\n".join(lines)
        return Result({"path": path, "applied": True, **facts, "diff_preview": diff}, diff)

    def _mtime(self, path: str) -> float:
        return self._at(path).stat().st_mtime

    def _at(self, path: str) -> Path:
        found = self._inside(path)
        if not found.exists():
            raise ToolError("NOT_FOUND", f"there is no {path}")
        return found

    def _inside(self, path: str) -> Path:
        found = (self.root / path).resolve()
        if not found.is_relative_to(self.root.resolve()):
            raise ToolError("OUTSIDE", f"{path} is outside of the project")
        return found


def _definition(name: str, tool: Callable[..., Result]) -> dict[str, Any]:
    """Return one tool with its docstring as description; a parameter that is no text is a list."""
    given = inspect.signature(tool).parameters
    kinds = {
        each.name: {"type": "string" if each.annotation == "str" else "array"}
        for each in given.values()
    }
    parameters = {"type": "object", "properties": kinds, "required": list(given)}
    function = {"name": name, "description": inspect.getdoc(tool), "parameters": parameters}
    return {"type": "function", "function": function}


def write(path: Path, text: str, moment: int) -> None:
    """Write a file as if at a moment, in ms: so that the example prints the same each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    os.utime(path, (moment // 1000, moment // 1000))
