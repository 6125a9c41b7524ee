"""Export sessions of a store to files.

`importing` reads the files back, other programs continue the sessions, or people read them. The
formats of programs are in `transcripts.writing`; this package reads the sessions through the public
face of the store. Only the command uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "Exported",
    "MaskedText",
    "Only",
    "Shape",
    "Written",
    "export_session",
    "export_store",
    "mask",
    "session_lines",
    "store_lines",
]

if TYPE_CHECKING:
    from .export import export_session, export_store, session_lines, store_lines
    from .files import Exported
    from .masks import MaskedText, mask
    from .page_content import Only
    from .shapes import Shape, Written

if not TYPE_CHECKING:  # a type checker would accept any name from it
    __getattr__, __dir__ = attach_modules(
        __package__,
        export="export_session export_store session_lines store_lines",
        files="Exported",
        masks="MaskedText mask",
        page_content="Only",
        shapes="Shape Written",
    )
