"""The programs that measure, at tiny sizes, and what the page of performance makes of figures."""

from __future__ import annotations

import importlib
import json
import re
import sys
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import ROOT

from benchmarks import figures, plots
from benchmarks.peers import __main__ as peers
from benchmarks.peers.table import OPERATIONS, PEERS
from benchmarks.scale import __main__ as scale
from benchmarks.scale import crowd, growing, many
from store import Store
from store.cli import chart

sys.path.insert(0, str(ROOT / "docs"))
performance = importlib.import_module("parts.performance")

pytestmark = pytest.mark.sqlite_only
PICTURES = sorted((ROOT / "docs").glob("performance-*.svg"))


@pytest.mark.slow
def test_sides_are_asked_for_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that need no other library give every operation, and agree about every message."""
    assert peers.main(["--quick", "--peers", "raw,ours", "--folder", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert [label for label in OPERATIONS.values() if label not in told] == []
    assert not [*tmp_path.iterdir()]


def test_sides_that_disagree_are_not_compared() -> None:
    """The first difference is named."""
    with pytest.raises(AssertionError, match="ours and raw disagree about view"):
        peers._proved({"ours": {"load": "a", "view": "b"}, "raw": {"load": "a", "view": "c"}})


def test_a_side_without_its_library_is_left_out() -> None:
    """No error: the others are measured."""
    assert PEERS["raw"].is_there()
    assert not PEERS["raw"]._replace(imported="nothing.of.that.name").is_there()


@pytest.mark.slow
def test_sessions_files_and_crowds_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each program gives a figure for each operation; nothing is lost."""
    kept: dict[str, Any] = {}
    monkeypatch.setattr(scale, "written", kept.__setitem__)
    assert scale.main(["--quick", "--json", "--write", "--folder", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert kept == {"scale": found}
    assert {*found["growing"][-1]["times"]} == {*growing.OPERATIONS}
    assert {*found["many"][-1]["times"]} == {*many.OPERATIONS}
    assert [each["sessions"] for each in found["many"]] == [*many.QUICK]
    assert all(each["lost"] == each["errors"] == 0 for each in found["crowd"])
    assert all(each["p50"] <= each["p99"] <= each["worst"] for each in found["crowd"])


def test_a_session_grows_to_each_size(tmp_path: Path) -> None:
    """Whatever the operations before have added."""
    session = growing.Growing(tmp_path / "growing.db")
    session.grow(30)
    session.grow(70)
    assert session.store.session(growing.SESSION).head == 70
    session.close()


def test_lost_and_swapped_appends_are_counted(tmp_path: Path) -> None:
    """One that is missing at the end, and two that changed places."""
    with Store(tmp_path / "chat.db") as store:
        crowd._fill(tmp_path / "chat.db", 1)
        for said in ("step 0", "step 2", "step 1"):
            store.append("session-0", {"role": "user", "content": said})
        assert crowd._wrong(store, "session-0", 3) == 2
        assert crowd._wrong(store, "session-0", 4) == 3


class Said(NamedTuple):
    """A line of words in a picture, and the room that it takes."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def said(svg: str) -> list[Said]:
    """Return the words of a picture with their places."""
    found = []
    for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        size = int(each.attrib["font-size"])
        wide = chart.measure_text(each.text or "", size)
        x = float(each.attrib["x"])
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[each.attrib["text-anchor"]]
        base = float(each.attrib["y"])
        found.append(Said(each.text or "", left, base - 0.8 * size, left + wide, base + 0.2 * size))
    return found


def is_readable(svg: str) -> bool:
    """Tell whether all words are inside the picture, and none lies on another."""
    wide, high = (float(ET.fromstring(svg).attrib[name]) for name in ("width", "height"))
    texts = said(svg)
    inside = all(
        each.left >= 0 and each.right <= wide and each.top >= 0 and each.bottom <= high
        for each in texts
    )
    return inside and not any(meet(*pair) for pair in combinations(texts, 2))


def meet(one: Said, other: Said) -> bool:
    """Tell whether two lines of words share any room."""
    beside = one.left < other.right and other.left < one.right
    return beside and one.top < other.bottom and other.top < one.bottom


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_plots_can_be_read(path: Path) -> None:
    """Every picture of the page is well formed, and its words keep apart."""
    svg = path.read_text("utf-8")
    assert len(said(svg)) > 8
    assert is_readable(svg)


def test_no_operation_is_left_out_of_its_plot() -> None:
    """Each has a line, or a row, with its words."""
    for name, operations in (("growing", growing.OPERATIONS), ("many", many.OPERATIONS)):
        svg = (ROOT / "docs" / f"performance-{name}.svg").read_text("utf-8")
        assert {*operations.values()} <= {each.text for each in said(svg)}


def test_lines_that_end_in_one_point_have_their_words_apart() -> None:
    """The same at the upper edge, at the lower one and between."""
    points: dict[str, list[tuple[float, float]]] = {
        "first": [(100, 1), (1_000, 1)],
        "second": [(100, 1), (1_000, 1)],
        "third": [(100, 1), (1_000, 1.01)],
        "fourth": [(100, 1), (1_000, 1_000)],
        "fifth": [(100, 1), (1_000, 1_000)],
        "sixth": [(100, 1), (1_000, 30)],
    }
    lines = [plots.Line(name, given) for name, given in points.items()]
    svg = plots.grown("What it costs", "messages", lines)
    assert {*points} <= {each.text for each in said(svg)}
    assert is_readable(svg)
    overlapping = svg.replace(">second<", ">first<").replace("messages", "m" * 200)
    assert not is_readable(overlapping)


def test_words_are_spread() -> None:
    """As near to where they should be as can be, in their order, and inside."""
    assert plots.spread([50, 10], 10, 0, 100) == [50, 10]
    assert plots.spread([50, 50, 50], 10, 0, 100) == [40, 50, 60]
    assert plots.spread([0, 1, 98, 99], 10, 0, 100) == [0, 10, 90, 100]


def test_a_time_is_said_in_its_unit() -> None:
    """Three figures at most."""
    assert [plots.milliseconds(each) for each in (0.1, 1, 12.34, 1000, 3456)] == [
        "100 µs",
        "1 ms",
        "12.3 ms",
        "1 s",
        "3.46 s",
    ]
    assert [plots.times(each) for each in (0.5, 2, 12.3, 1234)] == [
        "0.5 ×",
        "2 ×",
        "12 ×",
        "1,234 ×",
    ]


def test_who_is_faster_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes clearly less, at the largest size; nobody who takes about as much."""
    taken = {"raw": 1.0, "ours": 2.0, "llm": 0.5, "adk": 1.95}
    times = {"append": {"10": {name: {"cpu": cpu} for name, cpu in taken.items()}}}
    sides = {name: {"label": PEERS[name].label} for name in taken}
    monkeypatch.setattr(performance, "read", lambda: {"peers": {"sides": sides, "times": times}})
    told = performance.faster()
    assert "| 2 × that of the work by hand, 4 × that of llm | a message is checked" in told
    assert "ADK" not in told
    taken["ours"] = 0.4
    times["append"]["10"]["ours"]["cpu"] = 0.4
    assert performance.faster() == "In none of these operations."


def test_each_operation_says_why_it_may_cost_more() -> None:
    """So that a faster side never stands without a reason."""
    assert {*performance.WHY} == {*OPERATIONS}


def test_figures_of_one_program_leave_those_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is measured again replaces its own part, and the page is made anew."""
    made: list[list[str]] = []
    monkeypatch.setattr(figures, "KEPT", tmp_path / "performance.json")
    monkeypatch.setattr(figures.subprocess, "run", lambda command, check: made.append(command))
    figures.written("peers", {"sizes": [1]})
    figures.written("scale", {"many": []})
    figures.written("peers", {"sizes": [2]})
    assert figures.read() == {"peers": {"sizes": [2]}, "scale": {"many": []}}
    assert {Path(command[1]).name for command in made} == {"generate.py"}
    assert len(made) == 3


def test_the_page_has_every_figure() -> None:
    """Every operation, every side and every size that was measured; versions and the day."""
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    kept = figures.read()
    wanted = [*OPERATIONS.values(), *growing.OPERATIONS.values(), *many.OPERATIONS.values()]
    wanted += [side["label"] for side in kept["peers"]["sides"].values()]
    wanted += [side["version"] for side in kept["peers"]["sides"].values()]
    wanted += [kept[program]["machine"]["date"] for program in ("peers", "scale")]
    assert [each for each in wanted if each not in page] == []
    assert re.findall(r"!\[[^]]+\]\((performance-\w+\.svg)\)", page) == [
        f"performance-{name}.svg" for name in ("growing", "many", "crowd", "peers")
    ]
    assert len(PICTURES) == 4


def test_the_readme_tells_the_same_figures() -> None:
    """Those of the largest session that was measured, as on the page."""
    measured = figures.read()["peers"]
    size = measured["sizes"][-1]
    (row,) = re.findall(
        r"^\| \*\*Time\*\* \|.*$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert f"{size:,} messages: " in row
    wanted = ["append", "load", "view", "again"]
    taken = [measured["times"][name][str(size)] for name in wanted]
    told = [plots.times(each["ours"]["cpu"] / each["raw"]["cpu"]) for each in taken]
    assert re.findall(r"[\d.,]+ ×", row) == told
