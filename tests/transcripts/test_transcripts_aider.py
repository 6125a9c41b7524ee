"""Histories of aider, made up after its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from store import Store
from store.importing import import_file
from store.transcripts import Noted, Opened, Said, read, sniff

TYPED = "#### to a.py  "
"""What was typed, as aider writes it: with a break behind it."""

FIRST = f"""
# aider chat started at 2026-01-01 00:00:01

> Aider v0.86.0
> Add .gitignore?

#### Add a loop
{TYPED}

# A heading

```python
for x in y: ...
```

> Tokens: 1.2k sent, 34 received.
> Applied edit to a.py

#### /add b.py
"""

SECOND = """
# aider chat started at 2026-01-02 00:00:01
> nothing was said
"""


def events(path: Path, kind: type) -> list[Any]:
    """Return the events of a kind."""
    return [event for event in read(path) if isinstance(event, kind)]


def test_each_chat_is_a_session(tmp_path: Path) -> None:
    """What was typed and answered are messages; what aider said itself is counted."""
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(FIRST + SECOND)
    assert sniff(path) == "aider"
    (session,) = events(path, Opened)
    assert session.session_id == f"aider-{tmp_path.name}-2026-01-01T00:00:01"
    assert (session.project_root, session.created_at) == (str(tmp_path), 1767225601000)
    said = [event.message for event in events(path, Said)]
    assert [each["role"] for each in said] == ["user", "assistant", "user"]
    assert said[0]["content"] == "Add a loop\nto a.py"
    assert said[1]["content"] == "# A heading\n\n```python\nfor x in y: ...\n```"
    assert said[2]["content"] == "/add b.py"
    assert [event.left_out for event in events(path, Noted)] == [4, 1]


def test_a_history_grows(tmp_path: Path, url: str) -> None:
    """An answer that was being written is replaced by the whole one; chats are added."""
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(FIRST)
    with Store(url) as store:
        import_file(store, path)
        path.write_text(f"{FIRST}\nDone.\n{SECOND}\n#### Again\n")
        report = import_file(store, path)
        assert [(each.appended, each.differs_at) for each in report.sessions] == [
            (1, None),
            (1, None),
        ]
