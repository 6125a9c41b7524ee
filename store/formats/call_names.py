"""Rename calls and tools whose names a provider refuses, in the same way in every request.

Accepted names stay unchanged. In any other name foreign characters are replaced; the name is cut
and gets a digest of the whole name as its ending. So the sent name depends on the name alone, two
names never become one, and `Alphabet.original` finds the original among the names at hand.

Ids repeat in real conversations. The first call keeps its id, the second gets its number in the
request, so a sent id does not change when messages are added at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from ..messages import Message
from .request_messages import ApiCall, PlacedMessage

_DIGEST_LENGTH = 10  # hexadecimal digits, 40 bits
_REPETITION_ENDING = re.compile(r"(?:-(?:[2-9]|[1-9][0-9]+))+")
"""The ending of repeated ids."""
REPETITION_LIMIT = 1_000
"""Repetitions that are tried for an id so long that their numbers cannot be read."""


class Alphabet(NamedTuple):
    """The accepted names: at most ``longest`` characters, and no ``foreign`` ones."""

    longest: int
    foreign: re.Pattern[str]
    begins: str = ""
    """The prefix for a name with a wrong first character; "" if any is accepted."""

    def fits(self, name: str) -> bool:
        """Tell whether a name is accepted unchanged."""
        if not 0 < len(name) <= self.longest or self.foreign.search(name):
            return False
        return self._has_valid_beginning(name)

    def fits_all(self, names: Collection[str]) -> bool:
        """Tell whether all names are accepted unchanged; search for foreign characters once."""
        lengths = [*map(len, names), 1]
        if min(lengths) == 0 or max(lengths) > self.longest:
            return False
        if self.foreign.search("".join(names)):
            return False
        return not self.begins or all(map(self._has_valid_beginning, names))

    def fitted(self, name: str) -> str:
        """Return the name that is sent for a name."""
        return name if self.fits(name) else self._rename(name)

    def original(self, sent: str, names: Iterable[str]) -> str | None:
        """Return the name that was sent so, out of some names; None if there is none."""
        return next((name for name in names if self.fitted(name) == sent), None)

    def stands_for(self, sent: str, name: str) -> bool:
        """Tell whether a sent name stands for a name, or for a repetition of it."""
        first = self.fitted(name)
        if sent.startswith(first):
            return sent == first or bool(_REPETITION_ENDING.fullmatch(sent, len(first)))
        if len(first) + 2 <= self.longest:
            return False
        numbers = range(2, REPETITION_LIMIT)
        return any(self.fitted(number_repetition(first, number)) == sent for number in numbers)

    def _has_valid_beginning(self, name: str) -> bool:
        return not self.begins or name[:1].isalpha() or name[:1] == self.begins

    def _rename(self, name: str) -> str:
        digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        cleaned = self.foreign.sub("_", name)
        if not self._has_valid_beginning(cleaned):
            cleaned = self.begins + cleaned
        return f"{cleaned[: self.longest - _DIGEST_LENGTH - 1]}-{digest[:_DIGEST_LENGTH]}"


class AcceptedNames(NamedTuple):
    """The ids of calls and the names of tools that a provider accepts."""

    ids: Alphabet
    tools: Alphabet


WORD_ALPHABET = Alphabet(64, re.compile(r"[^A-Za-z0-9_-]"))
"""Letters, digits, ``_`` and ``-`` of ASCII."""


def fit_ids(held: Message, keys: Iterable[str]) -> Message:
    """Return a dictionary with accepted ids under some keys."""
    texts = ((key, held[key]) for key in keys if isinstance(held.get(key), str))
    unfit = {key: WORD_ALPHABET.fitted(text) for key, text in texts if not WORD_ALPHABET.fits(text)}
    return {**held, **unfit} if unfit else held


def make_call_id(seq: int, position: int) -> str:
    """Return the id to send for a call that has none."""
    return f"call_{seq}_{position}"


def number_repetition(sent: str, number: int) -> str:
    """Return the name for a repetition of a name; the first repetition is number 2."""
    return f"{sent}-{number}"


def rename_request(
    placed: Sequence[PlacedMessage], names: AcceptedNames
) -> Sequence[PlacedMessage]:
    """Return a request with accepted, unique ids and names; the same request if all are."""
    return rename_continuation(placed, names, {}).placed


def describe_renames(placed: Sequence[PlacedMessage], names: AcceptedNames) -> Iterator[str]:
    """Yield for each message the ids and names of its calls that are sent changed; "" for most."""
    for stored, sent in zip(placed, rename_request(placed, names), strict=True):
        told = []
        for call, other in zip(stored.calls, sent.calls, strict=True):
            if call.id != other.id:
                told.append(f"the id {call.id} is sent as {other.id}, in its result too")
            if call.name != other.name:
                told.append(f"the tool {call.name} is sent as {other.name}")
        yield "; ".join(told)


class RenamedRequest(NamedTuple):
    """A request with accepted ids and names, and the number of uses of each id in it so far."""

    placed: Sequence[PlacedMessage]
    times: Mapping[str, int]


def rename_continuation(
    placed: Sequence[PlacedMessage], names: AcceptedNames, times: Mapping[str, int]
) -> RenamedRequest:
    """Return the end of a request with accepted names; ``times`` counts ids in its beginning."""
    calls = [call for each in placed for call in each.calls]
    ids = {call.id for call in calls}
    is_accepted = (
        len(ids) == len(calls)
        and names.ids.fits_all(ids)
        and names.tools.fits_all({call.name for call in calls})
    )
    if is_accepted and times.keys().isdisjoint(ids):
        once = dict.fromkeys(ids, 1)
        return RenamedRequest(placed, {**times, **once})
    renamer = _CallRenamer(names, times)
    return RenamedRequest([*renamer.rename_calls(placed)], renamer.times)


class _CallRenamer:
    """A walk through a request that names its calls, and their results like them."""

    def __init__(self, names: AcceptedNames, times: Mapping[str, int]) -> None:
        self._names = names
        self.times: Counter[str] = Counter(times)
        self._open: dict[str, list[tuple[int | None, str]]] = {}

    def rename_calls(self, placed: Iterable[PlacedMessage]) -> Iterator[PlacedMessage]:
        for each in placed:
            if each.calls:
                calls = tuple(self._rename_call(each.seq, call) for call in each.calls)
                yield each._replace(calls=calls)
            elif each.call_id is not None:
                yield each._replace(call_id=self._find_sent_id(each.call_id, each.call_seq))
            else:
                yield each

    def _rename_call(self, seq: int | None, call: ApiCall) -> ApiCall:
        sent = self._make_unique_id(call.id)
        self._open.setdefault(call.id, []).append((seq, sent))
        return call._replace(id=sent, name=self._names.tools.fitted(call.name))

    def _make_unique_id(self, call_id: str) -> str:
        """Return the id to send for the next call that has an id."""
        sent = self._names.ids.fitted(call_id)
        while self.times[sent]:
            self.times[sent] += 1
            sent = self._names.ids.fitted(number_repetition(sent, self.times[sent]))
        self.times[sent] += 1
        return sent

    def _find_sent_id(self, call_id: str, call_seq: int | None) -> str:
        """Return the sent id of the call that a result answers, in the message at ``call_seq``.

        If that is not known, it is the first open one of several.
        """
        waiting = self._open.get(call_id)
        if not waiting:
            return self._names.ids.fitted(call_id)
        places = [seq for seq, _ in waiting]
        _, sent = waiting.pop(places.index(call_seq) if call_seq in places else 0)
        return sent
