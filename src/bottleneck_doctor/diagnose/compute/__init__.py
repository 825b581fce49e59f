"""Findings about what the training process does in a step: the passes, the optimizer, and everything between them."""
