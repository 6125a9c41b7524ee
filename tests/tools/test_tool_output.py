"""The short form of tool results.

What each rule keeps, how text and foreign JSON are cut, and the laws of it all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import ROOT, TRANSCRIPTS, needs_transcripts
from hypothesis import example, given, settings
from hypothesis import strategies as st

from store.errors import StoreError
from store.messages import extract_content_text
from store.text import clip_text, encode_json, is_marker
from store.tools.excerpts import ValueLimits, trim_value
from store.tools.kinds import ALL_TOOL_KINDS, TOOL_KINDS
from store.tools.results import (
    PROTOCOL_FIELDS,
    PROTOCOL_STATUSES,
    compute_result_facts,
    find_answered_call_id,
    find_kind_name,
)
from store.tools.short_forms import compress
from store.tools.short_rules import KIND_RULES, SHORT_RULES, STATE_MARKS, TOOL_RULES
from store.transcripts import SessionMessage, read, sniff


def short(tool: str, data: Any = None, *, status: str = "success", **envelope: Any) -> Any:
    """Return the value of a protocol result's short form.

    Text, stats and context are there unless given.
    """
    dropped = {"text": "said at length " * 20, "stats": {}, "context": {}}
    result = {"status": status, "data": data, **dropped, **envelope}
    return json.loads(compress(tool, json.dumps(result)))


def lines(count: int, word: str = "line") -> str:
    """Return numbered lines."""
    return "\n".join(f"{word} {number}" for number in range(1, count + 1))


# Results of the protocol.


def test_status_data_and_error_stay_and_the_rest_is_dropped() -> None:
    """The envelope is what S4.18 says, for a rule by name and for an unknown tool."""
    for tool in ("LS", "Read", "Bash", "nobody"):
        assert short(tool, {}) == {"status": "success", "data": {}}
        assert short(tool) == {"status": "success", "data": {}}


@pytest.mark.parametrize("status", PROTOCOL_STATUSES)
@pytest.mark.parametrize("tool", [*SHORT_RULES, "nobody"])
def test_an_error_stays_whole_whatever_the_status(tool: str, status: str) -> None:
    """Code and message are never cut; an error that is null is none (A4.13)."""
    error = {
        "code": "NOT_FOUND",
        "message": "no such file: " + "é" * 9000,
        "more": {"at": [1, 2, 3] * 50},
    }
    assert short(tool, {}, status=status, error=error) == {
        "status": status,
        "data": {},
        "error": error,
    }
    assert "error" not in short(tool, {}, status=status, error=None)
    assert short(tool, {}, status=status, error="said in a word")["error"] == "said in a word"


def test_nothing_is_made_up_for_a_failure() -> None:
    """Of a failed tool only what is known is told."""
    context = {"path_resolved": "src/a.py", "params_input": {"command": "make"}}
    error = {"code": "E", "message": "m"}
    found = {
        tool: short(tool, {}, status="error", error=error, context=context)["data"]
        for tool in SHORT_RULES
    }
    assert found["Read"] == found["LS"] == found["Edit"] == {"path": "src/a.py"}
    assert found["Bash"] == {"command": "make"}
    assert found["Grep"] == found["default"] == {}


@pytest.mark.parametrize(
    ("tool", "name", "kept", "total", "counted"),
    [
        ("LS", "entries", 10, "total_count", "total_entries"),
        ("Glob", "paths", 10, "total_matched", "matched"),
        ("Grep", "matches", 5, "total_matches", "matched_lines"),
    ],
)
def test_lists_keep_the_first_items_and_the_total(
    tool: str, name: str, kept: int, total: str, counted: str
) -> None:
    """The number is the tool's own where it told one, else that of the items (S4.9-S4.11)."""
    items = [{"file": f"f{number}.py", "line": number, "text": "x"} for number in range(30)]
    for given_items, stats, number in (
        (items, {counted: 99}, 99),
        (items, {}, 30),
        (items[:kept], {}, kept),
    ):
        data = short(tool, {name: given_items}, stats=stats)["data"]
        assert data[name] == items[:kept]
        assert data[total] == number
        assert data["truncated"] is (len(given_items) > kept)
    assert short(tool, {name: items[:2], "truncated": True})["data"]["truncated"] is True
    assert short(tool, {name: items}, stats={counted: "many"})["data"][total] == 30


