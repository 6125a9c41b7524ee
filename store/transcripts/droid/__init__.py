"""Sessions of Droid, and its output as ``stream-json``.

`entries` makes messages of a session's entries, `stream` of the output; `reading` makes sessions.
"""

from .reading import is_droid_value, parse_droid

__all__ = ["is_droid_value", "parse_droid"]
