"""The commands about compactions, policies and simulation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, Run

from store import Policy, Store
from store.cli.demo_session import DEMO_NOW, build_conversation
from store.policy import POLICIES, load
from store.simulation import PROVIDERS


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store that holds the demo's session as ``talk``, once for all tests."""
    path = tmp_path_factory.mktemp("stored") / "convostore.db"
    with Store(path, durability="normal") as store:
        store.create_session("talk", title="Parcels", project_root="/home/ada/parcel")
        store.append("talk", build_conversation())
    return path


@pytest.fixture
def run(run: Run, tmp_path: Path, stored: Path) -> Run:
    """Give a function that runs the command in a folder with that store."""
    shutil.copy(stored, tmp_path)
    return run


def failed(ran: Ran, *said: str) -> None:
    """Assert that a command failed as it should.

    Status 2, one line on standard error, nothing else.
    """
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    assert all(each in ran.err for each in said), ran.err


def answer(ran: Ran) -> Any:
    """Return the JSON that a command printed, which ended well."""
    assert ran.status == 0, ran
    return json.loads(ran.out)


AT = ("--now", DEMO_NOW)


def test_a_range_is_hidden_by_name_and_brought_back(run: Run, tmp_path: Path) -> None:
    """What it came to is said; what cannot go is refused in one line, with nothing written."""
    ran = run("hide", "talk", "4", "4", "--summary", "They looked.", *AT)
    assert ran.status == 0
    with Store(tmp_path / "convostore.db") as store:
        (done,) = store.compactions("talk")
        shown = [entry.message["content"] for entry in store.view("talk").entries]
    first, last = done.hidden or (0, 0)
    assert f"talk: compaction 1 hides positions {first} to {last} (" in ran.out
    assert "`convostore undo talk --compaction 1` takes it back" in ran.out
    assert "They looked." in shown
    assert "hide" in run("compactions", "talk").out
    assert answer(run("undo", "talk", "--compaction", "1", "--json"))["outcome"] == "undone"
    hidden = answer(run("hide", "talk", "4", "4", "--json", *AT))
    assert (hidden["hidden"], hidden["summary"]) == ([first, last], None)
    dry = ("compact", "talk", "--set", "keep_turns=1", "--dry-run", "--json", *AT)
    assert answer(run(*dry))["plan"]["covered"] == [[first, last]]
    failed(run("hide", "talk", "1", "4"), "position 1 is a system message")
    failed(run("hide", "talk", "4", "999"), "999 is not one of them")
    failed(run("hide", "talk", "4", "4", "--summary", " "), "a summary must be a text")
    assert run("hide", "talk", "4", "x").status == 2
    assert len(answer(run("compactions", "talk", "--json"))) == 2


def test_a_dry_run_tells_the_range_and_changes_nothing(run: Run) -> None:
    """Range, kept and pinned messages and saving are said, and are what then happens."""
    ran = run("compact", "talk", "--policy", "message_count", "--dry-run", *AT)
    for said in (
        "would hide positions 1 to 22: 21 messages",
        "would keep positions 23 to 56",
        "system messages: 1",
    ):
        assert said in ran.out
    told = answer(run("compact", "talk", "--policy", "message_count", "--dry-run", "--json", *AT))
    assert told["plan"]["kept"] == [23, 56]
    assert 0 < told["plan"]["savings"] < told["plan"]["tokens_before"]
    assert answer(run("compactions", "talk", "--json")) == []
    done = answer(run("compact", "talk", "--policy", "message_count", "--json", *AT))
    assert done["hidden"] == [told["plan"]["first"], told["plan"]["last"]]
    assert done["tokens_before"] == told["plan"]["tokens_before"]


def test_a_dry_run_knows_the_window(run: Run) -> None:
    """Of which fewer turns may be a share: what it tells is what then happens."""
    fields = (
        "--policy",
        "turns",
        "--set",
        "least_turns=1",
        "--if-needed",
        "--max-tokens",
        "1500",
        "--json",
        *AT,
    )
    told = answer(run("compact", "talk", "--dry-run", *fields))
    done = answer(run("compact", "talk", *fields))
    assert done["hidden"] == [told["plan"]["first"], told["plan"]["last"]]


