"""Lines of the log as values: their texts by language, their levels, and when they are logged.

The page about the log is generated from them. The environment chooses the language for a process,
else the policy does. Without either, lines that are demanded in Chinese are Chinese.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from ..database import SafeLogger, get_logger
from ..errors import describe_origin
from ..phrases import Language
from ..policy import Policy

rule_logger = get_logger(__name__)
RuleResultT = TypeVar("RuleResultT")

LANGUAGE_VARIABLE = "CONVOSTORE_LANGUAGE"
"""The variable for the language of log lines; requests follow the policy's language."""
LOG_LANGUAGE: Language = "en"
"""The language of log lines that nothing chooses, unless they are demanded in another one."""

TextsByLanguage = Mapping[str, str]
"""The text of a line by language."""


class LogMessage(NamedTuple):
    """A line of the log: its level, when it is logged, and its text by language.

    ``language`` is that of a line whose language nothing chooses.
    """

    level: int
    when: str
    texts: TextsByLanguage
    language: Language = LOG_LANGUAGE

    def log(
        self, log: SafeLogger, asked: Language | None, /, *values: object, **fields: object
    ) -> None:
        """Log the line with values for its text, and with fields for programs.

        ``asked`` is the language that the policy names (None: it names none).
        """
        chosen = (os.environ.get(LANGUAGE_VARIABLE), asked, self.language)
        text = next(self.texts[each] for each in chosen if each and each in self.texts)
        log.log(self.level, text, *values, extra=fields)


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
        origin = describe_origin(error)
        RULE_FAILED.log(rule_logger, None, rule, origin, rule=rule, error=origin)
        return otherwise


def get_named_language(policy: Policy) -> Language | None:
    """Return the language that a policy names; None for one that leaves it to the default."""
    return policy.language if "language" in policy.model_fields_set else None
