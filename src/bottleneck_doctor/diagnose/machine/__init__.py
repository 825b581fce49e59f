"""Findings about where the training runs: the machine, its memory, and the processes that train together."""
