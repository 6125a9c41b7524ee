"""How a room is entered: what it lets others use is imported where it is asked for first.

Who wants one thing of a room does not wait for the rest of it, so a program that only appends never
imports what compacts (PEP 562). The ``__init__`` of such a room names them in a table, by module;
its imports and ``__all__``, for people and type checkers, are written from the table by
``python docs/generate.py``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from .errors import unopened

importing_threads: dict[object, int] = {}
"""The threads that import a module of a room just now; in a forked child it would stay locked."""

ModuleHooks = tuple[Callable[[str], Any], Callable[[], list[str]]]


def attach_modules(room: str, modules: str = "", /, **holding: str) -> ModuleHooks:
    """Return the ``__getattr__`` and ``__dir__`` of a room.

    It has all its modules by their names, and what they are ``holding`` for others. Those that
    others use by name are its ``modules``.
    """
    places: dict[str, str] = {}
    for module, names in holding.items():
        places |= dict.fromkeys(names.split(), module)

    def found(name: str) -> Any:
        if name in places:
            value = getattr(_entered(f"{room}.{places[name]}"), name)
            setattr(sys.modules[room], name, value)  # so it is asked for once
            return value
        try:
            return _entered(f"{room}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{room}.{name}":  # it is there, and lacks what it imports itself
                raise
        raise AttributeError(f"module {room!r} has no attribute {name!r}", name=name)

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[room]), *places, *modules.split()})

    return found, listed


def _entered(module: str) -> ModuleType:
    """Import a module of a room; a process without a file left cannot."""
    entry = object()
    importing_threads[entry] = threading.get_ident()
    try:
        return import_module(module)
    except OSError as problem:
        raise unopened(problem) from problem
    finally:
        del importing_threads[entry]
