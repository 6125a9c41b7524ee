"""Data sets of conversations and the trajectories of benchmarks, a module each."""
