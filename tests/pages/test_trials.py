"""What somebody wants to know of their sessions, found by three clicks in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from browse_pictures import BEGUN, DAY, open_page, serving
from browser import Browser, needs_chromium, until
from conftest import TRANSCRIPTS, needs_transcripts

from store import Policy, Store
from store.exporting import find_fork_siblings
from store.importing import import_file

pytestmark = [pytest.mark.sqlite_only, pytest.mark.slow, needs_chromium]

OLD, NEW = BEGUN - 60 * DAY, BEGUN
RECORDED = ("claude_code_jsonl", "codex_rollout", "pi_session")
ADDED = "def bill(parcel):\n    return parcel.weight * 3\n" * 30


class Trial(NamedTuple):
    """A store, and what is looked for in it: sessions, positions, texts that tell it."""

    path: Path
    mended: tuple[str, str, str, list[str]]
    """The session, the name of the file, a day since when, the positions of the changes."""
    gone: tuple[str, str, str]
    """The session, the position at which a file was read, a reason why it is not sent."""
    costly: tuple[str, str, str]
    """The session, what its request 40 cost, the tokens at the full price."""
    answered: tuple[str, str, str]
    """The session, the answer on its line, the one that was made besides."""
    question: str
    """What was answered."""

    def source(self, session_id: str) -> str:
        """Return the program of a session."""
        with Store(self.path) as store:
            return store.session(session_id).source or ""


@pytest.fixture(
    scope="module", params=["made up", pytest.param("recorded", marks=needs_transcripts)]
)
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """A store with folders of imported sessions."""
    folder = tmp_path_factory.mktemp("trials")
    return make_up(folder) if request.param == "made up" else import_recordings(folder)


def make_up(folder: Path) -> Trial:
    """Import sessions, of which one is about the file, and a tree of answers."""
    with Store(folder / "chat.db") as store:
        for number in range(12):
            begun = NEW + number * DAY if number == 7 else OLD + number * DAY
            lines = [*tell_session("tariff.py" if number in (2, 7) else f"other{number}.py", begun)]
            file = folder / f"session-{number:02}.jsonl"
            file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
            import_file(store, file)
        record_costs(store, "session-07")
        last = store.session("session-07").head
        store.replace("session-07", last - 1, {"role": "assistant", "content": "Another look."})
        store.hide("session-07", 5, 160, "The file was looked at 39 times.")
        answers = [tell_answer("a", "Because of rain."), tell_answer("b", "Because of wind.")]
        tree = {
            "message_tree_id": "t",
            "prompt": tell_answer("t", "Why does it fall?", "prompter", answers),
        }
        (folder / "tree.jsonl").write_text(f"{json.dumps(tree)}\n", "utf-8")
        (answered, _) = import_file(store, folder / "tree.jsonl").sessions
        store.index()
    return Trial(
        folder / "chat.db",
        ("session-07", "tariff.py", "2026-08-25", ["3"]),
        ("session-07", "7", "hidden by compaction 1"),
        ("session-07", "$0.1080", "36,000"),
        (answered.id, "Because of rain.", "Because of wind."),
        "Why does it fall?",
    )


def tell_answer(
    name: str, text: str, role: str = "assistant", replies: Sequence[Any] = ()
) -> dict[str, Any]:
    """Return a message of a tree of answers."""
    return {"message_id": name, "role": role, "text": text, "replies": [*replies]}


def import_recordings(folder: Path) -> Trial:
    """Import folders of recorded conversations, and look in them with the store itself."""
    with Store(folder / "chat.db", durability="normal") as store:
        trees = [
            session.id
            for file in list_files("oasst_tree")
            for session in import_file(store, file).sessions
        ]
        files = [each for kind in RECORDED for each in list_files(kind)]
        recorded = [session.id for file in files for session in import_file(store, file).sessions]
        store.index()
        found = [
            next(filter(None, (look(store, each) for each in recorded)))
            for look in (find_change, find_gone, find_costly)
        ]
        answered = next(filter(None, (find_answers(store, each) for each in trees)))
        question = str(store.message(answered[0], 1).message["content"])
    return Trial(folder / "chat.db", *found, answered, question)


def list_files(kind: str) -> list[Path]:
    """Return some files of a kind."""
    return [each for each in sorted((TRANSCRIPTS / kind).rglob("*.jsonl")) if each.is_file()][:8]


def find_change(store: Store, session_id: str) -> Any:
    """Return a file that only this session changed in its time."""
    paths = {each.path for each in store.files(session_id) if each.kind == "file_edit"}
    since = datetime.fromtimestamp(store.session(session_id).updated_at / 1000, UTC) - timedelta(30)
    day = f"{since.date()}"
    for path in sorted(paths):
        name = path.rpartition("/")[2]
        hits = store.search(name, by="session", since=since)
        if [each.session.id for each in hits] == [session_id]:
            uses = store.files(session_id, path)
            return (
                session_id,
                path,
                day,
                [str(each.seq) for each in uses if each.kind == "file_edit"],
            )
    return None


def find_gone(store: Store, session_id: str) -> Any:
    """Return where a file was read first that a compaction hides; it is made for that."""
    files = [each for each in store.files(session_id) if each.kind != "file_edit"]
    if len(files) < 9:
        return None
    store.compact(session_id, Policy(keep_turns=1), lambda _: "Files were read.")
    gone = store.hidden(session_id).keys() & {each.seq for each in files}
    return (session_id, str(min(gone)), "hidden by compaction 1") if gone else None


def find_costly(store: Store, session_id: str) -> Any:
    """Return what request 40 of a session cost, and its tokens at the full price."""
    for each in store.requests(session_id, start=40, stop=40):
        usage = each.usage
        if usage and usage.cost:
            cost = f"${usage.cost:.2f}" if usage.cost >= 1 else f"${usage.cost:.4f}"
            return session_id, cost, f"{usage.input - usage.cached - usage.written:,}"
    return None


def find_answers(store: Store, session_id: str) -> Any:
    """Return the beginnings of an answer, and of the one made after it."""
    beside = find_fork_siblings(store, store.session(session_id)).get(2, [])
    if not beside or beside[0].is_older:
        return None
    texts = [
        store.message(name, 2).message["content"] for name in (session_id, beside[0].session.id)
    ]
    return session_id, *(text.split("\n")[0][:40] for text in texts)


def tell_session(name: str, begun: int) -> Iterator[dict[str, Any]]:
    """Yield a session that reads a file again and again, and mends it."""
    yield {"role": "user", "content": f"Mend {name}", "timestamp": begun}
    yield from tell_call("Edit", {"file_path": name, "old_string": "2", "new_string": "3"}, begun)
    yield {"role": "assistant", "content": "It is mended.", "timestamp": begun + 5_000}
    for turn in range(50):
        now = begun + 60_000 * (turn + 1)
        yield {"role": "user", "content": f"Look again, {turn}", "timestamp": now}
        yield from tell_call("Read", {"file_path": name}, now)
        yield {"role": "assistant", "content": f"Looked {turn}.", "timestamp": now + 5_000}


def tell_call(tool: str, arguments: dict[str, str], now: int) -> Iterator[dict[str, Any]]:
    """Yield a call of a tool and its result."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": f"{tool}{now}", "type": "function", "function": function}
    yield {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": now + 1_000}
    result = {"role": "tool", "tool_call_id": call["id"], "name": tool, "content": ADDED}
    yield {**result, "timestamp": now + 2_000}


def record_costs(store: Store, session_id: str) -> None:
    """Record a usage before each answer; that of request 40 found nothing in the cache."""
    answers = [each for each in store.messages(session_id) if each.message["role"] == "assistant"]
    for number, each in enumerate(answers, 1):
        sent, cached = 900 * number, 0 if number == 40 else 900 * (number - 1)
        cost = round((sent - cached) * 3e-6 + cached * 3e-7, 4)
        store.record_usage(
            session_id, input=sent, cached=cached, output=50, cost=cost, seq=each.seq - 1, now=NEW
        )


@pytest.fixture(scope="module")
def address(trial: Trial) -> Iterator[str]:
    """Where the command serves it, with the token."""
    with serving(trial.path) as given:
        yield given


@pytest.fixture
def visitor(address: str, tmp_path: Path) -> Iterator[Visitor]:
    """A person before the list of sessions."""
    browser = Browser(tmp_path / "profile")
    open_page(browser, address)
    yield Visitor(browser)
    browser.close()


class Visitor:
    """A person who clicks with a mouse, at most three times."""

    def __init__(self, browser: Browser) -> None:
        self.browser, self.clicks = browser, 0

    def click(self, element: str, text: str = "", *, stays: bool = False) -> None:
        """Click the first element that a selector finds with a text, and wait for the page."""
        self.clicks += 1
        assert self.clicks <= 3
        found = f"[...document.querySelectorAll({element!r})].find(e => e.checkVisibility() && e.textContent.trim().startsWith({text!r}))"
        until(lambda: self.browser.run(f"!!{found}"))
        self.browser.run(f"window.left = true; {found}.scrollIntoView({{block: 'center'}})")
        box = self.browser.run(
            f"(({{x, y, width, height}}) => [x + Math.min(width, 20) / 2, y + height / 2])({found}.getClientRects()[0])"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.do(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )
        if not stays:
            until(lambda: self.browser.run("!window.left && document.readyState === 'complete'"))

    def open(self, session_id: str) -> None:
        """Click a session of the list."""
        there = f"/s/{quote(session_id, safe='')}"
        self.click(f'a[data-open][href="{there}"], a[data-open][href^="{there}?"]')

    def write(self, name: str, text: str, *, enter: bool = False) -> None:
        """Write into a field of the page, which is no click, and send it by the key Enter."""
        field = f"document.querySelector('[name={name}]')"
        self.browser.run(f"window.left = true; {field}.value = {text!r}; {field}.focus()")
        if enter:
            for kind in ("keyDown", "keyUp"):
                self.browser.do("Input.dispatchKeyEvent", type=kind, key="Enter", text="\r")
            until(lambda: self.browser.run("!window.left && document.readyState === 'complete'"))

    def read(self) -> str:
        """Return the text of the page."""
        text: str = self.browser.run("document.getElementById('main').innerText")
        return text


def test_the_session_in_which_a_file_was_mended_last_month(visitor: Visitor, trial: Trial) -> None:
    """Its name and the days are asked for; what changed it stands beside the file."""
    session_id, path, since, places = trial.mended
    visitor.write("q", path.rpartition("/")[2])
    visitor.write("since", since)
    visitor.click("form.filters button")
    visitor.click("a[data-open]")
    assert visitor.browser.run("document.querySelector('.about code').textContent") == session_id
    visitor.click(".sections a", "Files")
    (row,) = [line for line in visitor.read().splitlines() if line.split("\t")[0] == path]
    assert row.split("\t")[1].split()[: len(places)] == places


def test_why_the_content_of_a_file_is_no_longer_in_the_prompt(
    visitor: Visitor, trial: Trial
) -> None:
    """Beside what was read stands the reason why it is not sent."""
    session_id, place, reason = trial.gone
    visitor.write("source", trial.source(session_id), enter=True)
    visitor.open(session_id)
    visitor.click(".sections a", "Files")
    visitor.click(f'td:nth-child(3) a[href$="#m{place}"]')
    why = visitor.browser.run(
        f"document.getElementById('m{place}').closest('.pair').querySelector('.why').innerText"
    )
    assert reason in " ".join(why.split())


def test_what_request_40_cost_and_why(visitor: Visitor, trial: Trial) -> None:
    """The tokens at the full price say why."""
    session_id, cost, full = trial.costly
    visitor.write("source", trial.source(session_id), enter=True)
    visitor.open(session_id)
    visitor.click(".sections a", "Requests")
    visitor.click("td a[data-open]", "40")
    said = visitor.read()
    assert "Request 40" in said
    assert cost in said
    assert f"{full}\nAt the full price" in said or f"At the full price\n{full}" in said
    assert "What the model saw" in said


def test_an_answer_that_was_replaced_by_regenerating_it(visitor: Visitor, trial: Trial) -> None:
    """It is a tab beside the one that the session goes on with."""
    session_id, answer, other = trial.answered
    visitor.write("q", trial.question, enter=True)
    visitor.open(session_id)
    assert answer in visitor.read()
    assert other not in visitor.read()
    visitor.click(".tabs label", "›", stays=True)
    assert answer not in visitor.read()
    assert other in visitor.read()


def test_an_answer_that_the_session_has_left(visitor: Visitor, trial: Trial) -> None:
    """It is in the tree, as a branch."""
    if trial.mended[0] != "session-07":
        pytest.skip("no program that was recorded goes on in a branch of the same session")
    visitor.open("session-07")
    visitor.click(".sections a", "Tree")
    visitor.click("tbody tr a[data-open]")
    said = visitor.read()
    assert "Looked 49." in said
    assert "which the session has left" in said
