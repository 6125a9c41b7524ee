"""The commands about notes beside messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run

from store import Store


@pytest.fixture
def run(run: Run, tmp_path: Path) -> Run:
    """Give a function that runs the command in a folder with a store."""
    with Store(tmp_path / "convostore.db", durability="normal") as store:
        for name, owner in (("talk", "ann"), ("chat", None)):
            store.create_session(name, owner=owner)
            store.append(name, [{"role": "user", "content": "go"}] * 2, dedupe="off")
    return run


def test_notes_are_made_listed_and_taken_away(run: Run) -> None:
    """Values are JSON where they read as JSON."""
    assert run("annotate", "ta", 1, "rating", 5).out == "talk 1: rating = 5\n"
    assert run("annotate", "talk", 2, "why", "too long").out == 'talk 2: why = "too long"\n'
    made = json.loads(run("annotate", "chat", 2, "scores", '{"a": [1]}', "--json").out)
    assert (made["value"], made["seq"], made["session_id"]) == ({"a": [1]}, 2, "chat")
    listed = json.loads(run("annotations", "--json").out)
    assert [(each["session_id"], each["key"]) for each in listed] == [
        ("talk", "rating"),
        ("talk", "why"),
        ("chat", "scores"),
    ]
    assert [line.split()[:4] for line in run("annotations", "talk").out.splitlines()[2:]] == [
        ["talk", "1", "rating", "5"],
        ["talk", "2", "why", '"too'],
    ]
    for chosen in (["--key", "rating"], ["--owner", "ann", "--key", "rating"]):
        assert len(json.loads(run("annotations", *chosen, "--json").out)) == 1
    assert run("annotate", "talk", 1, "rating", "null").out == "talk 1: no rating\n"
    assert json.loads(run("annotate", "talk", 1, "rating", "null", "--json").out) is None
    assert run("annotations", "--key", "rating").out.startswith("nothing is noted")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["annotate", "talk", "3", "k", "v"], "positions 0 to 2"),
        (["annotate", "talk", "1", "", "v"], "key must be a text"),
        (["annotate", "nobody", "1", "k", "v"], "no session 'nobody'"),
        (["annotate", "talk", "1", "k", "NaN"], "value cannot be stored"),
        (["annotations", "nobody"], "no session 'nobody'"),
    ],
    ids=str,
)
def test_what_cannot_be_done(run: Run, asked: list[str], said: str) -> None:
    """One line on standard error, status 2."""
    ran = run(*asked)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err
