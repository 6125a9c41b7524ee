"""``python -m benchmarks.economy FOLDER``: what policies do to the bill, and to what is needed.

Recorded sessions are told again, request by request, under each policy; what is sent is priced by
provider, and compared with what the recorded model said again: names, plain words, and lines that
its edits had to repeat.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any

from store import StoreError

from ..recorded import parser
from .measured import LEAST, OF_USUAL, Measured, Plan, Sessions, measured, sessions
from .policies import BATCHED, JUDGED, RAW, Variant, load_summarizer, programs, ready, variant
from .programs import PROGRAMS
from .tables import TABLES, by_policy


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where there is no session to measure."""
    began = time.monotonic()
    asked = _options(arguments)
    found = sessions(asked.folder, asked.largest, asked.least)
    plan = Plan(
        variants=_variants(asked),
        tables=_chosen_tables(asked),
        window=asked.window,
        every=asked.every,
        processes=asked.processes,
        factor=asked.told,
        tells_cached=not asked.untold,
    )
    done = [*chain.from_iterable(measured(found, plan))]
    if asked.json:
        print(json.dumps(_plain(done), indent=1))
    else:
        _show(found, done, plan.tables)
        print(f"\ntook {time.monotonic() - began:.0f} s")
    return int(not done)


def _show(found: Sessions, done: Sequence[Measured], tables: Sequence[str]) -> None:
    """Print the tables, behind a line that says what they are of."""
    said = (message for transcript in found.wanted for message in transcript.messages)
    requests = sum(message["role"] == "assistant" for message in said)
    of = f"{len(found.wanted)} of {found.read} sessions, {requests:,} requests"
    print(f"{of}; {found.unread} files are not read")
    for name in tables if done else ():
        for table in TABLES[name](by_policy(done)):
            print(*table.lines(), sep="\n")


def _chosen_tables(asked: argparse.Namespace) -> list[str]:
    """Return the tables; only some can tell of summarizers, and of other programs."""
    if asked.summarizer:
        return ["summaries"]
    return [name for name in asked.tables if name in OF_USUAL or not asked.programs]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    asked = parser("economy", __doc__, of="sessions", wanted=None)
    option = asked.add_argument
    option("--least", type=int, default=LEAST, help="tokens that a session must have")
    option("--every", type=_some, default=1, help="look for reuse at every so manieth request")
    option("--policies", type=_names, default=[], help=f"some of {','.join(ready())}; default: all")
    option(
        "--policy",
        type=_changed,
        action="append",
        default=[],
        metavar="NAME[,FIELD=VALUE ...]",
        help=f"a policy with fields changed; can be repeated; default: {BATCHED}",
    )
    option("--tables", type=_tables, default=list(TABLES), help=f"some of {','.join(TABLES)}")
    option(
        "--summarizer",
        type=_summarizer,
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="judge summaries by this callable, openai:MODEL or anthropic:MODEL, beside the"
        f" extractive ones, for the asked policies (default: {JUDGED}), by the table of summaries;"
        " can be repeated",
    )
    option(
        "--programs",
        action="store_true",
        help=f"compare the rules of {', '.join(PROGRAMS)}, too; by the bills and what is in sight",
    )
    option(
        "--told",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="tell policies so many times the true lifetime of a cache",
    )
    option("--untold", action="store_true", help="record usages without their cached tokens")
    option("--window", type=_some, help="tokens of the window; default: it has no end")
    option("--processes", type=_some, default=1, help="processes that share the sessions")
    return asked.parse_args(arguments)


def _variants(asked: argparse.Namespace) -> list[Variant]:
    """Return the policies that are asked for, else all ready ones; first the one that sends all."""
    chosen = [*map(variant, asked.policies), *asked.policy]
    if asked.summarizer:
        judged = chosen or [variant(JUDGED)]
        others = [each.by(name) for each in judged for name in asked.summarizer]
        return [*judged, *others]
    usual = [*map(variant, ready()), variant(BATCHED)]
    others = programs() if asked.programs else []
    return [variant(RAW), *(chosen or usual), *others]


def _changed(text: str) -> Variant:
    try:
        return variant(text)
    except (StoreError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _summarizer(text: str) -> str:
    try:
        load_summarizer(text)
    except (StoreError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _some(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1, not {text}")
    return int(text)


def _names(text: str) -> list[str]:
    return _among(text, ready())


def _tables(text: str) -> list[str]:
    return _among(text, list(TABLES))


def _among(text: str, known: Sequence[str]) -> list[str]:
    names = text.split(",")
    unknown = ", ".join(sorted(set(names) - set(known)))
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {unknown}; there are {', '.join(known)}")
    return names


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: tuples by their names, keys of several words as one."""
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {_key(key): _plain(each) for key, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, list) else value


def _key(key: str | tuple[str, ...]) -> str:
    return key if isinstance(key, str) else " ".join(key)


if __name__ == "__main__":
    sys.exit(main())
