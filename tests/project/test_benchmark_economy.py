from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.economy import probes, summaries
from benchmarks.economy.__main__ import main
from benchmarks.economy.policies import ready, told_of, variant
from benchmarks.economy.pricing import ANTHROPIC, MINUTE, OPENAI, PROVIDERS, Request, bill
from benchmarks.economy.programs import Program, ProgramSession
from benchmarks.economy.recording import Recording, common_words, recorded
from benchmarks.economy.replay import COLD, EVERY, Asked, essentials, replayed
from benchmarks.economy.reuse import (
    NEWEST,
    RECALLED,
    SENT,
    TRUNCATED,
    Sight,
    look,
    newest,
    truncated,
)
from benchmarks.economy.strings import GROUPS, String, lines, repeated, strings
from benchmarks.recorded import START, Message, Transcript
from store import Policy, StoreError, SummaryRequest
from store.tokens import count_message_tokens, estimate

ROOT = "/home/ann/parser"
SECOND = 1_000
LATER = 10 * MINUTE
PLACEHOLDER = 12
"""Tokens of a message that is a placeholder: 8 of its text, 4 around it."""

FIVE_MINUTES = Asked(None, ANTHROPIC.lifetime)
CLEARED = Policy(clearing="batched", clear_min_freed=10**6, terminal_keep=0, terminal_max_age=0)
"""Clears all output of commands, where the cache is cold."""


def call(name: str, at: int, **arguments: str) -> Message:
    """Return a message of the model that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    asked = {"id": f"call{at}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [asked], "timestamp": START + at}


def result(of: int, text: str) -> Message:
    """Return the result of the call that was made at a moment."""
    return {
        "role": "tool",
        "tool_call_id": f"call{of}",
        "content": text,
        "timestamp": START + of + SECOND,
    }


def said(role: str, text: str, at: int) -> Message:
    """Return a message that is a text."""
    return {"role": role, "content": text, "timestamp": START + at}


MADE_UP = [
    said("user", "Mend decode_text in src/parse.py, gently" + "." * 7_960, 0),
    call("Bash", 10 * SECOND, command="cat src/parse.py | head"),
    result(
        10 * SECOND,
        "def decode_text(raw):\n    return raw.decode(strictly)\n" + "# padding\n" * 4_000,
    ),
    said("assistant", "The function is found.", 30 * SECOND),
    said("user", "Go on.", LATER),
    call(
        "Edit",
        LATER,
        file_path=f"{ROOT}/src/parse.py",
        old_string="    return raw.decode(strictly)",
        new_string="",
    ),
    result(LATER, "The file was updated."),
    said("assistant", "It is mended: 1309 tests pass.", LATER + 20 * SECOND),
]
"""The edit repeats a path, three words and a line; all but the path are from a command's output."""


def made_up(messages: list[Message] | None = None) -> Recording:
    """Return the session above, or another, as it can be measured."""
    return recorded(Transcript("made-up", ROOT, messages or MADE_UP), frozenset())


def tokens(message: Message) -> int:
    """Return the tokens of a message, by the estimate."""
    return count_message_tokens(message, estimate)


def test_a_bill_is_that_counted_by_hand() -> None:
    """The longest prefix that lives is cheap, all behind it is written; later everything is."""
    requests = [
        Request(0, (1, 2), (1_000, 500)),
        Request(1 * MINUTE, (1, 2, 3), (1_000, 500, 100), output=40),
        Request(2 * MINUTE, (1, 4, 3), (1_000, 300, 100)),
        Request(5 * MINUTE, (1, 2, 3, 5), (1_000, 500, 100, 50)),
        Request(10 * MINUTE, (1, 2, 3, 5), (1_000, 500, 100, 50)),
    ]
    by_hand = [
        1_500 * 1.25,
        1_500 * 0.1 + 100 * 1.25,
        1_400 * 1.25,  # the 1,000 that are the same are too few to be cached
        1_600 * 0.1 + 50 * 1.25,  # what stood there three minutes ago still lives
        1_650 * 1.25,  # five minutes are too long
    ]
    assert bill(requests, ANTHROPIC) == pytest.approx(sum(by_hand))
    assert bill(requests, PROVIDERS["with output"]) == pytest.approx(sum(by_hand) + 40 * 5)
    assert bill(requests[:2], OPENAI) == pytest.approx(1_500 + 150 + 100)
    assert bill(requests[:2], PROVIDERS["openai 0.5"]) == pytest.approx(1_500 + 750 + 100)
    assert bill(requests[3:], PROVIDERS["anthropic 1 h"]) == pytest.approx(
        1_650 * 2.0 + 1_650 * 0.1
    )


