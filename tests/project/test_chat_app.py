"""The chat app, end to end: a server of its own, a made-up provider, a browser where there is one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from urllib.error import HTTPError

import pytest
from browser import PATIENCE, Browser, needs_chromium, until
from conftest import ROOT

from store import AsyncStore, Store, StoreBusy, StoreError
from store.database import Database
from store.errors import ReadOnly, StoreFull, Unavailable

APP = ROOT / "examples" / "chat_app" / "app.py"
TELLING = 40
TOLD = " ".join(f"w{number}" for number in range(40))
"""Words that the made-up model says where it is asked to tell slowly, some 25 a second."""

pytestmark = pytest.mark.sqlite_only


class Provider(BaseHTTPRequestHandler):
    """A model that repeats what it was asked last; slowly, if it was asked to."""

    asked: ClassVar[list[list[dict[str, Any]]]] = []

    def do_POST(self) -> None:
        """Stream an answer, unless who asks was killed while asking."""
        asked = self.rfile.read(int(self.headers["content-length"]))
        if not asked.endswith(b"}"):
            return
        given = json.loads(asked)
        self.asked.append(given["messages"])
        question = given["messages"][-1]["content"]
        words = f"You said: {question}".split(" ")
        slowly = "slowly" in question
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        with suppress(OSError):
            for word in words + [f"w{number}" for number in range(TELLING)] * slowly:
                time.sleep(0.04 * slowly)
                self.tell(choices=[{"index": 0, "delta": {"content": f"{word} "}}])
            counts = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            self.tell(choices=[], usage=counts)
            self.wfile.write(b"data: [DONE]\n\n")

    def tell(self, **piece: Any) -> None:
        """Send a piece of the answer."""
        about = {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "gpt-4.1-mini",
        }
        self.wfile.write(f"data: {json.dumps({**about, **piece})}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class App:
    """The app as a process of its own, and a way to ask it."""

    def __init__(self, path: Path, provider: str) -> None:
        self.path, self.port = path, free_port()
        self.settings = {
            "CONVOSTORE_DB": str(path),
            "PORT": str(self.port),
            "OPENAI_BASE_URL": provider,
            "OPENAI_API_KEY": "made up",
            "CHAT_MODEL": "gpt-4.1-mini",
            "PYTHONPATH": str(ROOT),
        }
        self.command = [sys.executable, str(APP)]
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self.process = subprocess.Popen(self.command, env=os.environ | self.settings, cwd=ROOT)
        until(self.is_up)

    def is_up(self) -> bool:
        """Tell whether it answers."""
        assert self.process.poll() is None
        with suppress(OSError), self.open("GET", "/"):
            return True
        return False

    def kill(self) -> None:
        """Kill the server."""
        self.process.kill()
        self.process.wait()

    def open(self, method: str, path: str, user: str = "ann", **body: Any) -> Any:
        """Ask, and return the open answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        request.add_header("x-user", user)
        if body:
            request.data = json.dumps(body).encode()
            request.add_header("content-type", "application/json")
        return urllib.request.urlopen(request, timeout=PATIENCE)

    def get(self, path: str, user: str = "ann") -> Any:
        """Return what is at a path."""
        with self.open("GET", path, user) as answer:
            return json.load(answer)

    def read(self, path: str, user: str = "ann") -> str:
        """Return the text at a path."""
        with self.open("GET", path, user) as answer:
            return str(answer.read().decode())

    def send(self, method: str, path: str, user: str = "ann", **body: Any) -> Any:
        """Have something done."""
        with self.open(method, path, user, **body) as answer:
            return json.load(answer)

    def post(self, path: str, user: str = "ann", **body: Any) -> Any:
        """Have something done by the usual method."""
        return self.send("POST", path, user, **body)

    def follow(self, draft: str, user: str = "ann") -> Iterator[dict[str, Any]]:
        """Yield what comes of an answer that is under way."""
        with self.open("GET", f"/drafts/{draft}", user) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def refusal(self, path: str, user: str = "ann", method: str = "GET", **body: Any) -> int:
        """Return the status with which something is refused."""
        with pytest.raises(HTTPError) as told, self.open(method, path, user, **body):
            pass
        told.value.close()
        return int(told.value.code)

    def events(self, chat: str, user: str = "ann", **body: Any) -> Iterator[dict[str, Any]]:
        """Yield what comes of an answer, to its end or to that of the server."""
        with (
            suppress(OSError),
            self.open("POST", f"/chats/{chat}/messages", user, **body) as answer,
        ):
            for line in answer:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def ask(self, chat: str, text: str | None = None, user: str = "ann", **body: Any) -> str:
        """Ask in a chat, and return the answer."""
        events = [*self.events(chat, user, text=text, **body)]
        assert events[-1] == {"done": True}
        return "".join(each.get("text", "") for each in events)

    def begin(self, user: str = "ann") -> str:
        """Begin a chat."""
        return str(self.post("/chats", user)["id"])

    def said(self, chat: str, user: str = "ann") -> list[str]:
        """What is said in a chat."""
        return [each["text"].strip() for each in self.get(f"/chats/{chat}", user)["messages"]]


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The base URL of a made-up provider."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def app(provider: str, made_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The app on a new store."""
    path = Path(shutil.copy(made_file, tmp_path_factory.mktemp("app") / "chat.db"))
    started = App(path, provider)
    yield started
    started.kill()