def test_the_subject_is_copied_before_its_place_is_dropped() -> None:
    """Directory and pattern come from the context; what data says itself goes before it (A4.10)."""
    context = {"path_resolved": "src", "params_input": {"path": "./src", "pattern": "*.py"}}
    assert short("LS", {"entries": []}, context=context)["data"]["path"] == "src"
    assert short("LS", {"entries": [], "path": "lib"}, context=context)["data"]["path"] == "lib"
    assert (
        short("LS", {"entries": []}, context={"params_input": {"path": "./src"}})["data"]["path"]
        == "./src"
    )
    assert short("Glob", {"paths": []}, context=context)["data"]["pattern"] == "*.py"
    assert short("Grep", {"matches": []}, context=context)["data"]["pattern"] == "*.py"


def test_a_long_match_is_clipped_with_its_place_kept() -> None:
    """A match in a file of one line costs no more than any other."""
    match = {"file": "min.js", "line": 1, "text": "x" * 5000}
    (kept,) = short("Grep", {"matches": [match]})["data"]["matches"]
    assert (kept["file"], kept["line"]) == ("min.js", 1)
    assert kept["text"] == "x" * 300 + "… (4700 more characters)"


def test_a_read_keeps_500_lines_and_says_which() -> None:
    """Line numbers are in the lines; range, total and time of change are copied (S4.12, S4.17)."""
    content = "".join(f"{number:4d} | x\n" for number in range(11, 1011))
    stats = {"total_lines": 2000, "file_mtime_ms": 5, "lines_read": 1000}
    data = short(
        "Read", {"content": content}, stats=stats, context={"params_input": {"start_line": 11}}
    )["data"]
    assert data["content"].split("\n") == content.split("\n")[:500]
    assert data["truncated"] is True
    assert (data["start_line"], data["total_lines"], data["file_mtime_ms"]) == (11, 2000, 5)
    exact = "".join(f"{number}\n" for number in range(500))
    data = short("Read", {"content": exact, "end_line": 500})["data"]
    assert (data["content"], data["truncated"], data["end_line"]) == (exact, False, 500)
    assert "end_line" not in short("Read", {"content": exact + "more", "end_line": 501})["data"]


def test_the_note_of_a_changed_file_stays() -> None:
    """Freshness is told in data (S4.47)."""
    note = "Note: a.py was modified externally."
    data = short(
        "Read", {"content": "x", "note": note, "mtime": 12.5, "modified_externally": True}
    )["data"]
    assert (data["note"], data["mtime"], data["modified_externally"]) == (note, 12.5, True)


@pytest.mark.parametrize(("tool", "kept"), [("Edit", 20), ("MultiEdit", 20), ("Write", 50)])
def test_a_change_keeps_its_place_and_a_fragment(tool: str, kept: int) -> None:
    """Of a long difference the first lines stay, and which lines it changed (S4.13)."""
    diff = "--- a/x\n+++ b/x\n" + "".join(
        f"@@ -{at},3 +{at},3 @@\n a\n-b\n+c\n" for at in range(1, 200, 10)
    )
    data = {
        "applied": True,
        "operation": "update",
        "diff_preview": diff,
        "replacements": 20,
        "failed_index": None,
    }
    found = short(tool, data, stats={"lines_added": 20}, context={"path_resolved": "x"})["data"]
    assert found["path"] == "x"
    assert found["diff_summary"].split("\n") == diff.split("\n")[:kept]
    assert found["changed_ranges"][:2] == ["1-3", "11-13"]
    assert (found["applied"], found["replacements"], found["lines_added"]) == (True, 20, 20)
    assert found["diff_truncated"] is True
    assert "diff_preview" not in found
    assert "failed_index" not in found
    whole = short(tool, {**data, "diff_preview": "+c"})["data"]
    assert whole["diff_summary"] == "+c"
    assert not {"diff_truncated", "changed_ranges"} & whole.keys()


def test_a_new_file_keeps_its_first_50_lines() -> None:
    """Where there is no difference, the beginning of the file is the fragment (S4.14)."""
    found = short("Write", {"operation": "create", "applied": True, "content": lines(80)})["data"]
    assert found["operation"] == "create"
    assert found["content_summary"] == lines(50)
    assert found["content_truncated"] is True


