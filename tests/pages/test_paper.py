"""Pages on paper, as Chromium prints them: nothing is hidden, cut or wider, and no navigation."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pypdf
import pytest
from browse_pictures import PAGES, fill, open_page, serving
from browser import Browser, needs_chromium

from store import Policy, Store
from store.exporting import export_session

pytestmark = [pytest.mark.sqlite_only, pytest.mark.slow, needs_chromium]

PAPER = {"width": 718, "height": 1046, "deviceScaleFactor": 1, "mobile": False}
"""A sheet of A4 without its margins, in pixels."""
LOST = """
[...document.querySelectorAll('main *, body > :not(header):not(nav):not(footer) *')].filter(each =>
    [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim())
    && !each.closest('svg, style, script, nav, form, .on > header, .unit, .side .day, .gist')
    && !(each.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true})
         && each.getClientRects().length)
).map(each => each.outerHTML.slice(0, 120))
"""
"""The elements with texts of a page that are not shown; labels that would be repeated are none."""
CUT = """
[...document.querySelectorAll('main *')].filter(each => {
    const style = getComputedStyle(each)
    return !each.closest('svg') && style.display !== 'inline' && each.clientWidth > 0 && (
        (style.overflowY !== 'visible' && each.scrollHeight > each.clientHeight + 1)
        || (style.overflowX !== 'visible' && each.scrollWidth > each.clientWidth + 1))
}).map(each => each.outerHTML.slice(0, 120))
"""
"""The elements of which a part is cut off, or would have to be moved to be seen."""
SEEN = "!!document.querySelector({!r})?.getClientRects().length"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the pictures, with a session that hides much."""
    made = tmp_path_factory.mktemp("paper") / "chat.db"
    fill(made)
    with Store(made) as store:
        store.create_session("folded", title="Folded")
        store.append("folded", {"role": "system", "content": "Be brief. " * 60 + "PROMPT-END"})
        store.append("folded", {"role": "user", "content": "Read the file."})
        for number in range(4):
            function = {"name": "Read", "arguments": f'{{"path": "a{number}.py"}}'}
            call = {"id": f"c{number}", "type": "function", "function": function}
            asked = {"role": "assistant", "content": None, "tool_calls": [call]}
            lines = f"a line that is not short {'x' * 90}\n" * 60 + f"RESULT-END-{number}"
            answer = {"role": "tool", "tool_call_id": f"c{number}", "content": lines}
            store.append("folded", [asked, answer, {"role": "user", "content": "On."}])
        store.append("folded", {"role": "assistant", "content": "FIRST-ANSWER"})
        store.replace("folded", 15, {"role": "assistant", "content": "SECOND-ANSWER"})
        store.compact("folded", Policy(keep_turns=1), lambda _: "THE-SUMMARY")
    return made


TEXTS = ("PROMPT-END", *(f"RESULT-END-{number}" for number in range(4)), "FIRST-ANSWER")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that shows pages as it prints them."""
    opened = Browser(tmp_path_factory.mktemp("profile"))
    opened.do("Emulation.setDeviceMetricsOverride", **PAPER)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def base(path: Path, browser: Browser) -> Iterator[str]:
    """The address of the server, whose cookie the browser has."""
    with serving(path) as address:
        open_page(browser, address)
        yield address.partition("/?")[0]


def open_on_paper(browser: Browser, address: str) -> None:
    """Open a page as it is printed."""
    browser.do("Emulation.setEmulatedMedia", media="screen")
    open_page(browser, address)
    browser.do("Emulation.setEmulatedMedia", media="print")


def print_page(browser: Browser) -> str:
    """Print a page; return the text of its sheets."""
    printed = browser.do("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
    sheets = pypdf.PdfReader(io.BytesIO(base64.b64decode(printed))).pages
    return "\n".join(sheet.extract_text() for sheet in sheets)


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_paper(browser: Browser, base: str, name: str) -> None:
    """Each text of a page is seen, whole; what leads elsewhere is not."""
    open_on_paper(browser, base + PAGES[name])
    assert browser.run("document.documentElement.scrollWidth") <= PAPER["width"]
    assert browser.run(LOST) == []
    assert browser.run(CUT) == []
    assert not any(
        browser.run(SEEN.format(each))
        for each in (".top", "footer", ".turn", ".filters", ".sections")
    )


def test_a_conversation_is_printed_whole(browser: Browser, base: str) -> None:
    """With what is folded on the screen, and each alternative."""
    open_on_paper(browser, f"{base}/s/folded")
    assert not browser.run("document.querySelector('.call').open")
    text = print_page(browser)
    assert [each for each in (*TEXTS, "SECOND-ANSWER") if each not in text] == [
        f"RESULT-END-{number}"
        for number in range(4)  # the page shows the beginning of long texts
    ]


def test_a_written_page_is_printed_whole(browser: Browser, path: Path, tmp_path: Path) -> None:
    """With what a compaction hides."""
    with Store(path) as store:
        page = export_session(store, "folded", tmp_path / "page.html", shape="html").path
    open_on_paper(browser, page.as_uri())
    assert not browser.run("document.querySelector('.band').open")
    assert browser.run("document.documentElement.scrollWidth") <= PAPER["width"]
    assert browser.run(LOST) == []
    assert browser.run(CUT) == []
    text = print_page(browser)
    assert [each for each in (*TEXTS, "SECOND-ANSWER", "THE-SUMMARY") if each not in text] == []
