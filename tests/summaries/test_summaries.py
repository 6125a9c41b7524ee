"""Summaries.

What a model is shown, what rules make of a range, what is taken back, and the facts ledger.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Policy
from store.messages import Message
from store.summaries import (
    BRIEF_FLOOR,
    EMPTY_SUMMARY_ERROR,
    TIMED_OUT_NOTICE,
    FileChange,
    HiddenFact,
    KeyAction,
    Summary,
    SummaryRequest,
    TranscriptLimits,
    build_facts_ledger,
    build_title,
    cut_at_line_end,
    extract_command,
    extractive,
    find_group_ends,
    fit_brief_transcript,
    normalize_summary,
    render_brief_transcript,
    render_summary,
    scrub_text,
)
from store.tools.calls import find_call_paths


def user(text: Any) -> Message:
    """Return a user's message."""
    return {"role": "user", "content": text}


def assistant(text: Any, *names: str) -> Message:
    """Return an assistant's message that calls tools of these names."""
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": "{}"}}
             for n, name in enumerate(names)]  # fmt: skip
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def use(name: str, arguments: Any, result: Any, call_id: str = "c", **more: Any) -> list[Message]:
    """Return a call and its result."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": given}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result, **more},
    ]


def shown_below_title(summary: Summary) -> str:
    """Return what a view shows of a summary, without its title: what a limit counts."""
    return render_summary(summary).removeprefix(f"# {summary.title}\n\n")


def request(messages: list[Message], max_chars: int = 1500, **fields: Any) -> SummaryRequest:
    """Return a request for a summary of messages."""
    given = {
        "previous_summary": None,
        "transcript": "",
        "prompt": "",
        "first": 1,
        "last": len(messages),
    }
    return SummaryRequest(messages=messages, max_chars=max_chars, **{**given, **fields})


TEXT = st.text(alphabet="ab 长\n{}`-*#.\u0000\ud800😀", max_size=40)
MESSAGES = st.lists(
    st.one_of(
        st.builds(user, st.one_of(TEXT, st.just([{"type": "text", "text": "part"}]), st.none())),
        st.builds(assistant, TEXT),
        st.builds(lambda text: {"role": "system", "content": text}, TEXT),
        st.builds(assistant, TEXT, st.sampled_from(["Bash", "Read", "strange"])),
        st.builds(
            lambda text, n: {"role": "tool", "tool_call_id": f"c{n}", "content": text},
            TEXT,
            st.integers(0, 2),
        ),
        st.builds(lambda path: use("Write", {"file_path": path}, "created"), TEXT),
        st.builds(
            lambda text, code: use("Bash", {"command": text}, {"exitCode": code}),
            TEXT,
            st.integers(0, 1),
        ),
    ),
    max_size=20,
).map(
    lambda groups: [
        each for group in groups for each in (group if isinstance(group, list) else [group])
    ]
)


# --- the transcript -------------------------------------------------------------------------------


def test_a_transcript_labels_who_speaks_and_leaves_system_messages_out() -> None:
    """The worked example of S2.36 (S2.26)."""
    shown = render_brief_transcript(
        [{"role": "system", "content": "SECRET"}, user("你好"), assistant("您好")]
    )
    assert shown == "[用户]: 你好\n\n[助手]: 您好\n\n"


def test_a_long_message_is_shortened() -> None:
    """A thousand characters become five hundred, the ellipsis among them (S2.23, S2.37, A2.6)."""
    shown = render_brief_transcript([user("X" * 1000)])
    assert shown == "[用户]: " + "X" * 497 + "...\n\n"
    assert len(shown) < 600
    assert render_brief_transcript([user("X" * 500)]) == "[用户]: " + "X" * 500 + "\n\n"


def test_tool_calls_are_named_without_their_arguments() -> None:
    """The worked example of S2.38, and the form with text (S2.24)."""
    result: Message = {"role": "tool", "tool_call_id": "c0", "content": "out"}
    assert (
        render_brief_transcript([assistant(None, "shell"), result])
        == "[工具调用]: shell\n\n[工具结果]: out\n\n"
    )
    assert (
        render_brief_transcript([assistant("Looking.", "shell", "read")])
        == "[助手]: Looking.\n[工具调用]: shell, read\n\n"
    )


def test_a_tool_result_is_shortened_to_two_hundred() -> None:
    """Results have a limit of their own, in code points (S2.25, A2.6)."""
    assert (
        render_brief_transcript([{"role": "tool", "content": "长" * 201}])
        == "[工具结果]: " + "长" * 197 + "...\n\n"
    )


def test_contents_of_every_shape_are_text() -> None:
    """Parts give their text, an object its JSON, nothing gives nothing."""
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:"}},
        "b",
    ]
    assert render_brief_transcript([user(parts)]) == "[用户]: ab\n\n"
    assert (
        render_brief_transcript([{"role": "tool", "content": {"exitCode": 0}}])
        == '[工具结果]: {"exitCode":0}\n\n'
    )
    assert (
        render_brief_transcript([user(None), {"role": "assistant"}]) == "[用户]: \n\n[助手]: \n\n"
    )
    assert render_brief_transcript(
        [{"role": "developer", "content": "x"}, {"role": "function", "content": "y"}]
    ) == ("[工具结果]: y\n\n")


def test_calls_of_no_known_shape_are_still_calls() -> None:
    """Flat calls have a name, others are unknown, what is no object is no call."""
    calls: list[Any] = [{"name": "flat"}, {"function": {"name": 3}}, {}, None, "text"]
    shown = render_brief_transcript([{"role": "assistant", "content": "", "tool_calls": calls}])
    assert shown == "[工具调用]: flat, unknown_tool, unknown_tool\n\n"


# --- making it fit --------------------------------------------------------------------------------


def test_what_fits_is_shown_as_it_is() -> None:
    """Nothing is shortened without need."""
    messages = [user("a" * 400), assistant("b" * 400)]
    assert fit_brief_transcript(messages) == (render_brief_transcript(messages), 2)
    assert fit_brief_transcript([]) == ("", 0)


def test_messages_are_shortened_before_any_is_left_out() -> None:
    """Thirty long messages all reach the model, where cutting the transcript lost seven of them
    (A2.7).
    """
    messages = [user(f"{n:02}" + "X" * 1000) for n in range(30)]
    shown = fit_brief_transcript(messages)
    assert shown.messages_shown == 30
    assert 11_900 < len(shown.transcript) <= 12_000
    assert all(f"[用户]: {n:02}XXX" in shown.transcript for n in range(30))
    assert "已截断" not in shown.transcript


def test_then_the_boundary_moves() -> None:
    """Where even short messages are too many, as many whole groups as fit are shown, each at least
    at the floor.
    """
    group = [assistant("t" * 500, "Bash", "Read"), *[{"role": "tool", "content": "r" * 500}] * 2]
    messages = [user("u" * 500), *group * 100]
    shown = fit_brief_transcript(messages)
    assert 0 < shown.messages_shown < len(messages)
    assert shown.messages_shown in find_group_ends(messages)
    assert messages[shown.messages_shown]["role"] == "assistant"
    assert shown.transcript.startswith("[用户]: " + "u" * (BRIEF_FLOOR - 3))
    assert fit_brief_transcript(messages[: shown.messages_shown]) == shown


def test_the_boundary_moves_only_where_the_caller_allows() -> None:
    """Ends may be those of turns.

    The first alone is shown below the floor, at worst by labels only.
    """
    messages = [user("u" * 500), *[assistant("a" * 500) for _ in range(400)]]
    assert fit_brief_transcript(messages, max_chars=12_000, ends=[50, 60, 401]).messages_shown == 60
    below = fit_brief_transcript(messages, max_chars=12_000, ends=[300, 401])
    assert below.messages_shown == 300
    assert below.transcript.count("[助手]: aaa") == 299
    assert fit_brief_transcript(messages, max_chars=2_000, ends=[300, 401]) == ("", 0)


def test_a_group_too_large_for_any_prompt_says_so() -> None:
    """Zero messages shown, never a prompt over its limit."""
    assert fit_brief_transcript(
        [assistant("", "x"), *[{"role": "tool", "content": "r"}] * 50], max_chars=100
    ) == (
        "",
        0,
    )


def test_no_more_is_taken_than_it_takes_to_see_that_it_is_full() -> None:
    """What stands behind has no room whatever it is, so it is not even asked for.

    Only up to the first group's end.
    """
    group = [assistant("", "x"), *[{"role": "tool", "content": "r"}] * 50]
    messages = [*[user("u" * 500) for _ in range(1000)], *group]
    for long, limit, most in ((messages, 12_000, 120), ([*group, *messages], 100, len(group) + 1)):
        rest = iter(long)
        assert fit_brief_transcript(rest, max_chars=limit) == fit_brief_transcript(
            long, max_chars=limit
        )
        assert len(long) - len([*rest]) <= most


@settings(max_examples=60)
@given(MESSAGES, st.integers(0, 600), st.integers(0, 60), st.integers(0, 60))
def test_a_fitted_transcript_keeps_its_word(
    messages: list[Message], max_chars: int, text: int, result: int
) -> None:
    """Within its limit, a transcript of just the messages it says, ending where a group ends."""
    shown = fit_brief_transcript(messages, TranscriptLimits(text, result), max_chars)
    assert len(shown.transcript) <= max_chars
    assert shown.messages_shown in (0, len(messages), *find_group_ends(messages))
    whole = render_brief_transcript(
        messages[: shown.messages_shown], TranscriptLimits(10_000, 10_000)
    )
    assert shown.transcript.count("[工具结果]: ") == whole.count("[工具结果]: ")
    assert shown.transcript.count("[助手]: ") == whole.count("[助手]: ")


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "max_chars", "expected"),
    [
        ("short", 5, "short"),
        ("one\ntwo\nthree", 12, "one\ntwo\n..."),
        ("one\ntwo\nthree", 10, "one\ntwo..."),
        ("one\n" + "x" * 50, 20, "one\n" + "x" * 13 + "..."),
        ("长" * 10, 6, "长长长..."),
        ("abcdef", 3, "..."),
        ("abcdef", 2, ".."),
        ("abcdef", 0, ""),
        ("", 0, ""),
    ],
)
def test_a_cut_is_made_at_a_line_end_where_possible(
    text: str, max_chars: int, expected: str
) -> None:
    """The limit includes the ellipsis; a line end counts in the last half (A3.6)."""
    assert cut_at_line_end(text, max_chars) == expected


@given(st.text(alphabet="a\n长"), st.integers(0, 40))
def test_a_cut_keeps_its_limit(text: str, max_chars: int) -> None:
    """Never longer; the same where it fits; else a beginning of the text, with the ellipsis."""
    short = cut_at_line_end(text, max_chars)
    assert len(short) <= max_chars
    assert short == text if len(text) <= max_chars else text.startswith(short.rstrip("."))


def test_scrubbing_leaves_what_every_engine_takes() -> None:
    """NUL and controls go, a lone surrogate is replaced, two halves are one character."""
    assert scrub_text("a\0b\x1b[0m\tc\r\nd") == "ab[0m\tc\nd"
    assert scrub_text("\ud83d\ude00 \ud83d") == "😀 \ufffd"


DAY = 86_400_000
TITLES = [
    (1769853600000, 1769855400000, "Summary of conversation from 10:00 to 10:30"),
    (
        1769853600000,
        1769853600000 + DAY,
        "Summary of conversation from 2026-01-31 10:00 to 2026-02-01 10:00",
    ),
    (DAY - 1, DAY, "Summary of conversation from 1970-01-01 23:59 to 1970-01-02 00:00"),
    (None, 0, "Summary of conversation from 00:00 to 00:00"),
    (None, None, "Summary of conversation"),
    (10**18, None, "Summary of conversation"),
]


@pytest.mark.parametrize(("started_at", "ended_at", "expected"), TITLES)
def test_a_title_says_from_when_to_when(
    started_at: int | None, ended_at: int | None, expected: str
) -> None:
    """Hours within a day, days else, in UTC (S3.34, S3.49, A3.18)."""
    assert build_title(started_at, ended_at) == expected


def test_the_notice_of_a_summary_too_late() -> None:
    """The exact text of S4.34."""
    assert TIMED_OUT_NOTICE == "Summary generation timed out, keeping recent history only."


def test_a_structured_summary_is_laid_out() -> None:
    """The sample of S3.49, line by line."""
    summary = Summary(
        "The user set up the project.",
        "Summary of conversation from 10:00 to 10:30",
        (
            KeyAction("readFile", "to read package.json"),
            KeyAction("bash", "42 passed"),
            KeyAction("think", ""),
        ),
        (FileChange("src/index.ts", "modified"),),
    )
    assert render_summary(summary) == (
        "# Summary of conversation from 10:00 to 10:30\n\n"
        "**Key Actions:**\n"
        "- Used `readFile` to read package.json\n"
        "- Used `bash`: 42 passed\n"
        "- Used `think`\n\n"
        "**Files Changed:**\n"
        "- src/index.ts (modified)\n\n"
        "**Summary:**\n"
        "The user set up the project."
    )
    assert render_summary(Summary("text alone")) == "text alone"


# --- without a model ------------------------------------------------------------------------------


def test_rules_make_a_summary() -> None:
    """Title, what tools were used for and with what result, files, what was asked and answered
    (S3.13, S3.48).
    """
    messages = [
        user("Fix the  build,\nplease."),
        assistant("Let me look."),
        *use("Read", {"file_path": "package.json"}, "1→{}"),
        *use(
            "Bash",
            {"command": "npm test"},
            '{"stdout":"","stderr":"2 failed\\nsee log","exitCode":1}',
        ),
        *use("Edit", {"file_path": "src/index.ts"}, "The file has been updated."),
        *use("Grep", {"pattern": "TODO", "path": "src"}, "src/a.ts:1"),
        *use("WebFetch", {"url": "https://example.org"}, "\nAn example page\nmore"),
        assistant("It builds now."),
        user("Thanks"),
    ]
    summary = extractive(request(messages, started_at=1769853600000, ended_at=1769855400000))
    assert summary == Summary(
        "User: Fix the build, please.\nAssistant: It builds now.\nUser: Thanks\n1 file read and 1 file modified.",
        "Summary of conversation from 10:00 to 10:30",
        (
            KeyAction("Read", "to read package.json"),
            KeyAction("Bash", "to run npm test: exit 1, 2 failed"),
            KeyAction("Edit", "to modify src/index.ts"),
            KeyAction("Grep", "to search for TODO"),
            KeyAction("WebFetch", "to use it on https://example.org: An example page"),
        ),
        (FileChange("src/index.ts", "modified"),),
        "extractive",
    )


CHANGES: list[tuple[str, Any, Any, list[tuple[str, str]]]] = [
    ("create_file", {"path": "a.py"}, "ok", [("a.py", "created")]),
    ("filesystem-create", {"filePath": "a.py"}, "ok", [("a.py", "created")]),
    ("delete_file", {"target_file": "./b.py"}, "ok", [("b.py", "deleted")]),
    (
        "remove-files",
        {"file_paths": ["b.py", "c.py"]},
        "ok",
        [("b.py", "deleted"), ("c.py", "deleted")],
    ),
    (
        "Write",
        {"file_path": "/x/a.py"},
        "File created successfully at: /x/a.py",
        [("/x/a.py", "created")],
    ),
    (
        "Write",
        {"file_path": "/x/a.py"},
        "The file /x/a.py has been updated.",
        [("/x/a.py", "modified")],
    ),
    ("str_replace_editor", {"command": "create", "path": "a.py"}, "ok", [("a.py", "created")]),
    (
        "str_replace_editor",
        {"command": "str_replace", "path": "a.py"},
        "ok",
        [("a.py", "modified")],
    ),
    ("str_replace_editor", {"command": "view", "path": "a.py"}, "ok", []),
    ("Edit", {"file_path": "a.py"}, "Error: no such file", []),
    ("Edit", {"file_path": ""}, "ok", []),
    ("Edit", "not json", "ok", []),
    ("unknown_writer", {"path": "a.py"}, "created", []),
]
PATCH = "*** Begin Patch\n*** Add File: new.py\n+x\n*** Update File: ./old.py\n*** Delete File: gone.py\n*** End Patch"
PATCHED = [("new.py", "created"), ("old.py", "modified"), ("gone.py", "deleted")]
MOVE = (
    "*** Begin Patch\n*** Update File: old.py\n*** Move to: new name.py \n@@\n-a\n+b\n*** End Patch"
)
MOVED = [("old.py", "deleted"), ("new name.py", "created")]


@pytest.mark.parametrize(
    ("name", "arguments", "result", "expected"),
    [
        *CHANGES,
        ("apply_patch", {"input": PATCH}, "ok", PATCHED),
        ("apply_patch", PATCH, "ok", PATCHED),
        ("shell", {"command": ["apply_patch", PATCH]}, "ok", PATCHED),
        ("shell", {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}, "ok", PATCHED),
        ("apply_patch", {"input": MOVE}, "ok", MOVED),
        ("Read", {"file_path": PATCH}, "ok", []),
    ],
)
def test_file_changes_are_read_off_the_tools(
    name: str, arguments: Any, result: str, expected: Any
) -> None:
    """A tool's name, command, patch or result says what became of a file.

    A failure changes none (A3.19).
    """
    summary = extractive(request(use(name, arguments, result)))
    assert [tuple(change) for change in summary.file_changes] == expected


def test_a_call_that_did_several_things_to_files_is_said_to_change_them() -> None:
    """One verb is true of all files; where each had its own, none of them is."""
    [action] = extractive(request(use("apply_patch", {"input": MOVE}, "ok"))).key_actions
    assert action.result == "to change old.py, new name.py"


@pytest.mark.parametrize("patch", [PATCH, MOVE])
def test_a_summary_and_the_file_read_rule_find_the_same_files_in_a_patch(patch: str) -> None:
    """There is one grammar of patches.

    What a read is replaced by, and what a summary says was changed, agree.
    """
    told = extractive(request(use("apply_patch", {"input": patch}, "ok"))).file_changes
    assert {change.path for change in told} == {
        each.path for each in find_call_paths({"input": patch}).paths
    }


def test_a_file_is_listed_once_with_what_became_of_it() -> None:
    """A new file that is modified is new; one deleted in the end is deleted.

    The last changed stands last.
    """
    messages = [
        *use("create_file", {"path": "new.py"}, "ok"),
        *use("create_file", {"path": "temporary.py"}, "ok"),
        *use("edit_file", {"path": "new.py"}, "ok"),
        *use("delete_file", {"path": "temporary.py"}, "ok"),
    ]
    changes = extractive(request(messages)).file_changes
    assert changes == (FileChange("new.py", "created"), FileChange("temporary.py", "deleted"))


def test_a_call_id_that_comes_again_means_the_nearest_call() -> None:
    """Ids repeat in real life (A1.11).

    A result without a call is named by its own name or not at all.
    """
    messages = [
        *use("Bash", {"command": "first"}, "ok", "same"),
        *use("Bash", {"command": "second"}, "ok", "same"),
        {"role": "tool", "content": "from nowhere", "name": "lost"},
        {"role": "tool", "content": None, "tool_call_id": "never called"},
    ]
    assert extractive(request(messages)).key_actions == (
        KeyAction("Bash", "to run first: ok"),
        KeyAction("Bash", "to run second: ok"),
        KeyAction("lost", "from nowhere"),
        KeyAction("unknown_tool", ""),
    )


def test_an_unanswered_call_did_nothing_yet() -> None:
    """What has no result is no key action."""
    messages = use("Write", {"file_path": "a.py"}, "created")[:1]
    assert extractive(request([user("go"), *messages])) == Summary(
        "User: go", "Summary of conversation", model="extractive"
    )


def test_where_there_is_little_room_commands_and_failures_outlast_reads() -> None:
    """Half of the limit is for what tools did: newest first, the telling ones before the rest.

    The rest is counted.
    """
    reads = [each for n in range(50) for each in use("Read", {"file_path": f"f{n}.py"}, "text")]
    failed = use("Read", {"file_path": "gone.py"}, "Error: no such file")
    summary = extractive(
        request([*use("Bash", {"command": "make"}, "ok"), *failed, *reads, user("x" * 900)], 500)
    )
    assert summary.key_actions[:2] == (
        KeyAction("Bash", "to run make: ok"),
        KeyAction("Read", "to read gone.py: failed, Error: no such file"),
    )
    assert summary.key_actions[-1] == KeyAction("Read", "to read f49.py")
    assert summary.body.endswith("more actions not listed.)\n50 files read.")
    assert len(shown_below_title(summary)) <= 500


PARTS = [
    ((), "4 messages without text."),
    (("text",), "User: q\nAssistant: a"),
    (("reasoning",), "Reasoning: hm"),
    (("text", "tool", "reasoning"), "User: q\nTool: out\nReasoning: hm\nAssistant: a"),
]


@pytest.mark.parametrize(("parts", "body"), PARTS)
def test_parts_to_keep_govern_the_body_alone(parts: tuple[str, ...], body: str) -> None:
    """Raw text by choice, key actions always (S3.9, S3.37, A3.7)."""
    messages = [
        user("q"),
        *use("Bash", {"command": "ls"}, "out"),
        {"role": "assistant", "content": "a", "reasoning_content": "hm"},
    ]
    summary = extractive(request(messages, parts_to_keep=parts))
    assert summary.body == body
    assert summary.key_actions == (KeyAction("Bash", "to run ls: out"),)


def test_the_goal_and_the_newest_outlast_what_is_between() -> None:
    """Of many messages the first and the last are told, and that some are missing."""
    messages = [user(f"request number {n} " + "x" * 60) for n in range(100)]
    lines = extractive(request(messages, 500)).body.splitlines()
    assert lines[0].startswith("User: request number 0 ")
    assert lines[1] == "..."
    assert lines[-1].startswith("User: request number 99 ")


def test_the_previous_summary_is_carried_forward_first() -> None:
    """Whole where there is room, whatever is in it (A2.4)."""
    previous = "对话摘要：\n\nuse tabs\n\n- never {push}"
    summary = extractive(request([user("go on")], previous_summary=previous))
    assert summary.body == f"{previous}\nUser: go on"


def test_a_previous_summary_is_shortened_but_never_dropped() -> None:
    """With little room it keeps both its ends, and the new range has its share."""
    previous = "FIRST " + "p" * 3000 + " LAST"
    messages = [user(f"message {n} " + "x" * 50) for n in range(100)]
    body = extractive(request(messages, 500, previous_summary=previous)).body
    assert body.startswith("FIRST ")
    assert " LAST\n" in body
    assert "message 99" in body
    assert len(body) <= 500


def test_summaries_of_summaries_do_not_nest() -> None:
    """Its own headings are taken off a previous summary.

    After many rounds the first fact is still there.
    """
    previous = None
    for n in range(30):
        messages = [
            user(f"fact {n}"),
            *use("Bash", {"command": f"step {n}"}, "ok"),
            assistant("done"),
        ]
        summary = extractive(request(messages, 1500, previous_summary=previous))
        previous = render_summary(summary)
        assert len(shown_below_title(summary)) <= 1500
    assert previous is not None
    assert previous.count("# Summary of conversation") == 1
    assert previous.count("**Key Actions:**") == previous.count("**Summary:**") == 1
    assert "fact 0" in previous
    assert "fact 29" in previous
    assert "Used `Bash` to run step 28" in previous


@settings(max_examples=80)
@given(MESSAGES, st.integers(20, 400), st.one_of(st.none(), TEXT))
def test_a_summary_by_rules_keeps_every_promise(
    messages: list[Message], max_chars: int, previous_summary: str | None
) -> None:
    """Deterministic, never empty, within the limit, clean, and nothing it was given is changed."""
    before = copy.deepcopy(messages)
    asked = request(messages, max_chars, previous_summary=previous_summary)
    summary = extractive(asked)
    assert messages == before
    assert summary == extractive(asked)
    assert summary.body.strip()
    assert len(shown_below_title(summary)) <= max_chars
    assert render_summary(summary).isprintable() or scrub_text(
        render_summary(summary)
    ) == render_summary(summary)
    assert (
        render_summary(normalize_summary(summary, asked)).split() == render_summary(summary).split()
    )


# --- what was returned ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "empty", ["", " \n\t", "\u3000\u200b", "\0", "对话摘要：", " 对话摘要: \n"]
)
def test_an_answer_with_nothing_in_it_is_empty(empty: str) -> None:
    """White space, invisible characters and the label alone are no summary (S2.20, A2.14)."""
    for result in (empty, Summary(empty), Summary(empty, title="t")):
        with pytest.raises(ValueError, match=f"^{EMPTY_SUMMARY_ERROR}$"):
            normalize_summary(result, request([], policy=Policy()))
        with pytest.raises(ValueError, match=r"^the model returned an empty summary$"):
            normalize_summary(result, request([]))


def test_an_answer_is_cleaned_and_cut() -> None:
    """Trimmed, scrubbed, at most as long as asked for, in code points (S2.21, A2.6)."""
    assert normalize_summary("  a\0b\ud800 \n", request([])) == Summary("ab\ufffd")
    assert normalize_summary("长" * 2000, request([], 1500)).body == "长" * 1497 + "..."


def test_the_lists_of_a_stranger_have_the_room_the_body_leaves() -> None:
    """However many, a view shows the newest that fit, each in one line; the record has all."""
    actions = tuple(KeyAction(f"tool{n}", "did\nsomething") for n in range(100_000))
    summary = normalize_summary(
        Summary("body", "a\ntitle", actions[:500], (FileChange("x\ny", "modified"),)),
        request([], 300),
    )
    assert summary.body == "body"
    assert summary.title == "a title"
    assert summary.file_changes == (FileChange("x y", "modified"),)
    assert summary.key_actions[-1] == KeyAction("tool499", "did something")
    assert len(summary.key_actions) == 500
    assert "tool499" in render_summary(summary)
    assert "tool0" not in render_summary(summary)
    assert len(shown_below_title(summary)) <= 300
    assert (
        len(
            render_summary(
                normalize_summary(Summary("b" * 9000, key_actions=actions), request([], 300))
            )
        )
        <= 300
    )


# --- the facts ledger -----------------------------------------------------------------------------


def test_a_ledger_groups_its_facts_in_order() -> None:
    """Paths exactly, commands with their exit codes, errors.

    A fact met again counts as it was last.
    """
    facts = [
        HiddenFact("file", "src/a b.py", "read"),
        HiddenFact("command", "make", "exit 2"),
        HiddenFact("error", "make: *** No rule"),
        HiddenFact("command", "make", "exit 0"),
        HiddenFact("file", "长.md"),
        HiddenFact("command", "cat <<E\nx\nE"),
        HiddenFact("other", "unknown kind"),
        HiddenFact("error", " "),
    ]
    assert build_facts_ledger(facts, 1000) == (
        "Files touched:\n- src/a b.py (read)\n- 长.md\n"
        "Commands run:\n- make (exit 0)\n- cat <<E\n  x\n  E\n"
        "Errors met:\n- make: *** No rule"
    )
    assert (
        build_facts_ledger([], 1000)
        == build_facts_ledger(facts, 0)
        == build_facts_ledger(facts, 20)
        == ""
    )


def test_a_ledger_keeps_the_newest_of_each_kind() -> None:
    """Where the budget runs out, no kind crowds out another, and what is left out is counted."""
    facts = [HiddenFact("command", f"run {n}", "exit 0") for n in range(500)]
    facts[100:100] = [HiddenFact("file", f"src/file{n}.py") for n in range(3)]
    text = build_facts_ledger(facts, 300)
    assert len(text) <= 300
    assert (
        "Files touched:\n- src/file0.py\n- src/file1.py\n- src/file2.py\nCommands run:\n- run 49"
        in text
    )
    assert "- run 499 (exit 0)\n(left out for want of room: 49" in text
    assert text.endswith(" commands)")


def test_a_long_command_has_a_quarter_of_the_budget() -> None:
    """One here-document does not crowd out the rest; a path is whole or left out."""
    text = build_facts_ledger(
        [
            HiddenFact("command", "x" * 5000),
            HiddenFact("file", "y" * 5000),
            HiddenFact("file", "z"),
        ],
        400,
    )
    assert f"- {'x' * 97}...\n" in text
    assert "yyy" not in text
    assert text.endswith("(left out for want of room: 1 file)")


FACTS = st.lists(
    st.builds(
        HiddenFact,
        st.sampled_from(["file", "command", "error"]),
        st.text(alphabet="ab长 \n\0", min_size=1, max_size=30),
        st.one_of(st.none(), st.just("exit 1")),
    ),
    max_size=30,
)


@settings(max_examples=80)
@given(FACTS, st.integers(0, 400))
def test_a_ledger_keeps_its_budget(facts: list[HiddenFact], budget: int) -> None:
    """Never over budget, everything where there is room, the same every time."""
    text = build_facts_ledger(facts, budget)
    assert len(text) <= budget
    assert text == build_facts_ledger(facts, budget)
    assert all(
        scrub_text(fact.text).strip() in build_facts_ledger(facts, 10_000).replace("\n  ", "\n")
        for fact in facts
    )


COMMANDS: list[tuple[Any, str | None]] = [
    ({"command": "npm test"}, "npm test"),
    ('{"cmd": " ls -l "}', "ls -l"),
    ({"CommandLine": "dir"}, "dir"),
    ({"command": ["bash", "-lc", "cd x && make"]}, "cd x && make"),
    ({"command": ["/bin/zsh", "-c", "echo 'a b'"]}, "echo 'a b'"),
    ({"command": ["powershell.exe", "-NoProfile", "-Command", "Get-Item x"]}, "Get-Item x"),
    ({"command": ["cmd.exe", "/c", "dir"]}, "dir"),
    ({"command": ["git", "commit", "-m", "a b"]}, "git commit -m 'a b'"),
    ({"commands": ["npm ci", "npm test"]}, "npm ci; npm test"),
    ({"commands": [{"command": "a"}, {"command": ["b", "c d"]}]}, "a; b 'c d'"),
    ({"action": {"type": "exec", "command": ["ls"]}}, "ls"),
    ({"code": "print(1)"}, "print(1)"),
    ({"command": "", "cmd": "x"}, "x"),
    ("echo free form", "echo free form"),
    ('{"command": "cut off', None),
    ({"timeout": 3}, None),
    ({"command": None}, None),
    ({"command": []}, None),
    ("", None),
    ("  ", None),
    (None, None),
    (3, None),
]


@pytest.mark.parametrize(("arguments", "expected"), COMMANDS)
def test_the_command_in_the_arguments_of_a_terminal(arguments: Any, expected: str | None) -> None:
    """Every shape in the field; None where there is no command."""
    assert extract_command(arguments) == expected


# --- what is folded -------------------------------------------------------------------------------


def changed(first: int, count: int) -> list[Message]:
    """Return turns that change one file each."""
    return [
        message
        for n in range(first, first + count)
        for message in (
            user("please fix the login form on safari " * 4),
            *use("edit", {"file_path": f"src/module_{n}.ts"}, "ok"),
            assistant("done " * 30),
        )
    ]


@settings(deadline=None)
@given(max_chars=st.integers(100, 1500), count=st.integers(1, 8))
def test_a_folded_summary_names_no_file_that_never_was(max_chars: int, count: int) -> None:
    """S3.53: however often, and in however little room, a name is whole or not there."""
    previous = None
    for fold in range(4):
        asked = request(changed(fold * count, count), max_chars, previous_summary=previous)
        previous = render_summary(extractive(asked))
        for line in previous.splitlines():
            if "ified)" in line:
                assert re.fullmatch(r"- src/module_\d+\.ts \(modified\)", line), line


def test_lines_of_a_folded_summary_are_whole_or_gone() -> None:
    """Its first ones and its last ones, with a sign between them."""
    previous = "\n".join(f"- src/module_{n}.ts (modified)" for n in range(40))
    body = extractive(request([user("x" * 150)], 400, previous_summary=previous)).body
    folded, _, _ = body.partition("\nUser:")
    kept = folded.split("\n")
    assert "..." in kept
    assert {*kept} - {"..."} < {*previous.split("\n")}
    assert (kept[0], kept[-1]) == (previous.split("\n")[0], previous.split("\n")[-1])


def test_a_folded_text_without_lines_is_cut_between_words_and_clauses() -> None:
    """Never within one: of a path the half is another path."""
    path = "src/authentication/session.ts"
    english = " ".join(["They changed", *[f"{path},"] * 60])
    chinese = "他们修改了文件，" * 60
    for previous, words in ((english, {*english.split(), "..."}), (chinese, None)):
        body = extractive(request([user("y" * 300)], 300, previous_summary=previous)).body
        folded, _, _ = body.partition("\nUser:")
        assert 20 < len(folded) < 300
        if words:
            assert {*folded.split()} <= words
        else:
            assert {*folded.replace("... ", "").split("，")} == {"他们修改了文件", ""}


def test_a_summary_closes_with_what_was_done_in_numbers() -> None:
    """S3.49 has a sample; each file counts once, and as what became of it."""
    messages = [
        *use("Read", {"file_path": "a.py"}, "text"),
        *use("Read", {"file_path": "a.py"}, "text"),
        *use("Read", {"file_path": "b.py"}, "text"),
        *use("Read", {"file_path": "gone.py"}, "Error: no such file"),
        *use("Write", {"file_path": "new.py"}, "File created"),
        *use("Edit", {"file_path": "a.py"}, "ok"),
    ]
    asked = request([user("Go."), *messages])
    assert extractive(asked).body == (
        "User: Go.\n2 files read, 1 file created and 1 file modified."
    )
    assert extractive(request([user("Go.")])).body == "User: Go."


def test_kinds_of_tools_are_those_of_the_policy_and_of_the_store() -> None:
    """A3.19: the policy's before the store's."""
    messages = use("my_edit", {"file_path": "a.py"}, "ok")
    assert extractive(request(messages)).file_changes == ()
    known = extractive(request(messages, tool_kinds={"my_edit": "file_edit"}))
    assert known.file_changes == (FileChange("a.py", "modified"),)
    policy = Policy(tool_kinds={"my_edit": "other"})
    asked = request(messages, tool_kinds={"my_edit": "file_edit"}, policy=policy)
    assert extractive(asked).file_changes == ()
