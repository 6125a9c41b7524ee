from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.measures import MEASURES


def test_every_measure_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The program runs, both sides agree on every message, and no line of the table is missing."""
    main(["--quick", "--sizes", "1000", "--repeat", "1", "--writers", "2", "--folder", str(tmp_path)])
    printed = capsys.readouterr().out.splitlines()
    for measure in MEASURES.values():
        for line in measure.lines:
            assert measure.on_request or any(each.startswith(f"{line} ") for each in printed), line
