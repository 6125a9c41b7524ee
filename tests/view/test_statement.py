"""A view is SQL: one text ranks for each view, and a shell runs the whole as one statement."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from conftest import TRANSCRIPTS, Run, needs_transcripts
from conversations import (
    MINUTE,
    NOW,
    ROOT,
    Message,
    busy_conversations,
    conversations,
    messy_conversations,
    policies,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sent import agree, rows_of
from world import READY

from benchmarks.recorded import Transcript, largest
from store import Policy, Store
from store.database import statements
from store.errors import InvalidPolicy, PositionOutOfRange, SessionNotFound
from store.policy import POLICIES

law = partial(
    settings,
    derandomize=True,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
NEWEST = "ROW_NUMBER() OVER (ORDER BY at DESC, seq DESC)"
OF_A_FILE = "OVER ( PARTITION BY path ORDER BY at DESC, seq DESC"
RANKED = Policy(terminal_keep=1, file_read_keep=1)


def step(number: int, tool: str, content: str = "x" * 60, path: str = "a.py") -> list[Message]:
    """A call and its result, so many minutes before NOW that the last steps are the newest."""
    function = {"name": tool, "arguments": f'{{"filePath": "{path}", "command": "make"}}'}
    call = {"id": f"call-{number}", "type": "function", "function": function}
    at = NOW - (60 - number) * MINUTE
    return [
        {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": at},
        {"role": "tool", "tool_call_id": call["id"], "content": content, "timestamp": at},
    ]


def begun(store: Store, steps: int = 8) -> str:
    """A session of a user, and of reads and commands in turn."""
    session = store.create_session(project_root=ROOT).id
    store.append(session, {"role": "user", "content": "begin"})
    for number in range(steps):
        store.append(session, step(number, ("filesystem-read", "terminal-execute")[number % 2]))
    return session


# --- what runs for a view -------------------------------------------------------------------------


@contextmanager
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    """Give all statements that run meanwhile, with their values."""
    seen: list[tuple[str, Any]] = []
    execute = statements.Statement._execute

    def noted(self: Any, connection: Any, values: Any, *, ahead: bool = False) -> Any:
        if not ahead:  # what is sent ahead is asked for later
            seen.append((" ".join(self.text(connection.dialect.name).split()), values))
        return execute(self, connection, values, ahead=ahead)

    with monkeypatch.context() as patched:
        patched.setattr(statements.Statement, "_execute", noted)
        yield seen


def test_each_view_is_ranked_by_the_windows_of_one_text(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first view, the second and the tenth; later ones only look at less of the line."""
    texts, looked_at = set(), []
    with Store(url, durability="normal") as store, Store(url, cache_bytes=0) as plain:
        session = begun(store, 40)
        for number in range(40, 50):
            store.append(session, step(number, "filesystem-read"))
            with traced(monkeypatch) as seen:
                view = store.view(session, RANKED, now=NOW)
            ranking = [(text, values) for text, values in seen if " OVER " in text]
            assert len(ranking) == 1
            text, values = ranking[0]
            assert NEWEST in text
            assert OF_A_FILE in text
            texts.add(text)
            looked_at.append(values["runs"].count(",[") + 1)
            assert view.entries == plain.view(session, RANKED, now=NOW).entries
            assert view.stats.replaced == {"file_read": number - 20, "terminal": 20}
    assert len(texts) == 1
    assert looked_at[0] == 1
    assert set(looked_at[1:]) <= {
        2,
        3,
    }  # what is new, and the newest before it, or what lies between


def test_the_trace_of_a_connection_has_the_windows(tmp_path: Path) -> None:
    """As SQLite itself tells of it, which knows nothing of where the store runs statements."""
    seen: list[str] = []

    def listen(driver: Any, _: object) -> None:
        driver.set_trace_callback(seen.append)

    sqlalchemy.event.listen(sqlalchemy.Pool, "connect", listen)
    try:
        with Store(tmp_path / "chat.db", durability="normal") as store:
            session = begun(store)
            for number in range(10):
                store.append(session, {"role": "user", "content": f"more {number}"})
                seen.clear()
                store.view(session, RANKED, now=NOW)
                found = " ".join(" ".join(seen).split())
                assert NEWEST in found
                assert OF_A_FILE in found
    finally:
        sqlalchemy.event.remove(sqlalchemy.Pool, "connect", listen)


