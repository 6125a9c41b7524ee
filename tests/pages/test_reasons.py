"""The reasons of views on pages in Chinese."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import store
from store import Policy
from store.pages.reasons import load_reasons, translate_reason
from store.policy import POLICIES
from store.view.rules import render_explanations

PACKAGE = Path(store.__file__).parent
SOURCES = (
    *("view/message_rendering.py", "view/build.py", "view/explanation.py", "view/visible_set.py"),
    *("view/rules.py", "formats/call_names.py", "context/request_log.py"),
)
"""Where views and the log of requests say why something is as it is."""

pytestmark = pytest.mark.sqlite_only


@pytest.mark.parametrize("name", POLICIES)
def test_each_reason_of_a_rule_is_said_in_chinese(name: str) -> None:
    """With the numbers of the policy, and the files that it names; English is as it was."""
    for reason in render_explanations(Policy.named(name)).values():
        said = translate_reason(f"{reason}: src/a.py, b.py; moved to its call", "zh")
        assert sorted(re.findall(r"\d+", said)) == sorted(re.findall(r"\d+", reason))
        assert said.endswith(": src/a.py, b.py；已移到其调用之后")
        assert not re.search(r"[a-z]{4}", said.partition(":")[0].replace("base64", "")), said
        assert translate_reason(reason, "en") == reason


def test_what_is_not_known_stays() -> None:
    """Whatever stands in the place of a value is no pattern, and is not read as one."""
    assert translate_reason("new words", "zh") == "new words"
    assert translate_reason("call {x} {0} \\d has no result", "zh") == "调用 {x} {0} \\d 没有结果"
    assert translate_reason("", "zh") == ""


def test_each_translation_is_of_a_reason_in_the_code() -> None:
    """A reason that is said otherwise by now would be shown in English."""
    written = "".join((PACKAGE / name).read_text("utf-8") for name in SOURCES)
    plain = re.sub(r'"\s+f?"', "", written)
    for pattern, _ in load_reasons():
        pieces = re.split(r"\(\?P<\w+>[^)]*\)\??", pattern.pattern)
        for piece in pieces:
            for text in re.sub(r"\\(.)", r"\1", piece).split(": "):
                assert text in plain, text
