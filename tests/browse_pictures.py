"""``python -m tests.browse_pictures [FOLDER]``: take pictures of the pages with headless Chromium.

Without a folder those of docs/browse.md are made; with one, each page on a desk and on a telephone,
in light and in dark, to be looked at.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from browser import Browser, until  # noqa: E402

from store import Store  # noqa: E402
from store.cli import main as convostore  # noqa: E402
from store.cli.demo_session import build_conversation  # noqa: E402

DESK = {"width": 1280, "height": 860, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
DAY = 86_400_000
BEGUN = 1_788_000_000_000
TITLES = (
    ("Bill ten parcels", "/home/ann/parcel", "claude_code"),
    ("Why is the importer slow?", "/home/ann/importer", "codex"),
    ("Rename the tiers", "/home/ann/parcel", "claude_code"),
    ("Write the release notes", "/home/ann/site", "codex"),
    ("Upgrade the parser", "/home/ann/importer", "claude_code"),
)
PAGES = {
    "sessions": "/",
    "search": "/?q=parcel+bill",
    "raw": "/s/demo",
    "sent": "/s/demo?mode=sent&policy=default",
    "both": "/s/demo?mode=both&policy=default&from=10",
    "requests": "/requests/demo/0",
    "request": "/requests/demo/9?policy=default",
    "tree": "/tree/demo",
    "policies": "/policies/demo?policy=raw&policy=agent&policy=message_count&policy=turns",
    "costs": "/costs",
    "files": "/files/demo",
    "sql": "/sql?sql=SELECT+session_id,+title,+models,+turns,+tokens,+cost+FROM+session_log+LIMIT+16",
    "chinese": "/s/demo?lang=zh",
}
SCREENS = {"desk": DESK, "phone": PHONE}
SHOWN = dict.fromkeys(PAGES, "desk-light") | {
    "costs": "desk-dark",
    "raw": "phone-light",
    "search": "phone-dark",
}
"""How each page is in the documentation: on a screen, light or dark."""


def fill(path: Path) -> None:
    """Make a store with the demo, its requests, and sessions of some weeks."""
    convostore(["demo", "--keep", str(path)])
    with Store(path) as store:
        record_requests(store, "demo", 1)
        for number, (title, project, source) in enumerate(TITLES * 6):
            at = BEGUN + number * DAY * 2
            session = store.create_session(title=title, project_root=project, now=at)
            store.set_origin(session.id, source)
            store.append(session.id, build_conversation()[: 6 + number], now=at)
            record_requests(store, session.id, number)
        store.index()


def record_requests(store: Store, session_id: str, seed: int) -> None:
    """Record a usage before each answer, some of which find nothing in the cache."""
    held = 0
    for each in store.messages(session_id):
        if each.message["role"] == "assistant" and each.seq > 1:
            sent = 2_000 + 310 * each.seq + 97 * (seed % 5)
            cached = held if (each.seq + seed) % 7 else 0
            store.record_usage(
                session_id,
                input=sent,
                cached=cached,
                output=80 + 13 * (each.seq % 11),
                model=("claude-sonnet-4-5", "gpt-5")[seed % 2],
                seq=each.seq - 1,
                now=store.session(session_id).updated_at,
            )
            held = sent


@contextmanager
def serving(path: Path, *options: str) -> Iterator[str]:
    """Run the command that serves the pages; give its address."""
    command = [sys.executable, "-m", "store", "--db", str(path), "browse", "--port", "0", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout
        yield process.stdout.readline().decode().strip()
    finally:
        process.terminate()
        process.wait()
        assert process.stdout
        process.stdout.close()


def open_page(browser: Browser, address: str) -> None:
    """Go to an address, and wait until its page is there."""
    browser.do("Page.navigate", url=address)
    until(
        lambda: browser.run("document.readyState === 'complete' && location.href !== 'about:blank'")
    )
    time.sleep(0.3)


def take_picture(browser: Browser, file: Path, screen: dict[str, object], shade: str) -> None:
    """Write what the page looks like on a screen, light or dark."""
    browser.do("Emulation.setDeviceMetricsOverride", **screen)
    wanted = [{"name": "prefers-color-scheme", "value": shade}]
    browser.do("Emulation.setEmulatedMedia", features=wanted)
    time.sleep(0.3)
    browser.picture(file)


def main(folder: Path | None) -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "chat.db"
        fill(path)
        browser = Browser(Path(work) / "profile")
        try:
            with serving(path) as address:
                take_pictures(browser, address, folder)
        finally:
            browser.close()


def take_pictures(browser: Browser, address: str, folder: Path | None) -> None:
    """Take those of the documentation, or all into a folder."""
    open_page(browser, address)
    base = address.partition("/?")[0]
    for name, page in PAGES.items():
        open_page(browser, base + page)
        if folder is None:
            kind, _, shade = SHOWN[name].partition("-")
            file = ROOT / "docs" / "pictures" / f"browse-{name}.png"
            take_picture(browser, file, SCREENS[kind], shade)
        else:
            folder.mkdir(exist_ok=True)
            for kind, shade in product(SCREENS, ("light", "dark")):
                file = folder / f"{name}-{kind}-{shade}.png"
                take_picture(browser, file, SCREENS[kind], shade)
        browser.do("Emulation.setDeviceMetricsOverride", **DESK)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