def test_a_command_keeps_its_end_and_the_tail_of_its_errors() -> None:
    """200 code points of stdout, 20 lines of stderr, exit code and command (S4.15, A4.12)."""
    data = {
        "stdout": "é" * 201,
        "stderr": lines(30, "bad"),
        "exitCode": 2,
        "signal": "TERM",
        "directory": "src",
    }
    found = short("Bash", data, status="partial", context={"params_input": {"command": "make"}})[
        "data"
    ]
    assert found == {
        "exit_code": 2,
        "command": "make",
        "stdout_summary": "é" * 200 + "...",
        "stderr_tail": "\n".join(lines(30, "bad").split("\n")[-20:]),
        "stderr_truncated": True,
        "signal": "TERM",
    }
    assert (
        short("Bash", {"stdout": "o" * 200, "stderr": "", "exit_code": 0})["data"]["stdout_summary"]
        == "o" * 200
    )


def test_a_command_that_failed_on_stdout_keeps_its_tail() -> None:
    """Test runners say what failed at the end of stdout.

    A successful command keeps its digest alone.
    """
    stdout = lines(100, "test") + "\n2 failed\n"
    assert short("Bash", {"stdout": stdout, "exit_code": 1})["data"]["stdout_tail"].endswith(
        "test 100\n2 failed\n"
    )
    assert "stdout_tail" not in short("Bash", {"stdout": stdout, "exit_code": 0})["data"]
    assert (
        "stdout_tail"
        not in short("Bash", {"stdout": stdout, "stderr": "e", "exit_code": 1})["data"]
    )


def test_todos_keep_the_recap_alone() -> None:
    """A recap is made where the tool gave none."""
    todos = [
        {"content": name, "status": status}
        for name, status in (("a", "completed"), ("b", "in_progress"))
    ]
    made = "[1/2] in progress: b"
    assert short("TodoWrite", {"todos": todos, "recap": "[1/3] b", "truncated": False})["data"] == {
        "recap": "[1/3] b"
    }
    assert short("TodoWrite", {"todos": todos})["data"] == {"recap": made}
    assert short("TodoWrite", {"todos": []})["data"] == {"recap": ""}
    assert json.loads(compress("todowrite", json.dumps(todos))) == {"recap": made}
    assert json.loads(compress("todo-get", json.dumps({"todos": todos}))) == {"recap": made}


def test_instructions_stay_whole() -> None:
    """A skill, a plan or an answer of the user is in force beyond its turn."""
    data = {"instructions": "do this\n" * 2000}
    assert short("Skill", data) == {"status": "success", "data": data}
    for content in (data["instructions"], json.dumps(data)):
        assert compress("Skill", content) == compress("ExitPlanMode", content) == content


def test_state_marks_stay_whichever_the_tool() -> None:
    """All rules but the todo recap keep them, the unknown tool's too."""
    marks = dict.fromkeys(STATE_MARKS, 1) | {"truncated": True}
    main = {
        "entries": [],
        "paths": [],
        "matches": [],
        "content": "",
        "applied": True,
        "stdout": "",
        "x": "y" * 5000,
    }
    for tool in SHORT_RULES.keys() - {"TodoWrite"}:
        assert marks.items() <= short(tool, main | marks)["data"].items(), tool


def test_an_unknown_tool_is_cut_only_where_it_is_long() -> None:
    """Up to 2,000 code points nothing is lost but text, stats and context (S4.19)."""
    small = {"rows": [[1, 2.5, None, True]] * 20, "name": "é"}
    assert short("nobody", small)["data"] == small
    found = short("nobody", {"rows": list(range(1000)), "text": "x" * 5000, "id": 7})["data"]
    assert found["truncated"] is True
    assert found["rows"][-1] == "… (980 more items)"
    assert found["text"].endswith("more characters)")
    assert found["id"] == 7
    hopeless = {f"key {number}" * 500: number for number in range(500)}
    assert short("nobody", hopeless)["data"].keys() == {"original_size", "truncated"}
    assert short("nobody", list(range(5000)))["data"][-1].startswith("… (")


def test_data_of_another_shape_is_cut_like_an_unknown_tools() -> None:
    """A rule that finds nothing it knows drops nothing it does not know."""
    assert short("LS", {"tree": "a\n  b"})["data"] == {"tree": "a\n  b"}
    assert short("Bash", {"result": "done"})["data"] == {"result": "done"}
    assert short("Read", {"lines": list(range(2000))})["data"]["truncated"] is True
    assert short("Grep", [1, 2])["data"] == [1, 2]
    assert short("Grep", {"matches": "none"})["data"] == {"pattern": ""}
    assert short("Read", {"content": {"a": 1}})["data"]["content"] == {"a": 1}


