"""Values in; intervals, verdicts and distributions out. Pure, standard library only."""
