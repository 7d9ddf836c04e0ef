"""Frozen draws and their peers on the same log densities, by one protocol. `python -m benchmarks.leaderboard` runs it."""
