"""The guest: the part of bottleneck-doctor that lives in the user's own process.

It finds the training loop, stops at a step boundary, and asks the supervisor for one window after another. It knows
nothing of fixes, plans, statistics or reports. Only the standard library and torch are imported, nothing else of ours,
because it is loaded by path into whatever interpreter the user's command starts.
"""
