"""Import transcript files into a store: streamed, in batches, and any number of times.

Stored messages stay in the store: an existing session is compared with its file message by message,
and only new messages are appended. No module here knows a file format: `transcripts` reads the
files, and this package writes through the public face of the store. Only the command uses it.
"""

from .files import (
    GrowingFiles,
    SessionFolder,
    TranscriptFile,
    find_session_folders,
    find_skipped_folders,
    find_transcript_files,
)
from .session import BATCH_MESSAGES, ImportedSession, ImportReport
from .transcript import OpenedTranscript, import_file, import_opened_transcript, open_transcript

__all__ = [
    "BATCH_MESSAGES",
    "GrowingFiles",
    "ImportReport",
    "ImportedSession",
    "OpenedTranscript",
    "SessionFolder",
    "TranscriptFile",
    "find_session_folders",
    "find_skipped_folders",
    "find_transcript_files",
    "import_file",
    "import_opened_transcript",
    "open_transcript",
]
