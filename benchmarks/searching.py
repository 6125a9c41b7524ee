"""``python -m benchmarks.searching``: how long a first page of hits takes, and what the index does.

A store of 100,000 messages, 50 in a session. Its words are as frequent as those of a language, and
four of them are in a hundredth, a twentieth, a tenth and in all of the messages. Each question is
asked some times. In a file the least CPU time counts; on a server (``--url``, an empty database),
which takes its own, the least time. Returns 1 where a word of at most a tenth takes more than 20 ms
(50 ms where a thousand messages are ranked, or sessions are found), or the index is larger than 1.5
× the text that it covers. Half of the sessions are of one owner, the others of twenty.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from store import Store

LONGEST = 20.0
"""Ms that a first page may take, of words that at most a tenth of the messages have."""
LONGEST_RANKED = 50.0
"""Ms that it may take where as many messages have the words as are ranked at most."""
LONGEST_BY_SESSION = 50.0
"""Ms that it may take where sessions are found instead of messages."""
BY_SESSION = {"by": "session"}
OWNED = {"owner": "owner 3"}
"""An owner of a fortieth of the messages."""
NOT_MET = {True: "", False: "  NO"}
LARGEST = 1.5
"""Bytes of the index to a byte of text."""
WORDS = 60
"""Words of a message, names included."""
VOCABULARY = 20_000

FREQUENT = {"hundredth": 100, "twentieth": 20, "tenth": 10}
"""In each so many messages there is one that has the word."""

QUESTIONS: dict[str, tuple[str, dict[str, Any], float]] = {
    "in a hundredth": ("hundredth", {}, LONGEST_RANKED),
    "in a twentieth": ("twentieth", {}, LONGEST),
    "in a tenth": ("tenth", {}, LONGEST),
    "in a tenth, newest first": ("tenth", {"order": "newest"}, LONGEST),
    "two words in a row": ('"tenth every"', {}, LONGEST),
    "the same in a twentieth": ('"twentieth tenth"', {}, LONGEST),
    "in no message": ("nowhere", {}, LONGEST),
    "a part of a name": ("nique_name_7", {}, LONGEST),
    "in all, so newest first": ("every", {}, LONGEST),
    "of one owner": ("tenth", OWNED, 5 * LONGEST),
    "of one session": ("tenth", {"session": "s7"}, 5 * LONGEST),
    "sessions, a word": ("tenth", BY_SESSION, LONGEST_BY_SESSION),
    "sessions, two words": ("hundredth twentieth", BY_SESSION, LONGEST_BY_SESSION),
    "sessions, in many messages": ("hundredth tenth every", BY_SESSION, LONGEST_BY_SESSION),
    "sessions, never together": ("unique_name_70 hundredth", BY_SESSION, LONGEST_BY_SESSION),
    "sessions, parts of names": ("nique_name_7 tenth", BY_SESSION, LONGEST_BY_SESSION),
    "sessions, found nowhere": ("nowhere every", BY_SESSION, LONGEST_BY_SESSION),
    "sessions, a word of all": ("every", BY_SESSION, LONGEST_BY_SESSION),
    "sessions, a part of all": ("nique_name", BY_SESSION, LONGEST_BY_SESSION),
    "sessions, any of all": ("nique_name every", {**BY_SESSION, "any": True}, LONGEST_BY_SESSION),
    "sessions of half, a word": ("every", {**BY_SESSION, "owner": "half"}, LONGEST_BY_SESSION),
    "sessions of half, a part": (
        "nique_name every",
        {**BY_SESSION, "owner": "half", "any": True},
        LONGEST_BY_SESSION,
    ),
}
QUESTIONS |= {
    f"{name}, of an owner": (words, options | OWNED, longest)
    for name, (words, options, longest) in QUESTIONS.items()
    if options == BY_SESSION or ("any" in options and "owner" not in options)
}
"""What is asked: words, options, and how many ms it may take."""


class Timed(NamedTuple):
    """A question, what its first page took of a processor (ms), and how many hits that has."""

    question: str
    ms: float
    hits: int
    is_met: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a target is missed."""
    options = _options(arguments)
    clock = time.perf_counter if options.url else time.process_time
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder,
        Store(options.url or Path(folder, "chat.db"), durability="normal") as store,
    ):
        text = fill(store, options.messages, options.session)
        began = time.perf_counter()
        size = store.index().size
        print(f"indexed in {time.perf_counter() - began:.1f} s")
        found = [asked(store, question, options.runs, clock) for question in QUESTIONS]
    for each in found:
        print(f"{each.question:40} {each.ms:8.1f} ms {each.hits:4} hits{NOT_MET[each.is_met]}")
    print(f"index: {size / text:.2f} x the text of {text / 1e6:.0f} MB")
    return int(size > LARGEST * text or not all(each.is_met for each in found))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.searching", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="in the store")
    parser.add_argument("--session", type=int, default=50, help="messages of a session")
    parser.add_argument("--runs", type=int, default=9, help="of which the best one counts")
    parser.add_argument("--url", help="an empty database on a server, instead of a file")
    parser.add_argument("--folder", type=Path, help="where the file is made")
    return parser.parse_args(arguments)


def fill(store: Store, messages: int, length: int) -> int:
    """Make the sessions, each of so many messages; return how many bytes of text they have."""
    said, size = texts(messages), 0
    for number in range(0, messages, length):
        place = number // length
        session, owner = f"s{place}", f"owner {place // 2 % 20}" if place % 2 else "half"
        store.create_session(session, title=f"chat {number}", owner=owner)
        contents = [next(said) for _ in range(min(length, messages - number))]
        store.append(session, [{"role": "user", "content": each} for each in contents])
        size += sum(len(each.encode()) for each in contents)
    return size


def texts(messages: int) -> Iterator[str]:
    """Yield what is said."""
    chance = random.Random(1)
    vocabulary = ["".join(chance.choices("aeioubcdfgklmnprst", k=7)) for _ in range(VOCABULARY)]
    for number in range(messages):
        drawn = (int(chance.paretovariate(0.6)) % VOCABULARY for _ in range(WORDS))
        words = [vocabulary[each] for each in drawn]
        words += [word for word, each in FREQUENT.items() if number % each == 0]
        yield " ".join([*words, "every", f"src/unique_name_{number}.py"])


def asked(store: Store, question: str, runs: int, clock: Callable[[], float]) -> Timed:
    """Ask a question some times, and take the best."""
    words, options, limit = QUESTIONS[question]
    times = []
    for _ in range(runs):
        began = clock()
        hits = store.search(words, **options)
        times.append((clock() - began) * 1000)
    return Timed(question, min(times), len(hits), min(times) <= limit)


if __name__ == "__main__":
    sys.exit(main())
