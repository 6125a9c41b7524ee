"""The release of the package, as it is installed."""

from __future__ import annotations

from functools import cache


@cache
def find_release() -> str:
    """Return the version of the installed package; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("convostore")
    except PackageNotFoundError:
        return ""
