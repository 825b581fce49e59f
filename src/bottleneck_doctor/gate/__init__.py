"""The gate: whether a revision trains slower than another, as `doctor check` answers it."""
