"""A setting and the user's line in; the change to make there out."""
