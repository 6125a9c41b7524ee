"""Histories of aider, made up after real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
