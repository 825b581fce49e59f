"""Findings about waiting for data: how a batch is made, what limits its making, and how it arrives."""
