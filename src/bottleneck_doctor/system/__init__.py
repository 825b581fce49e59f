"""What every command needs from the machine: files written whole, progress, interruption."""