def test_fields_beside_the_protocol_stay() -> None:
    """They say something that nobody has told to drop; long ones are cut."""
    assert short("LS", {}, id=5, log="x" * 900) == {
        "status": "success",
        "data": {},
        "id": 5,
        "log": "x" * 300 + "… (600 more characters)",
    }


# Rules by name and by kind.


def test_every_rule_is_reached_and_every_name_has_one() -> None:
    """The tables fit together."""
    assert {*TOOL_RULES.values(), *KIND_RULES.values()} == SHORT_RULES.keys()
    assert KIND_RULES.keys() == {*ALL_TOOL_KINDS}


def test_the_kind_decides_where_the_name_does_not() -> None:
    """A given kind goes before the table's, a rule of the name before both."""
    text = lines(100)
    assert compress("my_search", text) == text
    assert (
        compress("my_search", text, kind="search")
        == compress("Grep", text)
        == lines(5) + "\n… (95 more lines)"
    )
    assert (
        compress("find_file", text) == compress("Glob", text) == lines(10) + "\n… (90 more lines)"
    )
    assert compress("list_dir", text) == compress("LS", text) == lines(10) + "\n… (90 more lines)"
    assert compress("Grep", text, kind="terminal") == compress("Grep", text)
    assert compress("terminal-execute", text, kind="other") == text
    assert compress("str_replace_editor:view", text) == text
    assert compress("str_replace_editor", text) == lines(20) + "\n… (80 more lines)"


# Text.


def test_text_within_the_limits_is_returned_as_it_is() -> None:
    """Not a byte is changed, space at the ends included."""
    for tool in (*TOOL_RULES, *TOOL_KINDS, "nobody", ""):
        for text in (
            "",
            "plain text",
            " done\r\n",
            "\n\n",
            "{not json}",
            "[1, 2",
            "null",
            '"x"',
            "\ud800",
        ):
            assert compress(tool, text) is text


def test_a_read_keeps_the_first_500_lines() -> None:
    """500 lines stay as they are; of a wider line the first 2,000 code points stay."""
    exact = lines(500) + "\n"
    assert compress("Read", exact) is exact
    assert compress("Read", exact + "the line after these") == lines(500) + "\n… (1 more lines)"
    assert compress("cat", lines(1500), kind="file_read") == lines(500) + "\n… (1000 more lines)"
    assert (
        compress("Read", "a\n" + "x" * 9000 + "\nb")
        == "a\n" + "x" * 2000 + "… (7000 more characters)\nb"
    )


def test_a_json_file_that_was_read_is_text() -> None:
    """Its lines are shown as those of any file, though it looks like a result."""
    content = json.dumps(
        {"status": "x", "dependencies": {f"package {number}": "1" for number in range(900)}},
        indent=1,
    )
    assert (
        compress("Read", content) == "\n".join(content.split("\n")[:500]) + "\n… (405 more lines)"
    )


def test_output_of_a_command_keeps_both_ends() -> None:
    """What it begins with and what it sums up at the end."""
    text = lines(100, "test passed") + "\n100 passed in 2s\n"
    found = compress("Bash", text)
    assert found.startswith("test passed 1\n")
    assert found.endswith("test passed 99\ntest passed 100\n100 passed in 2s\n")
    assert "\n… (84 more lines)\n" in found
    assert len(found) < 350


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 1\n{}",
        "Error: Exit code 1\n{}",
        "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOriginal token count: 9\nOutput:\n{}",
        "<returncode>1</returncode>\n<output>\n{}\n</output>",
        "{}\n\nCommand exited with code 1",
        "{}\n[The command completed with exit code 1.]\n[Current working directory: /repo]",
        "{}\n<exited with exit code 1>",
        "Output: {}\nError: (none)\nExit Code: 1\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 7\na\nb",
    ],
)
def test_a_failed_command_keeps_its_errors_and_its_exit_code(text: str) -> None:
    """Lines of the middle that say an error stay, in order.

    So does the line that says the code, wherever it is.
    """
    middle = [
        *lines(60).split("\n"),
        "x.c:3: error: no member",
        *lines(60).split("\n"),
        "Fatal: gave up",
    ]
    whole = text.format("\n".join([*middle, *lines(60).split("\n")]))
    found = compress("shell", whole)
    assert compute_result_facts({"content": found}).exit_code == 1
    assert (
        found.index("more lines)") < found.index("error: no member") < found.index("Fatal: gave up")
    )
    assert "\nline 60" in found
    assert len(found) < len(whole) / 2


