"""The figures of the page of performance: kept as JSON beside it, so that it can be made anew."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "performance.json"


def read() -> Figures:
    """Return what was kept, by program."""
    kept: Figures = json.loads(KEPT.read_text("utf-8"))
    return kept


def written(program: str, found: Figures) -> None:
    """Keep a program's figures, and make the page and its pictures of them."""
    kept = read() if KEPT.exists() else {}
    KEPT.write_text(json.dumps({**kept, program: found}, indent=1) + "\n", "utf-8")
    subprocess.run([sys.executable, str(ROOT / "docs" / "generate.py")], check=True)


def machine() -> dict[str, Any]:
    """Return what the figures depend on: the day, the machine, how busy it was, the versions."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
