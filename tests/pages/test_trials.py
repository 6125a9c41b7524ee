"""What somebody wants to know of their sessions, found by three clicks in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browse_pictures import BEGUN, DAY, open_page, serving
from browser import Browser, needs_chromium, until

from store import Store
from store.importing import import_file

pytestmark = [pytest.mark.sqlite_only, pytest.mark.slow, needs_chromium]

OLD, NEW = BEGUN - 60 * DAY, BEGUN
ADDED = "def bill(parcel):\n    return parcel.weight * 3\n" * 30


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a folder of imported sessions, of which one is about the file."""
    folder = tmp_path_factory.mktemp("trials")
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
        store.index()
    return folder / "chat.db"


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
def address(path: Path) -> Iterator[str]:
    """Where the command serves it, with the token."""
    with serving(path) as given:
        yield given


@pytest.fixture
def visitor(address: str, tmp_path: Path) -> Iterator[Visitor]:
    """A person before the list of sessions."""
    browser = Browser(tmp_path / "profile")
    open_page(browser, address)
    yield Visitor(browser)
    browser.close()


class Visitor:
    """A person who clicks, at most three times."""

    def __init__(self, browser: Browser) -> None:
        self.browser, self.clicks = browser, 0

    def click(self, element: str, text: str = "") -> None:
        """Click the first element that a selector finds with a text, and wait for the page."""
        self.clicks += 1
        assert self.clicks <= 3
        found = f"[...document.querySelectorAll({element!r})].find(e => e.textContent.trim().startsWith({text!r}))"
        until(lambda: self.browser.run(f"!!{found}"))
        self.browser.run(f"window.left = true; {found}.click()")
        until(lambda: self.browser.run("!window.left && document.readyState === 'complete'"))

    def write(self, name: str, text: str) -> None:
        """Write into a field of the page, which is no click."""
        self.browser.run(f"document.querySelector('[name={name}]').value = {text!r}")

    def read(self) -> str:
        """Return the text of the page."""
        text: str = self.browser.run("document.getElementById('main').innerText")
        return text


def test_the_session_in_which_a_file_was_mended_last_month(visitor: Visitor) -> None:
    """Its name and the days are asked for; what changed it stands beside the file."""
    visitor.write("q", "tariff.py")
    visitor.write("since", "2026-08-25")
    visitor.click("form.filters button")
    assert "session-02" not in visitor.browser.run("document.body.innerHTML")
    visitor.click("a[data-open]")
    visitor.click(".sections a", "Files")
    (row,) = [line for line in visitor.read().splitlines() if line.startswith("tariff.py")]
    assert row.split("\t")[1].split() == ["3"]


def test_why_the_content_of_a_file_is_no_longer_in_the_prompt(visitor: Visitor) -> None:
    """Beside what was read stands the reason why it is not sent."""
    visitor.click("a[data-open]", "Mend tariff.py")
    visitor.click(".sections a", "Files")
    visitor.click("td:nth-child(3) a")
    said = visitor.read()
    assert "Not sent hidden by compaction 1 saves" in " ".join(said.split())


def test_what_request_40_cost_and_why(visitor: Visitor) -> None:
    """The tokens at the full price say why: none of them was in the cache."""
    visitor.click("a[data-open]", "Mend tariff.py")
    visitor.click(".sections a", "Requests")
    visitor.click("td a[data-open]", "40")
    said = visitor.read()
    assert "Request 40" in said
    assert "$0.1080" in said
    assert "36,000\nat the full price" in said or "at the full price\n36,000" in said
    assert "What the model saw" in said


def test_an_answer_that_was_replaced_by_regenerating_it(visitor: Visitor) -> None:
    """It is a branch that was left."""
    visitor.click("a[data-open]", "Mend tariff.py")
    visitor.click(".sections a", "Tree")
    visitor.click("tbody tr a[data-open]")
    said = visitor.read()
    assert "Looked 49." in said
    assert "which the session has left" in said
