"""What a person sees in a notebook: one line for each object, frames, progress."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from html_reading import read_page

from store import InvalidValue, Policy, Store, StoreError
from store.exporting import export_session, export_store
from store.importing import import_file

SAID = [{"role": "user", "content": "Hi\nthere"}, {"role": "assistant", "content": "Hello."}]
STEPS = {"name": "Read", "arguments": '{"file_path": "a.py"}'}
CALLED = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": STEPS}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "text"},
]


def test_each_is_one_line(store: Store) -> None:
    """Whatever is in it."""
    store.create_session("one", title="A\ntitle " * 50, metadata={"prompt": "long " * 999})
    store.append("one", SAID)
    shown = (store.session("one"), store.view("one"), store.context("one"), store)
    for text in map(repr, shown):
        assert "\n" not in text
        assert len(text) < 250
    assert repr(store.view("one")) == "View(2 messages of 'one' at 2)"
    assert repr(store.session("one")).startswith("Session('one', title='A\\ntitle")


SHAPES = [
    '\U0001f600<&"' * 3_000,
    "word " * 3_000,
    "# **x**\n" * 3_000,
    "[" * 30_000,
    "\x1b" * 30_000,
]


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", SHAPES)
def test_a_cell_shows_at_most_20_kb(store: Store, text: str) -> None:
    """Of a session, view, request, plan and message, however long; and nothing of it acts."""
    session = store.create_session(title=text[:999], metadata={"prompt": text}).id
    steps = {"name": text[:300], "arguments": text}
    calls = [{"id": "c", "type": "function", "function": steps}] * 3
    turn = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": [{"type": "text", "text": text}] * 9, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": f"<script>{text}"},
    ]
    store.append(session, turn * 4)
    policy = Policy.named("agent", trigger_tokens=1)
    shown = [
        store.session(session),
        store.view(session, policy),
        store.context(session, system=text, policy=policy),
        store.plan_compaction(session, policy),
        *store.messages(session, last=3),
    ]
    for each in shown:
        cell = each._repr_html_()
        assert len(cell.encode()) <= 20_000
        assert read_page(cell).elements[:2] == ["div", "style"]


def test_a_view_of_a_thousand_messages_is_a_table(store: Store) -> None:
    """Its first and its last messages, each with the reason why it was replaced."""
    session = store.create_session().id
    store.append(session, [*SAID, *CALLED] * 250)
    cell = store.view(session)._repr_html_()
    elements = read_page(cell).elements
    assert elements.count("tr") == 22  # the head, 20 messages, and the number of the others
    assert "980 more" in cell
    assert "Read a.py" in cell
    assert "1,000 of 1,000" in cell


@pytest.mark.sqlite_only
def test_a_store_is_known_by_its_file(tmp_path: Path) -> None:
    """The whole path."""
    with Store(tmp_path / "chat.db") as made:
        assert repr(made) == f"Store({str(tmp_path / 'chat.db')!r})"


def test_frames_count_what_forks_share_once(store: Store) -> None:
    """Of a session or of all; times are in UTC."""
    pandas = pytest.importorskip("pandas")
    ann = store.scoped("ann")
    ann.create_session("all")
    ann.append("all", [*SAID, *CALLED])
    ann.fork("all", session_id="more")
    ann.append("more", SAID)
    ann.record_usage("more", input=5, output=1, model="m")
    ann.annotate("more", 5, "rating", 1)
    ann.archive("all")
    assert sorted(ann.frame("sessions").id) == ["all", "more"]
    assert ann.frame("messages").groupby("session_id").seq.count().to_dict() == {
        "all": 4,
        "more": 2,
    }
    assert ann.frame("turns").turn.tolist() == [2, 1]
    assert ann.frame("calls")[["session_id", "kind"]].values.tolist() == [["all", "file_read"]]
    assert len(ann.frame("calls", "more")) == len(ann.frame("files")) == 1
    assert ann.frame("usages").input.tolist() == ann.frame("notes").seq.tolist() == [5]
    assert str(ann.frame("usages")["at"].dt.tz) == "UTC"
    assert isinstance(ann.frame("turns"), pandas.DataFrame)
    assert not len(store.scoped("bob").frame("calls"))
    with pytest.raises(InvalidValue, match="there are sessions, usages"):
        ann.frame("pictures")


def test_without_pandas_the_error_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else needs it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(StoreError, match="pip install pandas"):
        store.frame("usages")


def check_progress(told: list[tuple[int, int]]) -> None:
    """Check that progress only grows, and ends with all."""
    assert told == sorted(told)
    assert told
    assert told[-1][0] == told[-1][1]


def test_long_work_tells_its_progress(store: Store, tmp_path: Path) -> None:
    """Imports, exports, verify and index, each as what is done and all there is."""
    store.create_session("long")
    store.append("long", SAID * 20)
    works: list[Any] = [
        lambda tell: export_session(store, "long", tmp_path / "a.jsonl", progress=tell),
        lambda tell: export_session(
            store, "long", tmp_path / "a.md", shape="markdown", progress=tell
        ),
        lambda tell: import_file(store, tmp_path / "a.jsonl", session_id="again", progress=tell),
        lambda tell: store.verify(progress=tell),
        lambda tell: store.append("long", SAID) and store.index(anew=True, progress=tell),
    ]
    if store.database.path:
        works.append(lambda tell: export_store(store, tmp_path / "all.jsonl", progress=tell))
    for work in works:
        told: list[tuple[int, int]] = []
        work(lambda done, total, told=told: told.append((done, total)))
        check_progress(told)
