"""Transcript files into a store: streamed, in batches, and as often as one likes.

What is in the store already stays there: a session that exists is compared with its file message by
message, and only what is new is appended. Nothing here knows a file format: `transcripts` reads,
this writes, by the store's own face. Only the command stands above it.
"""

from .folders import FileFound, HomeFound, files_in, homes_beyond, homes_found
from .growing import Growing
from .reading import Begun, begin, import_begun, import_file
from .report import ImportedSession, ImportReport
from .session import BATCH

__all__ = [
    "BATCH",
    "Begun",
    "FileFound",
    "Growing",
    "HomeFound",
    "ImportReport",
    "ImportedSession",
    "begin",
    "files_in",
    "homes_beyond",
    "homes_found",
    "import_begun",
    "import_file",
]