# --- the statement --------------------------------------------------------------------------------

some_lines = st.one_of(conversations, busy_conversations, messy_conversations)


@pytest.mark.no_cover
@law(max_examples=320)
@given(some_lines, st.one_of(st.sampled_from(READY), policies), st.integers(0, 30))
def test_the_statement_says_of_each_message_what_the_view_says(
    url: str, line: list[Message], policy: Policy, minutes: int
) -> None:
    """Of any line, under any policy, at any moment; up to any position, too."""
    with Store(url, durability="normal") as store:
        session = store.create_session(project_root=ROOT).id
        store.append(session, line)
        now = NOW + (minutes - 15) * MINUTE
        agree(store, session, policy, now=now)
        agree(store, session, policy, now=now, at=len(line) * minutes // 31)


@cache
def recorded() -> list[Transcript]:
    """The recorded conversations, the largest of each kind of program first."""
    found, _ = largest(TRANSCRIPTS, 10_000)
    return found


@pytest.mark.no_cover
@needs_transcripts
@pytest.mark.sampled(16)
@pytest.mark.parametrize("part", range(16))
@pytest.mark.timeout(600)
def test_the_statement_says_what_the_view_says_of_recorded_conversations(
    url: str, part: int
) -> None:
    """Of all of them, under every ready policy."""
    with Store(url, durability="normal") as store:
        for number, each in enumerate(recorded()[part::16]):
            session = store.create_session(f"{part}-{number}", project_root=each.root).id
            store.append(session, each.messages)
            for name in POLICIES:
                rows = agree(store, session, Policy.named(name), now=NOW)
                if name == "default":
                    allowed = {None, "terminal", "file_read", "repair", "picture", "left_out"}
                    assert {row.rule for row in rows} <= allowed


def test_hidden_messages_are_rows_without_content(url: str) -> None:
    """Whatever hides them; pinned ones are seen, and what a view makes up has no row."""
    with Store(url, durability="normal") as store:
        session = begun(store)
        store.append(session, {"role": "user", "content": "and now"})
        store.hide(session, 4, 7, "told in short")
        agree(store, session, Policy(), now=NOW)
        compacted = store.compact(session, Policy(keep_turns=1), lambda _: "so far", now=NOW)
        assert compacted is not None
        rows = agree(store, session, Policy(), now=NOW)
        assert [row.rule for row in rows[:-1]] == ["hidden"] * (len(rows) - 1)
        assert "so far" not in repr(rows)
        assert "so far" in repr(store.view(session, now=NOW).messages)


@pytest.mark.parametrize("number", range(len(READY)))
def test_clearings_and_the_last_words_of_python_are_in_it(url: str, number: int) -> None:
    """Before and after a recorded clearing, a fork, a rewind and a redaction."""
    policy = READY[number]
    with Store(url, durability="normal") as store:
        session = begun(store, 30)
        for name in ("Read", "Bash"):
            store.append(session, step(50, name, f"src/module_{name}.py says so " * 90))
        store.append(session, [{"role": "user", "content": "so"}, *step(52, "Read", "Error: no")])
        agree(store, session, policy, now=NOW)
        store.compact_if_needed(session, policy, now=NOW)
        store.redact(session, 5, "private")
        forked = store.fork(session, at=40).id
        store.append(forked, step(55, "Bash", '{"stdout": "' + "y " * 90 + '", "exitCode": 0}'))
        store.rewind(session, to=30)
        for each in (session, forked):
            agree(store, each, policy, now=NOW + 90 * MINUTE)


def test_texts_of_the_policy_are_literals_that_mean_what_they_say(url: str) -> None:
    """Quotes, backslashes, line ends, comments and whatever a shell would take for its own."""
    text = "it's \"old\"\\n; -- :tree_id {line} %s %(x)s $1\n.quit\n\\q /* \x1b[0m ünd 旧'"
    policy = Policy(terminal_keep=0, terminal_placeholder=text, tool_kinds={"o'neill": "terminal"})
    with Store(url, durability="normal") as store:
        session = begun(store, 2)
        store.append(session, step(5, "o'neill"))
        rows = agree(store, session, policy, now=NOW)
        assert [row.content for row in rows if row.rule == "terminal"] == [text, text]


def test_nothing_that_a_message_says_is_in_the_text(url: str) -> None:
    """Neither its content, nor names of tools, ids of calls, paths, or keys of parts."""
    mark = "m4rk"
    function = {"name": mark, "arguments": f'{{"filePath": "{mark}"}}'}
    called = {"id": f"{mark}-2", "type": "function", "function": function}
    line: list[Message] = [
        {"role": "user", "content": f"{mark}'; DROP TABLE messages; --", mark: mark},
        {"role": "user", "content": [{"type": mark, mark: mark}]},
        {"role": "assistant", "content": mark, "name": mark, "tool_calls": [called]},
        {"role": "user", "content": mark},
        {"role": "tool", "tool_call_id": f"{mark}-2", "content": mark, "timestamp": 1},
        {"role": "tool", "tool_call_id": mark, "content": f"Error: {mark}", "timestamp": 1},
    ]
    open_call = {**called, "id": f"{mark}-open"}  # left out beside one whose id is sent anew
    line.insert(3, {"role": "assistant", "content": None, "tool_calls": [called, open_call]})
    line.insert(4, {"role": "tool", "tool_call_id": called["id"], "content": "ok"})
    with Store(url, durability="normal") as store:
        session = store.create_session().id
        store.append(session, [*line, *line])
        for name in POLICIES:
            policy = Policy.named(name, unanswered="drop", foreign_reasoning="text")
            assert mark not in store.view_sql(session, policy, now=NOW)
            agree(store, session, policy, now=NOW)


def test_the_statement_of_no_view_is_refused(url: str) -> None:
    """As the view is."""
    with Store(url, durability="normal") as store:
        session = begun(store, 1)
        with pytest.raises(SessionNotFound):
            store.view_sql("nobody")
        with pytest.raises(PositionOutOfRange):
            store.view_sql(session, at=99)
        with pytest.raises(InvalidPolicy):
            store.view_sql(session, "agent")  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [[], ["--at", "9"], ["--policy", "agent"]], ids=repr)
