"""The suites that frameworks ship, and ours for them: ``python -m tests.suites [NAME …]``.

Prints a table, and each case that is not as ``tests/suites/may_fail`` says. ``--smoke`` runs a part
of each suite, ``--newest`` tries the newest versions, ``--write`` puts the rows of what was run
whole into the table of ``docs/adapters/index.md``. If CONVOSTORE_TEST_URL names a server, only ours
run, on it. Environments and sources are kept in a folder of the user's cache, or in the one that
CONVOSTORE_SUITES names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from .environments import ROOT
from .frameworks import FRAMEWORKS, Framework, Suite
from .outcomes import Outcome, run_suite

PAGE = ROOT / "docs" / "adapters" / "index.md"
MARK = re.compile(r"(<!-- suites -->\n)(.*?)(<!-- end -->)", re.DOTALL)
ROW = re.compile(r"\| `(?P<package>[\w-]+)==[^|]* \| (?P<title>[^|]*) \| .*")
OWN_TITLE, SERVER_TITLE = "ours", "ours, on PostgreSQL"
ONE_PROCESS = ("-n", "0")
HEAD = "| framework | suite | passed | run |\n| --- | --- | --- | --- |"


def main(arguments: list[str]) -> int:
    """Run what is asked for; 1 if a case is not as the list says."""
    named = [each for each in arguments if not each.startswith("--")]
    is_smoke = "--smoke" in arguments
    offered = [each for each in FRAMEWORKS if each.in_smoke or not is_smoke]
    chosen = [each for each in offered if not named or each.name in named]
    newest = "--newest" in arguments
    on_server = "CONVOSTORE_TEST_URL" in os.environ
    outcomes = []

    def run_chosen(framework: Framework) -> None:
        for suite in choose_suites(framework, on_server=on_server):
            outcome = run_suite(framework, suite, smoke=is_smoke, newest=newest)
            outcomes.append(outcome)
            told = f"{framework.name}: {suite.title}: {outcome.passed} of {outcome.total}"
            print("\n".join([told, *outcome.surprises]), flush=True)

    # Suites on SQLite use every core themselves; on a server each runs in one process.
    with ThreadPoolExecutor(os.cpu_count() if on_server else 1) as threads:
        [*threads.map(run_chosen, chosen)]
    if "--write" in arguments and not {"--smoke", "--newest"} & {*arguments}:
        page = PAGE.read_text("utf-8")
        new = MARK.sub(lambda it: f"{it[1]}\n{update_table(it[2], outcomes)}\n\n{it[3]}", page)
        PAGE.write_text(new, "utf-8")
    return 1 if any(outcome.surprises for outcome in outcomes) else 0


def choose_suites(framework: Framework, *, on_server: bool) -> list[Suite]:
    """Return the suites of a framework, or ours alone, as a server runs them: in one process."""
    if not on_server:
        return [*framework.suites]
    own = (each for each in framework.suites if each.title.startswith(OWN_TITLE))
    return [
        each._replace(title=SERVER_TITLE, options=(*each.options, *ONE_PROCESS)) for each in own
    ]


def update_table(table: str, outcomes: list[Outcome]) -> str:
    """Return a table of the documentation with new rows, which tell the day and the commit."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    run = f"{datetime.now(UTC).date()}, {commit.strip()}"
    rows = {(found["package"], found["title"]): found[0] for found in ROW.finditer(table)}
    packages = {each.name: each.packages[0] for each in FRAMEWORKS}
    for each in outcomes:
        package, title = packages[each.framework], each.suite.title
        told = f"{each.passed} of {each.total}"
        rows[package.partition("==")[0], title] = f"| `{package}` | {title} | {told} | {run} |"
    keys = [
        (each.packages[0].partition("==")[0], suite.title)
        for each in FRAMEWORKS
        for on_server in (False, True)
        for suite in choose_suites(each, on_server=on_server)
    ]
    return "\n".join([HEAD, *(rows[key] for key in keys if key in rows)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
