"""A hook of MkDocs: a link to a file outside of the site becomes its text."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./[^)\s]+\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page whose links to files outside of the documentation are plain text."""
    return OUTSIDE.sub(r"\1", markdown)
