"""Import transcript files into a store: streamed, in batches, and any number of times.

Stored messages stay in the store: an existing session is compared with its file message by message,
and only new messages are appended. No module here knows a file format: `transcripts` reads the
files, and this package writes through the public face of the store. Only the command uses it.
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
