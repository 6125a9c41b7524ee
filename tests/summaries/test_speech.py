"""Who really speaks, and what commands came to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.summaries import (
    SummaryRequest,
    describe_failure,
    extractive,
    find_outcome,
    strip_heredocs,
)
from store.summaries.message_texts import extract_rejection_reason, extract_user_words

BOILERPLATE = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"
    " a file edit, the new_string was NOT written to the file). To tell you how to proceed, the"
    " user said:\n"
)
SPOKEN = [
    ("Mend it.", "Mend it."),
    ("<system-reminder>\nbe kind\n</system-reminder>\n Mend it. ", "Mend it."),
    ("<command-name>/clear</command-name>\n<command-args></command-args>", ""),
    ("<local-command-caveat>Caveat: …</local-command-caveat>", ""),
    ("[Request interrupted by user for tool use]", ""),
    ("Base directory for this skill: /skills/x\n\n# How to", ""),
    ("This session is being continued from another", ""),
    ("Use <b>bold</b> and <system-reminder> unclosed", None),
    ("Is [Request interrupted by user] an error?", None),
    ("", ""),
]


@pytest.mark.parametrize(("text", "expected"), SPOKEN)
def test_what_programs_say_for_the_user_is_not_the_users(text: str, expected: str | None) -> None:
    """By a table of tags and beginnings; all other texts are as they were."""
    assert extract_user_words(text) == (text if expected is None else expected)


def test_the_users_words_stand_behind_a_refusal() -> None:
    """And where there are none, it is no speech but a failure like any other."""
    assert extract_rejection_reason(f"{BOILERPLATE}the other way round") == "the other way round"
    assert extract_rejection_reason(f"Error: {BOILERPLATE}no") == "no"
    assert (
        extract_rejection_reason("The user doesn't want to proceed with this tool use. STOP") == ""
    )
    assert extract_rejection_reason("He told us what the user said: nothing") == ""
    assert describe_failure(f"{BOILERPLATE}no") == "refused by the user: no"
    assert describe_failure("Error: gone") == "Error: gone"


@pytest.mark.parametrize(("role", "said"), [("tool", "User: no"), ("assistant", "Assistant: The")])
def test_only_a_result_can_be_a_refusal(role: str, said: str) -> None:
    """Whoever else says the same words says all of them."""
    told = {"role": role, "content": f"{BOILERPLATE}no"}
    request = SummaryRequest([told], None, "", "", 1000, 1, 1)
    assert extractive(request).body.startswith(said)


OUTCOMES = [
    ("compiling\n\n 1309 pass\n", "1309 pass"),
    ("12 passed\n---\n", "12 passed"),
    ("ok\n[The command completed with exit code 0.]\n[Python interpreter: x]", "ok"),
    (
        "Chunk ID: 1f\nWall time: 0 seconds\nProcess exited with code 0\nOutput:\nall well\n",
        "all well",
    ),
    ("Chunk ID: 1f\nWall time: 0 seconds\nProcess exited with code 0\nOutput:\n", ""),
    ("done\n<system-reminder>be kind\nto all</system-reminder>", "done"),
    (json.dumps({"stdout": "a\nb two\n", "stderr": "", "exitCode": 0}), "b two"),
    (json.dumps({"data": {"stdout": "", "stderr": "warned"}}), "warned"),
    ("x" * 200, "x" * 77 + "..."),
    ("", ""),
    ("--\n==\n", ""),
    ("done\n" + "--\n" * 300, "done"),
    ("done\n<system-reminder>" + "be kind\n" * 300 + "</system-reminder>", "done"),
    ("done\n<system-reminder>" + "be kind\n" * 300 + "</system-reminder>\nover", "over"),
    ("done\n<system-reminder>" + "be kind\n" * 300 + "<\0/system-reminder>", "done"),
    ("done\n" * 2000, "done"),
]


@pytest.mark.parametrize(("result", "expected"), OUTCOMES)
def test_a_command_came_to_its_last_telling_line(result: str, expected: str) -> None:
    """Without what the program adds that ran it."""
    assert find_outcome(result) == expected


def test_texts_that_a_command_is_fed_are_cut_behind_their_first_line() -> None:
    """Long ones only; what stands before and behind them stays."""
    body = "Say why\n\n" + "word " * 40
    commit = f"git commit -m \"$(cat <<'EOF'\n{body}\nEOF\n)\" && git push"
    assert strip_heredocs(commit) == (
        "git commit -m \"$(cat <<'EOF'\nSay why\n...\nEOF\n)\" && git push"
    )
    assert strip_heredocs(f"cat <<-END >x\n{body}") == "cat <<-END >x\nSay why\n..."
    for short in ("cat <<E\nx\nE", "make", "a << b", "cat <<E\n1\nE\ncat <<E\n2\nE"):
        assert strip_heredocs(short) == short


@given(st.text(alphabet="<E\n ab'/\0\ud800:[", max_size=300))
def test_any_text_may_come_in(text: str) -> None:
    """Nothing is raised, and limits hold."""
    assert len(find_outcome(text)) <= 80
    assert "\n" not in find_outcome(text)
    assert len(strip_heredocs(text)) <= len(text) + len("...\n") * text.count("<<")
    assert len(describe_failure(text)) <= 200
    assert extract_user_words(text) in text
