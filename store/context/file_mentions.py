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

from ..errors import InvalidValue, quote_value
from ..phrases import REQUIRED, Language, render_phrase

MOST_MENTIONS = 5
"""Files that a reminder names; the others are counted."""

_QUOTED = re.compile(r'"([^"\n]+)"')
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:")
_SENTENCE_GOES_ON = re.compile(
    r"(?<=\.)([A-Za-z0-9]+)[^\x00-\x7f].*"  # after a suffix
    r"|(?<=[A-Za-z0-9])()[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af]+$"
)
"""Words after a path without a blank, in a script that writes without blanks."""
_WITHOUT_BLANKS = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u3190-\ua4cf\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U0003ffff]"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, Chinese and Japanese."""


Root = str | os.PathLike[str]
"""The folder of a project."""


def check_root(root: Root | None) -> Root | None:
    """Return a folder unchanged. Raises InvalidValue for a value that is no path."""
    if root is None or isinstance(root, str):
        return root
    if isinstance(root, os.PathLike) and isinstance(os.fspath(root), str):
        return root
    raise InvalidValue(
        f"root must be the path of a folder, as text or as a Path, not {quote_value(root)}"
    )


def mentions(
    text: str,
    *,
    root: Root | None = None,
) -> list[str]:
    """Return the project's files that a text mentions, in order, each once, at most five.

    A path is plain, in any script, or in quotes. Full stops at the end belong to the sentence;
    absolute paths and ``..`` are no mentions. With a ``root``, only paths that exist below it
    count. Raises InvalidValue if ``text`` is no text or ``root`` is no path.
    """
    paths, root = _find_mentions(text), check_root(root)
    if root is not None:
        paths = [path for path in paths if _has_file(root, path)]
    return paths[:MOST_MENTIONS]


def render_reminder(text: str, root: Root | None = None, language: Language = "en") -> str:
    """Return the reminder to read the files that a text mentions, "" where it mentions none.

    With a ``root``, a name without ``/`` or ``.`` that does not exist below it is no mention, and
    for several files the reminder gives the order of reading.
    """
    paths, root = _find_mentions(text), check_root(root)
    order = ""
    if root is not None:
        paths = [path for path in paths if "/" in path or "." in path or _has_file(root, path)]
        order = render_phrase("read_in_order", language) + "\n" if len(paths) > 1 else ""
    if not paths:
        return ""
    # A path is mentioned plainly if that is read as the same path, else in quotes.
    names = [
        f"@{path}" if [*_parse_mentions(f"@{path}")] == [path] else f'@"{path}"'
        for path in paths[:MOST_MENTIONS]
    ]
    if len(paths) > MOST_MENTIONS:
        names.append(REQUIRED["more_files"].text.format(count=len(paths) - MOST_MENTIONS))
    these = "this file" if len(paths) == 1 else "these files"
    return (
        "<system-reminder>\n"
        f"{REQUIRED['mentioned'].text.format(files=', '.join(names))}\n"
        f"{REQUIRED['must_read'].text.format(these=these)}\n"
        f"{order}"
        "</system-reminder>"
    )


def remind(text: str, root: Root | None = None, language: Language = "en") -> str:
    """Return a text with the reminder of the files that it mentions.

    The text is unchanged if it mentions none, or has the reminder. With a ``root``, a name without
    ``/`` or ``.`` that does not exist below it is no mention. ``language`` is the language of the
    store's additions to the required words. Raises InvalidValue if ``text`` is no text or ``root``
    is no path.
    """
    added = render_reminder(text, root, language)
    return text if not added or text.endswith(added) else f"{text}\n\n{added}"


def _find_mentions(text: str) -> list[str]:
    """Return the paths inside of a project that a text mentions, each once."""
    if not isinstance(text, str):
        raise InvalidValue(f"mentions of files are read from a text, not from {quote_value(text)}")
    paths = dict.fromkeys(_parse_mentions(text))
    return [
        path
        for path in paths
        if path.strip("./") and not _ABSOLUTE.match(path) and ".." not in re.split(r"[/\\]", path)
    ]


def _has_file(root: Root, path: str) -> bool:
    """Tell whether a path exists below a folder; a path that no system accepts does not."""
    try:
        return Path(root, path).exists()
    except (OSError, ValueError):
        return False


def _parse_mentions(text: str) -> Iterator[str]:
    """Yield the paths that a text mentions, existing or not.

    A path is in quotes, or ends before the first character that is not in paths.
    """
    at = text.find("@")
    while at >= 0:
        end = at + 1
        if not _ends_word(text, at):
            if in_quotes := _QUOTED.match(text, end):
                path, end = in_quotes[1], in_quotes.end()
            else:
                start = end
                while end < len(text) and _is_path_character(text[end]):
                    end += 1
                path = _SENTENCE_GOES_ON.sub(r"\1", text[start:end]).rstrip(".")
            yield path.strip()
        at = text.find("@", end)


def _is_path_character(character: str) -> bool:
    """Tell whether a character is a letter, mark or number of any script, or one of ``/._-``."""
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
