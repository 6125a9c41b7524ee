"""The pages: who may see them, and what they show."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from html_reading import ATTRIBUTES, ELEMENTS, list_hostile_texts
from starlette.testclient import TestClient

from store import Policy, Store
from store.cli import main
from store.inspection import views
from store.pages import build_app, costs, files, page_rendering, requests, sessions, sql

NOW = 1_790_000_000_000
BASE = "http://127.0.0.1:8765"
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; alert(1); '",
    "</pre></details><iframe src=//evil.example>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "<svg onload=alert(1)><style>@import '//evil.example'</style></svg>",
)
PAGES = (
    "/",
    "/s/{}",
    "/s/{}?mode=sent",
    "/s/{}?mode=both",
    "/s/{}?only=2",
    "/requests/{}/0",
    "/requests/{}/1",
    "/requests/{}/0?at=2&policy=default",
    "/tree/{}",
    "/policies/{}",
    "/policies/{}?policy=raw&policy=agent",
    "/files/{}",
)

ACTING = ("script", "style", "meta", "link", "form", "base")
"""Elements by which a page acts."""
PLACE = re.compile(r"/[^/]|/$|[?#]|https?://|mailto:|data:image/(png|jpeg|gif|webp|avif);base64,")
"""Where a link of a page, or of a text on it, may lead."""

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def store(made_file: Path, tmp_path: Path) -> Iterator[Store]:
    """A store with a conversation, its requests, an edited question and a fork."""
    with Store(shutil.copy(made_file, tmp_path / "chat.db")) as opened:
        fill(opened)
        yield opened


def fill(store: Store) -> None:
    """Say something in two sessions of two owners."""
    store.create_session("ann's/1", owner="ann", project_root="/home/ann/parcel", title="Parcel")
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "Read", "arguments": '{"file_path": "parcel.py"}'},
    }
    store.append("ann's/1", {"role": "user", "content": "Mend parcel.py"})
    store.record_usage("ann's/1", input=1200, output=30, model="gpt-4.1-mini", cost=0.25)
    store.append("ann's/1", {"role": "assistant", "content": None, "tool_calls": [call]})
    store.append(
        "ann's/1",
        {"role": "tool", "tool_call_id": "c1", "name": "Read", "content": "x = 1\n" * 900},
    )
    store.append("ann's/1", {"role": "assistant", "content": "It is mended."})
    store.replace("ann's/1", 3, {"role": "assistant", "content": "It is mended twice."})
    store.create_session("bob1", owner="bob")
    store.append("bob1", {"role": "user", "content": "a secret of bob"})
    store.index()


def ask(store: Store, owner: str | None = None, admitted: bool = True) -> TestClient:
    """Return who asks for pages, with the cookie or without."""
    client = TestClient(build_app(store, token="right", owner=owner), base_url=BASE)
    if admitted:
        assert client.get("/?token=right").status_code == 200
    return client


def address(path: str, session_id: str = "ann's/1") -> str:
    """Return the address of a page of a session."""
    return path.format(page_rendering.quote_part(session_id))


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 200),
        ("HEAD", "/", {}, 200),
        ("GET", "/static/pages.css", {}, 200),
        ("POST", "/", {}, 405),
        ("DELETE", "/s/bob1", {}, 405),
        ("OPTIONS", "/", {}, 405),
        ("GET", "/", {"host": "evil.example"}, 421),
        ("GET", "/", {"host": "localhost:8765.evil.example"}, 421),
        ("GET", "/", {"host": "[::1]:8765", "cookie": ""}, 403),
        ("GET", "/", {"origin": "http://evil.example"}, 403),
        ("GET", "/", {"origin": "null"}, 403),
        ("GET", "/", {"origin": BASE}, 200),
        ("GET", "/", {"cookie": "convostore-8765=guessed"}, 403),
        ("GET", "/", {"cookie": ""}, 403),
        ("GET", "/?token=wrong", {}, 403),
        ("GET", "/?token=%C3%A9", {}, 403),
        ("GET", "/static/pages.css", {"cookie": ""}, 403),
        ("GET", "/live/bob1?from=1", {"cookie": ""}, 403),
        ("GET", "/static/../server.py", {}, 404),
        ("GET", "/static/%2e%2e/server.py", {}, 404),
        ("GET", "/nothing", {}, 404),
        ("GET", "/s/nobody", {}, 404),
        ("GET", "/s/bob1?from=x", {}, 400),
        ("GET", "/s/bob1?mode=x", {}, 400),
        ("GET", "/s/bob1?mode=sent&policy=x", {}, 400),
        ("GET", "/?since=x", {}, 400),
        ("GET", "/?after=x", {}, 400),
        ("GET", "/?q=%22", {}, 200),
        ("GET", "/?q=%00", {}, 200),
    ],
)
def test_who_may_ask(
    store: Store, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    """Each answer, refusals included, forbids the browser to load or run anything else."""
    answer = ask(store).request(method, path, headers=headers)
    assert answer.status_code == status, answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert "traceback" not in answer.text.lower()


def test_an_unknown_address_is_told_on_a_page(store: Store) -> None:
    """In the language of the visitor, with a way to the sessions."""
    answer = ask(store).get("/nothing/here?lang=zh")
    assert answer.status_code == 404
    assert "此地址没有页面" in answer.text
    assert '<a href="/">' in answer.text


def test_a_token_becomes_a_cookie(store: Store) -> None:
    """It is in no later address, and no script and no other site has the cookie."""
    client = ask(store, admitted=False)
    assert client.get("/").status_code == 403
    answer = client.get("/s/bob1?token=right&from=1", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{BASE}/s/bob1?from=1")
    cookie = answer.headers["set-cookie"].lower()
    assert "right" not in cookie
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/s/bob1").status_code == 200


def test_an_owner_sees_no_others(store: Store) -> None:
    """Neither in the list, nor by a search, nor by an address; and there is no SQL."""
    client = ask(store, owner="ann")
    pages = [client.get(path).text for path in ("/", "/?q=secret", "/?q=parcel")]
    assert ["bob1" in page for page in pages] == [False] * 3
    assert ["Parcel" in page for page in pages] == [True, False, True]
    assert [client.get(address(path, "bob1")).status_code for path in PAGES[1:]] == [404] * len(
        PAGES[1:]
    )
    assert client.get("/live/bob1?from=1&branch=1").status_code == 404
    assert client.get("/sql?sql=select+1").status_code == 404
    assert "bob" not in client.get("/costs").text
    assert 'href="/sql"' not in pages[0]
    assert 'href="/sql"' in ask(store).get("/").text


def test_the_list(store: Store) -> None:
    """Chosen by words, project and days, with costs; a page goes on where the last one ended."""
    client = ask(store)
    assert re.findall(r'href="/s/([^"]+)"', client.get("/").text) == ["bob1", "ann%27s%2F1"]
    assert "$0.2500" in client.get("/").text
    found = client.get("/?q=mended%20twice").text
    assert "<mark>mended</mark> <mark>twice</mark>" in found
    assert "#m4" in found
    for query, there in (
        ("project=/home/ann", True),
        ("project=/home/an", False),
        ("q=mended&project=/home/ann/parcel", True),
        ("q=mended&project=/home/ann/par", False),
        ("q=mended&source=codex", False),
        ("until=2020-01-01", False),
        ("since=2020-01-01&source=", True),
    ):
        assert ("Parcel" in client.get(f"/?{query}").text) is there, query
    for number in range(60):
        store.create_session(f"more{number:02}")
    first = client.get("/").text
    (after,) = re.findall(r'rel="next" href="/(\?[^"]+)"', first)
    store.append("more30", {"role": "user", "content": "again"})
    second = client.get(f"/{after}").text
    listed = [re.findall(r'href="/s/([^"?]+)"', page) for page in (first, second)]
    assert len({*listed[0], *listed[1]}) == len(listed[0]) + len(listed[1]) == 62


def test_the_pages_of_a_search(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session with the words is on one of them, whatever is stored between two pages."""
    monkeypatch.setattr(sessions, "LISTED_SESSIONS", 4)
    for number in range(9):
        store.create_session(f"far{number}", project_root="/far" if number % 2 else "/near")
        store.append(f"far{number}", {"role": "user", "content": "tariff " + "x " * 9 * number})
    client, path = ask(store), "/?q=tariff"
    pages: list[list[str]] = []
    while path:
        text = client.get(path).text
        pages.append(re.findall(r'data-open href="/s/(\w+)', text))
        path = "".join(
            f"/{html.unescape(each)}" for each in re.findall(r'rel="next" href="/(\S+)"', text)
        )
        store.append("far8", {"role": "user", "content": "tariff"})  # it was last, and is first
        store.create_session(f"new{len(pages)}")
        store.append(f"new{len(pages)}", {"role": "user", "content": "tariff"})
    listed = [each for page in pages for each in page]
    assert [len(page) for page in pages] == [4, 4, 3]
    assert len({*listed}) == 11
    assert {*listed} >= {f"far{number}" for number in range(9)}
    far = client.get("/?q=tariff&project=/far").text
    assert sorted(re.findall(r'data-open href="/s/(\w+)', far)) == ["far1", "far3", "far5", "far7"]
    assert 'rel="next"' not in far
    assert client.get("/?q=tariff&after=x").status_code == 400