def test_a_dry_run_names_what_stays_of_the_current_turn(run: Run, tmp_path: Path) -> None:
    """Not only system messages do."""
    with Store(tmp_path / "convostore.db") as store:
        store.create_session("long")
        store.append(
            "long", [{"role": "system", "content": "task"}, {"role": "user", "content": "go"}]
        )
        store.append("long", [{"role": "assistant", "content": "step " * 50}] * 60)
    rules = ["--set", "within_turn=true", "--set", "trigger_messages=10", "--set", "keep_groups=2"]
    ran = run("compact", "long", "--dry-run", *rules)
    assert "would keep too, as system messages: 1\n" in ran.out
    assert "would keep too, of the current turn: 2\n" in ran.out


def test_a_dry_run_says_why_nothing(run: Run) -> None:
    """Where nothing would be hidden the reason is given, and doing it is no error."""
    ran = run("compact", "talk", "--set", "keep_turns=100", "--dry-run")
    assert (ran.status, "nothing would be hidden: there is nothing before" in ran.out) == (0, True)
    assert (
        answer(run("compact", "talk", "--set", "keep_turns=100", "--json"))["outcome"] == "nothing"
    )


def test_compact_prints_its_record(run: Run) -> None:
    """What was hidden and saved is printed, and is what the store says."""
    out = run("compact", "talk", "--policy", "message_count", *AT).out
    with Store("convostore.db") as store:
        (done,) = store.compactions("talk")
        view = store.view("talk", now=DEMO_NOW)
    assert out.startswith(
        "talk: compaction 1 applied (manual, policy message_count)\n  hidden: positions 1 to 22\n"
    )
    assert f"tokens in the view: {done.tokens_before:,} → {done.tokens_after:,} (" in out
    assert out.splitlines()[-1] == "  `convostore undo talk --compaction 1` takes it back"
    assert done.messages_after == len(view.messages)
    row = run("compactions", "talk").out.splitlines()[2]
    for cell in (
        "applied",
        "manual",
        "message_count",
        "1–22",
        "57 → 37",
        "Summary of conversation",
    ):
        assert cell in row
    assert answer(run("compactions", "talk", "--json")) == [json.loads(json.dumps(done._asdict()))]


def test_compact_says_where_the_view_is_still_over(run: Run) -> None:
    """A4.6: with the answer, whether anything was hidden or not."""
    for field, outcome in (("keep_messages=10", "applied"), ("keep_turns=100", "nothing")):
        ran = run("compact", "talk", "--set", field, "--set", "trigger_tokens=10", *AT)
        assert f"{outcome} (manual" in ran.out
        assert "the view that is left is still at the policy's trigger" in ran.out
    assert (
        answer(run("compact", "talk", "--set", "trigger_tokens=10", "--json", *AT))["still_over"]
        is True
    )
    assert answer(run("compact", "talk", "--json", *AT))["still_over"] is False


def test_compact_only_if_needed(run: Run) -> None:
    """With --if-needed a trigger decides, by the window, the last usage and the input that are
    given.
    """
    by_usage = ["compact", "talk", "--policy", "turns", "--set", "keep_turns=2", "--if-needed", *AT]
    assert run(*by_usage).out == "talk: nothing is done: below every trigger of the policy\n"
    assert answer(run(*by_usage, "--json")) is None
    assert "stays: below every trigger" in run(*by_usage, "--dry-run").out
    needed = [*by_usage, "--max-tokens", 10_000, "--last-usage", 7990, "--user-input", "x" * 30]
    ran = run(*needed, "--dry-run")
    assert "should be compacted: " in ran.out
    assert "8000 of 10000 tokens" in ran.out
    assert "would hide positions 1 to" in ran.out
    done = answer(run(*needed, "--json"))
    assert (done["outcome"], done["reason"]) == ("applied", "llm_call")


