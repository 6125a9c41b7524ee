"""Write the parts of these pages that follow from the code: ``python docs/generate.py``.

``--check`` changes nothing.

A part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``, NAME being a key of
`PARTS`, or ``command`` and the words of a command. Whatever the code says for itself (signatures,
docstrings, tables, options) is taken from it, so that a page cannot say otherwise. Pictures are
files of their own, `FILES`, drawn from what the code does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from parts import FILES, PARTS, part

__all__ = ["FILES", "MARK", "PAGES", "PARTS", "filled", "stale"]

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MARK = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """Return a page with its generated parts made anew."""
    return MARK.sub(lambda found: f"{found[1]}\n{part(found[2])}\n\n{found[3]}", text)


def stale() -> dict[Path, str]:
    """Return what each page and picture would say, of those that say something else."""
    wanted = {page: filled(page.read_text("utf-8")) for page in PAGES}
    wanted |= {ROOT / name: made() for name, made in FILES.items()}
    return {path: text for path, text in wanted.items() if _old(path) != text}


def _old(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def main(arguments: list[str]) -> str | None:
    """Write the pages and pictures, or say which are stale."""
    changed = stale()
    if "--check" in arguments:
        names = ", ".join(path.name for path in changed)
        return f"stale: {names}; run python docs/generate.py" if changed else None
    for path, text in changed.items():
        path.write_text(text, "utf-8")
    if any(path.is_relative_to(ROOT / "store") for path in changed):
        # Pages follow from the package, which this process has imported as it was.
        subprocess.run([sys.executable, __file__], check=True)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
