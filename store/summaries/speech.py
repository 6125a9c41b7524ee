"""Who really speaks: what programs put into the mouth of the user, and what users say in results.

A program that runs a model tells it in the user's name of commands, reminders and skills. And a
user who refuses a call says why where the call's result would stand.
"""

from __future__ import annotations

import re

TAGS = (
    "command-[a-z]+",
    "environment_context",
    "ide_[a-z_]+",
    "local-command-[a-z]+",
    "skill",
    "system-reminder",
    "system_warning",
    "task-notification",
    "turn_aborted",
    "user-prompt-submit-hook",
    "user_instructions",
    "user_shell_command",
)
"""What is in such a tag is said by a program."""
BEGINNINGS = (
    "Caveat: The messages below",
    "[Request interrupted",
    "[Image: ",
    "Base directory for this skill",
    "# AGENTS.md instructions",
    "This session is being continued",
    "Unknown skill: ",
    "Unknown slash command: ",
)
"""A text that begins so is said by a program, from there to its end."""
REJECTIONS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "User rejected tool use",
)
"""How the result of a call begins that the user refused."""
REASONS = ("the user said:", "with the following reason:", "Reason:")
"""What stands before the user's own words in it."""

_TAGGED = re.compile(rf"<({'|'.join(TAGS)})(?: [^>\n]*)?>.*?</\1>", re.DOTALL)
_BEGINS = re.compile(rf"\s*(?:{'|'.join(map(re.escape, BEGINNINGS))})")
_REJECTED = re.compile(rf"\s*(?:Error: )?(?:{'|'.join(map(re.escape, REJECTIONS))})")
_REASON = re.compile("|".join(map(re.escape, REASONS)))


def spoken(text: str) -> str:
    """Return what a person said in a user's message, "" where a program said all of it."""
    said = without_tags(text)
    return "" if _BEGINS.match(said) else said.strip()


def without_tags(text: str) -> str:
    """Return a text without what programs put into tags of theirs."""
    return _TAGGED.sub("", text) if "</" in text else text


def said_in(result: str) -> str:
    """Return the user's words in the text of a result, "" where the user did not refuse."""
    if not _REJECTED.match(result):
        return ""
    _, *words = _REASON.split(result, maxsplit=1)
    return "".join(words).strip()
