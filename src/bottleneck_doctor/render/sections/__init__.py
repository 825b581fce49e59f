"""One file a section of the page: a `Result` in, what its template draws out; None where there is no evidence."""
