"""The newest PostgreSQL, from a wheel: what it is asked most passes there, too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import ROOT

from tests import wheel_server

PART = (
    "tests/history/test_history.py::test_a_batch_half_of_which_is_known",
    "tests/history/test_history.py::test_forks_answer_a_shared_call_each_for_itself",
    "tests/database/test_server.py::test_a_writer_waits_to_its_deadline",
    "tests/database/test_server.py::test_a_commit_of_unknown_outcome_can_be_repeated",
    "tests/inspection/test_console_role.py::test_a_role_of_the_recipe_can_do_no_harm",
    "tests/test_cancelling.py::test_many_tasks_cancelled_at_random[asyncio]",
)
"""What a thorough run tries; `.ci/run` tries all that is not about files."""


@pytest.mark.slow
def test_a_part_of_the_suite() -> None:
    """Appends, deadlines, lost connections, roles, cancelled tasks; none of it is left out."""
    if os.environ.get("CONVOSTORE_TEST_URL"):
        pytest.skip("all of the suite runs on a server")
    reason = wheel_server.lacking()
    if reason:
        pytest.skip(reason)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PART]
    with wheel_server.started() as server:
        done = subprocess.run(
            [*command, "-m", "not sqlite_only"],
            cwd=ROOT,
            env={**os.environ, "CONVOSTORE_TEST_URL": server.url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout
