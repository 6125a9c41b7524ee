"""``python -m tests.page_pictures [PAGE]``: make the pictures of a session's page with Chromium.

Without the path of a page it is that of a made-up session; with one, the pictures are beside it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "project")]

from browser import Browser  # noqa: E402

from store import Store  # noqa: E402
from store.exporting import export_session  # noqa: E402

DESK = {"width": 1280, "height": 960, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
NOW = 1_790_000_000_000
SECOND = 1_000
CODE = "def area(radius: float) -> float:\n    return 3.14 * radius**2\n"
ANSWER = """There are two faults in `area`:

1. **The number**: `3.14` loses digits; `math.pi` has them.
2. A negative radius is taken as it is.

```python
import math


def area(radius: float) -> float:
    if radius < 0:
        raise ValueError("a radius is not negative")
    return math.pi * radius**2
```

| radius | before | after |
| ---: | ---: | ---: |
| 1 | 3.14 | 3.14159 |
| 10 | 314 | 314.159 |
"""


def call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a part of an answer that calls a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: str, *, failed: bool = False) -> dict[str, Any]:
    """Return what a tool returned."""
    part = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": failed}
    return {"role": "user", "content": [part]}


def make_session(store: Store) -> str:
    """Make a session that has a little of everything, and return its id."""
    session = store.create_session(
        title="The area of a circle", project_root="/home/ada/shapes", now=NOW
    )
    turns: list[Any] = [
        {"role": "user", "content": "What is in this project?"},
        {"role": "assistant", "content": [call("c1", "Bash", {"command": "ls -R"})]},
        result("c1", ".:\nREADME.md  shapes.py  tests\n\n./tests:\ntest_shapes.py"),
        {"role": "assistant", "content": "One module, `shapes.py`, and its tests."},
        {"role": "user", "content": "Is `area` right? Please look **closely**."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I should read it, and run its tests."},
                {"type": "text", "text": "I will read it and run the tests."},
                call("c2", "Read", {"file_path": "/home/ada/shapes/shapes.py"}),
                call("c3", "Bash", {"command": "pytest -q tests"}),
            ],
        },
        result("c2", CODE),
        result("c3", "E   assert 314.0 == 314.159\n1 failed in 0.02s", failed=True),
    ]
    for number, turn in enumerate(turns):
        if turn["role"] == "assistant":
            used = {"input": 2_400 + 310 * number, "output": 40 + 35 * number, "cached": 2_000}
            store.record_usage(session.id, **used, model="claude-sonnet-4-5", now=NOW)
        at = NOW + 40 * SECOND * number
        store.append(session.id, {**turn, "timestamp": at}, now=at)
    end = NOW + 400 * SECOND
    store.append(session.id, {"role": "assistant", "content": "It is right.", "timestamp": end})
    store.rewind(session.id, 8)
    store.record_usage(session.id, input=5_300, output=420, cached=4_700, model="claude-sonnet-4-5")
    end += 60 * SECOND
    store.append(session.id, {"role": "assistant", "content": ANSWER, "timestamp": end}, now=end)
    store.append(session.id, {"role": "user", "content": "Thank you!", "timestamp": end + SECOND})
    store.hide(session.id, 1, 4, "The project has one module, shapes.py, with tests.")
    return session.id


def take_pictures(browser: Browser, page: Path, folder: Path, name: str) -> None:
    """Write pictures of a page: light and dark, on a desk and on a telephone."""
    for screen, size in (("", DESK), ("-phone", PHONE)):
        for look in ("light", "dark"):
            browser.do("Emulation.setDeviceMetricsOverride", **size)
            media = [{"name": "prefers-color-scheme", "value": look}]
            browser.do("Emulation.setEmulatedMedia", features=media)
            browser.do("Page.navigate", url=page.as_uri())
            time.sleep(0.7)
            browser.picture(folder / f"{name}{screen}{'' if look == 'light' else '-dark'}.png")


def main() -> None:
    """Take the pictures of a page."""
    given = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as folder, Store(":memory:") as store:
        page = (
            given
            or export_session(
                store, make_session(store), Path(folder) / "page.html", shape="html"
            ).path
        )
        browser = Browser(Path(folder) / "profile")
        try:
            name = given.stem if given else "session-page"
            take_pictures(browser, page, given.parent if given else PICTURES, name)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
