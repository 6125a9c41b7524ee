from __future__ import annotations

import argparse
import json
import os
import shutil
from itertools import count
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import (
    bring,
    browsing,
    checking,
    erasing,
    formats,
    measures,
    on_server,
    recording,
    replay,
    requests,
    retention,
    searching,
    shares,
    watching,
    writers,
)
from benchmarks.__main__ import main
from benchmarks.facts import facts
from benchmarks.measures import MEASURES, Measure, Miss, Target
from benchmarks.recorded import Transcript
from benchmarks.replay import Variant, replayed
from benchmarks.timing import Pair, Times
from benchmarks.workload import ROOT, conversation
from store import Policy, Store
from store.context.layers import Piece, list_view_pieces
from store.view.message_rendering import PairedMessages, pair_messages


def renamed(piece: Piece) -> Piece:
    """Return a piece that is another each time."""
    return piece._replace(message={**piece.message, "name": f"{next(NUMBERS)}"})


def backwards(paired: PairedMessages) -> PairedMessages:
    """Return messages the newest first, so that results stand in front of their calls."""
    return paired._replace(placed=paired.placed[::-1])


def cut_off(paired: PairedMessages) -> PairedMessages:
    """Return messages without the newest two."""
    return paired._replace(placed=paired.placed[:-2])


def twice(paired: PairedMessages) -> PairedMessages:
    """Return messages, and all of them again."""
    return paired._replace(placed=paired.placed * 2)


