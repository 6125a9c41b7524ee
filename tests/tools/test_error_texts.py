"""What is told of an error.

Of each program's results the part that says it, never more than so many code points.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.tools.error_texts import ERROR_TEXT_POINTS, SEARCHED_ERROR_POINTS, find_error_text
from store.tools.excerpts import ERROR_WORDS, find_error_lines, find_matching_lines

NOISE = "\n".join(f"compiling module {number} of 90" for number in range(90))
CHUNK = "Chunk ID: 1f3f42\nWall time: 0.0000 seconds\nProcess exited with code 2\nOriginal token count: 49\nOutput:\n"
S4 = {"status": "error", "text": NOISE, "stats": {"time_ms": 3}, "context": {"cwd": "."}}

TOLD: list[tuple[str, Any, str]] = [
    ("short", "  Error: no such file\n", "Error: no such file"),
    ("nothing", "", ""),
    ("protocol", {**S4, "error": {"code": "NOT_FOUND", "message": "no a.py"}, "data": {}}, "NOT_FOUND: no a.py"),
    ("message alone", {**S4, "error": {"message": "no file"}}, "no file"),
    ("number", {"error": {"code": 404, "message": "not found"}}, "404: not found"),
    ("text", {"error": "boiler on fire", "stderr": "steam"}, "boiler on fire"),
    ("flag", {"error": True, "message": "boiler on fire"}, "boiler on fire"),
    ("data", {**S4, "error": None, "data": {"stdout": "x", "stderr": "make: *** 2\n"}}, "make: *** 2"),
    ("terminal", {"stdout": NOISE, "stderr": "cc: no input", "exitCode": 1}, "cc: no input"),
    ("stdout", {"stdout": f"{NOISE}\n1 failed", "stderr": " ", "exitCode": 1}, "1 failed"),
    ("end of stderr", {"stderr": "a" * 300 + "b" * 150}, "a" * 50 + "b" * 150),
    ("end of stdout", {"stdout": "a" * 300 + "b" * 150, "stderr": "", "exitCode": 1}, "a" * 50 + "b" * 150),
    ("unknown fields", {"reason": "no fuel"}, '{"reason": "no fuel"}'),
    ("no object", "[1, 2]", "[1, 2]"),
    ("broken", '{"error": "x"', '{"error": "x"'),
    ("Codex", CHUNK + "rg: unrecognized flag", "rg: unrecognized flag"),
    ("Codex shell", "Exit code: 1\nWall time: 0.1 seconds\nTotal output lines: 9\nOutput:\nls: no", "ls: no"),
    ("Codex with its command", f"Command: zsh -lc 'cat <<E\n\nE'\n{CHUNK}cat: no", "cat: no"),
    ("Claude Code", "Exit code 127\nzsh: command not found: x", "zsh: command not found: x"),
    ("with prefix", "Error: Exit code 2\nusage: x", "usage: x"),
    ("mini-swe-agent", "<returncode>1</returncode>\n<output>\nboom\n</output>", "boom\n</output>"),
    ("no output", CHUNK, CHUNK.strip()),
    ("no output either", "Exit code 1", "Exit code 1"),
    ("line in the middle", f"{CHUNK}{NOISE}\n  error[E0382]: moved value\n{NOISE}", "error[E0382]: moved value"),
    ("no line", "y" * 300, "y" * ERROR_TEXT_POINTS),
    (
        "first and newest",
        f"Error: 3 targets\n{NOISE}\n" + "\n".join(f"FAILED test_{n} - " + "z" * 60 for n in range(9)) + "\n9 failed",
        f"Error: 3 targets\nFAILED test_7 - {'z' * 60}\nFAILED test_8 - {'z' * 60}\n9 failed",
    ),
    ("said again", f"{NOISE}\n" + "error: busy\n" * 50 + "fatal: gave up", "error: busy\nfatal: gave up"),
    (
        "traceback",
        {"stderr": f'Traceback (most recent call last):\n{NOISE}\n  File "a.py", line 3\nValueError: boom'},
        "ValueError: boom",
    ),
    ("a long first line", f"error {'x' * 300}\nfatal: y", f"error {'x' * 94}\nfatal: y"),
    ("one long line", f"error {'x' * 300}", f"error {'x' * 194}"),
    ("far out", f"error: first\n{'q' * SEARCHED_ERROR_POINTS}\nerror amid\n{'q' * SEARCHED_ERROR_POINTS}\nlast failed", "error: first\nlast failed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"), [each[1:] for each in TOLD], ids=[each[0] for each in TOLD]
)
def test_what_is_told(text: Any, told: str) -> None:
    """Code and message, the end of stderr, lines that say an error; else the beginning."""
    assert find_error_text(text if isinstance(text, str) else json.dumps(text)) == told


@given(
    st.one_of(
        st.text(max_size=600),
        st.lists(st.sampled_from(["error", "x" * 90, "\n", " ", "{", "fatal "])).map("".join),
    )
)
def test_it_is_never_long_and_never_empty(text: str) -> None:
    """Whatever comes in."""
    told = find_error_text(text)
    assert len(told) <= ERROR_TEXT_POINTS
    assert bool(told) is bool(text.strip())
    assert all(line.strip() in text for line in told.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all went well\n",
        "one\nError: two, and a failure\n\nthree failed\nFAILED\nfAiLed is no word of ours",
        "No such file\r\nnot found\nİ: Permission denied\nabort",
        "İ" * 3 + "\nfatal\n" + "x" * 50 + "\npanic",
    ],
)
def test_lines_that_say_an_error_are_those_in_which_its_words_are_found(text: str) -> None:
    """However fast they are found, in capitals and in small letters."""
    assert find_error_lines(text) == list(find_matching_lines(ERROR_WORDS, text, 0, len(text)))
