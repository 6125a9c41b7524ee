"""``python -m benchmarks.watching``: what it costs to follow 1,000 files of which none grows.

``convostore import FOLDER --watch`` runs as a process of its own. When all files are in the store,
its processor time is read at the beginning and at the end of a while in which nothing happens;
then a file grows, and it is told how long its messages take to be stored. Returns 1 where idling
takes over 1 % of a processor. Linux tells the times.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TARGET = 0.01
"""What idling may take of a processor."""
LINE = json.dumps({"role": "user", "content": "hello"}) + "\n"


class Run(NamedTuple):
    """What one run saw: the share of a processor while idle, and seconds until growth is stored."""

    idle: float
    noticed: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where it misses the target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watching", description=__doc__)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="that nothing happens")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        fill(Path(folder), options.files)
        run = measured(Path(folder), options.files, options.seconds)
    print(f"{options.files:,} files: {run.idle:.2%} of a processor while nothing happens")
    print(f"what a file gains is stored after {run.noticed:.1f} s")
    return int(run.idle > TARGET)


def fill(folder: Path, files: int) -> None:
    """Write files of one message each, a hundred a folder."""
    for number in range(files):
        path = folder / f"in/{number // 100}/{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINE, "utf-8")


def measured(folder: Path, files: int, seconds: float) -> Run:
    """Follow the files of a folder while nothing happens, then while one grows."""
    command = [sys.executable, "-m", "store", "--db", str(folder / "chat.db")]
    with subprocess.Popen(
        [*command, "import", str(folder / "in"), "--watch", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        for _ in range(files):
            process.stdout.readline()
        time.sleep(2)
        before = read_processor_time(process.pid)
        time.sleep(seconds)
        idle = (read_processor_time(process.pid) - before) / seconds
        began = time.monotonic()
        with (folder / "in/0/0.jsonl").open("a", encoding="utf-8") as file:
            file.write(LINE)
        process.stdout.readline()
        noticed = time.monotonic() - began
        process.send_signal(signal.SIGINT)
    return Run(idle, noticed)


def read_processor_time(process: int) -> float:
    """Return the processor time of a process (s)."""
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
