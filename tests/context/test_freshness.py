"""Files that changed between two reads (S4.47, S4.48)."""

from __future__ import annotations

import json

from store.context.freshness import Freshness

READ = '{"status": "success", "data": {"content": "1 | x"}, "text": "Read a.py"}'


def test_only_a_change_by_others_is_told() -> None:
    """The first read, an unchanged file and the agent's own change are nothing to tell."""
    fresh = Freshness()
    assert fresh.note("a.py", 1.0) is None
    assert fresh.note("a.py", 1.0) is None
    assert fresh.note("a.py", 2.0) == "Note: a.py was modified externally."
    assert fresh.note("a.py", 2.0) is None
    fresh.wrote("a.py", 3.0)
    assert fresh.note("a.py", 3.0) is None
    assert fresh.note("a.py", 2.5) == "Note: a.py was modified externally."


def test_each_process_has_its_own() -> None:
    """Nothing is kept on disk, nothing shared."""
    Freshness().note("a.py", 1.0)
    assert Freshness().note("a.py", 2.0) is None


def test_what_the_agent_wrote_it_knows() -> None:
    """A file that the agent wrote and somebody changed is told at its first read."""
    fresh = Freshness()
    fresh.wrote("new.py", 1.0)
    assert fresh.note("new.py", 2.0) is not None


def test_the_note_stands_in_the_data() -> None:
    """Where the short form of the result keeps it."""
    fresh = Freshness()
    assert json.loads(fresh.noted("a.py", 1.0, READ))["data"] == {"content": "1 | x", "mtime": 1.0}
    again = json.loads(fresh.noted("a.py", 2.0, READ))
    assert again["data"]["note"] == "Note: a.py was modified externally."
    assert again["text"] == "Read a.py"


def test_other_contents_stay_as_they_are() -> None:
    """A result that has no data object is no place for a note."""
    fresh = Freshness()
    for content in ("plain", "{", "[]", '{"data": 5}', "[" * 100_000):
        assert fresh.noted("a.py", 1.0, content) == content


def test_another_process_goes_on_with_the_times() -> None:
    """A4.18: they are what JSON holds, and no more is shared."""
    first = Freshness()
    first.note("a.py", 1.0)
    first.wrote("b.py", 2.0)
    second = Freshness(json.loads(json.dumps(first.times)))
    assert second.note("a.py", 3.0) == "Note: a.py was modified externally."
    assert second.note("b.py", 2.0) is None
    assert first.times == {"a.py": 1.0, "b.py": 2.0}
