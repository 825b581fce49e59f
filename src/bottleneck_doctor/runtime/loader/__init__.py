"""Loaders of torch, and how the guest takes batches out of them in the user's place."""
