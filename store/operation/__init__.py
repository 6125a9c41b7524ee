"""What keeps a store alive: copies of it, checks of a file as it is, advice to who runs it.

It never changes what a conversation says. Copies are written and checked here, and given back; what
may threaten the store is told, not mended. The faces and the command call it.
"""

from __future__ import annotations

from .advice import Condition, doctor
from .checking import check
from .copies import backup, listed, remove_copies, restore

__all__ = ["Condition", "backup", "check", "doctor", "listed", "remove_copies", "restore"]
