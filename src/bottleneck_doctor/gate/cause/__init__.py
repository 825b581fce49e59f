"""Where a regression comes from: what grew, and which changed line says so."""
