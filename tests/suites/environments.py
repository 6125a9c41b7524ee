"""A virtual environment for each framework, and the sources that it ships, kept between runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path

import platformdirs

from .frameworks import Framework

ROOT = Path(__file__).resolve().parent.parent.parent
PYTEST = (
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "pytest-xdist",
    "hypothesis",
    "trio",
    "psycopg[binary]",
)
"""What runs the tests, and what those of the project need to start."""


def get_cache_folder() -> Path:
    """Return the folder of the environments: CONVOSTORE_SUITES, or one of the user's cache."""
    given = os.environ.get("CONVOSTORE_SUITES")
    return Path(given) if given else platformdirs.user_cache_path("convostore-suites")


def prepare_environment(framework: Framework, *, newest: bool = False) -> Path:
    """Return the Python of a framework's environment; it is made if it is not there."""
    packages = [each.partition("==")[0] if newest else each for each in framework.packages]
    wanted = [*_list_requirements(), *PYTEST, *packages, *framework.beside]
    key = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    folder = get_cache_folder() / f"{framework.name}{'-newest' if newest else ''}-{key}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        run_program(python, "-m", "pip", "install", "-q", *wanted)
        (folder / "complete").touch()
    return python


def _list_requirements() -> list[str]:
    """Return what the project itself requires."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [*project["dependencies"]]


def unpack_sources(python: Path, sdist: str) -> Path:
    """Return the folder with the unpacked source distribution of a package."""
    name = sdist.partition("==")[0]
    folder = get_cache_folder() / "sources" / sdist.replace("==", "-")
    if not folder.is_dir():
        loading = folder.with_name(f"{folder.name}.loading")
        shutil.rmtree(loading, ignore_errors=True)
        options = ("--no-deps", "--no-binary", name, "-d", loading)
        run_program(python, "-m", "pip", "download", "-q", *options, sdist)
        (archive,) = loading.glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            # Python 3.11.0 to 3.11.3 have no filters.
            opened.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            opened.extractall(loading)
        archive.unlink()
        (unpacked,) = loading.iterdir()
        unpacked.rename(folder)
        shutil.rmtree(loading)
    return folder


def run_program(*command: object) -> None:
    """Run a program; one that fails raises with what it said."""
    words = [str(each) for each in command]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(words)}: {ended.stdout}{ended.stderr}")
