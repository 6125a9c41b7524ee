"""Making texts fit into a transcript, whatever its style.

A transcript that is too long is never cut at its end, where nobody would notice what was lost. The
texts of its messages give way first, as a `Ladder` says; then whole groups are left for the next
summary, and it is said how many messages were shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

RESULT = 0
"""The rank of tool results; what stands in higher ranks is a style's own choice."""


class FittedTranscript(NamedTuple):
    """A transcript within its limit, and how many messages it shows, from the first one on."""

    transcript: str
    messages_shown: int


class Piece(NamedTuple):
    """A part of a transcript: a text that may be shortened, and what stands around it.

    Texts of one ``rank`` give way together; ``tool`` names whose result the text is.
    """

    before: str
    text: str
    after: str
    rank: int
    tool: str | None = None

    @property
    def around(self) -> int:
        """The code points of what stands around the text."""
        return len(self.before) + len(self.after)


Pieces = list[Piece]
"""The pieces of one message."""

Caps = Sequence[int]
"""The code points shown of a text, by its rank."""


class Ladder(NamedTuple):
    """How far texts give way, rung by rung; a higher rung shows no text shorter.

    Below the ``floor`` messages are rather left for the next summary, but for the first group.
    """

    caps: Callable[[int], Caps]
    lowest: int
    floor: int
    highest: int


def _as_it_is(shown: list[Pieces]) -> list[Pieces]:
    return shown


class Style(NamedTuple):
    """How pieces are made to fit.

    ``show`` returns the text of a piece in at most a number of code points, ``ranked`` gives pieces
    their ranks again when it is known which are shown.
    """

    ladder: Ladder
    show: Callable[[Piece, int], str]
    ranked: Callable[[list[Pieces]], list[Pieces]] = _as_it_is


class _Taken(NamedTuple):
    """Messages in pieces, and the length of the transcript of the first 0, 1, 2 … of them."""

    pieces: list[Pieces]
    sizes: list[int]

    def fitting(self, max_chars: int) -> int:
        """Return how many of the first messages fit."""
        return bisect_right(self.sizes, max_chars) - 1


def fitted(
    messages: Iterable[Pieces],
    style: Style,
    max_chars: int,
    ends: Sequence[int] | None = None,
) -> FittedTranscript:
    """Return a transcript of at most ``max_chars`` that leaves out none of the messages it shows.

    Texts are shortened as little as possible, down to the floor; then only the first messages are
    shown, as many as fit. ``ends``, ascending, are the numbers of messages after which a range may
    end; by default the ends of whole groups, a call with its results. The first end alone goes
    below the floor; where not even its labels fit, ``messages_shown`` is 0. Of many messages no
    more are taken than it needs to see that the rest does not fit.
    """
    ladder = style.ladder
    taken = _taken(messages, ladder.caps(ladder.floor), max_chars, ends)
    if taken.sizes[-1] <= max_chars:
        return _highest(taken.pieces, style, ladder.floor, max_chars)
    if ends is None:
        ends = ends_of_groups([_is_result(pieces) for pieces in taken.pieces])
    count = _last_within(ends, taken.fitting(max_chars))
    if count:
        return _highest(taken.pieces[:count], style, ladder.floor, max_chars)
    first = next(iter(ends), 0)
    return _highest(taken.pieces[:first], style, ladder.lowest, max_chars)


def ends_of_groups(results: Sequence[bool]) -> list[int]:
    """Return after how many messages a cut parts no tool result from what stands before it.

    Given is which messages are results.
    """
    ends = [end for end, is_result in enumerate(results[1:], 1) if not is_result]
    return [*ends, len(results)] if results else []


def written(messages: Iterable[Pieces], style: Style, caps: Caps) -> str:
    """Return pieces as one text, each shortened to the cap of its rank."""
    return "".join(_texts(messages, style, caps))


def _texts(messages: Iterable[Pieces], style: Style, caps: Caps) -> Iterator[str]:
    for piece in chain.from_iterable(messages):
        text = style.show(piece, caps[piece.rank])
        yield f"{piece.before}{text}{piece.after}"


def _highest(
    messages: list[Pieces],
    style: Style,
    lowest: int,
    max_chars: int,
) -> FittedTranscript:
    """Return a transcript of all messages on the highest rung that fits, from ``lowest`` on."""
    messages = style.ranked(messages)
    ladder, size = style.ladder, _sizer(messages)
    rungs = range(lowest, ladder.highest + 1)
    fitting = bisect_right(rungs, max_chars, key=lambda rung: size(ladder.caps(rung)))
    if not fitting:
        return FittedTranscript("", 0)
    caps = ladder.caps(rungs[fitting - 1])
    return FittedTranscript(written(messages, style, caps), len(messages))


def _is_result(pieces: Pieces) -> bool:
    return bool(pieces) and pieces[0].rank == RESULT


def _last_within(ends: Sequence[int], count: int) -> int:
    """Return the last end within so many messages, 0 where there is none."""
    within = [end for end in ends if end <= count]
    return max(within, default=0)


def _taken(
    messages: Iterable[Pieces], caps: Caps, max_chars: int, ends: Sequence[int] | None
) -> _Taken:
    """Return messages until they do not fit and the first end is known.

    All that fit are among them, and the first that does not, since lengths only grow.
    """
    first = ends[0] if ends else None
    taken = _Taken([], [0])
    for count, pieces in enumerate(messages):
        if first is None and count and not _is_result(pieces):
            first = count
        if first is not None and count >= first and taken.sizes[-1] > max_chars:
            break
        taken.pieces.append(pieces)
        taken.sizes.append(taken.sizes[-1] + _size(pieces, caps))
    return taken


def _size(pieces: Pieces, caps: Caps) -> int:
    """Return how long pieces are in a transcript."""
    size = 0
    for piece in pieces:
        size += piece.around
        size += min(caps[piece.rank], len(piece.text))
    return size


def _sizer(messages: list[Pieces]) -> Callable[[Caps], int]:
    """Return the function that tells how long pieces are by the caps of their ranks.

    It looks at no piece again.
    """
    flat = list(chain.from_iterable(messages))
    labels = sum(piece.around for piece in flat)
    lengths: dict[int, list[int]] = {}
    for piece in flat:
        lengths.setdefault(piece.rank, []).append(len(piece.text))
    shorteners = {rank: _shortener(found) for rank, found in lengths.items()}

    def size(caps: Caps) -> int:
        texts = (shortened_to(caps[rank]) for rank, shortened_to in shorteners.items())
        return labels + sum(texts)

    return size


def _shortener(lengths: list[int]) -> Callable[[int], int]:
    """Return the function that tells the sum of lengths when none may be more than a limit."""
    lengths.sort()
    sums = list(accumulate(lengths, initial=0))

    def shortened_to(limit: int) -> int:
        whole = bisect_right(lengths, limit)
        return sums[whole] + limit * (len(lengths) - whole)

    return shortened_to
