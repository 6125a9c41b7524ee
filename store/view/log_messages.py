"""Lines of the log as values: their texts by language, their levels, and when they are logged.

The page about the log is generated from them. The environment chooses the language for a process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from ..database import SafeLogger, get_logger
from ..errors import describe_origin
from ..phrases import DEFAULT_LANGUAGE

rule_logger = get_logger(__name__)
RuleResultT = TypeVar("RuleResultT")

LANGUAGE_VARIABLE = "CONVOSTORE_LANGUAGE"
"""The variable for the language of log lines; requests follow the policy's language."""

TextsByLanguage = Mapping[str, str]
"""The text of a line by language."""


class LogMessage(NamedTuple):
    """A line of the log: its level, when it is logged, and its text by language."""

    level: int
    when: str
    texts: TextsByLanguage

    def log(self, log: SafeLogger, *values: object, **fields: object) -> None:
        """Log the line with values for its text, and with fields for programs."""
        log.log(self.level, choose_text(self.texts), *values, extra=fields)


RULE_FAILED = LogMessage(
    logging.WARNING,
    "a rule failed on a result or a call, which stays whole: the rule, the error and its place",
    {
        "zh": "规则 %s 失败，内容保留原样: %s",
        "en": "the rule %s failed, so what it was applied to stays whole: %s",
    },
)


def attempt_rule(
    rule: str, apply: Callable[[], RuleResultT], otherwise: RuleResultT
) -> RuleResultT:
    """Return the result of a rule's function, or ``otherwise`` if the function fails."""
    try:
        return apply()
    except Exception as error:  # noqa: BLE001 - a rule never ends the turn of a host
        RULE_FAILED.log(
            rule_logger, rule, describe_origin(error), rule=rule, error=describe_origin(error)
        )
        return otherwise


def choose_text(texts: TextsByLanguage) -> str:
    """Return the text of a line in the language that the environment chooses."""
    language = os.environ.get(LANGUAGE_VARIABLE, DEFAULT_LANGUAGE)
    return texts.get(language, texts[DEFAULT_LANGUAGE])
