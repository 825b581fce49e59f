"""The process that the guest lives in: its clocks and exits, its parent and its rank, its CPUs, the processes that it
starts, and which of its code is the user's."""
