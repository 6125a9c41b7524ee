"""Normalization of paths: one key for a file, however its path is spelled.

Pure: knows the paths of all platforms, and no file system.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from ..messages import count_utf8_bytes
from ..text import clearable_cache

PATH_LIMIT = 2000
"""Bytes of a path that can be a key: PostgreSQL refuses an index entry of more than 2,704."""

UNSTORABLE_CHARACTERS = re.compile("[\0\ud800-\udfff]")
"""Characters that no text column holds."""
_FILE_URI = re.compile(r"file:(?://(?:localhost(?=/))?([^/]*))?(/.*)", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"([A-Za-z]):(?:/|\Z)")
_ABSOLUTE_PREFIX = re.compile(r"[A-Za-z]:(?:/|\Z)|file:/", re.IGNORECASE)


SplitPath = tuple[str, list[str]]
"""The anchor of a path (``/``, ``//``, ``C:/``, or "" if it is relative), and its parts."""


def normalise_path(path: str, project_root: str | None = None, *, fold_case: bool = False) -> str:
    """Return the one key of a file, however it is spelled; "" if it cannot have one.

    Both separators, drive letters, network shares and ``file:`` URIs are understood on every
    platform. An absolute path under the project root is made relative to it, the root itself is
    ``.``; a path elsewhere stays absolute; a relative one is taken as relative to the root. Case is
    folded only on request. Characters that no column holds become U+FFFD.
    """
    if not isinstance(path, str) or not path:
        return ""
    root = project_root if isinstance(project_root, str) else None
    return _normalise_text_path(path, root, fold_case)


@clearable_cache(1 << 12)
def _normalise_text_path(path: str, root: str | None, fold_case: bool) -> str:
    anchor, parts = _split_path(path, fold_case)
    if anchor and root is not None:
        root_anchor, root_parts = _split_path(root, fold_case)
        if anchor == root_anchor and parts[: len(root_parts)] == root_parts:
            anchor, parts = "", parts[len(root_parts) :]
    key = anchor + "/".join(parts) or "."
    if not anchor and _ABSOLUTE_PREFIX.match(key):
        key = "./" + key  # so that a key is its own key
    return key if count_utf8_bytes(key) <= PATH_LIMIT else ""


def _split_path(path: str, fold_case: bool) -> SplitPath:
    rest = _clean_path_text(path, fold_case)
    drive = _DRIVE.match(rest)
    if rest.startswith("//") and rest[2:3] not in ("", "/"):
        anchor, rest = "//", rest[2:]
    elif drive:
        anchor, rest = f"{drive[1].upper()}:/", rest[2:]
    else:
        anchor = "/" if rest.startswith("/") else ""
    parts: list[str] = []
    for part in rest.split("/"):
        if part == "..":
            fixed = 2 if anchor == "//" else 0
            if len(parts) > fixed and parts[-1] != "..":
                parts.pop()
            elif not anchor:
                parts.append("..")
        elif part not in ("", "."):
            parts.append(part)
    return ("/" if anchor == "//" and not parts else anchor), parts


def _clean_path_text(path: str, fold_case: bool) -> str:
    """Return a path as storable text with one kind of separator, without its ``file:``."""
    if ":" in path:
        uri = _FILE_URI.fullmatch(path)
        if uri is not None:
            host, path = uri[1] or "", unquote(uri[2]).replace("\\", "/")
            if _DRIVE.match(host):  # file://C:/x, which is wrong and common
                path = host + path
            elif host:
                path = f"//{host}{path}"
            elif _DRIVE.match(path, 1):
                path = path[1:]
    path = path.replace("\\", "/")
    if not path.isascii() or "\0" in path:
        path = UNSTORABLE_CHARACTERS.sub("\ufffd", path)
    return path.casefold() if fold_case else path
