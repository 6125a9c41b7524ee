"""Files that a user mentions, and the reminder to read them (S4.39-S4.46)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from hypothesis import example, given
from hypothesis import strategies as st

from store.context.file_mentions import MOST_MENTIONS, render_reminder
from store.context.request import mentions, remind

CASES = json.loads((ROOT / "tests" / "vectors" / "mentions.json").read_text(encoding="utf-8"))[
    "cases"
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}: {case['text']}")
def test_examples_of_the_specification(case: dict[str, Any]) -> None:
    """The files and the exact text of the reminder (A4.16)."""
    assert mentions(case["text"]) == case["files"]
    assert render_reminder(case["text"]) == case["reminder"]
    wanted = f"{case['text']}\n\n{case['reminder']}" if case["reminder"] else case["text"]
    assert remind(case["text"]) == wanted


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("@README", ["README"]),
        ("(@a.py), @b.py; @c.py: @d.py!", ["a.py", "b.py", "c.py", "d.py"]),
        ("请看@src/a.ts,谢谢", ["src/a.ts"]),
        ("@.env and @./x/y.z", [".env", "./x/y.z"]),
        ("@a.ts... @b.ts.", ["a.ts", "b.ts"]),
        ("@ @. @.. @./ @../x @a/../../b @/etc/passwd", []),
        ("jo@x.de, josé@x.de, 5@x", []),
        ("x_@a.py", ["a.py"]),
        (
            "@src/测试.py @src/中文.md @文档 @src/हिन्दी.md @café",
            ["src/测试.py", "src/中文.md", "文档", "src/हिन्दी.md", "café"],
        ),
        ("请看@src/a.ts和@src/b.ts这两个 파일 @c.py를", ["src/a.ts", "src/b.ts", "c.py"]),
        ("看@src/utils这个目录", ["src/utils"]),
        ("иван@example.com δ@x.de é@x.de e\u0301@x.de ٣@x.de ʰ@x.de", []),
        ("안녕@example.com ㅋㅋ@x.kr مثال@example.com דוגמה@example.com", []),
        ("नमस्ते@example.com தமிழ்@x.in ქართული@x.ge አማርኛ@x.et", []),
        (
            "看@a.ts ファイル@b.ts ｶﾅ@c.ts ดูที่@d.ts ၾကည့်@e.ts",
            ["a.ts", "b.ts", "c.ts", "d.ts", "e.ts"],
        ),
        ("see 👍️@a.ts", ["a.ts"]),
        ('jo@"x @a" y', ["a"]),
        ('see @"my notes/to do.md", @"a.py"', ["my notes/to do.md", "a.py"]),
        ('@"/etc/passwd" @"~/x" @"C:/x" @"..\\x" @"\\\\host\\x" @"" @" "', []),
        ('@"文档/说明.md"', ["文档/说明.md"]),
        ("@a @a. @b @a", ["a", "b"]),
        ("", []),
    ],
)
def test_what_is_a_mention(text: str, files: list[str]) -> None:
    """Paths of the project in any script, or anything of the project in quotes.

    No addresses, nothing outside (A4.15).
    """
    assert mentions(text) == files


def test_what_exists_only(tmp_path: Path) -> None:
    """With a root, a mention is of a file that is there."""
    (tmp_path / "a.py").touch()
    assert mentions("@a.py @b.py", root=tmp_path) == ["a.py"]
    assert mentions("@a.py @b.py") == ["a.py", "b.py"]


def test_paths_with_spaces_keep_their_quotes() -> None:
    """So that the reminder can be read."""
    assert render_reminder('@"my notes.md" @a').splitlines()[1:3] == [
        'The user mentioned @"my notes.md", @a.',
        "You MUST read these files with the Read tool before answering.",
    ]


@given(st.text(st.sampled_from('@@@"a b./-\\~é文5\n,'), max_size=60))
@example('@"5@"')
@example('@"a."')
def test_laws(text: str) -> None:
    """Few, each once, inside of the project.

    A reminder is added once, at the end, and only for mentions.
    """
    found = mentions(text)
    assert len(found) == len(set(found)) <= MOST_MENTIONS
    assert all(
        path and not path.startswith(("/", "~", "\\")) and ".." not in path.split("/")
        for path in found
    )
    reminded = remind(text)
    assert reminded.startswith(text)
    assert (reminded == text) is not bool(found)
    assert remind(reminded) == reminded
