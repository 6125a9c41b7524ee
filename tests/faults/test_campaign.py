"""The campaign of faults, row by row, and that the table of the docs shows all of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

from tests.faults.campaign import ROWS, skipped


def cases() -> list[object]:
    """Return each row; one that does not hold yet has to fail."""
    return [
        pytest.param(
            name,
            id=name,
            marks=[pytest.mark.xfail(reason=row.pending, strict=True)] if row.pending else [],
        )
        for name, row in ROWS.items()
    ]


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("name", cases())
def test_a_fault_is_survived(name: str, bare_url: str, tmp_path: Path) -> None:
    """Every time that it is tried."""
    row = ROWS[name]
    reason = skipped(row, bare_url)
    if reason:
        pytest.skip(reason)
    held, tried = row.work(bare_url, tmp_path)
    assert tried
    assert held == tried


@pytest.mark.sqlite_only
def test_the_docs_show_the_whole_table() -> None:
    """Each row is there with what it does, and held every time unless it says why not."""
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    table = page.partition("<!-- faults -->")[2].partition("<!-- end -->")[0]
    shown = dict(re.findall(r"^\| ([A-Z]\d[^|]*?) \| (.*) \|$", table, re.MULTILINE))
    assert [*shown] == [*ROWS]
    for name, row in ROWS.items():
        fault, *found, pending = (each.strip() for each in shown[name].split(" | "))
        assert (fault, pending) == (row.fault, row.pending)
        tried = [bool(each) for each in found]
        assert tried == [row.engine in ("any", each) for each in ("sqlite", "postgresql")]
        for held, times in re.findall(r"([\d,]+) of ([\d,]+)", " ".join(found)):
            assert pending or held == times, name
