"""The command that tells what requests cost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, Run

from store import Store
from store.cli.usage import UsageKey
from store.history.usages import TOTAL_KEYS

NOW = 1_800_000_000_000
DAY = 86_400_000
SONNET = "claude-sonnet-4-5-20250929"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with the usages of two owners, once for all tests."""
    path = tmp_path_factory.mktemp("stored") / "convostore.db"
    with Store(path, durability="normal") as store:
        for name, owner in (("talk", "ann"), ("chat", "bob")):
            store.create_session(name, owner=owner, now=NOW)
            store.append(name, {"role": "user", "content": "go"}, now=NOW)
        spent = {"input": 100_000, "output": 2_000, "cached": 90_000, "model": SONNET}
        store.record_usage("talk", **spent, now=NOW)
        store.record_usage("talk", **spent, now=NOW + DAY)
        store.record_usage("chat", input=500, output=20, model="local", now=NOW + DAY)
        store.record_usage("chat", input=9_000, output=90, model="gpt-4o", cost=2.5, now=NOW + DAY)
    return path


@pytest.fixture
def run(run: Run, tmp_path: Path, stored: Path) -> Run:
    """Give a function that runs the command in a folder with that store."""
    shutil.copy(stored, tmp_path)
    return run


def answer(ran: Ran) -> Any:
    """Return the JSON that a command printed, which ended well."""
    assert ran.status == 0, ran
    return json.loads(ran.out)


