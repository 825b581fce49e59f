"""The order of an examination: a request in; what was measured, judged and found, out."""
