"""Sessions written for Claude Code and Codex: what their loaders ask for, and the same again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import resumable
from conftest import TRANSCRIPTS, Run, needs_transcripts
from conversations import NOW, Agent

from store import Policy, Store
from store.errors import UnknownTranscript
from store.exporting import session_lines, shapes
from store.exporting.shapes import build_line_view_maker
from store.importing import import_file
from store.messages import extract_content_text
from store.phrases import PHRASES
from store.records import View
from store.transcripts.writing import name_project_folder

FIXTURE = "Resources_Fixtures"
"""Of files that no program wrote: another project made them up for its tests."""
CHECKS = {"claude_code": resumable.claude_code, "codex": resumable.codex}
FORMATS = {
    "claude_code": "anthropic",
    "codex": "responses",
    "opencode": "anthropic",
    "gemini_cli": "gemini",
    "qwen_code": "gemini",
    "pi": "anthropic",
}
BESIDE = "<system>Bekind.</system>"
"""The system text, as it is the user's in Claude Code, without blanks."""
Fields = dict[str, Any]


def recorded(kind: str) -> list[Path]:
    """Return the recorded files of a kind, of all kinds for "*"."""
    return sorted(path for path in TRANSCRIPTS.glob(f"{kind}/*") if FIXTURE not in path.name)


@needs_transcripts
@pytest.mark.parametrize(
    ("program", "kind"), [("claude_code", "claude_code_jsonl"), ("codex", "codex_rollout")]
)
def test_the_loaders_rules_are_those_of_real_files(program: str, kind: str) -> None:
    """Not a row of what the programs wrote themselves breaks a rule."""
    for path in recorded(kind):
        assert CHECKS[program](resumable.rows_of(path), whole=False) == [], path.name


def talked(store: Store) -> None:
    """Fill a store with a session of every sort of message."""
    store.create_session("s", title="A `title`", project_root="/home/ada/my_app", now=NOW)
    picture = {"url": "data:image/png;base64,aGVsbG8="}
    asked = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": picture}]
    store.append("s", {"role": "system", "content": "Be kind."}, now=NOW)
    store.append("s", {"role": "user", "content": asked, "timestamp": NOW}, now=NOW)
    thought = {"type": "thinking", "thinking": "Well.", "signature": "c2ln"}
    store.append("s", {"role": "assistant", "content": "A word.", "thinking_blocks": [thought]})
    for seed in range(4):
        store.append("s", Agent(seed).busy_run())
    call = {"id": "open 1", "type": "function", "function": {"name": "Bash", "arguments": "{"}}
    store.append("s", {"role": "assistant", "content": None, "tool_calls": [call]})
    store.append("s", {"role": "user", "content": "````\nand?"})


def written(run: Run, shape: str, *options: str) -> list[Fields]:
    """Return the rows of a session in a shape."""
    ran = run("export", "s", "--as", shape, *options)
    assert ran.status == 0, ran
    return [json.loads(line) for line in ran.out.splitlines()]


@pytest.fixture
def store(run: Run) -> Iterator[Store]:
    """Give a store with a session of every sort of message."""
    with Store("convostore.db") as opened:
        talked(opened)
        yield opened


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", CHECKS)
@pytest.mark.parametrize("options", [(), ("--view", "--policy", "agent"), ("--at", "7")])
def test_a_program_goes_on_with_a_session(
    store: Store, run: Run, program: str, options: tuple[str, ...]
) -> None:
    """Its loader takes each row; the same export twice is the same."""
    rows = written(run, program, *options)
    assert CHECKS[program](rows, whole=True) == []
    assert written(run, program, *options) == rows
    moments = [row["timestamp"] for row in rows if "timestamp" in row]
    assert moments == sorted(moments)
    assert moments[0] >= "2026"


@pytest.mark.parametrize("program", CHECKS)
def test_what_was_written_is_read_as_what_was_said(store: Store, run: Run, program: str) -> None:
    """What a provider is sent of the session that comes back is what it is sent of this one."""
    Path("out.jsonl").write_text("\n".join(map(json.dumps, written(run, program))))
    with Store("other.db") as other:
        (found,) = import_file(other, "out.jsonl").sessions
        session = other.session(found.id)
        assert (session.title, session.project_root) == ("A `title`", "/home/ada/my_app")
        assert spoken(other, found.id, program) == spoken(store, "s", program)


def compacted_once(store: Store) -> None:
    """Hide all but the last turn."""
    assert store.compact("s", Policy(keep_turns=1), lambda _: "so far").outcome == "applied"


