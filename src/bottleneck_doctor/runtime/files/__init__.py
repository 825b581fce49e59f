"""Files that the user's program writes: a journal of them, and how long saving takes."""
