"""Export sessions of a store to files.

`importing` reads the files back, other programs continue the sessions, or people read them. The
formats of programs are in `transcripts.writing`; this package reads the sessions through the public
face of the store. Only the command uses it.
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
