"""What a model would call back: strings that it goes on to use and that are out of sight.

A recorded model saw everything, so it called nothing back. Where a call of its uses a name or a
line that the request does not show, one more request is counted. Its answer is carried on as any
result of a tool, until it is cleared. A plain word alone is counted apart, and calls for nothing:
models say words like those of a hidden result as often where no result of the session has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from store.view import describe_target

from .pricing import Prices, Request
from .recording import Recording, bare
from .reuse import Sight, in_sight
from .strings import String, calls, lines, repeated, strings, texts

CALLED_BACK = 2_000
"""Tokens of an answer of recall that is priced."""
MOST_ASKED = 8
"""So many files and commands are asked for at a moment, each by a call of its own."""

Recall = Callable[[list[str]], list[str]]
"""Returns the passages that have strings."""


def missed(recording: Recording, index: int, shown: Sight, known: set[String]) -> list[String]:
    """Return what the calls of an answer use and neither the request nor a recall showed."""
    used = _used_by_calls(recording, index)
    needed = [each.string for each in recording.reused_at(index) if each.string in used]
    seen = {*in_sight(needed, shown, recording, index)}
    return [string for string in dict.fromkeys(needed) if string not in seen | known]


def has_only_words(missing: Sequence[String]) -> bool:
    """Tell whether plain words alone are missing."""
    return bool(missing) and all(string.kind == "word" for string in missing)


def called_back(
    missing: Sequence[String], recording: Recording, index: int, recall: Recall
) -> set[String]:
    """Return which strings the answers have; each is asked for by what its hidden call is about."""
    asked: dict[str, list[String]] = {}
    for string in missing:
        asked.setdefault(_target(string, recording, index), []).append(string)
    found: set[String] = set()
    for target, wanted in [*asked.items()][:MOST_ASKED]:
        brought = Sight((), recall([target]))
        found |= {*in_sight(wanted, brought, recording, index)}
    return found


def recall_cost(requests: Iterable[Request], prices: Prices) -> float:
    """Return what recalls cost: requests of their own, and their answers carried on."""
    cost = 0.0
    for request in requests:
        cost += request.carried * prices.cached
        if request.missed:
            before = request.sent + prices.static + request.carried
            cost += before * prices.cached + CALLED_BACK * prices.written
            cost += OUTPUT * prices.output
    return cost


OUTPUT = 60
"""Tokens of a call of recall."""


def _used_by_calls(recording: Recording, index: int) -> set[String]:
    message = recording.messages[index]
    root = recording.transcript.root
    given = {"role": "assistant", "tool_calls": message.get("tool_calls")}
    seen = [bare(text, root) for text in texts(given)]
    found = {String(each.kind, bare(each.text, root)) for each in repeated(message)}
    found.update(*map(strings, seen))
    found.update(String("line", line) for text in seen for line in lines(text))
    return found


def _target(string: String, recording: Recording, index: int) -> str:
    """Return the file or command of the call that told a string last, else the string itself."""
    places = recording.told_before(string, index)
    place = places[-1] if places else 0
    message = recording.messages[place]
    if message["role"] == "tool":
        wanted = message.get("tool_call_id")
        before = reversed(recording.messages[:place])
        asked = (each for said in before for each in said.get("tool_calls") or ())
        call = next((each for each in asked if each.get("id") == wanted), None)
        message = {"tool_calls": [call] if call else []}
    found = (
        describe_target(arguments, None, recording.transcript.root)
        for _, arguments in calls(message)
    )
    return next(filter(None, found), string.text)
