"""Words that reports, checks and errors share: sentences and figures as text, made once. Pure."""