@pytest.mark.slow
def test_every_measure_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program runs, both sides agree on every message, and no line of the table is missing."""
    for name, measure in MEASURES.items():
        lines = {line: each._replace(smallest=1) for line, each in measure.lines.items()}
        monkeypatch.setitem(MEASURES, name, measure._replace(smallest=1, lines=lines))
    main(
        ["--quick", "--sizes", "250", "--repeat", "1", "--writers", "2", "--folder", str(tmp_path)]
    )
    printed = capsys.readouterr().out.splitlines()
    for measure in MEASURES.values():
        for line in measure.lines:
            assert measure.on_request or any(each.startswith(f"{line} ") for each in printed), line


def test_the_price_of_reads_that_compare_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each operation has its line."""
    checking.main(["--messages", "60", "--rounds", "1"])
    printed = capsys.readouterr().out
    for name in ("first view", "view again", "load", "newest 20", "append"):
        assert f"\n{name}: " in printed


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)
def test_a_store_on_a_server_is_compared_with_psycopg(
    bare_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both read the same messages and views before anything is timed; each job has its line."""
    sizes = {"--clients": 2, "--messages": 40, "--rounds": 1, "--calls": 2}
    on_server.main(["--url", bare_url, *(f"{name}={size}" for name, size in sizes.items())])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [each[:12].strip() for each in lines] == [*on_server.LINES]
    with Store(bare_url) as store:
        assert store.session("h0").head == store.session("s0").head == 40 + 4
        assert len(store.search("parcels", limit=100)) == 2 * 2 * 4
        assert store.verify() == []


@pytest.mark.slow
def test_the_price_of_formats_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each operation has its line, with the chat's time and the ratio of each format."""
    formats.main(["--messages", "60", "--rounds", "1"])
    _, titles, *lines = capsys.readouterr().out.splitlines()
    assert titles.split(maxsplit=1)[0] == "chat"
    for line, name in zip(
        lines, ("append a batch", "one by one", "load", "newest 100", "first view"), strict=True
    ):
        assert line.startswith(f"{name} ")
        assert line.count("(") == len(formats.SIDES) - 1


KNOWN = Target("cpu", 1.5, miss=Miss(2.0, "it does more"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cost", "met", "known", "ended"),
    [(1.5, "yes", None, 0), (2.0, "known", "it does more", 0), (2.1, "NO", None, 1)],
)
def test_a_known_miss_is_told_from_a_new_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cost: float,
    met: str,
    known: str | None,
    ended: int,
) -> None:
    """It says so and why; beyond what is known the program fails, as where nothing is known."""
    pair = Pair(Times(cost, cost), Times(1.0, 1.0))
    measure = Measure(lambda _: iter([("line", pair)]), {"line": KNOWN})
    monkeypatch.setattr(measures, "MEASURES", {"one": measure})
    monkeypatch.setattr(command, "MEASURES", {"one": measure})
    assert main(["--sizes", "10", "--folder", str(tmp_path)]) == ended
    _, line, *rest = capsys.readouterr().out.splitlines()
    assert line.split()[-1] == met
    assert rest == (["", f"line: {known}"] if known else [])


@pytest.mark.slow
def test_the_shares_of_an_operation_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has statements; what writes has a COMMIT; the parts are of the whole."""
    options = ["--size", "120", "--rounds", "2", "--folder", str(tmp_path)]
    assert shares.main(options) == 0
    rows = [row.split(" µs") for row in capsys.readouterr().out.splitlines()[1:]]
    assert len(rows) == 6
    for name, *parts in rows:
        whole = float(name.split()[-1].replace(",", ""))
        statements, commit, python = (float(part.replace(",", "")) for part in parts[:3])
        assert statements > 0
        assert (commit > 0) == name.startswith(("append", "fork"))
        assert 0 < python < whole


@pytest.mark.slow
def test_waits_beside_a_deletion_are_measured(tmp_path: Path) -> None:
    """On a small store: writers append before and during it, and the session goes."""
    path = tmp_path / "chat.db"
    erasing.fill(path, 400)
    run = erasing.measured(path, 2, alone=0.3)
    assert run.appends > 2
    assert 0 < run.alone_median <= run.alone
    assert run.beside_median <= run.beside
    assert 0 < run.held_median <= run.held < run.deletion
    with Store(path) as store:
        assert "goes" not in {each.id for each in store.sessions()}
        assert [each.finished for each in store.erasures()] == [True]
        assert store.verify() == []
    assert "at worst" in erasing.told(run)


@pytest.mark.slow
def test_a_store_of_years_is_pruned_beside_writers(tmp_path: Path) -> None:
    """On a small one: nothing is lost by the prune, nor by one that is killed."""
    path = tmp_path / "chat.db"
    found = [Transcript(f"{seed}", None, list(conversation(30, seed=seed))) for seed in (1, 2)]
    assert retention.fill(path, found, 1_200) == 1_200
    options = argparse.Namespace(writers=2, alone=0.2, kills=1, limits="no")
    killed = Path(shutil.copy(path, tmp_path / "killed.db"))
    assert retention.prune_beside(path, options) == []
    assert retention.prune_killed(killed, options) == []
    with Store(path) as store, Store(killed) as other:
        assert retention.digest_forks(store) == retention.digest_forks(other) != {}
    assert retention.compare_costs({"2026-01": (1, 2, 3, 4.0)}, {}) == [
        "the totals of 2026-01 differ"
    ]


@pytest.mark.slow
def test_following_files_is_measured(tmp_path: Path) -> None:
    """With a few files: idling takes less than all of a processor, and growth is noticed."""
    watching.fill(tmp_path, 3)
    run = watching.measured(tmp_path, 3, seconds=1)
    assert 0 <= run.idle < 1
    assert run.noticed > 0
    with Store(tmp_path / "chat.db") as store:
        assert sorted(each.head for each in store.sessions()) == [1, 1, 2]


@pytest.mark.slow
def test_pages_are_timed(tmp_path: Path) -> None:
    """On a small store: each page is answered, alone and beside writers, who append meanwhile."""
    path = tmp_path / "chat.db"
    browsing.fill(path, 60, 4)
    with browsing.serving(path) as server, browsing.writing(path, 2):
        pages = [*browsing.measured(server, 60, 1)]
    assert len(pages) == 13
    assert all(0 < page.size < browsing.SIZE_TARGET and page.again > 0 for page in pages)
    with Store(path) as store:
        assert store.session(browsing.LONG).head > 60
        assert len(store.sessions()) == 6


@pytest.mark.slow
def test_recorded_requests_are_timed(tmp_path: Path) -> None:
    """Each round appends a message, and records one request."""
    cost = recording.measured(tmp_path / "chat.db", 40, "agent", 3)
    assert cost.recorded.wall > 0 < cost.append.wall
    assert 0 < cost.megabytes < 1
    assert cost.allowed > cost.append.wall
    with Store(tmp_path / "chat.db") as store:
        assert store.session("s").head == 44
        assert len(store.requests("s")) == 4
        assert store.verify() == []


@pytest.mark.slow
def test_searches_are_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a small store: each question has the hits that it should have."""
    options = ["--messages", "400", "--runs", "1", "--folder", str(tmp_path)]
    assert searching.main(options) in (0, 1)
    told = capsys.readouterr().out.splitlines()
    without = {line.partition("  ")[0] for line in told if line.endswith(" 0 hits")}
    of_all = [question for question in without if not question.endswith(", of an owner")]
    assert sorted(of_all) == [
        "in no message",
        "sessions, found nowhere",
        "sessions, never together",
    ]
    with Store(tmp_path / "chat.db") as store:
        searching.fill(store, 400, 50)
        store.index()
        assert len(store.search("hundredth", limit=1000)) == 4
        assert len(store.search("tenth", limit=1000)) == 40
        assert len(store.search('"twentieth tenth"', limit=1000)) == 20


RATIO = Variant("ratio", Policy.named("token_ratio", context_window=16_000), 16_000)
NUMBERS = count()
TOLD = Transcript("told", ROOT, list(conversation(120)))


@pytest.mark.slow
def test_a_session_told_again_is_looked_at_from_outside() -> None:
    """A made-up one: facts are found without the store, and all that have room are told."""
    outcome = replayed(TOLD, RATIO)
    assert outcome.violations == []
    assert outcome.compactions["applied"] > 2
    assert outcome.due[0] == outcome.due[1] > 20
    assert outcome.facts[1] >= outcome.facts[0] >= outcome.due[0]
    assert outcome.tokens_sent < outcome.tokens_raw


def test_of_a_refused_call_the_words_of_the_user_are_due() -> None:
    """Not those of the program, which are the same each time."""
    refused = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it"
        " was a file edit, the file was NOT written). To tell you how to proceed, the user said:\n"
        "rename it on main instead"
    )
    met = facts([{"role": "tool", "content": refused, "messageStatus": "error"}], None)
    assert [each[:2] for each in met] == [
        ("error", "refused by the user: rename it on main instead")
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "wrong", "problem"),
    [
        (
            "store.compaction.job.build_facts_ledger",
            lambda facts, budget, language: "Commands run:\n- true",
            "not told: file",
        ),
        (
            "store.view.message_rendering.pair_messages",
            lambda items, policy, **_: cut_off(pair_messages(items, policy)),
            "neither shown nor hidden",
        ),
        (
            "store.view.message_rendering.pair_messages",
            lambda items, policy, **_: twice(pair_messages(items, policy)),
            "shown twice",
        ),
        (
            "store.view.message_rendering.pair_messages",
            lambda items, policy, **_: backwards(pair_messages(items, policy)),
            "the API refuses",
        ),
        (
            "store.compaction.triggers.estimate_view_tokens",
            lambda *_, **__: 20_000,
            "a check says 20000 tokens",
        ),
    ],
)
def test_what_is_wrong_is_found(
    monkeypatch: pytest.MonkeyPatch, place: str, wrong: object, problem: str
) -> None:
    """Each look finds what it is for."""
    monkeypatch.setattr("store.view.build.write_plain_line", lambda *_: None)  # pair them all
    monkeypatch.setattr(place, wrong)
    assert [each for each in replayed(TOLD, RATIO).violations if problem in each]