def test_what_is_static_stands_in_front_of_every_request() -> None:
    """It is written once while it lives, and makes a short request long enough for a cache."""
    requests = [Request(0, (1,), (500,)), Request(MINUTE, (1, 2), (500, 20))]
    assert bill(requests, ANTHROPIC) == 500 + 520
    with_static = bill(requests, ANTHROPIC._replace(static=15_000))
    assert with_static == pytest.approx(15_500 * 1.25 + 15_500 * 0.1 + 20 * 1.25)


def test_a_session_is_billed_as_counted_by_hand() -> None:
    """The third of four requests finds the cache cold, so that clearing costs nothing there."""
    ask, cat, output, found, go_on, edit, updated, _ = map(tokens, MADE_UP)
    raw = replayed(made_up(), Policy.named("raw"), FIVE_MINUTES)
    third = ask + cat + output + found + go_on
    sizes = [ask, ask + cat + output, third, third + edit + updated]
    assert [request.sent for request in raw.requests] == sizes
    warm = [ask * 1.25, ask * 0.1 + (cat + output) * 1.25]
    cold = [third * 1.25, third * 0.1 + (edit + updated) * 1.25]
    assert bill(raw.requests, ANTHROPIC) == pytest.approx(sum(warm + cold))
    cleared = replayed(made_up(), CLEARED, FIVE_MINUTES)
    less = third - output + PLACEHOLDER
    cold = [less * 1.25, less * 0.1 + (edit + updated) * 1.25]
    assert bill(cleared.requests, ANTHROPIC) == pytest.approx(sum(warm + cold))
    assert cleared.done == {"clear": 1}


@pytest.mark.parametrize(
    ("program", "cleared"),
    [
        (Program("x", idle=5 * MINUTE), [set(), set(), {2}, {2}]),
        (Program("x", idle=60 * MINUTE), [set(), set(), set(), set()]),
        (Program("x", idle=5 * MINUTE, keep_results=1), [set(), set(), set(), set()]),
        (Program("x", above=10_000), [set(), {2}, {2}, {2}]),
        (Program("x", above=10_000, at_turn=True), [set(), set(), {2}, {2}]),
        (Program("x", at_turn=True, least=20_000), [set(), set(), set(), set()]),
        (Program("x", keep_tokens=15_000), [set(), set(), set(), set()]),
        (Program("x", keep_tokens=50), [set(), {2}, {2}, {2}]),
        (Program("x", keep_tokens=5_000, keep_turns=1), [set(), set(), {2}, {2}]),
        (Program("x"), [set(), {2}, {2}, {2, 6}]),
    ],
)
def test_the_rules_of_a_program_clear_what_they_say(
    program: Program, cleared: list[set[int]]
) -> None:
    """Each request has the placeholder in place of what is cleared before it, and else all."""
    recording = made_up()
    session, found = ProgramSession(program, recording), []
    for index, group in recording.steps():
        now = recording.moments[index + len(group) - 1]
        if group[0]["role"] == "assistant":
            sent = session.send(now)
            contents = [message["content"] for message in sent.messages]
            found.append({place for place, text in enumerate(contents) if text == "x"})
            changed = [place for place in range(index) if sent.messages[place] != MADE_UP[place]]
            assert found[-1] == {*changed}
        session.append(group, now)
    assert found == cleared


def test_a_program_is_billed_as_a_policy_is() -> None:
    """Where it clears the same at the same moment, the bill is the same but for the placeholder."""
    ours = replayed(made_up(), CLEARED, FIVE_MINUTES)
    theirs = replayed(made_up(), Program("x", idle=5 * MINUTE, keep_results=0), FIVE_MINUTES)
    less = tokens(MADE_UP[2]) - PLACEHOLDER
    assert [each.sent for each in theirs.requests][:2] == [each.sent for each in ours.requests][:2]
    raw = replayed(made_up(), Policy.named("raw"), FIVE_MINUTES)
    freed = raw.requests[2].sent - theirs.requests[2].sent
    assert less <= freed <= less + PLACEHOLDER
    assert theirs.done == ours.done == {"clear": 1}


