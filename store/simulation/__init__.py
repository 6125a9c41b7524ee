"""What a stored session would have cost by other policies, and with which providers.

The session is told again in a private store, request by request, and each request is priced as a
provider's prompt cache would have it. The source is only read.
"""

from __future__ import annotations

from .prices import PROVIDERS, Prices
from .replay import Simulated, compare, simulate

__all__ = ["PROVIDERS", "Prices", "Simulated", "compare", "simulate"]
