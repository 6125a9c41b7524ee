"""Gemini's activity, made up in the shape that Google Takeout exports in 2026."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kind_checks import Counts, bring, check_counts, check_growth


def record(time: str, title: str, *html: str, **more: Any) -> dict[str, Any]:
    """Return a record."""
    told = {"header": "Gemini Apps", "title": title, "time": time, "products": ["Gemini Apps"]}
    answers = {"safeHtmlItem": [{"html": each} for each in html]} if html else {}
    return {**told, **answers, "activityControls": ["Gemini Apps Activity"], **more}


PAGE = "https://gemini.google.com/app/4f2a"
ANSWER = (
    "<p>Two <strong>islands</strong> &amp; a rock:</p><ul><li>Naxos</li><li>Crete</li></ul>"
    "<pre><code>a  = 1\n</code></pre>"
)
RECORDS = [
    record("2026-04-21T08:00:00.000Z", "Prompted And the rock?", "<p>Delos.</p>", titleUrl=PAGE),
    record("2026-04-20T19:00:00.000Z", "Used an Assistant feature"),
    record("2026-04-20T18:24:31.187Z", "Prompted Which islands?", ANSWER, titleUrl=PAGE),
    record("2026-04-19T07:00:00.000Z", "Prompted Hello", "<p>Hi.</p>", subtitles=[{"name": "x"}]),
]


def activity(path: Path, records: list[Any] = RECORDS) -> Path:
    """Write an export."""
    path.write_text(json.dumps(records, indent=2))
    return path


def own_activity(path: Path) -> Path:
    """Write an export of a conversation that no other export has."""
    page = f"{PAGE}-{path.stem}"
    return activity(path, [{**each, "titleUrl": page} for each in RECORDS if "titleUrl" in each])


def test_the_activity_of_gemini(tmp_path: Path) -> None:
    """A question with its answer, those of one conversation together, the oldest first."""
    brought = bring(activity(tmp_path / "MyActivity.json"), "gemini_takeout")
    told = [each for each in RECORDS if "safeHtmlItem" in each]
    pages = {each.get("titleUrl", each["time"]) for each in told}
    check_counts(brought, Counts(len(pages), 2 * len(told)))
    lines = {
        session.title: line
        for session, line in zip(brought.sessions, brought.messages, strict=True)
    }
    asked, answer, *_ = lines["Which islands?"]
    assert (asked["content"], asked["timestamp"]) == ("Which islands?", 1_776_709_471_187)
    assert answer["content"] == (
        "Two **islands** & a rock:\n\n- Naxos\n- Crete\n\n```\na  = 1\n\n```"
    )
    assert [each["content"] for each in lines["Which islands?"][2:]] == ["And the rock?", "Delos."]
    assert lines["Hello"][0]["gemini_takeout"] == {"subtitles": [{"name": "x"}]}
    assert [note.left_out for note in brought.report.notes] == [1]


def test_a_later_export(tmp_path: Path) -> None:
    """It has new records before the others; what was imported is not imported again."""
    states = [lambda at, first=first: activity(at, RECORDS[first:]) for first in (3, 2, 0)]
    check_growth(tmp_path / "MyActivity.json", "gemini_takeout", states)