def test_it_is_short() -> None:
    """An example is read in one sitting."""
    for file in (APP, APP.with_name("page.js")):
        assert len(file.read_text("utf-8").splitlines()) <= 400


ROUTES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("GET", "/chats", {}),
    ("GET", "/search?q=word", {}),
    ("POST", "/chats", {}),
    ("GET", "/chats/s", {}),
    ("PATCH", "/chats/s", {"title": "other"}),
    ("DELETE", "/chats/s", {}),
    ("POST", "/chats/s/archive", {}),
    ("POST", "/chats/s/switch/1", {}),
    ("PUT", "/chats/s/messages/1/rating", {"rating": 1}),
    ("POST", "/chats/s/messages", {"text": "question"}),
    ("GET", "/drafts/d", {}),
    ("POST", "/drafts/d/stop", {}),
    ("POST", "/drafts/d?keep=true", {}),
    ("GET", "/cost", {}),
    ("GET", "/export", {}),
    ("GET", "/chats/s/export", {}),
    ("DELETE", "/account", {}),
)
"""All routes that use the store: method, address, body."""


def ask_all(example: Any, user: str = "ann") -> dict[str, int]:
    """Return the status of each route."""
    from fastapi.testclient import TestClient

    example.app.state.asking = defaultdict(asyncio.Lock)
    example.app.state.answers = {}
    asking = TestClient(example.app, raise_server_exceptions=False)
    return {
        f"{method} {path}": asking.request(
            method, path, headers={"x-user": user}, json=body or None
        ).status_code
        for method, path, body in ROUTES
    }


