"""Facts of tool results, the files that calls name, and the kinds of tools."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.tools import calls
from store.tools import kinds as tool_kinds
from store.tools import results as tools
from store.tools.calls import ToolPath
from store.tools.kinds import ALL_TOOL_KINDS, TOOL_KINDS
from store.tools.path_normalization import PATH_LIMIT, normalise_path

# --- facts ----------------------------------------------------------------------------------------


def facts(content: object, **more: Any) -> tools.Facts:
    """Facts of a result with this content."""
    return tools.compute_result_facts({"role": "tool", "content": content, **more})


SNIFFED = [
    ('{"stdout":"hello","stderr":"","exitCode":0}', True),
    ('{"stdout":"Build completed"}', True),
    ("File content: ...", False),
    ('{"path":"/path/to/file"}', False),
    ("", False),
    (None, False),
    ('{"stdout" : "spaced"}', False),
    ('not json, but "exitCode": all the same', True),
    ([{"type": "text", "text": '{"stdout":'}, {"type": "text", "text": '"in two parts"}'}], True),
    ({"stderr": "an object, not text"}, True),
    ([{"type": "image_url", "image_url": {"url": "data:"}}], False),
]


@pytest.mark.parametrize(("content", "expected"), SNIFFED)
def test_command_output_is_recognised_by_its_marks(content: object, expected: bool) -> None:
    """Any of the three marks in the text is enough (S0.21-S0.23, S0.39, A0.12)."""
    assert bool(tools.compute_result_facts({"content": content}).looks_terminal) is expected
    assert facts(content).looks_terminal == int(expected)


ERRORS = [
    ({"content": "\ufeffError: a mark of UTF-8 before it"}, True),
    ({"content": "Error: Command failed with exit code 1"}, True),
    ({"content": "anything", "messageStatus": "error"}, True),
    ({"content": '{"stdout":"","stderr":"Connection refused","exitCode":1}'}, True),
    ({"content": '{"stdout":"ok","stderr":"","exitCode":0}'}, False),
    ({"content": '{"stdout":"x","stderr":"cut off'}, False),
    ({"content": " \n\tError: after white space"}, True),
    ({"content": "An Error: in the middle"}, False),
    ({"content": '{"stderr": null}'}, False),
]


@pytest.mark.parametrize(("message", "expected"), ERRORS)
def test_the_facts_tell_an_error_of_a_command(message: dict[str, Any], expected: bool) -> None:
    """Prefix, status and stderr are each a fact.

    Together they say what S0.24 says (S0.25, S0.40, A0.6).
    """
    fact = tools.compute_result_facts({"role": "tool", **message})
    assert bool(fact.error_prefix or fact.has_stderr or fact.status == "error") is expected


EXIT_CODES = [
    ('{"stdout":"","exitCode":3}', 3),
    ('{"exit_code": -1}', -1),
    ('{"returncode": 2.0}', 2),
    ('{"output":"ls\\n","metadata":{"exit_code":127,"duration_seconds":0.1}}', 127),
    ({"exitCode": 5}, 5),
    ('{"exitCode": true}', None),
    ('{"exitCode": "1"}', None),
    ('{"exitCode": 1.5}', None),
    ('{"exitCode": 99999999999999999999}', None),
    ('{"exitCode": null, "exit_status": 4}', 4),
    ('{"output": "Exit code: 1"}', None),
    ("Exit code 1\nls: cannot access 'x'", 1),
    ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nhello", 0),
    (
        "Chunk ID: 1a\nWall time: 0.05 seconds\nProcess exited with code 2\nOriginal token count: 4\nOutput:\nno",
        2,
    ),
    ("<returncode>7</returncode>\n<output>\n</output>", 7),
    (
        "text\n[The command completed with exit code 1.]\n[Current working directory: /w]\n[Python interpreter: /p]",
        1,
    ),
    ("x\n[Python Interpreter: /p]\nroot@host:/w # \n[Command finished with exit code 130]", 130),
    ("tests failed\n\n\nCommand exited with code 1", 1),
    ("output\n\n\n[Process exited with code 101]", 101),
    ("exit: 0\n<shellId: 4 completed with exit code 9>", 9),
    ("output\n<exited with exit code 0>", 0),
    (
        "Command: ls\nDirectory: (root)\nStdout: a\nStderr: (empty)\nError: (none)\nExit Code: 6\nSignal: (none)",
        6,
    ),
    ("Command executed in terminal within working directory '/w'. Exit code: 3\nOutput:\n", 3),
    ('Command "cargo test" failed with exit code 101.\n\n```\nerror\n```', 101),
    ("Error: Command failed with exit code 1", 1),
    ("The function returns with exit code 3 if the file is missing", None),
    ("Exit code 1 means that the file is missing", None),
    ("a" * 400 + "\nExit Code: 6\n" + "a" * 400, None),
    ("plain", None),
    (None, None),
]


@pytest.mark.parametrize(("content", "expected"), EXIT_CODES)
def test_exit_codes_are_read_in_every_wording_in_use(content: object, expected: int | None) -> None:
    """Fields of JSON first, then the words of the programs, only where those programs put them
    (A0.3).
    """
    assert facts(content).exit_code == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [("pending", "pending"), ("", ""), ("a\0b", None), ("\ud800", None), (1, None)],
)
def test_a_status_is_kept_where_a_column_can_hold_it(status: object, expected: str | None) -> None:
    """Text without NUL and lone surrogates."""
    assert facts("", messageStatus=status).status == expected


LENGTHS = [
    ("", 0, 0),
    (None, 0, 0),
    ("日本\U0001f600", 3, 10),
    ("\ud800", 1, 3),
    ([{"type": "text", "text": "ab"}, {"type": "output_text", "text": "cé"}], 4, 5),
    ([{"type": "image", "source": {}}], 0, 0),
    ({"a": "é"}, 9, 10),
    ([{"query": "x"}], 15, 15),
    (12, 2, 2),
]


@pytest.mark.parametrize(("content", "length", "size"), LENGTHS)
def test_length_and_size_are_those_of_the_text(content: object, length: int, size: int) -> None:
    """Code points and UTF-8 bytes; JSON text where content is neither text nor parts."""
    assert facts(content)[6:8] == (length, size)


def test_content_that_cannot_be_parsed_is_text() -> None:
    """Nesting beyond any parser and numbers of thousands of digits say nothing, and stop nothing."""
    for text in (
        "{" + '"a":{' * 100_000 + "}" * 100_001,
        '{"exitCode":' + "9" * 5000 + "}",
        '{"stderr":',
    ):
        assert facts(text)[2:4] == (None, 0)
    assert facts({"exitCode": 10**5000}) == facts("")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"tool_call_id": "c1"}, "c1"),
        ({"tool_call_id": "c1", "tool_call_ids": ["c2"]}, "c1"),
        ({"tool_call_id": None, "tool_call_ids": ["c2"]}, "c2"),
        ({"tool_call_ids": ["c2", "c3"]}, None),
        ({"tool_call_ids": [""]}, None),
        ({"tool_call_id": ""}, None),
        ({"tool_call_id": 5}, None),
        ({"tool_call_id": "a\0"}, None),
        ({}, None),
    ],
)
def test_a_result_names_the_call_it_answers(message: dict[str, Any], expected: str | None) -> None:
    """By its id, or by the one id of a list; nothing else is an id."""
    assert tools.find_answered_call_id(message) == expected


# --- kinds ----------------------------------------------------------------------------------------

KINDS_IN_USE = [
    (
        "terminal",
        "terminal-execute Bash BashOutput KillShell shell exec_command write_stdin local_shell container.exec",
    ),
    (
        "terminal",
        "bash run_shell_command execute_command execute_bash terminal run_terminal_cmd developer__shell Execute",
    ),
    (
        "file_read",
        "filesystem-read Read NotebookRead read read_file read_many_files open goto scroll_up view readFile",
    ),
    (
        "file_read",
        "str_replace_editor:view file_editor:view developer__text_editor:view view_file read_files ViewCode",
    ),
    (
        "file_edit",
        "filesystem-edit filesystem-create Edit MultiEdit Write NotebookEdit apply_patch edit write patch",
    ),
    (
        "file_edit",
        "write_file replace write_to_file replace_in_file apply_diff str_replace_editor create edit_file",
    ),
    (
        "search",
        "ace-text_search codebase-search Grep Glob grep glob search_file_content search_files codebase_search",
    ),
    (
        "search",
        "list_code_definition_names find_file search_file search_dir grep_search file_search find_path",
    ),
    ("list", "LS list list_directory list_files list_dir ls"),
    (
        "todo",
        "todo-add TodoWrite TodoRead update_plan todowrite todoread write_todos update_todo_list task_tracker",
    ),
    ("other", "Task WebFetch WebSearch think finish attempt_completion submit"),
    (
        "file_read",
        "mcp__filesystem__read_text_file filesystem__read_multiple_files mcp_filesystem_read_file",
    ),
    ("terminal", "mcp__desktop-commander__start_process serena_execute_shell_command"),
]


@pytest.mark.parametrize(("kind", "names"), KINDS_IN_USE)
def test_the_names_of_the_field_have_their_kinds(kind: str, names: str) -> None:
    """Each family of agents calls the same things by other names (X.11)."""
    assert {name: TOOL_KINDS.get(name) for name in names.split()} == dict.fromkeys(
        names.split(), kind
    )


def test_a_name_is_of_one_kind_whoever_uses_it() -> None:
    """The names of all programs share one table, so no two of them may disagree."""
    named = groupby(sorted(set(tool_kinds.list_tool_kinds())), key=lambda row: row[0])
    assert [rows for _, group in named if len(rows := list(group)) > 1] == []


def test_every_kind_is_known() -> None:
    """The table holds no kind that policies do not know, and no kind is without a name."""
    assert set(TOOL_KINDS.values()) == set(ALL_TOOL_KINDS)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("str_replace_editor", {"command": "view", "path": "/a"}, "str_replace_editor:view"),
        ("str_replace_editor", '{"command": "view"}', "str_replace_editor:view"),
        ("str_replace_editor", {"command": "create"}, "str_replace_editor"),
        ("str_replace_editor", {"command": ["view"]}, "str_replace_editor"),
        ("str_replace_editor", "not json", "str_replace_editor"),
        ("developer__text_editor", {"command": "view"}, "developer__text_editor:view"),
        ("fs_read", {"mode": "Directory", "path": "/"}, "fs_read:Directory"),
        ("bash", {"command": "view"}, "bash"),
        ("bash", None, "bash"),
        ("", None, ""),
        ("a\0b", None, None),
        (None, None, None),
    ],
)
def test_an_argument_may_decide_what_a_tool_is(
    name: str | None, arguments: object, expected: str | None
) -> None:
    """A view is told from an edit by the name under which its kind is looked up."""
    assert tools.find_kind_name(name, arguments) == expected


# --- paths of a call ------------------------------------------------------------------------------


def read(
    path: str,
    start: int | None = None,
    end: int | None = None,
    contiguous: int = 1,
    mentions: int = 1,
) -> ToolPath:
    """One file of a call, by default whole and named once."""
    return ToolPath(path, start, end, contiguous, mentions)


SPELLINGS = """
    filePath file_path path file filepath filename target_file TargetFile absolute_path AbsolutePath notebook_path
    relative_workspace_path paths files file_paths dir directory target_directory DirectoryPath
