"""Lines of the log as values: their texts by language, their levels, and when they are said.

The page of the log is made of them. The environment chooses the language for all of a process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import NamedTuple

from ..ready import DEFAULT_LANGUAGE

LANGUAGE_VARIABLE = "CONVOSTORE_LANGUAGE"
"""The environment's choice of the language of log lines; what is sent follows the policy's."""

Texts = Mapping[str, str]
"""What a line says, by language."""


class Line(NamedTuple):
    """A line of the log: its level, when it is said, and its text by language."""

    level: int
    when: str
    texts: Texts

    def log(self, log: logging.Logger, *values: object, **fields: object) -> None:
        """Log it, with fields by which programs may tell what it says."""
        log.log(self.level, chosen(self.texts), *values, extra=fields)


def chosen(texts: Texts) -> str:
    """Return what a line says in the language that the environment chooses."""
    language = os.environ.get(LANGUAGE_VARIABLE, DEFAULT_LANGUAGE)
    return texts.get(language, texts[DEFAULT_LANGUAGE])
