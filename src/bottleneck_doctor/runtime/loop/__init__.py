"""The training loop as its events show it: steps, batches, calls and the pauses between epochs, and which loop they
form."""
