"""What several test files share: where recorded conversations lie, and an empty database."""

from __future__ import annotations

import gc
import os
import pickle
import select
import shutil
import signal
import sqlite3
import traceback
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy
from hypothesis import HealthCheck, settings

from store import Store
from store.cli import main
from store.inspection import Database, divide_tables

ROOT = Path(__file__).resolve().parent.parent

#: Conversations recorded by other programs, no part of the repository: tests that read them skip
#: where there are none.
TRANSCRIPTS = Path(
    os.environ.get("CONVOSTORE_TRANSCRIPTS") or ROOT.parent / "shared" / "transcripts"
)

needs_transcripts = pytest.mark.skipif(
    not TRANSCRIPTS.is_dir(),
    reason="needs conversations recorded by other programs, which are not part of the project:"
    " set CONVOSTORE_TRANSCRIPTS to a folder of them",
)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    #: What a shell starts in the background ignores it, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: A busy machine fails no property test: none asserts a time, nor minds a fixture that all of its
#: examples share.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("patient")


#: A quick run tries one of so many of the examples that a property test asks for.
QUICK_SHARE = 32
#: A thorough run tries one of so many on a server, where a database for each takes time, and all in
#: a file.
SERVER_SHARE = 2
LEAST_EXAMPLES = 2

#: A quick test that hangs fails by an alarm after so many seconds, and says where it hangs. What
#: sets alarms of its own, or runs for long, is ended with its process. On a busy machine the limit
#: is longer, by as many processes as share a core, up to so many times.
QUICK_DEADLINE = 60
LONGEST_STRETCH = 5