def test_a_conversation(store: Store) -> None:
    """As stored, as sent and side by side, with reasons, alternatives and requests."""
    client = ask(store)
    raw = client.get(address("/s/{}")).text
    assert "It is mended twice." in raw
    assert 'id="m4"' in raw
    assert "$0.2500" in raw
    assert re.search(r'href="/requests/ann%27s%2F1/1"', raw)
    assert re.search(r'href="/s/ann%27s%2F1\?branch=\d+&amp;from=4"', raw)
    (branch,) = [each.branch for each in store.siblings("ann's/1", 4) if not each.current]
    assert "It is mended." in client.get(address("/s/{}") + f"?branch={branch}").text
    store.hide("ann's/1", 2, 3, "It was read.")
    both = client.get(address("/s/{}?mode=both&policy=raw")).text
    assert "hidden by compaction" in both
    assert "It was read." in both
    assert "Sent as it is" in both
    assert client.get(address("/s/{}?mode=sent&policy=raw")).text.count("x = 1") == 0
    assert len(client.get(address("/s/{}?only=3")).text) > len("x = 1\n" * 900)


def test_answers_on_forks_are_alternatives(store: Store) -> None:
    """Each with a link to its session, beside the one that the session has left."""
    store.fork("ann's/1", 3, "fork/1")
    store.append("fork/1", {"role": "assistant", "content": "It cannot be mended."})
    store.fork("ann's/1", 3, "fork/2")
    store.append("fork/2", {"role": "assistant", "content": "It need not be mended."})
    shown = ask(store).get(address("/s/{}")).text
    assert re.findall(r'aria-label="(\d/\d)"', shown) == ["1/4", "2/4", "3/4", "4/4"]
    assert {"/s/fork%2F1?from=4", "/s/fork%2F2?from=4"} < {*re.findall(r'href="([^"]+)"', shown)}
    assert "mended twice" in ask(store).get("/s/fork%2F1").text


