"""Runs profilers (py-spy, line_profiler, torch.profiler) and turns their output into parts of `Profiles`."""