def stretch() -> float:
    """Return by how much longer this machine may take for a test than an idle one."""
    shared_by = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(max(1.0, shared_by), LONGEST_STRETCH)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know the option that runs everything."""
    parser.addoption(
        "--thorough",
        action="store_true",
        help="run the tests marked slow, too, and every example of property tests",
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say beforehand how long it takes, and on what it runs."""
    run = "a quick run, some 90 seconds on two idle cores; --thorough runs everything, some 20 minutes"
    if config.getoption("--thorough"):
        run = "a thorough run, some 20 minutes on two idle cores"
    return [f"convostore: {run}", f"SQLite {sqlite3.sqlite_version}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, most cases of large tables and most examples of property tests.

    Unless all are asked for. On a server what would not use it is left out, too.
    """
    if "suites" not in config.getoption("-m"):
        apart = [item for item in items if item.get_closest_marker("suites")]
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if item not in apart]
    kept = items if config.getoption("--thorough") else [*_quick(items)]
    if os.environ.get("CONVOSTORE_TEST_URL"):
        kept = [item for item in kept if _uses_the_server(item)]
    config.hook.pytest_deselected(items=[*{*items} - {*kept}])
    items[:] = kept
    is_quick = not config.getoption("--thorough")
    for item in kept if is_quick else ():
        if hasattr(signal, "SIGALRM") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(QUICK_DEADLINE * stretch(), method="signal"))
    if is_quick:
        _try_fewer_examples(items, QUICK_SHARE)
    elif os.environ.get("CONVOSTORE_TEST_URL"):
        _try_fewer_examples(items, SERVER_SHARE)


def _try_fewer_examples(items: list[pytest.Item], share: int) -> None:
    """Let each property test try one of so many of its examples, two at least."""
    tests = {getattr(item.obj, "__func__", item.obj) for item in items if hasattr(item, "obj")}
    for test in tests:
        asked = getattr(test, "_hypothesis_internal_use_settings", None)
        if asked is not None:
            fewer = max(asked.max_examples // share, LEAST_EXAMPLES)
            fewer = min(fewer, asked.max_examples)
            test._hypothesis_internal_use_settings = settings(asked, max_examples=fewer)


def _quick(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield what a quick run tries: nothing slow, and one of so many cases of a sampled test."""
    cases: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        test = item.nodeid.partition("[")[0]
        is_left_out = bool(sampled and cases[test] % sampled.args[0])
        cases[test] += 1
        if not is_left_out and not item.get_closest_marker("slow"):
            yield item


def _uses_the_server(item: pytest.Item) -> bool:
    """Tell whether a test has a database of the server, by a fixture or by itself."""
    source = _read_source(item.path)
    return not {"made", "bare_url"}.isdisjoint(getattr(item, "fixturenames", ())) or any(
        each in source for each in ("CONVOSTORE_TEST_URL", "database(")
    )


_read_source = cache(Path.read_text)


def pytest_collection_finish() -> None:
    """Let the garbage collector look through less, and less often.

    Modules and tests are many, and stay to the end.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@contextmanager
def database(folder: Path, like: str | None = None) -> Iterator[str]:
    """Give the URL of a new database, empty or a copy of the one that another URL names.

    It is an SQLite file, or one on the server that CONVOSTORE_TEST_URL names.
    """
    server = os.environ.get("CONVOSTORE_TEST_URL")
    source = sqlalchemy.make_url(like).database if like else None
    if not server:
        if source:
            shutil.copy(source, folder / "chat.db")
        yield f"sqlite:///{folder / 'chat.db'}"
        return
    name = f"convostore_test_{uuid.uuid4().hex}"
    made = f"CREATE DATABASE {name}" + (f" TEMPLATE {source}" if source else "")
    for node in NODES or [server]:
        _run_on_server(node, made)
    url = sqlalchemy.make_url(server).set(database=name)
    yield url.render_as_string(hide_password=False)
    for node in NODES or [server]:
        _run_on_server(node, f"DROP DATABASE {name} WITH (FORCE)")


#: The nodes of a cluster of Citus, on each of which a test gets a database: see tests/citus.
NODES = [each for each in os.environ.get("CONVOSTORE_TEST_NODES", "").split(",") if each]


def _run_on_server(url: str, statement: str) -> None:
    engine = sqlalchemy.create_engine(
        url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool
    )
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(statement))


def divide(url: str, partitions: str = os.environ.get("CONVOSTORE_TEST_PARTITIONS", "")) -> None:
    """Divide the tables of a store on a server, in as many partitions as the tests are to have.

    On the nodes of a cluster they are distributed.
    """
    if NODES:
        from tests.citus.clusters import Cluster

        Cluster(NODES, is_citus=True).distribute(sqlalchemy.make_url(url).database or "")
    elif partitions and not url.startswith("sqlite"):
        with closing(Database(url)) as divided:
            divide_tables(divided, int(partitions))


@pytest.fixture
def bare_url(tmp_path: Path) -> Iterator[str]:
    """Give the URL of a database with nothing in it, not even tables."""
    with database(tmp_path) as given:
        yield given


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the URL of a store to copy: ten times quicker than making one."""
    with database(tmp_path_factory.mktemp("made")) as given:
        Store(given).close()
        divide(given)
        yield given


@pytest.fixture
def url(made: str, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a new store for one test."""
    with database(tmp_path, made) as given:
        yield given


@pytest.fixture(scope="session")
def made_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the path of a store to copy, an SQLite file on whatever engine the tests run."""
    path = tmp_path_factory.mktemp("made") / "chat.db"
    Store(path).close()
    return path


@pytest.fixture
def path(made_file: Path, tmp_path: Path) -> Path:
    """Give the path of a new store for one test."""
    return Path(shutil.copy(made_file, tmp_path / "chat.db"))


@pytest.fixture(scope="module")
def store(made: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for all tests of a file: each begins sessions, and so trees, of its own."""
    with (
        database(tmp_path_factory.mktemp("module"), made) as given,
        Store(given, durability="normal") as opened,
    ):
        yield opened


@pytest.fixture(scope="session", autouse=True)
def no_store_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the command, and processes that run it, away from the store of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CONVOSTORE_DB", raising=False)
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "of-the-user"))
        yield


class Ran(NamedTuple):
    """What a command did."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give a function that runs the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of-the-user"))
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("CONVOSTORE_DB", raising=False)

    def runs(*arguments: object) -> Ran:
        capsys.readouterr()
        status = main([str(each) for each in arguments])
        return Ran(status, *capsys.readouterr())

    return runs


class Child:
    """A forked process that calls a function; `result` waits and gives what it returned."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # the test runner has a thread of its own
            self.pid = os.fork()
        if self.pid == 0:
            self._run(writer, function, arguments)
        os.close(writer)
        self._ended = False

    @staticmethod
    def _run(writer: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            outcome = True, function(*arguments)
        except BaseException:  # noqa: BLE001 - handed to the parent
            outcome = False, traceback.format_exc()
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(outcome, pipe)
        os._exit(0)

    def result(self, patience: float = 300) -> Any:
        """Wait for the end of the process; fail with its traceback if it failed, or if it hangs."""
        ready, _, _ = select.select([self._reader], [], [], patience)
        assert ready, f"the process has not ended after {patience:.0f} s"
        with os.fdopen(os.dup(self._reader), "rb") as pipe:
            outcome = pipe.read()
        self.end(0)
        assert outcome, "the process was killed"
        succeeded, value = pickle.loads(outcome)
        assert succeeded, value
        return value

    def send(self, number: int) -> None:
        """Send the process a signal."""
        os.kill(self.pid, number)

    def end(self, number: int = 9) -> None:
        """Make sure that the process is over."""
        if not self._ended:
            self._ended = True
            os.kill(self.pid, number)  # 0 only looks whether it is there
            os.waitpid(self.pid, 0)
            os.close(self._reader)


@pytest.fixture
def fork() -> Iterator[Callable[..., Child]]:
    """Start functions in forked processes; whichever are left at the end of the test are killed."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork()")
    children: list[Child] = []

    def start(function: Callable[..., Any], *arguments: Any) -> Child:
        children.append(Child(function, *arguments))
        return children[-1]

    yield start
    for child in children:
        child.end()
