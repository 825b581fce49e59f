"""Loaders of torch, and how the guest takes batches out of them in place of the user's loop."""
