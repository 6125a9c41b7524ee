"""Templates: build a value from the shape that many values of a format share.

Messages of a provider's format differ in their texts, ids and arguments; nearly all else is the
same in thousands of them. So the codec of a format converts only a specimen: a message, or the rows
of one, with an unlikely text in each place whose value differs. Where these texts are in the result
tells how to build the result for any other values. Nothing here knows a format.

A template is made when a shape is seen for the second time, because a shape that has a text of its
own in it, such as a signature, is never seen again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Any, Generic, TypeVar

from ..messages import Message

Build = Callable[[Sequence[Any]], Any]
"""Builds a value from the values of its places."""
FindPlace = Callable[[Any], "str | None"]
"""Returns the expression for a value of a specimen that has a place in ``values``; else None."""
MOST_TEMPLATES = 1024
"""The number of shapes whose templates a process remembers."""
SPECIMEN_MARK = token_hex(8)
"""The beginning of the texts of a specimen: no stored text has it, as it differs in each run."""
MadeT = TypeVar("MadeT")


class TemplateEntry(Generic[MadeT]):
    """A shape's template, if there is one, and the number of its sightings so far."""

    __slots__ = ("_sightings", "template")

    def __init__(self) -> None:
        self.template: MadeT | None = None
        self._sightings = 0

    def see_again(self, make: Callable[..., MadeT | None], *given: Any) -> MadeT | None:
        """Return the template, which is made when the shape is seen for the second time.

        An error of a codec means that a shape has no template.
        """
        self._sightings += 1
        if self._sightings == 2:
            with suppress(Exception):
                self.template = make(*given)
        return self.template


def compile_display(display: str, **names: Any) -> Build:
    """Return a function that builds the value of a display of Python from ``values``.

    A display is several times as quick as any walk through a specimen. It has only what
    `render_display` writes, and the given names.
    """
    build: Build = eval(f"lambda values: {display}", names)  # noqa: S307
    return build


def render_display(specimen: Any, find_place: FindPlace) -> str:
    """Return a display that builds such a value as a specimen, with other values in its places.

    Each built value is new, down to its smallest list. Raises TypeError.
    """
    place = find_place(specimen)
    if place is not None:
        return place
    if isinstance(specimen, dict):
        pairs = (f"{key!r}: {render_display(held, find_place)}" for key, held in specimen.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(specimen, list):
        return f"[{', '.join(render_display(each, find_place) for each in specimen)}]"
    if isinstance(specimen, tuple):
        return f"({''.join(f'{render_display(each, find_place)}, ' for each in specimen)})"
    is_literal = specimen is None or type(specimen) in (str, bool, int)
    if not is_literal and not (type(specimen) is float and math.isfinite(specimen)):
        raise TypeError(f"a {type(specimen).__name__} has no literal")
    return repr(specimen)


def remove_type(part: Message) -> Message:
    """Return a part that nothing else refers to without its type."""
    part.pop("type", None)
    return part
