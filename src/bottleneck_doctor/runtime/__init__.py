"""The guest: the part of bottleneck-doctor that runs in the user's own process.

It finds the training loop, stops at a step boundary, and asks the supervisor for one window after another. It knows
nothing of fixes, plans, statistics or reports. It imports only the standard library and torch, nothing else of
doctor's, because it is loaded by path into whatever interpreter the user's command starts.
"""