def test_a_policy_may_be_told_a_wrong_lifetime() -> None:
    """It then knows no provider's name; the rules of a program are told nothing."""
    paged = Policy.named("paged")
    assert told_of(paged, 5 * MINUTE).cache_lifetime == "anthropic"
    assert told_of(paged, 5 * MINUTE, 2).cache_lifetime == 10 * MINUTE
    program = Program("x")
    assert told_of(program, 5 * MINUTE, 2) is program


def test_reuse_is_that_counted_by_hand() -> None:
    """What the model says again was known before and told by nobody since; some was cleared."""
    recording = made_up()
    path, line = String("path", "src/parse.py"), String("line", "return raw.decode(strictly)")
    words = [String("word", word) for word in ("decode", "return", "strictly")]
    assert recording.needed(1) == [path]
    assert set(recording.needed(3)) == {path, line, *words}
    assert recording.needed(7) == []
    found = replayed(recording, CLEARED, FIVE_MINUTES).reuse
    assert (found[EVERY].requests, found[COLD].requests) == (4, 1)
    assert found[COLD].needed == {"path": 1, "word": 3, "line": 1}
    shares = {group: found[COLD].share(SENT, kinds) for group, kinds in GROUPS.items()}
    assert shares == {"names": 1, "words": 0, "lines": 0}
    recalled = {group: found[COLD].share(RECALLED, kinds) for group, kinds in GROUPS.items()}
    assert recalled == {"names": 1, "words": 1, "lines": 1}
    assert (
        found[EVERY].share(SENT, ["word"]) == 0.5
    )  # three at the second request, none at the third
    raw = replayed(recording, Policy.named("raw"), FIVE_MINUTES).reuse
    assert all(raw[EVERY].share(each, ["word"]) == 1 for each in (SENT, NEWEST, TRUNCATED))


def test_a_plain_word_alone_is_no_miss() -> None:
    """It is counted apart; a line that an edit repeats is called back, if it was cleared."""
    by_word = [*MADE_UP[:5], call("Bash", LATER, command="strictly"), *MADE_UP[6:]]
    found = []
    for messages, policy in ((None, CLEARED), (by_word, CLEARED), (None, Policy.named("raw"))):
        told = replayed(made_up(messages), policy, FIVE_MINUTES._replace(misses=True))
        found.append(([request.missed for request in told.requests], told.word_misses))
    none = [False] * 4
    assert found == [([False, False, True, False], 0), (none, 1), (none, 0)]


def test_rivals_have_as_many_tokens() -> None:
    """The newest messages are whole, behind those of the system; a cut text has both ends."""
    texts = ["Be brief.", "alpha_one " * 40, "beta_two " * 40, "gamma_three " * 40]
    roles = ("system", "user", "assistant", "user")
    recording = made_up([said(role, text, 0) for role, text in zip(roles, texts, strict=True)])
    system, *_, last = recording.tokens
    assert newest(recording, 4, system + last).whole == {0, 3}
    assert newest(recording, 4, system + last - 1).whole == {0}
    assert truncated(recording, 4, sum(recording.tokens)) == Sight(range(4))
    cut = truncated(recording, 4, 2 * last)
    assert cut.whole == {0, 1, 3}
    assert [text.strip() for text in cut.texts] == ["beta_two " * 5 + "beta", ""]
    gamma, beta = String("identifier", "gamma_three"), String("identifier", "beta_two")
    seen = look([gamma, beta], recording, 4, Sight({0}), system + last).seen
    assert seen == {(NEWEST, "identifier"): 1, (TRUNCATED, "identifier"): 1}
    asked: list[list[String]] = []

    def recall(strings: list[String]) -> set[String]:
        asked.append(strings)
        return {beta}

    brought = look([gamma, beta], recording, 4, Sight({3}), system + last, recall).seen
    assert asked == [[beta]]
    assert (brought[SENT, "identifier"], brought[RECALLED, "identifier"]) == (1, 2)


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("see ./src/a.py:12.", "path", ["src/a.py"]),
        ("README.md, and/or *.md", "path", ["README.md"]),
        ("(https://a.example/b?c)", "url", ["https://a.example/b?c"]),
        ("TS2345 ENOENT ValueError OK", "error", ["ENOENT", "TS2345", "ValueError"]),
        ("port 8080, 120p, commit d0f01287", "number", ["8080", "d0f01287"]),
        ("keep_turns HeadMoved sha256 plain", "identifier", ["HeadMoved", "keep_turns", "sha256"]),
        ("Gently mend it", "word", ["gently"]),
        ("x" * 500, "word", []),
    ],
)
def test_strings_are_told_apart(text: str, kind: str, found: list[str]) -> None:
    """Each piece of a text is of one kind."""
    assert sorted(string.text for string in strings(text) if string.kind == kind) == found


