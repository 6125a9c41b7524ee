"""Data sets of conversations and the trajectories of benchmarks, a module each."""

from . import oasst, sharegpt, swe_agent, tau_bench

__all__ = ["oasst", "sharegpt", "swe_agent", "tau_bench"]
