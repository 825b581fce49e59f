"""One file an output. Each reads a `Result` and nothing else, and returns text; writing it is the caller's business."""
