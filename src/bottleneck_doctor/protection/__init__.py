"""The user's files stay as they were: a sandbox where the kernel allows it, a journal to undo elsewhere."""
