"""``python -m benchmarks.first_answer``: how soon agents can ask a home that was never read.

A home of three programs, Claude Code, Codex and Gemini CLI, with sessions of some MB and no
configuration. The server is entered in Claude Code by ``--install``, and started by what that
wrote. Its first call comes at once, while the programs go on writing; then ``sessions`` is asked
until the import is done. Returns 1 where the first answer takes more than 2 s from its call, does
not have the newest session, or the index takes more than a minute for each 100 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client, StdioServerParameters, stdio_client

LONGEST_ANSWER = 2.0
"""Seconds from the first call to its answer."""
LONGEST_MINUTE = 60.0
"""Seconds that 100 MB may take."""
WORDS, STEPS = 5_000, 40
RESULT_WORDS = 250
"""Words of a result."""
NEWEST = "quinoa"
"""What only the newest session has, which goes on."""


class Outcome(NamedTuple):
    """The seconds until the first answer, whether it has the newest session, and of the index."""

    answered: float
    has_newest: bool
    indexed: float
    messages: int


class Home:
    """Sessions of three programs, always the same."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._chance = folder, random.Random(32)
        letters = "aeioubcdfgklmnprst"
        self._words = ["".join(self._chance.choices(letters, k=6)) for _ in range(WORDS)]
        self.size, number = 0, 0
        while self.size < size:
            write = (self._write_claude, self._write_codex, self._write_gemini)[number % 3]
            path = write(number)
            at = time.time() - 1_000_000 + number
            os.utime(path, (at, at))
            self.size += path.stat().st_size
            number += 1
        self.newest = self._write_claude(number, NEWEST)

    def go_on(self) -> None:
        """Write another message of the newest session."""
        with self.newest.open("a") as opened:
            row = self._claude_row(self.newest.stem, 1_000 + self._chance.randrange(10**9))
            message = {"role": "user", "content": self.say(20)}
            opened.write(json.dumps(row | {"type": "user", "message": message}) + "\n")

    def say(self, count: int) -> str:
        """Return some words."""
        return " ".join(self._chance.choices(self._words, k=count))

    def _steps(self) -> Iterator[tuple[str, str, str]]:
        for _ in range(STEPS):
            yield self.say(12), f"make {self.say(1)}", self.say(RESULT_WORDS)

    def _write(self, path: Path, rows: list[Any]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path

    def _claude_row(self, session: str, number: int) -> dict[str, Any]:
        return {
            "uuid": f"{session}-{number}",
            "sessionId": session,
            "cwd": "/srv/parcel",
            "version": "2.1.0",
            "timestamp": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}.000Z",
        }

    def _write_claude(self, number: int, topic: str = "") -> Path:
        session = f"0b8f4d5c-0000-4000-8000-{number:012}"
        rows: list[Any] = []

        def add(role: str, content: Any) -> None:
            parent = rows[-1]["uuid"] if rows else None
            message = {"role": role, "content": content}
            row = self._claude_row(session, len(rows))
            rows.append(row | {"type": role, "parentUuid": parent, "message": message})

        add("user", f"{topic} {self.say(30)}")
        for at, (said, command, result) in enumerate(self._steps()):
            call = {"type": "tool_use", "id": f"toolu_{at}", "name": "Bash"}
            add(
                "assistant",
                [{"type": "text", "text": said}, call | {"input": {"command": command}}],
            )
            add("user", [{"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": result}])
        folder = self._folder / ".claude" / "projects" / "-srv-parcel"
        return self._write(folder / f"{session}.jsonl", rows)

    def _write_codex(self, number: int) -> Path:
        session = f"0190f4d5-0000-7000-8000-{number:012}"
        begun = "2026-01-01T00:00:00.000Z"
        meta = {"id": session, "timestamp": begun, "cwd": "/srv/parcel", "cli_version": "0.171.0"}
        rows: list[Any] = [{"timestamp": begun, "type": "session_meta", "payload": meta}]

        def add(kind: str, **fields: Any) -> None:
            payload = {"type": kind, **fields}
            rows.append({"timestamp": begun, "type": "response_item", "payload": payload})

        asked = [{"type": "input_text", "text": self.say(30)}]
        add("message", role="user", content=asked)
        for at, (said, command, result) in enumerate(self._steps()):
            add("message", role="assistant", content=[{"type": "output_text", "text": said}])
            arguments = json.dumps({"command": ["bash", "-lc", command]})
            add("function_call", name="shell", arguments=arguments, call_id=f"call_{at}")
            add("function_call_output", call_id=f"call_{at}", output=result)
        folder = self._folder / ".codex" / "sessions" / "2026" / "01" / "01"
        return self._write(folder / f"rollout-2026-01-01T00-00-00-{session}.jsonl", rows)

    def _write_gemini(self, number: int) -> Path:
        begun = "2026-01-01T00:00:00.000Z"
        told: list[Any] = [{"id": "0", "timestamp": begun, "type": "user", "content": self.say(30)}]
        for at, (said, command, result) in enumerate(self._steps()):
            output = {"functionResponse": {"id": f"c{at}", "response": {"output": result}}}
            call = {"id": f"c{at}", "name": "run_shell_command", "args": {"command": command}}
            answer = {"id": f"g{at}", "timestamp": begun, "type": "gemini", "content": said}
            told.append(answer | {"toolCalls": [call | {"result": [output], "status": "success"}]})
        chat = {
            "sessionId": f"7b8f4d5c-0000-4000-8000-{number:012}",
            "projectHash": "0" * 64,
            "startTime": begun,
            "lastUpdated": begun,
            "messages": told,
        }
        folder = self._folder / ".gemini" / "tmp" / ("0" * 64) / "chats"
        return self._write(folder / f"session-2026-01-01T00-00-{number:08}.json", [chat])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_answer", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="of sessions")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder), options.megabytes * 1_000_000)
        outcome = ask_home(home, Path(folder))
    longest = LONGEST_MINUTE * home.size / 100e6
    print(f"{home.size / 1e6:.0f} MB, {outcome.messages:,} messages in the last 100 sessions")
    print(f"first answer: {outcome.answered:.2f} s, with the newest session: {outcome.has_newest}")
    print(f"whole index: {outcome.indexed:.1f} s of {longest:.0f} s")
    is_late = outcome.answered > LONGEST_ANSWER or outcome.indexed > longest
    return int(is_late or not outcome.has_newest)


