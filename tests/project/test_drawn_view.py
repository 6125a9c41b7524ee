"""The notebook of the examples: its cells are run, and its pictures are those that they make."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb"
SVG = "{http://www.w3.org/2000/svg}"
SHOWN = {"_repr_html_": "text/html", "_repr_svg_": "image/svg+xml"}


def run_cell(text: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell, and return what a notebook shows of its last value."""
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None  # type: ignore[attr-defined]
    for method, kind in SHOWN.items():
        if hasattr(value, method):
            shown = getattr(value, method)().splitlines(keepends=True)
            return [{"data": {kind: shown}, "metadata": {}, "output_type": "display_data"}]
    return []


@pytest.mark.sqlite_only
def test_the_notebook_shows_what_its_cells_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run with ``CONVOSTORE_WRITE_NOTEBOOK=1`` to write what they make into it."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    names: dict[str, Any] = {}
    made = [run_cell("".join(each["source"]), names) for each in cells]
    if os.environ.get("CONVOSTORE_WRITE_NOTEBOOK"):
        for cell, outputs in zip(cells, made, strict=True):
            cell["outputs"] = outputs
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert [each["outputs"] for each in cells] == made
    (picture,) = made[-2]
    drawn = ET.fromstring("".join(picture["data"]["image/svg+xml"]))
    widths = [float(each.attrib["width"]) for each in drawn.iter(f"{SVG}rect")]
    stored, sent = widths[::2], widths[1::2]
    entries = names["view"].entries
    assert len(sent) == len(entries)
    shorter = [place for place, each in enumerate(sent) if each < stored[place]]
    assert shorter == [place for place, each in enumerate(entries) if each.tokens_saved > 0]
    assert len(shorter) > 3
