"""Facts about tool calls and their results, read once when they are stored: facts, not verdicts.

Tables of names and signs, and pure functions that read them: the files that a call names, the kind
of its tool, whether it failed, its result in a few lines. It reads no database; any higher room may
use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from . import failure, patches
    from .calls import ToolPath, call_paths, files_named
    from .error_texts import error_told
    from .excerpts import markers_in
    from .failure import failed, is_command, known_by_looks, signs_sql, switches
    from .kinds import DECIDED_BY, TOOL_KINDS, bare_word
    from .names import Name, best_first, names_in
    from .paths import normalise_path
    from .results import (
        Facts,
        answered_call_id,
        how_it_ended,
        kind_name,
        looks_terminal,
        result_facts,
    )
    from .short_forms import compress
    from .todos import is_all_done, recap

__all__ = [
    "DECIDED_BY",
    "TOOL_KINDS",
    "Facts",
    "Name",
    "ToolPath",
    "answered_call_id",
    "bare_word",
    "best_first",
    "call_paths",
    "compress",
    "error_told",
    "failed",
    "failure",
    "files_named",
    "how_it_ended",
    "is_all_done",
    "is_command",
    "kind_name",
    "known_by_looks",
    "looks_terminal",
    "markers_in",
    "names_in",
    "normalise_path",
    "patches",
    "recap",
    "result_facts",
    "signs_sql",
    "switches",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = attach_modules(
        __package__,
        "failure patches",
        calls="ToolPath call_paths files_named",
        error_texts="error_told",
        excerpts="markers_in",
        failure="failed is_command known_by_looks signs_sql switches",
        kinds="DECIDED_BY TOOL_KINDS bare_word",
        names="Name best_first names_in",
        paths="normalise_path",
        results="Facts answered_call_id how_it_ended kind_name looks_terminal result_facts",
        short_forms="compress",
        todos="is_all_done recap",
    )
