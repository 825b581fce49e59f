"""Patches: made from texts, read, and applied in memory. Pure: whoever calls reads the files, and writes them."""
