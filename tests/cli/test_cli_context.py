"""The command that shows a whole request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run

from store import Policy, Store
from store.cli.demo_session import DEMO_NOW, build_conversation
from store.context.request import LAYERS, remind


@pytest.fixture
def run(run: Run, tmp_path: Path) -> Run:
    """Give a function that asks for a request of a session, in a project with rules."""
    with Store(tmp_path / "convostore.db", durability="normal") as store:
        store.create_session("talk", project_root=str(tmp_path))
        store.append("talk", build_conversation())
    (tmp_path / "CODE_LAW.md").write_text("Keep it \x1b[31msimple.")
    return lambda *arguments: run("context", *arguments, "--now", DEMO_NOW)


def test_the_messages_are_on_standard_output_and_the_layers_on_standard_error(
    run: Run, tmp_path: Path
) -> None:
    """So that a program can send what it reads, and a person sees what it costs."""
    (tmp_path / "prompt.txt").write_text("You fix bugs.")
    ran = run("talk", "--user", "fix @a.py", "--system", "prompt.txt", "--todo", "left")
    messages = json.loads(ran.out)
    assert ran.status == 0
    assert messages[0] == {"role": "system", "content": "You fix bugs."}
    assert messages[-2]["content"] == remind("fix @a.py")
    assert messages[-1]["content"] == "left"
    for layer in LAYERS:
        assert f"\n{layer} " in ran.err
    assert "together" in ran.err
    with Store(tmp_path / "convostore.db") as store:
        context = store.context("talk", "You fix bugs.", None, "fix @a.py", "left", now=DEMO_NOW)
        assert context.messages == messages
        assert f"{context.tokens:,}" in ran.err


def test_react_text(run: Run, tmp_path: Path) -> None:
    """One text, in which nothing acts on the terminal."""
    ran = run("talk", "--format", "react", "--user", "why?")
    assert ran.out.startswith("[system] ")
    assert ran.out.rstrip().splitlines()[-1].startswith(("[user] why?", "[system] Todo recap"))
    assert "\x1b" not in ran.out
    assert "\nhistory " in ran.err


def test_everything_as_json(run: Run, tmp_path: Path) -> None:
    """What a program may want to know of a request, and nothing on standard error."""
    (tmp_path / "tools.json").write_text('[{"type": "function"}]')
    (tmp_path / "tools.txt").write_text("Bash[command]")
    ran = run("talk", "--format", "json", "--tools", "tools.json", "--policy", "default", "--at", 3)
    said = json.loads(ran.out)
    assert ran.err == ""
    assert list(said["layers"]) == list(LAYERS)
    assert said["tools"] == [{"type": "function"}]
    assert said["tokens"] == sum(said["layers"].values())
    assert said["at"] == 3
    assert (
        json.loads(
            run("talk", "--json", "--tools", "tools.json", "--policy", "default", "--at", 3).out
        )
        == said
    )
    said = json.loads(run("talk", "--format", "json", "--tools", "tools.txt").out)
    assert said["tools"] is None
    assert {"role": "system", "content": "Bash[command]"} in said["messages"]
    (tmp_path / "deep.json").write_text("[" * 100_000)
    assert run("talk", "--tools", "deep.json").status == 0, (
        "what is no list of definitions is a text"
    )


def test_another_root_and_policy(run: Run, tmp_path: Path) -> None:
    """The options are those of the library."""
    (tmp_path / "other").mkdir()
    ran = run("talk", "--root", "other", "--policy", "raw")
    with Store(tmp_path / "convostore.db") as store:
        wanted = store.context(
            "talk", root=tmp_path / "other", policy=Policy.named("raw"), now=DEMO_NOW
        ).messages
    assert json.loads(ran.out) == wanted


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "arguments",
    [
        ["nobody"],
        ["talk", "--root", "nowhere"],
        ["talk", "--system", "nowhere.txt"],
        ["talk", "--system", "convostore.db"],
        ["talk", "--tools", "convostore.db"],
        ["talk", "--format", "morse"],
        ["talk", "--policy", "strange"],
        ["talk", "--at", "100000"],
        ["talk", "--set", "tool_output=5"],
        ["talk", "--set", "tool_kinds=" + "[" * 100_000],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_what_cannot_be_done_is_said_in_one_line(run: Run, arguments: list[str]) -> None:
    """Status 2, no traceback."""
    ran = run(*arguments)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
