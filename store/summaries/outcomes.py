"""What commands came to, and commands without the texts that they are fed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..ready import Language, phrase
from ..text import Fields, json_object, value_at
from ..tools import error_told
from .speech import said_in, without_tags
from .texts import ELLIPSIS, flatten_to_line, scrub_text

LIMIT = 80
"""Code points that are told of what a command came to."""
READ = 4000
"""Code points at the end of an output in which it is looked for."""
NEAR = 400
"""Code points at the very end in which it is looked for first: nearly every last line tells."""
OUTPUTS = (
    *(("stdout",), ("stderr",)),
    *(("data", "stdout"), ("data", "stderr")),
    ("output",),
)
"""Where a JSON result has the output of a command."""

FAILURE_LIMIT = 200
"""Code points that are told of what a user said who refused a call."""

_TELLS = re.compile(r"\w.*\w")
_FRAME = re.compile(
    r"\[.*\]|</?[a-z_]+>|Shell cwd was reset.*|Output:|Process exited with code -?\d+"
    r"|(?:Chunk ID|Wall time|Exit code|Original token count|Total output lines):? .*"
)
"""Lines that the program says which ran the command."""
_FED = re.compile(
    r"(<<-?[ \t]*[\"']?(\w+)[\"']?[^\n]*\n[^\n]*\n)(.*?)(?=^[ \t]*\2\b|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A here-document: what stands before its second line, its word, and the rest of it."""
_FED_LIMIT = 80
_COMMAND_READ = 4000


def find_outcome(result: str, fields: Fields | None = None) -> str:
    """Return the last line of a command's result that tells something, in one line; "" for none.

    ``fields`` are those of a result that is a JSON object, {} of any other (None: not read yet).
    """
    output = _output(result, fields)[-READ:]
    return _last_telling(_near_end(output)) or _last_telling(scrub_text(output))


def _near_end(output: str) -> str:
    """Return the last lines of an output; "" where a tag that is closed there begins before."""
    start = output.find("\n", max(0, len(output) - NEAR)) + 1
    lines = scrub_text(output[start:])
    return "" if "</" in lines else lines


def _last_telling(output: str) -> str:
    lines = reversed(without_tags(output).splitlines())
    telling = (line for line in lines if _is_telling(line.strip()))
    return flatten_to_line(next(telling, ""), LIMIT)


def describe_failure(result: str, fields: Fields | None = None, language: Language = "en") -> str:
    """Return why a call failed: of one that the user refused what the user said.

    ``fields`` as for `find_outcome`.
    """
    said = said_in(result)
    if said:
        told = phrase("refused", language) + phrase("colon", language) + said
        return flatten_to_line(told, FAILURE_LIMIT)
    return error_told(result, fields)


def strip_heredocs(command: str) -> str:
    """Return a command without the rest of its here-documents behind their first lines."""
    if "<<" not in command:
        return command
    return _FED.sub(_first_line_of, command[:_COMMAND_READ]).rstrip()


def _first_line_of(fed: re.Match[str]) -> str:
    return fed[0] if len(fed[3]) < _FED_LIMIT else f"{fed[1]}{ELLIPSIS}\n"


def _output(result: str, fields: Fields | None) -> str:
    """Return what a command said: of a JSON result the field that has it."""
    if fields is None:
        fields = json_object(result)
    return next(_texts_in(fields), result) if fields else result


def _texts_in(fields: Fields) -> Iterator[str]:
    for path in OUTPUTS:
        text = value_at(path, fields)
        if isinstance(text, str) and text.strip():
            yield text


def _is_telling(line: str) -> bool:
    return _TELLS.search(line) is not None and _FRAME.fullmatch(line) is None
