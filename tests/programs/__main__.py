"""``python -m tests.programs [PROGRAM ...]``: coding agents go on with exported sessions.

Each program is installed from npm; each session is exported for it, put where the export says, in
an empty home, and continued with a made-up model on loopback. Prints what of a session is missing
from the request, and what the program shortened by its own rule. ``--folder`` keeps the installed
programs; ``--recordings`` takes recorded sessions of a folder, too; ``--view`` exports what is sent.
``--newest`` has the newest releases write a session each instead, imports it, and prints what has
changed in their files since the versions of ``shapes.json``, which ``--write`` brings up to date.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from store import Store, StoreError
from tests.mcp.real_agents import install_packages

from .newest import look_at_newest, read_program_version
from .resuming import PROGRAMS, Outcome, resume_session
from .sessions import import_session, list_sessions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the programs; return 1 where a request lacks something of a session."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--folder", type=Path, help="where the programs are installed, and kept")
    parser.add_argument("--recordings", type=Path, help="a folder of recorded sessions")
    parser.add_argument("--only", help="the name of one session")
    parser.add_argument("--view", action="store_true", help="export what would be sent")
    parser.add_argument("--print", action="store_true", help="print what the programs print")
    parser.add_argument("--newest", action="store_true", help="look at what new releases write")
    parser.add_argument("--write", action="store_true", help="with --newest, keep what was seen")
    options = parser.parse_args(arguments)
    names = options.programs or list(PROGRAMS)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary, "programs")
        if not (folder / "node_modules").exists():
            packages = [PROGRAMS[name].package for name in names]
            install_packages(folder, packages, newest=options.newest)
        if options.newest:
            return int(not look_at_newest(names, folder, write=options.write))
        print(*(f"{name} {read_program_version(name, folder)}" for name in names), sep=", ")
        work = Path(temporary)
        for what, path, session in _make_sessions(work, options.recordings):
            for name in names if options.only in (None, what) else ():
                begun = time.monotonic()
                more = ["--view", "--policy", "raw"] if options.view else []
                outcome = resume_session(name, folder, path, session, *more)
                _print(name, what, outcome, time.monotonic() - begun)
                failed += bool(outcome.missing or not outcome.found)
                if options.print and (outcome.missing or not outcome.found):
                    print(outcome.printed)
    return int(bool(failed))


def _make_sessions(work: Path, recordings: Path | None) -> Iterator[tuple[str, Path, str]]:
    """Yield what a session is, its store, and its id."""
    project = work / "parcel"
    project.mkdir()
    path = work / "made.db"
    with Store(path) as store:
        made = [*list_sessions(store, work, project)]
    yield from ((what, path, session) for what, session in made)
    for number, file in enumerate(sorted(recordings.glob("*/*")) if recordings else ()):
        path = work / f"{number}.db"
        with Store(path, durability="normal") as store:
            try:
                session = import_session(store, file, project)
            except StoreError:
                continue
        yield str(file.relative_to(recordings or work)), path, session


def _print(name: str, what: str, outcome: Outcome, seconds: float) -> None:
    total = outcome.found + len(outcome.missing) + len(outcome.cut)
    cut = f", {len(outcome.cut)} shortened by its own rule" if outcome.cut else ""
    print(f"{name}: {what}: {outcome.found} of {total}{cut} ({seconds:.1f} s)", flush=True)
    for each in outcome.missing:
        print(f"  missing {each}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
