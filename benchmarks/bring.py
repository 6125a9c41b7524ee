"""``python -m benchmarks.bring``: import a session of Claude Code, of 500 MB or as asked.

The file is made up as the program writes it: a row for each block of an answer, results that are
told twice, and rows of progress, which are a fifth of it. ``convostore import`` runs as a process
of its own, once for a new store and once when nothing is new; before, for a tenth of the size, to
which the memory is to be compared: it hardly grows with the file. It is told how many MB are taken
in a second, and in a second of a processor, and what memory is needed. Linux tells the times.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from .workload import Message, conversation

ROOT = Path(__file__).resolve().parent.parent
MB = 1_000_000
PROGRESS = 4
"""Rows of progress between a call and its result, on the average."""

Row = dict[str, Any]


class Run(NamedTuple):
    """What an import took: seconds, seconds of a processor, and the most memory (bytes)."""

    seconds: float
    processor: float
    memory: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bring", description=__doc__)
    parser.add_argument("--size", type=float, default=500, help="of all files (MB)")
    parser.add_argument("--files", type=int, default=1, help="each a session")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure on")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as name:
        for share, runs in ((10, ["tenth"]), (1, ["new", "again"])):
            folder = Path(name, runs[0])
            size = fill(folder, options.size * MB / share / options.files, options.files)
            for run in runs:
                print(told(run, size, measured(folder)), flush=True)
    return 0


def told(name: str, size: int, run: Run) -> str:
    """Return a line that tells of an import."""
    whole = size / MB
    wall = f"{whole:,.0f} MB in {run.seconds:,.1f} s: {whole / run.seconds:,.1f} MB/s"
    rate = f"{whole / run.processor:,.1f} MB a second of a processor ({run.processor:,.1f} s)"
    return f"{name:5}  {wall}, {rate}, {run.memory / MB:,.0f} MB of memory"


def fill(folder: Path, size: float, files: int) -> int:
    """Write files of at least a size (bytes), each a session; return the size of all."""
    return sum(write(folder / f"in/session-{number}.jsonl", size) for number in range(files))


def write(path: Path, size: float) -> int:
    """Write a session of at least a size (bytes), named after the file; return its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in _rows(path.stem):
            file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
            if file.tell() >= size:
                break
        return file.tell()


def _rows(session: str) -> Iterator[Row]:
    """Yield rows of a session without an end, each below the one before."""
    numbers, above = count(1), None
    for message in conversation(sys.maxsize, seed=len(session)):
        for row in _rows_of(message, f"req-{message['timestamp']}"):
            uuid = f"{session}-{next(numbers):08}"
            moment = datetime.fromtimestamp(message["timestamp"] / 1000, UTC)
            common = {"cwd": "/home/dev/project", "version": "2.1.0", "gitBranch": "main"}
            stands = {"uuid": uuid, "parentUuid": above, "sessionId": session}
            when = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            yield {**stands, "isSidechain": False, "userType": "external", **common, **row} | {
                "timestamp": when
            }
            above = uuid


def _rows_of(message: Message, request: str) -> Iterator[Row]:
    """Yield the rows that Claude Code writes for a message."""
    if message["role"] == "assistant":
        usage = {"input_tokens": 1200, "output_tokens": 310, "cache_read_input_tokens": 40_000}
        for block in _blocks(message):
            api = {"id": request.replace("req", "msg"), "type": "message", "role": "assistant"}
            more = {"model": "claude", "content": [block], "stop_reason": None, "usage": usage}
            yield {"type": "assistant", "requestId": request, "message": {**api, **more}}
    elif message["role"] == "tool":
        for _ in range(PROGRESS):
            data = {"type": "bash_progress", "output": message["content"][:500]}
            yield {"type": "progress", "data": data, "toolUseID": message["tool_call_id"]}
        yield _result(message["tool_call_id"], message["content"])
    else:
        yield {"type": "user", "message": {"role": "user", "content": message["content"]}}


def _blocks(message: Message) -> Iterator[Row]:
    if message["content"]:
        yield {"type": "text", "text": message["content"]}
    for call in message.get("tool_calls", ()):
        name, given = call["function"]["name"], json.loads(call["function"]["arguments"])
        yield {"type": "tool_use", "id": call["id"], "name": name, "input": given}


def _result(call: str, text: str) -> Row:
    block = {"type": "tool_result", "tool_use_id": call, "content": text}
    again = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    said = {"role": "user", "content": [block]}
    return {"type": "user", "message": said, "toolUseResult": again}


def measured(folder: Path) -> Run:
    """Import the files of a folder into the store beside them."""
    command = [sys.executable, "-m", "store", "--db", str(folder / "chat.db"), "import"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [*command, str(folder / "in"), "--json"],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(seconds, spent, after.ru_maxrss * 1024)


if __name__ == "__main__":
    sys.exit(main())
