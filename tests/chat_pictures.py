"""``python -m tests.chat_pictures``: make the pictures of docs/chat-app.md with headless Chromium."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "project")]

import test_chat_app as tests  # noqa: E402

USER = "ann"
PHONE = {"width": 390, "height": 780, "deviceScaleFactor": 1, "mobile": True}
DESK = {"width": 1180, "height": 760, "deviceScaleFactor": 1, "mobile": False}
QUESTION = """How do I get the area of a circle?

```python
def area(radius):
    return math.pi * radius**2
```

1. **Import** `math`
2. Call it with a [radius](https://en.wikipedia.org/wiki/Radius)
"""


def main() -> None:
    """Ask a few questions of a made-up model, and take pictures of the page."""
    provider = ThreadingHTTPServer(("127.0.0.1", 0), tests.Provider)
    provider.daemon_threads = True
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        app = tests.App(Path(folder) / "chat.db", f"http://127.0.0.1:{provider.server_port}/v1")
        browser = tests.Browser(Path(folder) / "profile")
        try:
            take_pictures(app, browser)
        finally:
            browser.close()
            app.kill()
            provider.shutdown()


def take_pictures(app: tests.App, browser: tests.Browser) -> None:
    """Write the pictures of a chat, of a telephone, and of an answer under way."""
    for question in ("Trains from Berlin to Naples?", "Name three rivers in Chile."):
        app.ask(app.begin(USER), question, USER)
    chat = app.begin(USER)
    app.ask(chat, QUESTION, USER)
    app.ask(chat, "And of a sphere?", USER)
    app.ask(chat, "And of a ball?", USER, after=2)
    base = f"http://127.0.0.1:{app.port}"
    browser.do("Network.setCookie", name="user", value=USER, url=base)
    browser.do("Page.navigate", url=f"{base}/#{chat}")
    browser.has("And of a ball?")
    write_picture(browser, "chat", DESK)
    browser.run("$('show').click()")
    write_picture(browser, "chat-list", PHONE)
    browser.run("$('hide').click()")
    write_picture(browser, "chat-phone", PHONE)
    browser.do("Emulation.setDeviceMetricsOverride", **DESK)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.do("Emulation.setEmulatedMedia", features=[dark])
    browser.type("tell slowly")
    browser.press("Send")
    browser.has("w5")
    write_picture(browser, "chat-live", DESK)


def write_picture(browser: tests.Browser, name: str, screen: dict[str, object]) -> None:
    """Write a picture of the page on a screen."""
    browser.do("Emulation.setDeviceMetricsOverride", **screen)
    time.sleep(0.3)
    browser.picture(PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