@pytest.mark.slow
def test_the_program_prints_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each session and policy; what is no transcript is counted."""
    (tmp_path / "short.json").write_text(json.dumps(list(conversation(12, small=True))))
    (tmp_path / "notes.txt").write_text("no transcript")
    assert replay.main([str(tmp_path)]) == 0
    first, _, *lines = capsys.readouterr().out.splitlines()
    assert first == "1 sessions; 1 files are of no kind that is read"
    assert [line.split()[1] for line in lines] == [
        variant.name.split()[0] for variant in replay.variants()
    ]
    monkeypatch.setattr(replay, "variants", lambda: [RATIO])
    assert replay.main([str(tmp_path), "--json"]) == 0
    assert [each["policy"] for each in json.loads(capsys.readouterr().out)] == [RATIO.name]
    assert replay.main([str(tmp_path / "nowhere")]) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "wrong", "problem"),
    [
        (
            "store.view.message_rendering.pair_messages",
            lambda items, policy, **_: backwards(pair_messages(items, policy)),
            "the API refuses",
        ),
        ("store.context.request.remind", lambda text: text, ""),
        (
            "store.view.rule_parameters.find_turn_start",
            lambda *_: 10**9,
            "of the running turn is not whole",
        ),
        (
            "store.context.request.list_view_pieces",
            lambda *arguments: map(renamed, list_view_pieces(*arguments)),
            "does not begin as the one before",
        ),
    ],
)
def test_what_is_wrong_with_a_request_is_found(
    monkeypatch: pytest.MonkeyPatch, place: str, wrong: object, problem: str
) -> None:
    """Each look finds what it is for; what changes nothing for it is not found."""
    monkeypatch.setattr(place, wrong)
    found = requests.assembled(TOLD).violations
    assert [each for each in found if problem in each] if problem else not found


def test_requests_are_printed_by_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each session, each kind of program, and all."""
    (tmp_path / "short.json").write_text(json.dumps(list(conversation(12, small=True))))
    assert requests.main([str(tmp_path)]) == 0
    _, head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["transcript", "kind", "requests", "sent"]
    assert [line.split()[1] for line in lines] == ["openai", "openai", "all"]
    assert requests.main([str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["layers"]["steps"] > 0
    assert requests.main([str(tmp_path / "nowhere")]) == 1


@pytest.mark.slow
def test_an_import_is_measured(tmp_path: Path) -> None:
    """The file that is made up is a session of Claude Code, of which nothing is lost."""
    size = bring.fill(tmp_path, 50_000, files=2)
    run = bring.measured(tmp_path)
    assert size > 100_000
    assert 0 < run.processor < 60
    with Store(tmp_path / "chat.db") as store:
        assert {each.id for each in store.sessions()} == {"session-0", "session-1"}
        assert not store.verify()
    assert bring.told("new", size, run).startswith("new    0 MB in ")


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_appends_of_many_are_committed_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a slow disk eight threads are several times as quick as alone; nothing is lost."""
    options = ["--writers", "2,8", "--kinds", "threads", "--seconds", "1"]
    assert writers.main([*options, "--folder", str(tmp_path)]) == 0
    told, _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["2", "threads"], ["8", "threads"]]
    assert not any("LOST" in line for line in lines)
    if told == "a flush takes 5 ms":
        assert float(lines[1].split()[4]) > 2
