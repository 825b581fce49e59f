"""Keeps the user's files as they were: by a sandbox if the kernel allows it, else by a journal of changes to undo."""
