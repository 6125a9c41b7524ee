"""Data sets of conversations and the trajectories of benchmarks, a module each."""

from . import (
    inspect_log,
    mini_swe_agent,
    moatless,
    oasst,
    sharegpt,
    swe_agent,
    tau2_bench,
    tau_bench,
    toolbench,
)

__all__ = [
    "inspect_log",
    "mini_swe_agent",
    "moatless",
    "oasst",
    "sharegpt",
    "swe_agent",
    "tau2_bench",
    "tau_bench",
    "toolbench",
]
