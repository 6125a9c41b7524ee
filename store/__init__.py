"""convostore: keep every message of a conversation unchanged, and compute what is sent to the model."""

from __future__ import annotations

from .errors import StoreError
from .policy import Policy
from .store import AsyncStore, Store

__all__ = ["AsyncStore", "Policy", "Store", "StoreError"]