def test_a_day_stands_once_above_what_is_sent(store: Store) -> None:
    """Also where reasons stand between the messages."""
    days = [NOW, NOW, NOW, NOW + 86_400_000]
    store.create_session("days")
    store.append("days", [{"role": "user", "content": "x", "timestamp": each} for each in days])
    shown = ask(store).get("/s/days?mode=sent&policy=raw").text
    assert re.findall(r'class="day".*?(\d{4}-\d\d-\d\d)', shown) == ["2026-09-21", "2026-09-22"]


def test_reasons_are_those_of_the_view(store: Store) -> None:
    """Side by side each message that is not sent as it is has the reason that the view gives."""
    for text in ("x = 2\n", "x = 3\n"):
        store.append("ann's/1", read_again(text * 900))
    store.append("ann's/1", {"role": "user", "content": "Well?", "timestamp": NOW})
    client, entries = ask(store), store.view("ann's/1", Policy.named("turns")).entries
    shown = html.unescape(client.get(address("/s/{}?mode=both&policy=turns")).text)
    changed = [entry for entry in entries if entry.rule]
    assert [entry.rule for entry in changed] == ["tool_output"] * 3
    for entry in changed:
        line = f'<a href="#m{entry.seq}">{entry.seq}</a> <b>Replaced</b> <code>{entry.rule}</code> {entry.reason}'
        assert line in shown
    request = html.unescape(client.get(address("/requests/{}/0?at=9&policy=turns")).text)
    assert all(request.count(entry.reason) > 1 for entry in changed)
    for path in ("/s/{}?mode=both&policy=turns&lang=zh", "/requests/{}/0?at=9&policy=turns"):
        said = client.get(address(path)).text
        assert "所属轮次已结束，简短形式即可" in said
        assert "its turn is finished" not in said


