"""What a summary is asked without a model: questions that the recorded future answers.

Which file is edited next, which command is run next, what the last test said. A question counts
where hidden messages have its answer; a text answers it that has the answer, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..facts import COMMANDS, PATCH, PATHS
from ..recorded import Message
from .recording import AHEAD, Recording, bare
from .strings import GROUPS, REPEATED, SHORTEST, calls, strings, texts

NEXT_FILE, NEXT_COMMAND, LAST_TEST = "next file", "next command", "last test"
QUESTIONS = (NEXT_FILE, NEXT_COMMAND, LAST_TEST)
COMPARED = 60
"""Code points in which what a command came to is compared: a summary may cut it."""
WRITTEN = (*REPEATED, "content", "file_text", "new_string", "newText")
"""Arguments of calls that change a file."""
PROGRAM_TALK = re.compile(
    r"<(local-command-[a-z]+|command-[a-z]+|system-reminder|task-notification|environment_context"
    r"|user_instructions|skill|turn_aborted|user_shell_command)>.*?</\1>"
    r"|\A\s*(Caveat: The messages below|\[Request interrupted|Base directory for this skill"
    r"|# AGENTS\.md instructions|This session is being continued|Unknown skill: |\[Image: ).*",
    re.DOTALL,
)
"""What programs put into the mouth of the user."""
_FRAME = re.compile(r"\[.*\]\Z|Shell cwd was reset")
"""A line of the program that ran a command."""
_TELLING = re.compile(r"\w.*\w")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TEST = re.compile(r"(?:\b|_)(?:py|unit)?tests?\b|\b(?:jest|vitest|tox|nox|rspec)\b")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
_CUT = re.compile(r"\S*(?:…|\.\.\.)\S*")
"""A name that was cut is no name."""


class Probe(NamedTuple):
    """A question, and the text that answers it."""

    question: str
    answer: str


def probes(recording: Recording, index: int, hidden: Sequence[Message]) -> Iterator[Probe]:
    """Yield the questions at an index that hidden messages can answer."""
    known = all_texts(hidden)
    root = recording.transcript.root
    ahead = recording.messages[index : index + AHEAD]
    made = [each for message in ahead for each in calls(message)]
    tests = [line for ran, line in outcomes(hidden).items() if line and _TEST.search(ran)]
    answers = {
        NEXT_FILE: next(filter(None, map(_edited_file, made)), ""),
        NEXT_COMMAND: next(filter(None, (command(each).partition("\n")[0] for each in made)), ""),
        LAST_TEST: tests[-1][:COMPARED] if tests else "",
    }
    for question, answer in answers.items():
        least = SHORTEST["command"] if question == NEXT_COMMAND else 1
        if len(answer) >= least and is_told(plain(answer), known, root):
            yield Probe(question, plain(answer))


def foreign_names(summary: str, hidden: Sequence[Message], root: str | None) -> tuple[int, int]:
    """Return how many names a summary has, and how many of them stand in no hidden message."""
    made = (call for message in hidden for call in message.get("tool_calls") or ())
    functions = (call.get("function", call) for call in made)
    given = " ".join(f"{each.get('name')} {each.get('arguments')}" for each in functions)
    known = bare(f"{all_texts(hidden)} {given}", root)
    found = strings(bare(_CUT.sub(" ", summary), root))
    names = {each.text for each in found if each.kind in GROUPS["names"]}
    return len(names), sum(name not in known for name in names)


def outcomes(messages: Iterable[Message]) -> dict[str, str]:
    """Return what commands came to, each as it was last, the newest last."""
    waiting: dict[str, str] = {}
    newest: dict[str, str] = {}
    for message in messages:
        ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
        waiting.update(zip(ids, map(command, calls(message)), strict=True))
        ran = waiting.pop(str(message.get("tool_call_id")), "")
        if ran:
            newest.pop(ran, None)
            newest[ran] = _last_line("\n".join(texts(message)))
    return newest


def command(call: tuple[str, Any]) -> str:
    """Return the command that a call runs, else nothing."""
    name, arguments = call
    named = arguments if isinstance(arguments, dict) else {}
    found = named.get(COMMANDS.get(name, ""))
    return found if isinstance(found, str) else ""


def is_told(fact: str, text: str, root: str | None) -> bool:
    """Tell whether a fact stands in a text, paths in it whole or as they are seen from the root."""
    return fact in text or bare(fact, root) in bare(text, root)


def all_texts(messages: Iterable[Message]) -> str:
    """Return all texts of messages in one line."""
    return plain("\n".join(text for message in messages for text in texts(message)))


def plain(text: str) -> str:
    """Return a text in one line, without control characters."""
    return " ".join(_CONTROLS.sub("", text).split())


def _edited_file(call: tuple[str, Any]) -> str:
    """Return the file that a call changes, else nothing."""
    _, arguments = call
    named = arguments if isinstance(arguments, dict) else {"text": arguments}
    patches = (text for text in named.values() if isinstance(text, str) and PATCH in text)
    patched = _PATCHED.search("\n".join(patches))
    if patched:
        return patched[1].strip()
    paths = (named[key] for key in PATHS if isinstance(named.get(key), str))
    return next(paths, "") if not named.keys().isdisjoint(WRITTEN) else ""


def _last_line(output: str) -> str:
    """Return the last line that has words in it, without what programs add around an output."""
    if output.startswith("Chunk ID:"):
        output = output.rpartition("\nOutput:\n")[2]
    lines = map(plain, PROGRAM_TALK.sub("", output).split("\n"))
    telling = [line for line in lines if _TELLING.search(line) and not _FRAME.match(line)]
    return telling[-1] if telling else ""
