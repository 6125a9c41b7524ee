"""Sessions of pi.

`messages` translates an entry; `reading` builds a tree from them.
"""

from .reading import is_pi_header, parse_pi

__all__ = ["is_pi_header", "parse_pi"]
