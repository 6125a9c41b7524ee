"""The example agent, end to end.

What it sent in each request, and what is stored after a crash and a compaction.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agent import POLICY, SESSION, SYSTEM
from conftest import ROOT
from file_tools import FileTools
from refusals import refusals
from scripted_model import TURNS

import store
from store import Store
from store.context.request import LAYERS, remind
from store.records import StoredMessage

pytestmark = pytest.mark.sqlite_only

EXAMPLES = ROOT / "examples"
Message = dict[str, Any]


class Request(NamedTuple):
    """What the agent's log says of a request.

    ``pieces`` are layer and position, ``view`` and ``now`` the head and the moment of then.
    """

    messages: list[Message]
    layers: dict[str, int]
    stable_prefix_tokens: int
    first_changed: int | None
    open_turn: int
    tools: list[Message]
    pieces: list[tuple[str, int | None]]
    view: int
    now: int
    is_first: bool
    notices: list[str]
    system: str | None

    def of(self, *layers: str) -> list[Message]:
        """The messages of some layers."""
        return [
            message
            for message, (layer, _) in zip(self.messages, self.pieces, strict=True)
            if layer in layers
        ]

    @property
    def prefix(self) -> list[Message]:
        """All but the closing recap."""
        return self.of(*LAYERS[:-1])


def run(*arguments: str) -> str:
    """Run the example as a user does; return what it printed."""
    done = started(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the example, whatever comes of it."""
    command = [sys.executable, "-B", str(EXAMPLES / "agent.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example ran."""
    found = tmp_path_factory.mktemp("example")
    (found / "printed").write_text(run(str(found / "run")))
    return found


@pytest.fixture(scope="module")
def requests(folder: Path) -> list[Request]:
    """All requests, of both processes."""
    lines = (folder / "run" / "requests.jsonl").read_text().splitlines()
    return [Request(**json.loads(line)) for line in lines]


@pytest.fixture(scope="module")
def opened(folder: Path) -> Iterator[Store]:
    """The store as the example left it."""
    with Store(folder / "run" / "chat.db") as found:
        yield found


@pytest.fixture(scope="module")
def raw(opened: Store) -> list[StoredMessage]:
    """All that was said."""
    return opened.messages(SESSION)


@pytest.mark.slow
def test_it_prints_the_same_each_time(folder: Path) -> None:
    """Neither the folder nor the clock nor chance decides what it prints, and at the end nothing is
    missing.
    """
    printed = (folder / "printed").read_text()
    assert run() == printed
    assert "stored: 38 of 38 messages" in printed
    assert "found:  0 faults" in printed
    assert "exit code -9" in printed
    assert max(map(len, printed.splitlines())) <= 120


def test_who_asks_for_help_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no name of a folder to run in."""
    monkeypatch.chdir(tmp_path)
    assert run("--help").startswith("usage: agent.py")
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_a_folder_with_something_in_it_is_left_alone(folder: Path) -> None:
    """Whatever it is."""
    done = started(str(folder))
    assert done.returncode == 1
    assert "is not empty" in done.stderr


# --- what was sent --------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_layers_are_in_order_and_nothing_would_be_refused(requests: list[Request]) -> None:
    """Of each request: every layer is met in one of them."""
    for request in requests:
        places = [LAYERS.index(layer) for layer, _ in request.pieces]
        assert places == sorted(places)
        assert refusals(request.messages) == []
        assert list(request.layers) == list(LAYERS)
        names = [tool["function"]["name"] for tool in request.tools]
        assert names == [*FileTools(Path(), int).tools, "recall"]
    assert {layer for request in requests for layer, _ in request.pieces} == {*LAYERS} - {"tools"}


@pytest.mark.slow
def test_old_results_give_way_to_lines_once_the_cache_is_cold(
    requests: list[Request], raw: list[StoredMessage], opened: Store
) -> None:
    """Until the user was away for an hour all is sent as the tools said it; errors stay whole."""
    stored = {each.seq: each.message["content"] for each in raw}
    made, _ = opened.compactions(SESSION)
    assert (made.kind, made.head) == ("clear", 26)
    cleared = {seq for seq, _ in made.cleared}
    failed = {seq for seq, text in stored.items() if '"status": "error"' in str(text)}
    assert (len(cleared), cleared & failed) == (6, set())
    for request in requests:
        for message, (_, seq) in zip(request.messages, request.pieces, strict=True):
            if message["role"] != "tool" or seq is None:
                continue
            if seq in cleared and request.view >= made.head:
                assert message["content"].startswith("[Old result, cleared] ")
            else:
                assert message["content"] == stored[seq]


def test_mentioned_files_are_reminded_of_and_the_input_is_stored_as_typed(
    requests: list[Request], raw: list[StoredMessage]
) -> None:
    """The reminder stays in the request when the turn is history, so that the prefix does too."""
    typed = [each.message["content"] for each in raw if each.message["role"] == "user"]
    assert typed == [turn.wants for turn in TURNS]
    assert sum("@" in text for text in typed) == 3
    for request in requests:
        (wanted,) = request.of("user_input")
        assert wanted["content"] == remind(raw[request.open_turn - 1].message["content"])
    first = {"role": "user", "content": remind(typed[0])}
    assert first != {"role": "user", "content": typed[0]}
    assert requests[3].of("history")[0] == first


def test_the_rules_are_read_anew_when_the_agent_edits_them(requests: list[Request]) -> None:
    """They are in every request, as they are then; the change is where the prefix ends."""
    rules = [request.of("code_law")[0]["content"] for request in requests]
    changed = next(place for place, (was, now) in enumerate(pairwise(rules), 1) if was != now)
    assert "every price" not in rules[0].lower()
    assert {*rules[changed:]} == {f"{rules[0]}- Check every price.\n"}
    assert requests[changed].first_changed == [
        layer for layer, _ in requests[changed].pieces
    ].index("code_law")
    assert (
        requests[changed].stable_prefix_tokens
        == requests[0].layers["system"] + requests[0].layers["tools"]
    )


def test_the_model_is_told_that_somebody_else_changed_a_file(raw: list[StoredMessage]) -> None:
    """Once: not of the first read, not of its own edit."""
    results = [json.loads(said) for said in told(raw)]
    reads = [each["data"] for each in results if each["data"].get("mtime")]
    assert [read["path"] for read in reads] == ["shop/prices.py"] * 2
    assert [read.get("note") for read in reads] == [
        None,
        "Note: shop/prices.py was modified externally.",
    ]


def told(raw: list[StoredMessage]) -> list[str]:
    """Return what the tools on files said."""
    results = [each.message for each in raw if each.message["role"] == "tool"]
    return [each["content"] for each in results if each["content"].startswith("{")]


def test_what_is_hidden_is_called_back(requests: list[Request], raw: list[StoredMessage]) -> None:
    """By a name that it has; then it is a result as any other, and in sight."""
    (recalled,) = (
        each.message["content"] for each in raw if each.message["content"].startswith("[")
    )
    first = next(each for each in raw if "18.00 expected" in str(each.message["content"]))
    assert f"[{first.seq}] tool: {first.message['content']}" in recalled
    assert recalled not in [message["content"] for message in requests[-2].messages]
    assert recalled in [message["content"] for message in requests[-1].messages]


def test_errors_are_results_too(raw: list[StoredMessage]) -> None:
    """A file that is not there, a command that fails."""
    results = [json.loads(said) for said in told(raw)]
    failed = [each["error"]["code"] for each in results if each["status"] == "error"]
    assert failed == ["COMMAND_FAILED", "NOT_FOUND"]


def test_the_recap_of_the_list_closes_each_request(requests: list[Request]) -> None:
    """From the first list on, as it is by then."""
    recaps = [request.of("todo_recap") for request in requests]
    begun = next(place for place, recap in enumerate(recaps) if recap)
    assert begun == 4
    assert all(
        request.messages[-1:] == recap
        for request, recap in zip(requests[begun:], recaps[begun:], strict=True)
    )
    texts = [message["content"] for (message,) in recaps[begun:]]
    assert texts[0].startswith(
        "Todo recap: [0/3] in progress: mend the discount; pending: run the check"
    )
    assert texts[-1] == "Todo recap: [3/3] all done"


def test_over_a_turn_a_request_only_grows(requests: list[Request]) -> None:
    """Each begins with the one before; only an edit of the rules and a summary change that."""
    pairs = [(was, now) for was, now in pairwise(requests) if was.open_turn == now.open_turn]
    same = [(was, now) for was, now in pairs if was.of("code_law") == now.of("code_law")]
    grown = [(was, now) for was, now in same if was.of("history") == now.of("history")]
    assert (len(pairs), len(same), len(grown)) == (13, 12, 11)
    for was, now in grown:
        assert now.prefix[: len(was.prefix)] == was.prefix
        kept = sum(was.layers.values()) - was.layers["todo_recap"]
        assert now.stable_prefix_tokens in (kept, sum(was.layers.values()))


# --- what is stored -------------------------------------------------------------------------------


def test_the_compaction_hides_and_loses_nothing(
    requests: list[Request], raw: list[StoredMessage], opened: Store
) -> None:
    """One, by the policy's own trigger; what it hid is sent no more, and is stored as it was."""
    _, made = opened.compactions(SESSION)
    assert (made.outcome, made.reason, made.hidden) == ("applied", "llm_call", (1, 30))
    after = [request for request in requests if request.view >= made.head]
    assert len(after) == 4
    for request in after:
        (summary,) = request.of("history")
        assert summary["role"] == "system"
        assert summary["content"].startswith("# Summary of conversation from 00:00 to 01:09")
        assert "Errors met:\n- COMMAND_FAILED: exit code 1 (Bash)" in summary["content"]
        assert "Names met:" in summary["content"]
        assert min(seq for _, seq in request.pieces if seq) == 31
    assert [each.seq for each in raw] == list(range(1, 39))
    assert opened.verify() == []


def test_everything_is_stored_as_it_was_said(raw: list[StoredMessage]) -> None:
    """In the order of the script, without a gap or a double where the process was killed."""
    said: list[tuple[str, str | None]] = []
    for turn in TURNS:
        said.append(("user", turn.wants))
        for step in turn.steps:
            said += [("assistant", step.says), *[("tool", name) for name, _ in step.calls]]
    names = {
        call["id"]: call["function"]["name"]
        for each in raw
        for call in each.message.get("tool_calls", ())
    }
    found = [
        (
            message["role"],
            names[message["tool_call_id"]] if message["role"] == "tool" else message["content"],
        )
        for message in (each.message for each in raw)
    ]
    assert found == said


def test_the_turn_that_was_cut_off_is_resumed_with_the_same_request(
    requests: list[Request],
) -> None:
    """Two processes sent it: one was killed before the reply, the other went on from the store."""
    twice = [(was, now) for was, now in pairwise(requests) if was.view == now.view]
    ((killed, resumed),) = twice
    assert resumed.messages == killed.messages
    assert (resumed.layers, resumed.pieces, resumed.tools) == (
        killed.layers,
        killed.pieces,
        killed.tools,
    )
    assert killed.open_turn == resumed.open_turn == 31
    assert killed.layers["steps"] > 0
    assert requests[-1].view > killed.view


def test_any_request_can_be_made_again(
    requests: list[Request], opened: Store, folder: Path
) -> None:
    """From the position and the moment alone; only the rules of the project are those of now."""
    for request in requests:
        again = opened.context(
            SESSION, SYSTEM, request.tools, policy=POLICY, at=request.view, now=request.now
        )
        others = [layer for layer in LAYERS if layer != "code_law"]
        assert [each.message for each in again.pieces if each.layer in others] == request.of(
            *others
        )
    assert opened.session(SESSION).project_root == str(folder / "run" / "project")


# --- how it is written ----------------------------------------------------------------------------


def test_only_public_names_are_used() -> None:
    """The standard library, the files beside it, and what the store offers to everybody."""
    beside = {path.stem for path in EXAMPLES.glob("*.py")}
    assert beside == {"agent", "file_tools", "scripted_model", "two_providers"}
    for path in EXAMPLES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert all(alias.name in sys.stdlib_module_names for alias in node.names), path
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                library = str(node.module).split(".")[0] in {*sys.stdlib_module_names, *beside}
                assert library or node.module in {"store", "store.context", "store.recall"}, (
                    node.module
                )
                names = [alias.name for alias in node.names]
                assert (
                    not any(name.startswith("_") for name in names) or node.module == "__future__"
                )
                assert node.module != "store" or {*names} <= {*store.__all__}
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                own = isinstance(node.value, ast.Name) and node.value.id == "self"
                assert own or node.attr in ("__init__", "_asdict"), (
                    f"{path.name}:{node.lineno} {node.attr}"
                )