def test_a_successful_command_keeps_the_line_that_says_so() -> None:
    """Also where it stands before the last lines that stay."""
    text = f"Output: {lines(90)}\nError: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)\nPGID: 7\na\nb"
    assert "\nExit Code: 0\nPGID: 7" in compress("run_shell_command", text)


def test_an_error_of_any_tool_is_not_cut_like_its_results() -> None:
    """Up to 4,000 code points stay."""
    for text in (
        "Error: " + lines(200),
        "<tool_use_error>" + lines(200),
        "Traceback (most recent call last):\n" + lines(90),
    ):
        assert compress("Grep", text) is text
    assert compress("Grep", "Error: " + "x" * 9000).endswith("\n… (5007 more characters)")


def test_other_text_keeps_its_beginning_and_its_end() -> None:
    """The marker has a line of its own.

    All together are 2,000 code points at most, so that it stays as it is.
    """
    assert (
        compress("WebFetch", "é" * 5000) == "é" * 1350 + "\n… (3050 more characters)\n" + "é" * 600
    )
    assert compress("Task", "I looked.\n" * 500 + "In short: it works.").endswith(
        "\nIn short: it works."
    )
    assert len(compress("WebFetch", "é" * 10**7)) <= 2000
    assert compress("WebFetch", "é" * 2000) == "é" * 2000


# JSON that is not of the protocol.


def test_a_json_result_of_a_command_keeps_its_form() -> None:
    """Both streams are cut, more of them stays where it failed.

    The exit code stays in its field.
    """
    for failure in (
        {"exitCode": 1},
        {"exitCode": 0, "stderr": "warning\n" * 60},
        {"metadata": {"exit_code": 1}},
    ):
        stdout = lines(100) + "\nerror: here\n" + lines(100)
        found = json.loads(compress("terminal-execute", json.dumps({"stdout": stdout, **failure})))
        assert "\nerror: here\n" in found["stdout"]
        assert found["stdout"].endswith("\n" + "\n".join(lines(100).split("\n")[-20:]))
        assert found.keys() == {"stdout", *failure}
        assert (
            compute_result_facts({"content": found}).exit_code
            == compute_result_facts({"content": failure}).exit_code
        )
    found = json.loads(
        compress("terminal-execute", json.dumps({"stdout": stdout, "stderr": "", "exitCode": 0}))
    )
    assert "error: here" not in found["stdout"]


def test_json_that_a_command_printed_is_text() -> None:
    """It is output like any other."""
    printed = json.dumps([{"id": number} for number in range(500)], indent=1)
    assert compress("Bash", printed).startswith('[\n {\n  "id": 0')
    assert compress("Bash", printed).endswith("\n ]") is False
    assert "more lines)" in compress("Bash", printed)
    assert compress("Bash", json.dumps({"id": ["x"] * 500})).startswith('{"id": ["x", "x"')


