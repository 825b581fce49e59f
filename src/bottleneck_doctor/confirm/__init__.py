"""The promise of a report, held against the program with the change made: a `Result` in, the same with what came of it
out."""
