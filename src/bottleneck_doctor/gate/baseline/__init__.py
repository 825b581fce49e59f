"""Stored baselines: processes of one revision, compared with stored measurements of other times on the same machine."""
