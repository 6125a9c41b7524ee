"""``python -m tests.formats FOLDER``: judge every request of a folder of recorded conversations.

Each file by each ready policy in each format, then each format in and every format out. Prints how
many requests are valid, by kind and by way, and the first that is wrong of each. Ends with 1 where
any is. Words behind the folder try the files alone whose names have one of them.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from crossing import Request, requests
from judge import JUDGES

Cell = tuple[str, str]


class Table:
    """How many requests are valid, of how many, in each row and format."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._asked: Counter[Cell] = Counter()
        self._valid: Counter[Cell] = Counter()

    def count(self, row: str, request: Request) -> None:
        """Count a request in a row."""
        self._asked[row, request.format] += 1
        self._valid[row, request.format] += not request.wrong

    def show(self) -> None:
        """Print the table."""
        rows = dict.fromkeys(row for row, _ in self._asked)
        width = max(map(len, (self._title, *rows)))
        print(self._title.ljust(width), *(name.rjust(13) for name in JUDGES))
        for row in rows:
            cells = (f"{self._valid[row, name]:,}/{self._asked[row, name]:,}" for name in JUDGES)
            print(row.ljust(width), *(cell.rjust(13) for cell in cells))
        print()


def main(arguments: list[str]) -> int:
    """Run the program; return 1 where a request is wrong."""
    folder, *wanted = arguments
    by_kind, by_way = Table("kind"), Table("by policy, or after coming in")
    wrong: dict[tuple[str, str, str], Request] = {}
    slowest, unread = (0.0, ""), 0
    times: defaultdict[str, int] = defaultdict(int)
    for path in _files(Path(folder), wanted):
        begun = time.perf_counter()
        found = 0
        for request in requests(path):
            found += 1
            by_kind.count(request.kind, request)
            by_way.count(request.way, request)
            if request.wrong:
                times[path.name] += 1
                wrong.setdefault((request.kind, request.way, request.format), request)
        unread += not found
        slowest = max(slowest, ((time.perf_counter() - begun) / max(found, 1), path.name))
    by_kind.show()
    by_way.show()
    print(f"{unread} files that nothing reads; slowest: {slowest[0]:.2f} s a request, {slowest[1]}")
    for request in wrong.values():
        print(f"WRONG {request.file} ({request.way}, {request.format}): {request.wrong[0]:.500}")
    if times:
        worst = max(times, key=lambda name: times[name])
        print(f"worst: {worst}, {times[worst]} requests")
    return int(bool(wrong))


def _files(folder: Path, wanted: list[str]) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in found if not wanted or any(word in path.name for word in wanted)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
