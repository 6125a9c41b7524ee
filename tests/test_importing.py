from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Store, StoreError
from store.errors import UnknownTranscript
from store.importing import BATCH_MESSAGES, ImportReport, import_file
from store.messages import Message
from store.transcripts import SessionEvent, SessionMessage, read

ROLES = {"system", "developer", "user", "assistant", "tool"}
FOLDERS = (
    "claude_code_jsonl",
    "tau_bench",
    "swe_agent_traj",
    "openai_chat_llm_log",
    "mini_swe_agent_traj",
    "codex_rollout",
    "openhands_events_v1",
    "openhands_v0_history",
)
REAL = sorted(path for folder in FOLDERS for path in (TRANSCRIPTS / folder).glob("*"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url) as opened:
        yield opened


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Give one store for all recorded conversations."""
    with Store(tmp_path_factory.mktemp("shelf") / "chat.db", durability="normal") as opened:
        yield opened


def user(text: str, **more: Any) -> dict[str, Any]:
    """Return a message of a user."""
    return {"role": "user", "content": text, **more}


def write(path: Path, *messages: object) -> Path:
    """Write a file with a message, or a raw line, a line."""
    path.write_text(
        "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in messages),
        "utf-8",
    )
    return path


def texts(store: Store, session_id: str) -> list[Any]:
    """Return what the messages of a session say."""
    return [each.message["content"] for each in store.messages(session_id)]


def notes(report: ImportReport) -> str:
    """Return a report's notes as one text."""
    return "\n".join(note.text for note in report.notes)


def test_a_file_becomes_a_session(store: Store, tmp_path: Path) -> None:
    """Messages come out as they stand in the file; the report counts them."""
    call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    messages = [
        user("Hello 你好"),
        {"role": "assistant", "content": None, "tool_calls": [call], "x": [1]},
    ]
    report = import_file(store, write(tmp_path / "talk.jsonl", *messages))
    assert [each.message for each in store.messages("talk")] == messages
    assert report.kind == "openai"
    assert report.sessions == [("talk", 2, 2, 2, 1, None)]
    assert store.session("talk").title == "Hello 你好"


def test_again_adds_nothing_and_a_longer_file_adds_the_rest(store: Store, tmp_path: Path) -> None:
    """An import can be repeated at any time; a file that has grown adds what is new."""
    path = write(tmp_path / "talk.jsonl", user("a"), user("b"))
    import_file(store, path)
    assert import_file(store, path).sessions[0].appended == 0
    write(path, user("a"), user("b"), user("c"), user("d"))
    assert import_file(store, path).sessions[0][1:4] == (4, 2, 4)
    assert texts(store, "talk") == ["a", "b", "c", "d"]


def claude(kind: str, number: int, *blocks: object, **more: Any) -> dict[str, Any]:
    """Return a line of Claude Code; answers are of the one response ``m``."""
    message = {
        "role": kind,
        "content": list(blocks),
        **({"id": "m"} if kind == "assistant" else {}),
    }
    at = f"2026-01-01T00:00:{number:02}Z"
    return {
        "type": kind,
        "uuid": f"u{number}",
        "sessionId": "s",
        "timestamp": at,
        "message": message,
        **more,
    }


def call_block(name: str) -> dict[str, Any]:
    """Return a tool call of Claude Code."""
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}}


def result_block(name: str) -> dict[str, Any]:
    """Return a tool result of Claude Code."""
    return {"type": "tool_result", "tool_use_id": name, "content": "done"}