def read_again(text: str, path: str = "parcel.py") -> list[dict[str, Any]]:
    """Return a call that reads a file, and its result."""
    name = f"call{len(text)}{text[4]}"
    call = {
        "id": name,
        "type": "function",
        "function": {"name": "Read", "arguments": json.dumps({"file_path": path})},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": text, "timestamp": NOW},
    ]


def test_a_request(store: Store) -> None:
    """Its cost, what it holds, and the difference to the one before."""
    store.record_usage("ann's/1", input=2500, cached=1100, output=7, model="gpt-4.1-mini")
    client = ask(store)
    listed = client.get(address("/requests/{}/0")).text
    assert re.findall(r'href="/requests/ann%27s%2F1/(\d)">\d<', listed) == ["2", "1"]
    first, second = (client.get(address(f"/requests/{{}}/{number}")).text for number in (1, 2))
    assert "$0.2500" in first
    assert "The first 1 messages" in second
    assert [int(each) for each in re.findall(r'data-open href="[^"]*#m(\d)"', second)] == [2, 3, 4]
    assert client.get(address("/requests/{}/3")).status_code == 400
    assert client.get(address("/requests/{}/0?at=99")).status_code == 400


def test_the_difference_to_a_longer_request_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no longer sent is named, beside what stands for it."""
    store.view("ann's/1", Policy.named("raw"), record=True)
    store.hide("ann's/1", 2, 3, "It was read.")
    store.view("ann's/1", Policy.named("raw"), record=True)
    said = ask(store).get(address("/requests/{}/2")).text
    rows = re.findall(r'<tr data-item><td class="number">(.*?)</td><td>(\w+)', said)
    told = [(re.sub("<.*?>", "", place), kind) for place, kind in rows]
    assert told == [("2", "gone"), ("3", "gone"), ("", "new")]
    monkeypatch.setattr(requests, "LISTED_DIFFERENCES", 2)
    said = ask(store).get(address("/requests/{}/2")).text
    assert said.count("gone") == 2
    assert "Only the first 2 are listed" in said


def test_what_a_request_held(store: Store) -> None:
    """A page of its messages, the last ones first to be seen; one of them alone is whole."""
    said = [{"role": "user", "content": f"{number} " + "y" * 40_000} for number in range(250)]
    store.create_session("long")
    store.append("long", said)
    store.append("long", {"role": "user", "content": "ends"})
    client, seen, path = ask(store), [], "/requests/long/0?at=250"
    while path:
        text = client.get(path).text
        assert len(text) < 200_000
        seen = [int(each) for each in re.findall(r'id="m(\d+)"', text)] + seen
        (sent,) = re.findall(r'<h2 id="messages">.*', text, re.DOTALL)
        back = re.findall(r'href="(\?[^"#]*)#messages">← Previous', sent)
        path = back and "/requests/long/0" + html.unescape(back[0])
    assert seen == [*range(1, 251)]
    assert "y" * 40_000 not in text
    (whole, *_) = re.findall(r'href="(\?[^"#]*only=1)#messages"', text)
    assert "0 " + "y" * 40_000 in client.get("/requests/long/0" + html.unescape(whole)).text


def test_requests_are_listed_in_pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest first; one of them is found by its number."""
    monkeypatch.setattr(requests, "LISTED_REQUESTS", 20)
    for number in range(45):
        store.record_usage("bob1", input=number, output=1)
    client, seen, path = ask(store), [], "/requests/bob1/0"
    while path:
        text = client.get(path).text
        seen += [int(each) for each in re.findall(r'href="/requests/bob1/(\d+)">\d', text)]
        older = re.findall(r'rel="next" href="(\?to=\d+)"', text)
        path = older and f"/requests/bob1/0{older[0]}"
    assert seen == [*range(45, 0, -1)]
    assert "<h2>Request 40</h2>" in client.get("/requests/bob1/0?number=40").text
    assert client.get("/requests/bob1/0?number=46").status_code == 400


