"""The text that tells an agent when to ask its past: shipped beside the prompts of summaries."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..errors import StoreError

PACKAGE_PATH = Path(__file__).parent.parent
GUIDANCE_PLACE = Path("prompts", "agents", "ask_the_past.md")


@cache
def load_guidance() -> str:
    """Return the text, inside the package in a wheel, beside it in a checkout."""
    for folder in (PACKAGE_PATH, PACKAGE_PATH.parent):
        if (folder / GUIDANCE_PLACE).is_file():
            text = (folder / GUIDANCE_PLACE).read_text("utf-8")
            return text.partition("\n---\n")[2].strip()
    raise StoreError(f"{GUIDANCE_PLACE} is missing: install the package again")
