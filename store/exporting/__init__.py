"""Export sessions of a store to files.

`importing` reads the files back, other programs continue the sessions, or people read them. The
formats of programs are in `transcripts.writing`; this package reads the sessions through the public
face of the store. Only the command uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "PROGRAM_NAMES",
    "Exported",
    "ForkSibling",
    "MaskedText",
    "Only",
    "Resumption",
    "Shape",
    "Written",
    "check_move",
    "export_session",
    "export_store",
    "find_fork_siblings",
    "list_sessions_of_tree",
    "mask",
    "put_session",
    "session_lines",
    "store_lines",
]

if TYPE_CHECKING:
    from .export import export_session, export_store, session_lines, store_lines
    from .files import Exported
    from .fork_siblings import ForkSibling, find_fork_siblings, list_sessions_of_tree
    from .masks import MaskedText, mask
    from .moves import check_move, put_session
    from .page_content import Only
    from .programs import PROGRAM_NAMES, Resumption
    from .shapes import Shape, Written

if not TYPE_CHECKING:  # a type checker would accept any name from it
    __getattr__, __dir__ = attach_modules(
        __package__,
        export="export_session export_store session_lines store_lines",
        files="Exported",
        fork_siblings="ForkSibling find_fork_siblings list_sessions_of_tree",
        masks="MaskedText mask",
        moves="check_move put_session",
        page_content="Only",
        programs="PROGRAM_NAMES Resumption",
        shapes="Shape Written",
    )
