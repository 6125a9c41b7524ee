"""The suites that frameworks ship, and ours for them: ``python -m tests.suites [NAME …]``.

Prints a table, and each case that is not as ``tests/suites/may_fail`` says. ``--smoke`` runs a part
of each suite, ``--newest`` tries the newest versions, ``--write`` puts the table into
``docs/adapters/index.md``. Environments and sources are kept in a folder of the user's cache, or in
the one that CONVOSTORE_SUITES names.
"""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime

from .environments import ROOT
from .frameworks import FRAMEWORKS
from .outcomes import Outcome, run_suite

PAGE = ROOT / "docs" / "adapters" / "index.md"
MARK = re.compile(r"(<!-- suites -->\n).*?(<!-- end -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Run what is asked for; 1 if a case is not as the list says."""
    named = [each for each in arguments if not each.startswith("--")]
    is_smoke = "--smoke" in arguments
    offered = [each for each in FRAMEWORKS if each.in_smoke or not is_smoke]
    chosen = [each for each in offered if not named or each.name in named]
    outcomes = []
    for framework in chosen:
        for suite in framework.suites:
            outcome = run_suite(framework, suite, smoke=is_smoke, newest="--newest" in arguments)
            outcomes.append(outcome)
            print(
                f"{framework.name}: {suite.title}: {outcome.passed} of {outcome.total}", flush=True
            )
            print("\n".join(outcome.surprises), flush=True)
    if "--write" in arguments:
        page = PAGE.read_text("utf-8")
        PAGE.write_text(MARK.sub(lambda found: f"{found[1]}{make_table(outcomes)}{found[2]}", page))
    return 1 if any(outcome.surprises for outcome in outcomes) else 0


def make_table(outcomes: list[Outcome]) -> str:
    """Return the table of the documentation, with the day and the commit."""
    versions = {each.name: each.packages[0] for each in FRAMEWORKS}
    rows = [
        f"| `{versions[each.framework]}` | {each.suite.title} | {each.passed} of {each.total} |"
        for each in outcomes
    ]
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    day = datetime.now(UTC).date()
    head = "| framework | suite | passed |\n| --- | --- | --- |"
    return f"\n{head}\n" + "\n".join(rows) + f"\n\nRun on {day}, commit {commit.strip()}.\n\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