def test_parts_and_fields_are_cut_as_text_is() -> None:
    """A result in parts (MCP), or with its text in a field, keeps its form."""
    parts = {"content": [{"type": "text", "text": lines(900)}], "isError": False}
    found = json.loads(compress("mcp__filesystem__read_file", json.dumps(parts)))
    assert found == {
        "content": [{"type": "text", "text": lines(500) + "\n… (400 more lines)"}],
        "isError": False,
    }
    read_result = {"content": lines(900), "startLine": 1, "totalLines": 900}
    found = json.loads(compress("filesystem-read", json.dumps(read_result)))
    assert found == {**read_result, "content": lines(500) + "\n… (400 more lines)"}
    found = json.loads(compress("search_code", json.dumps({"results": ["é" * 50] * 100})))
    assert found["results"][-1].startswith("… (")


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 50_000 + "1" + "}" * 50_000,
        '{"status": "success", "data": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"status": "success", "data": {"stdout": ' + "1" * 9000 + "}}",
        '{"status": "success", "data": {"stdout": NaN, "text": "' + "x" * 5000 + '"}}',
        '{"status": "success", "data": {"x": 1e999, "text": "' + "x" * 5000 + '"}}',
        '{"status": "success", "status": "error", "data": 1, "data": {"entries": 5}}',
        '{"status": ["success"], "data": {"entries": [1]}, "stats": 3, "context": []}',
        '{"status": "success", "data": {"entries": [1]}, "stats": 3, "context": {"params_input": "x"}}',
        '{"status": "success", "data": {"content": "' + "\\ud800 x\\n" * 900 + '"}}',
        "\ud83d\ude00" * 5000,
        "x" * 5_000_000,
        "\n" * 5_000_000,
        "error\n" * 900_000,
        " " * 5000 + "{}",
        "\ufeff{}",
        "\0" * 5000,
    ],
    ids=lambda content: content[:24],
)
@pytest.mark.parametrize("tool", [*SHORT_RULES, "nobody"])
def test_any_text_may_come_in(tool: str, content: str) -> None:
    """What is too deep, too long, too big or broken is cut like text, or stays."""
    check_laws(tool, content)


# The laws.

WORDS = ["x", "a/b.py:12: y", "é", "😀", "...", "z" * 2100, "y" * 210, lines(600)]
WORDS += [
    "error: bad",
    "Exit code 1",
    "\n",
    "… (3 more lines)",
    "… (3 more characters)",
    "\ud800",
    "\udc00",
    "@@ -1 +2 @@",
]
words = st.sampled_from(WORDS)
texts = (
    st.lists(words, max_size=12).map("\n".join)
    | st.lists(words, max_size=6).map("".join)
    | st.text(max_size=30)
)
FIELDS = {
    field for rule in SHORT_RULES.values() for field in (*rule.reads, *rule.facts, *rule.marks)
}
FIELDS |= {
    *PROTOCOL_FIELDS,
    "stdout",
    "stderr",
    "stdout_tail",
    "exitCode",
    "output",
    "params_input",
    "path_resolved",
    "todos",
    "…",
}
keys = st.sampled_from(sorted(FIELDS))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=30)
        | st.dictionaries(keys | st.text(max_size=3), inner, max_size=12)
    ),
    max_leaves=12,
)
objects = st.dictionaries(keys, values, max_size=6)
results = st.fixed_dictionaries(
    {"status": st.sampled_from(PROTOCOL_STATUSES), "data": objects | values},
    optional={
        "text": texts,
        "error": st.fixed_dictionaries({"code": texts, "message": texts}) | values,
        "stats": objects | values,
        "context": st.fixed_dictionaries({"params_input": objects}) | values,
        "id": values,
    },
)
written = st.builds(
    json.dumps, results | values, ensure_ascii=st.booleans(), indent=st.none() | st.just(1)
)
contents = texts | written | st.builds(lambda text, end: text[:end], written, st.integers(0, 500))
tools = st.sampled_from(
    [*SHORT_RULES, "MultiEdit", "terminal-execute", "filesystem-read", "todo-add", "nobody"]
)


def check_laws(tool: str, content: str) -> str:
    """Hold one content to the laws, and return its short form."""
    found = compress(tool, content)
    assert len(found) <= len(content)
    assert compress(tool, found) == found
    assert compress(tool, content) == found
    return found


@settings(max_examples=250)
@given(tools, contents)
@example(
    "Bash", json.dumps({"status": "error", "data": {"stdout": "\ud83d"}, "error": "\ude00" * 9})
)
@example(
    "nobody",
    json.dumps({"status": "success", "data": {"note": ["x" * 90] * 11, "a": ["x" * 90] * 11}}),
)
def test_a_short_form_is_never_longer_and_stays_as_it_is(tool: str, content: str) -> None:
    """It is a function of name and content, it does not grow, and taken again it is the same."""
    check_laws(tool, content)


@settings(max_examples=150)
@given(tools, results, st.booleans())
def test_a_result_of_the_protocol_stays_one(
    tool: str, result: dict[str, Any], ascii_only: bool
) -> None:
    """Valid JSON that UTF-8 holds comes out, with the same status and error, and nothing that is to
    be dropped.
    """
    content = json.dumps(result, ensure_ascii=ascii_only)
    compress(tool, json.dumps(result)).encode()
    found = json.loads(compress(tool, content))
    assert found["status"] == result["status"]
    assert joined(found.get("error")) == joined(result.get("error"))
    if found != json.loads(content):
        assert found.keys() <= (PROTOCOL_FIELDS | {"id"}) - {"text", "stats", "context"}
        assert found.keys() >= {"status", "data"}