def test_a_shell_runs_what_the_command_prints(run: Run, url: str, options: list[str]) -> None:
    """The program of SQLite, or psql; --policy, --set, --at and --now count."""
    asked = [*options, "--set", "terminal_keep=1", "--now", str(NOW)]
    with Store(url, durability="normal") as store:
        session = begun(store)
    printed = run("--db", url, "view", session, "--sql", *asked).out
    rows = rows_of(url, printed)
    with Store(url) as store:
        policy = Policy.named("agent" if "agent" in options else "default", terminal_keep=1)
        at = 9 if "--at" in options else None
        assert rows == agree(store, session, policy, now=NOW, at=at)
    told = shell(url, printed)
    if told is not None:
        assert told == [(str(row.position), row.role, row.rule or "") for row in rows]


@pytest.mark.parametrize("option", [["--json"], ["--explain"], ["--format", "gemini"]], ids=repr)
def test_a_statement_goes_without_what_is_about_requests(
    run: Run, url: str, option: list[str]
) -> None:
    """One line says so, and nothing is printed."""
    with Store(url, durability="normal") as store:
        session = begun(store, 1)
    told = run("--db", url, "view", session, "--sql", *option)
    assert (told.status, told.out) == (2, "")
    assert told.err == "convostore: --sql cannot be combined with --json, --explain or --format\n"


def shell(url: str, statement: str) -> list[tuple[str, ...]] | None:
    """What the database's own shell makes of a statement: three columns; None where it is absent."""
    address = sqlalchemy.make_url(url)
    is_file = address.get_backend_name() == "sqlite"
    program = shutil.which("sqlite3" if is_file else "psql")
    if program is None:
        return None
    plain = address.set(drivername="postgresql").render_as_string(hide_password=False)
    command = [program, str(address.database)] if is_file else [program, "-qAt", plain]
    told = subprocess.run(command, input=statement, capture_output=True, text=True, check=True)
    assert not told.stderr
    return [tuple(line.split("|")[:3]) for line in told.stdout.splitlines()]
