"""The cost of a stored session by other policies, and with other providers.

The session is replayed in a private store, request by request, and each request is priced by a
provider's prompt cache. The source is only read.
"""

from __future__ import annotations

from .prices import PROVIDERS, Prices
from .replay import Simulated, compare, simulate

__all__ = ["PROVIDERS", "Prices", "Simulated", "compare", "simulate"]
