"""The parts of a run on Citus, on partitions of one server that stands for all nodes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from store import Store
from tests import wheel_server

pytest.importorskip("psycopg")

from tests.citus import __main__ as program
from tests.citus import calls, campaigns
from tests.citus.clusters import Cluster

on_server = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)
QUICK_TEST = "tests/face/test_waiting.py::test_what_has_changed_already_comes_at_once"
OF_A_PROCESS = {"cache_info", "close", "metrics", "observe", "shared"}
OF_A_FILE = {"backup", "purge"}
BESIDE = {"file_state", "set_file_state", "set_origin", "set_prices", "frame", "view_sql"}
"""What writes or reads the same rows as another call."""


@pytest.fixture
def cluster() -> Cluster:
    """A server under two names."""
    url = os.environ["CONVOSTORE_TEST_URL"]
    return Cluster([url, url], is_citus=False)


@pytest.mark.sqlite_only
def test_every_public_call_is_made() -> None:
    """Or named as one that Citus has nothing to do with."""
    public = {name for name in dir(Store) if not name.startswith("_") and name != "database"}
    source = Path(calls.__file__).read_text("utf-8")
    made = set(re.findall(r"store\.(\w+)\(", source))
    assert public - made == OF_A_PROCESS | OF_A_FILE | BESIDE


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_the_calls_answer_the_same_on_two_files(tmp_path: Path) -> None:
    """None of them fails."""
    answers = []
    for name in "ab":
        with Store(tmp_path / name) as store:
            answers.append(calls.make_calls(store))
    assert answers[0] == answers[1]
    assert not [each for each in answers[0].items() if re.match(r"\w+: ", each[1])]


@on_server
@pytest.mark.slow
def test_each_part_holds_on_partitions(
    cluster: Cluster, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the kill, which others on the server would feel."""
    monkeypatch.setattr(campaigns, "MESSAGES", 5)
    with Store(path) as expected:
        outcomes = {"calls": campaigns.compare_calls(cluster, expected)}
    outcomes |= {
        each.__name__: each(cluster) for each in (campaigns.race_writers, campaigns.wait_in_vain)
    }
    assert [each.wrong for each in outcomes.values()] == [[]] * 3
    assert [each.held for each in outcomes.values()] == [len(calls.CALLS), 20, 2]
    table = program.render_table(cluster, outcomes)
    assert f"| calls | {len(calls.CALLS)} of {len(calls.CALLS)} |" in table
    tested = program.run_tests(cluster, [QUICK_TEST])
    assert tested.held == tested.tried > 0


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.skipif(bool(wheel_server.lacking()), reason="needs a server of its own")
def test_a_killed_server_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed twice, and recovers each time."""
    monkeypatch.setattr(campaigns, "PAUSE_SECONDS", 1.5)
    with wheel_server.started() as server:
        outcome = campaigns.kill_workers(Cluster([server.url] * 2, is_citus=False))
    assert outcome.wrong == []
    assert outcome.held == outcome.tried > 10


@pytest.mark.sqlite_only
def test_the_page_has_a_place_for_the_table() -> None:
    """A run replaces what stands there; a program without nodes tells how it is called."""
    page = program.PAGE.read_text("utf-8")
    assert program.MARK.search(page)
    assert "new\n" in program.MARK.sub(lambda found: found[1] + "new\n" + found[2], page)
    assert program.main([]) == 2
