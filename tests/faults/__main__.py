"""``python -m tests.faults``: do to a store what may happen to it, and print how often it held.

``--every`` tries faults of the disk at every single read, write, flush and change of files, not
only at some of each operation. ``--write`` puts the table into ``docs/reliability.md``. Names of rows as arguments try
those alone. What is about servers needs one, whose URL is in CONVOSTORE_TEST_URL.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conftest import ROOT, database

from .campaign import ROWS, Row, skipped

PAGE = ROOT / "docs" / "reliability.md"
MARK = re.compile(r"(<!-- faults -->\n).*?(<!-- end -->)", re.DOTALL)
SERVER = os.environ.pop("CONVOSTORE_TEST_URL", None)


def cells(row: Row) -> Iterator[str]:
    """Try a row on each engine that it is about; yield how often it held."""
    for engine in ("sqlite", "postgresql"):
        if row.engine not in ("any", engine):
            yield ""
        elif engine == "postgresql" and not SERVER:
            yield "no server was named"
        else:
            yield tried(row, SERVER if engine == "postgresql" else None)


def tried(row: Row, server: str | None) -> str:
    """Try a row once, on a server or in a file."""
    if server:
        os.environ["CONVOSTORE_TEST_URL"] = server
    try:
        with tempfile.TemporaryDirectory() as folder, database(Path(folder)) as url:
            return skipped(row, url) or "{:,} of {:,}".format(*row.work(url, Path(folder)))
    finally:
        os.environ.pop("CONVOSTORE_TEST_URL", None)


HEAD = ["| id | fault | SQLite | PostgreSQL | not yet |", "| --- | --- | --- | --- | --- |"]


def main(arguments: list[str]) -> None:
    """Print the table, and write it where that is asked for."""
    if "--every" in arguments:
        os.environ["CONVOSTORE_FAULT_PLACES"] = "1000000"
    asked = [each for each in arguments if not each.startswith("--")] or list(ROWS)
    print(*HEAD, sep="\n")
    for name in asked:
        row = ROWS[name]
        line = f"| {' | '.join([name, row.fault, *cells(row), row.pending])} |"
        print(line, flush=True)
        if "--write" in arguments:
            write(name, line)


def write(name: str, line: str) -> None:
    """Put a line into the table of the docs; drop those of rows that are no more."""
    page = PAGE.read_text("utf-8")
    shown = re.findall(r"^(\| ([A-Z]\d[^|]*?) \| .*)$", MARK.search(page)[0], re.MULTILINE)
    lines = {each: old for old, each in shown} | {name: line}
    table = "\n".join([*HEAD, *(lines[each] for each in ROWS if each in lines)])
    PAGE.write_text(MARK.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