def test_lines_are_compared_without_what_a_reader_adds() -> None:
    """Indentation and line numbers are no part of a line; an edit repeats what it must find."""
    assert lines("    12→    return value\n13\t}\n") == {"return value"}
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n some_context = 1\n-old_value = 2\n+new = 3"
    )
    assert repeated(call("apply_patch", 0, input=patch)) == {
        String("line", "some_context = 1"),
        String("line", "old_value = 2"),
    }
    assert repeated(call("Bash", 0, command="make check\n")) == {String("command", "make check")}


def test_common_words_tell_nothing() -> None:
    """A word in more than a tenth of the sessions, and in more than one, is left out."""
    said_by = [Transcript(str(number), None, [said("user", "every", 0)]) for number in range(20)]
    said_by[0].messages.append(said("user", "seldom", 0))
    assert common_words(said_by) == {"every"}


def test_a_recording_without_times_takes_steps() -> None:
    """A message comes twenty seconds after the one before; results of a batch come at once."""
    roles = ("user", "assistant", "tool", "tool", "assistant")
    messages: list[Message] = [{"role": role, "content": ""} for role in roles]
    moments = [moment - START for moment in made_up(messages).moments]
    assert moments == [20_000, 40_000, 60_000, 60_000, 80_000]


def test_what_no_policy_leaves_out_is_counted() -> None:
    """The latest question and the newest calls with their results have to fit into a window."""
    recording = made_up()
    assert essentials(recording, 3) == sum(recording.tokens[:3])
    assert essentials(recording, 5) == sum(recording.tokens[3:5])
    small = replayed(recording, Policy.named("raw"), Asked(5_000, ANTHROPIC.lifetime, every=0))
    assert (small.over, small.avoidable, small.reuse) == (3, 2, {})


def test_facts_of_a_range_are_those_counted_by_hand() -> None:
    """What the user said, without what programs put in; the last answer; what commands came to."""
    talk = "<command-name>/clear</command-name>"
    messages = [
        said("user", talk, 0),
        said("user", f"Run the tests.{talk}", 1),
        call("Bash", 2, command="make test"),
        result(2, "1 failed"),
        said("assistant", "Again.", 3),
        call("Bash", 4, command="make test"),
        result(4, "collected\n1309 passed\n\n---\n[exit 0]"),
        said("assistant", "All\npass.", 5),
    ]
    assert [*summaries.facts(messages)] == [
        ("user texts", "Run the tests."),
        ("last answers", "All pass."),
        ("outcomes", "1309 passed"),
    ]


def test_a_session_is_compacted_at_the_beginning_of_a_turn() -> None:
    """All before the last question is hidden; facts are told that stand in the summary."""
    found = summaries.compacted(made_up(), Policy())
    hidden = sum(map(tokens, MADE_UP[:4]))
    assert (found.tried, found.applied, found.hidden) == (1, 1, hidden)
    assert found.facts == {
        (fact, "< 15k"): 1 for fact in ("user texts", "last answers", "outcomes")
    }
    assert found.told["last answers", "< 15k"] == 1
    assert found.told["user texts", "< 15k"] == 0  # of 8,000 code points
    assert found.reuse.requests == 1


PROBED = [
    said("user", "Mend src/parse.py.", 0),
    call("Bash", 1, command=f"cd {ROOT} && make test"),
    result(1, "collected\n1 failed\n\n---\n[exit 1]"),
    call("Edit", 2, file_path=f"{ROOT}/src/parse.py", old_string="", new_string="old"),
    result(2, "Updated."),
    said("user", "Go on.", 3),
    call("Bash", 4, command="cat elsewhere.py"),
    call("Edit", 5, file_path=f"{ROOT}/src/parse.py", old_string="old", new_string="new"),
    call("Bash", 6, command=f"cd {ROOT} && make test"),
]


