"""What pages show, run from top to bottom."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple


class Block(NamedTuple):
    """A fenced block of a page.

    ``output`` is the block of text right below it, None where there is none.
    """

    language: str
    code: str
    line: int
    output: str | None


FENCE = re.compile(r"^```(\w*)\n(.*?)^```$(?:\n*```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[Block]:
    """Return a page's fenced blocks, each with the output that it is said to have."""
    text = page.read_text("utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 2, found[3])
        for found in FENCE.finditer(text)
    ]


class Page:
    """Runs what a page shows, from top to bottom, in a folder of its own."""

    def __init__(self, page: Path) -> None:
        self._page = page
        self._names: dict[str, Any] = {"__name__": "example"}

    def run(self, block: Block) -> str:
        """Run a block; return what it printed. Raises whatever it raises."""
        runs = {"python": self._python, "sql": self._sql, "sh": self._sh, "toml": self._toml}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            runs.get(block.language, self._nothing)(block)
        return printed.getvalue()

    def _python(self, block: Block) -> None:
        exec(compile("\n" * (block.line - 1) + block.code, str(self._page), "exec"), self._names)

    def _sql(self, block: Block) -> None:
        with contextlib.closing(sqlite3.connect("chat.db")) as connection:
            for statement in filter(str.strip, block.code.split(";\n")):
                rows = connection.execute(statement).fetchall()
                assert rows, f"no rows: {statement}"
                for row in rows:
                    print(*("" if value is None else value for value in row), sep="|")

    def _sh(self, block: Block) -> None:
        for line in block.code.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] != ["convostore"] or "//user@host" in line:
                continue  # of another program, or on a server that only the page knows
            if "browse" in words:
                browse(words[1:])
            else:
                convostore(words[1:])

    def _toml(self, block: Block) -> None:
        """Write the file that the first line names."""
        Path(block.code.splitlines()[0].removeprefix("# ")).write_text(block.code, "utf-8")

    def _nothing(self, block: Block) -> None:
        """Leave a block of another language alone."""


def convostore(words: list[str]) -> None:
    """Run the command in this process; one that fails raises."""
    from store.cli import main

    status = main(words)
    assert status == 0, f"convostore {shlex.join(words)} ended with {status}"


def browse(words: list[str]) -> None:
    """Run the command that serves pages, ask for the first one, and end it as Ctrl-C does."""
    command = [sys.executable, "-m", "store", *words, "--port", "0"]
    env = {**os.environ, "BROWSER": "true"}  # what --open opens: a program that does nothing
    env.pop("PYTHONUNBUFFERED", None)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as server:
        try:
            assert server.stdout
            reader = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with reader.open(server.stdout.readline().strip(), timeout=60) as page:
                assert b"demo" in page.read()
        finally:
            server.send_signal(signal.SIGINT)
    assert server.returncode in (0, 130), f"browse ended with {server.returncode}"
