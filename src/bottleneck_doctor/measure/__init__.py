"""Where a live process is asked for windows: sized, granted, awaited, kept, paired, within a budget."""
