"""Findings about the time outside of steps: before the first one and between two epochs."""
