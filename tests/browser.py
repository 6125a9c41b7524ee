"""Chromium without a screen, for tests and pictures of pages."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 30.0


def until(is_so: Callable[[], Any]) -> Any:
    """Wait for something."""
    deadline = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)
    return found


CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(  # in a checkout's own checks its absence is a failure
    CHROMIUM is None and not os.environ.get("CONVOSTORE_NEEDS_BROWSER"),
    reason="needs Debian's package chromium, a browser that runs without a screen",
)


class Browser:
    """Chromium without a screen, told what to do through a pipe."""

    def __init__(self, folder: Path) -> None:
        reads, self._tell = os.pipe()
        self._told, writes = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += [f"--user-data-dir={folder}", "--window-size=1180,760", "--lang=en"]
        begin = f'exec "$0" "$@" 3<&{reads} 4>&{writes}'
        self._process = subprocess.Popen(
            ["bash", "-c", begin, str(CHROMIUM), *options],
            pass_fds=(reads, writes),
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._count, self._rest = 0, b""
        self._session: dict[str, str] = {}
        page = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = {
            "sessionId": self.do("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        }

    def do(self, method: str, **given: Any) -> Any:
        """Have something done, and return what comes of it."""
        self._count += 1
        asked = {"id": self._count, "method": method, "params": given, **self._session}
        os.write(self._tell, json.dumps(asked).encode() + b"\0")
        while (answer := self._next()).get("id") != self._count:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            read = os.read(self._told, 1 << 20)
            assert read, "the browser has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def run(self, script: str) -> Any:
        """Return what a script gives on the page."""
        done = self.do("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def has(self, text: str) -> None:
        """Wait until the page shows a text."""
        until(lambda: text in self.run("document.body?.innerText ?? ''"))

    def press(self, label: str, last: bool = True) -> None:
        """Press the last (or first) button of a name that can be pressed."""
        found = f"[...document.querySelectorAll('button:not(:disabled)')].filter(b => b.textContent === {label!r})"
        until(lambda: self.run(f"{found}.length"))
        self.run(f"{found}.at({-1 if last else 0}).click()")

    def type(self, text: str, area: str = "#text") -> None:
        """Write into a field, and send it."""
        self.run(f"document.querySelector({area!r}).value = {text!r}")

    def picture(self, path: Path) -> None:
        """Write down what the page looks like."""
        taken = self.do("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """End the browser, unless it has been."""
        if self._process.returncode is not None:
            return
        self._process.kill()
        self._process.wait()
        os.close(self._tell)
        os.close(self._told)
