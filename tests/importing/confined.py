"""A program that imports hostile files for one owner, beside what another one has.

It prints of each file what became of it, the seconds of the processor that it took, and the most
kilobytes that this program had so far; at last what is wrong with the store, whose sessions it has,
and what the other owner has.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from store import Store, StoreError
from store.face import Scoped
from store.importing import import_file

BYTES, SECONDS = 12_000_000, 3
"""What the import of each may take."""
KEPT = {"role": "user", "content": "Mine alone."}


def main(folder: Path) -> None:
    """Import all files of a folder for bob."""
    with Store(folder / "chat.db", durability="normal") as store:
        alice, bob = store.scoped("alice"), store.scoped("bob")
        alice.create_session("s")
        alice.append("s", KEPT)
        for number, name in enumerate(json.loads((folder / "names.json").read_bytes())):
            began = time.process_time()
            told = became(bob, folder / f"file-{number}")
            peak = peak_memory()
            print(json.dumps([name, told, round(time.process_time() - began, 2), peak]), flush=True)
        line = {
            each.id: [said.message for said in alice.messages(each.id)] for each in alice.sessions()
        }
        owners = sorted({str(each.owner) for each in store.sessions(limit=100_000)})
        print(json.dumps([list(map(str, store.verify())), owners, line]))


def peak_memory() -> int:
    """Return the most kilobytes that this program had, and not the program that started it.

    A new program inherits the greatest size of its parent, so that only /proc tells its own.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(status.read_text().partition("VmHWM:")[2].split()[0])


def became(bob: Scoped, path: Path) -> str:
    """Return what became of a file."""
    try:
        report = import_file(bob, path, max_bytes=BYTES, max_seconds=SECONDS)
    except StoreError as refused:
        return f"{type(refused).__name__}: {refused!s:.200}"
    except Exception as raw:  # noqa: BLE001 - what it is tells whether the test has failed
        return f"RAW {raw!r:.200}"
    return f"imported {len(report.sessions)}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
