"""Sessions of Droid, and what it prints as ``stream-json``.

`lines` makes one kind of line of both; `reading` makes sessions of them.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
