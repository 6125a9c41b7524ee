"""What the runs of these tests promise: a quick one, a thorough one, on versions that are named."""

from __future__ import annotations

import importlib
import re
import tomllib

import pytest
from conftest import LEAST_EXAMPLES, QUICK_SHARE, ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

EXAMPLES = 20 * LEAST_EXAMPLES


@settings(max_examples=EXAMPLES)
@given(st.integers())
def test_a_property_is_tried(number: int) -> None:
    """One whose examples are counted below."""
    assert number == int(str(number))


def test_a_quick_run_tries_fewer_examples(pytestconfig: pytest.Config) -> None:
    """A share of those that the test asks for; a thorough run tries all of them."""
    tried = test_a_property_is_tried._hypothesis_internal_use_settings.max_examples  # type: ignore[attr-defined]
    thorough = pytestconfig.getoption("--thorough")
    assert tried == (EXAMPLES if thorough else max(EXAMPLES // QUICK_SHARE, LEAST_EXAMPLES))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(5))
def test_a_quick_run_tries_one_of_so_many_cases(number: int, pytestconfig: pytest.Config) -> None:
    """Of a sampled test it tries the first case and each third one behind it, here."""
    assert number in (0, 3) or pytestconfig.getoption("--thorough")


@pytest.mark.slow
def test_slow_tests_are_for_thorough_runs(pytestconfig: pytest.Config) -> None:
    """What is marked slow is not even collected in a quick run."""
    assert pytestconfig.getoption("--thorough")


def test_the_readme_names_the_versions_that_were_tested() -> None:
    """In the words that .ci/run looks for; Python's is one that the project allows."""
    text = (ROOT / "README.md").read_text("utf-8")
    tested = re.search(r"Tested on ([^()]*)", text)
    assert tested
    named = dict(re.findall(r"(Python|SQLite|PostgreSQL) ([\d.]+)", " ".join(tested[1].split())))
    assert named.keys() == {"Python", "SQLite", "PostgreSQL"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    least = project["requires-python"].removeprefix(">=")
    assert tuple(map(int, named["Python"].split("."))) >= tuple(map(int, least.split(".")))


def test_the_names_that_the_script_of_all_checks_imports_are_there() -> None:
    """It runs short programs on the installed wheel, which no test of a checkout reaches."""
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    imported = re.findall(r"from (store[\w.]*) import ([\w, ]+)", script)
    assert imported
    for module, names in imported:
        for name in names.split(","):
            assert hasattr(importlib.import_module(module), name.strip()), (module, name)
