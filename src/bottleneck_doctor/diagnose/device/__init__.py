"""Findings about the device: copies to it, kernels on it, and the time in which it has none to run."""
