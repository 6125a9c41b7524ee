"""Histories of aider, made up after real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kind_checks import check_growth

from store import Store
from store.importing import import_file
from store.importing.files import find_transcript_files
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff


def ended(text: str) -> str:
    """Return a history with the break behind each line that aider marks, ``|`` here."""
    return text.replace("|", "  ")


FIRST = ended("""
# aider chat started at 2026-01-01 00:00:01

> Aider v0.86.0|
> Main model: gemini/gemini-2.5-pro with diff-fenced edit format|
> Add .gitignore?|

#### Add a loop|
#### to a.py|

#### A heading

> a quotation

```python
for x in y: ...
```

> Tokens: 1.2k sent, 34 received.|
> Applied edit to a.py|
>|

#### /add b.py|
""")

SECOND = ended("""
# aider chat started at 2026-01-02 00:00:01
> nothing was said|
""")


def events(path: Path, kind: type) -> list[Any]:
    """Return the events of a kind."""
    return [event for event in read(path) if isinstance(event, kind)]


def test_each_chat_is_a_session(tmp_path: Path) -> None:
    """What was typed and answered are messages; what aider said itself is counted."""
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(FIRST + SECOND)
    assert sniff(path) == "aider"
    (session,) = events(path, SessionEvent)
    assert session.session_id == f"aider-{tmp_path.name}-2026-01-01T00:00:01"
    assert (session.project_root, session.created_at) == (str(tmp_path), 1767225601000)
    assert session.metadata == {"model": "gemini/gemini-2.5-pro"}
    said = [event.message for event in events(path, SessionMessage)]
    assert [each["role"] for each in said] == ["user", "assistant", "user"]
    assert said[0]["content"] == "Add a loop\nto a.py"
    heading = "#### A heading\n\n> a quotation"
    assert said[1]["content"] == f"{heading}\n\n```python\nfor x in y: ...\n```"
    assert said[2]["content"] == "/add b.py"
    assert [event.left_out for event in events(path, NoteEvent)] == [5, 1]


def test_a_history_whose_breaks_an_editor_took_off(tmp_path: Path) -> None:
    """The marks alone tell then."""
    path = tmp_path / ".aider.chat.history.md"
    lines = [line.rstrip() for line in FIRST.replace("#### A heading", "A heading").splitlines()]
    path.write_text("\n".join(lines))
    roles = [event.message["role"] for event in events(path, SessionMessage)]
    assert roles == ["user", "assistant", "user"]


def test_a_history_is_found_in_its_folder(tmp_path: Path) -> None:
    """It is hidden, but aider leaves it in any folder."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".aider.chat.history.md").write_text(FIRST)
    (tmp_path / "work" / ".other.md").write_text(FIRST)
    found = find_transcript_files([tmp_path / "work"])
    assert [each.path.name for each in found] == [".aider.chat.history.md"]


def test_a_history_grows(tmp_path: Path, url: str) -> None:
    """An answer that was being written is replaced by the whole one; chats are added."""
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(FIRST)
    with Store(url) as store:
        import_file(store, path)
        path.write_text(f"{FIRST}\nDone.\n{SECOND}\n#### Again  \n")
        report = import_file(store, path)
        assert [(each.appended, each.differs_at) for each in report.sessions] == [
            (1, None),
            (1, None),
        ]


GROWN = FIRST + ended(
    "#### /run x|\n\nSo \xe4nd so.\n# A title\n#### A heading\n> quote\n\n> Tokens: 1k.|\n"
)


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_line_that_is_written_in_part_is_the_whole_in_the_end(tmp_path: Path) -> None:
    """Marks in part, half of a letter, an answer or a user's text that goes on in the next line."""
    data = f"{GROWN}{SECOND}\n#### Again  \n".encode()
    ends = [end for end in range(len(FIRST) - 30, len(data) + 1) if data[end - 4 : end].strip()]
    path = tmp_path / ".aider.chat.history.md"
    states = [lambda at, end=end: at.write_bytes(data[:end]) for end in ends]
    check_growth(path, "aider", states)


def test_a_last_line_without_an_end_comes_in_if_it_is_clear_who_said_it(tmp_path: Path) -> None:
    """Otherwise it waits for its end, and is told as unfinished."""
    path = tmp_path / ".aider.chat.history.md"
    for last, said, unfinished in (
        ("So it is.", "So it is.", False),
        ("#### Why?  ", "Why?", False),
        ("#### Why?", "/add b.py", True),
        ("> It is said", "/add b.py", True),
        ("##", "/add b.py", True),
    ):
        path.write_text(f"{FIRST}> Added.  \n\n{last}")
        assert events(path, SessionMessage)[-1].message["content"].endswith(said), last
        assert any(note.unfinished for note in events(path, NoteEvent)) == unfinished, last