def test_a_recorded_request(store: Store) -> None:
    """It has its own policy, layers and differences; what is erased since is named."""
    policy = Policy.named("turns")
    store.context("ann's/1", system="Be brief.", policy=policy, record=True)
    store.append("ann's/1", {"role": "user", "content": "And?"})
    store.context("ann's/1", system="Be brief.", policy=policy, record=True)
    client = ask(store)
    assert "turns" in client.get(address("/requests/{}/0")).text
    first, second = (client.get(address(f"/requests/{{}}/{number}")).text for number in (1, 2))
    assert "byte for byte" in first
    assert "<select" not in second
    assert "its turn is finished" in second
    assert "system" in second
    assert "#m5" in second
    (saw,) = re.findall(r'<section class="messages">.*</section>', second, re.DOTALL)
    assert re.findall(r"Be brief|And\?", saw) == ["Be brief", "And?"]
    store.redact("ann's/1", 1, "asked for")
    assert "No longer there" in client.get(address("/requests/{}/2")).text


def test_the_tree(store: Store) -> None:
    """Each branch has a line: one that was left leads to its messages, a fork to its session."""
    store.fork("ann's/1", 2, "a fork", title="Another way")
    shown = ask(store).get(address("/tree/{}")).text
    assert shown.count('<path class="lane') == 4
    assert shown.count(' left" d=') == 1
    assert ">left: 4–4<" in shown
    assert 'href="/s/a%20fork"' in shown


def test_policies(store: Store) -> None:
    """Replayed by those chosen; others are told what is wrong with their names."""
    client = ask(store)
    before = client.get(address("/policies/{}")).text
    assert "<polyline" not in before
    after = client.get(address("/policies/{}?policy=raw&policy=agent")).text
    assert after.count("<polyline") == 4
    assert client.get(address("/policies/{}?policy=x")).status_code == 400
    assert client.get(address("/policies/{}?policy=raw&provider=x")).status_code == 400


def test_costs(store: Store) -> None:
    """By project and model, with a bar a day."""
    client = ask(store)
    shown = client.get("/costs").text
    assert shown.count('<rect class="bar"') == 1
    assert shown.count('<rect class="bar share" width="100.00"') == 4
    assert 'href="/?project=%2Fhome%2Fann%2Fparcel"' in shown
    assert "gpt-4.1-mini" in shown
    assert "<rect" not in client.get("/costs?until=2020-01-01").text
    store.record_usage("bob1", input=5, output=1, model="unknown", now=NOW - 10**12)
    assert '"bar share"' not in client.get("/costs?until=1999-01-01").text
    assert client.get("/costs?by=hour").status_code == 400


def test_files(store: Store) -> None:
    """With the positions at which they were read, commands, and failures."""
    call = {
        "id": "b",
        "type": "function",
        "function": {"name": "Bash", "arguments": '{"command": "make <all>"}'},
    }
    store.append("ann's/1", {"role": "assistant", "content": None, "tool_calls": [call]})
    store.append(
        "ann's/1",
        {
            "role": "tool",
            "tool_call_id": "b",
            "name": "Bash",
            "content": "Error: no <b>",
            "messageStatus": "error",
        },
    )
    shown = ask(store).get(address("/files/{}")).text
    assert "<code>parcel.py</code>" in shown
    assert shown.count("make &lt;all&gt;") == 2
    assert "failed" in shown