def ask_home(home: Home, folder: Path) -> Outcome:
    """Install the server in a home, ask it at once, and wait until the index is whole."""
    kept = ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV")
    there = {name: os.environ[name] for name in kept if name in os.environ}
    there |= {"HOME": str(folder), "XDG_DATA_HOME": str(folder / ".local" / "share")}
    install = [sys.executable, "-m", "store", "mcp", "--install", "claude-code", "--yes"]
    subprocess.run(install, env=there, check=True, stdout=subprocess.DEVNULL)
    entry = json.loads((folder / ".claude.json").read_text())["mcpServers"]["convostore"]
    started = StdioServerParameters(command=entry["command"], args=entry["args"], env=there)
    return asyncio.run(_ask_server(started, home))


async def _ask_server(started: StdioServerParameters, home: Home) -> Outcome:
    async with Client(stdio_client(started)) as client:
        began = time.perf_counter()
        first = await client.call_tool("remember", {"text": f"what was {NEWEST} about?"})
        answered = time.perf_counter() - began
        found = (first.structured_content or {}).get("passages") or []
        writing = asyncio.create_task(_go_on(home))
        while True:
            told = (await client.call_tool("sessions", {"limit": 100})).structured_content or {}
            if not told.get("import"):
                break
            await asyncio.sleep(1)
        indexed = time.perf_counter() - began
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
    has_newest = any(each["session"] == home.newest.stem for each in found)
    return Outcome(
        answered, has_newest, indexed, sum(each["messages"] for each in told["sessions"])
    )


async def _go_on(home: Home) -> None:
    while True:
        home.go_on()
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
