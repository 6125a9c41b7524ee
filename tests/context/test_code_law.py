"""The rules of a project (S4.2, S4.49, A4.17)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.context import mentions, remind
from store.context.project_rules import LAW_SIZE_LIMIT, Law
from store.context.project_rules import code_law as law_of
from store.errors import InvalidValue


def code_law(root: str | Path | None) -> str:
    """Return the text of the rules of a folder."""
    return law_of(root).text


def write(folder: Path, name: str, text: str | bytes) -> None:
    """Write a file."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def test_none() -> None:
    """Without a root, or a folder, or a file, there are no rules."""
    assert code_law(None) == ""
    assert code_law("/no/such/folder") == ""


@pytest.mark.parametrize("root", [5, b"/root", 0.5, ["/root"]], ids=repr)
def test_a_root_is_a_path(store: Store, root: Any) -> None:
    """Anything else is refused wherever one is asked for, with an error of ours."""
    session = store.create_session().id
    store.append(session, {"role": "user", "content": "a"})
    for ask in (
        lambda: store.context(session, root=root),
        lambda: code_law(root),
        lambda: mentions("@a.py", root=root),
        lambda: remind("@a.py", root=root),
    ):
        with pytest.raises(InvalidValue, match="root must be the path"):
            ask()


def test_any_case_and_the_exact_name_first(tmp_path: Path) -> None:
    """The name counts in any case; of several, the exact one, else the first in order."""
    assert code_law(tmp_path) == ""
    write(tmp_path, "code_law.md", "small")
    assert code_law(tmp_path) == "small"
    write(tmp_path, "Code_Law.md", "mixed")
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("the file system does not tell names by their case")
    assert code_law(str(tmp_path)) == "mixed"
    write(tmp_path, "CODE_LAW.md", "exact")
    assert code_law(tmp_path) == "exact"
    write(tmp_path, "CODE_LAW.md.bak", "other")
    assert code_law(tmp_path) == "exact"


def test_as_it_is_now(tmp_path: Path) -> None:
    """A change of the same length in the same moment is seen too."""
    for text in ("one", "two", "six"):
        write(tmp_path, "CODE_LAW.md", text)
        assert code_law(tmp_path) == text


def test_a_folder_of_that_name_is_none(tmp_path: Path) -> None:
    """And gives way to a file in another spelling."""
    (tmp_path / "CODE_LAW.md").mkdir()
    assert code_law(tmp_path) == ""
    (tmp_path / "CODE_LAW.md").rename(tmp_path / "CODE_LAW.MD")
    write(tmp_path, "code_law.md.txt", "other")
    assert code_law(tmp_path) == ""
    (tmp_path / "CODE_LAW.MD").rmdir()
    (tmp_path / "CODE_LAW.md").mkdir()
    if not (tmp_path / "code_law.md").exists():  # the file system tells names by their case
        write(tmp_path, "code_law.md", "file")
        assert code_law(tmp_path) == "file"


def test_what_cannot_be_read_is_told_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A host's turn never fails for its rules."""
    (tmp_path / "CODE_LAW.md").symlink_to(tmp_path / "CODE_LAW.md")
    assert law_of(tmp_path) == Law()
    with caplog.at_level(logging.WARNING, "store"):
        assert law_of("a\0b").text == ""
    assert "is not sent" in caplog.text


def test_a_mark_at_the_beginning_and_line_ends(tmp_path: Path) -> None:
    """The mark of UTF-8 is none of the text, line ends stay."""
    write(tmp_path, "CODE_LAW.md", b"\xef\xbb\xbfone\r\nline\r\n")
    assert code_law(tmp_path) == "one\r\nline\r\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("x" * (LAW_SIZE_LIMIT + 1), f"it has more than {LAW_SIZE_LIMIT:,} bytes"),
        (b"rule \0 rule", "it is no text"),
        (b"bad \xff", "it is no text in UTF-8"),
    ],
)
def test_what_is_no_text_to_be_sent_is_refused(
    tmp_path: Path, content: str | bytes, problem: str
) -> None:
    """Whole or not at all."""
    write(tmp_path, "CODE_LAW.md", content)
    assert law_of(tmp_path) == Law(problem=f"CODE_LAW.md of {tmp_path} is not sent: {problem}")


def test_as_much_as_may_be(tmp_path: Path) -> None:
    """The limit itself is not too large."""
    write(tmp_path, "CODE_LAW.md", "中" * (LAW_SIZE_LIMIT // 3))
    assert len(code_law(tmp_path)) == LAW_SIZE_LIMIT // 3


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    """A project that was cloned sends no key of whoever cloned it; a link inside is fine."""
    project = tmp_path / "project"
    project.mkdir()
    write(tmp_path, "secret", "the key")
    (project / "CODE_LAW.md").symlink_to("../secret")
    law = law_of(project)
    assert law.text == ""
    assert str(law.problem).endswith("it is a link to a file outside of the folder")
    (project / "CODE_LAW.md").unlink()
    write(project, "rules.md", "rules")
    (project / "CODE_LAW.md").symlink_to("rules.md")
    (tmp_path / "link").symlink_to(project)
    assert code_law(project) == code_law(tmp_path / "link") == "rules"


def test_what_is_logged_is_text(caplog: pytest.LogCaptureFixture) -> None:
    """A folder whose name is no text in UTF-8 is told so that a log can be written."""
    told = law_of("no \ud800 text").problem or ""
    assert told.startswith(r"CODE_LAW.md of no \ud800 text is not sent: ")
    assert caplog.text.encode("utf-8")