def test_files_are_listed_in_pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is on one page; of many places the first stand there, and all on its own page."""
    monkeypatch.setattr(files, "LISTED_FILES", 3)
    monkeypatch.setattr(files, "LISTED_USES", 1)
    for number, name in enumerate(("a.py", "b.py", "c.py", "parcel.py", "parcel.py")):
        store.append("ann's/1", read_again(f"x = {number}\n", name))
    client = ask(store)
    found = [client.get(address("/files/{}") + f"?from={start}").text for start in (1, 4)]
    names = [re.findall(r"<code>(\w+\.py)</code></a></td>", each) for each in found]
    assert names == [["a.py", "b.py", "c.py"], ["parcel.py"]]
    assert 'rel="next" href="?from=4"' in found[0]
    assert 'rel="prev" href="?from=1"' in found[1]
    (more,) = re.findall(r'href="(\S+)">\+(\d)</a>', found[1])
    assert more == ("/files/ann%27s%2F1?path=parcel.py", "2")
    uses = store.files("ann's/1", "parcel.py")
    own = client.get(html.unescape(more[0])).text
    assert [int(each) for each in re.findall(r'#m(\d+)">', own)][: len(uses)] == [
        use.seq for use in uses
    ]


def test_sql(store: Store) -> None:
    """Rows with links to sessions; what is wrong or not allowed is told; nothing changes."""
    client = ask(store)
    assert len(sql.load_ready_queries()) == 10
    for each in sql.load_ready_queries():
        answer = client.get("/sql", params={"sql": each.sql}).text
        assert "problem" not in answer, each
    found = client.get("/sql?sql=SELECT+session_id,+seq,+1.25+AS+n+FROM+session_messages").text
    assert 'href="/s/ann%27s%2F1?from=1#m1"' in found
    assert '<td class="number">1.25</td>' in found
    for refused in ("DELETE FROM messages", "SELECT * FROM nothing", "SELECT", "ATTACH 'x' AS y"):
        answer = client.get("/sql", params={"sql": refused})
        assert 'class="problem"' in answer.text
    assert len(store.messages("ann's/1")) == 4


def test_pages_turn_over_a_long_line(store: Store) -> None:
    """Forwards and backwards, each position is on one page, whatever messages weigh."""
    store.create_session("long")
    sizes = [10, 40_000, 200]
    store.append(
        "long", [{"role": "user", "content": "y" * sizes[each % 3]} for each in range(250)]
    )
    client, seen, path = ask(store), [], "/s/long"
    while path:
        text = client.get(path).text
        assert len(text) < 200_000
        seen += [int(each) for each in re.findall(r'id="m(\d+)"', text)]
        path = "".join(re.findall(r'rel="next" href="(\?from=\d+)"', text)[:1])
        path = path and f"/s/long{path}"
    assert seen == [*range(1, 251)]
    text = client.get("/s/long?to=250").text
    (back,) = {*re.findall(r'rel="prev" href="\?to=(\d+)"', text)}
    assert re.findall(r'id="m(\d+)"', text)[0] == str(int(back) + 1)


def test_what_is_not_sent_takes_no_room_of_what_is(store: Store) -> None:
    """However much is hidden, it passes in a line; forwards and backwards."""
    store.create_session("long")
    said = [{"role": "user", "content": f"{number} " + "y" * 2_000} for number in range(300)]
    store.append("long", said)
    store.hide("long", 2, 290, "Much was said.")
    for path in ("/s/long?mode=sent&policy=raw", "/s/long?mode=sent&policy=raw&to=300"):
        shown = ask(store).get(path).text
        assert {*re.findall(r'id="m(\d+)"', shown)} == {"1", *map(str, range(291, 301))}
        assert re.search(r"2–290 <b>Not sent</b>", shown)
        assert "Much was said." in shown


def test_news_come_by_themselves(store: Store) -> None:
    """New messages, the answer under way, and the word that the line is another one."""
    client, branch = ask(store), store.session("bob1").branch
    path = f"/live/bob1?from=2&branch={branch}&state="
    with store.streaming("bob1", {"role": "assistant"}, every_ms=0) as answer:
        answer.write("<b>Half</b> an ans")
        first = client.get(path)
        assert "&lt;b&gt;Half&lt;/b&gt; an ans" in first.text
        assert "being written" in first.text
    state, following = first.headers["x-state"], first.headers["x-next"]
    news = client.get(f"/live/bob1?from={following}&branch={branch}&state={state}")
    assert 'id="m2"' in news.text
    assert news.headers["x-next"] == "3"
    assert news.headers["x-state"] != state
    store.rewind("bob1", 1)
    assert client.get(f"/live/bob1?from=3&branch={branch}&state={state}").status_code == 205


def test_what_is_sent_is_shown_anew_after_news(store: Store) -> None:
    """A new message may change all that is sent; an answer under way does not."""
    client, branch = ask(store), store.session("bob1").branch
    shown = client.get("/s/bob1?mode=sent").text
    (state,) = re.findall(r'data-mode="sent" data-from="2".*data-state="([^"]+)"', shown)
    path = f"/live/bob1?from=2&branch={branch}&mode=sent&state={state}"
    with store.streaming("bob1", {"role": "assistant"}, every_ms=0) as answer:
        answer.write("Half an ans")
        assert "Half an ans" in client.get(path).text
    told = client.get(path)
    assert (told.status_code, told.headers["x-head"]) == (205, "2")


class Elements(HTMLParser):
    """The elements of pages: their names, the names of their attributes, and where they lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.places: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.names[tag] += 1
        self.attributes.update(name for name, _ in attrs)
        self.places.update(
            value or "" for name, value in attrs if name in ("href", "src", "action", "data-live")
        )
        if tag != "a":
            self.loaded.update(value or "" for name, value in attrs if name in ("href", "src"))