GROWING = [
    claude("user", 0, {"type": "text", "text": "go"}, version="1"),
    claude("assistant", 1, {"type": "thinking", "thinking": "?", "signature": "x"}, version="1"),
    claude("assistant", 2, {"type": "text", "text": "I will."}, version="1"),
    claude("assistant", 3, call_block("a"), version="1"),
    claude("user", 4, result_block("a"), version="1"),
    claude("assistant", 5, call_block("b"), version="1"),
    claude("user", 6, result_block("b"), version="1"),
    claude("user", 7, {"type": "text", "text": "again"}, version="2"),
]
"""A session that grows line by line, by a newer program in the end.

What was the same on all lines is no more.
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seen", range(1, len(GROWING)))
def test_an_answer_that_was_still_being_written_is_taken_whole(
    store: Store, tmp_path: Path, seen: int
) -> None:
    """A session can be imported while it goes on.

    In the end it is as if it had been imported once.
    """
    import_file(store, write(tmp_path / "s.jsonl", *GROWING[:seen]))
    report = import_file(store, write(tmp_path / "s.jsonl", *GROWING))
    assert report.sessions[0].differs_at is None
    roles = [each.message["role"] for each in store.messages("s")]
    assert roles == ["user", "assistant", "tool", "tool", "user"]
    answer = store.messages("s", 2, 2)[0].message
    assert (answer["content"], [call["id"] for call in answer["tool_calls"]]) == (
        "I will.",
        ["a", "b"],
    )
    assert ("still being written" in notes(report)) == (1 < seen < 6)
    assert import_file(store, tmp_path / "s.jsonl").sessions[0].appended == 0


def test_an_answer_after_which_the_session_went_on_is_left(store: Store, tmp_path: Path) -> None:
    """What was said in the store behind an unfinished answer is not rewound."""
    import_file(store, write(tmp_path / "s.jsonl", *GROWING[:3]))
    store.append("s", user("and now?"))
    assert import_file(store, write(tmp_path / "s.jsonl", *GROWING)).sessions[0].differs_at == 2
    assert store.session("s").head == 3


def test_a_session_that_went_on_is_left_as_it_is(store: Store, tmp_path: Path) -> None:
    """A line that has more than the file agrees with it."""
    path = write(tmp_path / "talk.jsonl", user("a"))
    import_file(store, path)
    store.append("talk", user("more"))
    report = import_file(store, path)
    assert report.sessions[0][2:4] == (0, 2)
    assert report.notes == []


def test_a_session_that_differs_is_left_alone(store: Store, tmp_path: Path) -> None:
    """Nothing is appended behind a difference; the note says where it is and what to do."""
    path = write(tmp_path / "talk.jsonl", user("a"), user("b"), user("c"))
    import_file(store, path)
    write(path, user("a"), user("B"), user("c"), user("d"))
    report = import_file(store, path)
    assert texts(store, "talk") == ["a", "b", "c"]
    assert report.sessions[0].differs_at == 2
    assert "'talk' differs from the file from position 2 on" in notes(report)
    assert "--replace" in notes(report)
    assert "convostore undo talk" in notes(report)


def test_replace_takes_the_files_version_and_can_be_undone(store: Store, tmp_path: Path) -> None:
    """With replace the line goes on as in the file; undo brings the old line back."""
    path = write(tmp_path / "talk.jsonl", user("a"), user("b"), user("c"))
    import_file(store, path)
    write(path, user("a"), user("B"), user("d"))
    report = import_file(store, path, replace=True)
    assert texts(store, "talk") == ["a", "B", "d"]
    assert report.sessions[0][2:4] == (2, 3)
    assert import_file(store, path, replace=True).sessions[0].appended == 0
    store.undo_rewind("talk")
    assert texts(store, "talk") == ["a", "b", "c"]


def test_a_message_that_cannot_be_stored_is_left_out_alone(store: Store, tmp_path: Path) -> None:
    """What the store refuses is noted with its place.

    The rest of the session is kept, each time the same.
    """
    path = write(
        tmp_path / "talk.jsonl",
        user("a"),
        '{"role": "user", "content": NaN}',
        '{"role": "us',
        user("b"),
    )
    for _ in range(2):
        report = import_file(store, path)
        assert texts(store, "talk") == ["a", "b"]
        assert "message 2 of 'talk' is left out, it cannot be stored: nan" in notes(report)
        assert "line 3" in notes(report)
        assert all(note.broken for note in report.notes)


def test_messages_that_share_an_id_are_stored_once(store: Store, tmp_path: Path) -> None:
    """The store keeps one message for each id.

    What else has it is noted, and the import stays repeatable.
    """
    path = write(
        tmp_path / "talk.jsonl",
        user("a", id="1"),
        user("a", id="1"),
        user("other", id="1"),
        user("b", id="2"),
    )
    for appended in (2, 0):
        report = import_file(store, path)
        assert report.sessions[0][1:4] == (4, appended, 2)
        assert texts(store, "talk") == ["a", "b"]
        assert len(report.notes) == 2
        assert "message 3 of 'talk'" in report.notes[1].text
        assert "something else" in report.notes[1].text


def test_a_title_that_no_column_holds_is_mended(store: Store, tmp_path: Path) -> None:
    """A message may hold what a title cannot.

    The message is kept as it is, the title made storable.
    """
    path = write(tmp_path / "talk.jsonl", user("cut \ud83d\x00 here"))
    import_file(store, path)
    assert texts(store, "talk") == ["cut \ud83d\x00 here"]
    assert store.session("talk").title == "cut ?\ufffd here"


def test_a_title_that_is_too_long_is_cut(store: Store, tmp_path: Path) -> None:
    """Whoever gave it; the session is imported all the same."""
    line = {"sessionId": "s", "timestamp": "2025-01-01T00:00:00Z", "parentUuid": None, "uuid": "1"}
    path = write(
        tmp_path / "f.jsonl",
        {"type": "custom-title", "customTitle": "x" * 20_000, "sessionId": "s"},
        line | {"type": "user", "message": user("main")},
    )
    import_file(store, path, session_id="long")
    title = store.session("long").title
    assert title is not None
    assert len(title) == 10_000
    assert title.endswith("x…")


def test_metadata_that_cannot_be_stored_is_left_out(store: Store, tmp_path: Path) -> None:
    """A session whose metadata is no JSON is imported without them."""
    path = tmp_path / "talk.json"
    path.write_text('{"messages": [{"role": "user", "content": "a"}], "score": NaN}')
    assert "metadata" in notes(import_file(store, path))
    assert texts(store, "talk") == ["a"]
    assert store.session("talk").metadata == {}


def test_the_first_session_gets_the_name_that_is_asked_for(store: Store, tmp_path: Path) -> None:
    """Sessions that hang on the first one are named after it, and say so."""
    line = {
        "sessionId": "s",
        "cwd": "/p",
        "version": "1",
        "timestamp": "2025-01-01T00:00:00Z",
        "isSidechain": False,
    }
    path = write(
        tmp_path / "f.jsonl",
        line | {"type": "user", "uuid": "1", "parentUuid": None, "message": user("main")},
        line
        | {
            "type": "user",
            "uuid": "2",
            "parentUuid": None,
            "isSidechain": True,
            "message": user("side"),
        },
    )
    first, second = import_file(store, path, session_id="mine").sessions
    assert first.id == "mine"
    assert second.id.startswith("mine/")
    assert store.session(second.id).metadata["parent_session"] == "mine"


def test_more_than_a_batch_is_stored_in_order(store: Store, tmp_path: Path) -> None:
    """A long file is appended in several transactions, and compared over several pages."""
    count = 2 * BATCH_MESSAGES + 7
    path = write(tmp_path / "long.jsonl", *(user(str(number)) for number in range(count)))
    assert import_file(store, path).sessions[0].appended == count
    assert texts(store, "long") == [str(number) for number in range(count)]
    assert import_file(store, path).sessions[0].appended == 0


def test_progress_ends_with_the_files_size(store: Store, tmp_path: Path) -> None:
    """A progress function is told how many bytes were read."""
    path = write(tmp_path / "talk.jsonl", user("a"))
    seen: list[tuple[int, int]] = []
    import_file(store, path, progress=lambda *told: seen.append(told))
    assert seen[-1] == (path.stat().st_size,) * 2


def test_what_is_no_transcript_is_refused(store: Store, tmp_path: Path) -> None:
    """An unknown file, a missing file and an unknown kind are errors of the store.

    No session is made.
    """
    with pytest.raises(UnknownTranscript):
        import_file(store, write(tmp_path / "x.txt", "hello"))
    with pytest.raises(StoreError, match="cannot read"):
        import_file(store, tmp_path / "missing")
    with pytest.raises(StoreError, match="no kind"):
        import_file(store, write(tmp_path / "y.jsonl", user("a")), kind="nosuch")
    assert store.sessions() == []


@pytest.mark.sqlite_only
@pytest.mark.parametrize("ending", ["", "-wal", "-lock"])
def test_the_store_itself_is_never_opened_as_a_file(tmp_path: Path, ending: str) -> None:
    """Closing a file of the database would drop SQLite's locks on it, so it is refused unopened, by
    any name.
    """
    link = tmp_path / "link.jsonl"
    with Store(tmp_path / "chat.db") as store:
        link.symlink_to(tmp_path / f"chat.db{ending}")
        for path in (tmp_path / f"chat.db{ending}", link):
            with pytest.raises(StoreError, match="is the store itself"):
                import_file(store, path)


@settings(max_examples=25)
@given(
    before=st.lists(st.sampled_from("abc"), max_size=6),
    after=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
)
def test_replace_makes_a_line_begin_as_the_file(
    shelf: Store, tmp_path: Path, before: list[str], after: list[str]
) -> None:
    """Whatever was there.

    With replace the line begins with the file's messages, and is longer only where it agreed.
    """
    session_id = shelf.create_session().id
    shelf.append(session_id, [user(text) for text in before])
    path = tmp_path / "s.json"
    path.write_text(json.dumps([user(text) for text in after]))
    import_file(shelf, path, session_id=session_id, replace=True)
    assert texts(shelf, session_id) == (before if before[: len(after)] == after else after)


def invalid(messages: list[dict[str, Any]]) -> list[str]:
    """Return what an API would refuse in a request, in words.

    Written here anew, sharing nothing with the store.
    """
    problems = []
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            problems.append(f"{place}: role {role!r}")
        if role == "tool":
            if not waiting or message.get("tool_call_id") != waiting.pop(0):
                problems.append(f"{place}: a result without its call before it")
            if not isinstance(message.get("content"), str | list):
                problems.append(f"{place}: a result without content")
            continue
        if waiting:
            problems.append(f"{place}: calls without results {waiting}")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) < len(waiting):
            problems.append(f"{place}: an id twice in one message")
    return [*problems, *([f"end: calls without results {waiting}"] if waiting else [])]


def test_the_checker_finds_what_it_should() -> None:
    """The checker below is no rubber stamp."""
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}, {"id": "2"}]}
    one, two = ({"role": "tool", "tool_call_id": call_id, "content": "x"} for call_id in "12")
    assert invalid([user("a"), call, one, two]) == []
    for wrong in (
        [call, one],
        [call, two, one],
        [one],
        [call, one, user("a"), two],
        [{"role": "robot"}],
    ):
        assert invalid(wrong)


@pytest.mark.sampled(20)
@needs_transcripts
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[-40:])
def test_a_real_transcript_is_stored_whole_and_gives_valid_views(shelf: Store, path: Path) -> None:
    """Raw equals the parsed file, twice is once, and the API could be sent any view of it.

    Of a subagent that has a file of its own, too, the file that was read first is kept.
    """
    told = {each.id for each in shelf.sessions()}
    report = import_file(shelf, path)
    said: dict[str, list[Message]] = {}
    for event in read(path):
        if isinstance(event, SessionEvent):
            line = said.setdefault(event.session_id, [])
        elif isinstance(event, SessionMessage):
            line.append(event.message)
    for session in report.sessions:
        assert session.differs_at is None
        stored = [each.message for each in shelf.messages(session.id)]
        assert stored == said[session.id] or session.id in told
    assert [each.appended for each in import_file(shelf, path).sessions] == [0] * len(
        report.sessions
    )
    for session in report.sessions:
        for at in {session.head, session.head // 2}:
            sent = shelf.view(session.id, at=at).messages
            assert invalid(sent) == []
            json.dumps(sent, allow_nan=False, ensure_ascii=False).encode()


def test_a_session_tells_where_it_came_from(store: Store, tmp_path: Path) -> None:
    """Its program, its file, and the time of its last message; a later file of it is the newer."""
    noon = 1_760_000_000_000
    path = write(tmp_path / "a.jsonl", user("Hi", timestamp=noon), user("So", timestamp=noon + 5))
    import_file(store, path, session_id="s")
    (found,) = store.sessions(source="openai", since=noon + 5, until=noon + 6)
    assert (found.id, found.source, found.file) == ("s", "openai", str(path))
    assert found.updated_at == noon + 5
    assert store.sessions(source="") == []
    assert import_file(store, path, session_id="s").sessions[0].appended == 0
    assert store.session("s") == found
    moved = path.rename(tmp_path / "b.jsonl")
    import_file(store.scoped("ann"), moved, session_id="mine")
    import_file(store, moved, session_id="s")
    assert store.session("s").file == store.session("mine").file == str(moved)
    assert store.fork("s").source is None
