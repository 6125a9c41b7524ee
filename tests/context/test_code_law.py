"""The rules of a project (S4.2, S4.49, A4.17)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from store.context.law import LIMIT, code_law


def write(folder: Path, name: str, text: str | bytes) -> None:
    """Write a file."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def test_none() -> None:
    """Without a root, or a folder, or a file, there are no rules."""
    assert code_law(None) == ""
    assert code_law("/no/such/folder") == ""


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


def test_what_cannot_be_read_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A host's turn never fails for its rules."""
    (tmp_path / "CODE_LAW.md").symlink_to(tmp_path / "CODE_LAW.md")
    assert code_law(tmp_path) == ""
    with caplog.at_level(logging.WARNING, "store"):
        assert code_law("a\0b") == ""
    assert "cannot be read" in caplog.text


def test_odd_bytes_and_great_length(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 become U+FFFD; no more is read than the limit."""
    write(tmp_path, "CODE_LAW.md", b"\xef\xbb\xbfbad \xff\r\nline\r\n")
    assert code_law(tmp_path) == "bad \ufffd\r\nline\r\n"
    write(tmp_path, "CODE_LAW.md", "x" * (LIMIT + 10))
    assert len(code_law(tmp_path)) == LIMIT
