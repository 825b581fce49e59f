"""A request in; what was measured, judged and found out: the order of an examination."""
