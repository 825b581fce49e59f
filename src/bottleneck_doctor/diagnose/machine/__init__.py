"""Findings about where training runs: the machine, its memory, and processes that train together."""
