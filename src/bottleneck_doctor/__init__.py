"""bottleneck-doctor: examine an unmodified PyTorch training run and rank fixes by measured speedup."""

__version__ = "0.1.0"
