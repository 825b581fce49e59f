"""Findings about waiting for data: how a batch is made, what limits this, and how it reaches the training process."""
