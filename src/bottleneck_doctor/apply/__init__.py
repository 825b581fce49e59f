"""The changes of a report, made in the user's files and taken back: a `Result` in, edited files out."""
