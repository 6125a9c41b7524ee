"""A part of each suite, in an environment that the first run makes."""

from __future__ import annotations

import pytest

from tests.suites.__main__ import SERVER_TITLE, update_table
from tests.suites.frameworks import BRANCHES_FILES, FRAMEWORKS, Framework
from tests.suites.outcomes import HERE, Outcome, judge_cases, list_not_run, load_allowed, run_suite


@pytest.mark.suites
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "framework", [each for each in FRAMEWORKS if each.in_smoke], ids=lambda each: each.name
)
def test_a_part_of_the_suites_passes(framework: Framework) -> None:
    """But what the list says, all of which fails."""
    for suite in framework.suites:
        outcome = run_suite(framework, suite, smoke=True)
        assert outcome.surprises == [], suite.title
        assert outcome.passed > 0


@pytest.mark.sqlite_only
def test_a_case_that_changes_is_a_surprise() -> None:
    """One that fails and is not listed, one that passes and is; each list is a framework's."""
    framework = FRAMEWORKS[0]
    allowed = [*load_allowed(framework.name)]
    cases = {allowed[0]: False, allowed[1]: True, "new": False, "old": True}
    outcome = judge_cases(framework, framework.suites[0], cases)
    assert (outcome.passed, outcome.total) == (2, 4)
    assert outcome.surprises == ["fails: new", f"passes now: {allowed[1]}"]
    not_run = list_not_run(framework, BRANCHES_FILES)
    assert not_run
    assert {case.partition("::")[0] for case in not_run} == {*BRANCHES_FILES}
    names = {path.stem for path in (HERE / "may_fail").iterdir()}
    assert names <= {each.name for each in FRAMEWORKS}


@pytest.mark.sqlite_only
def test_rows_of_other_suites_stay_in_the_table() -> None:
    """Only those of what was run are new, in the order of the frameworks."""
    first, last = FRAMEWORKS[0], FRAMEWORKS[-1]
    rows = {each: f"| `{each.packages[0]}` | {each.suites[-1].title} |" for each in (first, last)}
    told = [f"{row} 1 of 2 | 2026-01-31, 1234567 |" for row in rows.values()]
    told.insert(1, f"| `{first.packages[0]}` | {SERVER_TITLE} | 1 of 2 | 2026-01-31, 1234567 |")
    table = update_table("\n".join([*told, ""]), [Outcome(last.name, last.suites[-1], 2, 2, [])])
    assert table.splitlines()[2:-1] == told[:2]
    assert table.splitlines()[-1].startswith(f"{rows[last]} 2 of 2 | 20")
