"""What a check is written as: a `Check` in; a terminal's text, a page, Markdown, JUnit, annotations out."""
