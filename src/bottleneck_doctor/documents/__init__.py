"""What is written and read again: reports, checks, baselines. One file a document, one codec for all."""
