"""The pages in a browser: keys, what comes by itself, a telephone, and what axe finds."""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from browse_pictures import DESK, PAGES, PHONE, fill, open_page, serving
from browser import Browser, needs_chromium, until

from store import Store

pytestmark = [pytest.mark.sqlite_only, pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the pictures."""
    made = tmp_path_factory.mktemp("browse") / "chat.db"
    fill(made)
    return made


@pytest.fixture(scope="module")
def address(path: Path) -> Iterator[str]:
    """Where the command serves it, with the token."""
    with serving(path) as given:
        yield given


@pytest.fixture(scope="module")
def browser(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that has the cookie, and notes what a page asks for and what goes wrong."""
    opened = Browser(tmp_path_factory.mktemp("profile"))
    open_page(opened, address)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def base(address: str) -> str:
    """The address of the server."""
    return address.partition("/?")[0]


def press(browser: Browser, key: str) -> None:
    """Press a key."""
    text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
    browser.do("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
    browser.do("Input.dispatchKeyEvent", type="keyUp", key=key)


def test_keys(browser: Browser, base: str) -> None:
    """The second session of the list is opened, and its page turned, without a mouse."""
    open_page(browser, f"{base}/")
    second = browser.run("document.querySelectorAll('[data-open]')[1].textContent")
    for key in ("j", "j", "k", "j"):
        press(browser, key)
    press(browser, "Enter")
    until(lambda: browser.run("document.querySelector('h1')?.textContent") == second)
    until(lambda: browser.run("document.readyState") == "complete")
    press(browser, "/")
    assert browser.run("document.activeElement.id") == "find"
    press(browser, "j")
    assert browser.run("document.activeElement.value") == "j"
    open_page(browser, f"{base}/requests/demo/3")
    press(browser, "n")
    until(lambda: browser.run("location.pathname") == "/requests/demo/4")


def test_an_answer_comes_by_itself(browser: Browser, base: str, path: Path) -> None:
    """Its words while they are written, then the message; a rewind loads the line anew."""
    with Store(path) as store:
        store.create_session("live", title="Live")
        store.append("live", {"role": "user", "content": "Tell me"})
        open_page(browser, f"{base}/s/live")
        with store.streaming("live", {"role": "assistant"}, every_ms=0) as answer:
            answer.write("First <b>half</b>")
            until(lambda: "First" in browser.run("document.getElementById('drafts').innerText"))
            assert browser.run("document.querySelectorAll('#drafts b').length") <= 1
            answer.write(", second half")
            browser.has("second half")
        until(lambda: "second half" in browser.run("document.getElementById('messages').innerText"))
        until(lambda: browser.run("document.getElementById('drafts').innerText.trim()") == "")
        open_page(browser, f"{base}/s/live?mode=sent&policy=raw&to=2")
        store.append("live", {"role": "user", "content": "And then?"})
        until(lambda: "And then?" in browser.run("document.body?.innerText ?? ''"))
        open_page(browser, f"{base}/s/live")
        store.rewind("live", 1)
        until(lambda: "half" not in browser.run("document.body?.innerText ?? 'half'"))


def test_nothing_is_written_or_let_in(path: Path, address: str) -> None:
    """The server is asked by its address alone, and opens the store to be read only."""
    assert address.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(address.partition("?")[0])
    told.value.close()
    assert told.value.code == 403


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_a_telephone(browser: Browser, base: str, name: str) -> None:
    """None is wider than the screen, light or dark; none asks another server, none has an error."""
    for screen in (PHONE, DESK):
        browser.do("Emulation.setDeviceMetricsOverride", **screen)
        open_page(browser, base + PAGES[name])
        assert browser.run("document.documentElement.scrollWidth") <= screen["width"]
    asked = "performance.getEntriesByType('resource').map(each => new URL(each.name).origin)"
    assert {*browser.run(asked)} <= {base}
    assert "cannot be shown" not in browser.run("document.body.innerText")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core: the newest from the registry of npm, else that of a package."""
    folder = tmp_path_factory.mktemp("axe")
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if shutil.which("npm"):
        command = ["npm", "install", "--no-save", "--silent", "axe-core@4"]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    if not script.exists():
        return resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    return script.read_text("utf-8")


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, base: str, axe: str, shade: str) -> None:
    """On no page, in neither shade."""
    wanted = [{"name": "prefers-color-scheme", "value": shade}]
    browser.do("Emulation.setEmulatedMedia", features=wanted)
    serious = []
    for name, page in PAGES.items():
        open_page(browser, base + page)
        browser.run(axe + ";1")
        serious += browser.run(
            "axe.run().then(found => found.violations"
            ".filter(each => ['serious', 'critical'].includes(each.impact))"
            f".map(each => {name!r} + ': ' + each.id + ' ' + each.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary).join('; ')))"
        )
    assert serious == [], "\n".join(serious)
