"""Finds the folders that are shipped beside the code: migrations and prompts.

Must not know what lies in them, nor import anything of the package.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]


def find_folder(name: str) -> Path:
    """Find a shipped folder: inside the package in a wheel, beside it in a checkout.

    Raises FileNotFoundError when it is in neither place: the installation is damaged.
    """
    for parent in (PACKAGE_FOLDER, PACKAGE_FOLDER.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(
        f"{name}/ is neither in nor beside the package at {PACKAGE_FOLDER}: "
        "the installation is incomplete, install it again"
    )
