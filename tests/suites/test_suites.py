"""A part of each suite, in an environment that the first run makes."""

from __future__ import annotations

import pytest

from tests.suites.frameworks import FRAMEWORKS, Framework
from tests.suites.outcomes import HERE, judge_cases, load_allowed, run_suite


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
    names = {path.stem for path in (HERE / "may_fail").iterdir()}
    assert names <= {each.name for each in FRAMEWORKS}