def test_a_dry_run_tells_what_would_be_cleared_first(run: Run) -> None:
    """With how many tokens that frees; without --if-needed nothing is cleared."""
    rules = ["--policy", "agent", "--set", "clear_keep=2", "--set", "cache_lifetime=1"]
    agent = ["compact", "talk", *rules, "--if-needed", *AT]
    told = answer(run(*agent, "--dry-run", "--json"))["clearing"]
    first, *_ = (seq for seq, _ in told["cleared"])
    freed = told["tokens_before"] - told["tokens_after"]
    assert freed > 0
    ran = run(*agent, "--dry-run")
    assert f"would clear {len(told['cleared'])} tool results first ({first}, " in ran.out
    assert f"which frees {freed:,} of {told['tokens_before']:,} tokens" in ran.out
    assert "would clear" not in run("compact", "talk", *rules, "--dry-run", *AT).out
    done = answer(run(*agent, "--json"))
    assert (done["cleared"], done["tokens_after"]) == (told["cleared"], told["tokens_after"])
    assert answer(run(*agent, "--dry-run", "--json"))["clearing"] is None


def test_what_is_hidden_is_called_back(run: Run) -> None:
    """By its words, within a budget; what is in sight is not."""
    asked = ["recall", "talk", "parcel", "--policy", "raw", *AT]
    assert run(*asked).out == ""
    run("compact", "talk", "--policy", "message_count", "--set", "keep_messages=4", *AT)
    (first, *_) = json.loads(run(*asked, "--json").out)
    assert first["why"] == "hidden"
    assert f"{first['first']} to {first['last']}, hidden, " in run(*asked).out
    assert run(*asked, "--budget", 0).status == 2
    assert run("recall", "nobody", "x").status == 2


def test_a_trigger_that_can_hide_nothing_is_told(run: Run) -> None:
    """The command knows why, so it says so."""
    asked = ["compact", "talk", "--policy", "message_count", "--if-needed", *AT]
    ran = run(*asked, "--set", "trigger_messages=2", "--set", "keep_messages=1000")
    assert "messages; nothing to compact: " in ran.out
    assert ran.status == 0


def test_checks_and_usage(run: Run) -> None:
    """What was recorded as usage is what a check goes by; a check says what could be saved."""
    check = [
        "check",
        "talk",
        "--policy",
        "turns",
        "--set",
        "keep_turns=2",
        "--max-tokens",
        100_000,
        *AT,
    ]
    assert answer(run(*check, "--json"))["should_compact"] is False
    said = run("usage", "talk", "--input", 90_000, "--output", 100, "--cached", 80_000, *AT).out
    assert said == "talk: 90,000 in, 100 out, 80,000 cached at position 56\n"
    told = answer(run(*check, "--json"))
    assert told["should_compact"] is True
    assert told["estimated_savings"] > 0
    assert "90100 of 100000 tokens" in run(*check).out
    assert answer(run("usage", "talk", "--input", 1, "--output", 2, "--json"))["cached"] == 0


def test_hidden_messages_are_marked_and_explained(run: Run) -> None:
    """`show` marks what is hidden with compaction and time.

    `view --explain` says what hides what, since when.
    """
    assert "hidden" not in run("show", "talk", "--to", 3).out
    run("compact", "talk", "--policy", "message_count", *AT)
    shown = run("show", "talk", "--from", 1, "--to", 23, "--lines", 1).out.split("\n\n")
    mark = "hidden by compaction 1 since 2025-03-14 10:02:00Z"
    assert [mark in message for message in shown[:23]] == [False, *[True] * 21, False]
    told = answer(run("show", "talk", "--from", 1, "--to", 2, "--json"))
    assert "time" not in told[0]
    assert (told[1]["compaction"], told[1]["time"]) == (1, {"compacted": DEMO_NOW})
    out = run("view", "talk", "--explain", *AT).out
    assert "stands for positions 1 to 22, compaction 1" in out
    assert "compaction 1 hides 2 to 22, 21 messages, since 2025-03-14 10:02:00Z" in out
    ranges = answer(run("view", "talk", "--explain", "--json", *AT))["hidden"]
    assert ranges == [{"compaction": 1, "since": DEMO_NOW, "first": 2, "last": 22}]


