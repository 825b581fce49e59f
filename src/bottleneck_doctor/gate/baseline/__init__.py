"""Stored baselines: processes of one revision, held against draws of other times on the same machine."""
