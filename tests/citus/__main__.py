"""``tests/citus/run HOST:PORT…``: try everything on a cluster of Citus, and tell it in the docs.

The first node is the coordinator, the others are its workers. Their user is ``postgres``, a
superuser that needs no password (or has it in ``~/.pgpass``): a worker is killed by SQL. Without
arguments the nodes are those of CONVOSTORE_TEST_CITUS, with commas between them. Databases are made
on all nodes and dropped afterwards.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from store import Store

from .campaigns import CAMPAIGNS, Outcome, compare_calls
from .clusters import Cluster, ask, build_cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "servers.md"
MARK = re.compile(r"(<!-- citus -->\n).*?(<!-- end -->)", re.DOTALL)
COUNTED = re.compile(r"(\d+) (passed|failed|error)")
SERVER_TESTS = ("tests/database", "tests/history", "tests/view", "tests/compaction", "tests/face")


def try_all(cluster: Cluster) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each part."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "chat.db") as expected:
        yield "public calls that answer as on a file", compare_calls(cluster, expected)
    for name, campaign in CAMPAIGNS.items():
        yield name, campaign(cluster)


def run_tests(cluster: Cluster, names: Sequence[str] = SERVER_TESTS) -> Outcome:
    """Run the quick tests of a server on stores of the cluster."""
    places = ",".join(cluster.nodes) if cluster.is_citus else ""
    environment = {
        **os.environ,
        "CONVOSTORE_TEST_URL": cluster.nodes[0],
        "CONVOSTORE_TEST_NODES": places,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not sqlite_only", *names]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    counts = {kind: int(number) for number, kind in COUNTED.findall(done.stdout.splitlines()[-1])}
    wrong = [each for each in done.stdout.splitlines() if each.startswith(("FAILED", "ERROR"))]
    return Outcome(counts.get("passed", 0), sum(counts.values()), wrong)


def render_table(cluster: Cluster, outcomes: dict[str, Outcome]) -> str:
    """Return what a run tells in the docs: versions, the date and the counts."""
    version = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
    citus = [each for (each,) in ask(cluster.nodes[0], version)] or ["none"]
    ((server,),) = ask(cluster.nodes[0], "SHOW server_version")
    said = f"Run on {time.strftime('%Y-%m-%d')} with Citus {citus[0]}, PostgreSQL {server}"
    rows = [f"| {name} | {each.held:,} of {each.tried:,} |" for name, each in outcomes.items()]
    nodes = f"one coordinator and {len(cluster.nodes) - 1} workers:"
    return "\n".join((f"{said}, {nodes}", "", "| tried | held |", "| --- | --- |", *rows, ""))


def main(places: list[str]) -> int:
    """Try everything, print what went wrong, and write the table into the page."""
    places = places or os.environ.get("CONVOSTORE_TEST_CITUS", "").split(",")
    if len(places) < 2:
        print(__doc__)
        return 2
    cluster, outcomes = build_cluster(places), {}
    for name, outcome in try_all(cluster):
        outcomes[name] = outcome
        print(f"{name}: {outcome.held} of {outcome.tried}", *outcome.wrong, sep="\n  ", flush=True)
    outcomes["tests of a server that pass"] = tested = run_tests(cluster)
    print(f"tests: {tested.held} of {tested.tried}", *tested.wrong, sep="\n  ")
    table = render_table(cluster, outcomes)
    PAGE.write_text(MARK.sub(lambda found: found[1] + table + found[2], PAGE.read_text("utf-8")))
    return int(any(each.wrong for each in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