def test_undo_takes_back_a_compaction(run: Run) -> None:
    """With --compaction it is the compaction that is undone, else the rewind.

    What is not in force is an error.
    """
    before = answer(run("view", "talk", "--json", *AT))
    run("compact", "talk", *AT)
    failed(run("undo", "talk"), "no rewind or switch to undo")
    failed(run("undo", "talk", "--compaction", 7), "7 is not in force")
    assert (
        run("undo", "talk", "--compaction", 1).out
        == "talk: compaction 1 undone, positions 1 to 54 are back\n"
    )
    assert answer(run("view", "talk", "--json", *AT)) == before
    assert [each["outcome"] for each in answer(run("compactions", "talk", "--json"))] == ["undone"]
    failed(run("undo", "talk", "--compaction", 1), "not in force")


def test_a_clearing_is_a_record_too(run: Run) -> None:
    """Under batched clearing --if-needed records what it clears.

    Undoing it brings the results back.
    """
    batched = ["--set", "clearing=batched", "--set", "clear_min_freed=100"]
    done = answer(run("compact", "talk", "--if-needed", *batched, "--json", *AT))
    assert (done["kind"], done["outcome"], done["hidden"]) == ("clear", "applied", None)
    assert f"{len(done['cleared'])} results cleared" in run("compactions", "talk").out
    assert (
        f"what {len(done['cleared'])} tool results said is back"
        in run("undo", "talk", "--compaction", 1).out
    )


