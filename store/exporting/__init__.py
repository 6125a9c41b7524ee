"""Sessions out of a store, as files.

`importing` reads them back, other programs go on with them, or people read them. How programs keep
their sessions is known to `transcripts.writing`; this asks the store's own face for what is
written. Only the command stands above it.
"""

from __future__ import annotations

from .files import Exported
from .sessions import export_session, session_lines
from .shapes import Shape, Written
from .whole import export_store, store_lines

__all__ = [
    "Exported",
    "Shape",
    "Written",
    "export_session",
    "export_store",
    "session_lines",
    "store_lines",
]