@pytest.mark.sampled(len(HOSTILE) + 1)
@pytest.mark.parametrize("text", [" ".join(HOSTILE), *HOSTILE])
def test_hostile_texts_are_texts(store: Store, text: str) -> None:
    """In ids, titles, projects, owners, roles, names, words and results: no element comes of them."""
    store.create_session("clean", title="x", project_root="x", owner="x")
    say(store, "clean", "alert evil")
    clean = Elements("".join(pages(ask(store), "clean")))
    store.create_session(text, title=text, project_root=text, owner=text)
    say(store, text, text)
    found = Elements("".join(pages(ask(store), text)))
    assert found.names.keys() <= clean.names.keys()
    assert found.attributes <= clean.attributes
    assert [place for place in found.places if not re.match("/[^/]|/$|[?#]", place)] == []


@pytest.mark.slow
def test_every_hostile_text_is_a_text(store: Store) -> None:
    """Each that a file is tried with: no more elements that act, no attribute, no place to load."""
    store.create_session("clean", title="x", project_root="x", owner="x")
    say(store, "clean", "alert evil")
    clean = Elements("".join(pages(ask(store), "clean")))
    harmless = {*clean.attributes}.union(*ATTRIBUTES.values())
    for number, text in enumerate(list_hostile_texts("http://127.0.0.1:9")):
        safe = text.encode("utf-8", "replace").decode().replace("\0", "")
        name = f"<b>{number}</b>"
        store.create_session(name, title=safe[:200], project_root=safe[:200], owner=safe[:200])
        say(store, name, safe[:200])
        store.append(name, {"role": "user", "content": safe})
        found = Elements("".join(pages(ask(store), name)))
        assert found.names.keys() <= clean.names.keys() | ELEMENTS, text
        counts = [[each.names[name] for name in ACTING] for each in (found, clean)]
        assert counts[0] == counts[1], text
        assert found.attributes <= harmless, text
        assert [each for each in found.places if not PLACE.match(each)] == [], text
        assert found.loaded <= clean.loaded, text


def say(store: Store, session_id: str, text: str) -> None:
    """Say a text wherever a session has one; leave an answer that broke off."""
    store.set_origin(session_id, text)
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
    store.append(session_id, {"role": "user", "content": text, "name": text})
    store.record_usage(session_id, input=1, output=1, model=text)
    store.append(session_id, {"role": "assistant", "content": text, "tool_calls": [call]})
    store.append(session_id, {"role": "tool", "tool_call_id": text, "content": text})
    store.replace(session_id, 2, {"role": "assistant", "content": text})
    store.append(session_id, {"role": text, "content": text})
    with suppress(RuntimeError), store.streaming(session_id, {"role": "assistant"}) as answer:
        answer.write(text)
        raise RuntimeError


