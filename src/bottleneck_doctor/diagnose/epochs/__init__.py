"""Findings about the time outside of steps: before the first step, and between two epochs."""
