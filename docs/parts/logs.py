"""The lines of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from store.compaction import log_messages as compaction_log
from store.database import SafeLogger
from store.view import LogMessage, build, log_messages, read_files

from .markdown import as_table

COLUMNS = ("logger", "level", "when", "in English", "in Chinese", "unless asked")
LANGUAGE_NAMES = {"en": "English", "zh": "Chinese"}


def log_lines() -> str:
    """Return the lines that views and compactions log."""
    return as_table(COLUMNS, [_row(*each) for each in _lines()])


def _lines() -> Iterator[tuple[SafeLogger, LogMessage]]:
    for line in build.RULE_LOG_MESSAGES.values():
        yield build.view_logger, line
    for line in read_files.READ_LOG_MESSAGES:
        yield read_files.read_logger, line
    yield log_messages.rule_logger, log_messages.RULE_FAILED
    for line in compaction_log.LOG_MESSAGES:
        yield compaction_log.compaction_logger, line


def _row(log: SafeLogger, line: LogMessage) -> tuple[str, ...]:
    level = logging.getLevelName(line.level)
    texts = (f"`{line.texts[language]}`" for language in LANGUAGE_NAMES)
    return (f"`{log.name}`", level, line.when, *texts, LANGUAGE_NAMES[line.language])
