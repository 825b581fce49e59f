"""Which two revisions are compared, and the files that each of them runs with."""