@pytest.mark.slow
def test_a_failed_summary_is_status_1_and_a_record(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that cannot be reached changes nothing, says so once, and stays in the records."""
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(
        "openai._base_client.INITIAL_RETRY_DELAY", 0.01, raising=False
    )  # to lose no time
    before = answer(run("view", "talk", "--json", *AT))
    model = [
        "--summarizer",
        "openai:any",
        "--base-url",
        "http://127.0.0.1:1",
        "--set",
        "summary_timeout=20.0",
    ]
    ran = run("compact", "talk", *model, *AT)
    assert ran.status == 1
    assert "compaction 1 failed" in ran.out
    assert "because: SummaryGenerationError" in ran.out
    assert answer(run("view", "talk", "--json", *AT)) == before
    assert "failed" in run("compactions", "talk").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compact", "talk", "--summarizer", "magic"], "no summarizer is named 'magic'"),
        (["compact", "talk", "--summarizer", "openai:"], "no summarizer is named"),
        (["compact", "talk", "--base-url", "http://x"], "a base URL is for a model"),
        (["compact", "talk", "--reason", "boredom"], "llm_call, tool_execution, manual"),
        (["compact", "talk", "--max-tokens", "5"], "--if-needed"),
        (
            ["compact", "talk", "--policy", "nosuch"],
            "default, message_count, token_ratio, turns, raw",
        ),
        (["compact", "talk", "--policy", "nosuch.toml"], "nosuch.toml"),
        (["check", "talk", "--max-tokens", "-1"], "max-tokens"),
        (["usage", "talk", "--input", "1"], "--output"),
        (["policy", "show", "nosuch"], "no policy is named 'nosuch'"),
        (["policy", "check", "nosuch.toml"], "nosuch.toml"),
        (["policy", "nosuch"], "No such command"),
        (["simulate", "talk", "--policy", "raw,nosuch=1"], "nosuch"),
        (["simulate", "talk", "--prices", "cached=inf"], "--prices cached is from 0"),
        (["simulate", "talk", "--prices", "output=nan"], "--prices output is from 0"),
        (["simulate", "talk", "--prices", "written=dear"], "not 'dear'"),
        (["simulate", "talk", "--prices", "lifetime=0.5"], "not '0.5'"),
        (
            ["simulate", "talk", "--prices", "input=1"],
            "cached, written, output, lifetime, least, not of 'input'",
        ),
        (["compactions", "nobody"], "no session 'nobody'"),
        (["simulate", "nobody"], "no session 'nobody'"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_said_in_one_line(run: Run, arguments: list[str], said: str) -> None:
    """Every error is one line on standard error that says what was wrong, with exit status 2."""
    failed(run(*arguments), said)


@pytest.mark.parametrize("command", ["compact", "compactions", "check", "usage", "simulate"])
def test_a_missing_store_is_an_error_and_is_not_made(run: Run, command: str) -> None:
    """A command that works on what is stored says that there is nothing, and makes no file."""
    tokens = ["--input", "1", "--output", "1"] if command == "usage" else []
    failed(run("--db", "other.db", command, "x", *tokens), "no store at 'other.db'")
    assert not Path("other.db").exists()


def test_policies_are_listed_and_shown(run: Run) -> None:
    """Each ready policy is listed with its trigger; what it shows are its fields.

    No store is needed.
    """
    Path("convostore.db").unlink()
    listed = run("policy", "list").out
    assert listed == run("policy").out
    assert all(name in listed for name in POLICIES)
    assert "40 messages" in listed
    assert [each["name"] for each in answer(run("policy", "list", "--json"))] == list(POLICIES)
    assert answer(run("policy", "show", "turns", "--json"))["keep_turns"] == 10
    assert (
        answer(run("policy", "show", "turns", "--set", "keep_turns=3", "--json"))["keep_turns"] == 3
    )
    row = next(
        line
        for line in run("policy", "show", "turns").out.splitlines()
        if line.startswith("keep_turns ")
    )
    assert row.split() == ["keep_turns", "10", "1"]


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_as_toml_loads_back_equal(run: Run, name: str) -> None:
    """What --toml prints is a file with the same policy, whatever its fields hold."""
    odd = {
        "tool_kinds": {'my "tool"': "terminal"},
        "parts_to_keep": ("tool", "text"),
        "summary_heading": "a\n\x7f\\ü",
    }
    changes = [f"--set={field}={json.dumps(value)}" for field, value in odd.items()]
    Path("mine.toml").write_text(run("policy", "show", name, *changes, "--toml").out, "utf-8")
    assert load("mine.toml") == Policy.named(name, **odd)
    told = answer(run("policy", "show", "mine.toml", "--json"))
    assert told == json.loads(json.dumps(Policy.named(name, **odd).model_dump()))


def test_a_policy_file_is_checked(run: Run) -> None:
    """A file that can be used is described, with what in it has no effect.

    Another one is refused with the reason.
    """
    Path("mine.toml").write_text('base = "token_ratio"\non_failure = "trim"\n')
    told = answer(run("policy", "check", "mine.toml", "--json"))
    assert (told["policy"], told["changes"]["on_failure"]) == ("mine", "trim")
    assert "changes" in run("policy", "check", "mine.toml").out
    assert any("need a window" in note for note in told["notes"])
    assert any("no hard_limit" in note for note in told["notes"])
    Path("idle.toml").write_text('base = "message_count"\n')
    assert answer(run("policy", "check", "idle.toml", "--json"))["notes"] == []
    Path("idle.toml").write_text("keep_turns = 2\n")
    assert "it has no trigger" in run("policy", "check", "idle.toml").out
    for text, said in (
        ('hard_limit = 50\non_failure = "skip"', "no limit is kept to"),
        ("trigger_messages = 40\nkeep_messages = 40", "fires before anything can be hidden"),
        ("keep_turns = 2\nleast_turns = 2", "least_turns is not below keep_turns"),
        ("clear_min_freed = 5", "for clearing = batched"),
    ):
        Path("idle.toml").write_text(text)
        assert said in run("policy", "check", "idle.toml").out
    for text, said in (
        ("keep_turns = 0", "keep_turns"),
        ("nosuch = 1", "nosuch"),
        ('base = "x"', "no policy is named 'x'"),
        ('prompt = "x"', "no prompt is named 'x'"),
        ("keep_turns = ", "mine.toml"),
        ("self = 1", "self"),
        ("keep_turns = " + "[" * 5000, "mine.toml"),
    ):
        Path("mine.toml").write_text(text)
        failed(run("policy", "check", "mine.toml"), said)


def test_a_policy_file_is_taken_wherever_a_policy_is(run: Run) -> None:
    """view, stats, export, check, compact and simulate take a file, and changes on top of it."""
    Path("mine.toml").write_text('base = "raw"\nkeep_turns = 2\n')
    for command in (
        ["view", "talk"],
        ["stats", "talk"],
        ["export", "talk", "--view"],
        ["check", "talk"],
    ):
        assert run(*command, "--policy", "mine.toml", "--set", "terminal=true").status == 0
    raw = answer(run("view", "talk", "--policy", "mine.toml", "--json"))
    assert raw == answer(run("view", "talk", "--policy", "raw", "--json"))
    assert [
        each["policy"]
        for each in answer(run("simulate", "talk", "--policy", "mine.toml", "--json"))
    ] == ["mine.toml"]
    assert answer(run("compact", "talk", "--policy", "mine.toml", "--json"))["policy"] == "mine"


@pytest.mark.slow
def test_simulate_compares_policies(run: Run) -> None:
    """Each policy has a row and a bar; the bill is to the first one's.

    Prices and lifetime count; tokens of each request are drawn.
    """
    policies = ["--policy", "raw", "--policy", "default,clearing=batched,clear_min_freed=2000"]
    ran = run("simulate", "talk", *policies, "--svg", "tokens.svg")
    rows = [line for line in ran.out.splitlines() if line.startswith(("raw ", "default,"))]
    totals, bars, providers, requests = (rows[place : place + 2] for place in range(0, 8, 2))
    assert totals[0].split()[-2:] == ["0", "0"]
    assert all("█" in row for row in bars)
    assert bars[0].endswith("1.00 ×")
    assert providers[0].count("1.00 ×") == len(PROVIDERS)
    assert all(row.endswith(tuple("▁▂▃▄▅▆▇█")) for row in requests)
    assert Path("tokens.svg").read_text().count("<path") == 1 + len(policies) // 2
    given = run("simulate", "talk", *policies, "--prices", "cached=0.2")
    assert "bill by provider" not in given.out
    raw, batched = answer(run("simulate", "talk", *policies, "--json"))
    assert raw["requests"] == batched["requests"] == 25
    assert batched["clearings"] > 0
    assert batched["bills"].keys() == PROVIDERS.keys()
    compared = [each["policy"] for each in answer(run("simulate", "talk", "--json"))]
    assert compared[:2] == ["raw", "default"]
    assert sorted(compared) == sorted(POLICIES)
    free = ["--prices", "cached=0, written=0, output=1, lifetime=0"]
    (told,) = answer(run("simulate", "talk", "--policy", "raw", *free, "--json"))
    assert (told["tokens_cached"], told["bill"]) == (0, told["tokens_output"])


def test_no_control_character_of_a_summary_or_policy_is_printed(run: Run) -> None:
    """Escape sequences in a policy's name, a title or an error are shown, never obeyed."""
    from store import Summary

    with Store("convostore.db") as store:
        policy = Policy(name="\x1b[2J", summary_heading="\x1b[31m")
        store.compact(
            "talk", policy, lambda _: Summary("a \x1b[0m body", title="\x9b title"), now=DEMO_NOW
        )
    for command in (
        ["compactions", "talk"],
        ["view", "talk", "--explain"],
        ["show", "talk", "--to", "3"],
    ):
        ran = run(*command)
        assert ran.status == 0
        assert not any(unsafe in ran.out for unsafe in ("\x1b", "\x9b"))
