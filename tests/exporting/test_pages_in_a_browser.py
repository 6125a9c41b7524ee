"""A session's page in Chromium: it works without script, and asks nobody for anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, needs_chromium, until
from html_reading import list_hostile_texts

from store import Policy, Store
from store.exporting import export_session

pytestmark = [pytest.mark.slow, pytest.mark.sqlite_only, needs_chromium]


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """Give the origin of a server that nobody should ask, and what it was asked for."""
    paths: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    server.server_close()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Browser]:
    """Give a browser."""
    made = Browser(tmp_path / "profile")
    yield made
    made.close()


def visit(browser: Browser, page: Path, place: str = "") -> None:
    """Open a page and wait until it is there."""
    browser.do("Page.navigate", url=page.as_uri() + place)
    until(
        lambda: (
            browser.run("location.href + document.readyState") == f"{page.as_uri()}{place}complete"
        )
    )


def write_hostile_page(store: Store, origin: str, path: Path) -> Path:
    """Write the page of a session in which every text is hostile."""
    texts = list_hostile_texts(origin)
    texts = [text.encode("utf-8", "replace").decode().replace("\0", "") for text in texts]
    store.create_session("h", title=texts[0])
    for number, text in enumerate(texts):
        function = {"name": text[:200], "arguments": text}
        call = {"id": f"c{number}", "type": "function", "function": function}
        store.append("h", {"role": "user", "content": text})
        store.append("h", {"role": "assistant", "content": text, "tool_calls": [call]})
        failed = {"role": "tool", "tool_call_id": f"c{number}", "messageStatus": "error"}
        store.append("h", {**failed, "content": text})
    store.compact("h", Policy(keep_turns=20), lambda _: "\n\n".join(texts))
    return export_session(store, "h", path, shape="html").path


COUNT = """
[...document.querySelectorAll('*')].filter(each =>
    /^(script|iframe|object|embed|form|svg|math|link|base|video|audio)$/i.test(each.tagName)
    || [...each.attributes].some(a => /^on/i.test(a.name) || /^\\s*javascript:/i.test(a.value)
        && a.name !== 'title')).length
"""


def test_a_hostile_page_asks_for_nothing(
    opened: Browser, asked: tuple[str, list[str]], path: Path, tmp_path: Path
) -> None:
    """Nothing of what its messages say runs, even when all is open and everything is pressed."""
    origin, paths = asked
    with Store(path) as store:
        page = write_hostile_page(store, origin, tmp_path / "page.html")
    visit(opened, page)
    opened.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    opened.run("document.querySelectorAll('summary, label, span').forEach(each => each.click())")
    opened.run("new Promise(r => setTimeout(r, 500))")
    assert opened.run(COUNT) == 0
    assert opened.run("document.querySelectorAll('article').length") > 80
    assert opened.run("location.href") == page.as_uri()
    assert paths == []
    visit(opened, Path(page))
    opened.run(f"fetch('{origin}/seen').catch(() => 0)")
    assert paths == []  # the content policy of the page forbids it


def test_a_page_works_without_script(opened: Browser, path: Path, tmp_path: Path) -> None:
    """A link to a position opens what hides it; other versions of a message are a tap away."""
    with Store(path) as store:
        store.create_session("s")
        for number in range(5):
            said = [
                {"role": role, "content": f"{role} {number} " * 40}
                for role in ("user", "assistant")
            ]
            store.append("s", said)
            if number == 3:
                store.compact("s", Policy(keep_turns=1), lambda _: "Three questions.")
        store.rewind("s", 9)
        store.append(
            "s", [{"role": "assistant", "content": "Another."}, {"role": "user", "content": "End."}]
        )
        page = export_session(store, "s", tmp_path / "page.html", shape="html").path
    opened.do("Emulation.setScriptExecutionDisabled", value=True)
    visit(opened, page, "#m3")
    assert opened.run("document.querySelector('.band').open")
    visible = "document.body.innerText.includes('Another.') + ',' + document.body.innerText.includes('End.')"
    assert opened.run(visible) == "true,true"
    opened.run("[...document.querySelectorAll('.tabs label')].find(l => l.offsetParent).click()")
    assert opened.run(visible) == "false,false"
    assert opened.run("document.body.innerText.includes('assistant 4')")
    for width in (390, 1280):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        opened.do("Emulation.setDeviceMetricsOverride", **size)
        assert opened.run("document.documentElement.scrollWidth") <= width