@pytest.fixture
def example(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the app, with the path of a store that has a chat."""
    pytest.importorskip("fastapi")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    from chat_app import app as example

    monkeypatch.setattr(example, "DATABASE", str(path))
    with Store(path) as store:
        store.create_session("s", owner="ann")
        store.append("s", {"role": "user", "content": "word"})
    return example


@pytest.mark.parametrize("kind", [ReadOnly, StoreBusy, Unavailable, StoreFull])
def test_every_route_answers_with_the_status_of_the_error(
    example: Any, path: Path, kind: type[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """403, 423, 503, 507, wherever the store raises it, also before an answer or a page begins."""
    assert {ReadOnly: 403, StoreBusy: 423, Unavailable: 503, StoreFull: 507}[kind] == kind.status

    def refuse(*_: Any, **__: Any) -> Any:
        raise kind("told; nothing was written")

    with Store(path) as store:
        example.app.state.store = AsyncStore(store)
        monkeypatch.setattr(Database, "_lent", refuse)
        answers = ask_all(example)
        asyncio.run(example.app.state.store.close())
        monkeypatch.undo()
    assert answers == dict.fromkeys(answers, kind.status)


def test_who_may_ask_again_is_told_when(example: Any) -> None:
    """By a header; the words of the error are in the answer."""
    for kind in (ReadOnly, StoreBusy, Unavailable, StoreFull):
        answer = asyncio.run(example.report_error(None, kind("told; nothing was written")))
        assert ("retry-after" in answer.headers) == kind.retry
        assert b"told" in answer.body


def test_a_store_that_is_held_or_read_only_refuses_writes(example: Any, path: Path) -> None:
    """What reads goes on; a chat of nobody is none for its export either."""
    reads = {f"{method} {route}" for method, route, _ in ROUTES if method == "GET"}
    with Store(path) as other:
        for status, options in ((423, {"timeout": 0.05}), (403, {"read_only": True})):
            with Store(path, **options) as store, other.database.writing() as connection:
                if status == 423:
                    connection.exec_driver_sql("UPDATE settings SET value = value")
                example.app.state.store = AsyncStore(store)
                answers = ask_all(example)
                asyncio.run(example.app.state.store.close())
            assert {answers[each] for each in reads} == {200}
            assert {answers[each] for each in answers.keys() - reads} <= {status, 404}
        example.app.state.store = AsyncStore(other)
        missing = ask_all(example, user="bob")
        asyncio.run(example.app.state.store.close())
    assert missing["GET /chats/s/export"] == missing["GET /chats/s"] == 404


def test_a_chat(app: App) -> None:
    """Asked, edited, answered anew, gone back to, found, archived, paid for."""
    chat = app.begin()
    assert app.ask(chat, "why is the sky blue?") == "You said: why is the sky blue? "
    assert app.ask(chat, "and the sea?").startswith("You said: and the sea?")
    app.ask(chat, "and the grass?", after=2)
    app.ask(chat, after=3)
    shown = app.get(f"/chats/{chat}")
    assert app.said(chat)[2:] == ["and the grass?", "You said: and the grass?"]
    assert [(len(each["branches"]), each["place"]) for each in shown["messages"]] == [
        (1, 0),
        (1, 0),
        (2, 1),
        (2, 1),
    ]
    app.post(f"/chats/{chat}/switch/{shown['messages'][2]['branches'][0]}")
    assert app.said(chat)[2:] == ["and the sea?", "You said: and the sea?"]
    assert shown["title"] == "why is the sky blue?"
    assert (shown["tokens"], shown["cost"] > 0) == (60, True)
    (spent,) = app.get("/cost")
    assert (len(spent["name"]), spent["name"][1], spent["requests"]) == (2, "gpt-4.1-mini", 4)
    assert [each["id"] for each in app.get("/chats")] == [chat]
    (found,) = app.get("/search?q=blue%20sea")
    assert (found["id"], found["hits"] > 1, found["seq"] in range(1, 5)) == (chat, True, True)
    app.post(f"/chats/{chat}/archive")
    assert app.get("/chats") == []
    assert [each["id"] for each in app.get("/chats?archived=true")] == [chat]
    app.post(f"/chats/{chat}/archive?archived=false")


def test_a_chat_is_kept_in_order(app: App) -> None:
    """Renamed, rated, exported, deleted; an empty question is refused."""
    chat = app.begin("dora")
    app.ask(chat, "why?", "dora")
    app.send("PATCH", f"/chats/{chat}", "dora", title="Questions")
    app.send("PUT", f"/chats/{chat}/messages/2/rating", "dora", rating=-1)
    shown = app.get(f"/chats/{chat}", "dora")
    assert shown["title"] == "Questions"
    assert [each["rating"] for each in shown["messages"]] == [None, -1]
    app.send("PUT", f"/chats/{chat}/messages/2/rating", "dora", rating=None)
    assert app.get(f"/chats/{chat}", "dora")["messages"][1]["rating"] is None
    for text in ("", " \n"):
        assert app.refusal(f"/chats/{chat}/messages", "dora", "POST", text=text) == 422
    other = app.begin("dora")
    app.ask(other, "and how?", "dora")
    app.post(f"/chats/{other}/archive", "dora")
    pages = [app.read(path, "dora") for path in (f"/chats/{chat}/export", "/export")]
    assert ["why?" in page for page in pages] == [True, True]
    assert ["and how?" in page for page in pages] == [False, True]
    app.send("DELETE", f"/chats/{chat}", "dora")
    assert app.refusal(f"/chats/{chat}", "dora") == 404
    assert app.send("DELETE", "/account", "dora") == {"deleted": 1}
    assert app.get("/chats?archived=true", "dora") == app.get("/chats", "dora") == []


@pytest.mark.slow
def test_an_answer_goes_on_without_its_reader(app: App) -> None:
    """Another window follows it from the beginning; afterwards it is there once, with its cost."""
    chat = app.begin()
    events = app.events(chat, text="tell slowly")
    heard = [next(events)["text"], next(events)["text"]]
    events.close()
    (draft,) = app.get(f"/chats/{chat}")["drafts"]
    assert draft["live"] is True
    assert app.refusal(f"/drafts/{draft['draft']}?keep=false", method="POST") == 409
    followed = [*app.follow(draft["draft"])]
    assert followed[-1] == {"done": True}
    whole = "".join(each.get("text", "") for each in followed)
    assert whole.startswith("".join(heard))
    assert whole.split()[-1] == f"w{TELLING - 1}"
    shown = until(lambda: done(app.get(f"/chats/{chat}")))
    assert [each["text"] for each in shown["messages"]] == ["tell slowly", whole]
    assert until(lambda: app.get(f"/chats/{chat}")["tokens"]) == 15


def done(shown: dict[str, Any]) -> dict[str, Any] | None:
    """Return a chat that no answer is under way to."""
    return None if shown["drafts"] else shown


def test_an_answer_is_stopped(app: App) -> None:
    """What had come of it is the message; the next question is answered."""
    chat = app.begin()
    events = app.events(chat, text="tell slowly")
    first = next(events)
    next(events)
    assert app.refusal(f"/chats/{chat}/messages", method="POST", text="at once") == 409
    app.post(f"/drafts/{first['draft']}/stop")
    assert [*events][-1] == {"done": True}
    question, answer = app.said(chat)
    assert (question, answer.startswith("You said:")) == ("tell slowly", True)
    assert f"w{TELLING - 1}" not in answer
    assert app.ask(chat, "well?") == "You said: well? "


def test_of_two_questions_at_once_one_is_answered(app: App) -> None:
    """The other is refused, and nothing of it is stored."""
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            chat = app.begin()
            told = pool.map(lambda text, chat=chat: [*app.events(chat, text=text)], ("a", "b"))
            assert sorted(map(bool, told)) == [False, True]
            until(lambda chat=chat: done(app.get(f"/chats/{chat}")))
            question, answer = app.said(chat)
            assert answer == f"You said: {question}"
            assert app.get(f"/chats/{chat}")["tokens"] == 15


@pytest.mark.slow
def test_users_see_their_own(app: App) -> None:
    """Of another's chat nothing is there; nobody has none; who is late is told so."""
    chat = app.begin("bob")
    app.ask(chat, "a secret", "bob")
    assert app.get("/search?q=secret") == []
    assert chat not in str(app.get("/chats"))
    assert app.refusal(f"/chats/{chat}") == 404
    assert app.refusal(f"/chats/{chat}/messages", method="POST", text="x") == 404
    assert app.refusal("/chats", user="") == 401
    late = {"text": "x", "revision": "long ago"}
    assert app.refusal(f"/chats/{chat}/messages", "bob", "POST", **late) == 409
    assert app.refusal(f"/chats/{chat}/switch/9", "bob", "POST") == 400
    assert app.said(chat, "bob") == ["a secret", "You said: a secret"]


@pytest.mark.slow
def test_the_workers_of_the_image_end(app: App) -> None:
    """The command of the image, two workers: a signal to end leaves an answer under way as a draft
    of which nothing is lost, and the workers that start next show it.
    """
    instruction = (ROOT / "examples" / "deploy" / "Dockerfile").read_text("utf-8")
    command = json.loads(instruction.splitlines()[-1].removeprefix("CMD "))
    app.kill()
    own = app.command
    app.command = [sys.executable, *command[1:], "--port", str(app.port)]
    app.command += ["--host", "127.0.0.1", "--timeout-graceful-shutdown", "1"]
    first = free_port()
    app.settings["METRICS"] = f"127.0.0.1:{first}"
    app.start()
    chat = app.begin("eve")
    told = until(lambda: (both := [*metrics(first)]) and len(both) == 2 and both)
    assert sum('{operation="create_session",outcome="ok"} 1' in each for each in told) == 1
    events = app.events(chat, "eve", text="tell slowly")
    heard = next(events)["text"] + next(events)["text"]
    app.process.terminate()
    heard += "".join(each.get("text", "") for each in events)
    app.process.wait(PATIENCE)
    with Store(app.path) as store:
        (draft,) = store.scoped("eve").drafts(chat)
        kept = str(draft.message["content"])
        assert (draft.live, kept.startswith(heard)) == (False, True)
    assert f"w{TELLING - 1}" not in kept
    app.start()
    (shown,) = app.get(f"/chats/{chat}", "eve")["drafts"]
    assert (shown["live"], shown["text"]) == (False, kept)
    app.process.terminate()
    app.process.wait(PATIENCE)
    app.command = own
    app.settings["METRICS"] = ""  # as without it
    app.start()


def metrics(first: int) -> Iterator[str]:
    """Yield what workers serve at the ports from one on."""
    for port in range(first, first + 20):
        with (
            suppress(OSError, HTTPException),  # a port may have called itself
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer,
        ):
            text = answer.read().decode()
            if "convostore_busy_total" in text:
                yield text


@pytest.mark.slow
def test_a_killed_server_goes_on(app: App) -> None:
    """What had come of an answer is there, the model knows of it, and it is kept or let go."""
    chat = app.begin()
    events = app.events(chat, text="tell slowly")
    seen = "".join(next(events)["text"] for _ in range(12))
    app.kill()
    seen += "".join(each.get("text", "") for each in events)
    app.start()
    (draft,) = until(
        lambda: [each for each in app.get(f"/chats/{chat}")["drafts"] if not each["live"]]
    )
    assert draft["after"] == 1
    assert 0 < len(draft["text"]) <= len(seen)
    assert seen.startswith(draft["text"])
    app.ask(chat, "go on")
    sent = [each["content"] for each in Provider.asked[-1]]
    assert sent[-1] == "go on"
    assert sent[-2] == f"{draft['text']}\n\n[This answer was interrupted here]"
    app.post(f"/drafts/{draft['draft']}?keep=true")
    assert app.said(chat)[-1] == draft["text"].strip()
    assert app.get(f"/chats/{chat}")["drafts"] == []
    assert app.refusal(f"/drafts/{draft['draft']}?keep=false", method="POST") == 404


@pytest.mark.slow
def test_fifty_chats(app: App) -> None:
    """Of five users at once; then the server is killed while all of them listen, and goes on."""
    users = [f"user{number % 5}" for number in range(50)]
    with ThreadPoolExecutor(50) as pool:
        names = [*pool.map(app.begin, users)]
        questions = [f"question {number}" for number in range(50)]
        asked = [*zip(names, questions, users, strict=True)]
        answers = [*pool.map(lambda each: app.ask(*each), asked)]
        assert answers == [f"You said: question {number} " for number in range(50)]
        heard: list[list[str]] = [[] for _ in names]

        def listen(name: str, user: str, words: list[str]) -> None:
            events = app.events(name, user, text="tell slowly")
            words.extend(each.get("text", "") for each in events)

        streams = [*map(pool.submit, repeat(listen), names, users, heard)]
        until(lambda: sum(len(words) > 5 for words in heard) > 25)
        app.kill()
        for each in streams:
            each.result()
        seen = ["".join(words) for words in heard]
        app.start()
        for name, user, words in zip(names, users, seen, strict=True):
            for draft in app.get(f"/chats/{name}", user)["drafts"]:
                assert words.startswith(draft["text"]) or draft["text"].startswith(words)
                app.post(f"/drafts/{draft['draft']}?keep=true", user)
        answers = [*pool.map(lambda each: app.ask(each[0], "well?", each[2]), asked)]
        assert {*answers} == {"You said: well? "}
    with Store(app.path) as store:
        assert store.verify() == []
        assert len(store.sessions(owner="user0", limit=100)) == 10


@pytest.mark.slow
def test_fifty_users_lose_nothing(app: App) -> None:
    """Five answers for each, of which some are left and some stopped on the way.

    What the model sent is there once, with its cost, and of nobody else.
    """
    chance = Random(7)
    fates = [[chance.random() for _ in range(5)] for _ in range(50)]

    def talk(number: int) -> tuple[str, list[str]]:
        user = f"one-of-many-{number}"
        chat, heard = app.begin(user), []
        for turn, fate in enumerate(fates[number]):
            slowly = " slowly" if fate < 0.15 else ""
            events = app.events(chat, user, text=f"{user} asks {turn}{slowly}")
            first = next(events)
            parts = [first["text"]]
            if fate < 0.075:  # the window closes, and the answer goes on
                events.close()
                until(lambda: done(app.get(f"/chats/{chat}", user)))
                heard.append(f"You said: {user} asks {turn} slowly {TOLD}")
                continue
            if slowly:
                app.post(f"/drafts/{first['draft']}/stop", user)
            rest = [*events]
            assert rest[-1] == {"done": True}, rest
            parts += [each.get("text", "") for each in rest]
            heard.append("".join(parts))
        return chat, heard

    with ThreadPoolExecutor(50) as pool:
        talks = [*pool.map(talk, range(50))]
    assert sum(fate < 0.15 for fate in chain.from_iterable(fates)) > 25
    with Store(app.path) as store:
        for number, (chat, heard) in enumerate(talks):
            mine = store.scoped(f"one-of-many-{number}")
            assert [each.id for each in mine.sessions()] == [chat]
            told = [each.message for each in mine.messages(chat)]
            assert [each["role"] for each in told] == ["user", "assistant"] * 5
            answers = [each["content"].strip() for each in told[1::2]]
            for turn, (answer, whole) in enumerate(zip(answers, heard, strict=True)):
                sent = f"You said: one-of-many-{number} asks {turn} slowly {TOLD}"
                is_stopped = 0.075 <= fates[number][turn] < 0.15
                is_whole = answer == whole.strip()
                assert is_whole or (
                    is_stopped and sent.startswith(answer) and whole.strip() in answer
                )
            usages = mine.usages(chat)
            assert [each.seq for each in usages] == [1, 3, 5, 7, 9]
            assert all(each.output for each in usages)
            (total,) = mine.usage_totals(chat)
            assert (total.requests, total.unpriced) == (5, 0)
            assert mine.drafts() == []
        assert store.verify() == []


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A browser, for one test."""
    opened = Browser(tmp_path / "profile")
    yield opened
    opened.close()


MARKDOWN = """*Two* days, <b>no</b> 2 * 3 * 4:

1. Naples
   - Pompeii

   By train.

2. Capri

| day | cost |
| --- | ---: |
| 1 | 40 |

> Hot,
> in July.

---

See https://example.com/a."""
HTML = (
    "<p><em>Two</em> days, &lt;b&gt;no&lt;/b&gt; 2 * 3 * 4:</p>"
    '<ol start="1"><li>Naples<ul><li>Pompeii</li></ul><p>By train.</p></li><li>Capri</li></ol>'
    "<div><table><tr><th>day</th><th>cost</th></tr><tr><td>1</td><td>40</td></tr></table></div>"
    '<blockquote><p>Hot,\nin July.</p></blockquote><hr><p>See <a href="https://example.com/a">'
    "https://example.com/a</a>.</p>"
)


@needs_chromium
@pytest.mark.slow
def test_the_page(app: App, browser: Browser, tmp_path: Path) -> None:
    """Driven as a user does: ask, edit, `< 2/2 >`, stop, keep, find, archive."""
    browser.do("Network.setCookie", name="user", value="cy", url=f"http://127.0.0.1:{app.port}")
    browser.do("Page.navigate", url=f"http://127.0.0.1:{app.port}/")
    browser.has("What is on your mind?")
    browser.type("why is the sky blue?")
    browser.press("Send")
    browser.has("You said: why is the sky blue?")
    browser.press("Edit")
    browser.type("why is the sky grey?", "article textarea")
    browser.press("Send", last=False)
    browser.has("You said: why is the sky grey?")
    browser.has("2/2")
    browser.press("<", last=False)
    browser.has("You said: why is the sky blue?")
    browser.press(">", last=False)
    browser.has("You said: why is the sky grey?")
    browser.type("<b>tell slowly</b>")
    browser.press("Send")
    browser.has("w5")
    browser.run("location.reload()")
    browser.has("w7")
    browser.press("Stop")
    browser.has("Good")
    until(lambda: browser.run("$('send').textContent") == "Send")
    browser.picture(Path(os.environ.get("CHAT_APP_PICTURE") or tmp_path / "page.png"))
    browser.has("<b>tell slowly</b>")
    browser.run("$('ask').requestSubmit()")
    browser.has("The question is empty")
    browser.run(f"made = make('p'); made.append(renderMarkdown({json.dumps(MARKDOWN)}))")
    assert (
        browser.run("made.innerHTML.replaceAll(/ (?:target|rel|class)=.*?(?=[ >])/g, '')") == HTML
    )
    browser.run("$('find').value = 'grey'; $('find').oninput()")
    until(lambda: browser.run("document.querySelectorAll('#list small').length"))
    browser.run("document.querySelector('#list button').click()")
    until(lambda: browser.run("document.querySelectorAll('article.found').length"))
    browser.do(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=780,
        deviceScaleFactor=1,
        mobile=True,
    )
    assert browser.run("document.documentElement.scrollWidth") == 390
    browser.run("$('show').click()")
    assert browser.run("getComputedStyle($('side')).display") == "flex"
    browser.run("$('hide').click()")
    browser.do("Emulation.clearDeviceMetricsOverride")
    browser.run("$('find').value = ''; $('find').oninput()")
    browser.press("Archive")
    browser.has("No chats yet.")
    (chat,) = app.get("/chats?archived=true", "cy")
    assert "w5" in app.said(chat["id"], "cy")[-1]


@needs_chromium
@pytest.mark.slow
def test_nothing_is_sent_before_the_page_can_send_it(app: App, browser: Browser) -> None:
    """A browser that submits the form by itself would lose the question."""
    browser.do("Network.enable")
    browser.do("Network.setBlockedURLs", urls=["*/page.js"])
    browser.do("Page.navigate", url=f"http://127.0.0.1:{app.port}/")
    browser.has("Send")
    browser.type("too soon")
    browser.run("document.querySelector('#send').click()")
    time.sleep(0.5)
    assert browser.run("location.search + document.querySelector('#text').value") == "too soon"


def show(browser: Browser, app: App, user: str, chat: str = "") -> None:
    """Open the page of a user, at a chat."""
    browser.do("Network.setCookie", name="user", value=user, url=f"http://127.0.0.1:{app.port}")
    browser.do("Page.navigate", url=f"http://127.0.0.1:{app.port}/#{chat}")
    browser.has("Send")


def reload(browser: Browser) -> None:
    """Load the page anew, and wait until it is."""
    browser.run("window.isOld = true; location.reload()")
    until(lambda: not browser.run("window.isOld ?? false"))
    browser.has("Send")


def shown(browser: Browser) -> list[str]:
    """What is said in the chat that a page shows, without the buttons."""
    found = "[...document.querySelectorAll('article .text')].map(each => each.textContent.trim())"
    return [*browser.run(found)]


def is_idle(browser: Browser) -> bool:
    """Tell whether no answer is under way in the page."""
    return bool(browser.run("$('send').textContent === 'Send' && live === null"))


@needs_chromium
@pytest.mark.slow
def test_two_windows(app: App, browser: Browser, tmp_path: Path) -> None:
    """One asks and is closed at half, the other follows on and is reloaded.

    Then the server is killed at half of an answer, and two windows ask at once. Each shows what the
    model sent, once, and its cost, and no answer under way as one that broke off.
    """
    with ExitStack() as windows:
        other, again = (Browser(tmp_path / name) for name in ("other", "again"))
        windows.callback(other.close)
        windows.callback(again.close)
        show(browser, app, "dee")
        browser.type("tell slowly")
        browser.press("Send")
        browser.has("w3")
        chat = browser.run("chat")
        show(other, app, "dee", chat)
        other.has("w6")
        assert "interrupted" not in other.run("document.body.innerText")
        browser.close()
        other.has("w12")
        reload(other)
        other.has("w15")
        assert "interrupted" not in other.run("document.body.innerText")
        assert len(shown(other)) == 2
        until(lambda: is_idle(other))
        whole = ["tell slowly", f"You said: tell slowly {TOLD}"]
        assert shown(other) == app.said(chat, "dee") == whole
        assert other.run("$('spent').textContent").startswith("15 tokens")

        show(again, app, "dee", "")
        again.has("What is on your mind?")
        other.type("and slowly again")
        other.press("Send")
        other.has("again w0 w1 w2 w3 w4 w5 w6 w7 w8")
        app.kill()
        other.has("The connection was lost")
        again.type("still there?")
        again.press("Send")
        again.has("The server cannot be reached")
        assert again.run("$('text').value") == "still there?"
        app.start()
        reload(other)
        other.has("This answer was interrupted.")
        kept = shown(other)[-1]
        assert f"You said: and slowly again {TOLD}".startswith(kept)
        assert "w5" in kept
        other.press("Keep")
        until(lambda: len(app.said(chat, "dee")) == 4 and is_idle(other))
        assert shown(other) == app.said(chat, "dee") == [*whole, "and slowly again", kept]
        until(lambda: int(other.run("$('spent').textContent").split()[0]) > 15)
        tokens = int(other.run("$('spent').textContent").split()[0])

        show(again, app, "dee", chat)
        until(lambda: len(shown(again)) == 4)
        for window, question in ((again, "slowly A"), (other, "slowly B")):
            window.type(question)
            window.run("void $('ask').requestSubmit()")
        until(lambda: len(app.said(chat, "dee")) == 6)
        question, answer = app.said(chat, "dee")[4:]
        assert answer == f"You said: {question} {TOLD}"
        for window in (again, other):
            until(lambda window=window: is_idle(window))
            assert shown(window)[4:] == [question, answer]
        errors = [window.run("$('error').textContent") for window in (again, other)]
        assert sorted(map(bool, errors)) == [False, True]
        assert other.run("$('spent').textContent").split()[0] == str(tokens + 15)

        app.ask(chat, "from elsewhere", "dee")
        other.run("void window.dispatchEvent(new Event('focus'))")
        other.has("You said: from elsewhere")
