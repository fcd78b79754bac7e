"""What reaches the disk: where it came from, whole or not at all."""