def pages(client: TestClient, session_id: str) -> Iterator[str]:
    """Yield each page of a session, and the search for it."""
    for path in PAGES:
        answer = client.get(address(path, session_id))
        assert answer.status_code == 200, answer.text
        yield answer.text
    live = re.findall(
        r'data-live="([^"]+)".*? data-branch="(\d+)"', client.get(address("/s/{}", session_id)).text
    )
    news = client.get(f"{live[0][0]}?from=1&branch={live[0][1]}")
    assert news.status_code == 200
    yield news.text
    yield client.get("/", params={"q": "alert"}).text
    yield client.get("/costs").text
    rows = client.get("/sql", params={"sql": "SELECT * FROM session_messages"}).text
    assert "<tbody><tr" in re.sub(r"\n", "", rows)
    yield rows
    yield client.get("/sql", params={"sql": session_id}).text
    yield client.get("/", params={"project": session_id, "source": session_id}).text


def test_nothing_is_written(store: Store) -> None:
    """The bytes of the store are the same after each page was shown."""
    client = ask(store)
    before = digest(store)
    for path in PAGES:
        client.get(address(path))
    for path in ("/?q=mended", "/costs", "/sql", "/sql?sql=SELECT+1"):
        client.get(path)
    assert digest(store) == before


def digest(store: Store) -> list[bytes]:
    """Return the digests of the files of a store."""
    path = Path(str(store.database.path))
    files = (path, path.with_name(f"{path.name}-wal"))
    return [hashlib.sha256(each.read_bytes()).digest() for each in files if each.exists()]


def test_languages(store: Store) -> None:
    """Chosen by the browser, by an address, and kept; each phrase is in both, and is used."""
    client = ask(store)
    for accepted, word in (
        ("zh-CN,zh;q=0.9", "会话"),
        ("de,en;q=0.5", "Sessions"),
        ("", "Sessions"),
    ):
        assert f"<h1>{word}" in client.get("/", headers={"accept-language": accepted}).text
    assert "<h1>会话" in client.get("/?lang=zh").text
    assert "<h1>会话" in client.get("/", headers={"accept-language": "en"}).text
    phrases: dict[str, Any] = tomllib.loads(
        (page_rendering.FOLDER / "phrases.toml").read_text("utf-8")
    )
    used = "".join(
        path.read_text("utf-8")
        for path in page_rendering.FOLDER.rglob("*")
        if path.suffix in (".html", ".py")
    )
    for code, said in phrases.items():
        is_joined = code.startswith(("state_", "mode_", "by_", "difference_"))
        assert f'"{code}"' in used or f"'{code}'" in used or is_joined or code in costs.COST_KEYS, (
            code
        )
        assert {*said} == {"en", "zh"}, code
        names = [{*re.findall(r"\{(\w+)", text)} for text in said.values()]
        assert names[0] == names[1], code


def test_metadata_for_datasette(store: Store, tmp_path: Path) -> None:
    """Each view and each column has a meaning; queries and facets are those of the store."""
    file = tmp_path / "metadata.json"
    command = ["--db", str(store.database.path), "datasette", "-o", str(file)]
    assert main(command) == 0
    assert main(command) == 2
    described = json.loads(file.read_text("utf-8"))["databases"]["chat"]
    found = views(str(store.database.path))
    assert {name: (*view["columns"],) for name, view in described["tables"].items()} == found
    for name, view in described["tables"].items():
        assert {*view["facets"], *view["units"]} <= {*found[name]}
    assert len(described["queries"]) == 10
    listed = tomllib.loads((page_rendering.FOLDER / "views.toml").read_text("utf-8"))
    assert {*listed["views"]} == {*found}
    assert {*listed["columns"]} <= {column for columns in found.values() for column in columns}
