"""Serving windows inside the user's loop: the boundaries at which grants are asked for, and the windows themselves."""