"""


@pytest.mark.parametrize("key", SPELLINGS.split())
@pytest.mark.parametrize(
    "value", ["src/a.py", ["src/a.py"], [{"path": "src/a.py"}], {"filePath": "./src/a.py"}]
)
def test_a_path_is_found_under_every_key_and_in_every_shape(key: str, value: object) -> None:
    """Text, a list of texts, a list of objects, one object.

    As an object or as JSON text (S1.35, S1.42, A1.2).
    """
    expected = calls.CallPaths((read("src/a.py"),), True)
    assert (
        calls.find_call_paths({key: value})
        == calls.find_call_paths(json.dumps({key: value}))
        == expected
    )


NAMED: list[tuple[object, tuple[ToolPath, ...], bool]] = [
    # nothing named
    (None, (), True),
    ("", (), True),
    ("not json", (), True),
    ("[1]", (), True),
    ('{"path": "cut', (), True),
    (7, (), True),
    ({}, (), True),
    ({"command": "ls"}, (), True),
    ({"filePath": ""}, (), True),
    ({"filePath": None}, (), True),
    ({"filePath": []}, (), True),
    # something that is no path
    ({"filePath": 5}, (), False),
    ({"filePath": {}}, (), False),
    ({"filePath": ["a", ""]}, (read("a"),), False),
    ({"filePath": ["a", 3]}, (read("a"),), False),
    ({"filePath": ["a", {"name": "b"}]}, (read("a"),), False),
    ({"filePath": ["a", ["b"]]}, (read("a"),), False),
    ({"filePath": ["a", {"path": ""}]}, (read("a"),), False),
    ({"filePath": ["a", "b" * 3000]}, (read("a"),), False),
    # several, and one several times
    ({"filePath": ["a", "b"]}, (read("a"), read("b")), True),
    ({"filePath": ["a.ts", "./a.ts", "x/../a.ts"]}, (read("a.ts", mentions=3),), True),
    ({"file_path": "a", "filePath": "b"}, (read("a"), read("b")), True),
    ({"path": "src", "files": ["a"]}, (read("src"), read("a")), True),
    ({"dir": "src", "file": "src/a"}, (read("src/a"),), True),
    ({"operations": [{"mode": "Image", "image_paths": ["a", "b"]}]}, (read("a"), read("b")), True),
    # lines
    ({"filePath": "a", "startLine": 5, "endLine": 9}, (read("a", 5, 9),), True),
    ({"path": "a", "start_line": 5}, (read("a", 5),), True),
    ({"path": "a", "end_line": 5}, (read("a", 1, 5),), True),
    ({"path": "a", "start_line": 1, "end_line": -1}, (read("a"),), True),
    ({"path": "a", "start_line": "5", "end_line": 9.0}, (read("a", 5, 9),), True),
    ({"file_path": "a", "offset": 10, "limit": 5}, (read("a", 10, 14),), True),
    ({"file_path": "a", "offset": 0, "limit": 5}, (read("a", 1, 5),), True),
    ({"file_path": "a", "limit": 5}, (read("a", 1, 5),), True),
    ({"file_path": "a", "offset": None, "limit": None}, (read("a"),), True),
    ({"path": "a", "view_range": [3, 8]}, (read("a", 3, 8),), True),
    ({"path": "a", "view_range": [3, -1]}, (read("a", 3),), True),
    ({"path": "a", "view_range": "[3, 8]"}, (read("a", 3, 8),), True),
    ({"path": "a", "line_range": "3-8"}, (read("a", 3, 8),), True),
    (
        {"target_file": "a", "start_line_one_indexed": 2, "end_line_one_indexed_inclusive": 4},
        (read("a", 2, 4),),
        True,
    ),
    (
        {"target_file": "a", "should_read_entire_file": True, "start_line_one_indexed": 2},
        (read("a"),),
        True,
    ),
    ({"AbsolutePath": "/a", "StartLine": 2, "EndLine": 4}, (read("/a", 2, 4),), True),
    (
        {"files": [{"path": "a", "startLine": 2}, "b"], "endLine": 9},
        (read("a", 2), read("b", 1, 9)),
        True,
    ),
    ({"files": [{"path": "a", "line_ranges": [[1, 5], [6, 9]]}]}, (read("a", 1, 9),), True),
    (
        {"path": "a", "lineRanges": [{"start": 1, "end": 5}, {"start": 8, "end": 9}]},
        (read("a", 1, 9, 0),),
        True,
    ),
    # hulls
    (
        {"files": [{"path": "a", "end": 5}, {"path": "a", "start": 4}]},
        (read("a", mentions=2),),
        True,
    ),
    (
        {"files": [{"path": "a", "start": 9, "end": 9}, {"path": "a", "end": 3}]},
        (read("a", 1, 9, 0, 2),),
        True,
    ),
    (
        {"files": [{"path": "a", "start": 9}, {"path": "a", "end": 3}]},
        (read("a", contiguous=0, mentions=2),),
        True,
    ),
    ({"files": ["a", {"path": "a", "start_line": "x"}]}, (read("a", mentions=2),), True),
]


@pytest.mark.parametrize(("arguments", "paths", "complete"), NAMED)
def test_what_a_call_names(arguments: object, paths: tuple[ToolPath, ...], complete: bool) -> None:
    """Files, lines and whether all of it was understood (S1.32, A1.4, A1.5, A1.10, A1.14)."""
    assert calls.find_call_paths(arguments) == (paths, complete)


NONSENSE: list[dict[str, Any]] = [
    {"start_line": -4},
    {"start_line": True},
    {"start_line": "ten"},
    {"start_line": 9, "end_line": 3},
    {"start_line": 10**30},
    {"start_line": 1, "startLine": 50},
    {"offset": -20},
    {"limit": 0},
    {"offset": 2, "limit": -1},
    {"end_line": 5, "limit": 5},
    {"view_range": [1]},
    {"view_range": [None, 5]},
    {"view_range": "null"},
    {"line_ranges": [[1, 5], "x"]},
    {"line_ranges": []},
    {"should_read_entire_file": False},
    {"tail": 20},
    {"pages": "1-3"},
    {"line_number": 40},
]


@pytest.mark.parametrize("lines", NONSENSE)
def test_lines_that_make_no_sense_cover_nothing(lines: dict[str, Any]) -> None:
    """Neither the whole file nor a guess is claimed.

    The hull is all of it, and it is not contiguous.
    """
    assert calls.find_call_paths({"path": "a", **lines}).paths == (read("a", contiguous=0),)


def test_paths_are_keys_of_the_session() -> None:
    """The project root and the folding of case reach every path of a call."""
    named = calls.find_call_paths(
        {"files": ["C:\\Code\\A.py", "a.PY", "c:/code/a.py"]}, "c:/code", fold_case=True
    )
    assert named.paths == (read("a.py", mentions=3),)


# --- paths as keys --------------------------------------------------------------------------------

ROOT = "F:/Projects/snow-cli"
BUTTON = "src/components/Button.tsx"

NORMALISED = [
    # one file, however spelled (S1.30)
    (BUTTON, ROOT, BUTTON),
    ("./" + BUTTON, ROOT, BUTTON),
    ("F:/Projects/snow-cli/" + BUTTON, ROOT, BUTTON),
    ("src\\components\\Button.tsx", ROOT, BUTTON),
    ("f:\\Projects\\snow-cli\\src\\components\\Button.tsx", ROOT, BUTTON),
    ("F:/Projects/snow-cli/src/../src//components/./Button.tsx/", ROOT + "/", BUTTON),
    ("file:///F:/Projects/snow-cli/src/components/Button.tsx", "f:\\Projects\\snow-cli\\", BUTTON),
    ("file:///f%3A/Projects/snow-cli/src/components/Button.tsx", ROOT, BUTTON),
    ("file://F:/Projects/snow-cli/src/components/Button.tsx", ROOT, BUTTON),
    # the root, and what is beside it (S1.43, A1.7)
    (ROOT, ROOT, "."),
    (ROOT + "/", ROOT, "."),
    (".", ROOT, "."),
    ("a/..", ROOT, "."),
    ("/p/..name/x", "/p", "..name/x"),
    ("..name", "/p", "..name"),
    ("/pp/x", "/p", "/pp/x"),
    ("/p/../q/x", "/p", "/q/x"),
    ("G:/Projects/snow-cli/x", ROOT, "G:/Projects/snow-cli/x"),
    ("g:\\x\\", ROOT, "G:/x"),
    ("/", "/p", "/"),
    ("C:", None, "C:/"),
    ("/etc/hosts", "/", "etc/hosts"),
    ("/p/x", None, "/p/x"),
    ("/p/x", "", "/p/x"),
    ("/p/x", "p", "/p/x"),
    # only absolute paths are made relative (A1.8)
    ("../snow-cli/x", ROOT, "../snow-cli/x"),
    ("a/../../x", ROOT, "../x"),
    ("/../x", None, "/x"),
    ("dir/", ROOT, "dir"),
    ("~/x", "/p", "~/x"),
    # network shares
    ("\\\\server\\share\\x\\", None, "//server/share/x"),
    ("//server/share/x", "\\\\server\\share", "x"),
    ("//server/share/../../x", None, "//server/share/x"),
    ("file://server/share/x", None, "//server/share/x"),
    ("file://localhost/p/a%20b", "/p", "a b"),
    ("///p//x", "/p", "x"),
    # case
    ("SRC/A.py", None, "SRC/A.py"),
    ("f:/projects/SNOW-CLI/x", ROOT, "F:/projects/SNOW-CLI/x"),
    # what no column holds, what is no path
    ("a\0b", None, "a\ufffdb"),
    ("file:///p/a%00b", "/p", "a\ufffdb"),
    ("a\ud800b", None, "a\ufffdb"),
    ("日本.py", None, "日本.py"),
    ("x" * 2001, None, ""),
    ("", ROOT, ""),
]


@pytest.mark.parametrize(("path", "root", "key"), NORMALISED)
def test_a_path_becomes_its_key(path: str, root: str | None, key: str) -> None:
    """Separators, drives, shares, URIs, dots and slashes are accidents; the file is what counts."""
    assert normalise_path(path, root) == key


def test_case_is_folded_only_if_asked() -> None:
    """On a file system that does not tell case apart, root and path are compared without it."""
    assert normalise_path("f:/projects/SNOW-CLI/Src/X", ROOT, fold_case=True) == "src/x"


# --- laws -----------------------------------------------------------------------------------------

PIECES = [
    "a",
    "B",
    "..",
    ".",
    "",
    "/",
    "//",
    "\\",
    "C:",
    "c:/",
    "file:",
    "file:///",
    "%2e",
    "%2f",
    "~",
    "\0",
    "\ud800",
    "ß",
    "İ",
]
PATHS = st.lists(st.sampled_from([*PIECES, "/"]), max_size=9).map("".join) | st.text(max_size=20)
ROOTS = st.none() | st.sampled_from(["/", "/a", "C:/", "c:\\a", "//a/B", "a", ""]) | PATHS
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, -1, 10**4000, 2**63 - 1])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(), max_size=8) | PATHS
NAMES = """
    path files filePath dir operations startLine end_line offset limit view_range line_ranges start end tail content
    should_read_entire_file timestamp messageStatus tool_call_id tool_call_ids type text stdout stderr exitCode metadata
    command
