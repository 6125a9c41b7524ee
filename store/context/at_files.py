"""Files that a user mentions as ``@path``: they are found, and the model is reminded to read them.

A mention injects no content. The reminder is added when a request is assembled; the stored message
stays as typed.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import InvalidValue, quoted
from ..ready import REQUIRED, Language, phrase

MOST = 5
"""Files that a reminder names; the others are counted."""

_QUOTED = re.compile(r'"([^"\n]+)"')
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:")
_SENTENCE_GOES_ON = re.compile(
    r"(?<=\.)([A-Za-z0-9]+)[^\x00-\x7f].*"  # behind a suffix
    r"|(?<=[A-Za-z0-9])()[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af]+$"
)
"""Words behind a path without a blank, in a script that writes without blanks."""
_WITHOUT_BLANKS = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u3190-\ua4cf\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U0003ffff]"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, Chinese and Japanese."""


Root = str | os.PathLike[str]
"""The folder of a project."""


def checked_root(root: Root | None) -> Root | None:
    """Return a folder as it is. Raises InvalidValue for what is no path."""
    if root is None or isinstance(root, str):
        return root
    if isinstance(root, os.PathLike) and isinstance(os.fspath(root), str):
        return root
    raise InvalidValue(f"root is the path of a folder, as text or as a Path, not {quoted(root)}")


def mentions(
    text: str,
    *,
    root: Root | None = None,
) -> list[str]:
    """Return the project's files that a text mentions, in order, each once, at most five.

    A path is plain, in any script, or in quotes. Full stops at the end belong to the sentence;
    absolute paths and ``..`` are no mentions. With a ``root``, only what exists below it counts.
    Raises InvalidValue for what is no text, and what is no folder.
    """
    found, root = _all(text), checked_root(root)
    if root is not None:
        found = [path for path in found if _exists(root, path)]
    return found[:MOST]


def reminder(text: str, root: Root | None = None, language: Language = "en") -> str:
    """Return the reminder to read the files that a text mentions, "" where it mentions none.

    With a ``root``, a name that looks like no path and is nothing below it is no mention, and of
    several files it says in which order.
    """
    found, root = _all(text), checked_root(root)
    if root is None:
        return _reminding(found)
    found = [path for path in found if _looks_like_path(path) or _exists(root, path)]
    in_order = phrase("read_in_order", language) + "\n"
    return _reminding(found, in_order if len(found) > 1 else "")


def _reminding(found: list[str], how: str = "") -> str:
    """Return the reminder to read files, "" for none; ``how`` is its last line, if any."""
    if not found:
        return ""
    these = "this file" if len(found) == 1 else "these files"
    return (
        "<system-reminder>\n"
        f"{REQUIRED['mentioned'].text.format(files=_named(found))}\n"
        f"{REQUIRED['must_read'].text.format(these=these)}\n"
        f"{how}"
        "</system-reminder>"
    )


def _named(paths: list[str]) -> str:
    """Return the first of many files by name, and how many more there are."""
    named = [_mention(path) for path in paths[:MOST]]
    if len(paths) > MOST:
        named.append(REQUIRED["more_files"].text.format(count=len(paths) - MOST))
    return ", ".join(named)


def _mention(path: str) -> str:
    """Return a path as it is mentioned: plain where that is read as the same path."""
    plain = f"@{path}"
    return plain if list(_mentioned(plain)) == [path] else f'@"{path}"'


def remind(text: str, root: Root | None = None, language: Language = "en") -> str:
    """Return a text with the reminder of the files that it mentions.

    As it is where there are none, or it has it. With a ``root``, a name that looks like no path
    and is nothing below it is no mention. ``language`` is that of what the store adds to the words
    that are asked for. Raises InvalidValue for what is no text, and what is no folder.
    """
    added = reminder(text, root, language)
    return text if not added or text.endswith(added) else f"{text}\n\n{added}"


def _all(text: str) -> list[str]:
    if not isinstance(text, str):
        raise InvalidValue(f"files are mentioned in a text, not in {quoted(text)}")
    return list(dict.fromkeys(filter(_in_project, _mentioned(text))))


def _exists(root: Root, path: str) -> bool:
    """Tell whether a path leads to something below a folder; what no system can name does not."""
    try:
        return Path(root, path).exists()
    except (OSError, ValueError):
        return False


def _looks_like_path(path: str) -> bool:
    return "/" in path or "." in path


def _mentioned(text: str) -> Iterator[str]:
    """Yield the paths that a text mentions, whatever they lead to."""
    at = text.find("@")
    while at >= 0:
        end = at + 1
        if not _ends_word(text, at):
            path, end = _path_behind(text, end)
            yield path.strip()
        at = text.find("@", end)


class _Path(NamedTuple):
    """A path in a text, and where it ends there."""

    path: str
    end: int


def _path_behind(text: str, start: int) -> _Path:
    """Return the path that begins somewhere: in quotes, or as far as letters go."""
    quoted = _QUOTED.match(text, start)
    if quoted:
        return _Path(quoted[1], quoted.end())
    end = start
    while end < len(text) and _is_of_name(text[end]):
        end += 1
    path = _SENTENCE_GOES_ON.sub(r"\1", text[start:end])
    return _Path(path.rstrip("."), end)


def _is_of_name(character: str) -> bool:
    """Tell a letter, mark or number of any script, and what ASCII names have beside them."""
    if character.isascii():
        return character.isalnum() or character in "/._-"
    return unicodedata.category(character)[0] in "LMN"


def _ends_word(text: str, end: int) -> bool:
    """Tell whether a digit or a letter, with its marks, ends there: an address goes on with it.

    A letter of a script that writes without blanks may be the last one of a sentence's words.
    """
    while end and unicodedata.category(text[end - 1])[0] == "M":
        end -= 1
    last = text[end - 1 : end]
    if not last or _WITHOUT_BLANKS.match(last):
        return False
    category = unicodedata.category(last)
    return category[0] == "L" or category == "Nd"


def _in_project(path: str) -> bool:
    if not path.strip("./") or _ABSOLUTE.match(path):
        return False
    return ".." not in re.split(r"[/\\]", path)
