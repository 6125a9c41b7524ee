"""One key for a file, however it was spelled. Pure: knows the paths of all platforms, and no file system."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

PATH_LIMIT = 2000
"""Bytes of a path that can be a key: PostgreSQL refuses an index entry of more than 2,704."""

UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""What no text column holds."""
_FILE_URI = re.compile(r"file:(?://(?:localhost(?=/))?([^/]*))?(/.*)", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"([A-Za-z]):(?:/|\Z)")
_TAKEN_AS_ABSOLUTE = re.compile(r"[A-Za-z]:(?:/|\Z)|file:/", re.IGNORECASE)


def normalise_path(path: str, project_root: str | None = None, *, fold_case: bool = False) -> str:
    """Return the one key of a file, however it was spelled; "" where it can be none (S1.30, S1.43, A1.7, A1.8).

    Both separators, drive letters, network shares and ``file:`` URIs are understood on every platform. An absolute
    path under the project root is made relative to it, the root itself is ``.``; a path elsewhere stays absolute; a
    relative one is taken as relative to the root. Case is folded only if asked. What no column holds becomes U+FFFD.
    """
    if not isinstance(path, str) or not path:
        return ""
    anchor, parts = _split(path, fold_case)
    if anchor and isinstance(project_root, str):
        root_anchor, root_parts = _split_root(project_root, fold_case)
        if anchor == root_anchor and parts[: len(root_parts)] == root_parts:
            anchor, parts = "", parts[len(root_parts) :]
    key = anchor + "/".join(parts) or "."
    if not anchor and _TAKEN_AS_ABSOLUTE.match(key):
        key = "./" + key  # so that a key is its own key
    size = len(key) if key.isascii() else len(key.encode())
    return key if size <= PATH_LIMIT else ""


def _split(path: str, fold_case: bool) -> tuple[str, list[str]]:
    """Return what a path hangs on ("" for a relative one, ``/``, ``//``, ``C:/``) and its collapsed parts."""
    anchor, rest = _anchored(_plain(path, fold_case))
    fixed = 2 if anchor == "//" else 0  # a share's server and name have no parent
    parts: list[str] = []
    for part in rest.split("/"):
        if part == "..":
            if len(parts) > fixed and parts[-1] != "..":
                parts.pop()
            elif not anchor:
                parts.append(part)
        elif part not in ("", "."):
            parts.append(part)
    return ("/" if anchor == "//" and not parts else anchor), parts


_split_root = lru_cache(maxsize=256)(_split)


def _plain(path: str, fold_case: bool) -> str:
    """Return a path as storable text with one kind of separator, its ``file:`` taken off."""
    uri = _FILE_URI.fullmatch(path)
    if uri:
        path = _of_uri(uri[1] or "", unquote(uri[2]).replace("\\", "/"))
    path = path.replace("\\", "/")
    if not path.isascii() or "\0" in path:
        path = UNSTORABLE.sub("\ufffd", path)
    return path.casefold() if fold_case else path


def _of_uri(host: str, path: str) -> str:
    if _DRIVE.match(host):  # file://C:/x, which is wrong and common
        return host + path
    if host:
        return f"//{host}{path}"
    return path[1:] if _DRIVE.match(path, 1) else path


def _anchored(path: str) -> tuple[str, str]:
    if path.startswith("//") and path[2:3] not in ("", "/"):
        return "//", path[2:]
    if path.startswith("/"):
        return "/", path
    drive = _DRIVE.match(path)
    return (f"{drive[1].upper()}:/", path[2:]) if drive else ("", path)