@settings(max_examples=150)
@given(texts, st.integers(0, 40), st.sampled_from(["", "\n"]))
@example("x" * 11, 10, "")
@example("x" * 32, 10, "")
def test_a_clipped_text_is_shorter_and_stays_as_it_is(
    text: str, points: int, before_marker: str
) -> None:
    """Or it is the text itself: a marker is not worth more than what it stands for."""
    found = clip_text(text, points, before_marker)
    assert found == text or len(found) < len(text)
    assert clip_text(found, points, before_marker) == found


@settings(max_examples=150)
@given(values, st.integers(0, 300), st.integers(0, 12), st.integers(0, 12))
@example(list(range(30)), 300, 10, 10)
@example({str(number): number for number in range(30)}, 300, 10, 10)
def test_what_is_trimmed_says_by_how_much_and_stays_as_it_is(
    value: Any, points: int, items: int, keys: int
) -> None:
    """Its marker is not counted as an item, and is not replaced by one that says less.

    One item too many is cut.
    """
    limits = ValueLimits(points, items, keys)
    found = trim_value(value, limits)
    assert trim_value(found, limits) == found
    if isinstance(value, list) and len(value) > items and not is_marker(value[-1]):
        assert found[items:] == [f"… ({len(value) - items} more items)"]
    if isinstance(value, dict) and len(value) > keys and not is_marker(value.get("…")):
        assert found["…"] == f"… ({len(value) - keys} more keys)"


def test_json_text_is_what_utf_8_can_hold() -> None:
    """Halves of a character that stand side by side are the character, lone ones are escaped."""
    assert encode_json(["é", "\ud83d\ude00", "\ude00\ud83d"]) == '["é", "😀", "\\ude00\\ud83d"]'


def joined(value: Any) -> Any:
    """Return a value as a JSON reader sees it.

    Halves of a character that stand side by side are the character.
    """
    return json.loads(json.dumps(value))


@pytest.mark.slow
def test_the_order_of_fields_does_not_depend_on_the_process() -> None:
    """Hashes of texts differ from process to process.

    What is sent must not, for the sake of prompt caches.
    """
    marks = dict.fromkeys(sorted(STATE_MARKS), 1)
    content = json.dumps(
        {"status": "success", "data": {"stdout": "x", **marks}, "text": "y" * 900, "b": 1, "a": 2}
    )
    code = "import sys; from store.tools import compress; print(compress('Bash', sys.argv[1]))"
    command = [sys.executable, "-c", code, content]
    root = ROOT
    found = {
        subprocess.run(
            command,
            cwd=root,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {compress("Bash", content) + "\n"}


# Real results.


def real_results() -> Iterator[tuple[str, str]]:
    """Yield every tool result of the recorded conversations, with the name that its call's kind is
    looked up by.
    """
    for path in sorted(path for path in TRANSCRIPTS.rglob("*") if path.is_file()):
        try:
            sniff(path)
        except StoreError:
            continue
        names: dict[str | None, str | None] = {}
        for event in read(path):
            if isinstance(event, SessionMessage):
                functions = [
                    (call.get("id"), call.get("function") or {})
                    for call in event.message.get("tool_calls") or ()
                ]
                names |= {
                    call_id: find_kind_name(each.get("name"), each.get("arguments"))
                    for call_id, each in functions
                }
                if event.message.get("role") == "tool":
                    yield (
                        names.get(find_answered_call_id(event.message)) or "",
                        extract_content_text(event.message.get("content")),
                    )


@needs_transcripts
@pytest.mark.slow
def test_real_results_keep_the_laws_and_their_exit_codes() -> None:
    """Every recorded result is held to the laws; what told the exit code tells it still."""
    before = after = 0
    for tool, content in real_results():
        found = check_laws(tool, content)
        assert (
            compute_result_facts({"content": found}).exit_code
            == compute_result_facts({"content": content}).exit_code
        )
        before, after = before + len(content), after + len(found)
    assert 0 < after < before