def test_costs_are_drawn(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model with a bar of its tokens and what it cost, in 80 columns; the dearest first."""
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("usage")
    head, *bars, day, unpriced = ran.out.splitlines()
    assert head == ("4 requests, 209,500 tokens in (86% cached), 4,110 out, $2.67, 1 unpriced")
    assert [each.split()[:2] for each in bars if "█" in each] == [
        ["gpt-4o", "9,090"],
        [SONNET, "204,000"],
        ["local", "520"],
    ]
    assert max(map(len, bars)) <= 80
    assert bars[-1].endswith("1 unpriced")
    assert day.startswith("at the prices of 20")
    assert unpriced == "no price is known for local: store some with `convostore prices FILE`"
    assert run("usage", "talk").out.startswith("talk: 2 requests, 200,000 tokens in (90% cached), ")


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ([], ["gpt-4o", SONNET, "local"]),
        (["--by", "session"], ["chat", "talk"]),
        (["--by", "owner"], ["bob", "ann"]),
        (["--by", "day"], ["2027-01-15", "2027-01-16"]),
        (["--by", "day", "--zone", "Pacific/Auckland"], ["2027-01-15", "2027-01-16"]),
        (["--by", "week"], ["2027-W02"]),
        (
            ["--by", "owner", "--by", "month"],
            [["bob", "2027-01"], ["ann", "2027-01"]],
        ),
        (["--by", "project", "--by", "source"], [[None, None]]),
        (["--by", "owner,month", "--by", "month"], [["bob", "2027-01"], ["ann", "2027-01"]]),
        (["talk"], [SONNET]),
        (["ta", "--by", "day", "--since", NOW + 1], ["2027-01-16"]),
        (["--owner", "bob", "--by", "day"], ["2027-01-16"]),
        (["--by", "day", "--until", "2027-01-16T00:00Z"], ["2027-01-15"]),
    ],
    ids=str,
)
def test_costs_as_json(run: Run, asked: list[Any], names: list[str]) -> None:
    """What is chosen, by what is asked; the totals are those of the library."""
    told = answer(run("usage", *asked, "--json"))
    assert [each["name"] for each in told] == names
    assert {*told[0]} == {
        *("name", "requests", "input", "output", "cached", "written", "cost", "unpriced")
    }


def test_costs_by_several_keys_are_a_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key has a column, and no number is cut at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    rows = run("usage", "--by", "owner", "--by", "month", "--by", "model").out.splitlines()
    assert rows[1].split() == ["owner", "month", "model", "tokens", "cost"]
    assert ["bob", "2027-01", "gpt-4o"] in [row.split()[:3] for row in rows]
    assert max(map(len, rows)) <= 80


def test_nothing_is_recorded_yet(run: Run) -> None:
    """It says so, and a program gets an empty list."""
    assert run("usage", "--until", "2001-01-01T00:00Z").out.startswith("no usage is recorded")
    assert answer(run("usage", "--until", "2001-01-01T00:00Z", "--json")) == []


def test_ones_own_prices(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an option, or by an environment's variable."""
    Path("own.toml").write_text("[models]\nlocal = { input = 2000, output = 0 }\n")
    (local,) = (e for e in answer(run("usage", "chat", "--prices", "own.toml", "--json"))[1:])
    assert (local["name"], local["cost"], local["unpriced"]) == ("local", 1.0, 0)
    monkeypatch.setenv("CONVOSTORE_PRICES", "own.toml")
    assert answer(run("usage", "chat", "--json"))[1]["cost"] == 1.0
    monkeypatch.setenv("CONVOSTORE_PRICES", "none.toml")
    ran = run("usage")
    assert (ran.status, ran.out) == (2, "")
    assert "no prices can be read from none.toml" in ran.err


def test_prices_are_stored_and_listed(run: Run) -> None:
    """A file's for all, or for one owner; usages follow at once."""
    Path("own.toml").write_text(
        "[models]\nlocal = [{ input = 2000, output = 0 },"
        " { input = 1000, output = 0, from = 2027-01-16 }]\n"
    )
    listed = answer(run("prices", "--json"))
    assert "local" not in [each["model"] for each in listed]
    assert run("prices", "own.toml").out == "2 prices stored\n"
    assert answer(run("usage", "chat", "--json"))[1]["cost"] == 0.5
    assert len(answer(run("prices", "--list", "--json"))) == len(listed) + 2
    Path("own.toml").write_text("[models]\nlocal = { input = 4000, output = 0 }\n")
    (kept,) = answer(run("prices", "own.toml", "--owner", "bob", "--json"))
    assert (kept["owner"], kept["valid_from"], kept["cached"]) == ("bob", 0, 4000)
    assert answer(run("usage", "chat", "--json"))[1]["cost"] == 2.0
    drawn = run("prices", "--list").out.splitlines()
    assert drawn[0].split() == ["model", "owner", "from", "input", "cached", "written", "output"]
    lines = [each.split() for each in drawn if each.startswith("local")]
    assert lines == [
        ["local", "2000", "2000", "2000", "0"],
        ["local", "2027-01-16", "1000", "1000", "1000", "0"],
        ["local", "bob", "4000", "4000", "4000", "0"],
    ]
    ran = run("prices", "missing.toml")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_request_is_recorded(run: Run) -> None:
    """With all that is said of it; what was spent before is not shown."""
    said = ["--input", 50, "--output", 5, "--cached", 20, "--written", 10, "--cost", 0.5]
    kept = answer(
        run("usage", "talk", *said, "--model", "m", "--provider", "p", "--now", NOW, "--json")
    )
    assert kept["cost"] == 0.5
    assert (kept["model"], kept["provider"], kept["written"]) == ("m", "p", 10)
    assert run("usage", "talk", "--input", 7, "--output", 1, "--now", NOW).out == (
        "talk: 7 in, 1 out, 0 cached at position 1\n"
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ["--by", "month,year"],
            "--by takes model, session, owner, project, source, day, week, month, not 'year'",
        ),
        (["--zone", "Mars"], "zone must be the name of a time zone"),
        (["--since", "someday"], "--since must be ms since the epoch"),
        (["--until", "someday"], "--until must be ms since the epoch"),
        (["--input", "1", "--output", "1"], "SESSION"),
        (["talk", "--input", "1"], "--output"),
        (
            ["talk", "--input", "1", "--output", "1", "--cached", "2"],
            "input must include the cached",
        ),
        (["nobody"], "no session 'nobody'"),
    ],
    ids=str,
)
def test_what_cannot_be_asked(run: Run, asked: list[str], said: str) -> None:
    """One line on standard error, status 2."""
    ran = run("usage", *asked)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err


def test_the_command_adds_up_by_what_the_store_does() -> None:
    """No key is left out."""
    assert [*UsageKey] == [*TOTAL_KEYS]
