"""Lazy imports of a room: its names are imported when they are first used.

Code that uses one name of a room does not load the rest of it, so a program that only appends never
imports compaction (PEP 562). The ``__init__`` of such a room lists the names in a table, by module;
its imports and ``__all__``, for people and type checkers, are written from the table by
``python docs/generate.py``. The ``__all__`` of a public room is written by hand: it names what
programs may use, and the table all that other rooms use.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from .errors import build_open_error

importing_threads: dict[object, int] = {}
"""The threads that are importing a module of a room; in a forked child it would stay locked."""

ModuleHooks = tuple[Callable[[str], Any], Callable[[], list[str]]]


def attach_modules(room: str, modules: str = "", /, **holding: str) -> ModuleHooks:
    """Return the ``__getattr__`` and ``__dir__`` of a room.

    They find all its modules by name, and the names that these are ``holding`` for others.
    ``modules`` are those that others use by name.
    """
    places: dict[str, str] = {}
    for module, names in holding.items():
        places |= dict.fromkeys(names.split(), module)

    def find_name(name: str) -> Any:
        if name in places:
            value = getattr(_import_module(f"{room}.{places[name]}"), name)
            setattr(sys.modules[room], name, value)  # so that this runs only once
            return value
        try:
            return _import_module(f"{room}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{room}.{name}":  # it exists, and one of its own imports is missing
                raise
        raise AttributeError(f"module {room!r} has no attribute {name!r}", name=name)

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[room]), *places, *modules.split()})

    return find_name, list_names


def _import_module(module: str) -> ModuleType:
    """Import a module of a room. Raises StoreError if the process has no file descriptor left."""
    entry = object()
    importing_threads[entry] = threading.get_ident()
    try:
        return import_module(module)
    except OSError as problem:
        raise build_open_error(problem) from problem
    finally:
        del importing_threads[entry]
