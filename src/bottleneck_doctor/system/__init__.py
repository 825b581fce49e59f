"""What any program of ours needs of the machine: files written whole, progress, interruption."""
