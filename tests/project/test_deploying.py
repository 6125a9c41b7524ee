"""What an operator copies: image, compose file and units; their commands, and the way back."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from configparser import RawConfigParser
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from store import Store
from store.database import SCHEMA_HEAD
from store.errors import SchemaTooNew
from store.records.metrics import Metrics, ModelMetric, OperationMetric, PolicyMetric

DEPLOY = ROOT / "examples" / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
PROGRAMS, STATE = "/opt/convostore/bin/", "/var/lib/convostore"
NEXT = f"{int(SCHEMA_HEAD) + 1:04}"
OLD = 1_700_000_000_000

pytestmark = pytest.mark.sqlite_only


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the image's file, each with what follows it."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text("utf-8"))
    lines = (line.partition(" ") for line in text.splitlines() if line and line[0] != "#")
    return [(name, rest.strip()) for name, _, rest in lines]


def read_unit(path: Path) -> RawConfigParser:
    """Read a unit, strictly: no line in it is unknown to the format, none is there twice."""
    unit = RawConfigParser(delimiters="=", comment_prefixes="#", strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(path.read_text("utf-8"))
    return unit


def test_the_image_is_not_of_root() -> None:
    """It runs as a user with a number, keeps its data in a volume, and ends by a signal that
    reaches the program: no shell is before it.
    """
    told = dict(instructions())
    names = [name for name, _ in instructions()]
    assert names[0] == "FROM"
    assert ":" in told["FROM"]
    assert "latest" not in told["FROM"]
    assert int(told["USER"]) > 0
    assert names.index("USER") > max(at for at, name in enumerate(names) if name == "RUN")
    assert (told["VOLUME"], told["STOPSIGNAL"]) == ("/data", "SIGTERM")
    assert "CONVOSTORE_DB=/data/chat.db" in told["ENV"]
    assert json.loads(told["HEALTHCHECK"].partition("CMD ")[2]) == ["convostore", "health"]
    assert json.loads(told["CMD"])[:3] == ["python", "-m", "uvicorn"]


def test_the_image_has_what_it_needs() -> None:
    """All that the build reads of a checkout is sent to it, and nothing else: no dump, no key."""
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").split("\n")
    kept = {line[1:] for line in sent if line.startswith("!")}
    assert "*" in sent
    (run,) = [rest for name, rest in instructions() if name == "RUN"]
    assert "rm -r store migrations prompts" in run  # what is imported is what is installed
    assert all((ROOT / name).exists() for name in kept)
    assert sent.index("examples/deploy") > sent.index("!examples")
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (packed,) = re.findall(r"^only-include = (\[.*\])$", project, re.MULTILINE)[:1]
    assert {*json.loads(packed), "examples", "pyproject.toml", "README.md", "LICENSE"} <= kept


def test_compose() -> None:
    """The file is YAML, what a service names is there, and the app can write to its volume alone."""
    yaml: Any = pytest.importorskip("yaml")
    told = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = told["services"]
    for service in services.values():
        assert {*service.get("depends_on", {})} <= {*services}
        volumes = {each.partition(":")[0] for each in service.get("volumes", [])}
        files = {each for each in volumes if each.startswith(".")}
        assert volumes - files <= {*told["volumes"]}
        assert all((DEPLOY / each).is_file() for each in files)
        if "build" in service:
            build = service["build"]
            assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
            assert (DEPLOY / build["context"]).resolve() == ROOT
            assert service["read_only"] is True
            assert service["image"] == "convostore-chat"  # one image, built once
    ready = services["database"]["healthcheck"]["test"]
    assert ready[:4] == ["CMD", "pg_isready", "--host", "127.0.0.1"]
    chat = services["chat"]
    assert [each.startswith("127.0.0.1:") for each in chat["ports"]] == [True]
    command = json.loads(dict(instructions())["CMD"])
    patience = int(command[command.index("--timeout-graceful-shutdown") + 1])
    assert int(chat["stop_grace_period"].removesuffix("s")) > 2 * patience
    assert services["upgrade"]["command"] == ["convostore", "migrate"]


def test_alerts() -> None:
    """What they ask is among the metrics of a store; each worker of the file is asked."""
    yaml: Any = pytest.importorskip("yaml")
    alerts, asked, compose = (
        yaml.safe_load((DEPLOY / name).read_text("utf-8"))
        for name in ("alerts.yml", "prometheus.yml", "compose.yaml")
    )
    source = (ROOT / "store" / "records" / "metrics.py").read_text("utf-8")
    for rule in alerts["groups"][0]["rules"]:
        for name in re.findall(r"convostore_(\w+?)(?:_total|_bucket)", rule["expr"]):
            assert f'"{name}"' in source or f'"convostore_{name}' in source
    first = int(compose["services"]["chat"]["environment"]["METRICS"].rpartition(":")[2])
    (targets,) = asked["scrape_configs"][0]["static_configs"]
    assert targets["targets"] == [f"chat:{first + number}" for number in range(2)]


def test_the_dashboard() -> None:
    """Each metric and label that it asks for is in the metrics of a store that did everything."""
    done = OperationMetric("append", "ok", 1, 0.1, (1, 0))
    text = Metrics(
        limits=(1.0,),
        operations=(done,),
        waits=done,
        policies=(PolicyMetric("default", 1, 1, 1),),
        compactions=(("applied", 1),),
        models=(ModelMetric("m", 1, 1, 1, 1, 1),),
    ).text()
    labels = {
        name: {"", *re.findall(r"(\w+)=", told)}
        for name, told in re.findall(r"^(convostore_\w+)(\{.*\})? ", text, re.MULTILINE)
    }
    board = json.loads((DEPLOY / "dashboard.json").read_text("utf-8"))
    asked = [each for panel in board["panels"] for each in panel["targets"]]
    assert len(asked) > len(board["panels"]) > 5
    for each in asked:
        (name,) = re.findall(r"convostore_\w+", each["expr"])
        grouped = ",".join(re.findall(r"by \(([^)]*)\)", each["expr"])).replace(" ", "")
        shown = re.findall(r"\{\{(\w+)\}\}", each["legendFormat"])
        assert {*grouped.split(","), *shown} <= labels[name]
        assert {*shown} <= {*grouped.split(",")}


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs Debian's package prometheus")
def test_alerts_are_those_of_prometheus() -> None:
    """Prometheus itself reads every rule."""
    subprocess.run(["promtool", "check", "config", str(DEPLOY / "prometheus.yml")], check=True)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units(path: Path) -> None:
    """A unit is not of root, writes to one folder alone; a timer has a service."""
    unit = read_unit(path)
    if path.suffix == ".timer":
        assert {"OnCalendar", "Persistent"} <= {*unit["Timer"]}
        assert path.with_suffix(".service").is_file()
        return
    service = unit["Service"]
    assert service["User"] not in ("", "root")
    assert (service["UMask"], service["ProtectSystem"]) == ("0077", "strict")
    assert service["Environment"].split()[0] == f"CONVOSTORE_DB={STATE}/chat.db"
    assert service["StateDirectory"] == Path(STATE).name


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_units_are_those_of_systemd(tmp_path: Path) -> None:
    """Systemd itself knows every line of them."""
    for path in UNITS:
        text = path.read_text("utf-8")
        text = text.replace(f"{PROGRAMS}python", sys.executable)
        (tmp_path / path.name).write_text(text.replace(f"{PROGRAMS}convostore", "/bin/true"))
    names = [str(each) for each in sorted(tmp_path.iterdir())]
    command = ["systemd-analyze", "verify", *names]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    assert [line for line in told.stderr.splitlines() if str(tmp_path) in line] == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["backup", "prune", "verify"])
def test_the_commands_of_units(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a timer runs works on a store that is in use; a copy that it made is restored."""
    service = read_unit(DEPLOY / "systemd" / f"convostore-{name}.service")["Service"]
    command = service["ExecStart"].replace("%%", "%").replace("$$", "$")
    command = command.replace(f"{PROGRAMS}convostore", f"{sys.executable} -m store")
    monkeypatch.setenv("CONVOSTORE_DB", str(tmp_path / "chat.db"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with Store(tmp_path / "chat.db") as store:
        store.create_session("old", now=OLD)
        store.append("old", {"role": "user", "content": "Hello"}, now=OLD)
        store.create_session("starred", now=OLD, metadata={"starred": True})
        run = shlex.split(command.replace(STATE, str(tmp_path)))
        subprocess.run(run, check=True, capture_output=True)
        left = [each.id for each in store.sessions(order="created")]
        assert left == (["starred"] if name == "prune" else ["starred", "old"])
    copies = [*tmp_path.glob("chat-[1-7].db")]
    assert len(copies) == (name == "backup")
    assert all(each.stat().st_mode & 0o777 == 0o600 for each in copies)


def test_a_worker_of_the_release_before(path: Path) -> None:
    """Another worker brings the store to a newer schema: the one that has it open goes on, and
    says so to its probe; one that begins is refused.
    """
    with Store(path) as older:
        older.create_session("s")
        with closing(sqlite3.connect(path)) as newer:
            newer.execute("CREATE TABLE novelties (tree_id INTEGER)")
            newer.execute("UPDATE alembic_version SET version_num = ?", [NEXT])
            newer.commit()
        older.append("s", {"role": "user", "content": "still here"})
        assert older.view("s").messages[0]["content"] == "still here"
        state = older.health()
        assert (bool(state), NEXT in state.problems[0]) == (False, True)
        with pytest.raises(SchemaTooNew):
            Store(path)