def test_probes_are_answered_by_the_recorded_future() -> None:
    """The next file and the last test; the next command is no question, as nobody has told it."""
    asked = {*probes.probes(made_up(PROBED), 6, PROBED[:5])}
    assert asked == {("next file", f"{ROOT}/src/parse.py"), ("last test", "1 failed")}
    asked = {*probes.probes(made_up(PROBED), 7, PROBED[:5])}
    assert ("next command", f"cd {ROOT} && make test") in asked
    assert [*probes.probes(made_up(PROBED), 6, PROBED[5:6])] == []
    patch = "*** Begin Patch\n*** Update File: src/parse.py\n@@\n-old"
    patched = [*PROBED[:6], call("apply_patch", 7, input=patch)]
    assert ("next file", "src/parse.py") in {*probes.probes(made_up(patched), 6, PROBED[:5])}


def test_names_that_nobody_said_are_counted() -> None:
    """Not those of tools, of arguments as they were given, or of paths from the root."""
    summary = "Edit src/parse.py, old_string; then sing_song in src/cut… by make_up()."
    assert probes.foreign_names(summary, PROBED[:5], ROOT) == (4, 2)


def make_up(request: SummaryRequest) -> str:
    """Return a summary with a name that nobody said."""
    return f"src/parse.py has sing_song since {len(request.messages)} messages."


def test_a_summarizer_is_judged() -> None:
    """Its names, its price, and the answers of the view; the bill is that of sending everything."""
    told = summaries.compacted(made_up(), Policy(), make_up)
    assert (told.applied, told.names, told.foreign) == (1, 2, 1)
    assert told.asked == told.answered == {"next file": 1}
    raw = replayed(made_up(), Policy.named("raw"), FIVE_MINUTES)
    assert told.bill == pytest.approx(bill(raw.requests, ANTHROPIC))
    assert told.spent > 5 * estimate(make_up.__doc__ or "")
    assert summaries.compacted(made_up(), Policy()).spent == 0


def run(tmp_path: Path, *arguments: str) -> int:
    """Run the program on the session above."""
    (tmp_path / "made-up.json").write_text(json.dumps(MADE_UP))
    return main([str(tmp_path), "--least", "1000", *arguments])


@pytest.mark.slow
def test_the_tables_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each ready policy in each table, and how long it took."""
    assert run(tmp_path) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 of 1 sessions, 4 requests; 0 files are not read\n")
    assert "bill by provider" in printed
    for name in ready():
        assert sum(line.startswith(f"{name} ") for line in printed.splitlines()) == 11, name
    assert printed.splitlines()[-1].startswith("took ")


@pytest.mark.slow
def test_policies_are_chosen_and_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One by its name, one with fields changed, under its own name; as JSON, the same each time."""
    changed = 'default,name=cold,clearing=batched,terminal_max_age=0,tool_kinds={"Edit":"other"}'
    asked = (
        "--policies",
        "default",
        "--policy",
        changed,
        "--tables",
        "bill",
        "--window",
        "5000",
        "--json",
    )
    assert run(tmp_path, *asked) == 0
    first = capsys.readouterr().out
    found: list[dict[str, Any]] = json.loads(first)
    assert [each["policy"] for each in found] == ["raw", "default", "cold"]
    assert found[0]["usual"]["over"] == 3
    assert run(tmp_path, *asked, "--processes", "2") == 0
    assert capsys.readouterr().out == first


def test_a_summarizer_is_judged_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the extractive one, by the tables of summaries alone."""
    name = f"{__name__}:make_up"
    assert run(tmp_path, "--summarizer", name, "--policies", "default") == 0
    printed = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("default  ") for line in printed) == 4
    assert sum(line.startswith(f"default by {name} ") for line in printed) == 4
    assert any("names in no hidden message" in line for line in printed)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--policies", "best"), "there is no best"),
        (("--tables", "chairs"), "there is no chairs"),
        (("--policy", "default,terminal_keep=few"), "a whole number"),
        (("--every", "0"), "from 1"),
        (("--summarizer", "nowhere:summarize"), "there is no summarizer nowhere:summarize"),
        (("--summarizer", "json:__name__"), "cannot be called"),
        (("--summarizer", "openai:"), "no summarizer is named"),
    ],
)
def test_what_cannot_be_asked_for_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], problem: str
) -> None:
    """It ends with 2 and says what is wrong; with no session to measure it ends with 1."""
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, *arguments)
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere")]) == 1
    with pytest.raises(StoreError, match="terminal_keep"):
        variant("default,terminal_keep=few")
