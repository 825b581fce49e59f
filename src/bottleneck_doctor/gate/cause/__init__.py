"""Where a regression comes from: the code that takes longer, and the changed line that explains it."""
