"""Run a suite, and compare its cases with those that may fail."""

from __future__ import annotations

import os
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from .environments import ROOT, prepare_environment, unpack_sources
from .frameworks import Framework, Suite

HERE = Path(__file__).parent
NOT_RUN = "hangs"
"""How the reason of a case that is not run begins: it waits for a private name without end."""
HANGING = ("--timeout", "60", "--timeout-method", "thread", "--max-worker-restart", "100")
"""A case that hangs blocks its interpreter, so a new worker goes on."""


class Outcome(NamedTuple):
    """What a suite did: how many of its cases passed, and what is not as the list says."""

    framework: str
    suite: Suite
    passed: int
    total: int
    surprises: list[str]


def load_allowed(framework: str) -> dict[str, str]:
    """Return the cases that may fail, each with the reason: a private name or another demand."""
    path = HERE / "may_fail" / f"{framework}.toml"
    reasons = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    return {case: reason for reason, cases in reasons.items() for case in cases}


def list_not_run(framework: Framework, files: tuple[str, ...]) -> list[str]:
    """Return the cases of files that are not run, because they would hang; they count as failed."""
    allowed = load_allowed(framework.name).items()
    hanging = [case for case, reason in allowed if reason.startswith(NOT_RUN)]
    return [case for case in hanging if case.partition("::")[0] in files]


def run_suite(
    framework: Framework, suite: Suite, *, smoke: bool = False, newest: bool = False
) -> Outcome:
    """Run a suite of a framework, or what a smoke runs of it."""
    python = prepare_environment(framework, newest=newest)
    folder = unpack_sources(python, suite.sdist) if suite.sdist else ROOT
    chosen = suite.smoke if smoke and suite.smoke else suite.files
    plugin = ("-p", suite.plugin) if suite.plugin else ()
    if not suite.sdist and not smoke:
        chosen = (*chosen, "--thorough")
    not_run = list_not_run(framework, chosen)
    with tempfile.TemporaryDirectory() as name:
        report = Path(name, "report.xml")
        written = ("--junitxml", report, "-o", "junit_family=xunit1")
        run = ("-m", "pytest", "-q", "-n", "2", *HANGING, "-p", "no:cacheprovider", *written)
        without = [word for case in not_run for word in ("--deselect", case)]
        words = [str(each) for each in (python, *run, *plugin, *suite.options, *without, *chosen)]
        places = os.pathsep.join([str(ROOT), str(HERE / "plugins")])
        environment = {**os.environ, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if not report.exists():
            raise RuntimeError(f"{' '.join(words)}: {ended.stdout}{ended.stderr}")
        cases = read_report(report) | dict.fromkeys(not_run, False)
    return judge_cases(framework, suite, cases)


def read_report(path: Path) -> dict[str, bool]:
    """Return the cases of a report that were not skipped, and whether each passed."""
    cases: dict[str, bool] = {}
    for case in ET.parse(path).getroot().iter("testcase"):
        if case.find("skipped") is None:
            inside = f"{case.get('classname')}".split(".")
            file = f"{case.get('file')}"
            stem = Path(file).stem
            classes = inside[inside.index(stem) + 1 :] if stem in inside else []
            name = "::".join([file, *classes, f"{case.get('name')}"])
            failed = case.find("failure") is not None or case.find("error") is not None
            cases[name] = cases.get(name, True) and not failed
    return cases


def judge_cases(framework: Framework, suite: Suite, cases: dict[str, bool]) -> Outcome:
    """Compare cases with the list of those that may fail."""
    allowed = load_allowed(framework.name)
    surprises = [f"fails: {case}" for case, passed in cases.items() if not passed]
    surprises = [each for each in surprises if each.removeprefix("fails: ") not in allowed]
    surprises += [
        f"passes now: {case}"
        for case, reason in allowed.items()
        if cases.get(case) and not reason.startswith("sometimes")
    ]
    return Outcome(framework.name, suite, sum(cases.values()), len(cases), surprises)