def compacted_twice(store: Store) -> None:
    """Hide some, and then more of it; another range by name."""
    compacted_once(store)
    more = [{"role": "user", "content": "and?"}, {"role": "assistant", "content": "so"}]
    store.append("s", [*more, *more])
    assert store.compact("s", Policy(keep_turns=1), lambda _: "so much").outcome == "applied"
    store.append("s", more)
    store.hide("s", store.session("s").head, store.session("s").head, "something")


def pinned(store: Store) -> None:
    """Hide a part of the running turn, whose question stays."""
    store.append("s", {"role": "user", "content": "the task"})
    for number in range(40):
        store.append("s", [asked(f"t{number}"), answered(f"t{number}", "output " * 40)])
    policy = Policy(within_turn=True, keep_groups=3, trigger_tokens=1000)
    made = store.compact_if_needed("s", policy, lambda _: "so far")
    assert made
    assert len(made.pinned) == 2


def asked(name: str) -> Fields:
    """A call of a tool."""
    call = {"id": name, "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answered(name: str, content: str) -> Fields:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": name, "content": content}


def in_a_fork(store: Store) -> None:
    """Hide what is another session's."""
    compacted_once(store)
    store.fork("s", session_id="other")
    store.delete_session("s")
    store.fork("other", session_id="s")


