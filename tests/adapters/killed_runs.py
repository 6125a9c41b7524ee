"""Ten turns of a run of a framework, whose process is killed at every write, and then gone on with."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from conftest import Child

from store import SessionNotFound, Store
from store.database.lease import Lease

TURNS, QUICK_TURNS = 10, 2
QUICK_KILLS = 2
"""How many of the writes a quick run kills at."""


class ScriptedRun(NamedTuple):
    """A run of a framework with a made-up model, on a conversation of a store.

    ``run`` is given the URL of the store, the conversation's name and how many turns; the last text
    of a turn has ``answer`` in it. ``read`` returns the conversation as texts, without random ids.
    A framework that ``writes_at_once``, from several threads or in batches that time makes, has no
    order and no number of writes: then a later kill may leave less or not happen, and ``read``
    itself makes sure that what was acknowledged is there.
    """

    run: Callable[[str, str, int], Any]
    read: Callable[[str, str], list[str]]
    answer: str = "Done."
    writes_at_once: bool = False


def count_writes(check: Callable[[int, bool], None]) -> None:
    """Let this process call a function before and after each write, with its number."""
    commit, done = Lease.commit, 0
    one_at_a_time = threading.RLock()

    def commit_and_check(lease: Lease) -> None:
        nonlocal done
        if not (lease.begun or lease.is_core):
            return commit(lease)
        with one_at_a_time:
            done += 1
            check(done, False)
            commit(lease)
            return check(done, True)

    Lease.commit = commit_and_check  # type: ignore[method-assign]


def run_counted(scripted: ScriptedRun, url: str, turns: int) -> int:
    """Run the turns; return how often they wrote."""
    done = 0

    def count(number: int, is_after: bool) -> None:
        nonlocal done
        done = number

    count_writes(count)
    scripted.run(url, "whole", turns)
    return done


def run_until(scripted: ScriptedRun, url: str, name: str, turns: int, *write: object) -> None:
    """Run turns until a write, before or after which this process is killed."""

    def kill(*now: object) -> None:
        if now == write:
            os.kill(os.getpid(), signal.SIGKILL)

    count_writes(kill)
    scripted.run(url, name, turns)


def wait_until_killed(child: Child) -> bool:
    """Return whether a process was killed; False if it wrote too seldom for that."""
    try:
        child.result()
    except AssertionError as error:
        assert str(error).startswith("the process was killed")  # noqa: PT017 - or it has failed
        return True
    return False


def read_texts(scripted: ScriptedRun, url: str, name: str) -> list[str]:
    """Return what a conversation holds, nothing if it has not begun."""
    with suppress(SessionNotFound):
        return scripted.read(url, name)
    return []


def check_killed_runs(
    scripted: ScriptedRun, url: str, fork: Callable[..., Child], config: pytest.Config
) -> None:
    """Kill ten turns before and after each write, or a few writes in a quick run, and go on.

    What is there is the beginning of what an undisturbed run leaves, no less than was committed;
    the next turn is answered, and follows it.
    """
    is_thorough = config.getoption("--thorough")
    turns = TURNS if is_thorough else QUICK_TURNS
    writes = fork(run_counted, scripted, url, turns).result()
    whole = read_texts(scripted, url, "whole")
    assert writes >= turns
    assert scripted.answer in whole[-1]
    step = 1 if is_thorough else -(-writes // QUICK_KILLS)
    held: list[str] = []
    for number in range(writes, 0, -step)[::-1]:
        for is_after in (False, True):
            name = f"killed-{number}-{is_after}"
            child = fork(run_until, scripted, url, name, turns, number, is_after)
            is_killed = wait_until_killed(child)
            assert is_killed or (scripted.writes_at_once and number > writes // 2)
            left = read_texts(scripted, url, name)
            assert left == whole[: len(left)], f"{left} is no beginning of {whole}"
            if not scripted.writes_at_once:
                assert left == held if step == 1 and not is_after else len(left) >= len(held)
            held = left
            fork(scripted.run, url, name, 1).result()
            gone_on = read_texts(scripted, url, name)
            assert gone_on[: len(left)] == left
            assert len(gone_on) > len(left)
            assert scripted.answer in gone_on[-1]
    assert scripted.writes_at_once or held == whole
    with Store(url) as store:
        assert store.verify() == []