"""
KEYS = st.sampled_from(NAMES.split())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300)
@given(PATHS, ROOTS, st.booleans())
def test_a_key_is_its_own_key(path: str, root: str | None, fold_case: bool) -> None:
    """Normalising again changes nothing, and every key can be stored."""
    key = normalise_path(path, root, fold_case=fold_case)
    assert normalise_path(key, root, fold_case=fold_case) == key
    assert "\0" not in key
    assert len(key.encode()) <= PATH_LIMIT


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from(["src", "..name", "a b", "日本", "x.py"]), min_size=1, max_size=4),
    st.sampled_from(["/home/me/proj", "D:/me/proj", "//server/share/proj"]),
)
def test_every_spelling_of_one_file_gives_one_key(parts: list[str], root: str) -> None:
    """Absolute or not, with either separator, with dots and doubled or trailing slashes."""
    inside = "/".join(parts)
    spelled = [
        inside,
        "./" + inside,
        inside + "/",
        "x/../" + inside,
        f"{root}/{inside}",
        f"{root}/./{inside}//",
    ]
    spelled += [text.replace("/", "\\") for text in spelled]
    assert {normalise_path(text, root) for text in spelled} == {inside}


@settings(max_examples=200)
@given(VALUES, st.dictionaries(KEYS, VALUES, max_size=6), ROOTS)
def test_nothing_that_comes_in_is_too_odd(
    value: object, message: dict[str, Any], root: str | None
) -> None:
    """All functions take any JSON value, and what they return fits its columns."""
    fact = tools.compute_result_facts({**message, "content": value})
    numbers = [number for number in fact if isinstance(number, int)]
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert fact.looks_terminal in (0, 1)
    tools.find_answered_call_id(message)
    tools.find_kind_name("file_editor", value)
    for path in (
        calls.find_call_paths(message, root).paths + calls.find_call_paths(value, root).paths
    ):
        assert path.path
        assert 1 <= (path.start_line or 1) <= (path.end_line or 2**63 - 1) < 2**63


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            {"status": "error", "data": {"exit_code": 1, "stderr": "boom"}, "error": {"code": "X"}},
            ("error", 1, 1),
        ),
        ({"status": "success", "data": {"exit_code": 0, "stderr": ""}}, (None, 0, 0)),
        ({"status": "partial", "data": {"exit_code": 2}}, (None, 2, 0)),
        ({"status": "success", "data": ["exit_code"], "stderr": "at the top"}, (None, None, 1)),
        ({"status": "ok", "data": None}, (None, None, 0)),
        ({"status": "error", "error": {"code": "X"}}, ("error", None, 0)),
        ({"status": "error", "n": 1}, (None, None, 0)),
        ({"status": "error"}, (None, None, 0)),
    ],
)
def test_results_of_the_protocol_say_their_facts_in_data(
    content: Any, expected: tuple[Any, ...]
) -> None:
    """S4.18: exit code and stderr stand in ``data``, the outcome in ``status``.

    The message's own outranks it.
    """
    fact = facts(json.dumps(content))
    assert (fact.status, fact.exit_code, fact.has_stderr) == expected
    assert facts(json.dumps(content), messageStatus="done").status == "done"


PATCH = """*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@
-*** Update File: not/a/header.py
+x
*** Add File: /home/dev/new file.py\x20
+y
*** Delete File: old.py
*** End Patch"""


@pytest.mark.parametrize(
    "arguments",
    [
        PATCH,
        {"input": PATCH},
        json.dumps({"patchText": PATCH}),
        {"command": ["apply_patch", PATCH], "timeout": 5},
        {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"},
    ],
)
def test_a_patch_names_its_files(arguments: Any) -> None:
    """Wherever it stands: by itself, in a field, in the words of a command."""
    found = calls.find_call_paths(arguments, "/home/dev")
    assert [path.path for path in found.paths] == ["src/a.py", "src/b.py", "new file.py", "old.py"]
    assert found.complete


def test_what_only_speaks_of_patches_names_none() -> None:
    """A header without a patch around it is text."""
    assert calls.find_call_paths({"command": "echo '*** Update File: a.py'"}).paths == ()
    assert calls.find_call_paths("not json").paths == ()