COMPACTED = (compacted_once, compacted_twice, pinned, in_a_fork)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("program", CHECKS)
@pytest.mark.parametrize("compact", COMPACTED)
def test_what_a_compaction_hides_is_hidden_there(
    store: Store, run: Run, program: str, compact: Callable[[Store], None]
) -> None:
    """By a row of the program's own. Read again it is the same line, and as much of it is sent."""
    compact(store)
    rows = written(run, program)
    assert CHECKS[program](rows, whole=True) == []
    assert written(run, program) == rows
    (summary,) = filter(None, map(summary_in, rows))
    assert ("so much" if compact is compacted_twice else "so far") in summary
    assert ("the task" in summary) is (compact is pinned)
    Path("out.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ours = store.session("s")
    parts = shapes.split_compacted_line(store, ours, None)
    assert parts
    with Store("other.db") as other:
        (found,) = import_file(other, "out.jsonl").sessions
        theirs = other.session(found.id)
        whole = [
            said_in(build_line_view_maker(*each, None), program)
            for each in ((other, theirs), (store, ours))
        ]
        again = "".join(summary.split()) if program == "claude_code" else ""
        assert whole[0][0].replace(again, "", 1) == whole[1][0]
        assert whole[0][1] == whole[1][1]
        sent = said_in(
            lambda kind: other.view(found.id, shapes.RAW_EXPORT_POLICY, format=kind), program
        )
        kept, others = said_in(parts.kept, program)
        beginning = PHRASES["beginning"][shapes.RAW_EXPORT_POLICY.language]
        kept = kept.removeprefix("".join(beginning.split()))
        assert sent[0].endswith(kept)
        assert "".join(summary.split()) in sent[0].removesuffix(kept)
        assert sent[1] == others


def summary_in(row: Fields) -> str | None:
    """Return the words of a summary that a row has, if any."""
    if row["type"] == "compacted":
        items = row["payload"]["replacement_history"]
        said = (extract_content_text(each["content"]) for each in items if each["role"] == "user")
        assert row["payload"]["message"] == "\n\n".join(said)
        return str(row["payload"]["message"])
    return extract_content_text(row["message"]["content"]) if "isCompactSummary" in row else None


def said_in(look: Callable[..., View], program: str) -> tuple[str, list[Any]]:
    """Return all words that are sent, without blanks, and in order all else."""
    sides = [*as_one(look(FORMATS[program]).messages)]
    return "".join(text for _, text, _ in sides), [each for side in sides for each in side[2]]


def test_system_text_is_sent_and_not_shown(store: Store, run: Run) -> None:
    """In a row of the user's that is none of its prompts: first, and behind a summary."""
    assert meta(written(run, "claude_code")) == [2]
    compacted_once(store)
    rows = written(run, "claude_code")
    summary = next(number for number, row in enumerate(rows, 1) if summary_in(row))
    assert meta(rows) == [2, summary + 1]
    assert rows[1]["message"]["content"] == "<system>\nBe kind.\n</system>"
    assert meta(written(run, "claude_code", "--at", "0")) == []
    store.create_session("two")
    system = [{"role": "system", "content": text} for text in ("One.", "Two.")]
    store.append("two", [*system, {"role": "user", "content": "Hi."}])
    first, *_ = map(json.loads, session_lines(store, "two", shape="claude_code").lines)
    assert first["message"]["content"] == "<system>\nOne.\n\nTwo.\n</system>"


def test_both_programs_files_are_sessions_of_their_own(store: Store, run: Run) -> None:
    """Brought into one store, neither is taken for the other."""
    for program in CHECKS:
        Path(f"{program}.jsonl").write_text("\n".join(map(json.dumps, written(run, program))))
    with Store("other.db") as other:
        ran = [import_file(other, f"{program}.jsonl").sessions for program in CHECKS]
        assert [each.differs_at for each, *_ in ran] == [None, None]


def meta(rows: list[Fields]) -> list[int]:
    """Return which rows are sent, and not shown."""
    return [number for number, row in enumerate(rows, 1) if row.get("isMeta")]


def test_what_is_sent_has_no_compaction(store: Store, run: Run) -> None:
    """With --view a summary is a message among others; a page shows what is hidden."""
    compacted_once(store)
    for program in CHECKS:
        assert not [*filter(None, map(summary_in, written(run, program, "--view")))]
        assert not [*filter(None, map(summary_in, written(run, program, "--at", "3")))]
    assert "A word." in run("export", "s", "--as", "markdown").out


def spoken(store: Store, name: str, program: str) -> list[Any]:
    """Return what a line says in the format of a program, neighbours of a side as one."""
    view = store.view(name, shapes.RAW_EXPORT_POLICY, now=NOW, format=FORMATS[program])
    return [*as_one(view.messages)]


def as_one(messages: list[Any]) -> Iterator[Any]:
    """Yield runs of one side: their texts as one, then all else in order."""
    for side, run in groupby(messages, side_of):
        items = [part for each in run for part in parts_of(each)]
        text = "".join(each["text"] for each in items if "text" in each)
        words = "".join(text.split()).replace(BESIDE, "")
        yield side, words, [each for each in items if "text" not in each]


def side_of(item: Fields) -> str:
    """Return who says something."""
    kind = item.get("type", "message")
    if kind == "message":
        return str(item["role"]).replace("system", "developer")
    return "user" if kind.endswith("_output") else "assistant"


def parts_of(item: Fields) -> list[Fields]:
    """Return what a message says, in parts."""
    content = item.get("content", item.get("parts", [item]))
    return [{"text": content}] if isinstance(content, str) else content


def test_a_page_is_for_people(store: Store, run: Run) -> None:
    """Who said what; a fence is longer than any that it holds."""
    page = run("export", "s", "--as", "markdown").out
    assert page.startswith("# A `title`\n")
    assert "## User · 2026" in page
    assert "> ````\n> and?" in page
    assert page.count("<details>") == page.count("</details>") > 4
    store.create_session("f")
    store.append("f", {"role": "tool", "tool_call_id": "x", "content": "a\n`````\nb"})
    assert "\n``````\na\n`````\nb\n``````\n" in run("export", "f", "--as", "markdown").out


def test_where_to_put_a_file_is_told(store: Store, run: Run) -> None:
    """The place in which the program looks, and what is typed then."""
    ran = run("export", "s", "--as", "claude_code", "-o", "out.jsonl")
    (name,) = {row["sessionId"] for row in resumable.rows_of(Path("out.jsonl"))}
    assert f"~/.claude/projects/-home-ada-my-app/{name}.jsonl" in ran.out
    assert f"claude --resume {name}" in ran.out
    told = json.loads(run("export", "s", "--as", "codex", "-o", "b.jsonl", "--json").out)
    assert "codex resume" in told["next"]
    assert "~/.codex/sessions/20" in told["next"]


def test_the_folder_of_a_project_has_plain_letters() -> None:
    """As the program names it."""
    assert name_project_folder("/home/ada/my_app.py") == "-home-ada-my-app-py"


@needs_transcripts
@pytest.mark.slow
@pytest.mark.parametrize("program", CHECKS)
def test_any_recorded_session_can_be_gone_on_with(tmp_path: Path, program: str) -> None:
    """Of all kinds: no row that a loader would not take."""
    for number, path in enumerate(recorded("*")):
        with Store(tmp_path / f"{number}.db", durability="normal") as store:
            with suppress(UnknownTranscript):
                import_file(store, path)
            for session in store.sessions(limit=3):
                lines = session_lines(store, session.id, shape=program).lines
                rows = [json.loads(line) for line in lines]
                assert CHECKS[program](rows, whole=True) == [], (path, session.id)
