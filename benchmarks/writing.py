"""Measures of writing: appends, forks, rewinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .compacting import hidden
from .reading import Found
from .rivals import Branches
from .stage import BATCH, SESSION, SMALL, Stage, batches
from .timing import Pair, interleaved
from .workload import Message, conversation, payload

MILLION = 1_000_000

Steps = Sequence[Callable[[], object]]


def append_one(stage: Stage) -> Found:
    """Append single messages, each committed before the next.

    Then the same to a session of a hundred.
    """
    sides = {"FULL": (stage.full, stage.raw_full), "NORMAL": (stage.normal, stage.raw_normal)}
    for durability, (store, raw) in sides.items():
        appends = partial(store.append, SESSION), partial(raw.append, SESSION)
        yield f"append one ({durability})", interleaved(*appends, stage.pace, stage.more)
    yield "append one: against 100", _against_small(stage, SESSION)


def append_batch(stage: Stage) -> Found:
    """Append a thousand messages in one call."""
    appends = partial(stage.full.append, SESSION), partial(stage.raw_full.append, SESSION)
    yield "append 1,000", interleaved(*appends, stage.pace, partial(stage.more, BATCH))


def million(stage: Stage) -> Found:
    """Append single messages to a session of a million small ones, against one of a hundred.

    Hide the million.
    """
    stage.normal.create_session("million")
    for batch in batches(conversation(MILLION, small=True), 10 * BATCH):
        stage.normal.append("million", batch)
    yield "append one: a million against 100", _against_small(stage, "million")
    yield from hidden(stage, "million", MILLION)


def _against_small(stage: Stage, session: str) -> Pair:
    append = stage.normal.append
    return interleaved(partial(append, session), partial(append, SMALL), stage.pace, stage.more)


def fork(stage: Stage) -> Found:
    """Fork at the middle, against sessions over branches made by hand.

    Against a session of a hundred; the bytes.
    """
    full, normal, middle = stage.full.fork, stage.normal.fork, stage.size // 2
    by_hand = Branches(stage.folder / "branches.db")
    by_hand.create(SESSION, 1, stage.size)
    yield (
        "fork at the middle",
        interleaved(
            partial(full, SESSION, middle),
            partial(by_hand.fork, SESSION, middle),
            stage.pace,
            stage.new_id,
        ),
    )
    by_hand.connection.close()
    yield (
        "fork: against 100",
        interleaved(
            lambda new: normal(SESSION, middle, new),
            lambda new: normal(SMALL, 50, f"small-{new}"),
            stage.pace,
            stage.new_id,
        ),
    )
    yield "fork: disk", _bytes_of_forks(stage) / 1024


def _bytes_of_forks(stage: Stage, forks: int = 100) -> float:
    """Return how many bytes the file grows by one fork."""
    stage.normal.purge()
    before = stage.path.stat().st_size
    for _ in range(forks):
        stage.normal.fork(SESSION, stage.size // 2, stage.new_id())
    stage.normal.purge()
    return (stage.path.stat().st_size - before) / forks


def rewind(stage: Stage) -> Found:
    """Rewind by ten messages and undo it, against deleting ten and writing them again.

    By hand that costs what is in them, so they are as large as ten are in the mean.
    """
    store, raw = stage.full, stage.raw_full
    to, raw_to = store.session(SESSION).head, raw.append(SESSION, [])
    last = _ten(stage.more(BATCH))
    store.append(SESSION, last)
    raw.append(SESSION, last)
    steps = (partial(store.rewind, SESSION, to), partial(raw.rewind, SESSION, raw_to))
    undos = (partial(store.undo_rewind, SESSION), partial(raw.append, SESSION, last))

    yield "rewind by 10", _there_and_back(steps, undos, stage)
    yield "undo a rewind", _there_and_back(undos, steps, stage)
    yield "rewind and undo: against 100", _rewind_against_small(stage)


def _ten(said: list[Message]) -> list[Message]:
    """Return ten messages in a row that are about as large as ten of all."""
    rows = [said[first : first + 10] for first in range(0, len(said), 10)]
    mean = payload(said) / len(rows)
    return min(rows, key=lambda row: abs(payload(row) - mean))


def _there_and_back(steps: Steps, back: Steps, stage: Stage) -> Pair:
    """Measure a step of each side; between two rounds it is taken back."""
    done = False

    def prepare() -> None:
        nonlocal done
        for undo in back if done else ():
            undo()
        done = True

    return interleaved(lambda _: steps[0](), lambda _: steps[1](), stage.pace, prepare)


def _rewind_against_small(stage: Stage) -> Pair:
    store = stage.normal
    heads = {session: store.session(session).head for session in (SESSION, SMALL)}

    def there_and_back(session: str) -> None:
        store.rewind(session, heads[session] - 10)
        store.undo_rewind(session)

    return interleaved(
        lambda _: there_and_back(SESSION), lambda _: there_and_back(SMALL), stage.pace
    )
